"""What a pipeline's tables need between batches: the ledger's small files merged, rows that `keep` lets go taken out,
files that nobody reads deleted.
"""
from __future__ import annotations

from typing import Any

from jobs.expectations import gate as expect
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.maintenance import compact, repair, retention
from jobs.run import Loop
from jobs.storage import places, tables
from jobs.storage.lock import held
from optimizer.errors import ForebayError


def upkeep(loop: Loop) -> dict[str, Any]:
    """Finishes what a crash left, tidies, and reports what left which table. Runs do the same after their batches; this
    is for pipelines that rest.

    Of a batch that a critical expectation stops nothing is touched: what it reads when it is run again must be there
    then, and it is not for upkeep to fail."""
    pipe = loop.pipe
    with held(pipe.pipeline.warehouse), repair.explaining(pipe):
        before = _noted(pipe)
        try:
            recovered = len(loop.recover())
        except ForebayError as error:
            if error.code != expect.STOPPED:
                raise
            return {"recovered": 0, "left": [], "stopped": str(error)}
        pipe.ledger.tidy()
        retention.leave(pipe, retention.horizons(pipe))
        compact.sweep(pipe)
        compact.trim_logs(pipe)
        return {"recovered": recovered, "left": _noted(pipe)[len(before):], "stopped": None}


def _noted(pipe: OpenPipeline) -> list[dict[str, Any]]:
    path = places.join(pipe.pipeline.warehouse, "ledger", "maintenance")
    if not tables.exists(path):
        return []
    rows = tables.open_table(path).rows()
    in_order = rows.sort_by("at").drop_columns(["at"]).to_pylist()
    return [{"table": row["table"], "files": row["files"], "rows": row["rows"]} for row in in_order]
