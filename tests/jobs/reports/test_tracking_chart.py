"""The picture of a query: measured, predicted, every candidate's price, a line for each switch, and a height at which
they can be read.
"""
from __future__ import annotations

from typing import Any

import pytest

from jobs.reports import tracking_chart
from jobs.reports.tracking_chart import chart
from tests.jobs.spans import priced, span, switched

pytestmark = pytest.mark.slow


def labels(figure: Any) -> list[str]:
    return [str(text.get_text()) for text in figure.legends[0].get_texts()]


def annotations(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def test_it_shows_what_was_measured_beside_all_prices_and_marks_the_switch() -> None:
    figure = chart("q", switched())
    assert {"measured", "predicted of the plan in force", "LAP recompute, predicted", "EAP01 recompute, predicted",
            "EAP11 expire, predicted"} == set(labels(figure))
    assert "switch to EAP01 recompute" in annotations(figure) and "LAP recompute" in annotations(figure)
    assert figure.axes[0].get_title() == "q: seconds a boundary"


def test_a_disturbed_batch_is_told_in_figures_instead_of_flattening_the_rest() -> None:
    figure = chart("q", switched())
    assert figure.axes[0].get_ylim()[1] < 2 and "▲ 9 s" in annotations(figure)


def test_many_candidates_are_grey_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    prices = {f"EAP{n:05b}_expire": 1.0 + n for n in range(31)} | {"LAP_recompute": 0.2}
    figure = chart("q", (span("LAP recompute", {1: 0.2, 2: 0.2}, priced(1, **prices)),))
    assert f"{31 - tracking_chart.NAMED} other candidates" in labels(figure)
    assert len(labels(figure)) == 1 + tracking_chart.NAMED + 1 + 2
    assert figure.axes[0].get_ylim()[1] < 1, "dear candidates do not flatten the plan in force"


def test_one_batch_without_any_price_is_a_picture_too(tmp_path: Any) -> None:
    figure = chart("q", (span("LAP recompute", {1: 0.2}, predicted=None),))
    figure.savefig(tmp_path / "one.png")
    assert labels(figure) == ["measured"]
