"""warehouse/ledger/statistics: a row for each input of a sampled query and batch, for people to query and for a runner
to go on from.

It may lose rows.
"""
from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from jobs.engine import kernel
from jobs.engine.small_tables import ask
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.pipeline.schema import INSTANT
from jobs.storage import places, tables
from jobs.storage.tables import Table
from optimizer.errors import ForebayError
from optimizer.expression.dialect import string
from optimizer.statistics.estimate import KEPT
from optimizer.statistics.samples import Sample, document, from_document

PATH = "ledger/statistics"
MANY = 64                # files before they are merged
STAYS = 20_000           # rows that stay when they are
NUMBERS = ("rate", "window", "selectivity", "late", "combinations", "keys", "overlap", "heaviest", "groups", "fanout",
           "weight")
SCHEMA = pa.schema([("boundary", INSTANT), ("query", pa.string()), ("input", pa.int32()), ("alias", pa.string()),
                    ("source", pa.string()), ("rows", pa.int64()), ("seconds", pa.float64()),
                    *((name, pa.float64()) for name in NUMBERS), ("text", pa.string()), ("sample", pa.string())])


def rows(query: str, text: str, sample: Sample, told: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """`told` has what is said of each input; the sample itself goes along as JSON."""
    common = {"dialect": sample.dialect, "groups": sample.groups, "joined": sample.joined}
    return [{
        **said, "boundary": sample.at,
        "query": query,
        "input": i,
        "rows": found.rows,
        "seconds": found.seconds or sample.seconds,
        "text": text,
        "sample": json.dumps({
            **common,
            **document(found)
        }, separators=(",", ":"))
    } for i, (said, found) in enumerate(zip(told, sample.inputs))]


def append(rt: OpenPipeline, found: list[dict[str, Any]]) -> None:
    table = rt.table(PATH, SCHEMA)
    table.append(pa.Table.from_pylist(found, schema=SCHEMA))
    if len(table.files()) > MANY:
        _tidy(table)


def last(rt: OpenPipeline, query: str, text: str) -> list[Sample]:
    """A query's last samples, newest first.

    None of another text of that name, and none where the table cannot be read.
    """
    try:
        return _last(rt, query, text) if tables.exists(places.join(rt.pipeline.warehouse, PATH)) else []
    # also rows of another version of this program
    except (ForebayError, tables.Broken, kernel.Error, OSError, LookupError, TypeError, ValueError):
        return []


def joins(rt: OpenPipeline, query: str) -> dict[int, tuple[float, float]]:
    """By boundary at which a plan counted them: joined rows, and how many they are for each row of the windows."""
    if not tables.exists(places.join(rt.pipeline.warehouse, PATH)):
        return {}
    found = ask(
        rt.table(PATH).refresh(), "statistics",
        f"""SELECT epoch_us(boundary), min(fanout), min(fanout) / nullif(sum("window"), 0) FROM statistics
        WHERE query = {string(query)} GROUP BY boundary HAVING min(fanout) IS NOT NULL AND sum("window") > 0""")
    return {t: (rows, each) for t, rows, each in found}


def _last(rt: OpenPipeline, query: str, text: str) -> list[Sample]:
    found = ask(rt.table(PATH), "statistics", f"""SELECT epoch_us(boundary), seconds, sample FROM statistics
        WHERE query = {string(query)} AND text = {string(text)} AND sample IS NOT NULL
        QUALIFY dense_rank() OVER (ORDER BY boundary DESC) <= {KEPT} ORDER BY boundary DESC, input""")
    by_boundary: dict[int, list[tuple[float, dict[str, Any]]]] = {}
    for boundary, seconds, sample in found:
        by_boundary.setdefault(boundary, []).append((seconds, json.loads(sample)))
    return [_sample(at, parts) for at, parts in by_boundary.items()]


def _sample(at: int, parts: list[tuple[float, dict[str, Any]]]) -> Sample:
    said = parts[0][1]
    seconds = next((s for s, p in parts if p["seconds"] is None), parts[0][0])
    return Sample(at, seconds, tuple(from_document(p) for _, p in parts), said["dialect"], said["groups"],
                  said["joined"])


def _tidy(table: Table) -> None:
    """One file of many: the newest rows, and samples only where they are still merged."""
    con, paths = kernel.shared(), table.paths
    try:
        kept = kernel.table(
            con, f"""SELECT * EXCLUDE (age) REPLACE (CASE WHEN age <= {KEPT} THEN sample END AS sample) FROM (
            SELECT *, row_number() OVER (PARTITION BY query, input ORDER BY boundary DESC) AS age FROM
            read_parquet({kernel.files(con, paths)})
            ORDER BY boundary DESC LIMIT {STAYS}) ORDER BY boundary, query, input""")
    finally:
        con.close()
    table.commit([tables.write(table.path, kept.cast(table.schema), tables.unique("merged"))],
                 [f.path for f in table.files()])
