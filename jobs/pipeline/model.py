"""What a pipeline is, as frozen values; where they come from (see jobs.pipeline.config) and what is done with them is
not known here. Durations are in microseconds."""
from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from optimizer.expression.types import Type
from optimizer.query.model import Catalog
from optimizer.time import DAY

HOUR = 3600 * 10**6
ENDLESS = 2**62                        # a length that nothing exceeds, in microseconds


@dataclass(frozen=True)
class Source:
    """Where rows come from: `files` (the ending tells the format), a forced `json` or `csv`, a `delta` table, a `kafka`
    topic. `path` is absolute, a URI, or the topic."""

    kind: str
    path: str
    options: Mapping[str, str] = field(default_factory=dict)
    changed_files: str = "refuse"      # or `add`: what becomes of a file whose content changed under its name


@dataclass(frozen=True)
class Stream:
    """Durations in microseconds; `idle` None: never idle; `keep` None: for ever.

    `behind`: how far before the newest row of any stream a row may be while no boundary has begun; ENDLESS: any; None:
    a long gap decides.
    """

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
    behind: int | None = None


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
    """Where tasks run. `when` they do at all: `auto`, by the size of what a command by hand does, `always`, `never`, or
    what the caller takes for the default (None).
    """

    master: str = "local[*]"
    remote: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    when: str | None = None


@dataclass(frozen=True)
class Pipeline:
    """`folder` is absolute, `warehouse` absolute or a URI.

    `batch` and `latency` in microseconds. `tracking`: MLflow's place, "" for none, None: by default. `decide` says
    where plans are decided, by a `task` or in each `batch`; `cost_model` by which prices, `measured` or the `paper`'s.
    `keep_versions`: how long, in microseconds, files stay that a table which people read has replaced.
    """

    name: str
    folder: str
    warehouse: str
    batch: int
    streams: Mapping[str, Stream]
    relations: Mapping[str, Relation]
    schedule: Schedule | None = None
    spark: Spark = Spark()
    latency: int | None = None
    tracking: str | None = None
    decide: str = "batch"
    cost_model: str = "measured"
    keep_versions: int = 7 * DAY

    @property
    def sensitive(self) -> Mapping[str, frozenset[str]]:
        """Columns whose values are not to be shown, by source."""
        of_streams = {name: stream.sensitive for name, stream in self.streams.items()}
        of_relations = {name: relation.sensitive for name, relation in self.relations.items()}
        return of_streams | of_relations

    def beside(self, name: str) -> str:
        """Where what is no table is: beside the tables, or in the pipeline's folder where they are in a store."""
        return os.path.join(os.path.join(self.folder, ".forebay") if "://" in self.warehouse else self.warehouse, name)


def catalog(pipeline: Pipeline) -> Catalog:
    """The pipeline's names as queries see them."""
    streams = tuple((s.name, s.event_time, tuple(s.columns.items())) for s in pipeline.streams.values())
    return Catalog(pipeline.batch, streams,
                   tuple((r.name, tuple(r.columns.items())) for r in pipeline.relations.values()))
