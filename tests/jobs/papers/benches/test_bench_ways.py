"""The benchmark of the ways to split holds both against each other before it says what they take."""
from __future__ import annotations

import pyarrow as pa
import pytest

from jobs.papers.benches import ways
from jobs.papers.benches.ways import WaysSetting
from optimizer.errors import ForebayError

pytestmark = pytest.mark.slow
SMALL = WaysSetting((300, 300), 20, 4)


def test_both_ways_are_timed_and_priced() -> None:
    assert set(ways._both(SMALL)) == {"before_s", "after_s", "before_priced_s", "after_priced_s"}


def test_answers_that_differ_are_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ways.kernel.table

    def short(con: object, sql: str) -> pa.Table:
        found = whole(con, sql)      # type: ignore[arg-type]
        return found.slice(1) if "split_at_0" in sql else found
    monkeypatch.setattr(ways.kernel, "table", short)
    with pytest.raises(ForebayError) as caught:
        ways._both(SMALL)
    assert caught.value.code == "wrong-answer"


def test_orders_of_three_inputs_are_six() -> None:
    assert len(ways._orders(WaysSetting((50, 50, 50), 5, 3, 3), "after")) == 6
