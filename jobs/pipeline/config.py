"""A pipeline folder as one value: what its forebay.yml says, its defaults, its paths made absolute; opens no table."""
from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from jobs.pipeline import document, forms
from jobs.pipeline.document import KafkaKeys, PipelineKeys, RelationSource, SparkKeys, StreamSource
from jobs.pipeline.lines import Entry, at
from jobs.pipeline.lines import document as yaml_document
from jobs.pipeline.lines import refused
from jobs.pipeline.model import Pipeline, Relation, Schedule, Source, Spark, Stream, catalog
from jobs.storage import places
from optimizer.errors import ForebayError

__all__ = ["FILE", "INLINE", "Pipeline", "Relation", "Schedule", "Source", "Spark", "Stream", "catalog", "load"]
FILE = "forebay.yml"
INLINE = "inline"                      # a master: tasks run in this process, without Spark
_MASTER = re.compile(r"inline|local(-cluster)?(\[[\d*, ]+\])?|(spark|sc|k8s)://\S+|yarn")
_MASTERS = "known are local[*], local[N], spark://HOST:PORT, sc://HOST:PORT, yarn, k8s://URL and inline"
_STRANGE = re.compile(r"[#?\\\x00-\x1f\x7f\ud800-\udfff]|%[0-9A-Fa-f]{2}")
_VARIABLE = re.compile(r"\$[A-Z_][A-Z0-9_]*")


@dataclass(frozen=True)
class _File:
    """A forebay.yml that is being read: where its values stand, and what its paths are relative to."""

    root: Entry
    folder: str
    settings: Mapping[str, str]        # how stores are reached

    def refused(self, way: tuple[str, ...], code: str, says: str, hint: str | None = None) -> ForebayError:
        return refused(at(self.root, way), code, says, hint)

    def reached(self, path: str, way: tuple[str, ...]) -> str:
        """A path or URI as jobs.storage.places takes it."""
        try:
            return places.place(located(path, self.folder), self.settings)
        except ForebayError as error:
            raise self.refused(way, error.code, error.message, error.hint) from None

    def table(self, path: str, way: tuple[str, ...]) -> str:
        """The path of tables, unless Delta's libraries would take it for another: to them it is a part of a URI."""
        place = self.reached(path, way)
        strange = None if "://" in place else _STRANGE.search(place)
        if strange is None:
            return place
        message = f"{place!r} cannot hold tables: Delta's libraries take {strange[0]!r} in a path for something else"
        hint = "rename the folder, or name another: without #, ?, \\, control characters, and % before two digits"
        if at(self.root, way) is self.root:      # the default warehouse stands in no line
            raise ForebayError("bad-path", message, hint=hint)
        raise self.refused(way, "bad-path", message, hint)


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
        hint = "it must be a UTF-8 text that you may read"
        raise ForebayError("bad-yaml", f"{path} cannot be read: {error}", hint=hint) from error
    root = yaml_document(content, path)
    return _pipeline(document.read(root), root, folder)


def _pipeline(keys: PipelineKeys, root: Entry, folder: str) -> Pipeline:
    engine = _spark(keys.spark or SparkKeys.model_validate({}), root)
    file = _File(root, folder, engine.settings)
    streams = {name: _stream(name, keys, file) for name in keys.streams}
    relations = {}
    for name, relation in keys.relations.items():
        source = _source(relation.source, ("relations", name, "source"), file)
        relations[name] = Relation(name, document.column_types(relation.columns), source,
                                   document.sensitive(relation.columns))
    tracking = keys.tracking      # a server or database by URI, a folder for a database in it, "" for none
    if tracking in ("off", "false"):
        tracking = ""
    elif tracking is not None and not forms.TRACKING.match(tracking):
        tracking = located(tracking, folder)
    warehouse = file.table(keys.warehouse or "warehouse", ("warehouse",))
    schedule = None
    if keys.schedule == "continuous":
        schedule = Schedule("continuous")
    elif isinstance(keys.schedule, str):
        schedule = Schedule("cron", keys.schedule)
    elif keys.schedule is not None:
        schedule = Schedule("asset", keys.schedule.asset)
    decide = keys.decide or ("task" if schedule else "batch")
    return Pipeline(keys.name, folder, warehouse, keys.batch, streams, relations, schedule, engine, keys.latency,
                    tracking, decide, keys.cost_model, keys.keep_versions)


def _stream(name: str, keys: PipelineKeys, file: _File) -> Stream:
    stream = keys.streams[name]
    source = _source(stream.source, ("streams", name, "source"), file) if stream.source else None
    return Stream(name, document.column_types(stream.columns), stream.event_time, stream.wait, stream.lateness,
                  stream.idle, stream.ahead, stream.keep, stream.unknown_columns, source,
                  document.sensitive(stream.columns), keys.behind if stream.behind is None else stream.behind)


def _source(source: RelationSource, way: tuple[str, ...], file: _File) -> Source:
    (kind, place), = source.places.items()
    if kind == "kafka":
        return Source("kafka", place.topic, _kafka_options(place, (*way, "kafka", "options"), file))
    path = file.table(place, (*way, kind)) if kind == "delta" else file.reached(place, (*way, kind))
    changed_files = source.changed_files if isinstance(source, StreamSource) else None
    return Source(kind, path, source.options, changed_files or "refuse")


def _kafka_options(kafka: KafkaKeys, way: tuple[str, ...], file: _File) -> dict[str, str]:
    """The Kafka client's own; `$NAME` is taken from the environment, so that no secret need stand in the file."""
    options = {"kafka.bootstrap.servers": kafka.servers}
    for key, value in kafka.options.items():
        if _VARIABLE.fullmatch(value):
            if value[1:] not in os.environ:
                says = f"{'.'.join((*way, key))} is {value}, which the environment does not have"
                raise file.refused((*way, key), "bad-config", says, f"export {value[1:]} first")
            value = os.environ[value[1:]]
        options[f"kafka.{key.removeprefix('kafka.')}"] = value
    return options


def _spark(keys: SparkKeys, root: Entry) -> Spark:
    """FOREBAY_MASTER is stronger than the file, also than what it says of `when`."""
    forced = os.environ.get("FOREBAY_MASTER")
    if forced:
        if not _MASTER.fullmatch(forced):
            raise ForebayError("bad-config", f"FOREBAY_MASTER is {forced!r}", hint=_MASTERS)
        place = forced
    elif keys.remote is not None:
        place = keys.remote
        if not place.startswith("sc://") or not _MASTER.fullmatch(place):
            hint = "a Spark Connect server is sc://HOST:PORT"
            raise refused(at(root, ("spark", "remote")), "bad-config", f"spark.remote is {place!r}", hint)
    else:
        place = keys.master if keys.master is not None else "local[*]"
        if not _MASTER.fullmatch(place):
            raise refused(at(root, ("spark", "master")), "bad-config", f"spark.master is {place!r}", _MASTERS)
    when = "always" if forced else keys.when
    if place.startswith("sc://"):
        return Spark("local[*]", place, keys.settings, when)
    return Spark(INLINE if when == "never" else place, None, keys.settings, when)


def located(path: str, folder: str) -> str:
    """An absolute path, or the URI as it is."""
    if "://" in path:
        return path.removeprefix("file://")
    return os.path.normpath(os.path.join(folder, os.path.expanduser(path)))
