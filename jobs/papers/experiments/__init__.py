"""The papers' figures and tables, by name: an experiment is a function of its module that gives a report.

Its module is loaded when it is asked for.
"""
from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from optimizer.errors import ForebayError

Report = dict[str, Any]
Tell = Callable[[str], None]

# name: what it shows, module, function
EXPERIMENTS: dict[str, tuple[str, str, str]] = {
    "a-fig6": (
        "paper A, Fig. 6: two-way hash join, four plans by window, groups, rate, selectivity; equations beside "
        "measurement",
        "aggregation", "figure_6"),
    "a-fig7": ("paper A, Fig. 7: the same by nested loop", "aggregation", "figure_7"),
    "a-fig8": ("paper A, Fig. 8: three-way hash join, eight plans", "aggregation", "figure_8"),
    "a-fig9": ("paper A, Fig. 9: the same by nested loop", "aggregation", "figure_9"),
    "a-fig10": ("paper A, Fig. 10: settings in which each of four plans is the best", "winners", "figure_10"),
    "a-fig10-batches": ("paper A, Fig. 10's settings on micro-batches: which plan wins, by window and batch", "batches",
                        "figure_10"),
    "b-fig4": ("paper B, Fig. 4: nested loop and hash window joins by relative rate", "joins", "figure_4"),
    "b-fig5": ("paper B, Fig. 5: the hash join by buckets", "joins", "figure_5"),
    "b-fig6": ("paper B, Fig. 6: the hash join by buckets and selectivity", "joins", "figure_6"),
    "b-fig7": ("paper B, Fig. 7: time of four ways of invalidation", "joins", "figure_7"),
    "b-fig8": ("paper B, Fig. 8: memory of four ways of invalidation", "joins", "figure_8"),
    "b-batches": ("paper B on micro-batches: expired partials leave with the insert, or by a sweep; which is faster, "
                  "and which the price takes", "expiry", "by_invalidation"),
    "c-batches": ("paper C on micro-batches: TC (expire) and IC (retract) by window, keys and groups", "expiry",
                  "by_keeping"),
    "c-rate": ("paper C: time and memory of PC, IC, TC as the rate grows", "join_aggregates", "by_rate"),
    "c-window": ("paper C: time and memory of PC, IC, TC as the window grows", "join_aggregates", "by_window"),
    "windows-table-1": ("paper D, Table I: what sharing and factor windows save, 5 and 10 windows", "windows.tables",
                        "table_1"),
    "windows-table-2": (
        "paper D, Table II: the same on values like a machine's power, made here, for the data set that is not",
        "windows.tables", "table_2"),
    "windows-spark": ("paper D's setups against plain Spark SQL, one window() aggregation a window", "windows.on_spark",
                      "table"),
    "windows-table-3": ("paper D, Table III and Fig. 12: the same with 15 and 20 windows; time of the optimizer",
                        "windows.tables", "table_3"),
    "windows-pipelines": ("paper D, Tables I to III as pipelines over Delta by device: each window by itself, shared "
                          "panes, factor windows", "windows.pipelines", "table"),
    "windows-sums": ("beyond paper D: SUM over hopping windows, added up and by subtraction from running totals",
                     "windows.sums", "by_subtraction"),
    "sharing-throughput": (
        "paper E, Fig. 15: query-rows a second of 1, 5, 20, 100, 500 queries that share, and each for itself",
        "sharing.throughput", "throughput"),
    "sharing-keys": ("paper E, Figs. 16, 17: distinct keys and selectivity; what is kept", "sharing.figures", "keys"),
    "sharing-latency": ("paper E, Fig. 18a: event time to answer while queries come (SC1) and go (SC2), by arity",
                        "sharing.figures", "latency"),
    "sharing-breakdown": ("paper E, Fig. 19: what a batch's time consists of, by arity", "sharing.figures",
                          "breakdown"),
    "sharing-shape": ("paper E, Fig. 20: throughput by arity, query groups, similarity", "sharing.figures", "shape"),
    "sharing-ablation": ("paper E, Fig. 21: what each part of sharing brings, by leaving it out", "sharing.ablation",
                         "ablation"),
    "sharing-overlap": ("paper E, Fig. 22: 20 queries that have 5, 25, 50, 75 % of their rows in common",
                        "sharing.throughput", "overlap"),
    "sharing-deploy": ("paper E, Fig. 18b: a query created among 500", "sharing.throughput", "deployment"),
}


def names() -> dict[str, str]:
    return {name: description for name, (description, _, _) in EXPERIMENTS.items()}


def document(wanted: list[str], quick: bool = False, pictures: str | None = None, *,
             events: int | None = None) -> Report:
    """What each shows, for `list`; else the report of each, or of `all`. A report's `text` is what people read;
    `pictures` is a folder for pages and SVGs.

    `events`: how many, of those that say it.
    """
    if wanted == ["list"]:
        descriptions: Report = {name: {"text": entry} for name, entry in names().items()}
        lines = [f"{name:20} {entry['text']}" for name, entry in descriptions.items()]
        return {"experiments": names(), "text": "\n".join(lines)}
    chosen = list(EXPERIMENTS) if wanted == ["all"] else wanted
    for name in chosen:
        if name not in EXPERIMENTS:
            raise ForebayError("unknown-experiment", f"there is no experiment {name!r}",
                               hint=f"there are {', '.join(EXPERIMENTS)}; or all")
    reports = {name: _run(name, quick, events, pictures) for name in chosen}
    return {"experiments": reports, "text": "\n\n".join(str(r["text"]) for r in reports.values())}


def _run(name: str, quick: bool, events: int | None, folder: str | None) -> Report:
    """The one place that runs, draws and logs an experiment: what it gives is what `claims.report` makes."""
    _, module, function = EXPERIMENTS[name]
    run: Callable[..., Report] = getattr(importlib.import_module(f"jobs.papers.experiments.{module}"), function)
    if events is not None and "events" not in inspect.signature(run).parameters:
        raise ForebayError("bad-usage", f"{name} does not say how many events it takes", hint="leave --events out")
    given = {} if events is None else {"events": events}
    report = {
        **run(quick, lambda message: print(message, file=sys.stderr, flush=True), **given), "quick": quick,
        "asked": events
    }
    pictures = importlib.import_module("jobs.papers.experiments.pictures")
    if folder is not None:
        pictures.drawn(name, report, Path(folder))
    return {**report, "logged": pictures.logged(name, report)}
