"""Which folders a schedule finds, and what it says of those that it cannot read."""
from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobs.pipeline.folders import found, uri

GOOD = "name: {}\nbatch: 10 seconds\nstreams:\n  views: {{columns: {{ts: timestamp}}, event_time: ts}}\n"


def pipeline(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "forebay.yml").write_text(text)
    return folder


def test_a_setting_names_pipelines_and_folders_of_pipelines(tmp_path: Path) -> None:
    one = pipeline(tmp_path / "one", GOOD.format("one"))
    many = tmp_path / "many"
    pipeline(many / "b", GOOD.format("bee"))
    pipeline(many / "a", GOOD.format("ay"))
    (many / "notes").mkdir()
    said = found(os.pathsep.join([str(one), str(many), str(one)]))
    assert [(f.name, os.path.basename(f.folder)) for f in said] == [("one", "one"), ("ay", "a"), ("bee", "b")]
    assert found("") == []


@pytest.mark.parametrize("text,reason",
                         [("name: x\nbatch: soon\nstreams: {}\n", "line 2: batch is 'soon', not a duration"),
                          ("name: [", "not YAML"), ("name: x\n", "batch is missing")])
def test_a_broken_folder_says_why(tmp_path: Path, text: str, reason: str) -> None:
    one, = found(str(pipeline(tmp_path / "my pipe", text)))
    assert one.pipeline is None and one.name == "my_pipe" and reason in one.reason and str(tmp_path) in one.reason


def test_a_folder_that_is_not_there_is_broken(tmp_path: Path) -> None:
    one, = found(str(tmp_path / "nowhere"))
    assert one.pipeline is None and "no forebay.yml" in one.reason


def test_of_two_with_one_name_the_second_is_broken(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        pipeline(tmp_path / name, GOOD.format("same"))
    first, second, third = found(str(tmp_path))
    assert first.pipeline is not None and [second.name, third.name] == ["same.2", "same.3"]
    assert second.pipeline is None and str(tmp_path / "a") in second.reason


def test_tables_are_named_by_their_place(tmp_path: Path) -> None:
    assert uri("../a/results/q", "/pipes/b") == "file:///pipes/a/results/q" == uri("/pipes/a/results/q", "/pipes/b")
    assert uri("s3a://bucket/results/q", "/pipes/b") == "s3a://bucket/results/q"
