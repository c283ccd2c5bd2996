"""Relations: a version when the content changed, none when it did not, the last good one when the new one is bad."""
from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.ingest import relations
from jobs.pipeline.config import Pipeline
from jobs.pipeline.warehouse import Warehouse
from jobs.storage.tables import File
from optimizer.errors import ForebayError
from tests.jobs.ingesting import pipeline, refreshed, rows

PAGES = ('relations:\n  pages: {columns: {page: string, rank: {type: int, sensitive: true}}, source: {files: '
         '"pages*"}}\n')


def made(folder: Path, text: str = "page,rank\nhome,1\nnews,\n") -> Pipeline:
    pipe = pipeline(folder, relations=PAGES)
    (folder / "pages.csv").write_text(text)
    return pipe


def read(pipe: Pipeline, version: int) -> list[tuple[object, ...]]:
    return sorted((r[1:] for r in rows(pipe, "relations/pages", "_version, page, rank") if r[0] == version), key=repr)


def version_file(pipe: Pipeline, name: str, version: int) -> File:
    return relations.version_file(Warehouse(pipe.warehouse), name, version)


def test_versions_follow_the_content(tmp_path: Path) -> None:
    pipe = made(tmp_path)
    assert refreshed(pipe) == ({"pages": 0}, [])
    assert read(pipe, 0) == [("home", 1), ("news", None)]
    os.utime(tmp_path / "pages.csv", (1, 1))
    assert refreshed(pipe).versions == {"pages": 0}, "a new time alone is no new version"
    (tmp_path / "pages.csv").write_text("page,rank\nhome,2\n")
    assert refreshed(pipe).versions == {"pages": 1}
    assert read(pipe, 0) == [("home", 1), ("news", None)] and read(pipe, 1) == [("home", 2)]
    assert version_file(pipe, "pages", 0).rows == 2 and version_file(pipe, "pages", 1).rows == 1


@pytest.mark.slow
def test_several_files_and_no_rows(tmp_path: Path) -> None:
    pipe = made(tmp_path)
    (tmp_path / "pages2.jsonl").write_text('{"page": "sport", "rank": 3, "more": 1}\n')
    refreshed(pipe)
    assert read(pipe, 0) == [("home", 1), ("news", None), ("sport", 3)]
    os.unlink(tmp_path / "pages2.jsonl")
    (tmp_path / "pages.csv").write_text("page,rank\n")
    assert refreshed(pipe).versions == {"pages": 1}
    assert read(pipe, 1) == [] and version_file(pipe, "pages", 1).rows == 0


@pytest.mark.slow
@pytest.mark.parametrize(("text", "said"), [("page,rank\nhome,first\n", "bad type: column rank"),
                                            ("page,rank\nhome\n", "wrong number of fields"),
                                            ("page\nhome\n", "no column rank; it has page"), ("", "no header")])
def test_a_bad_version_is_refused_and_the_last_one_stays(tmp_path: Path, text: str, said: str) -> None:
    pipe = made(tmp_path)
    refreshed(pipe)
    (tmp_path / "pages.csv").write_text(text)
    versions, refused = refreshed(pipe)
    assert versions == {"pages": 0} and [(r["relation"], r["path"]) for r in refused] == [("pages", "pages.csv")]
    assert said in refused[0]["reason"] and "first" not in refused[0]["reason"]
    (tmp_path / "pages.csv").write_text("page,rank\nhome,7\n")
    assert refreshed(pipe) == ({"pages": 1}, [])


@pytest.mark.slow
def test_a_damaged_or_narrow_file_is_refused_in_words(tmp_path: Path) -> None:
    pipe = made(tmp_path)
    refreshed(pipe)
    os.unlink(tmp_path / "pages.csv")
    pq.write_table(pa.table({"page": ["home"]}), tmp_path / "pages.parquet")
    versions, refused = refreshed(pipe)
    assert versions == {"pages": 0} and "no column rank; it has page" in refused[0]["reason"]
    damaged = {"pages.parquet": (b"PAR1" + b"x" * 99, "no Parquet file"),
               "pages2.csv": (b"page,rank\n\xe9,1\n", "line 2 has the byte E9")}
    for name, (content, word) in damaged.items():
        (tmp_path / name).write_bytes(content)
        reason, = (r["reason"] for r in refreshed(pipe).refused)
        assert reason.startswith(f"{name}: ") and word in reason
        os.unlink(tmp_path / name)


def test_a_relation_that_is_not_there_yet(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, relations=PAGES)
    assert refreshed(pipe) == ({}, [])
    made(tmp_path)
    refreshed(pipe)
    with pytest.raises(ForebayError) as caught:
        version_file(pipe, "pages", 5)
    assert "no version 5" in caught.value.message


def test_changed_columns_are_refused(tmp_path: Path) -> None:
    refreshed(made(tmp_path))
    with pytest.raises(ForebayError) as caught:
        refreshed(pipeline(tmp_path, relations=PAGES.replace("rank", "place")))
    assert caught.value.code == "columns-changed"


def test_a_relation_whose_table_is_not_there_is_refused_and_the_others_go_on(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, relations=PAGES + "  sites: {columns: {site: string}, source: {delta: sites}}\n")
    (tmp_path / "pages.csv").write_text("page,rank\nhome,1\n")
    versions, refused = refreshed(pipe)
    assert versions == {
        "pages": 0
    } and [r["relation"] for r in refused] == ["sites"] and "is not a Delta table" in refused[0]["reason"]


@pytest.mark.slow
def test_a_delta_table_without_rows_is_a_version_without_rows(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, relations="relations:\n  sites: {columns: {site: string}, source: {delta: sites}}\n")
    write_deltalake(tmp_path / "sites", pa.table({"site": pa.array([], pa.string())}))
    assert refreshed(pipe) == ({"sites": 0}, []) and version_file(pipe, "sites", 0).rows == 0
    write_deltalake(tmp_path / "sites", pa.table({"site": ["a"]}), mode="append")
    assert refreshed(pipe).versions == {"sites": 1} and version_file(pipe, "sites", 1).rows == 1
    DeltaTable(tmp_path / "sites").delete()
    assert refreshed(pipe).versions == {"sites": 2} and version_file(pipe, "sites", 2).rows == 0
