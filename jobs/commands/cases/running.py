"""Tests of a pipeline run: each in a temporary warehouse of its own, in this process, without Spark; what differs from
the answers that it expects.

The pipeline's own warehouse and sources are neither read nor written.
"""
from __future__ import annotations

import glob
import os
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.commands.cases import reading
from jobs.commands.cases.comparing import rows_of, shown, unmatched
from jobs.commands.cases.model import Difference, ExpectedAnswer, IngestStep, PipelineTest, Row, RunStep, TextRow
from jobs.commands.cases.reading import Subject
from jobs.ingest import register
from jobs.ledger.open_pipeline import open_pipeline
from jobs.pipeline.config import INLINE
from jobs.pipeline.model import Pipeline, Relation, Source, Spark, Stream
from jobs.requests import requests
from jobs.results import answers
from jobs.run import Loop
from optimizer.errors import ForebayError
from optimizer.plan.model import candidates
from optimizer.time import DAY, iso

MOST_SHOWN = 10                     # missing rows of an answer that are told, and as many that are too many
MOST_REASONS = 1_000                # why rows went to quarantine
# What every test takes for now (the year 2100): no row is ahead of it, and no stream falls silent by it.
NOW = 47_482 * DAY
OF_FILES = ("files", "json", "csv")      # kinds of a source that say how a file is read


def tested(pipeline: Pipeline, files: Sequence[str] = ()) -> dict[str, Any]:
    """Every test of these files, or of the pipeline's tests/*.yml, in INTERFACE's shape; instants in microseconds.

    All files are read before anything runs.
    """
    subject = reading.subject_of(pipeline)
    tests = [test for path in (files or reading.paths(pipeline)) for test in reading.read(path, subject)]
    with ThreadPoolExecutor(1) as beside:
        return {"tests": [_document(test, subject, beside) for test in tests]}


@contextmanager
def _temporary_folder(beside: Executor) -> Iterator[str]:
    """Deleted while the next test runs: a warehouse is a hundred folders, an eighth of the time that a test takes."""
    folder = tempfile.mkdtemp(prefix="forebay-test-")
    try:
        yield folder
    finally:
        beside.submit(shutil.rmtree, folder, ignore_errors=True)


def _document(test: PipelineTest, subject: Subject, beside: Executor) -> dict[str, Any]:
    started, differences, plans = time.perf_counter(), list[Difference](), defaultdict[str, set[str]](set)
    for pins in _pins(test, subject):
        with _temporary_folder(beside) as folder:
            with closing(Rehearsal(test, subject, folder, pins)) as rehearsal:
                differences += rehearsal.differences()
                for query, names in rehearsal.plans.items():
                    plans[query] |= names
    return {
        "file": test.file,
        "test": test.name,
        "passed": not differences,
        "differences": [_as_document(difference) for difference in differences],
        "plans": {query: sorted(plans[query]) for query in sorted({answer.query for answer in test.answers})},
        "seconds": time.perf_counter() - started
    }


def _as_document(difference: Difference) -> dict[str, Any]:
    return {**vars(difference), "missing": list(difference.missing), "too_many": list(difference.too_many)}


def _pins(test: PipelineTest, subject: Subject) -> list[dict[str, str]]:
    """The plan of each query, one run after the other: none, or all that each query can have.

    A query with fewer plans than another has none in the last runs.
    """
    if not test.every_plan:
        return [{}]
    plans = {}
    for query in dict.fromkeys(answer.query for answer in test.answers):
        plans[query] = [c.plan.name for c in candidates(subject.queries[query]) if c.refused is None]
    count = max(map(len, plans.values()))
    return [{query: names[i] for query, names in plans.items() if i < len(names)} for i in range(count)]


class Rehearsal:
    """One run of a test: `Rehearsal(test, subject, folder, {"top": "EAP1 running"}).differences()`.

    It remembers what relations were last made of, what the last run said, and under `plans` which were in force.
    """

    def __init__(self, test: PipelineTest, subject: Subject, folder: str, pins: Mapping[str, str]) -> None:
        self.test, self.subject, self.folder, self.pins = test, subject, folder, pins
        pipeline = replace(subject.pipeline, warehouse=os.path.join(folder, "warehouse"), spark=Spark(INLINE),
                           tracking="")
        self.loop = Loop(replace(open_pipeline(pipeline), clock=lambda: NOW))
        self.plans = defaultdict[str, set[str]](set)
        self._last_run: dict[str, Any] | None = None
        self._sources = {name: self._first_source(name) for name in pipeline.relations}
        self._answers: dict[str, pa.Table] = {}
        self._published: dict[str, list[int]] = {}

    def close(self) -> None:
        self.loop.pipe.tasks.stop()

    def _first_source(self, relation: str) -> Source:
        """No file yet; or one without rows, for a relation that no step ingests: no boundary is to wait for it."""
        steps = [step for step in self.test.steps if isinstance(step, IngestStep)]
        if any(relation in {**step.rows, **step.files} for step in steps):
            return Source("files", os.path.join(self.folder, "nothing", "*.parquet"))
        return Source("files", self._written(f"0-{relation}", relation, ()))

    def differences(self) -> list[Difference]:
        """The steps in order; a failure ends them, and answers are then not looked at."""
        requests.synchronise(self.loop.pipe)
        for query, plan in self.pins.items():
            requests.change(self.loop.pipe, query, "pin", plan)
        differences = list[Difference]()
        for number, step in enumerate(self.test.steps, 1):
            try:
                differences += self._ingest(number, step) if isinstance(step, IngestStep) else self._run(number, step)
            except ForebayError as error:
                if error.exit_code != 1:
                    raise
                return [*differences, self._of_step(number, str(error))]
        differences += [Difference(f"{query} ran under {name}, and was to run under {plan}", None, query, None, plan)
                        for query, plan in self.pins.items() for name in sorted(self.plans[query] - {plan})]
        compared = [answer for answer in self.test.answers if not self.test.every_plan or answer.query in self.pins]
        return differences + [difference for answer in compared for difference in self._compared(answer)]

    def _of_step(self, number: int, message: str, query: str | None = None, boundary: int | None = None) -> Difference:
        in_all = "; ".join(f"{name}: {plan}" for name, plan in self.pins.items())
        plan = self.pins.get(query, in_all) if query is not None else in_all
        return Difference(f"step {number}: {message}", number, query, boundary, plan or None)

    def _ingest(self, number: int, step: IngestStep) -> list[Difference]:
        paths = dict(step.files)
        for name, rows in step.rows.items():
            paths[name] = self._written(f"{number}-{name}", name, rows)
        loop = self._taking(step, paths)
        only = {name: [path] for name, path in paths.items() if name in self.subject.pipeline.streams}
        before = {name: self._reasons(name) for name in only}
        report = loop.take(only)
        differences = []
        for refusal in report["refused"]:
            name = refusal.get("stream") or refusal.get("relation")
            reason = refusal["reason"].replace(self.folder + os.sep, "")
            differences.append(self._of_step(number, f"the input of {name} is refused: {reason}"))
        for name in only:
            reasons, expected = self._reasons(name) - before[name], step.quarantined.get(name, 0)
            if reasons.total() != expected:
                why = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
                message = f"rows of {name} in quarantine: {reasons.total()}, expected {expected}"
                differences.append(self._of_step(number, f"{message}{f' ({why})' if why else ''}"))
        return differences

    def _written(self, title: str, source: str, rows: Sequence[TextRow]) -> str:
        """Rows as a file of texts, which ingest converts to the declared types as it does a CSV file's."""
        columns = self.subject.sources[source].columns
        path = os.path.join(self.folder, f"{title}.parquet")
        pq.write_table(pa.table({name: pa.array([row.get(name) for row in rows], pa.string()) for name in columns}),
                       path)
        return path

    def _taking(self, step: IngestStep, paths: Mapping[str, str]) -> Loop:
        """Of the same tables, with sources that lead to what this step brings, and to nothing else."""
        pipe, streams, relations = self.loop.pipe, dict[str, Stream](), dict[str, Relation]()
        for name, stream in pipe.pipeline.streams.items():
            says_how = name in step.files and stream.source is not None and stream.source.kind in OF_FILES
            streams[name] = stream if says_how else replace(stream, source=None)
        for name, relation in pipe.pipeline.relations.items():
            if name in paths:
                says_how = name in step.files and relation.source.kind in OF_FILES
                source = relation.source if says_how else Source("files", "")
                self._sources[name] = replace(source, path=glob.escape(paths[name]))      # it is read as a pattern
            relations[name] = replace(relation, source=self._sources[name])
        return Loop(replace(pipe, pipeline=replace(pipe.pipeline, streams=streams, relations=relations)))

    def _reasons(self, stream: str) -> Counter[str]:
        return Counter(register.refused(self.loop.pipe.warehouse, stream, MOST_REASONS)[1])

    def _run(self, number: int, step: RunStep) -> list[Difference]:
        self._last_run = report = self.loop.run(step.to, step.flush)
        for entry in report["ran"]:
            for query, plan in entry["plans"].items():
                self.plans[query].add(plan)
        return [self._of_step(number, f"query {failure['query']} failed at {iso(failure['boundary'])}: "
                                      f"{failure['message']}", failure["query"], failure["boundary"])
                for failure in report["failed"]]

    def _compared(self, expected: ExpectedAnswer) -> list[Difference]:
        """None, or the one of this answer."""
        query, boundary, plan = expected.query, expected.boundary, self.pins.get(expected.query)
        at = f"{query} at {iso(boundary)}"
        if boundary not in self._boundaries(query):
            return [Difference(f"{at}: not published: {self._why_not(query, boundary)}", None, query, boundary, plan)]
        answer = self._answer(query, boundary)
        missing, too_many = unmatched(expected.rows, rows_of(answer, expected.columns), expected.columns)
        if not missing and not too_many:
            return []

        def told(rows: Sequence[Row]) -> tuple[dict[str, object], ...]:
            return tuple(shown(row, expected.columns) for row in rows[:MOST_SHOWN])

        message = f"{at}: {_count(missing)} missing, {_count(too_many)} too many"
        return [Difference(message, None, query, boundary, plan, told(missing), told(too_many), len(missing),
                           len(too_many))]

    def _boundaries(self, query: str) -> list[int]:
        """Those at which it was published."""
        if query not in self._published:
            self._published[query] = answers.published(self.loop.pipe, query)
        return self._published[query]

    def _answer(self, query: str, boundary: int) -> pa.Table:
        """Of a query that failed too, whose earlier answers stay."""
        if query not in self._answers:
            self._answers[query] = answers.read(self.loop.pipe, query, every=True)
        every = self._answers[query]
        return every.filter(pc.equal(every["boundary"].cast(pa.int64()), boundary))

    def _why_not(self, query: str, boundary: int) -> str:
        if self._last_run is None:
            return "no step runs the pipeline"
        if not self.subject.queries[query].due(boundary):
            return "no answer is due there"
        upcoming, waiting_for = self._last_run["next"], self._last_run["waiting_for"]
        if upcoming is None:
            began = self.loop.pipe.ledger.committed() is not None
            return "no query is in force any more" if began else "the pipeline has no row"
        if boundary < upcoming:
            published = self._boundaries(query)
            span = f"only from {iso(published[0])} to {iso(published[-1])}" if published else "nowhere"
            return f"the query has answers {span}"
        waits = f", which waits for {' and '.join(waiting_for)}" if waiting_for else ""
        return f"the next boundary is {iso(upcoming)}{waits}"


def _count(rows: Sequence[Row]) -> str:
    return f"{len(rows):,} {'row' if len(rows) == 1 else 'rows'}"
