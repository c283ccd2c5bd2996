"""What is told of published rows by who wrote them, for a driver that does not see the rows: counts and sums by
boundary, to be held against what is expected of every sound answer.

Figures of files that share no group, added, are figures of all.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from expectations import derived
from jobs.engine import kernel
from jobs.engine.sums import Key, Sums, added
from optimizer.expression.dialect import identifier
from optimizer.query.model import Query
from optimizer.sharing.group import OWNER


@dataclass(frozen=True)
class Figures:
    """Of the rows of one query by (boundary,), of queries with a table in common by (query, boundary).

    `Figures({(60,): 2}, {}, {}, {(60,): ((7.0, 7.0),)})`: two rows at 60, none repeats another or has a count below 0,
    and their sum is 7, as is that of their absolute values. `repeated` are rows that repeat others.
    """

    rows: Mapping[Key, int] = field(default_factory=dict)
    repeated: Mapping[Key, int] = field(default_factory=dict)
    # Of each output that counts, where one of them is below 0.
    least: Mapping[Key, tuple[int | None, ...]] = field(default_factory=dict)
    sums: Sums = field(default_factory=dict)      # of each output that is conserved


@dataclass(frozen=True)
class Told:
    """What is to be told of a query's rows: `keys` tell its groups apart, None where some group is not shown."""

    by: tuple[str, ...]
    keys: tuple[str, ...] | None
    counts: tuple[str, ...]
    summed: tuple[str, ...]

    @staticmethod
    def of(query: Query, is_shared: bool) -> Told:
        summed = tuple(measured.output for measured in derived.conserved(query))
        return Told((OWNER,) if is_shared else (), derived.group_outputs(query), derived.counts(query), summed)


def figures(con: kernel.Connection, file: str, told: Told) -> Figures:
    """Of a Parquet file's rows."""
    by = ", ".join([*map(identifier, told.by), "epoch_us(boundary)"])
    columns = ["count(*)", *(f"min({identifier(name)})" for name in told.counts)]
    for name in told.summed:
        value = f"CAST({identifier(name)} AS DOUBLE)"
        columns += [f"coalesce(sum({value}), 0)", f"coalesce(sum(abs({value})), 0)"]
    source, width, counts = f"read_parquet({kernel.files(con, (file,))})", len(told.by) + 1, len(told.counts)
    rows: dict[Key, int] = {}
    least: dict[Key, tuple[int | None, ...]] = {}
    sums: Sums = {}
    for row in con.execute(f"SELECT {by}, {', '.join(columns)} FROM {source} GROUP BY ALL").fetchall():
        key, least_counts, values = row[:width], row[width + 1:width + 1 + counts], row[width + 1 + counts:]
        rows[key], sums[key] = row[width], tuple(zip(values[::2], values[1::2]))
        if any(count is not None and count < 0 for count in least_counts):
            least[key] = least_counts
    return Figures(rows, _repeated(con, source, by, told), least, sums)


def _repeated(con: kernel.Connection, source: str, by: str, told: Told) -> dict[Key, int]:
    if told.keys is None:
        return {}
    keys = ", ".join([*map(identifier, told.by), "boundary", *map(identifier, told.keys)])
    of_groups = f"SELECT {by}, count(*) FROM {source} GROUP BY {keys} HAVING count(*) > 1"
    repeated: dict[Key, int] = {}
    for row in con.execute(of_groups).fetchall():
        repeated[row[:-1]] = repeated.get(row[:-1], 0) + row[-1] - 1
    return repeated


def together(parts: Iterable[Figures]) -> Figures:
    parts = tuple(parts)
    rows: dict[Key, int] = {}
    repeated: dict[Key, int] = {}
    least: dict[Key, tuple[int | None, ...]] = {}
    for part in parts:
        for key, count in part.rows.items():
            rows[key] = rows.get(key, 0) + count
        for key, count in part.repeated.items():
            repeated[key] = repeated.get(key, 0) + count
        for key, values in part.least.items():
            pairs = zip(values, least.get(key, (None,) * len(values)))
            least[key] = tuple(min((v for v in pair if v is not None), default=None) for pair in pairs)
    return Figures(rows, repeated, least, added(part.sums for part in parts))
