"""Prices of plans by node from the measured model, as tests compare and order them."""
from __future__ import annotations

from collections.abc import Callable

from optimizer.cost.features import Features, building, steady
from optimizer.cost.measured import UnitCosts, seconds
from optimizer.papers.contract import Price
from optimizer.plan.model import Plan
from optimizer.query.model import Query
from optimizer.statistics.cardinality import Sizes, sizes
from optimizer.statistics.model import QueryStatistics

UNIT = "s"


def first_price(query: Query, plan: Plan, statistics: QueryStatistics, unit_costs: UnitCosts) -> Price:
    """Seconds of the batch that makes the plan's state from the stream tables."""
    return priced(building(query, plan, statistics), unit_costs)


def price(query: Query, plan: Plan, statistics: QueryStatistics, unit_costs: UnitCosts, parts: int = 1,
          query_sizes: Sizes | None = None) -> Price:
    """Seconds of an average batch, by node."""
    return priced(steady(query, plan, statistics, parts, query_sizes), unit_costs)


def model(query: Query, statistics: QueryStatistics, unit_costs: UnitCosts, parts: int = 1) -> Callable[[Plan], Price]:
    """A price for each plan of one query by these statistics; sizes are worked out once for all plans."""
    query_sizes = sizes(query, statistics)
    return lambda plan: price(query, plan, statistics, unit_costs, parts, query_sizes)


def priced(features: Features, unit_costs: UnitCosts) -> Price:
    parts = tuple((node, seconds(amounts, unit_costs)) for node, amounts in features.nodes.items())
    return Price(parts, UNIT, f"unit costs: {unit_costs.source}, {unit_costs.measurements} batches measured")
