"""What prices say of measured plans: the amounts of work of each point, unit costs fitted to points, and how well
prices choose in settings that the fit has not seen.

Nothing is measured here.
"""
from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jobs.papers.model_error.measuring import WARM, PlanPoint, SettingRecord
from jobs.papers.model_error.worlds import SECOND, WORLDS, types
from jobs.papers.ranks import spearman
from optimizer.cost.features import OUTSIDE, Features, steady
from optimizer.cost.fitting import fit
from optimizer.cost.measured import NAMES, OFF, STATED, Measurement, UnitCosts, prior, seconds
from optimizer.papers.many_way import price as paper_price
from optimizer.papers.statistics import PaperStream
from optimizer.papers.statistics import Setting as PaperSetting
from optimizer.query.model import Catalog, Query
from optimizer.query.shape import shape
from optimizer.sql.parse import parse
from optimizer.statistics.cardinality import sizes
from optimizer.statistics.model import QueryStatistics

WIDTH = 2                # tasks at once on the machine that was measured
NOISE = 0.1              # standard deviation of a measured boundary, relative
DOUBT = 0.25             # standard deviation of the unit costs where fits start, relative
AS_STATED = 0.05         # how far a node's factor is held to 1, relative to one point
NODES = ("Scan", "AS", "Join", "Late aggregation", "fixed")


@dataclass(frozen=True)
class PricedPoint:
    """A measured plan with the work that it is said to be, and the paper's cost."""

    point: PlanPoint
    features: Features
    paper: float

    def seconds(self, costs: UnitCosts) -> float:
        """Of a whole boundary."""
        return seconds(self.features.total, costs)

    def task_seconds(self, costs: UnitCosts) -> float:
        return seconds(self.features.in_task, costs)

    def measurements(self) -> list[Measurement]:
        """Its task's seconds, and those around it."""
        point = self.point
        return [Measurement(self.features.in_task, point.task_seconds),
                Measurement(self.features.outside, max(point.seconds - point.task_seconds, 0.0))]


@dataclass(frozen=True)
class PricedSetting:
    record: SettingRecord
    points: tuple[PricedPoint, ...]

    @property
    def family(self) -> str:
        return self.record.setting.family

    @property
    def best(self) -> PlanPoint:
        return min(self.record.points, key=lambda point: point.seconds)

    def chosen(self, costs: UnitCosts) -> PlanPoint:
        """The plan that these prices would take, of those that were run."""
        return min(self.points, key=lambda priced: priced.seconds(costs)).point

    def chosen_by_paper(self) -> PlanPoint:
        """The first of those with the least cost by paper A, in its own order of ways of keeping."""
        preferred = ("running", "retract", "recompute", "expire")
        return min(self.points, key=lambda p: (p.paper, preferred.index(p.point.plan.keeping))).point

    def regret(self, point: PlanPoint) -> float:
        """What a plan takes, over what the best takes."""
        return point.seconds / self.best.seconds

    def rank_correlation(self, costs: UnitCosts) -> float:
        return spearman([p.seconds(costs) for p in self.points], [p.point.seconds for p in self.points])

    def error(self, costs: UnitCosts) -> float:
        """The median of how many times a price is too high or too low."""
        ratios = [priced.seconds(costs) / priced.point.seconds for priced in self.points]
        return statistics.median(max(ratio, 1 / ratio) for ratio in ratios)


def priced(record: SettingRecord) -> PricedSetting:
    """The work that each plan of a setting is said to be, by what its pipeline knew."""
    query = parse(record.setting.sql, _catalog(record))
    query_sizes, known = sizes(query, record.statistics), symbols(query, record.statistics)
    points = []
    for point in record.points:
        features = steady(query, point.plan, record.statistics, point.plan.parts or WIDTH, query_sizes, age=WARM - 1)
        points.append(PricedPoint(point, features, paper_price(point.plan, known, query).total))
    return PricedSetting(record, tuple(points))


def fitted(settings: Iterable[PricedSetting]) -> UnitCosts:
    """Unit costs from all points, each counted alike whatever it took: its task's seconds, and those around it.

    Where rows are sent, only both together: who sends and who receives may be different tasks.
    """
    measurements = []
    for setting in settings:
        for priced_point in setting.points:
            point, total = priced_point.point, priced_point.features.total
            if total.get("exchange", 0.0) > 0:
                measurements.append(Measurement(total, point.seconds))
                continue
            measurements += priced_point.measurements()
    return fit(as_stated(), measurements, NOISE, forgetting=0.0)


def fitted_without(settings: Sequence[PricedSetting]) -> Mapping[str, UnitCosts]:
    """By family, unit costs of all the others: what prices would be, had nobody ever seen such queries."""
    families = dict.fromkeys(setting.family for setting in settings)
    return {family: fitted(setting for setting in settings if setting.family != family) for family in families}


def node_factors(settings: Sequence[PricedSetting], costs: UnitCosts) -> Mapping[str, float]:
    """By which factor the seconds of each kind of node would have to be multiplied to be nearest to what tasks took.

    All plans together, least squares of relative errors, each factor held to 1 a little: 1.1 says that this node is
    stated a tenth too cheap. Nodes run in one statement, so no clock can tell them apart.
    """
    rows, wanted = [], []
    for setting in settings:
        for priced_point in setting.points:
            by_node = dict.fromkeys(NODES, 0.0)
            for node, amounts in priced_point.features.nodes.items():
                inside = {kind: amount for kind, amount in amounts.items() if kind.removeprefix("jvm_") not in OUTSIDE}
                by_node[_kind(node)] += seconds(inside, costs)
            rows.append([by_node[node] / priced_point.point.task_seconds for node in NODES])
            wanted.append(1.0)
    for place in range(len(NODES)):
        rows.append([AS_STATED * len(wanted) ** 0.5 * (other == place) for other in range(len(NODES))])
    wanted += [AS_STATED * (len(rows) - len(NODES)) ** 0.5] * len(NODES)
    factors = np.linalg.lstsq(np.array(rows), np.array(wanted), rcond=None)[0]
    return dict(zip(NODES, map(float, factors)))


def symbols(query: Query, known: QueryStatistics) -> PaperSetting:
    """The paper's symbols of the same statistics: its model has rates, windows, groups and one selectivity a stream."""
    query_shape, query_sizes = shape(query), sizes(query, known)
    grouped = {a[0] for a in map(query_shape.attribute, query.groups) if a}
    keys = {i: key.keys for joined, key in zip(query_shape.joined_inputs(), known.classes) for i in joined}
    streams = []
    for i, (declared, flow) in enumerate(zip(query.inputs, query_sizes.flows)):
        groups = max(known.groups ** (1 / len(grouped)), 1.0) if i in grouped else 1.0
        streams.append(PaperStream(declared.alias, flow.came / known.batch, flow.window, groups, 1 / keys.get(i, 1.0)))
    return PaperSetting(tuple(streams), "hash")


def as_stated() -> UnitCosts:
    """What is stated, and no operator off by any share: nothing here knows what these settings have taught since."""
    costs = prior(STATED, "stated", DOUBT)
    return replace(costs, mean=tuple(0.0 if name in OFF else cost for name, cost in zip(NAMES, costs.mean)))


def _kind(node: str) -> str:
    return next((kind for kind in NODES if node.startswith(kind)), "fixed")


def _catalog(record: SettingRecord) -> Catalog:
    world = WORLDS[record.setting.world]
    streams = tuple((f"s{number}", "ts", types(world)) for number in range(1, world.streams + 1))
    return Catalog(world.batch * SECOND, streams, ())
