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
from expectations.great import GreatExpectation
from jobs.batch.batch import Answer
from jobs.batch.large import LargeAnswer
from jobs.batch.shared import Shared
from jobs.batch.works import Context
from jobs.engine import kernel, memory
from jobs.engine.sums import Sums, sums
from jobs.expectations import by_great
from jobs.expectations import statements as expect_sql
from jobs.expectations.findings import Finding
from jobs.ledger.entries import Batch
from jobs.storage import places
from jobs.storage.tables import File
from optimizer.query.model import Query
from optimizer.sharing.expand import CLASS
from optimizer.sharing.group import OWNER

TOLERANCE = 1e-9         # of Σ|x|: sums are compared as doubles


def findings(context: Context, batch: Batch, answer: Answer, expectations: Sequence[Expectation | GreatExpectation],
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
        query, due = answers.template.query, answers.due
        members, hidden = dict(answers.template.members), derived.revealing(query, sensitive)
        violations = [(MONOTONE, name, due[0], f"a row of {due[0]}") for name in members
                      if name in batch.states and due[0] <= batch.states[name].as_of]
        if answers.large is not None and query.returns_rows:
            strange = _undue(answers.large.files, due)
            violations += [] if strange is None else [(MONOTONE, name, strange, f"a row of {strange}")
                                                      for name in members]
        elif answers.large is not None:
            violations += _of_large(query, answers.large, answers.repeats, due, members, hidden)
        elif answers.rows is not None:
            violations += _of_rows(query, answers.rows, answers.partials, answers.repeats, due, members, hidden)
        of_all += _as_findings(query, violations)
    return of_all


Violation = tuple[str, str, int, str]       # expectation, query, boundary, what was observed
# Queries, each with its class of partials; None: it is alone, and all partials are its.
Members = Mapping[str, int | None]


def _judge_derived(batch: Batch, answer: Answer, due: tuple[int, ...], hidden: frozenset[str]) -> list[Finding]:
    query, rows, name = answer.work.query, answer.rows, answer.work.name
    before = batch.states[name].as_of if name in batch.states else -1
    strange = _strange_boundary(answer, due, before)
    violations = [] if strange is None else [(MONOTONE, name, strange, f"a row of {strange}")]
    if answer.large is not None:
        violations += _of_large(query, answer.large, answer.repeats, due, {name: None}, hidden)
    elif rows is not None and rows.num_rows:
        lost = _lost(query, _sums_of_partials(query, answer.partials, False), _sums_of_rows(query, rows, False),
                     answer.repeats, due, {name: None}, hidden)
        violations += [*_repeated(rows, query, (), name), *_negative(rows, query, (), name), *lost]
    return _as_findings(query, violations)


def _of_rows(query: Query, rows: pa.Table, partials: pa.Table | None, repeats: Iterable[tuple[int, int]],
             due: tuple[int, ...], members: Members, hidden: frozenset[str]) -> Iterator[Violation]:
    """Of the rows of all members."""
    is_due = pc.is_in(rows["boundary"].cast(pa.int64()), pa.array(due, pa.int64()))
    for owner, undue in _by_owner(rows.filter(pc.invert(is_due)), (OWNER,)):
        first = _first_boundary(undue)
        yield MONOTONE, owner, first, f"a row of {first}"
    yield from _repeated(rows, query, (OWNER,))
    yield from _negative(rows, query, (OWNER,))
    yield from _lost(query, _sums_of_partials(query, partials, True), _sums_of_rows(query, rows, True), repeats, due,
                     members, hidden)


def _of_large(query: Query, answer: LargeAnswer, repeats: Iterable[tuple[int, int]], due: tuple[int, ...],
              members: Members, hidden: frozenset[str]) -> Iterator[Violation]:
    """By what the tasks tell of the rows that they have written."""
    told, alone = answer.figures, next((name for name, number in members.items() if number is None), "")
    first: dict[tuple[str, str], tuple[int, str]] = {}      # the first boundary at which a query fails an expectation

    def note(expectation: str, key: tuple[Any, ...], observed: str) -> None:
        owner, t = key if len(key) > 1 else (alone, key[0])
        if (expectation, owner) not in first or t < first[expectation, owner][0]:
            first[expectation, owner] = t, observed

    for key in told.rows:
        if not alone and key[-1] not in due:
            note(MONOTONE, key, f"a row of {key[-1]}")
    for key, count in told.repeated.items():
        note(UNIQUE, key, f"{count} rows repeat others")
    for key, values in told.least.items():
        for column, least in zip(derived.counts(query), values):
            if least is not None and least < 0:
                note(COUNTS, key, f"{column} is {least}")
    yield from ((name, owner, t, observed) for (name, owner), (t, observed) in first.items())
    place = [answer.summed.index(column) for column in derived.conserved_columns(query)]
    of_partials = {key: tuple(pairs[n] for n in place) for key, pairs in answer.handed_over.items()}
    yield from _lost(query, of_partials, told.sums, repeats, due, members, hidden)


def _as_findings(query: Query, violations: Sequence[Violation]) -> list[Finding]:
    texts = {expectation.name: expectation.text for expectation in derived.of_query(query)} if violations else {}
    return [Finding(t, f"query {owner}", f"{name}({texts[name]})", observed, "critical")
            for name, owner, t, observed in violations]


def _strange_boundary(answer: Answer, due: tuple[int, ...], before: int) -> int | None:
    """A boundary that an answer has and should not have."""
    if due[0] <= before:
        return due[0]
    boundaries: list[int] = []
    if answer.large is not None:
        boundaries = sorted(t for t, in answer.large.figures.rows)
    elif answer.rows is None:
        return _undue(answer.files, due)
    elif answer.rows.num_rows:
        boundaries = pc.unique(answer.rows["boundary"].cast(pa.int64())).to_pylist()
    return next((t for t in boundaries if t not in due), None)


def _undue(files: Iterable[File], due: tuple[int, ...]) -> int | None:
    """A boundary at which no answer is due, among the first and last ones of files."""
    bounds: list[int] = []
    for file in files:
        bounds += [file.low.get("boundary", due[0]), file.high.get("boundary", due[-1])]
    return next((t for t in bounds if t not in due), None)


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


def _sums_of_partials(query: Query, partials: pa.Table | None, is_shared: bool) -> Sums | None:
    """None where there is nothing to compare."""
    columns = derived.conserved_columns(query)
    return sums(partials, [CLASS, "_t"] if is_shared else ["_t"], columns) if columns and partials is not None else None


def _sums_of_rows(query: Query, rows: pa.Table, is_shared: bool) -> Sums:
    outputs = [measured.output for measured in derived.conserved(query)]
    return sums(rows, [OWNER, "boundary"] if is_shared else ["boundary"], outputs) if outputs else {}


def _lost(query: Query, by_class: Sums | None, by_query: Sums, repeats: Iterable[tuple[int, int]],
          due: tuple[int, ...], members: Members, hidden: frozenset[str]) -> Iterator[Violation]:
    """Sums over the groups beside those over the partials that the join made: what was merged away or counted twice
    shows here.
    """
    summed = derived.conserved(query)
    if by_class is None or not derived.conserved_columns(query):
        return
    alone, no_rows = None in members.values(), ((0.0, 0.0),) * len(summed)
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


def _judge_declared(context: Context, answer: Answer, due: tuple[int, ...],
                    expectations: Sequence[Expectation | GreatExpectation], hidden: frozenset[str]) -> list[Finding]:
    """Rows in files that are too many for the driver are judged by a task."""
    subject = f"query {answer.work.name}"
    if answer.rows is None:
        paths = tuple(places.join(context.warehouse, answer.work.query_state.address, f.path) for f in answer.files)
        order = expect_sql.FilesOrder(subject, paths, due, tuple(expectations), hidden)
        size = sum(file.size for file in answer.files)
        is_here = any(not by_great.is_sql(e) for e in expectations)      # where custom classes are loaded
        if is_here or answer.large is None and size <= memory.partials_of_driver(context.tasks.settings):
            return expect_sql.of_files(order)
        return context.tasks.map(expect_sql.of_files, [order])[0]
    con = kernel.shared()
    try:
        con.register("answered", answer.rows)
        return expect_sql.judge(con, subject, "answered", "boundary", due, expectations, hidden)
    finally:
        con.close()
