"""The candidates of a decision as people compare them: one row a plan, and each plan's price over time.

Read from what was decided and measured, nothing is priced here.
"""
from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import inf, nan

from jobs.results.history import PriceList, Span
from optimizer.plan.model import candidates


@dataclass(frozen=True)
class CandidateRow:
    """One plan beside the others: `CandidateRow("LAP recompute", True, 0.2, 0.03, 0.25, 0.0, 9e4, "")`.

    `predicted_s` None: it was not priced; `deviation_s` is how sure its price is, as learnt; `measured_s` None: it
    was never in force since the query has its text. `refused` says why a plan cannot hold the query, and is empty for
    one that can.
    """

    plan: str
    chosen: bool
    predicted_s: float | None
    deviation_s: float | None
    measured_s: float | None
    state_rows: float | None
    paper_cost: float | None
    refused: str


COLUMNS = tuple(field.name for field in fields(CandidateRow))


def compared(span: Span, price_list: PriceList | None, spans: Sequence[Span]) -> tuple[CandidateRow, ...]:
    """Every plan of the query, cheapest first, those without a price after them, refused ones last.

    Of the span's decision, or of a later one whose prices are given; measured is what the plan took in any of the
    spans.
    """
    prices = {price.plan: price for price in price_list.prices} if price_list else {}
    measured = measured_seconds([other for other in spans if other.sql == span.sql])
    rows = []
    for candidate in candidates(span.query):
        name = candidate.plan.name
        price = prices.get(name)
        rows.append(CandidateRow(name, name == span.plan.name, price.seconds if price else None,
                                 price.deviation if price else None, measured.get(name),
                                 price.state_rows if price else None, price.paper_cost if price else None,
                                 candidate.refused or ""))
    return tuple(sorted(rows, key=_order))


def _order(row: CandidateRow) -> tuple[bool, float, str]:
    return bool(row.refused), inf if row.predicted_s is None else row.predicted_s, row.plan


def measured_seconds(spans: Sequence[Span]) -> dict[str, float]:
    """Seconds a boundary of each plan that was in force, the median of its batches."""
    seconds_by_plan: dict[str, list[float]] = {}
    for span in spans:
        seconds = [point.metrics["measured_s"] for point in span.points if "measured_s" in point.metrics]
        seconds_by_plan.setdefault(span.plan.name, []).extend(seconds)
    return {plan: statistics.median(seconds) for plan, seconds in seconds_by_plan.items() if seconds}


def prices_over_time(spans: Sequence[Span]) -> dict[str, list[tuple[int, float]]]:
    """Of each plan the boundaries from which a price held, and the last boundary once more; NaN where it had none."""
    lists = [(max(price_list.boundary, span.first.boundary), price_list)
             for span in spans for price_list in span.price_lists]
    if not lists:
        return {}
    lists.append((spans[-1].last.last, lists[-1][1]))
    prices_by_boundary = [(boundary, {price.plan: price.seconds for price in price_list.prices})
                          for boundary, price_list in lists]
    plans = {plan for _, prices in prices_by_boundary for plan in prices}
    return {plan: [(boundary, prices.get(plan, nan)) for boundary, prices in prices_by_boundary]
            for plan in sorted(plans)}
