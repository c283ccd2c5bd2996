"""The expectations that a person declares, from PIPELINE/expectations/*.yml, each with its place in its file.

Refused whole if any cannot be meant.
"""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import yaml

from expectations.expectation import Expectation, argument, check
from expectations.kinds import KINDS, SEVERITIES, Kind
from jobs.engine import kernel
from jobs.pipeline.lines import Entry, document, fields, refused, suggest, text
from jobs.pipeline.model import Pipeline
from optimizer.errors import ForebayError, first_line
from optimizer.expression.types import Type

FOLDER = "expectations"
SHARED = ("type", "severity", "note")
STREAM, QUERY = "stream", "query"


@dataclass(frozen=True)
class Given:
    """The expectations that one file has for one subject, not yet held against its columns."""

    file: str
    subject: str               # stream or query
    name: str
    title: Entry
    entries: tuple[Entry, ...]


class DeclaredExpectations:
    """What was last read of a pipeline's expectations; read when first asked for, and again by `read`.

    `DeclaredExpectations(pipeline).given` are the expectations of all files, by file and subject.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self._given: tuple[Given, ...] | None = None

    @property
    def given(self) -> tuple[Given, ...]:
        return self.read() if self._given is None else self._given

    def read(self) -> tuple[Given, ...]:
        """As the files say now."""
        self._given = read(self.pipeline)
        return self._given

    def of_stream(self, stream: str) -> tuple[Expectation, ...]:
        return of_stream(self.pipeline, self.given, stream)

    def of_query(self, query: str, columns: Mapping[str, Type]) -> tuple[Expectation, ...]:
        return of_query(self.given, query, columns)


def read(pipeline: Pipeline) -> tuple[Given, ...]:
    """Every file; streams are looked up, queries are known only to the ledger."""
    folder = os.path.join(pipeline.folder, FOLDER)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return tuple(
        _file(os.path.join(folder, n), f"{FOLDER}/{n}", pipeline) for n in names if n.endswith((".yml", ".yaml")))


def of_stream(pipeline: Pipeline, given: Iterable[Given], stream: str) -> tuple[Expectation, ...]:
    return tuple(e for g in given if (g.subject, g.name) == (STREAM, stream)
                 for e in made(g, pipeline.streams[stream].columns))


def of_query(given: Iterable[Given], query: str, columns: Mapping[str, Type]) -> tuple[Expectation, ...]:
    return tuple(e for g in given if (g.subject, g.name) == (QUERY, query) for e in made(g, columns))


def unknown(given: Given, known: Iterable[str]) -> ForebayError:
    return _placed(
        given.file,
        refused(given.title, "unknown-query", f"there is no query {given.name!r}", suggest(given.name, known)))


def made(given: Given, columns: Mapping[str, Type]) -> tuple[Expectation, ...]:
    try:
        return tuple(_expectation(e, given.subject, columns) for e in given.entries)
    except ForebayError as error:
        raise _placed(given.file, error) from None


def _file(path: str, title: str, pipeline: Pipeline) -> Given:
    try:
        with open(path, encoding="utf-8") as file:
            content = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ForebayError("bad-yaml", f"{title} cannot be read: {error}",
                           hint="it must be a UTF-8 text that you may read") from None
    try:
        return _given(document(content, title), title, pipeline)
    except ForebayError as error:
        raise _placed(title, error) from None


def _given(entry: Entry, title: str, pipeline: Pipeline) -> Given:
    found = fields(entry, (STREAM, QUERY, "expectations"), ("expectations",))
    subjects = [s for s in (STREAM, QUERY) if s in found]
    if len(subjects) != 1:
        raise refused(entry, "bad-config", f"it is about {' and '.join(subjects) or 'nothing'}",
                      "write one of `stream: NAME` and `query: NAME`")
    subject = subjects[0]
    name = text(found[subject])
    if subject == STREAM and name not in pipeline.streams:
        raise refused(found[subject], "unknown-stream", f"{name!r} is not a stream of {pipeline.name}",
                      suggest(name, pipeline.streams))
    given = Given(title, subject, name, found[subject], listed(found["expectations"]))
    if subject == STREAM:
        made(given, pipeline.streams[name].columns)
    return given


def listed(entry: Entry) -> tuple[Entry, ...]:
    if not isinstance(entry.node, yaml.SequenceNode):
        raise refused(entry, "bad-config", f"{entry.where} is not a list", "begin each with `- type: …`")
    return tuple(Entry(f"{entry.where}[{k}]", node) for k, node in enumerate(entry.node.value))


def _expectation(entry: Entry, subject: str, columns: Mapping[str, Type]) -> Expectation:
    kind = _kind(entry)
    given = fields(entry, (*SHARED, *kind.parameters),
                   (*kind.columns, *(v for v in kind.values if v in ("value_set", "regex"))))
    names = [n for p in kind.columns for n in (listed(given[p]) if p == "column_list" else (given[p],))]
    types = tuple(_type(n, columns) for n in names)
    severity = _severity(given.get("severity"), entry, kind, subject, "mostly" in given)
    arguments = tuple(
        (p, _argument(kind, p, given[p], types[0] if types else None)) for p in (*kind.values, "mostly") if p in given)
    try:
        return check(Expectation(kind.name, severity, tuple(text(n) for n in names), types, arguments))
    except ForebayError as error:
        raise refused(entry, error.code, error.message, error.hint) from None


def _kind(entry: Entry) -> Kind:
    """The other keys are known once the type is."""
    every = tuple(dict.fromkeys(p for k in KINDS.values() for p in k.parameters))
    name = fields(entry, (*SHARED, *every), ("type",))["type"]
    if text(name) not in KINDS:
        raise refused(name, "unknown-expectation", f"{text(name)!r} is not an expectation that is known here",
                      suggest(text(name), KINDS))
    return KINDS[text(name)]


def _type(entry: Entry, columns: Mapping[str, Type]) -> Type:
    if text(entry) not in columns:
        raise refused(entry, "unknown-column", f"there is no column {text(entry)!r}", suggest(text(entry), columns))
    return columns[text(entry)]


def _severity(given: Entry | None, entry: Entry, kind: Kind, subject: str, mostly: bool) -> str:
    value = text(given) if given is not None else "warning"
    if value not in SEVERITIES:
        raise refused(given or entry, "unknown-severity", f"severity is {value!r}", suggest(value, SEVERITIES))
    if value == "row" and (subject == QUERY or not kind.row or mostly):
        why = "`mostly` is about many rows" if mostly else f"{kind.name} is not about single rows"
        why = "answers are never quarantined" if subject == QUERY else why
        raise refused(given or entry, "unknown-severity", f"severity is row, but {why}", "write critical or warning")
    return value


def _argument(kind: Kind, parameter: str, entry: Entry, column: Type | None) -> str | tuple[str, ...]:
    try:
        value = argument(kind, parameter,
                         tuple(text(v) for v in listed(entry)) if parameter == "value_set" else text(entry), column)
    except ForebayError as error:
        raise error if error.line else refused(entry, error.code, f"{entry.where}: {error.message}",
                                               error.hint) from None
    if parameter == "regex":
        _check_pattern(entry, text(entry))
    return value


def _check_pattern(entry: Entry, pattern: str) -> None:
    con = kernel.shared()
    try:
        con.execute("SELECT regexp_matches('', $1)", [pattern])
    except kernel.Error as error:
        hint = "patterns are RE2's: no look-around, no back-references"
        raise refused(entry, "bad-value", f"{entry.where} is no pattern: {first_line(error)}", hint) from None
    finally:
        con.close()


def _placed(file: str, error: ForebayError) -> ForebayError:
    """The error, naming its file once."""
    return error if error.message.startswith(file) else replace(error, message=f"{file}: {error.message}")
