"""What only Spark does, measured in a session: a job, an exchange and the JVM's lowering get unit costs of their own,
the kernel's keep theirs.
"""
from __future__ import annotations

from typing import Any

import pytest

from jobs.calibrate import on_spark as calibrate_spark
from jobs.engine.tasks import Tasks
from optimizer.cost.measured import prior, read


@pytest.mark.spark
@pytest.mark.long
def test_spark_is_measured(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, small in (("SENT", (1_000, 5_000, 10_000)), ("RATES", (100,)),
                        ("PLANS", ("EAP01 recompute", "EAP11 running")), ("TIMES", 2), ("WARM", 1)):
        monkeypatch.setattr(calibrate_spark, name, small)
    tasks, before, said = Tasks(), prior(), list[str]()
    tasks._session = spark
    found = calibrate_spark.calibrated(tasks, before, said.append)
    assert found["jobs"] != before["jobs"] and found["exchange"] != before["exchange"] and found[
        "jvm_statements"] != before["jvm_statements"]
    assert found["scan"] == before["scan"] and found.measurements == 4 and len(said) == 2
    assert read(found.document()) == found


def test_what_was_measured_by_itself_replaces_what_was_stated() -> None:
    before = prior()
    found = calibrate_spark._with(before, {"jobs": 0.5})
    assert found["jobs"] == 0.5 and found["scan"] == before["scan"]
    assert read(found.document()) == found
