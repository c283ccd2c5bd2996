"""Every command on a full disk, a read-only one and none: in words, without a traceback.

What was published stays right.
"""
from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forebay.conftest import Cli

pytestmark = pytest.mark.slow
QUERY = "SELECT COUNT(*) AS n FROM views AS v [WINDOW 1 HOUR]"
WRITING = (("ingest",), ("run", "--flush"), ("query", "create", "q", QUERY), ("query", "pause", "totals"),
           ("doctor", "--rebuild", "totals"))
READING = (("query", "list"), ("query", "show", "totals"), ("result", "totals"), ("explain", "totals"),
           ("plans", "totals"), ("stats",), ("verify",), ("expectations",), ("status",))
LATE = "ts,user,page,ms\n2025-01-01T10:59:00Z,u1,news,700\n"


def moved(shop: Path, warehouse: str) -> str:
    settings = shop / "forebay.yml"
    kept = [line for line in settings.read_text().splitlines() if not line.startswith("warehouse:")]
    settings.write_text("\n".join([*kept, f"warehouse: {warehouse}", ""]))
    return str(shop)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes; only root can make one."""
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_no_folder_can_be_there(cli: Cli, shop: Path) -> None:
    folder = moved(shop, "forebay.yml/warehouse")
    for command in (*WRITING, *READING):
        ran = cli(*command, "--pipeline", folder, "--json")
        assert (ran.code, ran.document["error"]["code"]) == (1, "no-place"), command
        assert "forebay.yml/warehouse" in ran.document["error"]["message"] and "Traceback" not in ran.err


@pytest.mark.parametrize("state", ["disk-full", "read-only"])
def test_a_disk_that_takes_nothing(cli: Cli, shop: Path, small: Path, state: str) -> None:
    folder, filler = moved(shop, str(small / "warehouse")), small / "filler"
    assert cli("ingest", "--pipeline", folder).code == 0 and cli("run", "--batches", "3", "--pipeline",
                                                                 folder).code == 0
    (shop / "landing/views/late.csv").write_text(LATE)
    if state == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    else:
        with pytest.raises(OSError), filler.open("wb", buffering=0) as file:
            while file.write(bytes(512)):
                pass
    for command in WRITING:
        ran = cli(*command, "--pipeline", folder, "--json")
        assert (ran.code, ran.document["error"]["code"]) == (1, state), (command, ran.out)
        assert str(small) in ran.document["error"]["message"] and "Traceback" not in ran.err
    for command in READING:
        ran = cli(*command, "--pipeline", folder, "--json")
        assert ran.code == 0, (command, ran.out)
    if state == "read-only":
        subprocess.run(["mount", "-o", "remount,rw", str(small)], check=True)
    filler.unlink(missing_ok=True)
    assert cli("ingest", "--pipeline", folder).code == 0 and cli("run", "--flush", "--pipeline", folder).code == 0
    checked = cli("verify", "--pipeline", folder, "--json").document["queries"]
    assert checked["totals"]["boundaries"] > 3 and not [q for q in checked.values() if q["differences"]]


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_stdout_that_takes_nothing(shop: Path, form: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "forebay.cli", "query", "list", "--pipeline", str(shop), *form]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert form or "the answer cannot be written: its disk is full" in done.stderr


def test_an_answer_for_which_there_is_no_room(cli: Cli, shop: Path, small: Path) -> None:
    (small / "filler").write_bytes(bytes(2_000_000))
    with pytest.raises(OSError), (small / "rest").open("wb", buffering=0) as file:
        while file.write(bytes(512)):
            pass
    for form in ("csv", "parquet"):
        ran = cli("result", "totals", "--all", "--format", form, "-o", str(small / "answer"), "--pipeline", str(shop))
        assert ran.code == 1 and f"{small / 'answer'} cannot be written: its disk is full" in ran.err
    ran = cli("init", str(small / "new"))
    assert ran.code == 1 and "its disk is full" in ran.err and not (small / "new").exists()
