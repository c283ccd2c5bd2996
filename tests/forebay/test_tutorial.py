"""Every command of docs/tutorial.md works as it stands there, one after the other."""
from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.forebay.conftest import Cli, Ran

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"


def commands() -> list[str]:
    return [
        line for block in re.findall(r"```sh\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.S)
        for line in block.splitlines() if line.strip()
    ]


@pytest.mark.slow
def test_the_tutorial(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran: dict[str, Ran] = {}
    taken: list[str] = []
    for command in commands():
        if command.startswith("forebay "):
            ran[command] = cli(*shlex.split(command)[1:])
            assert ran[command].code == 0, (command, ran[command])
            taken += [ran[command].out] if " ingest " in command else []
        else:
            subprocess.run(["sh", "-c", command], check=True, cwd=os.getcwd())
    assert len(ran) > 12
    assert "u1" in ran["forebay result rich --pipeline shop"].out
    assert "DIFFERENT" not in ran["forebay verify --pipeline shop"].out
    shown = re.search(r"    stream     files.*?\n\n", TUTORIAL.read_text(encoding="utf-8"), re.S)
    assert shown and [line.strip() for line in shown[0].strip().splitlines()
                      ] == [line.strip() for line in taken[0].strip().splitlines()]
