"""A generated stream as tables, and as Parquet files that `forebay ingest` takes: strings to group and to join by,
integers to aggregate, as in paper A.

Tables are made one after another, so a stream may be longer than memory. Each has its own seed: the k-th is the same
whatever the others are.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from jobs.papers.generator import SECOND, Drift, GeneratedStream, Tuples, generated, refused
from jobs.storage import tables
from jobs.storage.tables import File

START = 1_356_998_400 * SECOND      # 2013-01-01T00:00:00Z
ROWS = 1_000_000                    # of a file, about


def written(stream: GeneratedStream, seconds: float, folder: str, seed: int = 0, drifts: Sequence[Drift] = (),
            rows: int = ROWS) -> Iterator[File]:
    """One file after another, in order of arrival; a file never spans a drift point."""
    for number, piece in enumerate(pieces(stream, seconds, seed, drifts, rows)):
        yield tables.write(folder, piece, f"part-{number:05}.parquet")


def pieces(stream: GeneratedStream, seconds: float, seed: int = 0, drifts: Sequence[Drift] = (),
           rows: int = ROWS) -> Iterator[pa.Table]:
    """A stream as tables of about so many rows each."""
    if rows < 1:
        raise refused(f"{rows} rows a piece", "expected at least one")
    number = 0
    for nature, first, last in _natures(stream, seconds, drifts):
        total = round(nature.rate * (last - first))
        files = max(1, round(total / rows))
        for begun, ended in ((total * k // files, total * (k + 1) // files) for k in range(files)):
            (of_piece,) = np.random.SeedSequence((seed, number)).generate_state(1)
            tuples = generated(nature, (ended - begun) / nature.rate, int(of_piece))
            yield table(replace(tuples, time=tuples.time + round((first + begun / nature.rate) * SECOND)))
            number += 1


def table(tuples: Tuples) -> pa.Table:
    """Columns ts, g, j, a1, a2, …"""
    columns = {
        "ts": pa.array(tuples.time + START, pa.timestamp("us", "UTC")),
        "g": _named("g", tuples.group),
        "j": _named("j", tuples.key)
    }
    return pa.table({**columns, **{f"a{k}": pa.array(values) for k, values in enumerate(tuples.values, 1)}})


def _natures(stream: GeneratedStream, seconds: float,
             drifts: Sequence[Drift]) -> Iterator[tuple[GeneratedStream, float, float]]:
    starts = [0.0, *(d.second for d in drifts), float(seconds)]
    if any(a >= b for a, b in zip(starts, starts[1:])):
        raise refused(f"drift points at {', '.join(f'{d.second:g}' for d in drifts)} s of {seconds:g} s",
                      "expected them in order, inside the stream")
    return zip([stream, *(d.stream for d in drifts)], starts, starts[1:])


def _named(letter: str, numbers: np.ndarray) -> pa.Array:
    """Each distinct value becomes a string once."""
    distinct, at = np.unique(numbers, return_inverse=True)
    return pa.DictionaryArray.from_arrays(pa.array(at), pa.array([f"{letter}{n}" for n in distinct])).cast(pa.string())
