"""Every DAG loads, fast and without engines; what cannot be read is a DAG that says why."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs.commands.airflow_home import ROOT
from tests.dags.conftest import around

pytestmark = pytest.mark.slow

LOOK = """
import json, sys, time
import airflow.sdk, airflow.providers.standard.decorators.python
from airflow.dag_processing.dagbag import DagBag
began = time.process_time()
bag = DagBag(sys.argv[1])
print("found: " + json.dumps({
    "seconds": time.process_time() - began, "errors": bag.import_errors,
    "engines": [m for m in ("pyspark", "mlflow", "great_expectations", "duckdb", "deltalake", "pandas")
                if m in sys.modules],
    "dags": {name: {"tasks": d.task_ids, "tags": sorted(d.tags), "about": d.description,
                    "runs": d.max_active_runs, "catchup": d.catchup,
                    "pools": sorted({t.pool for t in d.tasks}), "doc": d.doc_md,
                    "links": {t.task_id: {one.name: one.get_link(t, ti_key=None) for one in t.operator_extra_links}
                              for t in d.tasks},
                    "when": type(d.timetable).__name__} for name, d in bag.dags.items()}}))
"""


def parsed(home: Path, pipelines: Path, **more: str) -> dict[str, Any]:
    environment = around(home, pipelines, **more)
    done = subprocess.run([sys.executable, "-c", LOOK, str(ROOT / "dags")], cwd=home, env=environment,
                          capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(
        next(line for line in done.stdout.splitlines() if line.startswith("found: ")).removeprefix("found: "))
    assert found["errors"] == {}
    return found


def pipeline(folder: Path, name: str, more: str = "") -> None:
    folder.mkdir(parents=True)
    streams = "streams:\n  views: {columns: {ts: timestamp, k: bigint}, event_time: ts}\n"
    (folder / "forebay.yml").write_text(f"name: {name}\nbatch: 10 seconds\n{more}{streams}")


def test_fifty_pipelines_are_parsed_soon_and_without_engines(tmp_path: Path) -> None:
    for k in range(50):
        pipeline(tmp_path / "pipelines" / f"p{k}", f"p{k}")
    found = parsed(tmp_path, tmp_path / "pipelines")
    assert len(found["dags"]) == 50 * 5 + 1 and found["engines"] == []
    print(f"50 pipelines: {found['seconds']:.2f} s of processor time")
    assert found["seconds"] < 1.0      # half of it on a calm machine; a heavy import would take more


def test_schedules_pools_and_what_is_broken(tmp_path: Path) -> None:
    inside = tmp_path / "pipelines"
    pipeline(inside / "a", "hourly", "schedule: '@hourly'\n")
    pipeline(inside / "b", "always", "schedule: continuous\n")
    pipeline(inside / "c", "after", "schedule: {asset: ../a/warehouse/results/q}\n")
    pipeline(inside / "d", "by_hand")
    pipeline(inside / "e", "hourly")
    pipeline(inside / "f g", "bad", "batches: 7\n")
    found = parsed(tmp_path, inside, FOREBAY_POOLS="on")["dags"]
    assert {
        n: found[f"forebay__{n}"]["when"] for n in ("hourly", "always", "after", "by_hand")
    } == {
        "hourly": "CronTriggerTimetable",
        "always": "ContinuousTimetable",
        "after": "AssetTriggeredTimetable",
        "by_hand": "NullTimetable"
    }
    assert found["forebay__hourly"]["tasks"] == ["ingest", "expectations", "batches", "publish", "failures"]
    assert found["forebay__hourly"]["runs"] == 1
    assert not any(d["catchup"] for d in found.values())
    assert found["forebay__hourly"]["pools"] == found["forebay__hourly__maintenance"]["pools"] == ["forebay__hourly"]
    assert found["forebay__hourly__queries"]["pools"] == ["default_pool"]      # a request waits for nobody
    broken = {n: d for n, d in found.items() if "broken" in d["tags"]}
    assert sorted(broken) == ["forebay__f_g", "forebay__hourly.2"]
    assert "line 3" in broken["forebay__f_g"]["about"] and "did you mean 'batch'" in broken["forebay__f_g"]["about"]
    assert broken["forebay__f_g"]["when"] == "CronTriggerTimetable"      # red by itself, not only when it is asked
    assert found["forebay__hourly__release"]["tasks"] == ["release"]
    assert "same name" in broken["forebay__hourly.2"]["about"]


def test_a_task_s_page_leads_to_the_data_docs_and_to_mlflow(tmp_path: Path) -> None:
    pipeline(tmp_path / "pipelines" / "a", "a")
    found = parsed(tmp_path, tmp_path / "pipelines", FOREBAY_PAGES="http://127.0.0.1:8090/")["dags"]
    there = {
        "Pipeline": "http://127.0.0.1:8090/a/",
        "Data docs": "http://127.0.0.1:8090/a/docs/index.html",
        "Costs in MLflow": "http://127.0.0.1:8090/a/mlflow"
    }
    links = dict.fromkeys(("ingest", "publish", "failures"), dict[str, str]())
    assert found["forebay__a"]["links"] == {**links, "expectations": there, "batches": there}
    assert found["forebay__a__adapt"]["links"]["track"] == there
    assert all(address in found["forebay__a"]["doc"] for address in there.values())
    without = parsed(tmp_path, tmp_path / "pipelines", FOREBAY_PAGES="")["dags"]["forebay__a"]
    assert not any(without["links"].values()) and "Data docs" not in without["doc"]
