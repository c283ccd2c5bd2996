"""The expectations that a person declares, from PIPELINE/expectations/*.yml, each with its place in its file.

Refused whole if any cannot be meant.
"""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import yaml

from expectations.expectation import Expectation, argument, check
from expectations.great import GreatExpectation
from expectations.kinds import KINDS, SEVERITIES, Kind
from jobs.engine import kernel
from jobs.pipeline import suites
from jobs.pipeline.lines import Entry, document, fields, refused, suggest, text
from jobs.pipeline.model import Pipeline
from jobs.pipeline.suites import GivenSuite
from optimizer.errors import ForebayError, first_line
from optimizer.expression.types import TIMESTAMP, Type

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
        self._suites: tuple[GivenSuite, ...] = ()

    @property
    def given(self) -> tuple[Given, ...]:
        return self.read() if self._given is None else self._given

    def read(self) -> tuple[Given, ...]:
        """As the files say now."""
        self._given = read(self.pipeline)
        self._suites = suites.read(self.pipeline, self.folder)
        return self._given

    @property
    def folder(self) -> str:
        return os.path.join(self.pipeline.folder, FOLDER)

    @property
    def suites(self) -> tuple[GivenSuite, ...]:
        """Suites as Great Expectations writes them."""
        if self._given is None:
            self.read()
        return self._suites

    @property
    def queries(self) -> dict[str, str]:
        """By query of which anything is declared: a file that does so."""
        by_query = {suite.of: suite.file for suite in self.suites if suite.subject == QUERY}
        return by_query | {given.name: given.file for given in self.given if given.subject == QUERY}

    def suite_of_stream(self, stream: str) -> tuple[GreatExpectation, ...]:
        return self._of_suites(STREAM, stream, self.pipeline.streams[stream].columns)

    def suite_of_query(self, query: str, columns: Mapping[str, Type]) -> tuple[GreatExpectation, ...]:
        """Of its answer as its address has it, boundary first."""
        return self._of_suites(QUERY, query, {"boundary": TIMESTAMP, **columns})

    def _of_suites(self, subject: str, name: str, columns: Mapping[str, Type]) -> tuple[GreatExpectation, ...]:
        of_this = [suite for suite in self.suites if (suite.subject, suite.of) == (subject, name)]
        return tuple(e for suite in of_this for e in suites.expectations(suite, columns))

    def of_stream(self, stream: str) -> tuple[Expectation, ...]:
        return of_stream(self.pipeline, self.given, stream)

    def of_query(self, query: str, columns: Mapping[str, Type]) -> tuple[Expectation, ...]:
        return of_query(self.given, query, columns)


def read(pipeline: Pipeline) -> tuple[Given, ...]:
    """Every file; streams are looked up, queries are known only to the ledger."""
    folder = os.path.join(pipeline.folder, FOLDER)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    files = [name for name in names if name.endswith((".yml", ".yaml"))]
    return tuple(_file(os.path.join(folder, name), f"{FOLDER}/{name}", pipeline) for name in files)


def of_stream(pipeline: Pipeline, given: Iterable[Given], stream: str) -> tuple[Expectation, ...]:
    of_this = [g for g in given if (g.subject, g.name) == (STREAM, stream)]
    return tuple(e for g in of_this for e in checked(g, pipeline.streams[stream].columns))


def of_query(given: Iterable[Given], query: str, columns: Mapping[str, Type]) -> tuple[Expectation, ...]:
    of_this = [g for g in given if (g.subject, g.name) == (QUERY, query)]
    return tuple(e for g in of_this for e in checked(g, columns))


def unknown(given: Given, queries: Iterable[str]) -> ForebayError:
    message = f"there is no query {given.name!r}"
    return _placed(given.file, refused(given.title, "unknown-query", message, suggest(given.name, queries)))


def unknown_of_suite(suite: GivenSuite, queries: Iterable[str]) -> ForebayError:
    return ForebayError("unknown-query", f"{suite.file}: there is no query {suite.of!r}, and no stream",
                        hint=suggest(suite.of, queries))


def checked(given: Given, columns: Mapping[str, Type]) -> tuple[Expectation, ...]:
    """The expectations, held against the columns of their subject."""
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
    content = fields(entry, (STREAM, QUERY, "expectations"), ("expectations",))
    subjects = [subject for subject in (STREAM, QUERY) if subject in content]
    if len(subjects) != 1:
        raise refused(entry, "bad-config", f"it is about {' and '.join(subjects) or 'nothing'}",
                      "write one of `stream: NAME` and `query: NAME`")
    subject = subjects[0]
    name = text(content[subject])
    if subject == STREAM and name not in pipeline.streams:
        raise refused(content[subject], "unknown-stream", f"{name!r} is not a stream of {pipeline.name}",
                      suggest(name, pipeline.streams))
    given = Given(title, subject, name, content[subject], listed(content["expectations"]))
    if subject == STREAM:
        checked(given, pipeline.streams[name].columns)
    return given


def listed(entry: Entry) -> tuple[Entry, ...]:
    if not isinstance(entry.node, yaml.SequenceNode):
        raise refused(entry, "bad-config", f"{entry.where} is not a list", "begin each with `- type: …`")
    return tuple(Entry(f"{entry.where}[{k}]", node) for k, node in enumerate(entry.node.value))


def _expectation(entry: Entry, subject: str, columns: Mapping[str, Type]) -> Expectation:
    kind = _kind(entry)
    required_values = [value for value in kind.values if value in ("value_set", "regex")]
    given = fields(entry, (*SHARED, *kind.parameters), (*kind.columns, *required_values))
    names: list[Entry] = []
    for parameter in kind.columns:
        names += listed(given[parameter]) if parameter == "column_list" else [given[parameter]]
    for name in names:
        if text(name) not in columns:
            raise refused(name, "unknown-column", f"there is no column {text(name)!r}", suggest(text(name), columns))
    types = tuple(columns[text(name)] for name in names)
    severity = _severity(given.get("severity"), entry, kind, subject, "mostly" in given)
    first_type = types[0] if types else None
    arguments = tuple((parameter, _argument(kind, parameter, given[parameter], first_type))
                      for parameter in (*kind.values, "mostly") if parameter in given)
    try:
        return check(Expectation(kind.name, severity, tuple(text(name) for name in names), types, arguments))
    except ForebayError as error:
        raise refused(entry, error.code, error.message, error.hint) from None


def _kind(entry: Entry) -> Kind:
    """The other keys are known once the type is."""
    parameters = tuple(dict.fromkeys(parameter for kind in KINDS.values() for parameter in kind.parameters))
    name = fields(entry, (*SHARED, *parameters), ("type",))["type"]
    if text(name) not in KINDS:
        raise refused(name, "unknown-expectation", f"{text(name)!r} is not an expectation that is known here",
                      suggest(text(name), KINDS))
    return KINDS[text(name)]


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
        written = tuple(text(v) for v in listed(entry)) if parameter == "value_set" else text(entry)
        value = argument(kind, parameter, written, column)
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
