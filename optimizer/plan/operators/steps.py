"""How an answer is reached at each boundary, for each way of keeping: statements over the views w{i} of
optimizer.plan.operators.views; nothing is read or run here.

At boundary t, after p: came = members at t that were not at p, left = members at p that are not at t (DESIGN, M(t)). A change of a join of sets is
the telescoped sum Σ_i M_<i(one) ⋈ Δ_i ⋈ M_>i(other), so that each joined combination is made exactly once.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from optimizer.plan.division import pivot
from optimizer.plan.lowering import Lowering, extremes, merged, working_type
from optimizer.plan.operators.join import group_columns, joined, merged_answer, out_columns
from optimizer.plan.operators.keep import kept_answer, writes
from optimizer.plan.operators.many import answer, answers, number
from optimizer.plan.operators.rows import row_program
from optimizer.plan.operators.sets import grouped, names
from optimizer.plan.operators.views import View, view
from optimizer.plan.program import BEGINNING, Program, Step
from optimizer.query.windows import ALWAYS


def program(low: Lowering, boundaries: tuple[int, ...], previous: int, floor: int = -ALWAYS) -> Program:
    """All statements for these boundaries. `previous` is the boundary to which the state was brought, BEGINNING where it starts anew;
    `floor`, for row queries, an instant before which no row that comes now can meet an older one."""
    if low.shape.query.returns_rows:
        return row_program(low, boundaries, previous, floor)
    views = tuple(view(low, i, boundaries, previous) for i in low.inputs)
    before = (previous, *boundaries[:-1])
    make = STEPS[low.plan.keeping]
    steps = tuple(make(low, views, n, p, t) for n, (p, t) in enumerate(zip(before, boundaries)))
    sources, setup = kept_answer(low, previous) if low.plan.keeps_answer else ((), ())
    return Program(tuple(s for v in views for s in v.sources) + sources, tuple(x for v in views for x in v.setup) + setup, steps,
                   writes(low, boundaries, previous), tuple(f for v in views for f in v.before))


def _members(low: Lowering, views: tuple[View, ...], i: int, t: int, merge: bool = True) -> str:
    """S_i(t): the rows, or the merged partials, that count at t."""
    return _within(low, f"w{i}", i, "TRUE" if views[i].exact else f"_in <= {t} AND _out >= {t}", merge)


def _within(low: Lowering, source: str, i: int, where: str, merge: bool, extra: tuple[str, ...] = ()) -> str:
    return f"({grouped(low, i, source, extra, where)})" if low.early(i) and merge else f"(SELECT * FROM {source} WHERE {where})"


def _recompute(low: Lowering, views: tuple[View, ...], n: int, p: int, t: int) -> Step:
    """The divided input is joined partial by partial: merging it first costs more than it saves, and the late aggregation merges it anyway."""
    def at(i: int, read: str) -> str:
        return read if low.plan.levels else f"w{i}"

    def one(longer: int, read: str) -> str:
        where = [f"_in <= {t} AND _out >= {t + longer}" if not views[i].exact else "TRUE" for i in low.inputs]
        return joined(low, {i: _within(low, at(i, read), i, where[i], i != pivot(low)) for i in low.inputs})

    def sliced(lengths: Sequence[int], read: str) -> str:
        where = f"_in <= {t} AND _out >= {t + lengths[-1]}"
        numbered = {i: f"(SELECT *, {number('_out', t, lengths)} AS _b FROM {at(i, read)} WHERE {where}) AS numbered" for i in low.inputs}
        sources = {i: _within(low, numbered[i], i, "TRUE", i != pivot(low), ("_b",)) for i in low.inputs}
        return joined(low, sources, extra=(("_b", _of_all(low, "greatest", "_b")),))

    return Step(t, *answers(low, n, t, one, sliced))


def _running(low: Lowering, views: tuple[View, ...], n: int, p: int, t: int) -> Step:
    """AS update (paper A, Def. 4) of each early set, by what came and what left; then the AS join (Def. 6) of all."""
    kept = [i for i in low.inputs if low.early(i) and low.window(i)]
    define = tuple((f"t{i}_{n}", _totals(low, i, f"t{i}_{n - 1}" if n else f"t{i}", p, t), True) for i in kept)
    members = {i: _with_extremes(low, i, f"t{i}_{n}", t) if i in kept else _members(low, views, i, t) for i in low.inputs}
    return Step(t, define, answer(low, t, joined(low, members)))


def _totals(low: Lowering, i: int, before: str, p: int, t: int) -> str:
    keys = [a.name for a in low.shape.attributes[i]]
    values = names(low, i, extremes_too=False)[len(keys):]
    listed, gone = ", ".join(keys + values), ", ".join(keys + [f"-{v}" for v in values])
    changes = (f"SELECT {listed} FROM {before} UNION ALL SELECT {listed} FROM w{i} WHERE _in > {p} AND _in <= {t} AND _out >= {t} "
               f"UNION ALL SELECT {gone} FROM w{i} WHERE _in <= {p} AND _out >= {p} AND _out < {t}")
    kinds = {m.name: m for m in low.shape.own(i)}
    sums = [f"{merged(kinds[v], v, low) if v in kinds else f'CAST(sum({v}) AS BIGINT)'} AS {v}" for v in values]
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join(keys + sums)} FROM ({changes}) AS q{by} HAVING sum(c) <> 0"


def _with_extremes(low: Lowering, i: int, totals: str, t: int) -> str:
    if not extremes(low, i):
        return f"(SELECT * FROM {totals})"
    keys = [a.name for a in low.shape.attributes[i]]
    plain = names(low, i, extremes_too=False)[len(keys):]
    own = extremes(low, i)
    left = ", ".join(keys + plain + [f"CAST(NULL AS {working_type(m, low)}) AS {m.name}" for m in own])
    right = ", ".join(keys + [f"NULL AS {v}" for v in plain] + [m.name for m in own])
    both = f"(SELECT {left} FROM {totals} UNION ALL SELECT {right} FROM x{i} WHERE _in <= {t} AND _out >= {t}) AS q"
    return f"({grouped(low, i, both, having='sum(c) <> 0')})"


def _delta(low: Lowering, i: int, p: int, t: int) -> str:
    """Δ_i: what came (+1) and what left (−1)."""
    return (f"(SELECT *, CAST(1 AS BIGINT) AS _s FROM w{i} WHERE _in > {p} AND _in <= {t} AND _out >= {t} "
            f"UNION ALL SELECT *, CAST(-1 AS BIGINT) AS _s FROM w{i} WHERE _in <= {p} AND _out >= {p} AND _out < {t})")


def _changing(low: Lowering, p: int, first: int) -> list[int]:
    """The inputs that can have changed, a term each; from nothing, the one term of input `first` makes every combination."""
    return [first] if p == BEGINNING else [i for i in low.inputs if low.window(i)]


def _retract(low: Lowering, views: tuple[View, ...], n: int, p: int, t: int) -> Step:
    """Counting algorithm (paper C's IC, equation 2): the answer changes by signed joins of deltas with sets."""
    terms = []
    for i in _changing(low, p, low.inputs[-1]):
        sources = {j: _delta(low, i, p, t) if j == i else _members(low, views, j, t if j < i else p) for j in low.inputs}
        terms.append(joined(low, sources, signed=i))
    columns = ", ".join(name for name, _ in out_columns(low))
    before = f"SELECT {columns} FROM {f'o_{n - 1}' if n else 'o'}"
    changed = " UNION ALL ".join([before, *(f"SELECT {columns} FROM ({x}) AS q" for x in terms)])
    return Step(t, ((f"o_{n}", merged_answer(low, changed, having=_something(low)), True),), answer(low, t, f"SELECT * FROM o_{n}"))


def _something(low: Lowering) -> str:
    """A task's share of a group is gone when nothing of it is left; a share, unlike a group, can have rows taken away that another share has."""
    counts = [name for name, _ in out_columns(low) if name in ("c", "e")]
    return " OR ".join([f"sum({c}) <> 0" for c in counts] + [f"COALESCE(sum({m.name}), 0) <> 0" for m in low.shape.measures if m.additive])


def _expire(low: Lowering, views: tuple[View, ...], n: int, p: int, t: int) -> Step:
    """Paper C's TC generalised: a combination is made once, by the member that comes last, and carries e = min out; what ended is not read."""
    ends = _of_all(low, "least", "_out")
    terms = []
    for i in _changing(low, p, 0):
        roles = {j: (f"_in <= {p}" if j < i else f"_in > {p} AND _in <= {t}" if j == i else f"_in <= {t}") for j in low.inputs}
        terms.append(joined(low, {j: f"(SELECT * FROM w{j} WHERE {roles[j]} AND _out >= {t})" for j in low.inputs}, extra=(("_e", ends),)))
    columns = ", ".join([*(name for name, _ in out_columns(low)), "_e"])
    new = (f"d_{n}", " UNION ALL ".join(f"SELECT {columns} FROM ({x}) AS q" for x in terms), True)
    older = f"SELECT {columns} FROM {f'o_{n - 1}' if n else 'o'} WHERE _e >= {t}"
    kept = (f"o_{n}", f"{older} UNION ALL SELECT {columns} FROM d_{n}", False)
    having = "" if group_columns(low.shape) else "count(*) > 0"

    def one(longer: int, read: str) -> str:
        return merged_answer(low, f"SELECT * FROM o_{n}", where=f"_e >= {t + longer}", having=having)

    def sliced(lengths: Sequence[int], read: str) -> str:
        numbered = f"SELECT *, {number('_e', t, lengths)} AS _b FROM o_{n} WHERE _e >= {t + lengths[-1]}"
        return merged_answer(low, numbered, extra=("_b",))

    define, found = answers(low, n, t, one, sliced)
    return Step(t, (new, kept, *define), found)


def _of_all(low: Lowering, function: str, column: str) -> str:
    return f"{function}({', '.join(f'v{i}.{column}' for i in low.inputs)})" if len(low.inputs) > 1 else f"v0.{column}"


STEPS: dict[str, Callable[[Lowering, tuple[View, ...], int, int, int], Step]] = {
    "recompute": _recompute, "running": _running, "retract": _retract, "expire": _expire}
