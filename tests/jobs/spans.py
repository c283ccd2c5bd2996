"""Plans in force as the ledger would tell them, made by hand: a batch each ten seconds, a price list where one is
given.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.results.history import BatchPoint, CandidatePrice, PriceList, Span
from optimizer.plan.model import named
from tests.optimizer.planning import BATCH, QUERIES, query

NAME = "extremes"      # MIN and MAX cannot be retracted


def priced(boundary: int, **seconds: float) -> PriceList:
    """`priced(20, LAP_recompute=0.2)`: from the second boundary on."""
    prices = [CandidatePrice(plan.replace("_", " "), price, 10.0, None) for plan, price in seconds.items()]
    return PriceList(boundary * BATCH, tuple(prices))


def span(plan: str, measured: Mapping[int, float], *price_lists: PriceList, sql: str = QUERIES[NAME],
         before: str | None = None, predicted: float | None = 0.2) -> Span:
    """A plan that answered the boundaries of `measured`, in seconds."""
    points = []
    for boundary, seconds in measured.items():
        metrics = {"measured_s": seconds, "boundaries": 1.0}
        if predicted is not None:
            metrics |= {"predicted_s": predicted, "best_s": predicted}
        points.append(BatchPoint(boundary, boundary, boundary * BATCH, boundary * BATCH, metrics, ("cli", "")))
    return Span(named(query(NAME), plan), query(NAME), sql, before, f"{plan} is the cheapest", tuple(points), None,
                price_lists)


def switched() -> Sequence[Span]:
    """From LAP recompute, which a sale made dear, to EAP01 recompute."""
    early = span("LAP recompute", {1: 9.0, 2: 0.2, 3: 0.3, 4: 0.9}, priced(1, LAP_recompute=0.2, EAP01_recompute=0.25),
                 priced(4, LAP_recompute=0.8, EAP01_recompute=0.3, EAP11_expire=0.6))
    late = span("EAP01 recompute", {5: 0.3, 6: 0.32}, priced(5, LAP_recompute=1.2, EAP01_recompute=0.3),
                before="LAP recompute", predicted=0.3)
    return early, late
