"""Expectations of a batch: its waiting input is judged before it begins, its answers before they are written; a
critical one that fails stops it there.

Boundaries before the one that is stopped are published, nothing from it on, and a rerun stops again until somebody
releases it. What failed is entered after the commit.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from expectations import derived
from expectations.expectation import Expectation
from expectations.great import GreatExpectation
from jobs.batch.batch import Answer
from jobs.batch.shared import Shared
from jobs.batch.works import context_of, parsed
from jobs.expectations import by_great
from jobs.expectations import findings as expect_ledger
from jobs.expectations import judgement as expect_answers
from jobs.expectations import releases
from jobs.expectations import statements as expect_sql
from jobs.expectations.findings import Finding
from jobs.ledger.entries import Batch
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryState, queries_at
from jobs.pipeline import declared as expect_files
from jobs.pipeline.declared import DeclaredExpectations
from jobs.pipeline.suites import custom_files
from jobs.requests.boundaries import Arrivals, read_streams
from jobs.storage import tables
from jobs.storage.tables import File
from optimizer.errors import ForebayError, failed
from optimizer.expression.types import Type
from optimizer.time import iso

STOPPED = "expectation-failed"
MOST_SAID = 3            # findings that an error spells out


class StoppedLater(Exception):
    """An answer is stopped at a boundary after a batch's first: those before it can be published."""

    def __init__(self, boundary: int) -> None:
        super().__init__(f"stopped at {boundary}")
        self.boundary = boundary


class Gate:
    """Judges the input and the answers of the boundaries at hand; remembers its findings until their commit.

    `Gate(pipe, DeclaredExpectations(pipe.pipeline), arrivals).admitted((60, 120))` is `(60,)` where 120 must not run.
    """

    def __init__(self, pipe: OpenPipeline, declared: DeclaredExpectations, arrivals: Arrivals) -> None:
        self.pipe = pipe
        self.declared = declared
        self.arrivals = arrivals
        self._findings: list[Finding] = []      # to be entered after the commit

    def begin(self) -> None:
        """Reads what is declared, before anything changes."""
        self.declared.read()
        self._findings = []

    def check(self) -> None:
        """Refuses what is declared about queries that do not exist, or columns that they do not have."""
        queries = queries_at(self.pipe.ledger.all_changes()) if self.declared.given or self.declared.suites else {}
        for given in self.declared.given:
            if given.subject == expect_files.QUERY:
                if given.name not in queries:
                    raise expect_files.unknown(given, queries)
                if queries[given.name].is_active:
                    expect_files.checked(given, self._columns(queries[given.name]))
        for suite in self.declared.suites:
            if suite.subject == expect_files.QUERY:
                if suite.of not in queries:
                    raise expect_files.unknown_of_suite(suite, queries)
                if queries[suite.of].is_active:
                    self.declared.suite_of_query(suite.of, self._columns(queries[suite.of]))

    def _columns(self, query_state: QueryState) -> dict[str, Type]:
        return dict(parsed(query_state.sql, self.pipe.catalog).columns)

    def admitted(self, group: tuple[int, ...]) -> tuple[int, ...]:
        """The boundaries whose input may be run: all, or those before the first that a critical expectation stops.

        It raises where that is the first of all.
        """
        findings = self.waiting(group)
        stops = _stopping(self.pipe, findings)
        first = min((f.boundary for f in stops), default=None)
        if first == group[0]:
            raise _stop(self.pipe, [f for f in stops if f.boundary == first])
        boundaries = tuple(t for t in group if first is None or t < first)
        self._findings = _with_releases(f for f in findings if f.boundary in boundaries)
        return boundaries

    def waiting(self, group: tuple[int, ...]) -> list[Finding]:
        """What fails of the input of these boundaries."""
        streams = sorted(read_streams(self.pipe, group[0]))
        stored = [stream for stream in streams if tables.exists(self.pipe.path("streams", stream))]
        return [finding for stream in stored for finding in self._findings_of_input(stream, group)]

    def answered(self, batch: Batch, answers: Iterable[Answer], groups: Iterable[Shared] = (),
                 as_a_whole: bool = False) -> None:
        """Stops the batch if an answer fails what is critical: by StoppedLater where boundaries before it do not, and
        the batch need not be committed `as_a_whole`.
        """
        context, hidden = context_of(self.pipe), self.pipe.pipeline.sensitive
        findings = []
        for answer in answers:
            expected: tuple[Expectation | GreatExpectation, ...] = ()
            if answer.work.name in self.declared.queries:
                columns = dict(answer.work.query.columns)
                expected = (*self.declared.of_query(answer.work.name, columns),
                            *self.declared.suite_of_query(answer.work.name, columns))
                self._load_classes(expected)
            findings += expect_answers.findings(context, batch, answer, expected, hidden)
        for shared in groups:
            findings += expect_answers.of_shared(batch, shared, hidden)
        stops = _stopping(self.pipe, findings)
        if stops:
            first = min(finding.boundary for finding in stops)
            if first > batch.boundaries[0] and not as_a_whole:
                raise StoppedLater(first)
            raise _stop(self.pipe, stops)
        of_input = [finding for finding in self._findings if finding.boundary in batch.boundaries]
        self._findings = [*of_input, *_with_releases(findings)]

    def enter(self) -> list[Finding]:
        """After the commit: what failed and did not stop it."""
        findings, self._findings = self._findings, []
        expect_ledger.enter(self.pipe, findings)
        return findings

    def _findings_of_input(self, stream: str, group: tuple[int, ...]) -> list[Finding]:
        table, batch = self.pipe.table(f"streams/{stream}"), self.pipe.pipeline.batch
        expected: list[Expectation | GreatExpectation] = []
        if self.declared.given or self.declared.suites:
            expected += [e for e in self.declared.of_stream(stream) if e.severity != "row"]
            expected += self.declared.suite_of_stream(stream)
            self._load_classes(expected)
        findings = _unusual(table.files(), batch, group, stream) + self._silent(stream, group)
        if expected and table.features:
            features = ", ".join(sorted(table.features))
            raise failed("unreadable-input",
                         f"expectations of stream {stream} cannot be judged: its table has {features}",
                         "rewrite the table without these features, or take the expectations out")
        declared = self.pipe.pipeline.streams[stream]
        return findings + (expect_sql.of_input(table, declared, group, batch, expected) if expected else [])

    def _load_classes(self, expected: Iterable[Expectation | GreatExpectation]) -> None:
        """Runs the operator's files of custom classes, if Great Expectations has to judge at all."""
        if any(not by_great.is_sql(e) for e in expected):
            by_great.load(custom_files(self.declared.folder))

    def _silent(self, stream: str, group: tuple[int, ...]) -> list[Finding]:
        """The boundaries at which the newest row is too old."""
        declared, newest = self.pipe.pipeline.streams[stream], self.arrivals.newest(stream)
        limit = derived.fresh_until(declared.lateness, declared.idle, self.pipe.pipeline.batch)
        if newest is None or newest >= group[-1] - limit:
            return []
        expectation = f"{derived.FRESH}(within {limit / 10**6:g} s)"
        observed = f"the newest row is of {iso(newest)}"
        return [Finding(t, f"stream {stream}", expectation, observed, "warning") for t in group if newest < t - limit]


def _unusual(files: Iterable[File], batch: int, group: tuple[int, ...], stream: str) -> list[Finding]:
    """Volumes beside those of the boundaries before, as far as the files' own counts tell."""
    counts = volumes(files, batch, group[0] - derived.HISTORY * batch, group[-1])
    findings = []
    for t in group:
        before = [rows for k in range(derived.HISTORY, 0, -1) if (rows := counts.get(t - k * batch)) is not None]
        usual, now = derived.usual(before), counts.get(t)
        if usual is not None and now is not None and not usual[0] <= now <= usual[1]:
            expectation = f"{derived.VOLUME}({usual[0]} to {usual[1]} rows)"
            findings.append(Finding(t, f"stream {stream}", expectation, f"{now} rows", "warning"))
    return findings


def volumes(files: Iterable[File], batch: int, first: int, last: int) -> dict[int, int | None]:
    """Rows by boundary.

    None where a file of several boundaries leaves it open, and nothing before the stream's first row.
    """
    with_bounds = [file for file in files if "_boundary" in file.low and "_boundary" in file.high]
    spans = [(file.low["_boundary"], file.high["_boundary"], file.rows) for file in with_bounds]
    if not spans:
        return {}
    begin = max(first, -(-min(low for low, _, _ in spans) // batch) * batch)
    counts: dict[int, int | None] = dict.fromkeys(range(begin, last + 1, batch), 0)
    for low, high, rows in spans:
        for t in range(max(-(-low // batch) * batch, begin), min(high, last) + 1, batch):
            before = counts[t]
            counts[t] = before + rows if low == high and before is not None else None
    return counts


def _stopping(pipe: OpenPipeline, findings: list[Finding]) -> list[Finding]:
    critical = [finding for finding in findings if finding.severity == "critical"]
    passed = releases.released(pipe) if critical else releases.Releases()
    return [finding for finding in critical if finding.key not in passed]


def _with_releases(findings: Iterable[Finding]) -> list[Finding]:
    """The findings of what may run: a critical one among them was released."""
    return [replace(finding, released=finding.severity == "critical") for finding in findings]


def _stop(pipe: OpenPipeline, stops: list[Finding]) -> ForebayError:
    """Enters the findings, once, however often the batch is tried; gives the error that names the first ones."""
    boundaries = {finding.boundary for finding in stops}
    entered = {expect_ledger.key(row) for row in expect_ledger.stops(pipe, boundaries)}
    expect_ledger.enter(pipe, [finding for finding in stops if finding.key not in entered])
    first = min(boundaries)
    spelled_out = [finding for finding in stops if finding.boundary == first][:MOST_SAID]
    texts = [f"{f.subject} expects {f.expectation}, observed: {f.observed}" for f in spelled_out]
    more = f" (and {len(stops) - len(texts)} more)" if len(stops) > len(texts) else ""
    at = iso(first)
    return failed(STOPPED, f"boundary {at} is stopped: {'; '.join(texts)}{more}; nothing from it on is published",
                  f"mend what brought it about, or let it pass: forebay --pipeline {pipe.pipeline.folder} release {at} "
                  "--reason \"…\"")
