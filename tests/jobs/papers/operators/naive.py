"""The operators' oracle: every tuple that has come is looked at again after every arrival, in plain Python.

It shares no code with them.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product

from hypothesis import strategies as st

Row = tuple[int, int, int, int, int]        # stream, time, key, group, value
Found = dict[tuple[int, ...], tuple[int, int, int, int]]


def alive(rows: Sequence[Row], spans: Sequence[int]) -> list[list[Row]]:
    """The windows right after the last row came."""
    now = rows[-1][1]
    return [[r for r in rows if r[0] == s and now - r[1] < span] for s, span in enumerate(spans)]


def answer(rows: Sequence[Row], spans: Sequence[int], owner: int) -> Found:
    """By groups: COUNT(*), SUM, MAX, MIN of the owner's attribute over all combinations of the windows that agree in
    the key.
    """
    found: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for combination in product(*alive(rows, spans)):
        if len({r[2] for r in combination}) == 1:
            found[tuple(r[3] for r in combination)].append(combination[owner][4])
    return {g: (len(v), sum(v), max(v), min(v)) for g, v in found.items()}


def joined(rows: Sequence[Row], spans: Sequence[int]) -> int:
    """How many tuples of the other of two streams the last row matches."""
    last = rows[-1]
    return sum(r[2] == last[2] for r in alive(rows, spans)[1 - last[0]])


def steps(rows: Sequence[Row]) -> Iterator[tuple[int, Sequence[Row]]]:
    """Each position with the rows up to and with it."""
    return ((i, rows[:i + 1]) for i in range(len(rows)))


@st.composite
def streams(draw: st.DrawFn, count: int = 2, groups: Sequence[int] | None = None, most: int = 24) -> list[Row]:
    """Rows in order of time, many at one time and many exactly a window apart."""
    size = draw(st.integers(1, most))
    gaps = draw(st.lists(st.sampled_from((0, 0, 1, 1, 2, 5)), min_size=size, max_size=size))
    rows, now = [], 0
    for gap in gaps:
        now += gap
        s = draw(st.integers(0, count - 1))
        rows.append((s, now, draw(st.integers(0, 2)), draw(st.integers(0, (groups or (1,) * count)[s] - 1)),
                     draw(st.integers(-3, 3))))
    return rows


def windows(count: int = 2) -> st.SearchStrategy[tuple[int, ...]]:
    return st.one_of(st.integers(1, 8).map(lambda span: (span,) * count), st.tuples(*[st.integers(1, 8)] * count))
