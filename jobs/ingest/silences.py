"""Long silences: many boundaries in a row at which no stream has a row, as far as rows are stored.

Exact: of a file that spans fewer boundaries only the first and the last can stand beside such a hole, and its bounds
tell them; files that span more are read.
"""
from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from jobs.engine import kernel
from jobs.pipeline.warehouse import Warehouse
from jobs.storage import places, tables

LONG = 100_000             # boundaries without a row from which on a silence is a long one (INTERFACE, "Healing")


@dataclass(frozen=True)
class Silence:
    """The boundaries between two with rows, neither counted; microseconds.

    With batches of 10 s, `Silence(10, 60)` is silent at 20, 30, 40 and 50.
    """

    after: int
    until: int

    def boundaries(self, batch: int) -> int:
        return (self.until - self.after) // batch - 1


def long_silences(warehouse: Warehouse, streams: Collection[str], batch: int, since: int = 0) -> list[Silence]:
    """Those that end after the boundary `since`, in order: all streams together have no row there."""
    bounds, wide = set[int](), list[str]()
    for stream in sorted(streams):
        if tables.exists(warehouse.path("streams", stream)):
            table = warehouse.latest(f"streams/{stream}")
            for file in table.files():
                low, high = file.low.get("_boundary"), file.high.get("_boundary")
                if low is not None and high is not None and (high <= since or _boundaries(low, high, batch) <= LONG):
                    bounds |= {low, high}
                else:
                    wide.append(places.join(table.path, file.path))
    return _holes(bounds, tuple(wide), batch, since)


def _boundaries(first: int, last: int, batch: int) -> int:
    return (last - first) // batch + 1


def _holes(bounds: Collection[int], wide: tuple[str, ...], batch: int, since: int) -> list[Silence]:
    con = kernel.shared()
    try:
        of_files = f"UNION SELECT epoch_us(_boundary) FROM read_parquet({kernel.files(con, wide)})" if wide else ""
        pairs = con.execute(f"""SELECT before, t FROM (SELECT t, lag(t) OVER (ORDER BY t) AS before FROM (
            SELECT unnest(CAST(? AS BIGINT[])) AS t {of_files}))
            WHERE t > {since} AND (t - before) // {batch} - 1 > {LONG} ORDER BY t""", [sorted(bounds)]).fetchall()
    finally:
        con.close()
    return [Silence(before, until) for before, until in pairs]
