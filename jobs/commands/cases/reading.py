"""Tests of a pipeline as YAML: PIPELINE/tests/*.yml as values, refused by file, line and column where they name what
the pipeline does not have.

Nothing is run here.
"""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import yaml

from jobs.batch.works import parsed
from jobs.commands.cases.comparing import moment, typed
from jobs.commands.cases.model import ExpectedAnswer, IngestStep, PipelineTest, RunStep, TextRow, Value
from jobs.ingest.sources import files
from jobs.pipeline.config import located
from jobs.pipeline.lines import Entry, document, fields, items, key_of, refused, suggest, text
from jobs.pipeline.model import Pipeline, Relation, Stream, catalog
from jobs.requests.requests import query_files
from optimizer.errors import ForebayError
from optimizer.expression.types import Type
from optimizer.query.model import Query

FOLDER = "tests"
STEPS = ("ingest", "run")


@dataclass(frozen=True)
class Subject:
    """What tests may name: a pipeline's streams and relations, and the queries of its folder."""

    pipeline: Pipeline
    queries: Mapping[str, Query]

    @property
    def sources(self) -> Mapping[str, Stream | Relation]:
        return {**self.pipeline.streams, **self.pipeline.relations}

    def source(self, name: Entry) -> Stream | Relation:
        key = text(name)
        if key not in self.sources:
            message = f"{key!r} is neither a stream nor a relation of {self.pipeline.name}"
            raise refused(name, "unknown-stream", message, suggest(key, self.sources))
        return self.sources[key]


def subject_of(pipeline: Pipeline) -> Subject:
    names = catalog(pipeline)
    queries = {}
    for name, sql in query_files(pipeline.folder).items():
        try:
            queries[name] = parsed(sql, names)
        except ForebayError as error:
            raise replace(error, message=f"queries/{name}.sql: {error.message}") from None
    return Subject(pipeline, queries)


def paths(pipeline: Pipeline) -> list[str]:
    """The files of the pipeline's tests; that there is none is refused."""
    folder = os.path.join(pipeline.folder, FOLDER)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    tests = [os.path.join(folder, name) for name in names if name.endswith((".yml", ".yaml"))]
    if not tests:
        hint = f"write {FOLDER}/NAME.yml; `forebay init DIR` makes a pipeline that has one"
        raise ForebayError("no-tests", f"{pipeline.folder} has no {FOLDER}/*.yml", hint=hint)
    return tests


def read(path: str, subject: Subject) -> tuple[PipelineTest, ...]:
    """The tests of one file."""
    inside = os.path.relpath(os.path.abspath(path), subject.pipeline.folder)
    title = path if inside.startswith("..") else inside
    try:
        with open(path, encoding="utf-8") as file:
            content = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        hint = "name a YAML file of tests that you may read; paths are relative to where you are"
        raise ForebayError("bad-file", f"{path} cannot be read: {reason}", hint=hint) from None
    try:
        tests = _listed(document(content, title), "begin each test with `- test: …`")
        return tuple(_test(entry, title, subject) for entry in tests)
    except ForebayError as error:
        in_file = error.message.startswith(title)
        raise error if in_file else replace(error, message=f"{title}: {error.message}") from None


def _test(entry: Entry, title: str, subject: Subject) -> PipelineTest:
    keys = ("test", "steps", "expect")
    given = fields(entry, (*keys, "plans"), keys)
    if "plans" in given and text(given["plans"]) != "all":
        message = f"{given['plans'].where} is {text(given['plans'])!r}"
        raise refused(given["plans"], "bad-config", message, "`plans: all` repeats the test under each plan")
    steps = tuple(_step(step, subject) for step in _listed(given["steps"], "begin each step with `- ingest: …` or "
                                                                           "`- run: …`"))
    return PipelineTest(title, text(given["test"]), steps, _answers(given["expect"], subject), "plans" in given)


def _step(entry: Entry, subject: Subject) -> IngestStep | RunStep:
    fields(entry, (*STEPS, "quarantined"))
    given = items(entry)
    kinds = [kind for kind in STEPS if kind in given]
    if len(kinds) != 1:
        message = f"{entry.where} says {' and '.join(kinds) or 'neither ingest nor run'}"
        raise refused(entry, "bad-config", message, "a step is one of `ingest: {STREAM: [ROW, …]}` and `run: {}`")
    if kinds == ["ingest"]:
        return _ingest_step(given["ingest"], given.get("quarantined"), subject)
    if "quarantined" in given:
        hint = "write it beside the `ingest` whose rows go to quarantine"
        raise refused(key_of(entry, "quarantined"), "bad-config", f"{entry.where} runs, and ingests nothing", hint)
    run = {} if given["run"].empty else fields(given["run"], ("to", "flush"))
    return RunStep(moment(run["to"]) if "to" in run else None, "flush" in run and _flag(run["flush"]))


def _ingest_step(entry: Entry, quarantined: Entry | None, subject: Subject) -> IngestStep:
    rows: dict[str, tuple[TextRow, ...]] = {}
    named: dict[str, str] = {}
    for name, value in items(entry).items():
        source = subject.source(key_of(entry, name))
        if isinstance(value.node, yaml.ScalarNode) and not value.empty:
            named[name] = _file(value, source, subject.pipeline.folder)
        else:
            entries = _listed(value, "write `[]` for no rows, or a file's path; each row is `{COLUMN: VALUE, …}`")
            rows[name] = tuple(_row(row, source) for row in entries)
    counts: dict[str, int] = {}
    expected = {} if quarantined is None else items(quarantined)
    for name, value in expected.items():
        if name not in subject.pipeline.streams or name not in {**rows, **named}:
            streams = [stream for stream in {**rows, **named} if stream in subject.pipeline.streams]
            message = f"{name!r} is not a stream of this step"
            raise refused(value, "unknown-stream", message, suggest(name, streams))
        if not text(value).isdecimal():
            message = f"{value.where} is {text(value)!r}, not a number of rows"
            raise refused(value, "bad-value", message, "write how many rows go to quarantine, as 1")
        counts[name] = int(text(value))
    return IngestStep(rows, named, counts)


def _row(entry: Entry, source: Stream | Relation) -> TextRow:
    row: dict[str, str | None] = {}
    for name, value in items(entry).items():
        _check_column(entry, name, source.name, source.columns)
        row[name] = None if value.empty else text(value)
    return row


def _check_column(entry: Entry, name: str, subject: str, columns: Mapping[str, Type]) -> None:
    if name not in columns:
        message = f"{subject} has no column {name!r}"
        raise refused(key_of(entry, name), "unknown-column", message, suggest(name, columns))


def _file(entry: Entry, source: Stream | Relation, folder: str) -> str:
    path = located(text(entry), folder)
    if not os.path.isfile(path):
        message = f"{entry.where} is {text(entry)!r}, and there is no such file"
        raise refused(entry, "no-file", message, "its path is relative to the pipeline's folder")
    kind = source.source.kind if source.source is not None else None
    if kind not in ("json", "csv") and files.format_of(path) == files.UNKNOWN:
        raise refused(entry, "unknown-format", f"{text(entry)} is none of {', '.join(files.ENDINGS)}",
                      "name the file by what it is")
    return path


def _answers(entry: Entry, subject: Subject) -> tuple[ExpectedAnswer, ...]:
    answers = []
    for name, of_query in items(entry).items():
        if name not in subject.queries:
            message = f"queries/ has no query {name!r}"
            raise refused(key_of(entry, name), "unknown-query", message, suggest(name, subject.queries))
        columns = subject.queries[name].columns
        for at, rows in items(of_query).items():
            boundary = moment(key_of(of_query, at))
            entries = _listed(rows, "`[]` says that the answer has no rows; each row is `{COLUMN: VALUE, …}`")
            answers.append(_answer(name, boundary, entries, dict(columns)))
    if not answers:
        raise refused(entry, "bad-config", f"{entry.where} names no answer, so the test could not fail",
                      "write `{QUERY: {T: [ROW, …]}}`")
    return tuple(answers)


def _answer(query: str, boundary: int, entries: Sequence[Entry], types: Mapping[str, Type]) -> ExpectedAnswer:
    """On the columns that any of its rows names, or all where there is no row."""
    rows = []
    for entry in entries:
        row: dict[str, Value] = {}
        for name, value in items(entry).items():
            _check_column(entry, name, f"the answer of {query}", types)
            row[name] = typed(value, types[name])
        rows.append(row)
    columns = tuple((name, kind) for name, kind in types.items() if not rows or any(name in row for row in rows))
    values = tuple(tuple(row.get(name) for name, _ in columns) for row in rows)
    return ExpectedAnswer(query, boundary, columns, values)


def _listed(entry: Entry, hint: str) -> tuple[Entry, ...]:
    if not isinstance(entry.node, yaml.SequenceNode):
        raise refused(entry, "bad-config", f"{entry.where or 'the file'} is not a list", hint)
    return tuple(Entry(f"{entry.where}[{k}]", node) for k, node in enumerate(entry.node.value))


def _flag(entry: Entry) -> bool:
    written = text(entry).lower()
    if written not in ("true", "false"):
        raise refused(entry, "bad-value", f"{entry.where} is {text(entry)!r}", "write true or false")
    return written == "true"
