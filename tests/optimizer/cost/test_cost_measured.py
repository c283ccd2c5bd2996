"""The measured model: its order of plans, its fit, its doubt, and what it refuses to read."""
from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from optimizer.cost.features import KINDS, steady
from optimizer.cost.fitting import fit
from optimizer.cost.measured import NAMES, SECONDS, Measurement, UnitCosts, deviation, prior, read, seconds
from optimizer.errors import ForebayError
from optimizer.expression.types import BIGINT, STRING, TIMESTAMP
from optimizer.plan.model import candidates, named
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
    assert set(NAMES) == {*KINDS, *(f"jvm_{kind}" for kind in KINDS)}


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
    assert found.total == pytest.approx(seconds(steady(P1, named(P1, "EAP01 recompute"), p1()).total, prior()))


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


# What the fit gave before numpy did it: random work of every kind, without and with forgetting.
MEANS = {"scan": 4.968693479939618e-09, "files": 0.0012274587996771143, "group": 0.0,
         "jobs": 0.33307468058988204, "jvm_jobs": 0.0, "jvm_scan": 7.606872894092613e-09}
DEVIATIONS = {"scan": 1.0429897682770683e-09, "files": 0.0002021958262724738, "group": 7.465542596224727e-10,
              "jobs": 0.0446615903188525, "jvm_jobs": 0.030126537073699788, "jvm_scan": 3.471016595082098e-09}
FORGETTING_MEANS = {"scan": 6.332330871870371e-09, "files": 0.0012666619915603554, "group": 2.6781198057428194e-11,
                    "jobs": 0.3937719904715195, "jvm_jobs": 0.0, "jvm_scan": 7.038342900620117e-09}


def noise() -> list[Measurement]:
    draw = random.Random(11)
    measurements = []
    for _ in range(200):
        amounts = {k: draw.uniform(0, 2) * 0.05 / SECONDS[k] for k in draw.sample(list(NAMES), 6)}
        measurements.append(Measurement(amounts, draw.uniform(0.001, 2)))
    return measurements


def test_fit_gives_the_figures_it_always_gave() -> None:
    costs = fit(prior(), noise(), forgetting=0.0)
    assert {k: costs[k] for k in MEANS} == pytest.approx(MEANS, rel=1e-9) and costs["jvm_jobs"] == 0
    assert {k: deviation({k: 1.0}, costs) for k in DEVIATIONS} == pytest.approx(DEVIATIONS, rel=1e-9)
    costs = fit(prior(), noise())
    assert {k: costs[k] for k in FORGETTING_MEANS} == pytest.approx(FORGETTING_MEANS, rel=1e-9)


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
    assert found["group"] >= 0 and found["scan"] > 0 and all(c >= 0 for c in found.mean)


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
