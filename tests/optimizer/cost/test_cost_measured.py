"""The measured model: its order of plans, its fit, its doubt, and what it refuses to read."""
from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from optimizer.cost.features import KINDS, steady
from optimizer.cost.fitting import fit
from optimizer.cost.measured import (
    NAMES,
    NODES,
    OFF,
    SECONDS,
    STATED,
    Measurement,
    UnitCosts,
    deviation,
    prior,
    read,
    seconds,
)
from optimizer.errors import ForebayError
from optimizer.expression.types import BIGINT, STRING, TIMESTAMP
from optimizer.plan.model import KEEPING, candidates, named
from optimizer.query.model import Catalog
from optimizer.sql.parse import parse
from optimizer.statistics.model import InputStatistics, KeyStatistics, QueryStatistics
from tests.optimizer.cost.prices import first_price, model, price
from tests.optimizer.papers.costs import ranked
from tests.optimizer.planning import query
from tests.optimizer.statistics.observing import two

SECOND = 10**6
COLUMNS = (("ts", TIMESTAMP), ("g", STRING), ("j", STRING), ("a", BIGINT))
CATALOG = Catalog(5 * SECOND, (("s1", "ts", COLUMNS), ("s2", "ts", COLUMNS)), ())
P1 = parse("SELECT s1.g, COUNT(*) AS n, SUM(s1.a) AS x, SUM(s2.a) AS y, MIN(s2.a) AS lo, MAX(s1.a) AS hi "
           "FROM s1 [WINDOW 60 SECONDS], s2 [WINDOW 60 SECONDS] WHERE s1.j = s2.j GROUP BY s1.g", CATALOG)


def p1(rate: float = 20_000, keys: float = 1_000, groups: float = 150) -> QueryStatistics:
    inputs = (InputStatistics(rate, 60 * rate, combinations=keys * groups),
              InputStatistics(rate, 60 * rate, combinations=keys))
    return QueryStatistics(inputs, (KeyStatistics(keys),), 5, groups)


def total(plan: str, known: QueryStatistics) -> float:
    return price(P1, named(P1, plan), known, prior()).total


def test_every_kind_of_work_has_a_cost_in_both_lowerings() -> None:
    assert set(SECONDS) == {*KINDS, *(f"jvm_{kind}" for kind in KINDS)}


def test_every_kind_of_operator_has_a_share_under_each_way_of_keeping() -> None:
    assert set(OFF) == {f"{node} {keeping}" for node in NODES for keeping in KEEPING}
    assert set(STATED) == set(KINDS) and all(-0.7 < share < 0.7 for share in OFF.values())


def test_p1_only_the_stream_without_groups_early_is_cheapest() -> None:
    best = ranked(model(P1, p1(), prior()), [c.plan for c in candidates(P1) if not c.refused])[0][0]
    assert best.name == "EAP01 recompute"


def test_p1_order_turns_with_the_keeping() -> None:
    assert total("EAP01 recompute", p1()) * 1.2 < total("EAP11 recompute", p1())
    assert total("EAP11 running", p1(100_000)) < total("EAP01 running", p1(100_000))
    assert total("EAP11 expire", p1(100_000)) < total("EAP01 expire", p1(100_000))


def test_joining_before_aggregating_costs_seconds_and_more() -> None:
    assert total("EAP10 recompute", p1()) > 3 and total("LAP recompute", p1()) > 3


def test_a_price_is_by_node_in_seconds() -> None:
    found = price(P1, named(P1, "EAP01 recompute"), p1(), prior())
    assert found.unit == "s" and found.of("fixed") > 0 and found.of("Scan s1") > found.of("Scan s2")
    work = {kind: amount for kind, amount in steady(P1, named(P1, "EAP01 recompute"), p1()).total.items()
            if kind in SECONDS}
    assert found.total == pytest.approx(seconds(work, prior()))      # the operators' shares are of whole plans


def test_building_state_costs_more_than_carrying_it_on() -> None:
    plan = named(P1, "EAP11 running")
    assert first_price(P1, plan, p1(), prior()).total > price(P1, plan, p1(), prior()).total


def simulated(true: dict[str, float], count: int, noise: float) -> list[Measurement]:
    draw = random.Random(7)
    kinds = list(true)
    found = []
    for _ in range(count):
        amounts = {k: draw.uniform(0, 2) * 0.05 / SECONDS[k] for k in draw.sample(kinds, 3)}
        found.append(Measurement(amounts, sum(true[k] * a for k, a in amounts.items()) * (1 + draw.gauss(0, noise))))
    return found


def test_fit_recovers_known_costs() -> None:
    true = {
        k: SECONDS[k] * f
        for k, f in (("scan", 3.0), ("group", 0.4), ("pairs", 1.7), ("statements", 0.9), ("state_write", 2.2))
    }
    found = fit(prior(), simulated(true, 400, 0.1), forgetting=0.0)
    for kind, cost in true.items():
        assert found[kind] == pytest.approx(cost, rel=0.1)
    assert found["exchange"] == SECONDS["exchange"] and found.measurements == 400


def noise() -> list[Measurement]:
    draw = random.Random(11)
    measurements = []
    for _ in range(200):
        amounts = {k: draw.uniform(0, 2) * 0.05 / SECONDS[k] for k in draw.sample(list(SECONDS), 6)}
        measurements.append(Measurement(amounts, draw.uniform(0.001, 2)))
    return measurements


def by_hand(measurements: list[Measurement], noise: float, forgetting: float) -> dict[str, float]:
    """Recursive least squares as the textbooks have it, over lists, before anything is kept from going below zero."""
    start = prior()
    mean, covariance = list(start.mean), [list(row) for row in start.covariance]
    first, count = [covariance[k][k] for k in range(len(NAMES))], range(len(NAMES))
    for measurement in measurements:
        x = [measurement.amounts.get(name, 0.0) for name in NAMES]
        scale = max(measurement.seconds, sum(m * v for m, v in zip(mean, x)))
        for k in count:
            covariance[k][k] += forgetting * max(first[k] - covariance[k][k], 0.0)
        x, y = [v / scale for v in x], measurement.seconds / scale
        along = [sum(c * v for c, v in zip(row, x)) for row in covariance]
        whole = noise * noise + sum(v * a for v, a in zip(x, along))
        error = y - sum(m * v for m, v in zip(mean, x))
        mean = [m + a / whole * error for m, a in zip(mean, along)]
        covariance = [[covariance[k][other] - along[k] * along[other] / whole for other in count] for k in count]
    return dict(zip(NAMES, mean))


@pytest.mark.parametrize("forgetting", [0.0, 0.02])
def test_fit_is_recursive_least_squares(forgetting: float) -> None:
    measurements = simulated({kind: 1.3 * SECONDS[kind] for kind in ("scan", "group", "pairs", "jobs")}, 60, 0.05)
    measurements.append(Measurement({"scan": 1e6, "Scan recompute": 0.02}, 0.05))
    costs, expected = fit(prior(), measurements, 0.15, forgetting), by_hand(measurements, 0.15, forgetting)
    assert min(expected[name] for name in SECONDS) >= 0
    assert {name: costs[name] for name in NAMES} == pytest.approx(expected, rel=1e-6)


def test_an_operator_learns_by_what_share_it_is_off() -> None:
    """Its share serves every query, as unit costs do; another way of keeping has its own."""
    stated = 1e7 * SECONDS["scan"]
    slow = [Measurement({"scan": 1e7, "Scan running": stated}, 1.3 * (1 + OFF["Scan running"]) * stated)] * 30
    fast = [Measurement({"scan": 1e7, "Scan recompute": stated}, 0.8 * (1 + OFF["Scan recompute"]) * stated)] * 30
    costs = fit(prior(), [one for pair in zip(slow, fast) for one in pair], forgetting=0.0)
    off = {name: costs[name] - OFF[name] for name in ("Scan running", "Scan recompute", "Join running")}
    assert off["Scan running"] > 0.05 and off["Scan recompute"] < -0.05 and off["Join running"] == 0


def test_unit_costs_of_an_older_version_are_read() -> None:
    """It knew fewer kinds of work: what it does not say is as it is before any batch."""
    document = prior({"scan": 7e-9}, "older").document()
    names = [name for name in SECONDS if name != "shuffles"]
    rows = [[row[NAMES.index(name)] for name in names] for row in prior().covariance]
    older = {**document, "seconds": {name: document["seconds"][name] for name in names},      # type: ignore[index]
             "covariance": [rows[NAMES.index(name)] for name in names]}
    found = read(json.loads(json.dumps(older)))
    assert (found["scan"], found["shuffles"], found["Scan expire"]) == (7e-9, SECONDS["shuffles"], OFF["Scan expire"])
    assert found.covariance == prior().covariance


def test_fit_is_of_plain_numbers() -> None:
    costs = fit(prior(), noise()[:3])
    assert {type(v) for row in (costs.mean, *costs.covariance) for v in row} == {float} and hash(costs)


def test_fit_forgets_what_was_before() -> None:
    slow, fast = ({k: SECONDS[k] * f for k in ("scan", "group", "pairs", "keep")} for f in (3.0, 1.0))
    found = fit(fit(prior(), simulated(slow, 100, 0.05)), simulated(fast, 100, 0.05))
    assert found["scan"] == pytest.approx(fast["scan"], rel=0.15)


def test_nothing_costs_less_than_nothing() -> None:
    amounts = {"scan": 1e7, "group": 1e7}
    found = fit(prior(), [Measurement(amounts, 0.01), Measurement({"scan": 1e7}, 0.1)] * 50)
    assert found["group"] >= 0 and found["scan"] > 0 and all(found[kind] >= 0 for kind in SECONDS)


def test_measuring_lessens_doubt_and_what_two_plans_share_has_none() -> None:
    amounts = {"scan": 1e7, "statements": 10.0}
    before, after = prior(), fit(prior(), [Measurement(amounts, 0.05)] * 5)
    assert 0 < deviation(amounts, after) < deviation(amounts, before)
    assert deviation(amounts, before, than=amounts) == 0


def test_worthless_measurements_change_nothing() -> None:
    assert fit(prior(), [Measurement({}, 0.0), Measurement({"scan": 1.0}, float("inf"))]) == prior()


def test_coefficients_survive_json() -> None:
    found = fit(prior(), [Measurement({"scan": 1e7}, 0.1)])
    assert read(json.loads(json.dumps(found.document()))) == found


DAMAGES: list[tuple[str, Any]] = [("seconds", None), ("seconds", {
    **SECONDS, "scan": -1
}), ("seconds", {
    **SECONDS, "scan": "fast"
}), ("seconds", {
    **SECONDS, "x": 1
}), ("seconds", {
    "scan": 1
}), ("covariance", [[1.0]]), ("covariance", "x"), ("seconds", {
    **SECONDS, "scan": float("nan")
})]


@pytest.mark.parametrize(("key", "value"), DAMAGES)
def test_what_is_no_calibration_is_refused(key: str, value: object) -> None:
    with pytest.raises(ForebayError) as error:
        read({**prior().document(), key: value})
    assert error.value.code == "bad-calibration"


def test_unknown_unit_costs_and_wrong_lengths_are_refused() -> None:
    with pytest.raises(ForebayError, match="unknown unit cost 'sacn'"):
        prior({"sacn": 1.0})
    with pytest.raises(ForebayError):
        UnitCosts((1.0,), ((1.0,),))


def test_statistics_and_query_must_fit() -> None:
    with pytest.raises(ForebayError, match="statistics of 1 inputs"):
        price(query("two-streams"), named(query("two-streams"), "LAP recompute"),
              replace(two(), inputs=two().inputs[:1]), prior())
