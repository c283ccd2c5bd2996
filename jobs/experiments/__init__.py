"""The papers' figures and tables, by name: an experiment is a function of its module that gives a report; its module is loaded when it is asked for."""
from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Callable
from typing import Any

from optimizer.errors import ForebayError

Report = dict[str, Any]
Tell = Callable[[str], None]

# name: what it shows, module, function
EXPERIMENTS: dict[str, tuple[str, str, str]] = {
    "windows-table-1": ("paper D, Table I: what sharing and factor windows save, 5 and 10 windows", "windows", "table_1"),
    "windows-table-2": ("paper D, Table II: the same on values like a machine's power, made here, for the data set that is not", "windows", "table_2"),
    "windows-spark": ("paper D's setups against plain Spark SQL, one window() aggregation a window", "windows_spark", "table"),
    "windows-table-3": ("paper D, Table III and Fig. 12: the same with 15 and 20 windows; time of the optimizer", "windows", "table_3"),
    "sharing-throughput": ("paper E, Fig. 15: query-rows a second of 1, 5, 20, 100, 500 queries that share, and each for itself", "sharing", "throughput"),
    "sharing-overlap": ("paper E, Fig. 22: 20 queries that have 5, 25, 50, 75 % of their rows in common", "sharing", "overlap"),
    "sharing-deploy": ("paper E, Fig. 18b: a query created among 500", "sharing", "deployment"),
}


def names() -> dict[str, str]:
    return {name: said for name, (said, _, _) in EXPERIMENTS.items()}


def document(wanted: list[str], quick: bool = False, *, events: int | None = None) -> Report:
    """What each shows, for `list`; else the report of each, or of `all`. A report's `text` is what people read. `events`: of those that say how many."""
    if wanted == ["list"]:
        found: Report = {name: {"text": said} for name, said in names().items()}
        return {"experiments": names(), "text": "\n".join(f"{name:20} {said['text']}" for name, said in found.items())}
    chosen = list(EXPERIMENTS) if wanted == ["all"] else wanted
    for name in chosen:
        if name not in EXPERIMENTS:
            raise ForebayError("unknown-experiment", f"there is no experiment {name!r}", hint=f"there are {', '.join(EXPERIMENTS)}; or all")
    reports = {name: _run(name, quick, events) for name in chosen}
    return {"experiments": reports, "text": "\n\n".join(str(r.get("text") or json.dumps(r, indent=2, default=str)) for r in reports.values())}


def _run(name: str, quick: bool, events: int | None) -> Report:
    _, module, function = EXPERIMENTS[name]
    run: Callable[..., Report] = getattr(importlib.import_module(f"jobs.experiments.{module}"), function)
    if events is not None and "events" not in inspect.signature(run).parameters:
        raise ForebayError("bad-usage", f"{name} does not say how many events it takes", hint="leave --events out")
    return run(quick, lambda said: print(said, file=sys.stderr, flush=True), **({} if events is None else {"events": events}))
