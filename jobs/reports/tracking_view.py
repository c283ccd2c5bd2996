"""How MLflow's pages show costs: names of metrics, by which its charts are sorted and grouped, and a saved view that
links open.

MLflow has a chart a metric, in sections by what stands before the slash, both in the order of their names; a view is
a tag of the experiment, in the form that its pages save and read.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# Figures of batches by their names in MLflow: what was measured stands beside what was predicted.
METRICS: Mapping[str, str] = {
    "measured_s": "seconds/measured",
    "predicted_s": "seconds/predicted",
    "best_s": "seconds/predicted_cheapest",
    "regret_s": "seconds/regret",
    "tried_s": "seconds/tried_beside",
    "rows": "work/rows",
    "joined_rows": "work/joined_rows",
    "fan_out": "work/fan_out",
    "state_rows": "work/state_rows",
    "state_bytes": "work/state_bytes",
    "boundaries": "work/boundaries",
}
SECTIONS = ("prices", "seconds", "work")
HEIGHT = 510                      # pixels of a picture with what stands around it
KEY = "forebay"
TAG = f"mlflow.sharedViewState.{KEY}"
NAME = "Predicted and measured"
COLUMNS = ("tags.`forebay.plan`", "metrics.`seconds/predicted`", "metrics.`seconds/measured`",
           "tags.`forebay.regret_s`", "tags.`forebay.reason`")


def saved(now: int) -> str:
    """The view as the value of its tag; `now` in milliseconds."""
    state = {"selectedColumns": COLUMNS, "compareRunCharts": _charts(), "compareRunSections": _sections(),
             "hideEmptyCharts": True}
    return json.dumps({"name": NAME, "createdAt": now, "updatedAt": now, "state": json.dumps(state)})


def picture(query: str) -> str:
    """The name of a query's picture among the charts: a chart each, in the first section."""
    return f"{SECTIONS[0]}/{query}"


def _sections() -> list[dict[str, Any]]:
    """Of the pictures two in a row, so that they can be read; they fill a square."""
    sections = [{"uuid": name, "name": name, "display": True, "isReordered": False, "deleted": False,
                 "isGenerated": True} for name in SECTIONS]
    return [{**sections[0], "columns": 2, "cardHeight": HEIGHT}, *sections[1:]]


def _charts() -> list[dict[str, Any]]:
    """Both in one chart; MLflow adds a chart for each picture and each metric that has none."""
    measured, predicted, cheapest = METRICS["measured_s"], METRICS["predicted_s"], METRICS["best_s"]
    return [
        _card("LINE", "seconds", "measured and predicted", metricKey=measured, selectedMetricKeys=[measured, predicted],
              lineSmoothness=0, xAxisScaleType="linear", scaleType="linear", range={}, xAxisKey="step",
              selectedXAxisMetricKey="", yAxisKey="metric", yAxisExpressions=[], ignoreOutliers=False,
              useGlobalXaxisKey=True, useGlobalLineSmoothing=True),
        _card("BAR", "seconds", "the last batch", metricKey=predicted,
              selectedMetricKeys=[measured, predicted, cheapest]),
    ]


def _card(kind: str, section: str, title: str, **more: Any) -> dict[str, Any]:
    return {"uuid": f"forebay-{kind.lower()}", "type": kind, "metricSectionId": section, "displayName": title,
            "runsCountToCompare": 10, "deleted": False, "isGenerated": False, **more}
