"""How a task ends: refused input fails at once, what another runner holds is skipped, and crashes, Spark's among them,
are tried again.
"""
from __future__ import annotations

import pytest

from optimizer.errors import ForebayError

pytestmark = pytest.mark.slow      # Airflow's import is a second


@pytest.mark.parametrize("error, ends_as", [
    (ForebayError("unknown-query", "there is no query q"), "AirflowFailException"),
    (ForebayError("locked", "another process runs it", exit_code=3), "AirflowSkipException"),
    (ForebayError("spark-failed", "Spark gave up: UNAVAILABLE", exit_code=1), "ForebayError"),
    (ForebayError("untracked", "MLflow did not take it", exit_code=1), "ForebayError"),
    (OSError("no space left"), "OSError")])
def test_a_task_is_tried_again_only_where_that_may_help(error: Exception, ends_as: str) -> None:
    from dags.outcomes import translated_errors

    with pytest.raises(Exception) as caught, translated_errors():
        raise error
    assert type(caught.value).__name__ == ends_as and str(error).split("(")[0].strip() in str(caught.value)
