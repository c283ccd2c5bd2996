"""Where work runs, where that is left to its size: here, by the warm server, or by a session of its own."""
from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

import forebay
from forebay.cli import main
from jobs.engine import spark
from jobs.engine.tasks import START, Tasks
from optimizer.errors import ForebayError
from tests.jobs.pipelines import pipeline


def by_size(**more: str) -> tuple[Tasks, list[str]]:
    told: list[str] = []
    return Tasks(tell=told.append, **more), told


def test_small_work_is_done_here_and_that_is_told_once() -> None:
    tasks, told = by_size()
    assert not tasks.inline
    tasks.suit(0.5)
    tasks.suit(0.1)
    assert tasks.inline and tasks.width == 1 and tasks.map(abs, [-1, -2]) == [1, 2]
    assert len(told) == 1 and "in this process" in told[0] and "spark: {when: always}" in told[0]


def test_what_takes_longer_than_spark_takes_to_start_is_spark_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "warm_server", lambda: None)
    tasks, told = by_size()
    tasks.suit(1.0)
    tasks.suit(START + 1)
    assert not tasks.inline and tasks.master == "local[*]" and "a session of its own" in told[1]
    tasks._session = object()
    tasks.suit(0.1)
    assert not tasks.inline and len(told) == 2      # it has started


def test_the_warm_server_is_used_where_no_master_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "warm_server", lambda: "sc://localhost:15002")
    tasks, told = by_size()
    tasks.suit(START + 1)
    assert tasks.master == "sc://localhost:15002" and "`make up`" in told[0]
    own, _ = by_size(master="spark://cluster:7077")
    own.suit(START + 1)
    assert own.master == "spark://cluster:7077"


def test_the_server_of_make_up_is_found_while_it_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "UP", tmp_path / "where.json")
    monkeypatch.delenv(spark.TOKEN, raising=False)
    assert spark.warm_server() is None
    with socket.create_server(("localhost", 0)) as listening:
        address = f"sc://localhost:{listening.getsockname()[1]}"
        spark.UP.write_text(json.dumps({"spark": address, "token": "secret"}))
        assert spark.warm_server() == address
    monkeypatch.delenv(spark.TOKEN)
    assert spark.warm_server() is None
    spark.UP.write_text("{")
    assert spark.warm_server() is None


def test_without_being_asked_nothing_is_left_to_size() -> None:
    tasks = Tasks()
    tasks.suit(0.0)
    assert not tasks.inline


@pytest.mark.parametrize("told, master, forced, expected", [
    ("{when: never}", "", "inline", False), ("{when: always}", "", "local[*]", False), ("{}", "", "local[*]", True),
    ("{when: auto}", "", "local[*]", True), ("{}", "local[2]", "local[2]", False),
    ("{master: \"local[3]\"}", "", "local[3]", True)])
def test_forebay_yml_and_the_environment_say_when(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str,
                                                  master: str, forced: str, expected: bool) -> None:
    monkeypatch.setenv("FOREBAY_MASTER", master)
    pipeline(tmp_path, spark=told)
    tasks = forebay.open(str(tmp_path), by_size=lambda _: None).runtime.tasks
    assert (tasks.master, tasks.tell is not None) == (forced, expected)
    assert forebay.open(str(tmp_path)).runtime.tasks.tell is None      # in Python only where it is asked for


def test_a_wrong_when_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ForebayError, match="sometimes"):
        pipeline(tmp_path, spark="{when: sometimes}")


@pytest.mark.slow
def test_a_small_pipeline_by_hand_starts_no_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                  capfd: pytest.CaptureFixture[str]) -> None:
    """A session would raise here: whatever a command does, it is done in this process."""
    monkeypatch.delenv("FOREBAY_MASTER", raising=False)
    monkeypatch.setattr("jobs.engine.spark.session", lambda *_: pytest.fail("Spark was started"))
    shop = str(tmp_path / "shop")
    assert main(["init", shop]) == 0
    for command in (["ingest"], ["run", "--flush"], ["result", "totals"], ["explain", "totals"], ["adapt"], ["verify"]):
        assert main([*command, "--pipeline", shop]) == 0, command
    err = capfd.readouterr().err
    assert err.count("computed in this process") == 3      # by ingest, run and adapt
