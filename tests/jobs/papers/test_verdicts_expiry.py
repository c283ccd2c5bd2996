"""The verdicts on what ends, in papers B and C on micro-batches, can fail."""
from __future__ import annotations

from typing import Any

import pytest

from jobs.papers.experiments import expiry
from jobs.papers.experiments.claims import HOLDS, NOT, PART

pytestmark = pytest.mark.slow       # importing the operators' compilers takes a second


def kept(expire: float, retract: float, priced: tuple[float, float] = (1.0, 2.0)) -> dict[str, Any]:
    return {"boundaries": 2, "keys": 100, "groups": 10, "ms": {"expire": expire, "retract": retract},
            "priced_ms": dict(zip(("expire", "retract"), priced))}


def test_where_tc_wins_and_whether_the_price_knows() -> None:
    def of(*points: dict[str, Any]) -> list[str]:
        return [claim.verdict for claim in expiry._kept_claims(points)]

    assert of(kept(1, 2), kept(1, 1.5)) == [HOLDS, HOLDS]
    assert of(kept(1, 2), kept(2, 1)) == [PART, PART]
    assert of(kept(2, 1)) == [NOT, NOT] and of(kept(2, 1, (2.0, 1.0))) == [NOT, HOLDS]


def test_whether_the_chosen_strategy_is_the_faster() -> None:
    def of(insert: float, sweep: float, chosen: str = "insert", priced: bool = True) -> list[str]:
        point = {"rows": 10, "boundaries": 2, "chosen": chosen, "ms": {"insert": insert, "sweep": sweep},
                 "priced_ms": {"insert": 1.0, "sweep": 2.0} if priced else {}}
        return [claim.verdict for claim in expiry._invalidation_claims([point])]

    assert of(100, 120) == of(120, 100, "sweep") == of(105, 100) == [HOLDS]
    assert of(120, 100) == of(100, 120, "sweep") == [NOT]
    assert of(120, 100, priced=False) == [NOT] and of(105, 100, priced=False) == [HOLDS]
