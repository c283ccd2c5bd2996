"""warehouse/ledger/costs: the unit costs that batches have taught, for the next process on a machine like this one."""
from __future__ import annotations

import json

import pyarrow as pa

from jobs.calibrate import machine as calibrate
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.storage import tables
from optimizer.cost.measured import UnitCosts, read

COSTS_PATH = "ledger/costs"
COSTS = pa.schema([("at", pa.timestamp("us", "UTC")), ("measurements", pa.int64()), ("machine", pa.string()),
                   ("document", pa.string())])


def last_coefficients(pipe: OpenPipeline) -> UnitCosts:
    """As the last process left them, if it ran on a machine like this one; else this machine's."""
    place, here = pipe.path(COSTS_PATH), _here()
    # Without instants, of which Arrow would make Python values by importing pandas: commands that only show read these.
    rows = tables.open_table(place).rows().drop_columns(["at"]).to_pylist() if tables.exists(place) else []
    newest = max((row for row in rows if row["machine"] == here), key=lambda row: row["measurements"], default=None)
    return calibrate.coefficients() if newest is None else read(json.loads(newest["document"]))


def write(pipe: OpenPipeline, fitted: UnitCosts) -> None:
    """In the place of those before: a file, not a history."""
    table = pipe.table(COSTS_PATH, COSTS)
    row = {"at": pipe.clock(), "measurements": fitted.measurements, "machine": _here(),
           "document": json.dumps(fitted.document())}
    rows = pa.Table.from_pylist([row], schema=COSTS)
    files_before = [file.path for file in table.files()]
    table.commit([tables.write(table.path, rows, tables.unique("costs"))], files_before)


def _here() -> str:
    return json.dumps(calibrate.machine(), sort_keys=True)
