"""A pipeline folder as one value: what forebay.yml says, checked, with its defaults; it reads that file and nothing else, and touches no table."""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TypeVar

from jobs.pipeline.config_parts import RELATION_SOURCES, STREAM_SOURCES, located, reached, schedule, source, spark, table_place, tracking
from jobs.pipeline.lines import Entry, choice, document, duration, fields, flag, items, name, refused, text
from jobs.pipeline.model import HOUR, Pipeline, Relation, Schedule, Source, Spark, Stream, catalog
from optimizer.errors import ForebayError
from optimizer.expression.types import TIMESTAMP, Type, parse_type

__all__ = ["FILE", "INLINE", "Pipeline", "Relation", "Schedule", "Source", "Spark", "Stream", "catalog", "load"]
FILE = "forebay.yml"
INLINE = "inline"                      # a master: tasks run in this process, without Spark
STREAM = ("columns", "event_time", "wait", "lateness", "idle", "ahead", "keep", "unknown_columns", "source")
T = TypeVar("T")


def load(folder: str) -> Pipeline:
    folder = os.path.abspath(folder)
    path = os.path.join(folder, FILE)
    try:
        with open(path, encoding="utf-8") as file:
            content = file.read()
    except (FileNotFoundError, NotADirectoryError):
        hint = "give the pipeline's folder with --pipeline, or make one with `forebay init DIR`"
        raise ForebayError("no-pipeline", f"{folder} has no {FILE}", hint=hint) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ForebayError("bad-yaml", f"{path} cannot be read: {error}", hint="it must be a UTF-8 text that you may read") from error
    return _pipeline(document(content, path), folder)


def _pipeline(entry: Entry, folder: str) -> Pipeline:
    given = fields(entry, ("name", "warehouse", "batch", "streams", "relations", "schedule", "spark", "latency", "tracking"), ("name", "batch", "streams"))
    engine = spark(given.get("spark"))
    streams = _each(given["streams"], lambda n, e: _stream(n, e, folder, engine))
    if not streams:
        raise refused(given["streams"], "missing-key", "streams is empty", "a pipeline has at least one stream")
    relations = _each(given["relations"], lambda n, e: _relation(n, e, folder, engine)) if "relations" in given else {}
    taken = {n.lower() for n in streams}
    for n, place in (items(given["relations"]) if relations else {}).items():
        if n.lower() in taken:
            raise refused(place, "bad-name", f"{n} names a stream and a relation", "give one of them another name")
    return Pipeline(name(given["name"], text(given["name"])), folder, _warehouse(given, folder, engine), duration(given["batch"], 1), streams, relations,
                    schedule(given["schedule"]) if "schedule" in given else None, engine, _length(given, "latency", None, 1),
                    tracking(given["tracking"], folder) if "tracking" in given else None)


def _warehouse(given: Mapping[str, Entry], folder: str, engine: Spark) -> str:
    entry = given.get("warehouse")
    return table_place(located("warehouse", folder) if entry is None else reached(entry, folder, engine.settings), entry)


def _each(entry: Entry, make: Callable[[str, Entry], T]) -> dict[str, T]:
    """Named things; names differ in more than case, since file systems and Spark may not tell `A` from `a`."""
    made: dict[str, T] = {}
    for key, value in items(entry).items():
        if key.lower() in {n.lower() for n in made}:
            raise refused(value, "bad-name", f"{value.where} differs from another name only in case", "give one of them another name")
        made[name(value, key)] = make(key, value)
    return made


def _stream(title: str, entry: Entry, folder: str, engine: Spark) -> Stream:
    given = fields(entry, STREAM, ("columns", "event_time"))
    columns, sensitive = _columns(given["columns"])
    event_time = choice(given["event_time"], tuple(columns))
    if columns[event_time] != TIMESTAMP:
        raise refused(given["event_time"], "bad-config", f"{given['event_time'].where} is {event_time}, which is {columns[event_time]}",
                      f"declare `{event_time}: timestamp`, or name a column that is one")
    lateness, keep = _length(given, "lateness", 0) or 0, _length(given, "keep", None, 1)
    if keep is not None and keep < lateness:
        raise refused(given["keep"], "bad-config", f"{given['keep'].where} is shorter than lateness", "rows must stay at least as long as late ones may come")
    policy = choice(given["unknown_columns"], ("quarantine", "drop")) if "unknown_columns" in given else "quarantine"
    return Stream(title, columns, event_time, _length(given, "wait", 0) or 0, lateness, _length(given, "idle", None, 1), _ahead(given), keep, policy,
                  source(given["source"], folder, STREAM_SOURCES, engine.settings) if "source" in given else None, sensitive)


def _ahead(given: Mapping[str, Entry]) -> int:
    value = _length(given, "ahead", HOUR)
    return HOUR if value is None else value


def _relation(title: str, entry: Entry, folder: str, engine: Spark) -> Relation:
    given = fields(entry, ("columns", "source"), ("columns", "source"))
    columns, sensitive = _columns(given["columns"])
    return Relation(title, columns, source(given["source"], folder, RELATION_SOURCES, engine.settings), sensitive)


def _columns(entry: Entry) -> tuple[dict[str, Type], frozenset[str]]:
    sensitive: set[str] = set()

    def make(title: str, value: Entry) -> Type:
        if title.startswith("_"):
            raise refused(value, "bad-name", f"column {title} starts with _", "such names are Forebay's own, as _boundary")
        if value.mapping:
            given = fields(value, ("type", "sensitive"), ("type",))
            if "sensitive" in given and flag(given["sensitive"]):
                sensitive.add(title)
            value = given["type"]
        return _type(value)

    columns = _each(entry, make)
    if not columns:
        raise refused(entry, "missing-key", f"{entry.where} is empty", "declare at least one column, as `user: string`")
    return columns, frozenset(sensitive)


def _type(entry: Entry) -> Type:
    try:
        return parse_type(text(entry))
    except ForebayError as error:
        raise refused(entry, error.code, f"{entry.where}: {error.message}", error.hint) from None


def _length(given: Mapping[str, Entry], key: str, default: int | None, least: int = 0) -> int | None:
    """A duration; `for ever` and `never` are None where None is the default."""
    if key not in given or default is None and text(given[key]).lower() in ("for ever", "forever", "never"):
        return default
    return duration(given[key], least)
