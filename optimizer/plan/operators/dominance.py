"""Which extremes of a set by interval can still be one: those that another, at least as extreme and in the window already, does not outlive; SQL only."""
from __future__ import annotations

from optimizer.query.shape import Measure


def undominated(columns: list[str], own: tuple[Measure, ...], sql: str, counts: str) -> str:
    """Rows of `sql` with what is dominated set to NULL, and without rows of which nothing is left; `counts` says which count already.

    Of n panes of random values about ln n stay, so a running set's extremes hardly grow with its window.
    """
    names = {m.name for m in own}
    keys = [c for c in columns if c not in names]
    by = ", ".join(k for k in keys if k not in ("_in", "_out"))
    later = f"OVER ({f'PARTITION BY {by} ' if by else ''}ORDER BY _out DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    beaten = [f"{m.name} {'>=' if m.kind == 'min' else '<='} {m.kind}({m.name}) FILTER (WHERE {counts}) {later}" for m in own]
    values = [f"CASE WHEN COALESCE({b}, FALSE) THEN NULL ELSE {m.name} END AS {m.name}" for m, b in zip(own, beaten)]
    some = " OR ".join(f"{m.name} IS NOT NULL" for m in own)
    return f"SELECT * FROM (SELECT {', '.join(keys + values)} FROM ({sql}) AS q) AS left_over WHERE {some}"
