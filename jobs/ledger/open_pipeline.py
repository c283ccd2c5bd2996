"""An open pipeline: everything that a command may touch, in one value that is handed down."""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from jobs.engine.tasks import Tasks
from jobs.ledger.ledger import Ledger
from jobs.pipeline.model import Pipeline, catalog
from jobs.pipeline.warehouse import Warehouse
from jobs.storage import places
from jobs.storage.tables import Table
from optimizer.query.model import Catalog

# Folder in which tasks leave results too large for Spark to pass on; the driver takes them away.
HANDOVER = "handover"


@dataclass(frozen=True)
class OpenPipeline:
    """A pipeline with its tables, its ledger, its tasks and a clock.

    `Loop(open_pipeline(load("shop"))).run()` runs what is complete. It remembers nothing of what is decided or
    measured: see `jobs.run.Loop` for who does.
    """

    pipeline: Pipeline
    warehouse: Warehouse
    ledger: Ledger
    tasks: Tasks
    catalog: Catalog
    engine: str | None = None
    clock: Callable[[], int] = lambda: time.time_ns() // 1000

    def table(self, path: str, schema: pa.Schema | None = None, properties: Mapping[str, str] | None = None) -> Table:
        """A table of the warehouse, as this process last saw it; created if there is none and a schema is given."""
        return self.warehouse.table(path, schema, properties)

    def path(self, *parts: str) -> str:
        return self.warehouse.path(*parts)


def open_pipeline(pipeline: Pipeline, engine: str | None = None, asked_by: str = "", lasting: bool = False,
                  by_size: Callable[[str], None] | None = None) -> OpenPipeline:
    """`asked_by` is a kind of trigger and a DAG run, for the ledger.

    `lasting`: Spark is used only while the pipeline is held, so a session may be shared. `by_size`: unless forebay.yml
    says when Spark is wanted, the size of the work decides, and this is told.
    """
    spark = pipeline.spark
    tell = by_size if spark.when in (None, "auto") and engine != "jvm" else None
    tasks = Tasks(spark.remote or spark.master, dict(spark.settings), pipeline.warehouse if lasting else "",
                  places.join(pipeline.warehouse, HANDOVER), tell)
    warehouse, ledger = Warehouse(pipeline.warehouse), Ledger(pipeline.warehouse, asked_by)
    return OpenPipeline(pipeline, warehouse, ledger, tasks, catalog(pipeline), engine)
