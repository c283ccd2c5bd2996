"""Sources on s3a://: files by pattern, folders, gzipped CSV, JSON lines, a Delta table and a relation, with a warehouse
on the local disk.
"""
from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import forebay
from jobs.storage import places
from optimizer.errors import ForebayError
from optimizer.time import instant
from tests.jobs.pipelines import BEGINNING, SECOND, answers, equal, opened, ran
from tests.stores import arrow, new_bucket, serving, settings

QUERY = ("SELECT p.section, COUNT(*) AS n, SUM(v.x) AS s FROM {stream} AS v [WINDOW 20 SECONDS], pages AS p WHERE v.k "
         "= p.k GROUP BY p.section")
pytestmark = pytest.mark.s3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from serving(tmp_path_factory)


@pytest.fixture
def bucket(server: str) -> str:
    return new_bucket(server)


def put(server: str, path: str, content: bytes) -> None:
    with arrow(server).open_output_stream(path) as file:
        file.write(content)


def table(*seconds: float) -> pa.Table:
    stamps = pa.array([instant(BEGINNING + round(s * SECOND)) for s in seconds], pa.timestamp("us", "UTC"))
    return pa.table({"ts": stamps, "k": [1] * len(seconds), "x": [2] * len(seconds)})


def parquet(server: str, path: str, *seconds: float) -> None:
    with arrow(server).open_output_stream(path) as file:
        pq.write_table(table(*seconds), file)


def texts(*seconds: float) -> list[tuple[str, int, int]]:
    return [(f"2026-01-01T00:00:{s:02}Z", 1, 2) for s in seconds]


def pipe(folder: Path, server: str, bucket: str, source: str) -> forebay.Pipeline:
    put(server, f"{bucket}/pages/of-today.csv", b"k,section\n1,news\n")
    told = ", ".join(f'{k}: "{v}"' for k, v in settings(server).items())
    (folder / "queries").mkdir()
    (folder / "queries" / "q.sql").write_text(QUERY.format(stream="views"))
    (folder / "forebay.yml").write_text(f"""name: test
batch: 10 seconds
spark: {{master: inline, settings: {{{told}}}}}
streams:
  views: {{columns: {{ts: timestamp, k: bigint, x: bigint}}, event_time: ts, source: {{{source}}}}}
relations:
  pages: {{columns: {{k: bigint, section: string}}, source: {{files: "s3a://{bucket}/pages/*.csv"}}}}
""")
    return opened(folder)


def came(found: forebay.Pipeline) -> dict[str, Any]:
    counts: dict[str, Any] = found.ingest()["streams"]["views"]
    return counts


def test_files_of_a_pattern_are_taken_once(tmp_path: Path, server: str, bucket: str) -> None:
    found = pipe(tmp_path, server, bucket, f'files: "s3a://{bucket}/in/**/rows-*.parquet"')
    parquet(server, f"{bucket}/in/rows-1.parquet", 1, 2)
    parquet(server, f"{bucket}/in/2026/01/rows-2.parquet", 12)
    for other in ("in/other.parquet", "in/_rows-3.parquet", "elsewhere/rows-4.parquet"):
        parquet(server, f"{bucket}/{other}", 3)
    assert came(found) == {"files": 2, "rows": 3, "quarantined": 0, "late": 0}
    parquet(server, f"{bucket}/in/rows-5.parquet", 13)
    assert came(found)["rows"] == 1 and came(found)["files"] == 0
    assert ran(found, flush=True) == [10, 20] and equal(found)
    assert answers(found, "q") == [(10, "news", 2, 4), (20, "news", 4, 8)]


CSV = b"ts,k,x\n" + b"".join(f"{','.join(map(str, r))}\n".encode() for r in texts(1, 12))
LINES = b"".join(json.dumps(dict(zip(("ts", "k", "x"), r))).encode() + b"\n" for r in texts(1, 12))


@pytest.mark.parametrize("kind, name, content", [
    ("csv", "a.csv.gz", gzip.compress(CSV, mtime=0)), ("json", "a.jsonl", LINES),
    ("files", "a.json.gz", gzip.compress(LINES, mtime=0))],
                         ids=["csv", "json", "files"])
def test_a_folder_of_texts(tmp_path: Path, server: str, bucket: str, kind: str, name: str, content: bytes) -> None:
    found = pipe(tmp_path, server, bucket, f'{kind}: "s3a://{bucket}/in"')
    put(server, f"{bucket}/in/{name}", content)
    assert came(found) == {"files": 1, "rows": 2, "quarantined": 0, "late": 0}
    assert ran(found, flush=True) == [10, 20] and answers(found, "q") == [(10, "news", 1, 2), (20, "news", 2, 4)]


def test_a_delta_table_by_its_versions(tmp_path: Path, server: str, bucket: str) -> None:
    place = f"s3a://{bucket}/table"
    found = pipe(tmp_path, server, bucket, f'delta: "{place}"')
    options = places.options(places.place(place, settings(server)))
    write_deltalake(place, table(1, 2), storage_options=options)
    assert came(found)["rows"] == 2
    write_deltalake(place, table(12), mode="append", storage_options=options)
    assert came(found)["rows"] == 1 and came(found)["rows"] == 0
    assert ran(found, flush=True) == [10, 20] and answers(found, "q") == [(10, "news", 2, 4), (20, "news", 3, 6)]


def test_a_file_given_by_hand(tmp_path: Path, server: str, bucket: str) -> None:
    found = pipe(tmp_path, server, bucket, f'files: "s3a://{bucket}/in"')
    parquet(server, f"{bucket}/aside/a.parquet", 1)
    assert found.ingest("views", f"s3a://{bucket}/aside/a.parquet")["streams"]["views"]["rows"] == 1
    with pytest.raises(ForebayError, match="is not there"):
        found.ingest("views", f"s3a://{bucket}/aside/b.parquet")


def test_a_broken_file_is_refused_by_name(tmp_path: Path, server: str, bucket: str) -> None:
    found = pipe(tmp_path, server, bucket, f'files: "s3a://{bucket}/in"')
    put(server, f"{bucket}/in/a.parquet", b"no parquet")
    parquet(server, f"{bucket}/in/b.parquet", 1)
    with pytest.raises(ForebayError, match=f"not taken in: s3a://{bucket}/in/a.parquet of stream views") as refused:
        found.ingest()
    assert refused.value.code == "not-taken" and "all else was taken in (views 1 rows)" in str(refused.value)
