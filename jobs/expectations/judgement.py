"""Answers held against what every sound one fulfils and against what is declared of them, before anything is written;
Arrow tables, or files.

Queries that share a work are judged together, a pass over all their rows for each expectation; what fails is said of
the query whose row it is.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from expectations import derived
from expectations.derived import CONSERVED, COUNTS, MONOTONE, UNIQUE, Measured
from expectations.expectation import Expectation
from jobs.batch.batch import Answer
from jobs.batch.shared import Shared
from jobs.batch.works import Context
from jobs.engine import kernel
from jobs.expectations import statements as expect_sql
from jobs.expectations.findings import Finding
from jobs.ledger.entries import Batch
from jobs.storage import places
from optimizer.query.model import Query
from optimizer.query.shape import measure_of, shape
from optimizer.sharing.expand import CLASS
from optimizer.sharing.group import OWNER

TOLERANCE = 1e-9         # of Σ|x|: sums are compared as doubles


def findings(context: Context, batch: Batch, answer: Answer, asked: Sequence[Expectation],
             sensitive: Mapping[str, frozenset[str]]) -> list[Finding]:
    """What fails of one query's answer; of one that failed itself nothing is asked beyond what it published before."""
    due = tuple(t for t in answer.work.due if answer.failed is None or t < answer.failed[0])
    if not due:
        return []
    hidden = derived.revealing(answer.work.query, sensitive)
    return [*_derived(batch, answer, due, hidden), *(_declared(context, answer, due, asked, hidden) if asked else [])]


def of_shared(batch: Batch, made: Shared, sensitive: Mapping[str, frozenset[str]]) -> list[Finding]:
    """What fails of the answers of queries that shared a work."""
    found = list[Finding]()
    for one in made.answers:
        template, rows, due = one.template, one.rows, one.due
        members, hidden = dict(template.members), derived.revealing(template.query, sensitive)
        again = [(MONOTONE, n, due[0], f"a row of {due[0]}")
                 for n in members
                 if n in batch.states and due[0] <= batch.states[n].as_of]
        sums = _lost(template.query, rows, one.partials, one.repeats, due, members, hidden)
        broken = [
            *again, *_undue(rows, due), *_repeated(rows, template.query, (OWNER,)),
            *_negative(rows, template.query, (OWNER,)), *sums
        ]
        found += _said(template.query, broken)
    return found


Found = tuple[str, str, int, str]       # expectation, query, boundary, what was observed


def _derived(batch: Batch, answer: Answer, due: tuple[int, ...], hidden: frozenset[str]) -> list[Finding]:
    query, rows, name = answer.work.query, answer.rows, answer.work.name
    before = batch.states[name].as_of if name in batch.states else -1
    broken = _strange_boundary(answer, due, before)
    found = [(MONOTONE, name, due[0] if broken is None else broken, f"a row of {broken}")] if broken is not None else []
    if rows is not None and rows.num_rows:
        sums = _lost(query, rows, answer.partials, answer.repeats, due, {name: None}, hidden)
        found += [*_repeated(rows, query, (), name), *_negative(rows, query, (), name), *sums]
    return _said(query, found)


def _said(query: Query, found: Sequence[Found]) -> list[Finding]:
    texts = {d.name: d.text for d in derived.of_query(query)} if found else {}
    return [
        Finding(t, f"query {owner}", f"{name}({texts[name]})", observed, "critical")
        for name, owner, t, observed in found
    ]


def _strange_boundary(answer: Answer, due: tuple[int, ...], before: int) -> int | None:
    """A boundary that an answer has and should not have."""
    if due[0] <= before:
        return due[0]
    if answer.rows is not None:
        there = pc.unique(answer.rows["boundary"].cast(pa.int64())).to_pylist() if answer.rows.num_rows else []
    else:
        there = [b for f in answer.files for b in (f.low.get("boundary", due[0]), f.high.get("boundary", due[-1]))]
    return next((b for b in there if b not in due), None)


def _undue(rows: pa.Table, due: tuple[int, ...]) -> Iterator[Found]:
    at = rows["boundary"].cast(pa.int64())
    for owner, part in _by_owner(rows.filter(pc.invert(pc.is_in(at, pa.array(due, pa.int64())))), (OWNER,)):
        broken = pc.min(part["boundary"].cast(pa.int64())).as_py()
        yield MONOTONE, owner, broken, f"a row of {broken}"


def _repeated(rows: pa.Table, query: Query, by: tuple[str, ...], name: str = "") -> Iterator[Found]:
    """`by` is the column that says whose row it is, where they are not all of the query of that name."""
    keys = derived.group_outputs(query)
    if keys is None:
        return
    groups = rows.group_by([*by, "boundary", *keys], use_threads=False).aggregate([([], "count_all")])
    if groups.num_rows < rows.num_rows:
        for owner, again in _by_owner(groups.filter(pc.greater(groups["count_all"], 1)), by, name):
            repeats = pc.sum(again["count_all"]).as_py() - again.num_rows
            yield UNIQUE, owner, pc.min(again["boundary"].cast(pa.int64())).as_py(), f"{repeats} rows repeat others"


def _negative(rows: pa.Table, query: Query, by: tuple[str, ...], name: str = "") -> Iterator[Found]:
    for column in derived.counts(query):
        least = pc.min(rows[column]).as_py()
        if least is not None and least < 0:
            for owner, below in _by_owner(rows.filter(pc.less(rows[column], 0)), by, name):
                yield COUNTS, owner, pc.min(below["boundary"].cast(
                    pa.int64())).as_py(), f"{column} is {pc.min(below[column]).as_py()}"


def _by_owner(rows: pa.Table, by: tuple[str, ...], name: str = "") -> Iterable[tuple[str, pa.Table]]:
    if not by:
        return [(name, rows)]
    return [(owner, rows.filter(pc.equal(rows[by[0]], owner))) for owner in pc.unique(rows[by[0]]).to_pylist()]


def _lost(query: Query, rows: pa.Table, partials: pa.Table | None, repeats: Iterable[tuple[int, int]],
          due: tuple[int, ...], members: Mapping[str, int | None], hidden: frozenset[str]) -> Iterator[Found]:
    """Sums over the groups beside those over the partials that the join made: what was merged away or counted twice
    shows here.

    `members` are the queries, each with its class of partials; None: it is alone, and all are its own."""
    summed = derived.conserved(query)
    if not summed or partials is None or shape(query).whole:
        return
    alone, none = None in members.values(), _NONE * len(summed)
    made = _totals(partials, [*([] if alone else [CLASS]), "_t"], [_measure(query, m) for m in summed])
    said = _totals(rows, [*([] if alone else [OWNER]), "boundary"], [m.output for m in summed])
    for t, of in ((t, of) for t, of in repeats if t in due):
        for name, number in members.items():
            pairs = zip(made.get((of,) if alone else (number, of), none), said.get((t,) if alone else (name, t), none))
            for measured, ((want, much), (got, also)) in zip(summed, pairs):
                if abs(want - got) > TOLERANCE * max(much, also):
                    numbers = (expect_sql.HIDDEN if measured.output in hidden else f"{got:g} over the groups, {want:g} "
                                                                                   "over the join")
                    yield CONSERVED, name, t, f"{measured.output}: {numbers}"


_NONE = ((0.0, 0.0),)


def _measure(query: Query, measured: Measured) -> str:
    aggregate = query.aggregates[measured.aggregate]
    return "c" if aggregate.argument is None else measure_of(shape(query), aggregate, measured.function).name


def _totals(rows: pa.Table, by: Sequence[str],
            columns: Sequence[str]) -> dict[tuple[Any, ...], tuple[tuple[float, float], ...]]:
    """By these columns, the last of which is a boundary, of each of the others: Σx and Σ|x|."""
    # beyond 2^53 rounded, which the tolerance covers
    values = [pc.fill_null(rows[c].cast(pa.float64(), safe=False), 0.0) for c in columns]
    names = [f"{kind}{k}" for k in range(len(columns)) for kind in ("x", "a")]
    keys = [f"k{n}" for n in range(len(by))]
    wide = pa.table(
        [*(rows[c] for c in by[:-1]), rows[by[-1]].cast(pa.int64()), *(v for x in values for v in (x, pc.abs(x)))],
        names=[*keys, *names])
    totals = wide.group_by(keys, use_threads=False).aggregate([(n, "sum") for n in names]).to_pydict()
    return {key: tuple((totals[f"x{k}_sum"][i], totals[f"a{k}_sum"][i]) for k in range(len(columns)))
            for i, key in enumerate(zip(*(totals[k] for k in keys)))}


def _declared(context: Context, answer: Answer, due: tuple[int, ...], asked: Sequence[Expectation],
              hidden: frozenset[str]) -> list[Finding]:
    con = kernel.shared()
    try:
        if answer.rows is not None:
            con.register("answered", answer.rows)
        paths = tuple(places.join(context.warehouse, answer.work.query_state.table, f.path) for f in answer.files)
        source = f"read_parquet({kernel.files(con, paths)})" if paths else None
        source = "answered" if answer.rows is not None else source
        return expect_sql.judge(con, f"query {answer.work.name}", source, "boundary", due, asked, hidden)
    finally:
        con.close()
