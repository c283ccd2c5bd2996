"""Verification by Spark SQL, also of a pipeline that runs without Spark."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.pipelines import COUNT, pipeline, ran, rows


@pytest.mark.spark
def test_a_pipeline_without_spark_can_be_verified_by_it(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 11, 21])
    ran(pipe, flush=True)
    try:
        assert pipe.verify("q", "jvm")["queries"]["q"] == {"boundaries": 3, "equal": 3, "differences": []}
    finally:
        pipe.close()
