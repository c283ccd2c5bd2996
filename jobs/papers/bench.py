"""`forebay bench`: each prints figures and ratios measured in one run on this machine, answers compared first.

Nothing asserts on seconds.
"""
from __future__ import annotations

import json
import sys
from dataclasses import replace

from jobs.papers import drift
from jobs.papers.benches import adhoc, arity, backlog, joins, large, looks, sharing, subjoins, ways
from jobs.papers.benches.large import LargeSetting
from jobs.papers.benches.looks import StatisticsSetting
from jobs.papers.benches.sharing import Report, SharingSetting
from jobs.papers.benches.streams import BenchSetting
from jobs.papers.experiments.sharing import rows as sharing_rows
from jobs.papers.model_error import run as model_error
from optimizer.errors import ForebayError


def names() -> dict[str, str]:
    return {
        "ad-hoc": "queries that come and go in real time, 1 to 100 a second up to 500: from request to first answer",
        "batch-cost": "a batch by rows that come: none, 1 k, 100 k, 1 M; where the time goes",
        "backlog": "all boundaries of rows that are stored, one a batch and as many together as the price says: P1, a "
                   "join of two streams, and P2, four windows of one",
        "large-windows": "P1's query over windows of 6, 24 and 96 million rows a stream: the plan that prices choose, "
                         "fixed plans, and DuckDB recomputing (ten minutes, 5 GB of disk)",
        "window-growth": "seconds a batch as the window grows 1, 4, 16 times, by way of keeping",
        "peers-join": "one boundary of a two-way join: ours, Spark's own plan, Spark SQL by an expert, DuckDB "
                      "recomputing",
        "peers-join-large": "the same with 12 M rows a window and stream",
        "model-error": "what prices say of the plans of 103 settings, and what they take on stream tables through "
                       "Spark's tasks; fits unit costs; writes docs/model-error.md (an hour, 20 GB of disk; goes on "
                       "where it was ended)",
        "sharing": "1 to 500 queries with selections on one join: together, each for itself, and by plain Spark (a "
                   "sample, extrapolated)",
        "sharing-arity": "paper E's queries Q1 to Q7, joins of two and three of four streams on other keys, and as "
                         "many more of each: as one work, a work a form, each for itself",
        "sharing-joins": "a join that several forms have in common, made once and by each form for itself, by one task",
        "sharing-rows": "1 to 500 queries for joined rows with selections on one join: together and each for itself",
        "sharing-ways": "a group's cells split before its join and after it, and its join in each order, by one task",
        "statistics": "looks at whole windows: their cost beside the batches', their errors beside exact SQL; --rows "
                      "(a window and stream) and --boundaries say how many",
        "drift": "four changes of a stream's nature: plans chosen by price beside every fixed plan and the best of "
                 "each phase"
    }


def document(wanted: list[str], quick: bool = False, rows: int | None = None,
             boundaries: int | None = None) -> Report:
    """What each measures, for `list`; else the figures of each. `rows` and `boundaries` are for `statistics` alone."""
    reports = names() if wanted == ["list"] else {name: run(name, quick, rows, boundaries) for name in wanted}
    return {"benchmarks": reports, "text": json.dumps(reports, indent=2, default=str)}


def run(name: str, quick: bool = False, rows: int | None = None, boundaries: int | None = None) -> Report:
    """One benchmark by name."""
    match name:
        case "ad-hoc":
            return adhoc.ad_hoc(adhoc.scenarios(quick), _say)
        case "backlog":
            return backlog.backlog(quick, _say)
        case "batch-cost":
            return joins.batch_cost((0, 1_000, 100_000) if quick else (0, 1_000, 100_000, 1_000_000))
        case "drift":
            return drift.drift(6, 500, stationary=40) if quick else drift.drift()
        case "large-windows":
            return large.large_windows(large.QUICK if quick else LargeSetting(), _say)
        case "model-error":
            return model_error.run(quick, _say)
        case "peers-join":
            return joins.peers_join(BenchSetting(), with_plain=not quick)
        case "peers-join-large":
            return joins.peers_join(BenchSetting(rate=100_000, window=120), with_plain=False)
        case "sharing":
            setting = SharingSetting(counts=(1, 20, 100), apart=20) if quick else SharingSetting()
            return sharing.with_spark(setting, _say, patience=20.0 if quick else sharing.PATIENCE)
        case "sharing-arity":
            few = arity.AritySetting(rate=500, copies=(1, 5))
            return arity.sharing_arity(few if quick else arity.AritySetting(), _say)
        case "sharing-joins":
            return subjoins.sub_joins(quick, _say)
        case "sharing-rows":
            return sharing_rows.both(quick)
        case "sharing-ways":
            return ways.ways(quick, _say)
        case "statistics":
            windows = StatisticsSetting(240_000, 6) if quick else StatisticsSetting()
            windows = replace(windows, rows=rows or windows.rows, boundaries=boundaries or windows.boundaries)
            return looks.statistics(windows, _say)
        case "window-growth":
            return joins.window_growth((1, 4) if quick else (1, 4, 16))
        case _:
            raise ForebayError("unknown-benchmark", f"there is no benchmark {name!r}",
                               hint=f"there are {', '.join(names())}")


def _say(message: str) -> None:
    """How far it is; the figures go to standard output at the end."""
    print(message, file=sys.stderr)
