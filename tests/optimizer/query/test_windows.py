"""When a row counts: `enters` and `leaves` against INTERFACE's table read instant by instant."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.errors import ForebayError
from optimizer.query.windows import ALWAYS, MAX_PANES, Window, check, tick

WINDOWS = st.one_of(st.builds(Window, st.just("sliding"), st.integers(1, 40)),
                    st.builds(Window, st.just("tumbling"),
                              st.integers(1, 5).map(lambda n: n * 10)),
                    st.builds(Window, st.just("hopping"), st.integers(1, 60),
                              st.integers(1, 4).map(lambda n: n * 10)), st.just(Window("landmark")))


def inside(window: Window, ts: int, t: int) -> bool:
    if window.kind == "sliding":
        return t - window.range <= ts < t
    if window.kind == "tumbling":
        return max(m for m in range(0, t, window.range)) <= ts < t
    if window.kind == "hopping":
        end = t // window.slide * window.slide
        return end - window.range <= ts < end
    return ts < t


@given(WINDOWS, st.integers(0, 150))
def test_a_row_counts_at_the_boundaries_from_enters_to_leaves(window: Window, ts: int) -> None:
    step = tick(10, (window,))
    counted = [t for t in range(10, 400, 10) if window.enters(ts, step) <= t <= window.leaves(ts, step)]
    assert counted == [t for t in range(10, 400, 10) if inside(window, ts, t)]


@given(WINDOWS, st.integers(1, 20).map(lambda n: n * 10))
def test_nothing_older_than_oldest_is_in_the_window(window: Window, t: int) -> None:
    members = [ts for ts in range(t) if inside(window, ts, t)]
    assert not members or min(members) == max(0, window.oldest(t))


@pytest.mark.parametrize("kind,length,slide", [("sliding", 0, 0), ("sliding", 5, 5), ("hopping", 5, 0),
                                               ("landmark", 5, 0), ("round", 5, 0)])
def test_a_window_is_valid_or_is_not_made(kind: str, length: int, slide: int) -> None:
    with pytest.raises(ValueError):
        Window(kind, length, slide)


@pytest.mark.parametrize(
    "window",
    [Window("tumbling", 15), Window("hopping", 20, 15),
     Window("sliding", MAX_PANES * 10 + 10)])
def test_lengths_off_the_batch_and_too_many_panes_are_refused(window: Window) -> None:
    with pytest.raises(ForebayError, match="multiple|panes"):
        check(window, 10)


def test_sliding_lengths_need_no_batch_and_history_has_no_end() -> None:
    check(Window("sliding", 15), 10)
    assert tick(10, (Window("sliding", 15), Window("tumbling", 20))) == 5
    assert Window("landmark").leaves(3, 1) == ALWAYS
