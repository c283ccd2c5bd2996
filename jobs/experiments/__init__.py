"""The papers' figures and tables, by name: an experiment is a function of its module that gives a report; its module is loaded when it is asked for."""
from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from optimizer.errors import ForebayError

Report = dict[str, Any]
Tell = Callable[[str], None]

# name: what it shows, module, function
EXPERIMENTS: dict[str, tuple[str, str, str]] = {
    "a-fig6": ("paper A, Fig. 6: two-way hash join, four plans by window, groups, rate, selectivity; equations beside measurement", "aggregation", "figure_6"),
    "a-fig7": ("paper A, Fig. 7: the same by nested loop", "aggregation", "figure_7"),
    "a-fig8": ("paper A, Fig. 8: three-way hash join, eight plans", "aggregation", "figure_8"),
    "a-fig9": ("paper A, Fig. 9: the same by nested loop", "aggregation", "figure_9"),
    "a-fig10": ("paper A, Fig. 10: settings in which each of four plans is the best", "winners", "figure_10"),
    "a-fig10-batches": ("paper A, Fig. 10's settings on micro-batches: which plan wins, by window and batch", "batches", "figure_10"),
    "b-fig4": ("paper B, Fig. 4: nested loop and hash window joins by relative rate", "joins", "figure_4"),
    "b-fig5": ("paper B, Fig. 5: the hash join by buckets", "joins", "figure_5"),
    "b-fig6": ("paper B, Fig. 6: the hash join by buckets and selectivity", "joins", "figure_6"),
    "b-fig7": ("paper B, Fig. 7: time of four ways of invalidation", "joins", "figure_7"),
    "b-fig8": ("paper B, Fig. 8: memory of four ways of invalidation", "joins", "figure_8"),
    "c-rate": ("paper C: time and memory of PC, IC, TC as the rate grows", "join_aggregates", "by_rate"),
    "c-window": ("paper C: time and memory of PC, IC, TC as the window grows", "join_aggregates", "by_window"),
    "windows-table-1": ("paper D, Table I: what sharing and factor windows save, 5 and 10 windows", "windows", "table_1"),
    "windows-table-3": ("paper D, Table III and Fig. 12: the same with 15 and 20 windows; time of the optimizer", "windows", "table_3"),
}


def names() -> dict[str, str]:
    return {name: said for name, (said, _, _) in EXPERIMENTS.items()}


def document(wanted: list[str], quick: bool = False, pictures: str | None = None) -> Report:
    """What each shows, for `list`; else the report of each, or of `all`. A report's `text` is what people read; `pictures` is a folder for pages and SVGs."""
    if wanted == ["list"]:
        found: Report = {name: {"text": said} for name, said in names().items()}
        return {"experiments": names(), "text": "\n".join(f"{name:20} {said['text']}" for name, said in found.items())}
    chosen = list(EXPERIMENTS) if wanted == ["all"] else wanted
    for name in chosen:
        if name not in EXPERIMENTS:
            raise ForebayError("unknown-experiment", f"there is no experiment {name!r}", hint=f"there are {', '.join(EXPERIMENTS)}; or all")
    reports = {name: _run(name, quick) for name in chosen}
    if pictures is not None:
        draw = importlib.import_module("jobs.experiments.pictures").drawn
        for name, report in reports.items():
            draw(name, report, Path(pictures))
    return {"experiments": reports, "text": "\n\n".join(str(r.get("text") or json.dumps(r, indent=2, default=str)) for r in reports.values())}


def _run(name: str, quick: bool) -> Report:
    _, module, function = EXPERIMENTS[name]
    run: Callable[[bool, Tell], Report] = getattr(importlib.import_module(f"jobs.experiments.{module}"), function)
    return {**run(quick, lambda said: print(said, file=sys.stderr, flush=True)), "quick": quick}
