"""When a row counts is said twice, in SQL and in Python: they never disagree."""
from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.engine import kernel
from optimizer.expression import dialect as d
from optimizer.plan.lowering import Lowering
from optimizer.plan.membership import Counting, bounds
from optimizer.plan.model import named
from optimizer.query.shape import shape
from tests.optimizer.planning import BATCH, query

NOON = 1_800_000_000_000_000
WINDOWS = ("1 MINUTE", "45 SECONDS", "1 MINUTE TUMBLING", "1 MINUTE SLIDE 20 SECONDS", "50 SECONDS SLIDE 30 SECONDS",
           "UNTIL NOW")


@pytest.fixture(scope="module")
def engine() -> Iterator[kernel.Connection]:
    con = kernel.shared()
    yield con
    con.close()


@given(window=st.sampled_from(WINDOWS), every=st.sampled_from(("", "EVERY 30 SECONDS")), boundary=st.integers(0, 40),
       stamp=st.integers(-200_000_000, 400_000_000))
@example(WINDOWS[0], "", 3, 20_000_000)
@example(WINDOWS[0], "", 3, 19_999_999)
def test_sql_and_python_say_the_same_interval(engine: kernel.Connection, window: str, every: str, boundary: int,
                                              stamp: int) -> None:
    asked = query(f"SELECT COUNT(*) AS n FROM views AS v [WINDOW {window}] {every}")
    low, declared = Lowering(shape(asked), named(asked, "EAP1 recompute")), asked.inputs[0].window
    assert declared is not None
    came, ts = NOON + boundary * BATCH, NOON + stamp
    row = f"SELECT {d.instant(came, 'duckdb')} AS _boundary, {d.instant(ts, 'duckdb')} AS ts"
    (told,) = engine.execute(f"SELECT {', '.join(bounds(low, 0))} FROM ({row}) AS s0").fetchall()
    assert told == Counting(declared, asked.every).interval(came, ts)
