"""`forebay status` and `forebay --version` at the command line: document, text, exit codes, what they do not import."""
from __future__ import annotations

import io
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from forebay.text import status as status_in_words
from tests.forebay.conftest import Cli

ROOT = Path(__file__).parents[2]
STOPS = ("stream: views\nexpectations:\n- {type: expect_table_row_count_to_be_between, max_value: 0, "
         "severity: critical}\n")
DIVIDES = "SELECT SUM(1 DIV (v.ms - v.ms)) AS x FROM views AS v [WINDOW 1 HOUR]"
HEAVY = ("pyspark", "pandas", "mlflow", "great_expectations", "matplotlib", "airflow", "numba")
QUERY = {"state": "active", "boundary": "2026-01-01T00:00:20Z", "rows": 1234, "plan": "EAP1 running", "pinned": None,
         "problem": None, "address": "results/q", "unpublished": 0}
STREAM = {"last_row": "2026-01-01T00:00:25Z", "arrived": "2026-01-01T00:01:00Z", "lag_s": 7300.0, "late": 2,
          "quarantined": 5, "reasons": {"too late": 2, "a\x1b[2J": 1}}
DECIDED = {"mode": "batch", "at": None, "boundary": None, "statistics_at": None, "statistics_boundary": None}
DOCUMENT: dict[str, Any] = {
    "state": "waiting", "because": "boundary T waits", "streams": {"views": STREAM}, "queries": {"q": QUERY},
    "next": "2026-01-01T00:00:30Z", "waiting_for": ["views"], "without_version": [], "runner": None,
    "committed": "2026-01-01T00:00:20Z", "published": "2026-01-01T00:00:20Z", "decided": DECIDED
}


def shown(**changes: Any) -> str:
    out = io.StringIO()
    status_in_words({**DOCUMENT, **changes})(out)
    return out.getvalue()


def test_streams_and_queries_are_tables_with_what_is_wrong_below() -> None:
    text = shown()
    assert text.startswith("waiting: boundary T waits\n") and "2 h" in text and "1,234" in text
    assert "quarantined of views: 2 too late; 1 a\\x1b[2J; 2 for other reasons\n" in text and "\x1b" not in text
    failed = shown(state="failed", because="query q failed", queries={"q": {**QUERY, "problem": "failed at T: why"}})
    assert "q: failed at T: why\n" in failed and "next is 2026-01-01T00:00:30Z, which waits for newer rows" in failed


@pytest.mark.parametrize(("published", "runner", "told"), [
    ("2026-01-01T00:00:10Z", None, "only those up to 2026-01-01T00:00:10Z are public: the others will be by the next"),
    (None, None, "answers up to 2026-01-01T00:00:20Z are committed, none are public"),
    (None, "process 7", "at the end of its run")
])
def test_the_lag_of_addresses_is_told(published: str | None, runner: str | None, told: str) -> None:
    assert told in shown(published=published, runner=runner, queries={"q": {**QUERY, "unpublished": 1}})
    assert "are committed" not in shown(published=published, runner=runner)


def test_decisions_of_a_task_have_an_age() -> None:
    assert "`forebay adapt` has not run yet" in shown(decided={**DECIDED, "mode": "task"})
    at = {**DECIDED, "mode": "task", "at": "2026-01-01T00:00:21Z", "boundary": "2026-01-01T00:00:20Z"}
    assert "plans as decided at 2026-01-01T00:00:21Z, after boundary 2026-01-01T00:00:20Z" in shown(decided=at)


def test_the_version(cli: Cli) -> None:
    assert cli("--version").out == f"forebay {version('forebay')}\n"
    asked = cli("--version", "--json")
    assert (asked.code, asked.document) == (0, {"version": version("forebay")})
    for wrong in (("--version", "status"), (), ("--json", )):
        refused = cli(*wrong)
        assert refused.code == 2 and "--help" in refused.out + refused.err


@pytest.mark.slow
def test_the_document_and_its_exit_code(cli: Cli, shop: Path) -> None:
    waiting = cli("status", "--json", "--pipeline", str(shop))
    document = waiting.document
    assert (waiting.code, document["state"], document["next"]) == (0, "waiting", "2025-01-01T11:10:00Z")
    assert document["streams"]["views"]["last_row"] == "2025-01-01T10:59:48Z"
    assert document["streams"]["views"]["reasons"] == {"bad type: column ms": 1}
    assert set(document["queries"]) == {"sections", "slow_pages", "totals"}
    totals = document["queries"]["totals"]
    assert (totals["boundary"], totals["rows"]) == ("2025-01-01T11:00:00Z", 1) and totals["plan"]
    text = cli("status", "--pipeline", str(shop))
    assert text.code == 0 and "results/totals" in text.out and "bad type: column ms" in text.out


@pytest.mark.slow
def test_what_is_stopped_or_failed_exits_with_1(cli: Cli, shop: Path) -> None:
    at = str(shop)
    assert cli("query", "create", "bad", DIVIDES, "--pipeline", at).code == 0
    (shop / "landing" / "views" / "late.csv").write_text("ts,user,page,ms\n2025-01-01T11:05:00Z,u1,news,700\n")
    cli("ingest", "--pipeline", at)
    cli("run", "--flush", "--pipeline", at)
    failed = cli("status", "--json", "--pipeline", at)
    assert (failed.code, failed.document["state"]) == (1, "failed")
    assert failed.document["queries"]["bad"]["problem"] and cli("status", "--pipeline", at).code == 1
    (shop / "expectations").mkdir()
    (shop / "expectations" / "views.yml").write_text(STOPS)
    (shop / "landing" / "views" / "later.csv").write_text("ts,user,page,ms\n2025-01-01T11:15:00Z,u1,news,700\n")
    cli("ingest", "--pipeline", at)
    assert cli("run", "--flush", "--pipeline", at).code == 1
    stopped = cli("status", "--json", "--pipeline", at)
    assert (stopped.code, stopped.document["state"]) == (1, "stopped")
    assert cli("status", "--json", "--pipeline", str(shop / "nowhere")).code == 2


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--json", "--pipeline"])
def test_it_starts_no_spark_and_imports_nothing_heavy(shop: Path, option: str) -> None:
    arguments = ["status", "--pipeline", str(shop), *(["--json"] if option == "--json" else [])]
    program = ("import sys\nfrom forebay.cli import main\n"
               f"code = main({arguments!r})\nprint(code, sorted(set({HEAVY!r}) & set(sys.modules)))")
    there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True,
                           env={**os.environ, "FOREBAY_MASTER": "local[2]"})
    assert there.stdout.splitlines()[-1] == "0 []"
