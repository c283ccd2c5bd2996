"""When expired partials leave state is chosen by what it takes, from the files and rows that a window keeps."""
from __future__ import annotations

from dataclasses import replace

import pytest

from optimizer.choice.consider import Costs, consider
from optimizer.choice.decide import Past
from optimizer.cost.invalidation import invalidation, upkeep
from optimizer.cost.measured import SECONDS, UnitCosts, prior
from optimizer.plan.model import named
from optimizer.sql.parse import parse
from optimizer.statistics.cardinality import Sizes, sizes
from optimizer.statistics.model import InputStatistics, QueryStatistics
from tests.optimizer.planning import CATALOG

BATCH = 10


def query_sizes(boundaries: int, groups: float = 1e3) -> Sizes:
    """Of a window that holds so many boundaries."""
    query = parse(f"SELECT page, COUNT(*) AS n FROM views [WINDOW {boundaries * BATCH} SECONDS] GROUP BY page", CATALOG)
    stream = InputStatistics(1e3, 1e3 * BATCH * boundaries, combinations=groups)
    return sizes(query, QueryStatistics((stream,), (), BATCH, groups))


def costs(**seconds: float) -> UnitCosts:
    return prior({**SECONDS, **seconds})


@pytest.mark.parametrize("boundaries,unit_costs,strategy", [
    (2, prior(), "insert"),                                  # few files, and a job every 23 boundaries costs more
    (20, prior(), "insert"),
    (20, costs(commits=0.1), "sweep"),                       # where deleting is slow, as in an object store
    (20, costs(jobs=0.0, commits=0.0, statements=0.0, writes=0.0, files=0.005), "sweep"),  # 20 files to open, or 12
    (2, costs(jobs=0.0, commits=0.0, statements=0.0, writes=0.0, files=0.005), "insert"),  # 2, or 12
])
def test_the_cheaper_one_is_chosen_by_files_and_costs(boundaries: int, unit_costs: UnitCosts, strategy: str) -> None:
    of_window = query_sizes(boundaries)
    plan = named(of_window.shape.query, "EAP1 recompute")
    assert invalidation(plan, of_window, unit_costs) == strategy


def test_a_sweep_costs_the_more_the_more_rows_still_count() -> None:
    few, many = (upkeep(named(one.shape.query, "EAP1 recompute"), one)["sweep"]
                 for one in (query_sizes(10, 1e3), query_sizes(10, 1e5)))
    assert many["state_read"] > 5 * few["state_read"] and many["jobs"] == few["jobs"] == pytest.approx(1 / 23)


@pytest.mark.parametrize("boundaries,name", [(24, "EAP1 recompute"), (360, "EAP1 recompute"), (2, "LAP recompute")])
def test_long_windows_and_plans_without_state_have_nothing_to_choose(boundaries: int, name: str) -> None:
    of_window = query_sizes(boundaries)
    plan = replace(named(of_window.shape.query, name), invalidation="sweep")
    assert upkeep(plan, of_window) == {}
    assert invalidation(plan, of_window, prior()) == "sweep"


def test_a_plan_in_force_is_not_made_anew_for_it() -> None:
    """The first plan takes what the price says; later prices change nothing of a plan that stays."""
    of_window, slow = query_sizes(4), Costs(costs(commits=0.1))
    query, statistics = of_window.shape.query, of_window.statistics
    first = consider(query, statistics, slow, only="EAP1 expire").plan
    assert first.invalidation == "sweep"
    later = consider(query, statistics, Costs(prior()), Past(first, since=100), only="EAP1 expire").plan
    assert later == first
    assert consider(query, statistics, Costs(prior()), only="EAP1 expire").plan.invalidation == "insert"
