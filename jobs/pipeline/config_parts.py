"""The parts of forebay.yml that say where rows come from, where Spark runs and when; each is read from its lines into a value or refused."""
from __future__ import annotations

import os
import re
from collections.abc import Mapping

from jobs.pipeline.lines import Entry, fields, items, refused, text
from jobs.pipeline.model import Schedule, Source, Spark
from jobs.storage import places
from optimizer.errors import ForebayError

RELATION_SOURCES = ("files", "json", "csv", "delta")
STREAM_SOURCES = (*RELATION_SOURCES, "kafka")
_CSV_OPTIONS = ("delimiter", "quote", "null")
_SEPARATOR = re.compile(r"[\x01-\x09\x0b\x0c\x0e-\x7f]")
_STRANGE = re.compile(r"[#?\\\x00-\x1f\x7f\ud800-\udfff]|%[0-9A-Fa-f]{2}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_MASTER = re.compile(r"inline|local(-cluster)?(\[[\d*, ]+\])?|(spark|sc|k8s)://\S+|yarn")
_MASTERS = "known are local[*], local[N], spark://HOST:PORT, sc://HOST:PORT, yarn, k8s://URL and inline"
_CRON = re.compile(r"([\d*/,A-Za-z#?L-]+\s+){4}[\d*/,A-Za-z#?L-]+")
_STORES = ("http", "https", "sqlite", "postgresql", "mysql", "mssql")
_TRACKING = re.compile(rf"({'|'.join(_STORES)})(\+\w+)?://\S+$")
_CRON_NAMES = ("@hourly", "@daily", "@weekly", "@monthly", "@yearly")


def source(entry: Entry, folder: str, kinds: tuple[str, ...], settings: Mapping[str, str]) -> Source:
    """`settings` say how stores are reached."""
    given = fields(entry, (*kinds, *_CSV_OPTIONS))
    chosen = [k for k in kinds if k in given]
    if len(chosen) != 1:
        raise refused(entry, "bad-config", f"{entry.where} names {' and '.join(chosen) or 'no source'}", f"name one of {', '.join(kinds)}")
    kind = chosen[0]
    if kind == "kafka":
        return _kafka(given[kind])
    options = {k: text(given[k]) for k in _CSV_OPTIONS if k in given}
    for k in options:
        if kind in ("json", "delta"):
            raise refused(given[k], "unknown-key", f"{given[k].where} is for CSV files only", f"leave it out with {kind}")
        if k != "null" and not _SEPARATOR.fullmatch(options[k]):
            hint = "it is one character of ASCII, and no line end"
            raise refused(given[k], "bad-config", f"{given[k].where} is {options[k]!r}", hint)
    if options.get("delimiter", ",") == options.get("quote", '"'):
        message = f"{entry.where} has one character as delimiter and as quote"
        raise refused(entry, "bad-config", message, "name another delimiter or quote")
    path = reached(given[kind], folder, settings)
    return Source(kind, table_place(path, given[kind]) if kind == "delta" else path, options)


def _kafka(entry: Entry) -> Source:
    """Options are the Kafka client's own, as `security.protocol`; `$NAME` is taken from the environment, so that no secret need stand in the file."""
    given = fields(entry, ("servers", "topic", "options"), ("servers", "topic"))
    options = {"kafka.bootstrap.servers": text(given["servers"])}
    for key, value in (items(given["options"]) if "options" in given else {}).items():
        options[f"kafka.{key.removeprefix('kafka.')}"] = _from_environment(value)
    if not _TOPIC.fullmatch(text(given["topic"])):
        raise refused(given["topic"], "bad-name", f"{text(given['topic'])!r} is not a topic", "a topic has letters, digits, ., _ and -")
    return Source("kafka", text(given["topic"]), options)


def _from_environment(entry: Entry) -> str:
    value = text(entry)
    if not re.fullmatch(r"\$[A-Z_][A-Z0-9_]*", value):
        return value
    if value[1:] not in os.environ:
        raise refused(entry, "bad-config", f"{entry.where} is {value}, which the environment does not have", f"export {value[1:]} first")
    return os.environ[value[1:]]


def schedule(entry: Entry) -> Schedule:
    if entry.mapping:
        return Schedule("asset", text(fields(entry, ("asset",), ("asset",))["asset"]))
    value = text(entry).strip()
    if value == "continuous":
        return Schedule("continuous")
    if value not in _CRON_NAMES and not _CRON.fullmatch(value):
        raise refused(entry, "bad-config", f"{entry.where} is {value!r}", "write `continuous`, five cron fields as \"*/5 * * * *\", or {asset: TABLE}")
    return Schedule("cron", value)


def tracking(entry: Entry, folder: str) -> str:
    """A server or database by URI, a folder for a database of its own, or `off`."""
    value = text(entry).strip()
    if value in ("off", "false"):
        return ""
    if "://" in value and not _TRACKING.match(value):
        known = ", ".join(f"{scheme}://" for scheme in _STORES)
        raise refused(entry, "bad-config", f"{entry.where} is {value!r}", f"write a server or database as {known}…, a folder, or off")
    return value if _TRACKING.match(value) else located(value, folder)


def spark(entry: Entry | None) -> Spark:
    """FOREBAY_MASTER is stronger than the file."""
    given = fields(entry, ("master", "remote", "settings")) if entry is not None and not entry.empty else {}
    if "master" in given and "remote" in given:
        raise refused(given["remote"], "bad-config", "spark has a master and a remote", "keep one")
    settings = {k: text(v) for k, v in items(given["settings"]).items()} if "settings" in given else {}
    forced, said = os.environ.get("FOREBAY_MASTER"), given.get("remote") or given.get("master")
    place = forced or (text(said) if said else "local[*]")
    if said is not None and not forced and ("remote" in given and not place.startswith("sc://") or not _MASTER.fullmatch(place)):
        raise refused(said, "bad-config", f"{said.where} is {place!r}", "a Spark Connect server is sc://HOST:PORT" if "remote" in given else _MASTERS)
    if not _MASTER.fullmatch(place):
        raise ForebayError("bad-config", f"FOREBAY_MASTER is {place!r}", hint=_MASTERS)
    return Spark("local[*]", place, settings) if place.startswith("sc://") else Spark(place, None, settings)


def reached(entry: Entry, folder: str, settings: Mapping[str, str]) -> str:
    """A path or URI as jobs.storage.places takes it."""
    try:
        return places.place(located(text(entry), folder), settings)
    except ForebayError as error:
        raise refused(entry, error.code, error.message, error.hint) from None


def table_place(path: str, entry: Entry | None) -> str:
    """The path of tables, unless Delta's libraries would take it for another: to them it is a part of a URI."""
    strange = None if "://" in path else _STRANGE.search(path)
    if strange is None:
        return path
    message = f"{path!r} cannot hold tables: Delta's libraries take {strange[0]!r} in a path for something else"
    hint = "rename the folder, or name another: without #, ?, \\, control characters, and % before two digits"
    raise ForebayError("bad-path", message, hint=hint) if entry is None else refused(entry, "bad-path", message, hint)


def located(path: str, folder: str) -> str:
    """An absolute path, or the URI as it is."""
    if "://" in path:
        return path.removeprefix("file://")
    return os.path.normpath(os.path.join(folder, os.path.expanduser(path)))
