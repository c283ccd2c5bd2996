"""MLflow says what the ledger says: a run a query, one a plan, a step a batch.

Once, whatever is repeated or breaks off.
"""
from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from jobs.commands import scheduled
from jobs.commands.airflow_home import ROOT
from jobs.maintenance.integrity import state_paths
from jobs.reports import tracking
from jobs.results.candidates import COLUMNS
from optimizer.errors import ForebayError
from tests.jobs import pipelines
from tests.jobs.pipelines import COUNT, pipeline, rows

JOIN = ("SELECT v.k, COUNT(*) AS n, SUM(c.x) AS s FROM views AS v [WINDOW 20 SECONDS], clicks AS c [WINDOW 20 SECONDS] "
        "WHERE v.k = c.k GROUP BY v.k")
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def own_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tracking.VARIABLE, raising=False)


def history(pipe: Any) -> tuple[Any, dict[str, Any], dict[str, list[Any]]]:
    """The client, each query's run, and the runs of its plans from the first on."""
    from mlflow import MlflowClient

    place = tracking.store(pipe.runtime.pipeline)
    assert place is not None
    client = MlflowClient(tracking_uri=place.uri)
    found = client.search_runs([client.get_experiment_by_name("forebay/test").experiment_id],
                               order_by=["attributes.start_time"])
    parents = {r.data.tags["forebay.query"]: r for r in found if r.data.tags["forebay.kind"] == "query"}
    return client, parents, {
        n: [r for r in found if r.data.tags.get("mlflow.parentRunId") == p.info.run_id] for n, p in parents.items()
    }


def steps(client: Any, run: Any, metric: str) -> dict[int, float]:
    found = client.get_metric_history(run.info.run_id, metric)
    assert len({m.step for m in found}) == len(found), "logged twice"
    return {m.step: m.value for m in found}


def test_what_ran_is_logged_once_with_its_switches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = pipeline(tmp_path, {"views": "", "clicks": ""}, queries={"q": JOIN})
    pipe.create("q", JOIN)
    pipe.change("q", "pin", "LAP recompute")
    for second in (5, 15, 25):
        rows(pipe, [second] * 3), rows(pipe, [second] * 2, "clicks")
        pipe.run()
    assert tracking.track(pipe.runtime)["queries"]["q"]["batches"] == len(pipe.plans("q")["decisions"]) == 2
    pipe.change("q", "pin", "EAP11 recompute")
    rows(pipe, [35, 45]), rows(pipe, [35, 45], "clicks")
    pipe.run()
    broken_off(pipe, monkeypatch)
    said = pipe.plans("q")["decisions"]
    assert tracking.track(pipe.runtime)["queries"]["q"]["batches"] == len(said) - 2
    assert tracking.track(pipe.runtime)["queries"]["q"]["batches"] == 0
    client, parents, children = history(pipe)
    assert steps(client, parents["q"], "seconds/measured") == {d["batch"]: round(d["measured_s"], 6) for d in said}
    assert sum(steps(client, parents["q"], "work/rows").values()) == 3 + 2 + 3 + 2 + 3 + 2 + 1 + 1
    first, second = children["q"]
    assert [r.data.params["plan"]
            for r in (first, second)] == ["LAP recompute", "EAP11 recompute"] and second.data.params["early"] == "v, c"
    assert [r.info.status for r in (first, second)
            ] == ["FINISHED", "RUNNING"] and second.data.tags["forebay.switched_from"] == "LAP recompute"
    assert steps(client, first, "seconds/measured") | steps(client, second, "seconds/measured") == steps(
        client, parents["q"], "seconds/measured")
    assert parents["q"].data.tags["forebay.switches"] == "1" and parents["q"].data.tags[
        "forebay.pinned"] == "EAP11 recompute"
    assert {a.path for a in client.list_artifacts(parents["q"].info.run_id)
            } == {"candidates.json", "cost.png", "explain", "images", "query.sql", "switches.json"}
    assert {"candidates.json", "plan.txt", "plan.sql", "query.sql"
            } <= {a.path for a in client.list_artifacts(first.info.run_id)}


def test_state_fan_out_and_who_asked_are_told(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "", "clicks": ""}, queries={"q": JOIN})
    pipe.create("q", JOIN)
    pipe.change("q", "pin", "EAP11 running")
    for second in (5, 15, 25):
        rows(pipe, [second] * 3), rows(pipe, [second] * 2, "clicks")
        pipe.run()
    tracking.track(pipe.runtime)
    client, parents, _ = history(pipe)
    assert parents["q"].data.tags["forebay.trigger"] == "cli" and parents["q"].data.tags["forebay.dag_run"] == ""
    state = steps(client, parents["q"], "work/state_bytes")
    on_disk = {
        f.path: f.size
        for s in pipe.runtime.ledger.last().states.values()
        for p in state_paths(pipe.runtime, "q", s)
        for f in pipe.runtime.table(p).refresh().files()
    }
    assert state[max(state)] == sum(on_disk.values()) > 0
    # the window of 20 s: at 20 s six views and four clicks of one key
    assert steps(client, parents["q"], "work/joined_rows")[1] == pytest.approx(24) and steps(
        client, parents["q"], "work/fan_out")[1] == pytest.approx(24 / 10)
    scheduled.batches(str(tmp_path), flush=True, asked_by="manual manual__2026-01-01T00:00:00+00:00")
    pipe.change("q", "pin", "LAP recompute")
    rows(pipe, [55]), rows(pipe, [55], "clicks")
    scheduled.batches(str(tmp_path), flush=True, asked_by="scheduled r2")
    tracking.track(pipe.runtime)
    client, parents, plans = history(pipe)
    assert [(r.data.tags["forebay.trigger"], r.data.tags["forebay.dag_run"]) for r in (parents["q"], *plans["q"])] == [
        ("scheduled", "r2"), ("manual", "manual__2026-01-01T00:00:00+00:00"), ("scheduled", "r2")]
    assert set(steps(client, plans["q"][1], "work/state_bytes").values()) == {0.0}      # it keeps none
    assert set(steps(client, parents["q"], "work/state_bytes")) == set(steps(client, parents["q"], "seconds/measured"))


def switched(folder: Path) -> Any:
    """A pipeline whose query chose a plan by price, and then had another one pinned, logged twice on the way."""
    pipe = pipeline(folder, {"views": "", "clicks": ""}, queries={"q": JOIN})
    for second in (5, 15, 25):
        rows(pipe, [second] * 3), rows(pipe, [second] * 2, "clicks")
        pipe.run()
    tracking.track(pipe.runtime)
    pipe.change("q", "pin", "EAP11 recompute")
    rows(pipe, [35, 45]), rows(pipe, [35, 45], "clicks")
    pipe.run()
    tracking.track(pipe.runtime)
    tracking.track(pipe.runtime)
    return pipe


def candidates(client: Any, run: Any) -> Any:
    """The table as mlflow.load_table finds and reads it, which asks a tracking server of the whole process."""
    wanted = "tags.`mlflow.loggedArtifacts` LIKE '%\"path\"%:%\"candidates.json\",%\"type\"%:%\"table\"%'"
    assert run.info.run_id in {found.info.run_id for found in client.search_runs([run.info.experiment_id], wanted)}
    return pd.read_json(client.download_artifacts(run.info.run_id, "candidates.json"), orient="split")


def test_a_decision_s_run_has_its_candidates_as_a_table_and_the_reason(tmp_path: Path) -> None:
    client, parents, children = history(switched(tmp_path))
    first, second = children["q"]
    for run in (parents["q"], first, second):
        table = candidates(client, run)
        assert tuple(table.columns) == COLUMNS and table["plan"].is_unique, "a table of the last time is replaced"
        assert list(table[table["chosen"]]["plan"]) == [run.data.tags["forebay.plan"]]
    table = candidates(client, first)
    priced = table[table["refused"] == ""]
    assert len(priced) > 2 and priced["predicted_s"].notna().all() and priced["predicted_s"].is_monotonic_increasing
    measured = set(table[table["measured_s"].notna()]["plan"])
    assert measured == {first.data.tags["forebay.plan"], "EAP11 recompute"}
    assert first.data.tags["forebay.reason"] == "the cheapest at its first boundary"
    assert second.data.tags["forebay.reason"] == "pinned" and second.data.params["decision_predicted_s"]


def test_runs_and_the_experiment_say_in_words_what_they_show(tmp_path: Path) -> None:
    client, parents, children = history(switched(tmp_path))
    first, second = children["q"]
    notes = {run.info.run_id: run.data.tags["mlflow.note.content"] for run in (parents["q"], first, second)}
    assert all(len(note) < tracking.LONGEST for note in notes.values())
    note = notes[parents["q"].info.run_id]
    assert note.startswith("**EAP11 recompute** answers `q` since 2026-01-01T00:00:") and "Why: pinned." in note
    assert note.count("| EAP11 recompute |") == 1 and "GROUP BY v.k" in note
    assert f"get-artifact?path=cost.png&run_uuid={parents['q'].info.run_id}" in note
    assert "After it: EAP11 recompute" in notes[first.info.run_id] and ", chosen |" in notes[first.info.run_id]
    assert f"Before it: {first.data.tags['forebay.plan']}, measured to take" in notes[second.info.run_id]
    for run in (parents["q"], first, second):
        assert run.data.tags["forebay.cost_model"] == "measured" and "cores" in run.data.tags["forebay.machine"]
    experiment = client.get_experiment(first.info.experiment_id)
    assert "**test**" in experiment.tags["mlflow.note.content"]


def test_what_people_wrote_on_the_experiment_stays(tmp_path: Path) -> None:
    pipe = switched(tmp_path)
    client, parents, _ = history(pipe)
    client.set_experiment_tag(parents["q"].info.experiment_id, "mlflow.note.content", "ours")
    tracking.track(pipe.runtime)
    assert client.get_experiment(parents["q"].info.experiment_id).tags["mlflow.note.content"] == "ours"


def test_one_picture_of_each_query_is_among_the_charts(tmp_path: Path) -> None:
    client, parents, _ = history(switched(tmp_path))
    run = parents["q"].info.run_id
    assert parents["q"].data.tags["mlflow.loggedImages"] == "True"
    images = [artifact.path for artifact in client.list_artifacts(run, "images")]
    assert sorted(Path(path).suffix for path in images) == [".png", ".webp"], "the picture of the last time is replaced"
    assert all(path.startswith("images/prices~q+step+0+") for path in images)
    assert [artifact.file_size > 10_000 for artifact in client.list_artifacts(run) if artifact.path == "cost.png"]


def test_what_was_logged_under_other_names_is_logged_again(tmp_path: Path) -> None:
    """Versions before kept `forebay.upto`; their runs get what they lack, and keep what they have."""
    pipe = switched(tmp_path)
    client, parents, children = history(pipe)
    run = parents["q"].info.run_id
    client.delete_tag(run, "forebay.logged")
    client.set_tag(run, "forebay.upto", "1")
    before = steps(client, parents["q"], "seconds/measured")
    assert tracking.track(pipe.runtime)["queries"]["q"]["batches"] == len(before)
    assert steps(client, parents["q"], "seconds/measured") == before
    assert len(history(pipe)[2]["q"]) == len(children["q"])


def broken_off(pipe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, the artifacts cannot be written: metrics are there then, the tag that says so is not."""
    def broken(*_: Any) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(tracking, "_artifacts", broken)
        with pytest.raises(ForebayError, match="did not take what the ledger has: no space"):
            tracking.track(pipe.runtime)


@pytest.mark.parametrize("answer",
                         ["", "HTTP/1.1 507 Insufficient Storage\r\nContent-Length: 7\r\n\r\nno room", "never"])
def test_a_store_that_is_down_full_or_slow_loses_nothing_and_keeps_no_batch(tmp_path: Path,
                                                                            monkeypatch: pytest.MonkeyPatch,
                                                                            answer: str) -> None:
    for variable in ("TIMEOUT", "MAX_RETRIES"):
        monkeypatch.setenv(f"MLFLOW_HTTP_REQUEST_{variable}", "1")
    pipe = pipeline(tmp_path, queries={"a": COUNT})
    with ailing(answer) as uri:
        monkeypatch.setenv(tracking.VARIABLE, uri)
        rows(pipe, [5, 15, 25])
        assert scheduled.batches(str(tmp_path))["boundaries"] == 2      # nothing of it is asked while a batch runs
        began = time.monotonic()
        with pytest.raises(ForebayError, match=f"MLflow at {uri} did not take") as error:
            tracking.track(pipe.runtime)
        assert error.value.code in outcomes_that_pass() and time.monotonic() - began < 30
    monkeypatch.setenv(tracking.VARIABLE, f"sqlite:///{tmp_path}/later.db")
    assert tracking.track(pipe.runtime)["queries"]["a"]["batches"] == 1 and tracking.track(
        pipe.runtime)["queries"]["a"]["batches"] == 0


@contextmanager
def ailing(answer: str) -> Iterator[str]:
    """The address of a server that says this to whoever asks, or nothing for ever.

    Of none where it would say nothing.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        uri = f"http://127.0.0.1:{server.getsockname()[1]}"
        if answer:
            threading.Thread(target=_serve, args=(server, answer), daemon=True).start()
        else:
            server.close()
        yield uri


def _serve(server: socket.socket, answer: str) -> None:
    kept = []
    with suppress(OSError):
        while True:
            kept.append(server.accept()[0])
            if answer != "never":
                kept[-1].recv(65536)
                kept[-1].sendall(answer.encode())
                kept.pop().close()


def outcomes_that_pass() -> tuple[str, ...]:
    """dags.outcomes imports Airflow; its list is a literal."""
    text = (ROOT / "dags" / "outcomes.py").read_text()
    return tuple(re.findall(r'"([\w-]+)"', re.search(r"PASSING = \((.*?)\)", text)[1]))      # type: ignore[index]


def test_a_query_that_ends_ends_its_run(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"a": COUNT, "b": COUNT})
    rows(pipe, [5, 15])
    pipe.run()
    pipe.change("a", "delete")
    assert tracking.track(pipe.runtime)["queries"].keys() == {"a", "b"}
    _, parents, _ = history(pipe)
    assert {n: r.info.status for n, r in parents.items()} == {"a": "FINISHED", "b": "RUNNING"}


def test_off_and_before_the_first_batch_nothing_is_made(tmp_path: Path) -> None:
    off = pipeline(tmp_path / "off", top="tracking: off\n", queries={"a": COUNT})
    assert tracking.track(off.runtime) == {
        "uri": None,
        "experiment": None,
        "page": None,
        "queries": {}
    } and not list((tmp_path / "off").rglob("mlflow*"))
    fresh = pipeline(tmp_path / "fresh", top="tracking: ../runs\n")
    assert tracking.track(fresh.runtime)["queries"] == {} and (tmp_path / "runs" / "mlflow.db").exists()


def test_where_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = pipelines.pipeline(tmp_path, top="tracking: http://127.0.0.1:5000\n")
    assert tracking.store(pipe.runtime.pipeline) == tracking.Store("http://127.0.0.1:5000", None)
    monkeypatch.setenv(tracking.VARIABLE, f"sqlite:///{tmp_path}/x.db")
    assert tracking.store(pipe.runtime.pipeline) == tracking.Store(f"sqlite:///{tmp_path}/x.db",
                                                                   f"file://{tmp_path}/artifacts")
