"""A real Airflow, as `make up` starts it: forms refused with a message, a broken folder beside sound ones, and
everybody at once, who lose nothing.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import forebay
from forebay.examples import copy
from jobs.commands import airflow_api as rest
from jobs.commands.airflow_home import ROOT
from jobs.engine.spark import TOKEN
from tests.dags.conftest import Up, served
from tests.jobs.pipelines import equal

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
DAG = "forebay__shop"
PATIENCE = 240.0
BACKFILLED = 3          # runs of the past
STEPS = 6               # times that new input comes while all run
FORMS = [(f"{DAG}__queries", {
    "action": "create",
    "query": "a b",
    "sql": "SELECT 1"
}, "query"), (f"{DAG}__queries", {
    "action": "drop",
    "query": "q"
}, "action"), (f"{DAG}__queries", {
    "action": "pin",
    "query": "totals",
    "plan": "LAP; rm -rf /"
}, "plan"), (DAG, {
    "boundaries": 0
}, "boundaries"), (DAG, {
    "to": "tomorrow"
}, "to"), (DAG, {
    "flush": "yes"
}, "flush")]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A pipeline that is scheduled every minute, and a folder that cannot be read."""
    folder = tmp_path_factory.mktemp("server")
    copy("shop", str(folder / "pipelines" / "shop"))
    settings = folder / "pipelines" / "shop" / "forebay.yml"
    settings.write_text(settings.read_text().replace("batch: 10 minutes", "schedule: '* * * * *'\nbatch: 10 minutes"))
    (folder / "pipelines" / "bad").mkdir()
    (folder / "pipelines" / "bad" / "forebay.yml").write_text("name: bad\nbatches: 7\n")
    with served(folder / "up", folder / "pipelines") as up:
        yield up


@pytest.mark.parametrize("dag,form,field", FORMS)
def test_a_value_that_does_not_fit_is_refused_with_a_message(there: Up, dag: str, form: dict[str, Any],
                                                             field: str) -> None:
    run = {"logical_date": None, "conf": form}
    status, said = rest.request_document(there.airflow, f"/api/v2/dags/{dag}/dagRuns", run)
    assert status == 400 and field in str(said["detail"])


def test_a_broken_folder_is_one_dag_that_says_why_and_the_others_live(there: Up) -> None:
    found = {d["dag_id"]: d for d in rest.call(there.airflow, "/api/v2/dags?limit=100")["dags"]}
    broken = [d for d in found.values() if "broken" in {t["name"] for t in d["tags"]}]
    assert [d["dag_id"] for d in broken] == ["forebay__bad"]
    assert "line 2" in broken[0]["description"] and "did you mean 'batch'" in broken[0]["description"]
    assert {DAG, f"{DAG}__adapt", f"{DAG}__queries", f"{DAG}__maintenance"} <= set(found)
    assert rest.call(there.airflow, "/api/v2/importErrors")["total_entries"] == 0
    assert rest.ended(there.airflow, "forebay__bad", rest.trigger(there.airflow, "forebay__bad"),
                      PATIENCE)["state"] == "failed"


def test_a_trigger_the_schedule_a_backfill_and_a_command_at_once_lose_nothing(there: Up,
                                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    folder = there.pipelines / "shop"
    now = datetime.now(timezone.utc).replace(second=0, microsecond=0)
    past = {
        "dag_id": DAG,
        "from_date": (now - timedelta(minutes=BACKFILLED + 1)).isoformat(),
        "to_date": (now - timedelta(minutes=2)).isoformat(),
        "reprocess_behavior": "completed",
        "max_active_runs": BACKFILLED
    }
    rest.call(there.airflow, "/api/v2/backfills", past)
    for step in range(STEPS):
        lay(folder, step)
        rest.trigger(there.airflow, DAG)
        if step % 2:
            command(folder, "ingest"), command(folder, "run")
    runs = quiet(there)
    assert {r["state"]
            for r in runs} == {"success"} and {"manual", "scheduled", "backfill"} <= {r["run_type"] for r in runs}
    assert rest.ended(there.airflow, DAG, rest.trigger(there.airflow, DAG, {"flush": True}),
                      PATIENCE)["state"] == "success"
    monkeypatch.setenv("FOREBAY_MASTER", "inline")
    pipe = forebay.open(str(folder))
    landed = sum(len(f.read_text().splitlines()) - (f.suffix == ".csv") for f in (folder / "landing").rglob("*.*"))
    assert equal(pipe) and accounted(pipe) == landed
    batches = pipe.runtime.ledger.committed_batches()
    boundaries = [b.first_boundary + n * 600_000_000 for b in batches for n in range(b.boundary_count)]
    assert boundaries == list(range(boundaries[0], boundaries[-1] + 1,
                                    600_000_000)), "each boundary once, none left out"
    assert {"manual", "scheduled"} & {batch.runner.trigger for batch in batches}


def test_a_session_that_somebody_closed_is_done_without(there: Up) -> None:
    """Tasks share one of the server's; in a process of its own, since a client is one session."""
    folder = there.pipelines / "shop"
    lay(folder, STEPS)
    closing = (
        "import sys\nfrom jobs.engine import spark\nfrom jobs.pipeline.config import load\n"
        "found = spark.session(sys.argv[1], {}, "
        "load(sys.argv[2]).warehouse)\nfound.range(3).count()\nfound.client.release_session()\n"
    )
    said = json.loads((there.place / "where.json").read_text())
    done = subprocess.run(
        [sys.executable, "-c", closing, said["spark"], str(folder)], cwd=ROOT, capture_output=True, text=True,
        timeout=100, env={
            **os.environ, TOKEN: said["token"]
        })
    assert done.returncode == 0, done.stderr
    run = rest.trigger(there.airflow, DAG)
    assert rest.ended(there.airflow, DAG, run, PATIENCE)["state"] == "success"
    assert {t["try_number"] for t in rest.tasks(there.airflow, DAG, run)} == {1}


def test_a_pipeline_that_comes_later_gets_its_pool_and_runs(there: Up) -> None:
    folder = there.pipelines / "later"
    copy("shop", str(folder))
    settings = folder / "forebay.yml"
    settings.write_text(settings.read_text().replace("name: shop", "name: later"))
    end = time.monotonic() + PATIENCE
    while rest.request_document(there.airflow, "/api/v2/dags/forebay__later")[0] != 200 or rest.request_document(
            there.airflow, "/api/v2/pools/forebay__later")[0] != 200:
        assert time.monotonic() < end, "no DAG, or no pool"
        time.sleep(1.0)
    assert rest.ended(there.airflow, "forebay__later", rest.trigger(there.airflow, "forebay__later"),
                      PATIENCE)["state"] == "success"


def lay(folder: Path, step: int) -> None:
    at = f"2025-01-01T12:{9 * step:02d}:00Z"
    (folder / "landing" / "views" / f"s{step}.csv").write_text(f"ts,user,page,ms\n{at},u1,news,{700 + step}\n")
    (folder / "landing" / "purchases"
     / f"s{step}.json").write_text(json.dumps({
         "ts": at,
         "user": "u1",
         "amount": "1.50"
     }) + "\n")


def command(folder: Path, name: str) -> None:
    """3: a run of Airflow's holds the pipeline just then, and does the work."""
    done = subprocess.run([sys.executable, "-m", "forebay.cli", name, "--pipeline",
                           str(folder)], cwd=ROOT, capture_output=True, text=True, env={
                               **os.environ, "FOREBAY_MASTER": "inline",
                               "PYTHONPATH": str(ROOT)
                           })
    assert done.returncode in (0, 3), done.stderr


def quiet(there: Up) -> list[dict[str, Any]]:
    """All runs, when none is waiting or at work."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        runs: list[dict[str, Any]] = rest.call(there.airflow, f"/api/v2/dags/{DAG}/dagRuns?limit=100")["dag_runs"]
        if all(r["state"] in rest.ENDED for r in runs) and any(r["run_type"] == "scheduled" for r in runs):
            return runs
        time.sleep(1.0)
    raise AssertionError("runs do not end")


def accounted(pipe: forebay.Pipeline) -> int:
    """Rows on time, late and quarantined."""
    from jobs.ingest import register as intake

    return sum(intake.counts(pipe.runtime.warehouse))
