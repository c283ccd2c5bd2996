"""warehouse/ledger/statistics: a row for each input of a sampled query and batch, for people to query and for a runner
to go on from; and one for each input of a query whose windows `forebay adapt` looked at.

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
from jobs.storage.tables import Conflict, Table
from optimizer.errors import ForebayError
from optimizer.expression.dialect import string
from optimizer.statistics.estimate import KEPT
from optimizer.statistics.samples import Sample, document, from_document

PATH = "ledger/statistics"
MANY = 64                # files before they are merged
STAYS = 20_000           # rows that stay when they are
ATTEMPTS = 20            # to append rows while another process does
LOOK = "/look"           # after the digest of a query's text: rows of a look at its windows, not of a batch
NUMBERS = ("rate", "window", "selectivity", "late", "combinations", "keys", "overlap", "heaviest", "groups", "fanout",
           "weight")
LOOKS = f"""SELECT query, text, epoch_us(boundary), input, seconds, sample FROM statistics
            WHERE text LIKE '%{LOOK}' AND sample IS NOT NULL
            QUALIFY dense_rank() OVER (PARTITION BY query, text ORDER BY boundary DESC) = 1 ORDER BY query, input"""
SCHEMA = pa.schema([("boundary", INSTANT), ("query", pa.string()), ("input", pa.int32()), ("alias", pa.string()),
                    ("source", pa.string()), ("rows", pa.int64()), ("seconds", pa.float64()),
                    *((name, pa.float64()) for name in NUMBERS), ("text", pa.string()), ("sample", pa.string())])


def rows(query: str, text: str, sample: Sample, figures: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row for each input, with its figures in columns for people and the sample itself as JSON for a runner."""
    common = {"dialect": sample.dialect, "groups": sample.groups, "joined": sample.joined}
    input_rows = []
    for i, (figures_of_input, of_input) in enumerate(zip(figures, sample.inputs)):
        sample_json = json.dumps({**common, **document(of_input)}, separators=(",", ":"))
        input_rows.append({**figures_of_input, "boundary": sample.at, "query": query, "input": i,
                           "rows": of_input.rows, "seconds": of_input.seconds or sample.seconds, "text": text,
                           "sample": sample_json})
    return input_rows


def append(pipe: OpenPipeline, input_rows: list[dict[str, Any]]) -> None:
    """A runner and `forebay adapt` append at once; whoever comes second does it again."""
    table, rows_to_add = pipe.table(PATH, SCHEMA), pa.Table.from_pylist(input_rows, schema=SCHEMA)
    for attempt in range(ATTEMPTS):
        try:
            table.refresh().append(rows_to_add)
            break
        except Conflict:
            if attempt == ATTEMPTS - 1:
                raise
    if len(table.files()) > MANY:
        _tidy(table)


def last(pipe: OpenPipeline, query: str, text: str) -> list[Sample]:
    """A query's last samples, newest first.

    None of another text of that name, and none where the table cannot be read.
    """
    try:
        return _last(pipe, query, text) if tables.exists(places.join(pipe.pipeline.warehouse, PATH)) else []
    # also rows of another version of this program
    except (ForebayError, tables.Broken, kernel.Error, OSError, LookupError, TypeError, ValueError):
        return []


def looks(pipe: OpenPipeline) -> dict[tuple[str, str], Sample]:
    """The newest look at each query's windows, by the query and the digest of its text.

    None where they cannot be read.
    """
    newest: dict[tuple[str, str], dict[int, tuple[int, float, str]]] = {}
    try:
        if tables.exists(places.join(pipe.pipeline.warehouse, PATH)):
            for query, text, boundary, i, seconds, sample in ask(pipe.table(PATH).refresh(), "statistics", LOOKS):
                newest.setdefault((query, text.removesuffix(LOOK)), {})[i] = (boundary, seconds, sample)
        return {key: _look(by_input) for key, by_input in newest.items()}
    except (ForebayError, tables.Broken, kernel.Error, OSError, LookupError, TypeError, ValueError):
        return {}


def _look(by_input: Mapping[int, tuple[int, float, str]]) -> Sample:
    boundary, seconds, _ = by_input[0]
    documents = [json.loads(by_input[i][2]) for i in sorted(by_input)]
    return Sample(boundary, seconds, tuple(map(from_document, documents)), documents[0]["dialect"])


def joins(pipe: OpenPipeline, query: str) -> dict[int, tuple[float, float]]:
    """By boundary at which a plan counted them: joined rows, and how many they are for each row of the windows."""
    if not tables.exists(places.join(pipe.pipeline.warehouse, PATH)):
        return {}
    counts = ask(
        pipe.table(PATH).refresh(), "statistics",
        f"""SELECT epoch_us(boundary), min(fanout), min(fanout) / nullif(sum("window"), 0) FROM statistics
        WHERE query = {string(query)} AND text NOT LIKE '%{LOOK}'
        GROUP BY boundary HAVING min(fanout) IS NOT NULL AND sum("window") > 0""")
    return {boundary: (joined_rows, per_row) for boundary, joined_rows, per_row in counts}


def _last(pipe: OpenPipeline, query: str, text: str) -> list[Sample]:
    rows = ask(pipe.table(PATH), "statistics", f"""SELECT epoch_us(boundary), seconds, sample FROM statistics
        WHERE query = {string(query)} AND text = {string(text)} AND sample IS NOT NULL
        QUALIFY dense_rank() OVER (ORDER BY boundary DESC) <= {KEPT} ORDER BY boundary DESC, input""")
    by_boundary: dict[int, list[tuple[float, dict[str, Any]]]] = {}
    for boundary, seconds, sample in rows:
        by_boundary.setdefault(boundary, []).append((seconds, json.loads(sample)))
    samples = []
    for boundary, inputs in by_boundary.items():
        seconds_of_first, first = inputs[0]
        # an input without seconds in its JSON has those of the whole batch
        seconds = next((s for s, document in inputs if document["seconds"] is None), seconds_of_first)
        input_samples = tuple(from_document(document) for _, document in inputs)
        samples.append(Sample(boundary, seconds, input_samples, first["dialect"], first["groups"], first["joined"]))
    return samples


def _tidy(table: Table) -> None:
    """One file of many: the newest rows, and samples only where they are still merged."""
    con, paths = kernel.shared(), table.paths
    try:
        newest_rows = kernel.table(
            con, f"""SELECT * EXCLUDE (age) REPLACE (CASE WHEN age <= {KEPT} THEN sample END AS sample) FROM (
            SELECT *, row_number() OVER (PARTITION BY query, text, input ORDER BY boundary DESC) AS age FROM
            read_parquet({kernel.files(con, paths)})
            ORDER BY boundary DESC LIMIT {STAYS}) ORDER BY boundary, query, input""")
    finally:
        con.close()
    table.commit([tables.write(table.path, newest_rows.cast(table.schema), tables.unique("merged"))],
                 [f.path for f in table.files()])
