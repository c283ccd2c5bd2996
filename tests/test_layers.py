"""The optimizer is pure, modules are explained and of a size to read, packages too.

Import-linter's contracts hold, and are shown to be able to fail.
"""
from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.layers import (
    ROOTS,
    Module,
    ambiguous,
    crowded,
    imports,
    impure,
    nodes,
    oversized,
    parsed,
    repository,
    unexplained,
)

ROOT = Path(__file__).resolve().parent.parent
RULES = (impure, unexplained, oversized)
BROKEN = [
    (impure, "optimizer/x.py", "import os"),
    (impure, "optimizer/x.py", "from pathlib import Path"),
    (impure, "optimizer/x.py", "import random"),
    (impure, "optimizer/x.py", "import time"),
    (impure, "optimizer/x.py", "from datetime import datetime\nt = datetime.now()"),
    (impure, "optimizer/x.py", "def f(): return open('x')"),
    (unexplained, "jobs/x.py", "x = 1"),
    (oversized, "jobs/x.py", "def f():\n" + "    x = 1\n" * 60),
    (oversized, "jobs/x.py", "x = 1\n" * 601),
]
SOUND = [
    (impure, "optimizer/x.py", "from datetime import timedelta"),
    (impure, "jobs/x.py", "import os"),
    (oversized, "jobs/x.py", "def f():\n" + "    x = 1\n" * 59),
]


@pytest.fixture(autouse=True, scope="module")
def forgotten() -> Iterator[None]:
    """A million nodes of trees are looked at by every later collection."""
    yield
    for known in (repository, nodes, imports):
        known.cache_clear()


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__)
def test_the_product_keeps_the_rule(rule: Callable[[Module], Iterator[str]]) -> None:
    assert [sentence for module in repository(ROOT) for sentence in rule(module)] == []


def test_no_package_is_crowded() -> None:
    assert list(crowded(repository(ROOT))) == []
    assert list(crowded(tuple(
        parsed(f"jobs/room/m{n}.py", "") for n in range(13)))) == ["jobs/room has 13 modules, at most 12"]


def test_a_class_name_stands_for_one_thing() -> None:
    assert list(ambiguous(repository(ROOT))) == []
    twice = tuple(parsed(f"jobs/room/{name}.py", "class Thing: pass") for name in "ab")
    assert list(ambiguous(twice)) == [
        "class Thing is defined in jobs/room/a.py:1 and jobs/room/b.py:1: say in its name what each is"
    ]


def test_the_product_is_looked_at() -> None:
    assert {"optimizer.errors", "jobs.engine.spark", "infra.jars"} <= {m.name for m in repository(ROOT)}


@pytest.mark.parametrize("rule,path,text", BROKEN)
def test_the_rule_can_fail(rule: Callable[[Module], Iterator[str]], path: str, text: str) -> None:
    assert list(rule(parsed(path, text)))


@pytest.mark.parametrize("rule,path,text", SOUND)
def test_the_rule_lets_pass(rule: Callable[[Module], Iterator[str]], path: str, text: str) -> None:
    assert list(rule(parsed(path, text))) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "path,line,contract",
    [("optimizer/plan/model.py", "from optimizer.choice import search",
      "In the optimizer a room imports only from rooms below it"),
     ("jobs/batch/works.py", "from jobs.run import run", "In jobs a room imports only from rooms below it"),
     ("jobs/ledger/queries.py", "if TYPE_CHECKING:\n    from jobs.adapt.choice import Chooser",
      "In jobs a room imports only from rooms below it"),
     ("jobs/adapt/choice.py", "def f():\n    import duckdb", "Each heavy package is imported in one place"),
     ("jobs/verify/sql.py", "from optimizer.sql.parse import parse",
      "What recomputes answers shares nothing with what plans them but the error type"),
     ("forebay/show.py", "from jobs.papers import bench",
      "Of the product only the commands that run them know the papers"),
     ("jobs/ledger/ledger.py", "def f():\n    from jobs.ledger.open_pipeline import OpenPipeline",
      "No modules or packages import each other in a circle"),
     ("jobs/engine/kernel.py", "import dags.factory",
      "The command line and installation stand on schedules, these on jobs, these on expectations and the optimizer")])
def test_each_contract_can_fail(tmp_path: Path, path: str, line: str, contract: str) -> None:
    """One line in a copy of the product breaks it, also one that only type checkers read."""
    for name in (*ROOTS, "setup.cfg"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path)
    with open(tmp_path / path, "a", encoding="utf-8") as module:
        module.write(f"\n\n{line}\n")
    done = subprocess.run([str(Path(sys.executable).parent / "lint-imports"), "--no-cache"], cwd=tmp_path,
                          capture_output=True, text=True)
    broken = " ".join(done.stdout.split())
    assert done.returncode == 1 and f"{contract} BROKEN" in broken, done.stdout


def test_tests_stand_where_their_code_stands() -> None:
    """Each folder of tests/jobs and tests/optimizer is a package of the product, and only ground and loop have none."""
    for house in ("jobs", "optimizer"):
        rooms = {folder.name for folder in (ROOT / house).iterdir() if (folder / "__init__.py").exists()}
        folders = {folder.name for folder in (ROOT / "tests" / house).iterdir() if any(folder.glob("test_*.py"))}
        assert folders <= rooms, f"tests/{house} has {sorted(folders - rooms)}, and {house} has no such package"
        loose = {test.stem.removeprefix("test_") for test in (ROOT / "tests" / house).glob("test_*.py")}
        assert loose <= {"parallelism_run", "errors", "time"}, f"tests of a room stand in its folder: {sorted(loose)}"
