"""Tasks.map, in this process and in Spark: order, width, one job a call, and whose error it is."""
from __future__ import annotations

import operator
import os
import pickle
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobs.engine import tasks as tasks_module
from jobs.engine.spark import SparkFailure
from jobs.engine.tasks import Tasks, _Share, _sorted
from optimizer.errors import ForebayError

double = partial(operator.mul, 2)      # of an importable module: workers do not have the tests' folder
six_by = partial(operator.floordiv, 6)


def test_inline_keeps_order_starts_nothing_and_counts_a_call_as_one_job() -> None:
    tasks = Tasks("inline")
    assert tasks.map(double, range(5)) == [0, 2, 4, 6, 8] and tasks.jobs == 1
    assert tasks.inline and tasks.width == 1 and tasks._session is None


def test_nothing_to_do_is_no_job() -> None:
    tasks = Tasks("local[2]")
    assert tasks.map(double, []) == [] and tasks.jobs == 0 and tasks._session is None


GROWS = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.maxExecutors": "5",
    "spark.executor.cores": "2"
}


@pytest.mark.parametrize("master, settings, width", [("yarn", GROWS, 10),
                                                     ("k8s://h", {
                                                         **GROWS, "spark.dynamicAllocation.enabled": "false"
                                                     }, 2), ("yarn", {
                                                         **GROWS, "forebay.tasks": "7"
                                                     }, 7), ("spark://h:7077", {
                                                         "spark.cores.max": "6"
                                                     }, 6), ("local[3]", GROWS, 3),
                                                     ("yarn", {
                                                         "spark.dynamicAllocation.enabled": "true"
                                                     }, 2)])
def test_a_cluster_that_grows_is_asked_for_as_many_tasks_as_it_may_run(master: str, settings: dict[str, str],
                                                                       width: int) -> None:
    """No session is started for that: what only prices asks as well."""
    assert Tasks(master, settings).expected == width


def test_an_error_inline_is_its_own() -> None:
    with pytest.raises(ZeroDivisionError):
        Tasks("inline").map(six_by, range(5))


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_the_shares_are_all_items_once(count: int) -> None:
    items = list("abcde")
    told = [pickle.loads(p) for i in range(count) for p in _Share(str.upper, items, count, "1GB")(i)]
    assert sorted(told) == [(k, item.upper()) for k, item in enumerate(items)]


@pytest.mark.spark
def test_results_come_in_the_order_of_the_items_however_wide(spark: Any) -> None:
    tasks = Tasks("local[2]", _session=spark)
    assert tasks.width == 2
    for width in (None, 1, 3, 20):
        assert tasks.map(double, range(9), width) == list(range(0, 18, 2))
    assert tasks.jobs == 4
    assert os.getpid() not in tasks.map(lambda _: os.getpid(), range(2))


@pytest.mark.spark
def test_an_error_in_a_task_is_sparks_and_says_what_the_task_died_of(spark: Any) -> None:
    with pytest.raises(SparkFailure, match="ZeroDivisionError"):
        Tasks("local[2]", _session=spark).map(six_by, range(5))


@pytest.mark.spark
def test_what_cannot_be_pickled_is_refused_before_a_task_runs(spark: Any) -> None:
    lock = threading.Lock()
    with pytest.raises(SparkFailure, match="(?i)pickle"):
        Tasks("local[2]", _session=spark).map(lambda n: (n, lock), range(2))


def test_a_refusal_in_a_task_keeps_its_code() -> None:
    """Spark hands over the text of an exception only, among Java's."""
    def refuse(item: int) -> int:
        if item == 2:
            raise ForebayError("disk-full", "/w cannot be written", hint="free space", exit_code=1)
        return item

    assert _sorted(list(_Share(refuse, [0, 1], 1, "1GB")(0))) == [0, 1]
    with pytest.raises(ForebayError) as caught:
        _sorted(list(_Share(refuse, [0, 1, 2], 1, "1GB")(0)))
    assert (caught.value.code, caught.value.hint, caught.value.exit_code) == ("disk-full", "free space", 1)


def test_a_large_result_is_handed_over_by_a_file_that_then_is_gone(tmp_path: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """What Spark collects lies in its driver's JVM all at once: two million groups of partials did not fit there."""
    monkeypatch.setattr(tasks_module, "LARGE", 1000)
    folder = tmp_path / "handover"
    payloads = [p for i in range(2) for p in _Share(lambda n: "x" * n, [10, 5000, 20, 7000], 2, "1GB", str(folder))(i)]
    assert max(map(len, payloads)) < 1000 and len(list(folder.iterdir())) == 2
    assert {f.stat().st_mode & 0o777 for f in folder.iterdir()} == {0o600}
    assert [len(text) for text in _sorted(payloads)] == [10, 5000, 20, 7000]
    assert list(folder.iterdir()) == []
