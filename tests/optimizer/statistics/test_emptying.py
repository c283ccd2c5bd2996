"""What windows hold while they empty: at a boundary, and on average over the next ones."""
from __future__ import annotations

from dataclasses import replace

import pytest

from optimizer.query.windows import SECOND
from optimizer.statistics.emptying import are_emptying, over_horizon, windows_at
from optimizer.statistics.model import QueryStatistics
from tests.optimizer.planning import query
from tests.optimizer.statistics.observing import two

TWO = query("two-streams")      # views over 60 s, clicks over 40 s, a boundary every 10 s


def fallen(views: float = 60_600.0, clicks: float = 200.0) -> QueryStatistics:
    """Views have just fallen to 10 a second: a window will hold 600 of them, and of clicks 200."""
    first, second = two(at=1_000 * SECOND).inputs
    return replace(two(at=1_000 * SECOND), inputs=(replace(first, present=views), replace(second, present=clicks)))


def rows(statistics: QueryStatistics) -> list[float]:
    return [one.rows for one in statistics.inputs]


@pytest.mark.parametrize("later,views", [(None, 60_600), (0, 60_600), (15, 45_600), (60, 600), (1_000, 600)])
def test_rows_leave_evenly_until_their_window_has_passed(later: int | None, views: float) -> None:
    boundary = None if later is None else (1_000 + later) * SECOND
    held = windows_at(TWO, fallen(), boundary)
    assert rows(held) == pytest.approx([views, 200]) and not are_emptying(held)


@pytest.mark.parametrize("boundaries,share", [
    (6, 1 / 2),              # until the window has passed, half of what is too much on average
    (60, 1 / 20),            # after that nothing: half of it for a tenth of the time
    (3, 3 / 4),              # from all of it to half of it
    (1, 11 / 12)
])
def test_over_a_horizon_windows_hold_the_mean(boundaries: int, share: float) -> None:
    assert rows(over_horizon(TWO, fallen(), boundaries)) == pytest.approx([600 + 60_000 * share, 200])


def test_what_is_full_or_fills_counts_as_full() -> None:
    for statistics in (two(), fallen(views=700.0), fallen(views=60.0)):
        assert not are_emptying(statistics)
        assert windows_at(TWO, statistics) == over_horizon(TWO, statistics, 60) == statistics


def test_a_fan_out_that_was_counted_follows_its_windows() -> None:
    assert windows_at(TWO, replace(fallen(), fanout=500.0)).fanout == pytest.approx(500.0 * 101)
