"""How many rows of a stream each boundary counts first; files that belong to one boundary are not read."""
from __future__ import annotations

from jobs.engine import kernel
from jobs.storage import places
from jobs.storage.tables import Table


def by_boundary(table: Table, after: int, upto: int) -> list[tuple[int, int]]:
    """Rows by the boundary that first counts them, after < boundary ≤ upto."""
    counts, mixed = [], []
    for file in table.files():
        low, high = file.low.get("_boundary"), file.high.get("_boundary")
        if low is not None and low == high:
            counts += [(low, file.rows)] if after < low <= upto else []
        elif file.may_hold("_boundary", after + 1, upto):
            mixed.append(places.join(table.path, file.path))
    if mixed:
        con = kernel.shared()
        sql = f"SELECT epoch_us(_boundary), count(*) FROM read_parquet({kernel.files(con, tuple(mixed))}) GROUP BY 1"
        counts += [(boundary, rows) for boundary, rows in con.execute(sql).fetchall() if after < boundary <= upto]
    return counts
