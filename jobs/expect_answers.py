"""Answers held against what every sound one fulfils and against what is declared of them, before anything is written; Arrow tables, or files."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from expectations import derived
from expectations.derived import CONSERVED, COUNTS, MONOTONE, UNIQUE, Measured
from expectations.expectation import Expectation
from jobs import expect_sql, kernel, places
from jobs.batch import Answer
from jobs.expect_ledger import Finding
from jobs.ledger import Batch
from jobs.works import Context
from optimizer.query import Query
from optimizer.shape import measure_of, shape

TOLERANCE = 1e-9         # of Σ|x|: sums are compared as doubles


def findings(context: Context, batch: Batch, answer: Answer, asked: Sequence[Expectation], sensitive: Mapping[str, frozenset[str]]) -> list[Finding]:
    """What fails of one query's answer; of one that failed itself nothing is asked beyond what it published before."""
    due = tuple(t for t in answer.work.due if answer.failed is None or t < answer.failed[0])
    if not due:
        return []
    hidden = derived.revealing(answer.work.query, sensitive)
    return [*_derived(batch, answer, due, hidden), *(_declared(context, answer, due, asked, hidden) if asked else [])]


def _derived(batch: Batch, answer: Answer, due: tuple[int, ...], hidden: frozenset[str]) -> list[Finding]:
    query, rows = answer.work.query, answer.rows
    before = batch.states[answer.work.name].at if answer.work.name in batch.states else -1
    broken = _strange_boundary(answer, due, before)
    found = [(MONOTONE, due[0] if broken is None else broken, f"a row of {broken}")] if broken is not None else []
    if rows is not None and rows.num_rows:
        found += [*_repeated(rows, query, due), *_negative(rows, query, due), *_lost(answer, query, due, hidden)]
    texts = {d.name: d.text for d in derived.of_query(query)} if found else {}
    return [Finding(t, f"query {answer.work.name}", f"{name}({texts[name]})", observed, "critical") for name, t, observed in found]


Found = tuple[str, int, str]


def _strange_boundary(answer: Answer, due: tuple[int, ...], before: int) -> int | None:
    """A boundary that an answer has and should not have."""
    if due[0] <= before:
        return due[0]
    if answer.rows is not None:
        there = pc.unique(answer.rows["boundary"].cast(pa.int64())).to_pylist() if answer.rows.num_rows else []
    else:
        there = [b for f in answer.files for b in (f.low.get("boundary", due[0]), f.high.get("boundary", due[-1]))]
    return next((b for b in there if b not in due), None)


def _repeated(rows: pa.Table, query: Query, due: tuple[int, ...]) -> Iterator[Found]:
    keys = derived.group_outputs(query)
    if keys is None:
        return
    groups = rows.group_by(["boundary", *keys], use_threads=False).aggregate([([], "count_all")])
    if groups.num_rows < rows.num_rows:
        again = groups.filter(pc.greater(groups["count_all"], 1))
        yield UNIQUE, pc.min(again["boundary"].cast(pa.int64())).as_py(), f"{rows.num_rows - groups.num_rows} rows repeat others"


def _negative(rows: pa.Table, query: Query, due: tuple[int, ...]) -> Iterator[Found]:
    for name in derived.counts(query):
        least = pc.min(rows[name]).as_py()
        if least is not None and least < 0:
            below = rows.filter(pc.less(rows[name], 0))
            yield COUNTS, pc.min(below["boundary"].cast(pa.int64())).as_py(), f"{name} is {least}"


def _lost(answer: Answer, query: Query, due: tuple[int, ...], hidden: frozenset[str]) -> Iterator[Found]:
    """Sums over the groups beside those over the partials that the join made: what was merged away or counted twice shows here."""
    summed = derived.conserved(query)
    if not summed or answer.partials is None or shape(query).whole:
        return
    assert answer.rows is not None
    columns = [_measure(query, m) for m in summed]
    made, said = _totals(answer.partials, "_t", columns), _totals(answer.rows, "boundary", [m.output for m in summed])
    for t, of in answer.repeats:
        for k, measured in enumerate(summed):
            (want, much), (got, also) = made.get(of, _NONE * len(summed))[k], said.get(t, _NONE * len(summed))[k]
            if t in due and abs(want - got) > TOLERANCE * max(much, also):
                numbers = expect_sql.HIDDEN if measured.output in hidden else f"{got:g} over the groups, {want:g} over the join"
                yield CONSERVED, t, f"{measured.output}: {numbers}"


_NONE = ((0.0, 0.0),)


def _measure(query: Query, measured: Measured) -> str:
    aggregate = query.aggregates[measured.aggregate]
    return "c" if aggregate.argument is None else measure_of(shape(query), aggregate, measured.function).name


def _totals(rows: pa.Table, boundary: str, columns: Sequence[str]) -> dict[int, tuple[tuple[float, float], ...]]:
    """By boundary, of each column: Σx and Σ|x|."""
    values = [pc.fill_null(rows[c].cast(pa.float64()), 0.0) for c in columns]
    names = [f"{kind}{k}" for k in range(len(columns)) for kind in ("x", "a")]
    wide = pa.table([rows[boundary].cast(pa.int64()), *(v for x in values for v in (x, pc.abs(x)))], names=["t", *names])
    totals = wide.group_by("t", use_threads=False).aggregate([(n, "sum") for n in names]).to_pydict()
    return {t: tuple((totals[f"x{k}_sum"][i], totals[f"a{k}_sum"][i]) for k in range(len(columns))) for i, t in enumerate(totals["t"])}


def _declared(context: Context, answer: Answer, due: tuple[int, ...], asked: Sequence[Expectation], hidden: frozenset[str]) -> list[Finding]:
    con = kernel.shared()
    try:
        if answer.rows is not None:
            con.register("answered", answer.rows)
        paths = tuple(places.join(context.warehouse, answer.work.standing.table, f.path) for f in answer.files)
        source = "answered" if answer.rows is not None else f"read_parquet({kernel.files(con, paths)})" if paths else None
        return expect_sql.judge(con, f"query {answer.work.name}", source, "boundary", due, asked, hidden)
    finally:
        con.close()
