"""The benchmarks' data: paper A's two streams as Parquet files, one a batch and a stream, made by the kernel from a
seed.

Same arguments, same rows.
"""
from __future__ import annotations

import os
from dataclasses import dataclass

from jobs.engine import kernel
from jobs.ledger.open_pipeline import OpenPipeline

SECOND = 1_000_000
START = 1_356_998_400 * SECOND        # 2013-01-01T00:00:00Z
QUERY = ("SELECT s1.g, COUNT(*) AS n, SUM(s1.a) AS sum_a, SUM(s2.b) AS sum_b, MIN(s2.b) AS min_b, MAX(s1.a) AS max_a "
         "FROM s1 [WINDOW {window} SECONDS], s2 [WINDOW {window} SECONDS] WHERE s1.j = s2.j GROUP BY s1.g")


@dataclass(frozen=True)
class BenchSetting:
    """Rows a second and stream, window and batch in seconds, distinct join keys and groups."""

    rate: int = 20_000
    window: int = 60
    batch: int = 5
    keys: int = 1_000
    groups: int = 150

    @property
    def sql(self) -> str:
        return QUERY.format(window=self.window)


def boundary(setting: BenchSetting, number: int) -> int:
    """The boundary that batch `number` completes."""
    return START + (number + 1) * setting.batch * SECOND


def stream_files(rt: OpenPipeline, stream: str) -> tuple[str, ...]:
    """For who reads a stream by itself: the files that its table names.

    The folder may also hold what a merge has replaced.
    """
    table = rt.table(f"streams/{stream}").refresh()
    return tuple(os.path.join(table.path, f.path) for f in table.files())


def make(folder: str, setting: BenchSetting, batches: range, rows: int | None = None) -> None:
    """Files of these batches; `rows` a batch instead of the rate's."""
    con = kernel.connect(threads=2, memory="4GB")
    for stream, columns in (("s1", "'g' || (random() * {groups})::INT % {groups} AS g, "), ("s2", "")):
        os.makedirs(os.path.join(folder, stream), exist_ok=True)
        for number in batches:
            con.execute(f"SELECT setseed({(number * 7 + len(columns)) % 997 / 997})")
            count = setting.rate * setting.batch if rows is None else rows
            start, length = START + number * setting.batch * SECOND, setting.batch * SECOND
            value = "a" if stream == "s1" else "b"
            sql = (
                f"SELECT CAST(make_timestamp({start} + (i * {length}) // {max(count, 1)}) AS TIMESTAMPTZ) AS ts, "
                f"{columns.format(groups=setting.groups)}"
                f"'k' || floor(random() * {setting.keys})::INT AS j, floor(random() * 1000)::BIGINT AS {value} FROM "
                f"range({count}) AS r(i) ORDER BY ts"
            )
            con.execute(f"COPY ({sql}) TO '{folder}/{stream}/{number:05d}.parquet' (FORMAT parquet, COMPRESSION zstd)")


def pipeline(folder: str, setting: BenchSetting) -> str:
    """A pipeline over landing/, with the query; gives the folder."""
    os.makedirs(os.path.join(folder, "queries"), exist_ok=True)
    with open(os.path.join(folder, "forebay.yml"), "w", encoding="utf-8") as file:
        file.write(f"""name: bench
batch: {setting.batch} seconds
streams:
  s1: {{columns: {{ts: timestamp, g: string, j: string, a: bigint}}, event_time: ts,
      source: {{files: "landing/s1/*.parquet"}}}}
  s2: {{columns: {{ts: timestamp, j: string, b: bigint}}, event_time: ts, source: {{files: "landing/s2/*.parquet"}}}}
""")
    with open(os.path.join(folder, "queries", "answer.sql"), "w", encoding="utf-8") as file:
        file.write(setting.sql)
    return folder
