"""How a task ends: refused input fails at once, a pipeline that another runner holds is left to it, anything else is a
crash and is tried again.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from optimizer.errors import ForebayError

HELD = 3        # the exit code of INTERFACE's commands for it
# errors with a hint for people that are crashes nonetheless: Spark or MLflow may be there again for the next try
PASSING = ("spark-failed", "untracked")


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turns our refusals into the exceptions by which Airflow fails or skips a task at once."""
    try:
        yield
    except ForebayError as error:
        if error.code in PASSING:
            raise
        place = f" (line {error.line}, column {error.column})" if error.line else ""
        message = f"{error.code}: {error.message}{place}" + (f"; {error.hint}" if error.hint else "")
        # `from None`: what was wrong is said, and where in our code that was noticed helps nobody who reads the log
        raise (AirflowSkipException(message) if error.exit_code == HELD else AirflowFailException(message)) from None
