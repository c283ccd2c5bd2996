"""A pattern names the same files on this machine and in a store; what is no pattern is taken as it is written."""
from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.engine import kernel
from jobs.pipeline.config import load
from jobs.storage.patterns import _fits, matching
from optimizer.errors import ForebayError
from tests.jobs import pipelines

ODD = ("p[1]", "p*", "p?", "a=b", "p%", "p x", "p'q")       # p[1], p* and p? name p1 as patterns
NAMES = ("a.csv", "b.txt", "in/a.csv", "in/deep/a.csv", "in/deep/er/b.csv", "in/x1/a.csv", "in/x22/a.csv")
PATTERNS = ("*.csv", "in/*.csv", "in/*/a.csv", "in/**/*.csv", "**/*.csv", "in/x?/*", "in/x[0-9]*/a.csv",
            "in/deep/er/b.csv", "in/**/er/**/b.csv")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_store_is_asked_as_a_folder_is(tmp_path: Path, pattern: str) -> None:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [str(Path(p).relative_to(tmp_path)) for p in matching(str(tmp_path / pattern))]
    assert found and found == sorted(n for n in NAMES if _fits(n.split("/"), pattern.split("/")))


@pytest.mark.parametrize("name", ODD)
def test_a_pipeline_s_own_folder_is_no_pattern(tmp_path: Path, name: str) -> None:
    for folder in (name, "p1"):
        (tmp_path / folder / "in[1]").mkdir(parents=True)
        (tmp_path / folder / "a.csv").touch()
        (tmp_path / folder / "in[1]/b.csv").touch()
    folder = str(tmp_path / name)
    assert matching(f"{folder}/*.csv", folder) == [f"{folder}/a.csv"]
    assert matching(f"{folder}/*/*.csv", folder) == matching(f"{folder}/in[1]", folder) == [f"{folder}/in[1]/b.csv"]
    assert matching(f"{tmp_path}/p?/a.csv",
                    f"{tmp_path}/p") == sorted({f"{tmp_path}/p1/a.csv", *matching(f"{tmp_path}/p?/a.csv")})


@pytest.mark.parametrize("name", ODD)
def test_the_engine_reads_the_file_that_is_named(tmp_path: Path, name: str) -> None:
    for folder in (name, "p1"):
        (tmp_path / folder).mkdir()
        for file in ("a[1].parquet", "a1.parquet"):
            pq.write_table(pa.table({"v": [f"{folder}/{file}"]}), tmp_path / folder / file)
    con = kernel.shared()
    path = str(tmp_path / name / "a[1].parquet")
    assert con.execute(f"SELECT * FROM read_parquet({kernel.files(con, (path,))})").fetchall() == [
        (f"{name}/a[1].parquet",)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ODD if name != "p?"])
def test_a_pipeline_in_a_folder_of_an_odd_name_runs(tmp_path: Path, name: str) -> None:
    query = {"q": "SELECT COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS]"}
    pipe = pipelines.pipeline(tmp_path / name, {"views": 'source: {files: "in/*.csv"}'}, queries=query)
    (tmp_path / name / "in").mkdir()
    (tmp_path / name / "in/a.csv").write_text("ts,k\n2026-01-01T00:00:01Z,1\n2026-01-01T00:00:15Z,1\n")
    assert pipe.ingest()["streams"]["views"]["rows"] == 2
    assert pipelines.ran(pipe, flush=True) and pipelines.equal(pipe)
    assert pipelines.answers(pipe, "q") == [(10, 1), (20, 2)]


@pytest.mark.parametrize("name", ["p%20x", "p#1", "p?x", "p\\x", "p\nx", "p\udcff"])
@pytest.mark.parametrize("what", ["folder", "warehouse", "source"])
def test_a_folder_that_delta_takes_for_another_is_refused(tmp_path: Path, name: str, what: str) -> None:
    folder = tmp_path / (name if what == "folder" else "plain")
    folder.mkdir()
    place = json.dumps(name)
    source = f", source: {{delta: {place}}}" if what == "source" else ""
    (folder / "forebay.yml").write_text("name: t\nbatch: 10 seconds\n"
                                        + (f"warehouse: {place}\n" if what == "warehouse" else "")
                                        + f"streams:\n  v: {{columns: {{ts: timestamp}}, event_time: ts{source}}}\n")
    with pytest.raises(ForebayError) as caught:
        load(str(folder))
    assert caught.value.code == "bad-path" and caught.value.exit_code == 2 and repr(name).strip(
        "'") in caught.value.message
    assert caught.value.line == {"folder": None, "warehouse": 3, "source": 4}[what]
