"""Settings in which prices are judged: they are enough, parse, and fit into their worlds.

A fit finds the unit costs that made its points, and a verdict says so when prices choose wrongly.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.engine.tasks import Tasks
from jobs.papers.model_error import measuring, record, run, trying
from jobs.papers.model_error.drawn import COUNT, drawn
from jobs.papers.model_error.measuring import PlanPoint, SettingRecord, priced_plans
from jobs.papers.model_error.page import page, verdict, winners
from jobs.papers.model_error.pricing import PricedSetting, fitted, fitted_without, node_factors, priced
from jobs.papers.model_error.settings import PriceSetting, over_one, over_two, quick, settings
from jobs.papers.model_error.trying import share_within, surprises, tries
from jobs.papers.model_error.worlds import SECOND, START, WORLDS, World, made, types
from jobs.papers.ranks import spearman
from optimizer.cost.features import OUTSIDE
from optimizer.cost.measured import OFF, SECONDS, UnitCosts, prior, seconds
from optimizer.query.model import Catalog, Query
from optimizer.query.windows import Window
from optimizer.sql.parse import parse
from optimizer.statistics.model import InputStatistics, KeyStatistics, QueryStatistics

ALIKE = {0: (0.02,) * 50, 1: (0.02,) * 50}
KNOWN = QueryStatistics((InputStatistics(2_000, 480_000, combinations=6_000),
                         InputStatistics(2_000, 480_000, combinations=50)),
                        (KeyStatistics(50, 1.0, ALIKE, ALIKE),), batch=5, groups=20, weight=1e6)


def query_of(setting: PriceSetting) -> Query:
    world = WORLDS[setting.world]
    streams = tuple((f"s{number}", "ts", types(world)) for number in range(1, world.streams + 1))
    return parse(setting.sql, Catalog(world.batch * SECOND, streams, ()))


def reach(window: Window | None) -> int:
    return window.range // SECOND if window and window.kind != "landmark" else 0


def made_up(name: str, seconds_of: Callable[[Mapping[str, float], Mapping[str, float]], float]) -> PricedSetting:
    """A setting whose plans took what a function of their work (in tasks and outside of them) says."""
    window = {"first": "240 SECONDS", "second": "60 SECONDS"}.get(name, "120 SECONDS")
    setting = PriceSetting(name, name, "small", over_two("j50", "s1.g20", window))
    plans = priced_plans(query_of(setting), KNOWN, prior(), 2)
    points = tuple(PlanPoint(plan, 1.0, 0.5, ((1.0, 0.5),)) for plan in plans)
    unknown = priced(SettingRecord(setting, KNOWN, points, 0))
    took = []
    for one in unknown.points:
        outside = {kind: amount for kind, amount in one.features.total.items() if kind in OUTSIDE}
        in_task = seconds_of(one.features.in_task, {})
        took.append(replace(one.point, boundaries=((in_task + seconds_of(outside, {}), in_task),)))
    return priced(SettingRecord(setting, KNOWN, tuple(took), 0))


def by(costs: Mapping[str, float]) -> Callable[[Mapping[str, float], Mapping[str, float]], float]:
    return lambda amounts, _: sum(costs.get(kind, 0.0) * amount for kind, amount in amounts.items())


def test_settings_are_enough_and_differ() -> None:
    texts = {(one.world, one.sql) for one in settings()}
    assert len(settings()) >= 60 and len(texts) == len({one.name for one in settings()}) == len(settings())
    assert {len(query_of(one).inputs) for one in settings()} == {1, 2, 3, 4}
    assert sum(one.world == "large" for one in settings()) <= 8 and len({one.family for one in settings()}) >= 10
    assert quick() and set(quick()) < set(settings())


def test_windows_are_full_when_plans_are_measured() -> None:
    for one in (*settings(), *drawn()):
        world, query = WORLDS[one.world], query_of(one)
        assert all(reach(i.window) <= world.reach for i in query.inputs), one.name
        assert world.measured * world.batch * SECOND >= (measuring.WARM + 1) * query.every, one.name


def test_a_file_of_the_past_holds_many_batches_and_all_are_there() -> None:
    for world in WORLDS.values():
        batches = [number for file in world.files() for number in file]
        assert batches == list(range(world.batches))
        assert all(len(file) == 1 for file in world.files() if file[0] >= world.first)


def test_drawn_settings_are_those_of_their_seed() -> None:
    assert drawn() == drawn() and len(drawn()) == COUNT and drawn(seed=1) != drawn()
    assert not {one.sql for one in drawn()} & {one.sql for one in settings()}


def test_what_is_on_record_is_what_was_measured(tmp_path: Path) -> None:
    measured = made_up("first", by(SECONDS)).record
    records = record.Records(str(tmp_path / "records.jsonl"))
    assert records.of(measured.setting) is None
    records.add(measured)
    assert record.Records(records.path).of(measured.setting) == measured


def test_a_fit_finds_the_unit_costs_that_made_the_points() -> None:
    true = {kind: cost * (3.0 if kind in ("jobs", "statements") else 1.0) for kind, cost in SECONDS.items()}
    many = [made_up(name, by(true)) for name in ("first", "second", "third")]
    fit = fitted(many)
    assert verdict(many, lambda _: fit).right == 1 and verdict(many, lambda _: fit).error < 1.03
    assert verdict(many, lambda _: fit).error < verdict(many, lambda _: prior()).error
    assert set(fitted_without(many)) == {"first", "second", "third"}


def test_a_verdict_says_that_prices_choose_wrongly() -> None:
    backwards = made_up("first", lambda amounts, _: 1 / (1e-3 + by(SECONDS)(amounts, {})))
    found = verdict([backwards], lambda _: prior())
    assert found.right == 0 and found.worst > 1.2 and found.correlation < 0


def test_a_node_that_is_stated_too_cheap_is_named() -> None:
    def cheap_scans(costs: UnitCosts) -> float:
        return node_factors([made_up("first", by({**SECONDS, "scan": 4 * SECONDS["scan"]}))], costs)["Scan"]

    right = node_factors([made_up("first", by(SECONDS))], prior())
    assert all(factor == pytest.approx(1, abs=0.02) for factor in right.values())
    assert cheap_scans(prior()) > 1.2


def test_winners_are_counted_by_way_of_keeping() -> None:
    one = made_up("first", by(SECONDS))
    counts = winners([one])
    assert sum(won for won, _ in counts.values()) == 1 and all(clearly <= won for won, clearly in counts.values())


def test_the_page_shows_each_setting_once() -> None:
    many = [made_up(name, by(SECONDS)) for name in ("first", "second", "third")]
    text = page(many, many[:1], fitted_without(many), prior(), fitted(many))
    assert text.count("| second |") == 2      # its family and itself
    assert "drawn by a seed, in no fit" in text and "| drawn settings | 0 | 0 |" in text


def test_trying_finds_what_prices_overlook_and_nothing_where_they_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices that are sure to a half, and a plan that takes a third of what they say."""
    monkeypatch.setattr(trying, "deviation", lambda amounts, costs, than: 0.5 * seconds(amounts, costs))
    vague, right = prior(), made_up("first", by({**SECONDS, **OFF}))
    chosen = right.chosen(vague)
    other = next(one.point for one in right.points if one.point.plan.keeping != chosen.plan.keeping
                 and one.point.seconds < 1.2 * chosen.seconds)
    points = tuple(replace(one, point=faster(other, 3.0)) if one.point == other else one for one in right.points)
    overlooked = replace(right, points=points, record=replace(right.record, points=tuple(one.point for one in points)))
    found, nothing = tries(overlooked, vague), tries(right, vague)
    assert found.before > 2 and found.after == 1.0 and 1 <= found.kept <= found.count
    assert nothing.after <= nothing.before < 1.05 and nothing.kept == 0
    assert share_within(surprises(right, vague), 1.0) == 1.0


def faster(point: PlanPoint, times: float) -> PlanPoint:
    return replace(point, boundaries=tuple((took / times, task / times) for took, task in point.boundaries))


def test_rank_correlation_with_ties() -> None:
    assert spearman([1, 2, 3], [10, 20, 30]) == 1 and spearman([1, 2, 3], [3, 2, 1]) == -1
    assert spearman([1, 1, 2], [1, 2, 3]) == pytest.approx(0.866, abs=1e-3)


@pytest.mark.slow
def test_plans_have_lives_of_their_own_and_an_ended_run_goes_on(tmp_path: Path,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    world = World("village", batch=5, rate=40, reach=20, measured=5)
    setting = PriceSetting("one stream", "village", "village", over_one("20 SECONDS", "g20"))
    monkeypatch.setitem(WORLDS, "village", world)      # type: ignore[arg-type]
    folder = made(world, str(tmp_path), Tasks("inline"))
    assert made(world, str(tmp_path), Tasks("inline")) == folder      # it is there
    found = measuring.measured(setting, folder, Tasks("inline"), prior())
    assert {point.plan.keeping for point in found.points} == {"recompute", "running", "retract", "expire"}
    assert all(len(point.boundaries) == measuring.WARM for point in found.points)
    assert all(point.seconds > point.task_seconds > 0 for point in found.points)
    assert found.statistics.weight > 0 and found.statistics.inputs[0].rows == pytest.approx(800, rel=0.1)
    two = {point.plan for point in found.points[:2]}
    again = measuring.measured_again(found, two, folder, Tasks("inline"))
    assert [point.plan for point in again.points] == [point.plan for point in found.points]
    assert again.points[2:] == found.points[2:] and all(point.seconds > 0 for point in again.points[:2])
    assert all(len(point.boundaries) == world.measured - 1 for point in again.points[:2])
    monkeypatch.setattr(run, "measured", lambda *_: pytest.fail("measured again"))
    records = record.Records(str(tmp_path / "records.jsonl"))
    records.add(found)
    run._measure([setting], records, prior(), str(tmp_path), print)
    assert START < world.boundary(world.first)
