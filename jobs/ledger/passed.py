"""Boundaries that were never run, because a long silence was passed over: nothing is published at them."""
from __future__ import annotations

from collections.abc import Sequence

from jobs.ledger.ledger import Ledger


def spans(ledger: Ledger) -> tuple[tuple[int, int], ...]:
    """The first and the last boundary of each, so far."""
    last = ledger.last()
    return last.batch.passed_over if last is not None else ()


def multiples(every: int, start: int, end: int, passed_over: Sequence[tuple[int, int]]) -> list[int]:
    """The multiples of `every` from `start` to before `end` that are in none of these spans.

    `multiples(10, 0, 60, [(20, 40)])` is [0, 10, 50].
    """
    kept, begin = list[int](), start
    for first, last in passed_over:
        kept += range(-(-begin // every) * every, min(first, end), every)
        begin = max(begin, last + 1)
    return kept + list(range(-(-begin // every) * every, end, every))
