"""`running`: the set of an input that aggregates early is kept as running totals, with its extremes beside them.

For `SELECT page, COUNT(*), SUM(ms), MAX(ms) FROM views [WINDOW 1 HOUR] GROUP BY page` and a boundary every ten minutes

- `totals0` holds a row a page: COUNT(*) and SUM(ms) of the hour. At a boundary what came is added and what left is
  subtracted (AS update: paper A, Definition 4).
- `extremes0` holds a row a page and ten minutes: MAX(ms). An extreme cannot be subtracted, so each row says by `_in`
  and `_out` from which boundary to which it counts. Merging files keeps only rows that can still be an extreme.

The join reads both as one table with a row a page (`RunningSet.members`).

    changes_0       rows that came or left, each with its interval (of the scan)
    kept_totals0    totals in state: totals_0_before is this task's share, then totals_0_after_0, totals_0_after_1 …
    kept_extremes0  extremes in state; new_extremes0 are those of what came, extremes_0 both together

Where a statement answers several boundaries, totals_0 are the totals of all of them, a row each time that a group's
change, with the boundaries at which they hold; input_0 is these and the extremes.
"""
from __future__ import annotations

from dataclasses import dataclass
from math import log

from optimizer.plan import table
from optimizer.plan.division import by_key, divided
from optimizer.plan.lowering import Lowering, counted, extremes, merged, working_type
from optimizer.plan.membership import INTERVAL
from optimizer.plan.operators.operator import (
    Boundary,
    Expected,
    InputOperator,
    KeptSet,
    Operator,
    Run,
    Work,
    answers_several,
    append,
    came,
    counts,
    in_stored_types,
    left,
    live_rows,
    merged_file,
    never_merged,
    scan_node,
    set_node,
)
from optimizer.plan.operators.scan import INTERVAL_COLUMNS, TIME_COLUMNS, Scan
from optimizer.plan.operators.sets import grouped, names, own_keys, set_words, stored_columns, summed_up, working
from optimizer.plan.program import BEGINNING, Definition, Fragment, Source, StateSet, Write
from optimizer.statistics.cardinality import PRUNED

EXACT_PANES = 1_000      # up to which `panes_that_can_matter` adds pane by pane


@dataclass(frozen=True)
class RunningSet(InputOperator):
    """The operator: totals and extremes of one input, brought up to date side by side and read as one table."""

    scan: Scan

    @property
    def input(self) -> int:      # type: ignore[override]
        return self.scan.input

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.scan,)

    def parts(self, ctx: Lowering) -> tuple[RunningTotals | Extremes, ...]:
        totals = RunningTotals(self.input)
        return (totals, Extremes(self.input)) if extremes(ctx, self.input) else (totals,)

    def kept(self, ctx: Lowering) -> tuple[KeptSet, ...]:
        return self.parts(ctx)

    def sources(self, ctx: Lowering, run: Run) -> tuple[Source, ...]:
        if run.from_nothing:
            return self.scan.sources(ctx, run)
        return (*self.scan.sources(ctx, run), *(part.source(ctx) for part in self.parts(ctx)))

    def fragments(self, ctx: Lowering, run: Run) -> tuple[Fragment, ...]:
        return self.scan.fragments(ctx, run)

    def setup(self, ctx: Lowering, run: Run) -> tuple[Definition, ...]:
        i, rows, several = self.input, self.scan.rows(ctx, run), answers_several(ctx, run)
        if several:      # totals and extremes are made of them once, so they are merged while they are read
            rows = grouped(ctx, i, f"({rows}) AS q", ("_in", "_out", "_known"))
        changed = Definition(table.changes(i), rows, is_table=True)
        of_parts = (definition for part in self.parts(ctx) for definition in part.setup(ctx, run))
        return (changed, *of_parts, *(self._by_interval(ctx, run) if several else ()))

    def define_at(self, ctx: Lowering, boundary: Boundary) -> tuple[Definition, ...]:
        return (RunningTotals(self.input).update(ctx, boundary),)

    def members(self, ctx: Lowering, run: Run, boundary: Boundary) -> str:
        """All groups in the window at this boundary, each with its totals and extremes."""
        i, totals = self.input, table.totals_after(self.input, boundary.number)
        if not extremes(ctx, i):
            return f"(SELECT * FROM {totals})"
        with_sums, with_extremes = self._both(ctx, totals)
        rows = f"({with_sums} UNION ALL {with_extremes} WHERE {counts(boundary.at)}) AS q"
        return f"({grouped(ctx, i, rows, having='sum(c) <> 0')})"

    def merged_at(self, ctx: Lowering, rows: str, moment: tuple[str, ...]) -> str:
        """The same of several boundaries: `rows` are those of input_{i} that count, each with its `moment`'s columns.
        """
        if not extremes(ctx, self.input):
            return f"(SELECT * FROM {rows})"
        return f"({grouped(ctx, self.input, rows, moment, having='sum(c) <> 0')})"

    def _by_interval(self, ctx: Lowering, run: Run) -> tuple[Definition, ...]:
        """All that counts at any boundary of the run."""
        i, totals = self.input, table.totals(self.input)
        sql = f"SELECT * FROM {totals}"
        if extremes(ctx, i):
            sql = " UNION ALL ".join(self._both(ctx, totals, ("_in", "_out")))
        return RunningTotals(i).by_interval(ctx, run), Definition(table.of_input(i), sql, is_table=False)

    def _both(self, ctx: Lowering, totals: str, interval: tuple[str, ...] = ()) -> tuple[str, str]:
        """Totals without extremes, and extremes without totals."""
        i, measures = self.input, extremes(ctx, self.input)
        keys, sums = key_names(ctx, i), sum_names(ctx, i)
        no_extremes = [f"CAST(NULL AS {working_type(m, ctx)}) AS {m.name}" for m in measures]
        no_sums = [f"NULL AS {name}" for name in sums]
        return (f"SELECT {', '.join([*keys, *sums, *no_extremes, *interval])} FROM {totals}",
                f"SELECT {', '.join([*keys, *no_sums, *(m.name for m in measures), *interval])} "
                f"FROM {table.extremes(i)}")

    def work(self, expected: Expected) -> Work:
        """Rows that came and left are read; both parts are brought up to date, and put together."""
        ctx, i, flow = expected.ctx, self.input, expected.flow(self.input)
        windows = 2 if flow.left and not expected.from_nothing else 1      # what came, and what left
        rows = flow.read if expected.from_nothing else flow.arriving + flow.leaving
        files = flow.panes if expected.from_nothing else windows
        passing = flow.window if expected.from_nothing else flow.came + flow.left
        yield from self.scan.reading_work(expected, rows, files, flow.columns + TIME_COLUMNS * flow.mixed, passing)
        changed = self.scan.reached(expected, passing)
        width = expected.width(i) + INTERVAL_COLUMNS
        yield scan_node(ctx, i), {"times": changed * flow.mixed, "statements": 1}
        if ctx.together > 1:      # rows become partials while they are read
            partials = (flow.by_pane if expected.from_nothing else windows * flow.pane) * expected.shares[i]
            yield set_node(ctx, i), {"group": changed * width, "made": partials * width, "keep": partials * width}
            changed = partials
        else:
            yield scan_node(ctx, i), {"keep": changed * width}
        for part in self.parts(ctx):
            yield from part.work(expected, changed)
        if extremes(ctx, i):
            share_width = expected.shares[i] * expected.width(i)
            stored = flow.by_pane if expected.from_nothing else Extremes(i).stored_rows(expected) + flow.pane
            yield set_node(ctx, i), {"group": (flow.set + stored) * share_width, "made": flow.set * share_width}

    def words(self, ctx: Lowering) -> str:
        return set_words(ctx, self.input, [part.state(ctx).name for part in self.parts(ctx)])


@dataclass(frozen=True)
class RunningTotals:
    """COUNT, SUM and sum of squares of each group of input `input`: one file, which every batch replaces."""

    input: int

    def state(self, ctx: Lowering) -> StateSet:
        return StateSet("totals", self.input, stored_columns(ctx, self.input, extremes_too=False))

    def source(self, ctx: Lowering) -> Source:
        state = self.state(ctx)
        return Source(table.kept(state.name), "state", state.name, columns=state.columns)

    def setup(self, ctx: Lowering, run: Run) -> tuple[Definition, ...]:
        """The totals as of the boundary before."""
        i = self.input
        if run.from_nothing:
            sql = f"SELECT {', '.join(names(ctx, i, extremes_too=False))} FROM {table.changes(i)} WHERE FALSE"
        else:
            columns = ", ".join(working(ctx, i, extremes_too=False))
            sql = f"SELECT {columns} FROM {table.kept(self.state(ctx).name)} WHERE TRUE{own_keys(ctx, i)}"
        return (Definition(table.totals_before(i, 0), sql, is_table=False),)

    def update(self, ctx: Lowering, boundary: Boundary) -> Definition:
        """The totals before, plus what came, minus what left."""
        i, keys, sums = self.input, key_names(ctx, self.input), sum_names(ctx, self.input)
        before, changed = table.totals_before(i, boundary.number), table.changes(i)
        columns, negated = ", ".join(keys + sums), ", ".join(keys + [f"-{name}" for name in sums])
        arrived, gone = came(boundary.previous, boundary.at), left(boundary.previous, boundary.at)
        terms = (f"SELECT {columns} FROM {before} UNION ALL SELECT {columns} FROM {changed} WHERE {arrived} "
                 f"UNION ALL SELECT {negated} FROM {changed} WHERE {gone}")
        aggregates = {measure.name: merged(measure, measure.name, ctx) for measure in ctx.shape.measures_of(i)}
        totals = [f"{aggregates.get(name) or counted(name)} AS {name}" for name in sums]
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        # A group leaves with its last row; else the set would grow with every group there ever was.
        sql = f"SELECT {', '.join(keys + totals)} FROM ({terms}) AS q{by} HAVING sum(c) <> 0"
        return Definition(table.totals_after(i, boundary.number), sql, is_table=True)

    def by_interval(self, ctx: Lowering, run: Run) -> Definition:
        """The totals of all boundaries: what came is added when it enters, and subtracted when it has left."""
        i, keys, sums = self.input, key_names(ctx, self.input), sum_names(ctx, self.input)
        changed, first, columns = table.changes(i), run.boundaries[0], ", ".join(keys + sums)
        entry = f"greatest(_in, {first})"
        enters = f"_in > {run.previous} AND _in <= {run.last} AND _out >= {entry}"
        negated = ", ".join(keys + [f"-{name}" for name in sums])
        events = (f"SELECT {columns}, CAST({first} AS BIGINT) AS _at FROM {table.totals_before(i, 0)} UNION ALL "
                  f"SELECT {columns}, {entry} AS _at FROM {changed} WHERE {enters} UNION ALL "
                  f"SELECT {negated}, greatest(_out + {ctx.shape.query.every}, {first}) AS _at FROM {changed} "
                  f"WHERE _out < {run.last} AND ({enters} OR {counts(run.previous)})")
        kinds = {measure.name: working_type(measure, ctx) for measure in ctx.shape.measures_of(i)}
        sql = summed_up(keys, {name: ("sum", kinds.get(name, "BIGINT")) for name in sums}, events, "c <> 0")
        return Definition(table.totals(i), sql, is_table=True)

    def write(self, ctx: Lowering, run: Run) -> Write:
        state, totals = self.state(ctx), table.totals_after(self.input, len(run.boundaries) - 1)
        if answers_several(ctx, run):
            totals = f"{table.totals(self.input)} WHERE {counts(run.last)}"
        sql = f"SELECT {in_stored_types(ctx, state.columns, run.last)} FROM {totals}"
        return Write(state.name, sql, state.columns, append=False, every_part=divided(ctx, self.input))

    def merge_files(self, ctx: Lowering, files: str, boundary: int, since: int) -> str:
        raise never_merged(self.state(ctx))

    def stored_rows(self, expected: Expected) -> float:
        return expected.flow(self.input).set

    def work(self, expected: Expected, changed: float) -> Work:
        """`changed` rows are looked at twice, once for what came and once for what left.

        Every task reads the whole set. Where statements answer several boundaries, each adds the sums of the groups
        that change, which are summed up.
        """
        ctx, groups = expected.ctx, expected.flow(self.input).set
        width = expected.width(self.input) - len(extremes(ctx, self.input))
        before, share = (0.0 if expected.from_nothing else groups), expected.shares[self.input]
        files = 0 if expected.from_nothing else ctx.parts if by_key(ctx) else 1
        total = groups * share
        once, again = changed + before * share, 0.0
        if ctx.together > 1:
            total = again = min(changed, total)
            once = changed
        yield set_node(ctx, self.input), {
            "look": 2 * changed,
            "group": (once + again) * width,
            "made": total * width,
            "keep": total * width,
            "state_read": before * width,
            "state_write": groups * share * width,
            "files": files,
            "statements": 2,
        }


@dataclass(frozen=True)
class Extremes:
    """MIN and MAX of each group and pane: every batch adds a file; merged files lose what can no longer matter."""

    input: int

    def state(self, ctx: Lowering) -> StateSet:
        keys = tuple((attribute.name, attribute.expr.type) for attribute in ctx.shape.attributes[self.input])
        measures = tuple((measure.name, measure.type) for measure in extremes(ctx, self.input))
        return StateSet("extremes", self.input, keys + measures + INTERVAL)

    def source(self, ctx: Lowering) -> Source:
        state = self.state(ctx)
        return Source(table.kept(state.name), "state", state.name, columns=state.columns)

    def setup(self, ctx: Lowering, run: Run) -> tuple[Definition, ...]:
        """Those of what came, and with them those in state."""
        i, keys = self.input, ", ".join([*key_names(ctx, self.input), "_in", "_out"])
        state = self.state(ctx)
        new, kept = table.new(state.name), table.kept(state.name)
        came_sql = (f"SELECT {keys}, {', '.join(self._merged(ctx))} FROM {table.changes(i)} "
                    f"WHERE _known > {run.previous} AND _in <= _out GROUP BY {keys}")
        columns = ", ".join(name for name, _ in state.columns)
        older = ("" if run.from_nothing else f" UNION ALL SELECT {columns} FROM {kept} WHERE _out >= "
                                             f"{run.previous}{own_keys(ctx, i)}")
        return (Definition(new, came_sql, is_table=True),
                Definition(table.extremes(i), f"SELECT {columns} FROM {new}{older}", is_table=False))

    def write(self, ctx: Lowering, run: Run) -> Write:
        state = self.state(ctx)
        rows = f"{table.new(state.name)} WHERE _out >= {run.last}"
        if run.from_nothing:      # these are of a whole window, and most of them can never matter
            whole = f"(SELECT * FROM {rows}) AS whole"
            cuts = self._cuts(ctx, run.last, BEGINNING)
            rows = f"({self._that_can_matter(ctx, whole, f'_in <= {run.last}', cuts)}) AS pruned"
        return append(ctx, state, rows, run.last)

    def merge_files(self, ctx: Lowering, files: str, boundary: int, since: int) -> str:
        state, keys = self.state(ctx), ", ".join([*key_names(ctx, self.input), "_in", "_out"])
        cuts = self._cuts(ctx, boundary, since)
        rows = self._that_can_matter(ctx, live_rows(state, files, boundary), "_in = 0", cuts)
        if not self._leave_one_by_one(ctx):
            rows = f"SELECT {keys}, {', '.join(self._merged(ctx))} FROM ({rows}) AS those GROUP BY {keys}"
        return merged_file(ctx, state, rows)

    def stored_rows(self, expected: Expected) -> float:
        """Of an average boundary: one merged file holds what can still matter, the files after it whole panes.

        A short window holds all rows of its panes: its files leave before there are enough of them to be merged.
        """
        flow, measures = expected.flow(self.input), len(extremes(expected.ctx, self.input))
        if flow.panes <= PRUNED or flow.set <= 0:
            return flow.by_pane
        files = min(PRUNED / 2, expected.age)
        return min(flow.by_pane, self._in_merged_file(expected, measures) + files * flow.pane)

    def work(self, expected: Expected, changed: float) -> Work:
        ctx, flow = expected.ctx, expected.flow(self.input)
        passing = flow.came + flow.left
        arrived = changed * flow.came / passing if passing and not expected.from_nothing else changed
        width = len(self.state(ctx).columns)
        share = expected.shares[self.input] * width
        new_values = (flow.by_pane if expected.from_nothing else flow.pane) * share
        written = new_values
        if expected.from_nothing:
            written = self._in_merged_file(expected, len(extremes(ctx, self.input))) * share
        yield set_node(ctx, self.input), {
            "look": arrived,
            "group": arrived * width,
            "made": new_values,
            "keep": new_values,
            "state_read": 0.0 if expected.from_nothing else self.stored_rows(expected) * width,
            "state_write": written,
            "files": 0.0 if expected.from_nothing else expected.files(flow.panes, PRUNED),
            "statements": 2,
        }

    def _in_merged_file(self, expected: Expected, measures: int) -> float:
        """Rows of a whole window that can still matter."""
        flow = expected.flow(self.input)
        if flow.set <= 0:
            return 0.0
        panes = flow.by_pane / flow.set
        if not self._leave_one_by_one(expected.ctx):
            panes = min(panes, self._ends(expected.ctx))
        return flow.set * panes_that_can_matter(panes, measures)

    def _merged(self, ctx: Lowering) -> list[str]:
        return [f"{measure.kind}({measure.name}) AS {measure.name}" for measure in extremes(ctx, self.input)]

    def _leave_one_by_one(self, ctx: Lowering) -> bool:
        """Whether what came at each boundary leaves at another: then files have a pane each, and nothing to merge but
        the few rows that came late."""
        window = ctx.window(self.input)
        return window is not None and window.kind == "sliding"

    def _ends(self, ctx: Lowering) -> int:
        """Different `_out` of what a window holds."""
        window = ctx.window(self.input)
        assert window is not None
        if window.kind in ("landmark", "tumbling"):      # all leave together
            return 1
        return max(window.range // self._step(ctx), 1)

    def _step(self, ctx: Lowering) -> int:
        """Between one `_out` and the next."""
        window, every = ctx.window(self.input), ctx.shape.query.every
        return window.slide if window is not None and window.kind == "hopping" else every

    def _cuts(self, ctx: Lowering, boundary: int, since: int) -> tuple[int, ...]:
        """Values of `_out` after which 1, 2, 4 … of the newest ends come, and all ends later than `since`."""
        window, step, most = ctx.window(self.input), self._step(ctx), self._ends(ctx)
        assert window is not None
        if most == 1:
            return ()
        newest = boundary + window.range - step
        ends = min(most, max((newest - since) // step, 1))
        counts_of_ends = [2 ** n for n in range((ends - 1).bit_length())]
        return tuple(newest - n * step for n in (*counts_of_ends, ends))

    def _that_can_matter(self, ctx: Lowering, rows: str, counts_already: str, cuts: tuple[int, ...]) -> str:
        """`rows`, an item of FROM, with every extreme that another one beats set to NULL; rows with nothing left are
        dropped.

        A beats B if A is at least as extreme, is in the window already, and stays longer: then B can never be the
        window's extreme. Of n panes of random values about ln n stay, so the state hardly grows with the window.

        B is held against the extreme of all that stay longer than the next of `cuts`: a GROUP BY and a join, a quarter
        of what a window function over each group's panes takes. What comes between B and that cut is missed: some rows
        more stay until a merge has other cuts.
        """
        if not cuts:
            return f"SELECT * FROM {rows}"
        measures, keys = extremes(ctx, self.input), key_names(ctx, self.input)
        newest = ", ".join([*keys, *(f"{m.kind}({m.name}) FILTER (WHERE _out > {cut}) AS {m.name}_{n}"
                                     for m in measures for n, cut in enumerate(cuts))])
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        newer = f"(SELECT {newest} FROM {rows} WHERE _out > {cuts[-1]} AND {counts_already}{by}) AS newer"
        values = []
        for m in measures:
            of_longer = " ".join(f"WHEN _out <= {cut} THEN {m.name}_{n}" for n, cut in reversed([*enumerate(cuts)]))
            beaten = f"{m.name} {'>=' if m.kind == 'min' else '<='} CASE {of_longer} END"
            values.append(f"CASE WHEN COALESCE({beaten}, FALSE) THEN NULL ELSE {m.name} END AS {m.name}")
        own = [f"those.{key} AS {key}" for key in keys]
        same = " AND ".join(f"those.{key} IS NOT DISTINCT FROM newer.{key}" for key in keys) or "TRUE"
        something = " OR ".join(f"{m.name} IS NOT NULL" for m in measures)
        rest = (f"SELECT {', '.join([*own, '_in', '_out', *values])} FROM (SELECT * FROM {rows}) AS those "
                f"LEFT JOIN {newer} ON {same}")
        return f"SELECT * FROM ({rest}) AS left_over WHERE {something}"


def key_names(ctx: Lowering, i: int) -> list[str]:
    return [attribute.name for attribute in ctx.shape.attributes[i]]


def sum_names(ctx: Lowering, i: int) -> list[str]:
    """Columns of a set that can be added and subtracted."""
    return names(ctx, i, extremes_too=False)[len(ctx.shape.attributes[i]):]


def panes_that_can_matter(panes: float, measures: int) -> float:
    """How many of a group's panes hold an extreme that no newer pane beats, for values in random order.

    The j-th newest pane is the most extreme of these j with chance 1/j, for each measure: 1 + 1/2 + … + 1/n ≈ ln n.
    """
    rows = sum(1 - (1 - 1 / age) ** measures for age in range(1, min(int(panes), EXACT_PANES) + 1))
    if panes > EXACT_PANES:
        rows += measures * log(panes / EXACT_PANES)      # so old a pane hardly ever matters for two measures
    return max(rows, min(panes, 1.0))
