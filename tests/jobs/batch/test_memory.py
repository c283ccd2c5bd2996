"""Work that does not fit into a task's memory: divided into more parts, then under the plan that needs least.

The answers stay the same.
"""
from __future__ import annotations

import os
from pathlib import Path

import pytest

import forebay
from jobs.batch import batch
from jobs.engine import kernel, memory
from jobs.requests import boundaries
from optimizer.errors import ForebayError
from tests.jobs.pipelines import answers, equal, opened, pipeline, ran, rows

JOIN = ("SELECT a.x, COUNT(*) AS n, MIN(b.x) AS least FROM a AS a [WINDOW 40 SECONDS], b AS b [WINDOW 40 SECONDS] "
        "WHERE a.k = b.k GROUP BY a.x")
ALONE = "SELECT a.x, COUNT(*) AS n, MAX(a.k) AS most FROM a AS a [WINDOW 40 SECONDS] GROUP BY a.x"


@pytest.mark.parametrize("text,size", [("512m", 512 << 20), ("2g", 2 << 30), ("1024", 1 << 30), ("1.5GB", 3 << 29),
                                       ("nonsense", 1 << 30)])
def test_sizes_as_spark_writes_them(text: str, size: int) -> None:
    assert memory.size(text) == size


def test_a_task_gets_its_share_of_what_the_executor_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOREBAY_TASK_MEMORY", raising=False)
    monkeypatch.setattr(memory, "machine", lambda: 16 << 30)
    assert memory.of_task("local[2]", {}, 2) == "4096MB"
    assert memory.of_task("local[4]", {}, 4) == "2048MB"
    cluster = {"spark.executor.pyspark.memory": "8g", "spark.executor.cores": "4"}
    assert memory.of_task("spark://host:7077", cluster, 40) == "1024MB"
    assert memory.of_task("spark://host:7077", {"forebay.task.memory": "3GB"}, 40) == "3GB"
    monkeypatch.setenv("FOREBAY_TASK_MEMORY", "60MB")
    assert memory.of_task("local[2]", {"forebay.task.memory": "3GB"}, 2) == "60MB"


def test_what_a_killed_process_spilled_is_deleted_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "SPILL", str(tmp_path))
    gone, living = tmp_path / str(2**22 + 1), tmp_path / str(os.getppid())
    for folder in (gone, living):
        folder.mkdir()
        (folder / "duckdb_temp_block-1.block").write_bytes(b"x")
    kernel._spill_folder.cache_clear()
    assert kernel._spill_folder(os.getpid()) == str(tmp_path / str(os.getpid()))
    assert not gone.exists() and living.exists(), "the folder of a process that lives is its own"
    kernel._spill_folder.cache_clear()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> forebay.Pipeline:
    """Six boundaries, each to be a batch of its own."""
    monkeypatch.setattr(boundaries, "GROUP_BOUNDARIES", 1)
    pipe = pipeline(tmp_path, {"a": "", "b": ""})
    for stream in "ab":
        rows(pipe, [second / 4 for second in range(240)], stream, k=[n % 7 for n in range(240)],
             x=[n % 11 for n in range(240)])
    return pipe


def exhausting(monkeypatch: pytest.MonkeyPatch, fits: int, plans: tuple[str, ...] = ()) -> list[int]:
    """Tasks have too little memory for less than so many parts, and for some plans' state in any.

    Gives the numbers of parts that were tried.
    """
    tried: list[int] = []
    perform = batch._perform

    def performed(context: object, one: object, todo: list[batch.QueryWork], *rest: object) -> object:
        outcomes, samples = perform(context, one, todo, *rest)      # type: ignore[arg-type]
        tried.extend(w.parts for w in todo)
        short = {w.name for w in todo if w.parts < fits or w.plan.name in plans}
        return [
            batch.TaskResult(o.query, o.part, exhausted="Out of Memory Error") if o.query in short else o
            for o in outcomes
        ], samples

    monkeypatch.setattr(batch, "_perform", performed)
    return tried


@pytest.mark.slow
@pytest.mark.parametrize("sql,plan", [
    *((JOIN, plan) for plan in ("LAP recompute", "EAP11 running", "EAP11 expire", "EAP01 recompute")),
    *((ALONE, plan) for plan in ("LAP recompute", "EAP1 running", "EAP1 recompute"))
])
def test_work_that_does_not_fit_is_divided_into_more_parts(shop: forebay.Pipeline, monkeypatch: pytest.MonkeyPatch,
                                                           sql: str, plan: str) -> None:
    shop.create("q", sql), shop.change("q", "pin", plan)
    tried = exhausting(monkeypatch, fits=16)
    assert ran(shop, flush=True) == [10, 20, 30, 40, 50, 60] and equal(shop)
    assert tried[:3] == [1, 4, 16], "four times as many parts at each try"
    assert set(tried[3:]) == {16}, "what was learnt of one boundary holds for the next"
    assert {d["plan"] for d in shop.plans("q")["decisions"]} == {plan}


@pytest.mark.slow
@pytest.mark.parametrize("pinned", [True, False])
def test_a_plan_that_does_not_fit_in_any_number_of_parts_is_left(shop: forebay.Pipeline,
                                                                 monkeypatch: pytest.MonkeyPatch, pinned: bool) -> None:
    """Once, as a decision with that reason; the state that it kept before is let go of, and the answers go on."""
    shop.create("q", JOIN), shop.change("q", "pin", "EAP11 expire")
    assert ran(shop, batches=2) == [10, 20]
    if not pinned:
        shop.change("q", "unpin")
    tried = exhausting(monkeypatch, fits=1, plans=("EAP11 expire",))
    assert ran(shop, batches=2) == [30, 40]
    again = opened(Path(shop.runtime.pipeline.folder))
    assert ran(again, flush=True) == [50, 60] and equal(again)
    decisions = again.plans("q")["decisions"]
    if pinned:
        assert tried[:4] == [1, 4, 16, 64]
        assert [d["plan"] for d in decisions
                ] == ["EAP11 expire"] * 2 + ["EAP01 recompute"] * 4, "also in the next process"
        assert "does not fit into a task's memory" in decisions[2]["reason"] and decisions[2][
            "switched_from"] == "EAP11 expire"


@pytest.mark.slow
def test_where_no_plan_fits_the_run_says_what_to_do_and_goes_on_later(shop: forebay.Pipeline,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    shop.create("q", JOIN)
    with monkeypatch.context() as patched:
        exhausting(patched, fits=1000)
        with pytest.raises(ForebayError) as caught:
            shop.run(flush=True)
        assert (caught.value.code, caught.value.exit_code) == ("out-of-memory",
                                                               1) and "FOREBAY_TASK_MEMORY" in (caught.value.hint or "")
    pipe = opened(Path(shop.runtime.pipeline.folder))
    assert ran(pipe, flush=True)[-1] == 60 and equal(pipe)


@pytest.mark.slow
def test_members_of_a_group_that_does_not_fit_run_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = pipeline(tmp_path, {
        "a": "",
        "b": ""
    }, queries={f"q{n}": JOIN.replace("GROUP BY", f"AND a.x < {n + 5} GROUP BY") for n in range(4)})
    for stream in "ab":
        rows(pipe, range(60), stream, k=[n % 7 for n in range(60)], x=[n % 11 for n in range(60)])
    perform = batch._perform

    def performed(*args: object) -> object:
        outcomes, samples = perform(*args)      # type: ignore[arg-type]
        return [
            batch.TaskResult(o.query, o.part, exhausted="Out of Memory Error") if o.query.startswith("shared:") else o
            for o in outcomes
        ], samples

    monkeypatch.setattr(batch, "_perform", performed)
    assert ran(pipe, flush=True)[-1] == 60 and equal(pipe)
    assert len(answers(pipe, "q0")) > 0
