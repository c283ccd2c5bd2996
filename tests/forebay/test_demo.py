"""The demo does what it says: its rows are counted, its crash is a real SIGKILL, its answers are verified.

It removes no folder but its own.
"""
from __future__ import annotations

import io
import socket
from pathlib import Path

import pytest

from forebay import demo, demo_data
from forebay.demo import play, prepare
from forebay.demo_data import STEPS, DemoSize
from optimizer.errors import ForebayError

SMALL = DemoSize(views=1600, purchases=800)


def test_a_folder_that_is_not_the_demos_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(ForebayError, match="not from a demo"):
        prepare(str(tmp_path))
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_a_demo_starts_from_a_clean_folder_each_time(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    prepare(str(folder))
    demo_data.write(str(folder), 0, SMALL)
    prepare(str(folder))
    assert not (folder / "landing").exists() and (folder / "forebay.yml").exists()


def test_the_rows_are_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        for step in range(STEPS):
            demo_data.write(str(tmp_path / name), step, SMALL)
    texts = {
        name: {
            p.relative_to(tmp_path / name): p.read_text() for p in (tmp_path / name).rglob("*.*")
        } for name in ("a", "b")
    }
    assert texts["a"] == texts["b"] and len(texts["a"]) == 2 * STEPS
    assert sum(t.count("\n")
               for t in texts["a"].values()) == demo_data.rows(SMALL) + STEPS, "a header line in each file of views"


def check(folder: Path, scale: DemoSize) -> None:
    out = io.StringIO()
    said = play(str(folder), out, scale)
    assert said["killed"] == {"signal": "SIGKILL", "boundary": "2025-01-01T10:00:00Z", "ledger": "intent"}
    total = demo_data.rows(scale)
    assert said["boundaries"] == 18 and said["last"] == "2025-01-01T12:00:00Z" and 0.99 * total < said["rows"] <= total
    assert {
        n: (q["boundaries"], q["equal"]) for n, q in said["verify"].items()
    } == {
        "sections": (18, 18),
        "slow_pages": (6, 6),
        "totals": (18, 18)
    }
    assert all(q["batches"] for q in said["mlflow"]["queries"].values())
    assert "again from that intent" in out.getvalue() and "equal" in out.getvalue()


@pytest.mark.long      # the whole of it runs on Spark in test_the_demo_on_spark
def test_the_demo_without_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_MASTER", "inline")
    check(tmp_path / "demo", SMALL)


@pytest.mark.spark
def test_the_demo_on_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOREBAY_MASTER")
    check(tmp_path / "demo", SMALL)


def test_the_commands_at_its_end_can_be_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are called by their way from the demo's folder where they are not on the PATH, and MLflow gets a port at
    which nothing listens.
    """
    folder = tmp_path / "demo"
    folder.mkdir()
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        number = busy.getsockname()[1]
        monkeypatch.setattr(demo, "MLFLOW_PORT", number)
        lines = demo.closing(str(folder), 60.0, "1").splitlines()
    commands = [line.split()[0] for line in lines if line.startswith("    ") and "cd " not in line]
    assert commands and all((folder / command).exists() for command in commands), commands
    port, = (line.split("--port ")[1].split()[0] for line in lines if "--port" in line)
    assert port != str(number) and f"http://127.0.0.1:{port}/#/experiments/1/runs" in lines[-1]
