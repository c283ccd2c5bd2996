"""A pipeline folder as one value: what forebay.yml says, checked, with its defaults; it reads that file and nothing else, and touches no table."""
from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from jobs.lines import Entry, choice, document, duration, fields, flag, items, name, refused, text
from optimizer.errors import ForebayError
from optimizer.query import Catalog
from optimizer.types import TIMESTAMP, Type, parse_type

FILE = "forebay.yml"
HOUR = 3600 * 10**6
INLINE = "inline"                      # a master: tasks run in this process, without Spark
STREAM = ("columns", "event_time", "wait", "lateness", "idle", "ahead", "keep", "unknown_columns", "source")
RELATION_SOURCES = ("files", "json", "csv", "delta")
STREAM_SOURCES = (*RELATION_SOURCES, "kafka")
CSV_OPTIONS = ("delimiter", "quote", "null")
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
MASTER = re.compile(r"inline|local(-cluster)?(\[[\d*, ]+\])?|(spark|sc|k8s)://\S+|yarn")
CRON = re.compile(r"([\d*/,A-Za-z#?L-]+\s+){4}[\d*/,A-Za-z#?L-]+")
CRON_NAMES = ("@hourly", "@daily", "@weekly", "@monthly", "@yearly")
T = TypeVar("T")


@dataclass(frozen=True)
class Source:
    """Where rows come from: `files` (the ending tells the format), a forced `json` or `csv`, a `delta` table, a `kafka` topic. `path` is absolute, a URI, or the topic."""

    kind: str
    path: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stream:
    """Durations in microseconds; `idle` None: never idle; `keep` None: for ever."""

    name: str
    columns: Mapping[str, Type]
    event_time: str
    wait: int = 0
    lateness: int = 0
    idle: int | None = None
    ahead: int = HOUR
    keep: int | None = None
    unknown_columns: str = "quarantine"
    source: Source | None = None
    sensitive: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Relation:
    name: str
    columns: Mapping[str, Type]
    source: Source
    sensitive: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Schedule:
    """`kind` is cron, continuous, or asset (the `value` then names the table)."""

    kind: str
    value: str = ""


@dataclass(frozen=True)
class Spark:
    master: str = "local[*]"
    remote: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pipeline:
    """`folder` is absolute, `warehouse` absolute or a URI; `batch` and `latency` in microseconds."""

    name: str
    folder: str
    warehouse: str
    batch: int
    streams: Mapping[str, Stream]
    relations: Mapping[str, Relation]
    schedule: Schedule | None = None
    spark: Spark = Spark()
    latency: int | None = None


def load(folder: str) -> Pipeline:
    folder = os.path.abspath(folder)
    path = os.path.join(folder, FILE)
    try:
        with open(path, encoding="utf-8") as file:
            content = file.read()
    except (FileNotFoundError, NotADirectoryError):
        raise ForebayError("no-pipeline", f"{folder} has no {FILE}", hint="give the pipeline's folder with --pipeline, or make one with `forebay init DIR`") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ForebayError("bad-yaml", f"{path} cannot be read: {error}", hint="it must be a UTF-8 text that you may read") from error
    return _pipeline(document(content, path), folder)


def catalog(pipeline: Pipeline) -> Catalog:
    """The pipeline's names as queries see them."""
    streams = tuple((s.name, s.event_time, tuple(s.columns.items())) for s in pipeline.streams.values())
    return Catalog(pipeline.batch, streams, tuple((r.name, tuple(r.columns.items())) for r in pipeline.relations.values()))


def _pipeline(entry: Entry, folder: str) -> Pipeline:
    given = fields(entry, ("name", "warehouse", "batch", "streams", "relations", "schedule", "spark", "latency"), ("name", "batch", "streams"))
    streams = _each(given["streams"], lambda n, e: _stream(n, e, folder))
    if not streams:
        raise refused(given["streams"], "missing-key", "streams is empty", "a pipeline has at least one stream")
    relations = _each(given["relations"], lambda n, e: _relation(n, e, folder)) if "relations" in given else {}
    taken = {n.lower() for n in streams}
    for n, place in (items(given["relations"]) if relations else {}).items():
        if n.lower() in taken:
            raise refused(place, "bad-name", f"{n} names a stream and a relation", "give one of them another name")
    return Pipeline(
        name(given["name"], text(given["name"])), folder, _located(text(given["warehouse"]) if "warehouse" in given else "warehouse", folder), duration(given["batch"], 1),
        streams, relations, _schedule(given["schedule"]) if "schedule" in given else None, _spark(given.get("spark")), _length(given, "latency", None, 1))


def _each(entry: Entry, make: Callable[[str, Entry], T]) -> dict[str, T]:
    """Named things; names differ in more than case, since file systems and Spark may not tell `A` from `a`."""
    made: dict[str, T] = {}
    for key, value in items(entry).items():
        if key.lower() in {n.lower() for n in made}:
            raise refused(value, "bad-name", f"{value.where} differs from another name only in case", "give one of them another name")
        made[name(value, key)] = make(key, value)
    return made


def _stream(title: str, entry: Entry, folder: str) -> Stream:
    given = fields(entry, STREAM, ("columns", "event_time"))
    columns, sensitive = _columns(given["columns"])
    event_time = choice(given["event_time"], tuple(columns))
    if columns[event_time] != TIMESTAMP:
        raise refused(given["event_time"], "bad-config", f"{given['event_time'].where} is {event_time}, which is {columns[event_time]}", f"declare `{event_time}: timestamp`, or name a column that is one")
    lateness, keep = _length(given, "lateness", 0) or 0, _length(given, "keep", None, 1)
    if keep is not None and keep < lateness:
        raise refused(given["keep"], "bad-config", f"{given['keep'].where} is shorter than lateness", "rows must stay at least as long as late ones may come")
    policy = choice(given["unknown_columns"], ("quarantine", "drop")) if "unknown_columns" in given else "quarantine"
    return Stream(title, columns, event_time, _length(given, "wait", 0) or 0, lateness, _length(given, "idle", None, 1), _ahead(given), keep, policy,
                  _source(given["source"], folder, STREAM_SOURCES) if "source" in given else None, sensitive)


def _ahead(given: Mapping[str, Entry]) -> int:
    value = _length(given, "ahead", HOUR)
    return HOUR if value is None else value


def _relation(title: str, entry: Entry, folder: str) -> Relation:
    given = fields(entry, ("columns", "source"), ("columns", "source"))
    columns, sensitive = _columns(given["columns"])
    return Relation(title, columns, _source(given["source"], folder, RELATION_SOURCES), sensitive)


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


def _source(entry: Entry, folder: str, kinds: tuple[str, ...]) -> Source:
    given = fields(entry, (*kinds, *CSV_OPTIONS))
    chosen = [k for k in kinds if k in given]
    if len(chosen) != 1:
        raise refused(entry, "bad-config", f"{entry.where} names {' and '.join(chosen) or 'no source'}", f"name one of {', '.join(kinds)}")
    kind = chosen[0]
    if kind == "kafka":
        return _kafka(given[kind])
    options = {k: text(given[k]) for k in CSV_OPTIONS if k in given}
    for k in options:
        if kind in ("json", "delta"):
            raise refused(given[k], "unknown-key", f"{given[k].where} is for CSV files only", f"leave it out with {kind}")
        if k != "null" and len(options[k]) != 1:
            raise refused(given[k], "bad-config", f"{given[k].where} is {options[k]!r}", "it is one character")
    return Source(kind, _located(text(given[kind]), folder), options)


def _kafka(entry: Entry) -> Source:
    """Options are the Kafka client's own, as `security.protocol`; `$NAME` is taken from the environment, so that no secret need stand in the file."""
    given = fields(entry, ("servers", "topic", "options"), ("servers", "topic"))
    options = {"kafka.bootstrap.servers": text(given["servers"])}
    for key, value in (items(given["options"]) if "options" in given else {}).items():
        options[f"kafka.{key.removeprefix('kafka.')}"] = _from_environment(value)
    if not TOPIC.fullmatch(text(given["topic"])):
        raise refused(given["topic"], "bad-name", f"{text(given['topic'])!r} is not a topic", "a topic has letters, digits, ., _ and -")
    return Source("kafka", text(given["topic"]), options)


def _from_environment(entry: Entry) -> str:
    value = text(entry)
    if not re.fullmatch(r"\$[A-Z_][A-Z0-9_]*", value):
        return value
    if value[1:] not in os.environ:
        raise refused(entry, "bad-config", f"{entry.where} is {value}, which the environment does not have", f"export {value[1:]} first")
    return os.environ[value[1:]]


def _schedule(entry: Entry) -> Schedule:
    if entry.mapping:
        return Schedule("asset", text(fields(entry, ("asset",), ("asset",))["asset"]))
    value = text(entry).strip()
    if value == "continuous":
        return Schedule("continuous")
    if value not in CRON_NAMES and not CRON.fullmatch(value):
        raise refused(entry, "bad-config", f"{entry.where} is {value!r}", "write `continuous`, five cron fields as \"*/5 * * * *\", or {asset: TABLE}")
    return Schedule("cron", value)


def _spark(entry: Entry | None) -> Spark:
    """FOREBAY_MASTER is stronger than the file."""
    given = fields(entry, ("master", "remote", "settings")) if entry is not None and not entry.empty else {}
    if "master" in given and "remote" in given:
        raise refused(given["remote"], "bad-config", "spark has a master and a remote", "keep one")
    settings = {k: text(v) for k, v in items(given["settings"]).items()} if "settings" in given else {}
    forced = os.environ.get("FOREBAY_MASTER")
    place = forced or (text(given["remote"]) if "remote" in given else text(given["master"]) if "master" in given else "local[*]")
    if "remote" in given and not forced and not place.startswith("sc://"):
        raise refused(given["remote"], "bad-config", f"spark.remote is {place!r}", "a Spark Connect server is sc://HOST:PORT")
    if not MASTER.fullmatch(place):
        hint = "known are local[*], local[N], spark://HOST:PORT, sc://HOST:PORT, yarn, k8s://URL and inline"
        raise ForebayError("bad-config", f"FOREBAY_MASTER is {place!r}", hint=hint) if forced else refused(given["master"], "bad-config", f"spark.master is {place!r}", hint)
    return Spark("local[*]", place, settings) if place.startswith("sc://") else Spark(place, None, settings)


def _length(given: Mapping[str, Entry], key: str, default: int | None, least: int = 0) -> int | None:
    """A duration; `for ever` and `never` are None where None is the default."""
    if key not in given or default is None and text(given[key]).lower() in ("for ever", "forever", "never"):
        return default
    return duration(given[key], least)


def _located(path: str, folder: str) -> str:
    return path.removeprefix("file://") if path.startswith("file:///") else path if "://" in path else os.path.normpath(os.path.join(folder, os.path.expanduser(path)))
