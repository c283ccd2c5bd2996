"""Command lines run in this process, without Spark; each gives its exit code, stdout and stderr."""
from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from forebay.cli import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Ran]


@pytest.fixture(autouse=True)
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_MASTER", "inline")
    monkeypatch.delenv("FOREBAY_PIPELINE", raising=False)
    monkeypatch.delenv("FOREBAY_DEBUG", raising=False)


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Cli:
    def ran(*arguments: str) -> Ran:
        capfd.readouterr()
        code = main(arguments)
        return Ran(code, *capfd.readouterr())

    return ran


@pytest.fixture(scope="session")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example shop, run to its end once; tests that change something take a copy."""
    folder = tmp_path_factory.mktemp("pipelines") / "shop"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOREBAY_MASTER", "inline")
        assert main(["init", str(folder)]) == 0
        assert main(["--pipeline", str(folder), "ingest"]) == 0
        assert main(["--pipeline", str(folder), "run", "--flush"]) == 0
    return folder


@pytest.fixture
def shop(ended: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ended, tmp_path / "shop"))
