"""Imports point one way, heavy packages have one owner, the optimizer is pure: read from syntax trees; the rules are shown to be able to fail."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.layers import Module, circles, dependent, imports, impure, nodes, oversized, parsed, repository, trespassing, unexplained, upward

ROOT = Path(__file__).resolve().parent.parent
RULES = (upward, trespassing, impure, dependent, unexplained, oversized)
BROKEN = [
    (upward, "optimizer/x.py", "from jobs.storage.tables import read"),
    (upward, "optimizer/x.py", "import forebay"),
    (upward, "expectations/x.py", "def f():\n    from jobs import spark"),
    (upward, "jobs/x.py", "import dags.factory"),
    (upward, "jobs/x.py", "from infra import archive"),
    (upward, "jobs/ingest/sources/x.py", "from ...dags import factory"),
    (trespassing, "jobs/x.py", "from pyspark.sql import functions"),
    (trespassing, "jobs/x.py", "def f():\n    import duckdb"),
    (trespassing, "optimizer/plan/model.py", "import sqlglot.expressions as exp"),
    (trespassing, "jobs/x.py", "import pandas as pd"),
    (trespassing, "jobs/batch/batch.py", "import mlflow"),
    (impure, "optimizer/x.py", "import os"),
    (impure, "optimizer/x.py", "from pathlib import Path"),
    (impure, "optimizer/x.py", "import random"),
    (impure, "optimizer/x.py", "import time"),
    (impure, "optimizer/x.py", "from datetime import datetime\nt = datetime.now()"),
    (impure, "optimizer/x.py", "def f(): return open('x')"),
    (dependent, "jobs/verify/sql.py", "from optimizer.sql.parse import parse"),
    (dependent, "jobs/verify/recompute.py", "def f():\n    from optimizer import plan"),
    (unexplained, "jobs/x.py", "x = 1"),
    (oversized, "jobs/x.py", "def f():\n" + "    x = 1\n" * 60),
    (oversized, "jobs/x.py", "x = 1\n" * 601),
]
SOUND = [
    (upward, "jobs/x.py", "from optimizer.plan.model import Plan"),
    (upward, "forebay/cli.py", "import dags.factory, jobs.engine.spark"),
    (upward, "infra/archive.py", "from jobs.engine.spark import session"),
    (trespassing, "jobs/engine/kernel.py", "import duckdb"),
    (trespassing, "optimizer/sql/tree.py", "from sqlglot import exp"),
    (impure, "optimizer/x.py", "from datetime import timedelta"),
    (impure, "jobs/x.py", "import os"),
    (dependent, "jobs/verify/recompute.py", "from optimizer.errors import failed"),
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


def test_no_modules_import_each_other() -> None:
    assert list(circles(repository(ROOT))) == []


def test_the_product_is_looked_at() -> None:
    assert {"optimizer.errors", "jobs.engine.spark", "infra.jars"} <= {m.name for m in repository(ROOT)}


@pytest.mark.parametrize("rule,path,text", BROKEN)
def test_the_rule_can_fail(rule: Callable[[Module], Iterator[str]], path: str, text: str) -> None:
    assert list(rule(parsed(path, text)))


@pytest.mark.parametrize("rule,path,text", SOUND)
def test_the_rule_lets_pass(rule: Callable[[Module], Iterator[str]], path: str, text: str) -> None:
    assert list(rule(parsed(path, text))) == []


def test_a_circle_is_found() -> None:
    circle = (parsed("jobs/a.py", "from jobs import b"), parsed("jobs/b.py", "from jobs.c import f"), parsed("jobs/c.py", "import jobs.a"))
    assert list(circles(circle)) == ["jobs.a → jobs.b → jobs.c → jobs.a"]
    assert list(circles((*circle[:2], parsed("jobs/c.py", "def f():\n    import jobs.a")))) == []
