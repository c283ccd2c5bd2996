"""The same samples where Spark does the work: beside the tasks' orders in one Spark job, and by Spark SQL where a plan
is placed in the JVM.
"""
from __future__ import annotations

from pathlib import Path

import pytest

import forebay
from jobs.batch.works import parsed
from tests.jobs.adapt.test_statistics import JOIN, _come, _pipe, _run
from tests.jobs.pipelines import boundary, equal, restarted

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("engine, dialect", [("jvm", "spark"), (None, "duckdb")])
def test_rates_selectivities_and_keys(engine: str | None, dialect: str, tmp_path: Path) -> None:
    made = _pipe(tmp_path, queries={"q": JOIN.replace("GROUP", "AND v.x < 2 GROUP")})
    _come(made, 1, 2)
    settings = tmp_path / "forebay.yml"
    settings.write_text(settings.read_text().replace("master: inline", "master: \"local[2]\""))
    pipe = forebay.open(str(tmp_path), engine)
    restarted(pipe, clock=lambda: boundary(10**9))
    try:
        before = pipe.runtime.tasks.jobs
        _run(pipe, 2)
        jobs = pipe.runtime.tasks.jobs - before
        query = parsed(pipe.query("q")["sql"], pipe.runtime.catalog)
        known = pipe.loop.statistics.observed("q", query)
        assert {s.dialect for s in pipe.loop.statistics.samples("q", query)} == {dialect}
        assert jobs == (0 if engine else 2), "a sample makes no Spark job of its own where tasks do the work"
        assert equal(pipe)
    finally:
        pipe.close()
    assert known is not None and known.weight == 2 * 78 and known.groups == 2
    assert [i.rate
            for i in known.inputs] == pytest.approx([6.0, 1.8]) and known.inputs[0].selectivity == pytest.approx(2 / 3)
    assert [round(i.combinations) for i in known.inputs] == [2, 3] and round(known.classes[0].keys) == 3


def test_a_look_at_whole_windows_is_one_spark_job(tmp_path: Path) -> None:
    made = _pipe(tmp_path, queries={"q": JOIN}, top="decide: task\n")
    made.synchronise()
    _come(made, 1, 4)
    _run(made, 4)
    settings = tmp_path / "forebay.yml"
    settings.write_text(settings.read_text().replace("master: inline", "master: \"local[2]\""))
    pipe = forebay.open(str(tmp_path))
    restarted(pipe, clock=lambda: boundary(10**9))
    try:
        document = pipe.adapt()
        jobs = pipe.runtime.tasks.jobs
        assert pipe.adapt()["statistics"]["due"] is False and pipe.runtime.tasks.jobs == jobs == 1
    finally:
        pipe.close()
    views, buys = document["statistics"]["queries"]["q"]["inputs"]
    assert document["statistics"]["rows"] == 3 * 78 and [views["rate"], buys["rate"]] == pytest.approx([6.0, 1.8])
    assert document["decisions"][0]["query"] == "q" and document["decisions"][0]["effective"] == boundary(50)
