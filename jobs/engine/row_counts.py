"""How many rows of a table each boundary has; files that belong to one boundary are not read."""
from __future__ import annotations

from jobs.engine import kernel
from jobs.storage import places
from jobs.storage.tables import Table


def by_boundary(table: Table, after: int, upto: int, column: str = "_boundary") -> list[tuple[int, int]]:
    """Rows by boundary, after < boundary ≤ upto; of a stream by the one that first counts them."""
    counts, mixed = [], []
    for file in table.files():
        low, high = file.low.get(column), file.high.get(column)
        if low is not None and low == high:
            counts += [(low, file.rows)] if after < low <= upto else []
        elif file.may_hold(column, after + 1, upto):
            mixed.append(places.join(table.path, file.path))
    if mixed:
        con = kernel.shared()
        sql = f"SELECT epoch_us({column}), count(*) FROM read_parquet({kernel.files(con, tuple(mixed))}) GROUP BY 1"
        counts += [(boundary, rows) for boundary, rows in con.execute(sql).fetchall() if after < boundary <= upto]
    return counts
