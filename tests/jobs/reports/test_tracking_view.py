"""The view that links open: every figure of a batch has a name among MLflow's, and the view names only these."""
from __future__ import annotations

import json
import re

from jobs.reports import tracking_view
from jobs.reports.tracking_pages import CHARTS, charts
from jobs.reports.tracking_view import METRICS, SECTIONS, saved

VALID = re.compile(r"[\w\-. /]+", re.ASCII)      # what MLflow takes as a metric's name
LONGEST = 5000                                   # characters of an experiment's tag in every version


def state() -> dict[str, object]:
    envelope = json.loads(saved(1))
    assert (envelope["name"], envelope["createdAt"], envelope["updatedAt"]) == (tracking_view.NAME, 1, 1)
    return json.loads(envelope["state"])


def test_measured_and_predicted_stand_beside_each_other() -> None:
    """MLflow's own charts are sorted by section, then by name."""
    names = sorted(METRICS.values())
    assert names[:2] == ["seconds/measured", "seconds/predicted"] and len(set(names)) == len(METRICS)
    assert all(VALID.fullmatch(name) and name.split("/")[0] in SECTIONS for name in names)
    assert sorted(SECTIONS) == list(SECTIONS) and tracking_view.picture("q") == f"{SECTIONS[0]}/q"


def test_the_view_has_both_in_one_chart_and_as_columns() -> None:
    view = state()
    line, = (chart for chart in view["compareRunCharts"] if chart["type"] == "LINE")
    assert line["selectedMetricKeys"] == ["seconds/measured", "seconds/predicted"]
    sections = {section["uuid"] for section in view["compareRunSections"]}
    assert {chart["metricSectionId"] for chart in view["compareRunCharts"]} <= sections
    named = {name for chart in view["compareRunCharts"] for name in chart.get("selectedMetricKeys", ())}
    assert named <= set(METRICS.values()) and len(saved(1)) < LONGEST
    assert {"metrics.`seconds/predicted`", "metrics.`seconds/measured`"} <= set(view["selectedColumns"])


def test_links_open_the_view() -> None:
    assert charts("http://127.0.0.1:5000/", "7") == f"http://127.0.0.1:5000/#/experiments/7/{CHARTS}"
    assert CHARTS.endswith(f"&viewStateShareKey={tracking_view.TAG.rpartition('.')[2]}")
