"""An open pipeline: everything that a command may touch, in one value that is handed down."""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa

from jobs.engine.tasks import Tasks
from jobs.ledger.ledger import Ledger
from jobs.pipeline.model import Pipeline, catalog
from jobs.pipeline.warehouse import Warehouse
from jobs.storage import places
from jobs.storage.tables import Table
from optimizer.query.model import Catalog

HANDOVER = "handover"        # folder in which tasks leave results too large for Spark to pass on; the driver takes them away
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class OpenPipeline:
    """A pipeline with its ledger, its tasks and a clock. Example: `run(open_pipeline(load("shop")))` runs what is complete.

    What a room remembers between batches is a class of its own there (`Samples`, `Groups`, `Choices`, …); `memory` gives the one of this pipeline.
    """

    pipeline: Pipeline
    warehouse: Warehouse
    ledger: Ledger
    tasks: Tasks
    engine: str | None = None
    clock: Callable[[], int] = lambda: time.time_ns() // 1000
    memories: dict[type, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def catalog(self) -> Catalog:
        return catalog(self.pipeline)

    def memory(self, kind: type[Kind]) -> Kind:
        """What the room that defines `kind` remembers of this pipeline; empty at first."""
        if kind not in self.memories:
            self.memories[kind] = kind()
        remembered: Kind = self.memories[kind]
        return remembered

    def table(self, path: str, schema: pa.Schema | None = None, properties: Mapping[str, str] | None = None) -> Table:
        """A table of the warehouse, made if there is none and a schema is given; the handle is kept, so following it costs a few file look-ups."""
        return self.warehouse.table(path, schema, properties)

    def path(self, *parts: str) -> str:
        return self.warehouse.path(*parts)


def open_pipeline(pipeline: Pipeline, engine: str | None = None, asked_by: str = "", lasting: bool = False) -> OpenPipeline:
    """`asked_by`: a kind of trigger and a DAG run, for the ledger; `lasting`: Spark is used only while the pipeline is held, so a session may be shared."""
    spark = pipeline.spark
    tasks = Tasks(spark.remote or spark.master, dict(spark.settings), pipeline.warehouse if lasting else "",
                  places.join(pipeline.warehouse, HANDOVER))
    return OpenPipeline(pipeline, Warehouse(pipeline.warehouse), Ledger(pipeline.warehouse, asked_by), tasks, engine)
