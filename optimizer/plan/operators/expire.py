"""`expire`: answer partials are kept by when they end, so what leaves is simply not read (paper C's TC, generalised).

A(t) = γ{ partials with e ≥ t }: a combination of rows is made once, by the member that comes last, and carries the
end e = minᵢ outᵢ of the member that leaves first. Nothing is subtracted. Where one statement answers several
boundaries, a partial also says at which of them it entered.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optimizer.plan import table
from optimizer.plan.lowering import Lowering
from optimizer.plan.operators.answer import NODE, AnswerOperator, Ends, KeptAnswer, changing, looking_work, new_ends
from optimizer.plan.operators.join import by_boundary, group_columns, joined, merged_answer, out_columns
from optimizer.plan.operators.operator import Boundary, Expected, KeptSet, Run, Work, at_each, of_all
from optimizer.plan.operators.windows import frequency, merged_at_moments, number, step_of, suffix_work
from optimizer.plan.program import BEGINNING, Definition, Source, Step

STATE = KeptAnswer(by_end=True)
# Boundaries of a run whose additions are a view over one another: the engine plans each of them at every boundary, so
# now and then what has not ended is made a table.
STACKED = 16


@dataclass(frozen=True)
class ExpiringAnswer(AnswerOperator):
    """The partials that have not ended, of earlier boundaries and of this one."""

    formula = "A(t) = γ{ partials with e ≥ t }, each made once by the member that comes last, e = minᵢ outᵢ"

    def kept(self, ctx: Lowering) -> tuple[KeptSet, ...]:
        return (STATE,)

    def sources(self, ctx: Lowering, run: Run) -> tuple[Source, ...]:
        return STATE.source(ctx, run)

    def setup(self, ctx: Lowering, run: Run) -> tuple[Definition, ...]:
        return (STATE.as_of_previous(ctx, run),)

    def step(self, ctx: Lowering, run: Run, boundary: Boundary) -> Step:
        """What this boundary adds; that and what has not ended of before."""
        t, n = boundary.at, boundary.number
        columns = ", ".join([*(name for name, _ in out_columns(ctx)), "_e"])
        added = " UNION ALL ".join(f"SELECT {columns} FROM ({term}) AS q" for term in self._terms(ctx, boundary))
        older = f"SELECT {columns} FROM {table.answer_before(n)} WHERE _e >= {t}"
        after = table.answer_after(n)
        define = (Definition(table.added(n), added, is_table=True),
                  Definition(after, f"{older} UNION ALL SELECT {columns} FROM {table.added(n)}",
                             is_table=n % STACKED == STACKED - 1))
        having = "" if group_columns(ctx.shape) else "count(*) > 0"

        def one(longer: int, view: str) -> str:
            return merged_answer(ctx, f"SELECT * FROM {after}", where=f"_e >= {t + longer}", having=having)

        def several(lengths: Sequence[int], view: str) -> str:
            numbered = f"SELECT *, {number('_e', t, lengths)} AS _b FROM {after} WHERE _e >= {t + lengths[-1]}"
            return merged_answer(ctx, numbered, extra=("_b",))

        return step_of(ctx, boundary, define, one, several)

    def step_of_several(self, ctx: Lowering, boundaries: Sequence[Boundary]) -> Step:
        """What these boundaries add, each partial with the one at which it enters; that and what was there before."""
        last = boundaries[-1]
        columns = ", ".join([*(name for name, _ in out_columns(ctx)), "_e"])
        terms = [f"SELECT {columns}, _t AS _in FROM ({term}) AS q" for term in self._terms_of_several(ctx, boundaries)]
        older = (f"SELECT {columns}, CAST(0 AS BIGINT) AS _in FROM {table.answer_before(boundaries[0].number)} "
                 f"WHERE _e >= {boundaries[0].at}")
        added, after = table.added(last.number), table.answer_after(last.number)
        define = (Definition(added, " UNION ALL ".join(terms), is_table=True),
                  Definition(after, f"{older} UNION ALL SELECT {columns}, _in FROM {added}", is_table=True))
        return Step(last.at, define, merged_at_moments(ctx, boundaries, after))

    def own_work(self, expected: Expected) -> Work:
        """A term for each stream: what came, among the others' partials; what is added is kept, and all of it read."""
        ctx, sizes = expected.ctx, expected.sizes
        terms = [expected.arrivals(i) for i in ctx.inputs if ctx.window(i)]
        if expected.from_nothing:
            terms = [[expected.by_pane(i) for i in ctx.plan.order]]
        for i in ctx.inputs:
            yield from looking_work(expected, i, times=len(terms))
        new_partials, joined_rows = 0.0, 0.0
        ends = expected.ends if expected.from_nothing else new_ends(expected)
        for operands in terms:
            term = self.late.term(expected, operands, more=1)
            yield from term.charges
            new_partials += term.groups(expected, ends)
            joined_rows += term.raw_rows
        written = min(sizes.answer(joined_rows, ends), new_partials)
        before, live = (0.0, 0.0) if expected.from_nothing else _before(expected)
        share, width = 1 / ctx.parts, expected.answer_width + 1
        yield NODE, {
            "state_read": before * share * width,
            "files": expected.files(expected.ends) * share if before else 0,
            # What counts is merged for the answer, what is new once more for its file.
            "group": (live * share + new_partials) * expected.answer_width + new_partials * width,
            "made": (new_partials + written) * width + sizes.groups * expected.answer_width,
            "keep": new_partials * width,
            "state_write": written * width,
            "statements": 3,
        }
        if ctx.shape.query.windows:
            yield from self._windows_work(expected, before + new_partials)

    def _terms(self, ctx: Lowering, boundary: Boundary) -> list[str]:
        t, previous = boundary.at, boundary.previous
        terms = []
        for i in changing(ctx, previous == BEGINNING, first=0):
            sources = {}
            for j in ctx.inputs:
                arrived = f"_in > {previous} AND _in <= {t}" if j == i else f"_in <= {previous if j < i else t}"
                sources[j] = f"(SELECT * FROM {table.of_input(j)} WHERE {arrived} AND _out >= {t})"
            terms.append(joined(ctx, sources, extra=(("_e", of_all(ctx, "least", "_out")),)))
        return terms

    def _terms_of_several(self, ctx: Lowering, boundaries: Sequence[Boundary]) -> list[str]:
        """The same terms, each of all boundaries that have it, by `_t`; a relation's rows count at all of them."""
        terms, streams = [], [i for i in ctx.inputs if ctx.window(i) is not None]
        for i in ctx.inputs:
            having_it = [b for b in boundaries if i in changing(ctx, b.previous == BEGINNING, first=0)]
            if not having_it:
                continue
            sources = {}
            for j in ctx.inputs:
                arrived = "_in > _after AND _in <= _t" if j == i else f"_in <= {'_after' if j < i else '_t'}"
                rows = at_each(table.of_input(j), having_it, f"{arrived} AND _out >= _t")
                sources[j] = f"(SELECT * FROM {rows if j in streams else table.of_input(j)})"
            extra = (("_e", of_all(ctx, "least", "_out")), ("_t", f"v{streams[0]}._t"))
            terms.append(joined(by_boundary(ctx), sources, extra=extra))
        return terms

    def _windows_work(self, expected: Expected, rows: float) -> Work:
        """What several windows take beyond reading the kept answer's `rows` once."""
        query = expected.ctx.shape.query
        if expected.ctx.plan.sharing == "together":
            yield from suffix_work(expected, query.windows)
            return
        reads = sum(frequency(query, window) for window in query.windows)
        again = max(reads - 1, 0.0) / expected.ctx.parts * rows * (expected.answer_width + 1)
        merged = reads * expected.sizes.answer(rows) * expected.answer_width
        yield NODE, {"state_read": again, "group": again, "made": merged}


def _before(expected: Expected) -> tuple[float, float]:
    """Rows in the kept answer's files before a boundary, and those of them that have not ended."""
    sizes, settled = expected.sizes, Ends.of(expected)
    if expected.age >= expected.ends:
        return settled.in_files, settled.live - settled.added
    operands = [expected.by_pane(i) for i in expected.ctx.plan.order]
    whole = min(sizes.answer(sizes.raw_join(operands), expected.ends), sizes.join(operands))
    rows = whole + settled.added * max(expected.age - 1, 0)
    return rows, min(rows, settled.live - settled.added)
