"""The run: worlds are made, settings measured one after another, unit costs fitted, the page written; an interrupted
run goes on where it was.
"""
from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

from jobs.calibrate import machine as calibrate
from jobs.engine.tasks import Tasks
from jobs.papers.experiments.points import PLACE
from jobs.papers.model_error.drawn import DRAWN, drawn
from jobs.papers.model_error.measuring import AGAIN, GONE, measured, measured_again
from jobs.papers.model_error.page import DOUBTFUL, page, verdict
from jobs.papers.model_error.pricing import PricedSetting, as_stated, fitted, fitted_without, priced
from jobs.papers.model_error.record import Records
from jobs.papers.model_error.settings import PriceSetting, quick, settings
from jobs.papers.model_error.worlds import WORLDS, made
from optimizer.cost.measured import UnitCosts
from optimizer.plan.model import Plan

PAGE = "docs/model-error.md"
Say = Callable[[str], object]


def run(short: bool = False, say: Say = lambda _: None, folder: str = ".") -> dict[str, object]:
    """All settings and then the drawn ones, or with `short` a few small ones; only the whole run writes the page.

    Records stay in the user's cache, worlds until all of theirs is measured. An hour and 20 GB of disk, on a machine
    that does nothing else: what is measured beside other work cannot be held against what was measured without.
    """
    started, costs = time.perf_counter(), calibrate.coefficients()
    place = _place(short)
    records = Records(str(place / "records.jsonl"))
    tuned, unseen = (quick(), ()) if short else (settings(), drawn())
    _measure([*tuned, *unseen], records, costs, str(place), say)
    _look_again([*tuned, *unseen], records, str(place), say)
    tuned_records = [record for one in tuned if (record := records.of(one)) is not None and len(record.points) > 1]
    unseen_records = [record for one in unseen if (record := records.of(one)) is not None and len(record.points) > 1]
    known, drawn_settings = list(map(priced, tuned_records)), list(map(priced, unseen_records))
    after = fitted(known)
    text = page(known, drawn_settings, fitted_without(known), as_stated(), after)
    if not short and os.path.isdir(os.path.join(folder, os.path.dirname(PAGE))):
        with open(os.path.join(folder, PAGE), "w", encoding="utf-8") as file:
            file.write(text)
    return {**figures(known, drawn_settings, after), "unit_costs": after.document()["seconds"],
            "took_s": time.perf_counter() - started, "text": text}


def figures(known: Sequence[PricedSetting], drawn_settings: Sequence[PricedSetting],
            after: UnitCosts) -> dict[str, object]:
    """How good the choices are, for `--json`."""
    without = fitted_without(known)
    reports = {"families_left_out": verdict(known, lambda setting: without[setting.family]).__dict__}
    if drawn_settings:
        reports["drawn"] = verdict(drawn_settings, lambda _: after).__dict__
    return dict(json.loads(json.dumps(reports)))


def _measure(todo: Sequence[PriceSetting], records: Records, costs: UnitCosts, place: str, say: Say) -> None:
    """A world at a time, so that only one is on the disk; what is on record is not measured again."""
    missing = sorted((one for one in todo if records.of(one) is None), key=lambda one: list(WORLDS).index(one.world))
    if not missing:
        return
    tasks = Tasks()
    tasks.map(len, [()] * tasks.width)      # Spark's start is nobody's
    try:
        for name, of_world in groupby(missing, key=lambda one: one.world):
            say(f"{name}: making its streams")
            world_folder = made(WORLDS[name], place, tasks)
            for setting in of_world:
                record = measured(setting, world_folder, tasks, costs)
                records.add(record)
                best = min(record.points, key=lambda point: point.seconds, default=None)
                say(f"{setting.name}: {len(record.points)} plans"
                    + (f", the best {best.plan.name} in {best.seconds:.3f} s" if best else ""))
            shutil.rmtree(world_folder, ignore_errors=True)
    finally:
        tasks.stop()


def _look_again(todo: Sequence[PriceSetting], records: Records, place: str, say: Say) -> None:
    """Where the plan that prices choose was measured to be DOUBTFUL times the best, both are measured again in turns.

    The best of many that were measured once is in part the luckiest. What was looked at again is on record as such.
    """
    known = [priced(record) for one in todo if (record := records.of(one)) is not None and len(record.points) > 1]
    fit_to = [setting for setting in known if setting.family != DRAWN]
    without, after = fitted_without(fit_to), fitted(fit_to)
    by_world: dict[str, list[tuple[PricedSetting, set[Plan]]]] = {}
    for setting in known:
        chosen, best = setting.chosen(without.get(setting.family, after)), setting.best
        is_new = min(len(chosen.boundaries), len(best.boundaries)) < AGAIN
        if is_new and setting.regret(chosen) > DOUBTFUL and chosen.seconds < GONE:
            by_world.setdefault(setting.record.setting.world, []).append((setting, {chosen.plan, best.plan}))
    if not by_world:
        return
    tasks = Tasks()
    tasks.map(len, [()] * tasks.width)
    try:
        for name, of_world in by_world.items():
            world_folder = made(WORLDS[name], place, tasks)
            for setting, plans in of_world:
                say(f"again: {setting.record.setting.name}")
                records.add(measured_again(setting.record, plans, world_folder, tasks))
            shutil.rmtree(world_folder, ignore_errors=True)
    finally:
        tasks.stop()


def _place(short: bool) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(os.environ.get(PLACE) or os.path.join(cache, "forebay", "experiments"))
    place = folder / ("model-error-quick" if short else "model-error")
    place.mkdir(parents=True, exist_ok=True)
    return place
