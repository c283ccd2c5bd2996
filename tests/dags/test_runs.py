"""DAGs run whole, without a server: boundaries once, events with their versions, forms refused or carried out, a held
pipeline left to its holder.
"""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import forebay
from jobs.results import answers
from jobs.storage import tables
from jobs.storage.lock import held
from optimizer.time import iso
from tests.dags.conftest import Run, began, ended
from tests.jobs.pipelines import equal

pytestmark = pytest.mark.slow
SHOP = "forebay__shop"
GOOD: dict[str, Any] = {
    "action": "create",
    "query": "rich",
    "sql": "SELECT COUNT(*) AS n FROM purchases AS b [WINDOW 1 HOUR]"
}
FORMS = [({**GOOD, "query": "../../etc"}, "query"), ({**GOOD, "action": "drop"}, "action"),
         ({"action": "pin", "query": "totals", "plan": "LAP; rm -rf /"}, "plan"), ({**GOOD, "sql": 7}, "sql")]


def opened(pipelines: Path, patch: pytest.MonkeyPatch) -> forebay.Pipeline:
    patch.setenv("FOREBAY_MASTER", "inline")
    return forebay.open(str(pipelines / "shop"))


def more(pipelines: Path, minute: int) -> None:
    landing = pipelines / "shop" / "landing"
    at = f"2025-01-01T12:{minute:02d}:00Z"
    (landing / "views" / f"m{minute}.csv").write_text(f"ts,user,page,ms\n{at},u1,news,700\n")
    (landing / "purchases"
     / f"m{minute}.json").write_text(json.dumps({
         "ts": at,
         "user": "u1",
         "amount": "1.50"
     }) + "\n")


def test_boundaries_run_once_and_events_say_what_they_made(dags: Run, pipelines: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    first, again, told = dags((SHOP, {}), (SHOP, {}), ("events", {}))
    names = ("ingest", "expectations", "batches", "publish", "failures")
    assert first["tasks"] == dict.fromkeys(names, "success") and first["said"]["batches"]["boundaries"] == 11
    assert again["state"] == "success" and again["said"]["batches"]["boundaries"] == 0 and again["tasks"][
        "publish"] == "skipped"
    assert first["said"]["expectations"]["docs"] is None and again["said"]["expectations"]["docs"].endswith(
        "/shop/warehouse/docs/index.html")
    pipe = opened(pipelines, monkeypatch)
    assert equal(pipe)
    tables_of = {e["uri"].rpartition("/")[2]: e["extra"] for e in told["events"] if e["uri"].startswith("file://")}
    for name in ("sections", "slow_pages", "totals"):
        at = tables.open_table(str(pipelines / "shop" / "warehouse" / "results" / name))
        assert tables_of[name] == {
            "boundary": iso(answers.published(pipe.runtime, name)[-1]),
            "plan": pipe.plans(name)["decisions"][-1]["plan"],
            "version": at.version
        }
    assert [tables_of[name]["boundary"][11:16] for name in ("sections", "slow_pages", "totals")].count("10:50") >= 1
    assert [e["extra"]["boundary"] for e in told["events"] if e["uri"] == "x-forebay://shop"
            ] == ["2025-01-01T10:50:00Z"]


def test_forms_are_carried_out_or_refused(dags: Run, pipelines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = f"{SHOP}__queries"
    bad = [(queries, form) for form, _ in FORMS]
    late = [(queries, {
        **GOOD, "sql": None
    }), (queries, {
        **GOOD, "sql": "SELECT v.pge FROM views AS v"
    }), (queries, {
        "action": "pause",
        "query": "nobody"
    })]
    good = [(queries, GOOD), (queries, {"action": "pause", "query": "totals"})]
    done = dags((SHOP, {"boundaries": 3}), *bad, *late, *good, (SHOP, {}), (SHOP, {"boundaries": 0}))
    assert done[0]["said"]["batches"]["boundaries"] == 3
    for (_, field), said in zip(FORMS, done[1:]):
        assert "ParamValidationError" in said["refused"] and field in said["refused"], (field, said)
    for said in done[1 + len(bad):1 + len(bad) + len(late)]:
        assert said["state"] == "failed"
    assert done[-4]["said"]["change"]["state"] == "active" and done[-3]["said"]["change"]["state"] == "paused"
    assert "ParamValidationError" in done[-1]["refused"]
    pipe = opened(pipelines, monkeypatch)
    assert {
        q["query"]: q["state"] for q in pipe.queries()
    } == {
        "rich": "active",
        "sections": "active",
        "slow_pages": "active",
        "totals": "paused"
    }
    assert equal(pipe) and len(pipe.table("rich", every=True)) == 8


def test_a_failed_query_is_red_at_each_run_and_a_stop_is_released_by_form(
        dags: Run, pipelines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = opened(pipelines, monkeypatch)
    pipe.create("broken", "SELECT SUM(v.ms / (v.ms - v.ms)) AS x FROM views AS v [WINDOW UNTIL NOW]")
    first, again = dags((SHOP, {}), (SHOP, {}))
    for run in (first, again):
        assert (run["state"], run["tasks"]["batches"], run["tasks"]["failures"]) == ("failed", "success", "failed")
    assert first["tasks"]["publish"] == "success" and again["tasks"]["publish"] == "skipped"
    assert equal(opened(pipelines, monkeypatch))
    assert [failure["query"] for failure in first["said"]["batches"]["failed"]] == ["broken"]
    folder = pipelines / "shop" / "expectations"
    folder.mkdir(exist_ok=True)
    (folder / "views.yml").write_text("stream: views\nexpectations:\n- {type: expect_table_row_count_to_be_between, "
                                      "max_value: 0, severity: critical}\n")
    more(pipelines, 5)
    pipe.change("broken", "delete")
    first_stop, last_stop = "2025-01-01T11:00:00Z", "2025-01-01T12:10:00Z"      # 10:50 was the last to be published
    form = {"boundary": first_stop, "reason": "a sale", "until": last_stop, "expectation": None}
    stopped, refused, released, run = dags(
        (SHOP, {"flush": True}), (f"{SHOP}__release", {**form, "boundary": last_stop}),
        (f"{SHOP}__release", form), (SHOP, {"flush": True}))
    assert (stopped["tasks"]["batches"], stopped["tasks"]["failures"]) == ("failed", "upstream_failed")
    assert refused["state"] == "failed"
    assert (released["said"]["release"]["boundary"], released["said"]["release"]["until"]) == (first_stop, last_stop)
    assert run["state"] == "success" and equal(opened(pipelines, monkeypatch))


@pytest.mark.long
def test_a_held_pipeline_is_left_to_its_holder(dags: Run, pipelines: Path) -> None:
    with held(str(pipelines / "shop" / "warehouse")):
        said, = dags((SHOP, {}), FOREBAY_PATIENCE="0")
    assert said["state"] == "success" and said["tasks"].pop("failures") == "success"
    assert set(said["tasks"].values()) == {"skipped"}


@pytest.mark.long
def test_a_trigger_and_a_schedule_at_once_lose_nothing(home: Path, pipelines: Path,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    more(pipelines, 5)
    both = [began(home, pipelines, [(SHOP, {}), (SHOP, {"flush": True})]) for _ in range(2)]
    said = [one for process in both for one in ended(process)]
    assert {one["state"] for one in said} == {"success"}
    pipe = opened(pipelines, monkeypatch)
    assert equal(pipe) and sum(one["said"]["batches"]["boundaries"]
                               for one in said) == len(pipe.table("totals", every=True))
    rows = sum(t["rows"] for one in said for t in one["said"]["ingest"]["streams"].values())
    assert rows == sum(s["rows"] for s in pipe.stats()["streams"].values())


@pytest.mark.long
def test_the_other_dags_of_a_pipeline(dags: Run, pipelines: Path) -> None:
    _, adapted, kept, listed = dags((SHOP, {}), (f"{SHOP}__adapt", {}), (f"{SHOP}__maintenance", {}),
                                    ("forebay__experiments", {}))
    assert {s["state"] for s in (adapted, kept, listed)} == {"success"}
    assert {"batch-cost", "a-fig6", "windows-table-1"} <= set(listed["said"]["measure"])
    names = {"sections", "slow_pages", "totals"}
    assert set(adapted["said"]["statistics"]["queries"]) == set(adapted["said"]["track"]["queries"]) == names
    assert {entry["query"] for entry in adapted["said"]["optimize"]["decisions"]} == names
    assert adapted["said"]["track"]["mlflow"]["queries"]["totals"]["batches"] == 1
    assert (pipelines / "shop" / "warehouse" / "mlflow" / "mlflow.db").exists()
