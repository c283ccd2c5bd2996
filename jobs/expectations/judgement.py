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
from expectations.derived import CONSERVED, COUNTS, MONOTONE, UNIQUE
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


def findings(context: Context, batch: Batch, answer: Answer, expectations: Sequence[Expectation],
             sensitive: Mapping[str, frozenset[str]]) -> list[Finding]:
    """What fails of one query's answer; a query that failed is judged only at the boundaries before."""
    due = tuple(t for t in answer.work.due if answer.failed is None or t < answer.failed[0])
    if not due:
        return []
    hidden = derived.revealing(answer.work.query, sensitive)
    of_derived = _judge_derived(batch, answer, due, hidden)
    return of_derived + (_judge_declared(context, answer, due, expectations, hidden) if expectations else [])


def of_shared(batch: Batch, shared: Shared, sensitive: Mapping[str, frozenset[str]]) -> list[Finding]:
    """What fails of the answers of queries that shared a work."""
    of_all = list[Finding]()
    for answers in shared.answers:
        query, rows, due = answers.template.query, answers.rows, answers.due
        members, hidden = dict(answers.template.members), derived.revealing(query, sensitive)
        violations = [(MONOTONE, name, due[0], f"a row of {due[0]}") for name in members
                      if name in batch.states and due[0] <= batch.states[name].as_of]
        lost = list(_lost(query, rows, answers.partials, answers.repeats, due, members, hidden))
        is_due = pc.is_in(rows["boundary"].cast(pa.int64()), pa.array(due, pa.int64()))
        for owner, undue in _by_owner(rows.filter(pc.invert(is_due)), (OWNER,)):
            first = _first_boundary(undue)
            violations.append((MONOTONE, owner, first, f"a row of {first}"))
        violations += [*_repeated(rows, query, (OWNER,)), *_negative(rows, query, (OWNER,)), *lost]
        of_all += _as_findings(query, violations)
    return of_all


Violation = tuple[str, str, int, str]       # expectation, query, boundary, what was observed


def _judge_derived(batch: Batch, answer: Answer, due: tuple[int, ...], hidden: frozenset[str]) -> list[Finding]:
    query, rows, name = answer.work.query, answer.rows, answer.work.name
    before = batch.states[name].as_of if name in batch.states else -1
    strange = _strange_boundary(answer, due, before)
    violations = [] if strange is None else [(MONOTONE, name, strange, f"a row of {strange}")]
    if rows is not None and rows.num_rows:
        lost = _lost(query, rows, answer.partials, answer.repeats, due, {name: None}, hidden)
        violations += [*_repeated(rows, query, (), name), *_negative(rows, query, (), name), *lost]
    return _as_findings(query, violations)


def _as_findings(query: Query, violations: Sequence[Violation]) -> list[Finding]:
    texts = {expectation.name: expectation.text for expectation in derived.of_query(query)} if violations else {}
    return [Finding(t, f"query {owner}", f"{name}({texts[name]})", observed, "critical")
            for name, owner, t, observed in violations]


def _strange_boundary(answer: Answer, due: tuple[int, ...], before: int) -> int | None:
    """A boundary that an answer has and should not have."""
    if due[0] <= before:
        return due[0]
    boundaries = []
    if answer.rows is None:
        for file in answer.files:
            boundaries += [file.low.get("boundary", due[0]), file.high.get("boundary", due[-1])]
    elif answer.rows.num_rows:
        boundaries = pc.unique(answer.rows["boundary"].cast(pa.int64())).to_pylist()
    return next((t for t in boundaries if t not in due), None)


def _first_boundary(rows: pa.Table) -> int:
    return int(pc.min(rows["boundary"].cast(pa.int64())).as_py())


def _repeated(rows: pa.Table, query: Query, by: tuple[str, ...], name: str = "") -> Iterator[Violation]:
    """`by` is the column that says whose row it is, where they are not all of the query of that name."""
    keys = derived.group_outputs(query)
    if keys is None:
        return
    groups = rows.group_by([*by, "boundary", *keys], use_threads=False).aggregate([([], "count_all")])
    if groups.num_rows < rows.num_rows:
        for owner, repeated in _by_owner(groups.filter(pc.greater(groups["count_all"], 1)), by, name):
            repeats = pc.sum(repeated["count_all"]).as_py() - repeated.num_rows
            yield UNIQUE, owner, _first_boundary(repeated), f"{repeats} rows repeat others"


def _negative(rows: pa.Table, query: Query, by: tuple[str, ...], name: str = "") -> Iterator[Violation]:
    for column in derived.counts(query):
        least = pc.min(rows[column]).as_py()
        if least is not None and least < 0:
            for owner, negative in _by_owner(rows.filter(pc.less(rows[column], 0)), by, name):
                yield COUNTS, owner, _first_boundary(negative), f"{column} is {pc.min(negative[column]).as_py()}"


def _by_owner(rows: pa.Table, by: tuple[str, ...], name: str = "") -> Iterable[tuple[str, pa.Table]]:
    if not by:
        return [(name, rows)]
    return [(owner, rows.filter(pc.equal(rows[by[0]], owner))) for owner in pc.unique(rows[by[0]]).to_pylist()]


def _lost(query: Query, rows: pa.Table, partials: pa.Table | None, repeats: Iterable[tuple[int, int]],
          due: tuple[int, ...], members: Mapping[str, int | None], hidden: frozenset[str]) -> Iterator[Violation]:
    """Sums over the groups beside those over the partials that the join made: what was merged away or counted twice
    shows here.

    `members` are the queries, each with its class of partials; None: it is alone, and all partials are its."""
    summed = derived.conserved(query)
    if not summed or partials is None or shape(query).whole:
        return
    alone, no_rows = None in members.values(), ((0.0, 0.0),) * len(summed)
    measures = []      # the columns of the partials that hold what is measured
    for measured in summed:
        aggregate = query.aggregates[measured.aggregate]
        is_count = aggregate.argument is None
        measures.append("c" if is_count else measure_of(shape(query), aggregate, measured.function).name)
    by_class = _totals(partials, ["_t"] if alone else [CLASS, "_t"], measures)
    by_query = _totals(rows, ["boundary"] if alone else [OWNER, "boundary"], [measured.output for measured in summed])
    for t, computed in repeats:
        if t not in due:
            continue
        for name, number in members.items():
            of_join = by_class.get((computed,) if alone else (number, computed), no_rows)
            of_groups = by_query.get((t,) if alone else (name, t), no_rows)
            for measured, (joined, absolute_joined), (grouped, absolute_grouped) in zip(summed, of_join, of_groups):
                if abs(joined - grouped) > TOLERANCE * max(absolute_joined, absolute_grouped):
                    numbers = f"{grouped:g} over the groups, {joined:g} over the join"
                    shown = expect_sql.HIDDEN if measured.output in hidden else numbers
                    yield CONSERVED, name, t, f"{measured.output}: {shown}"


def _totals(rows: pa.Table, by: Sequence[str],
            columns: Sequence[str]) -> dict[tuple[Any, ...], tuple[tuple[float, float], ...]]:
    """By these columns, the last of which is a boundary, of each of the others: Σx and Σ|x|."""
    keys = {f"k{n}": rows[name] for n, name in enumerate(by[:-1])}
    keys[f"k{len(by) - 1}"] = rows[by[-1]].cast(pa.int64())
    values = {}
    for k, column in enumerate(columns):
        # beyond 2^53 rounded, which the tolerance covers
        values[f"x{k}"] = pc.fill_null(rows[column].cast(pa.float64(), safe=False), 0.0)
        values[f"a{k}"] = pc.abs(values[f"x{k}"])
    grouped = pa.table({**keys, **values}).group_by(list(keys), use_threads=False)
    totals = grouped.aggregate([(name, "sum") for name in values]).to_pydict()
    sums = [zip(totals[f"x{k}_sum"], totals[f"a{k}_sum"]) for k in range(len(columns))]
    return dict(zip(zip(*(totals[key] for key in keys)), zip(*sums)))


def _judge_declared(context: Context, answer: Answer, due: tuple[int, ...], expectations: Sequence[Expectation],
                    hidden: frozenset[str]) -> list[Finding]:
    con = kernel.shared()
    try:
        if answer.rows is not None:
            con.register("answered", answer.rows)
        paths = tuple(places.join(context.warehouse, answer.work.query_state.table, f.path) for f in answer.files)
        source = f"read_parquet({kernel.files(con, paths)})" if paths else None
        source = "answered" if answer.rows is not None else source
        return expect_sql.judge(con, f"query {answer.work.name}", source, "boundary", due, expectations, hidden)
    finally:
        con.close()
