"""Plans of one setting run for real: each in a life of its own over the same stream tables, boundary by boundary,
through Spark's tasks, with ledger, state and results as users have them.

Which plans: of each name the cheapest form, and of names that aggregate early and recompute both layouts; of these the
cheapest by the prices at hand, and the best of each way of keeping. What would take longer than HOPELESS is left out,
and counted.
"""
from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from jobs.adapt.statistics import Statistics
from jobs.batch.works import parsed
from jobs.engine.tasks import Tasks
from jobs.ledger.entries import KeptState
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryState
from jobs.papers.model_error.settings import PriceSetting
from jobs.papers.model_error.worlds import WORLDS, copied
from jobs.run import Loop
from optimizer.choice.consider import Costs, with_width
from optimizer.choice.parallelism import Parallelism
from optimizer.choice.search import every_form
from optimizer.cost.features import building, steady
from optimizer.cost.measured import UnitCosts, seconds
from optimizer.errors import ForebayError, failed
from optimizer.plan.model import KEEPING, Plan, candidates
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.statistics.cardinality import sizes
from optimizer.statistics.model import QueryStatistics

CHEAPEST = 5             # plans that are run for being cheap by the prices at hand
CHEAPEST_LARGE = 4       # the same in a large setting, where each takes a minute
BEST_OF_KEEPING = 2      # plans that are run of each way of keeping
WARM = 3                 # boundaries after the one that builds the state
AGAIN = 6                # the same of plans that are measured once more
HOPELESS = 1.5           # seconds that a boundary may be predicted to take, or FAR times the cheapest plan's
FAR = 4.0
HOPELESS_BUILDING = 10.0       # seconds for the boundary that builds the state, in a large setting LARGER times that
LARGER = 6.0
GONE = 4.0               # seconds after which a plan is not asked for another boundary


@dataclass(frozen=True)
class PlanPoint:
    """One plan in one setting: `PlanPoint(plan, building_s=1.2, boundaries=((0.31, 0.09), …))` took 0.31 s for a warm
    boundary, of which its slowest task took 0.09 s.
    """

    plan: Plan
    building_s: float
    building_task_s: float
    boundaries: tuple[tuple[float, float], ...]

    @property
    def seconds(self) -> float:
        """Of a boundary: the least, since other work of the machine only adds."""
        return min(took for took, _ in self.boundaries)

    @property
    def task_seconds(self) -> float:
        return min(took for _, took in self.boundaries)


@dataclass(frozen=True)
class SettingRecord:
    """What was measured of a setting, and what its pipeline knew of its streams by then."""

    setting: PriceSetting
    statistics: QueryStatistics
    points: tuple[PlanPoint, ...]
    left_out: int               # plans that were predicted to be hopeless, or did not finish


class OnePlan(Loop):
    """A loop whose query is answered by one plan, in one form, whatever it costs."""

    def __init__(self, pipe: OpenPipeline, plan: Plan) -> None:
        super().__init__(pipe)
        self.plan = plan

    def _plan(self, query_state: QueryState, state: KeptState | None, parallel: Parallelism) -> Plan:
        return self.plan


def measured(setting: PriceSetting, world_folder: str, tasks: Tasks, costs: UnitCosts) -> SettingRecord:
    """Every plan that is run has a life of its own, one after another."""
    world = WORLDS[setting.world]
    first = world.boundary(world.first)
    lives = f"{world_folder}.lives"
    shutil.rmtree(lives, ignore_errors=True)
    os.makedirs(lives)
    try:
        pipe = copied(world_folder, os.path.join(lives, "look"), tasks, setting.sql, first)
        query = parsed(setting.sql, pipe.catalog)
        look = Statistics(pipe).first_look(query)
        plans, left_out = chosen_plans(query, look, costs, tasks.width, setting.world == "large")
        points, statistics = [], look
        for number, plan in enumerate(plans):
            folder = os.path.join(lives, str(number))
            loop = OnePlan(copied(world_folder, folder, tasks, setting.sql, first), plan)
            point = _lived(loop, plan)
            if point is None:
                left_out += 1
            else:
                points.append(point)
                known = loop.statistics.observed("answer", query)
                statistics = known if known is not None and statistics is look else statistics
            shutil.rmtree(folder, ignore_errors=True)
        if plans and not points:      # Spark itself has ended, say: that is no result
            raise failed("nothing-measured", f"none of {len(plans)} plans of {setting.name!r} could be run",
                         "look at what Spark says above, then run it again: it goes on at this setting")
        return SettingRecord(setting, statistics, tuple(points), left_out)
    finally:
        shutil.rmtree(lives, ignore_errors=True)


def chosen_plans(query: Query, statistics: QueryStatistics, costs: UnitCosts, width: int,
                 large: bool) -> tuple[list[Plan], int]:
    """The plans to run, and how many are left out as hopeless."""
    priced = priced_plans(query, statistics, costs, width)
    most, most_building = max(HOPELESS, FAR * min(priced.values())), HOPELESS_BUILDING * (LARGER if large else 1)
    able = {plan: took for plan, took in priced.items()
            if took < most and _building_s(query, plan, statistics, costs, width) < most_building}
    in_order = sorted(able, key=lambda plan: able[plan])
    plans = in_order[:CHEAPEST_LARGE if large else CHEAPEST]
    for keeping in KEEPING:
        of_keeping = [plan for plan in in_order if plan.keeping == keeping]
        plans += [plan for plan in of_keeping[:1 if large else BEST_OF_KEEPING] if plan not in plans]
    return plans, len(priced) - len(able)


def priced_plans(query: Query, statistics: QueryStatistics, costs: UnitCosts, width: int) -> Mapping[Plan, float]:
    """Of each name and layout the cheapest form, with its seconds a boundary."""
    forms, query_shape = with_width(Costs(costs), width).forms, shape(query)
    query_sizes = sizes(query, statistics)
    best: dict[tuple[str, str], tuple[float, Plan]] = {}
    for candidate in candidates(query):
        if candidate.refused is None:
            for plan in every_form(query_shape, candidate.plan, forms):
                work = steady(query, plan, statistics, plan.parts or width, query_sizes).total
                key, took = (plan.name, plan.layout), seconds(work, costs)
                if key not in best or took < best[key][0]:
                    best[key] = took, plan
    return {plan: took for took, plan in best.values()}


def _building_s(query: Query, plan: Plan, statistics: QueryStatistics, costs: UnitCosts, width: int) -> float:
    return seconds(building(query, plan, statistics, plan.parts or width).total, costs)


def measured_again(record: SettingRecord, plans: Collection[Plan], world_folder: str, tasks: Tasks) -> SettingRecord:
    """The record with some of its plans measured once more, in turns boundary by boundary: so a busy moment of the
    machine hits all alike, and what was the best by luck alone is so no more.
    """
    world, lives = WORLDS[record.setting.world], f"{world_folder}.lives"
    first = world.boundary(world.first)
    shutil.rmtree(lives, ignore_errors=True)
    os.makedirs(lives)
    try:
        turns: dict[Plan, Iterator[tuple[float, float]]] = {}
        for number, plan in enumerate(plans):
            pipe = copied(world_folder, os.path.join(lives, str(number)), tasks, record.setting.sql, first)
            turns[plan] = _boundaries(OnePlan(pipe, plan))
        took: dict[Plan, list[tuple[float, float]]] = {plan: [] for plan in turns}
        for _ in range(AGAIN + 1):
            for plan, turn in turns.items():
                took[plan] += islice(turn, 1)
        points = tuple(_point(point.plan, took[point.plan]) if took.get(point.plan) else point
                       for point in record.points)
        return replace(record, points=points)
    finally:
        shutil.rmtree(lives, ignore_errors=True)


def _lived(loop: Loop, plan: Plan) -> PlanPoint | None:
    """None where the plan failed; one that is very slow is not asked for all boundaries."""
    took: list[tuple[float, float]] = []
    try:
        for boundary in islice(_boundaries(loop), WARM + 1):
            took.append(boundary)
            if len(took) > 1 and boundary[0] > GONE:
                break
    except ForebayError:
        return None
    return _point(plan, took) if len(took) > 1 else None


def _boundaries(loop: Loop) -> Iterator[tuple[float, float]]:
    """Seconds of one boundary after another at which the query is due, and of those its slowest task's."""
    while entries := loop.run(flush=True, limit=1)["ran"]:
        if entries[0]["failed"]:
            return
        if entries[0]["plans"]:
            (batch,) = loop.pipe.ledger.committed_batches(1)
            yield entries[0]["seconds"], batch.task_seconds.get("answer", 0.0)


def _point(plan: Plan, took: Sequence[tuple[float, float]]) -> PlanPoint:
    return PlanPoint(plan, took[0][0], took[0][1], tuple(took[1:]))
