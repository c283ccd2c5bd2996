"""The papers' figures: arithmetic of agreement and verdicts, points that outlive an interruption, pages.

Every experiment runs whole in its quick form; half of them in `make test`, the others in `make long`.
"""
from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.papers import experiments
from jobs.papers.experiments import aggregation, agreement, pictures
from jobs.papers.experiments.claims import HOLDS, NOT, PART, Panel, claim, report
from jobs.papers.experiments.points import MINUTES, PLACE, finished, point, spent, unfinished
from jobs.reports import tracking
from optimizer.errors import ForebayError
from tests.seeds import seed

pytestmark = pytest.mark.slow       # importing compilers and pictures takes longer than the shorter tests

# which needs Spark: test_experiments.py
FIGURES = [name for name in experiments.EXPERIMENTS if name != "windows-spark"]
LOGGED = "b-fig7"                   # in MLflow, whose import takes seconds


@given(st.lists(st.integers(-50, 50), min_size=3, max_size=12, unique=True))
def test_ranks_agree_with_any_rising_function_and_oppose_any_falling_one(values: list[int]) -> None:
    assert agreement.spearman(values, [v ** 3
                                       for v in values]) == 1 and agreement.spearman(values, [-v for v in values]) == -1
    assert agreement.spearman(values, [7] * len(values)) == 0


def test_spearman_shares_ranks_of_equal_values() -> None:
    """Ranks 0.5, 0.5, 2, 3 and 0, 1, 2, 3: covariance 4.5 / √(4.5 · 5)."""
    assert agreement.spearman([1, 1, 2, 3], [1, 2, 3, 4]) == pytest.approx(4.5 / (4.5 * 5) ** 0.5, abs=1e-3)


@given(st.lists(st.sampled_from((0.0, 0.5, 3.0)), min_size=3, max_size=3), st.integers(0, 2**32))
def test_tuning_finds_constants_that_made_the_times(constants: list[float], number: int) -> None:
    """Rows that Hypothesis would draw itself could be multiples of one another, and would leave the constants open."""
    rnd = Random(number)
    rows = [[rnd.uniform(1, 100) for _ in constants] for _ in range(9)]
    times = [sum(a * c for a, c in zip(row, constants)) for row in rows]
    if any(constants):
        assert agreement.tuned(rows, times) == pytest.approx(constants, abs=1e-6)


def test_tuned_constants_are_never_negative() -> None:
    assert min(agreement.tuned([[1, 10], [2, 10], [3, 10]], [3, 2, 1])) == 0


def test_growth_and_lines() -> None:
    assert agreement.growth([1, 2, 4], [3, 12, 48]) == 2 and agreement.slope([0, 1, 2], [5, 7, 9]) == pytest.approx(2)
    assert agreement.bend([0, 1, 2], [5, 7, 9]) == pytest.approx(0) and agreement.bend([0, 1, 2],
                                                                                       [0, 3, 0]) == pytest.approx(2)


def test_verdicts_follow_from_the_checks() -> None:
    assert claim("x", [(True, "a"), (True, "b")]).line == f"{HOLDS}: x (a; b)"
    assert claim("x", [(True, "a"), (False, "b")]).line == f"{PART}: x (b)"
    assert claim("x", [(False, "a")]).verdict == NOT


def test_an_interrupted_experiment_goes_on_at_its_last_finished_point(tmp_path: Path,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """Points of other operators, or of a damaged file, are not used; a finished experiment begins anew."""
    monkeypatch.setenv(PLACE, str(tmp_path))
    asked: list[str] = []

    def measure(name: str) -> dict[str, object]:
        asked.append(name)
        return {"seconds": len(asked)}

    first = unfinished("x", True)
    assert point(first, "one", lambda: measure("one")) == {"seconds": 1}
    again = unfinished("x", True)
    assert point(again, "one", lambda: measure("one")) == {
        "seconds": 1
    } and point(again, "two", lambda: measure("two")) == {
        "seconds": 2
    }
    assert asked == ["one", "two"] and unfinished("x", False).measured == {}
    again.file.write_text(again.file.read_text().replace(again.version, "other"))
    assert unfinished("x", True).measured == {}
    again.file.write_text("{")
    assert unfinished("x", True).measured == {}
    finished(again)
    assert list(tmp_path.iterdir()) == []


def test_a_page_shows_the_picture_the_claims_and_the_numbers(tmp_path: Path) -> None:
    panel = Panel("(a)", "window", "s", (1.0, 2.0), {"LAP": [1.0, 2.0]}, {"LAP": [1.5, 2.5]})
    made = report("Fig. 0", "Default.", [panel], [claim("it grows", [(True, "× 2")])], {})
    page, picture = pictures.drawn("x", made, tmp_path)
    text, drawing = page.read_text(), picture.read_bytes()
    assert text.startswith(
        "# Fig. 0\n") and "](x.svg)" in text and "| 2 | 2 / 2.5 |" in text and "- holds: it grows (× 2)" in text
    assert b"(a): model" in drawing and b"(a): measured" in drawing
    pictures.drawn("x", made, tmp_path)
    assert picture.read_bytes() == drawing


def test_named_points_are_bars_and_every_series_is_a_metric(tmp_path: Path) -> None:
    """What stands beside is named by the panel; a metric has a step a point, and letters that MLflow takes."""
    panel = Panel("rates × 10", "setup", "times", (0.0, 1.0), {"σ = 0.1": [2.0, 3.0]}, {"σ = 0.1": [1.5, 2.5]},
                  beside="paper", labels=("R-5", "S-5"), spread={"σ = 0.1": [(1.5, 2.5), (2.0, 3.5)]})
    made = {
        **report("Table", "Settings.", [panel], [claim("x", [(True, "a")]),
                                                 claim("y", [(False, "b")])], {"events": 7}), "asked": 7
    }
    assert pictures.metrics(made) == {
        "events": [7.0],
        "asked": [7.0],
        "rates 10/ 0.1": [2.0, 3.0],
        "rates 10/ 0.1/paper": [1.5, 2.5],
        "claims": [2.0],
        "claims_that_hold": [1.0]
    }
    page, picture = pictures.drawn("x", made, tmp_path)
    assert "measured / paper" in made["text"] and "| S-5 | 3 / 2.5 |" in page.read_text(
    ) and "`forebay experiment x --events 7`" in page.read_text()
    assert b"rates \xc3\x97 10: paper" in picture.read_bytes() and b"R-5" in picture.read_bytes()


@pytest.mark.parametrize(("labels", "mark"), [((), "hollow"), (("one", "two"), "hatched")])
def test_what_is_extrapolated_is_marked_in_table_and_picture(labels: tuple[str, ...], mark: str,
                                                             tmp_path: Path) -> None:
    panel = Panel("levels", "queries", "s", (1.0, 2.0), {"apart": [1.0, 2.0], "shared": [1.0, 1.5]}, {}, labels=labels,
                  extrapolated={"apart": (1,)}, extrapolation="as at 1")
    plain = Panel("levels", "queries", "s", (1.0, 2.0), {"apart": [1.0, 2.0]}, {}, labels=labels, how="by a formula")
    page, picture = pictures.drawn("x", report("Fig. 0", "Default.", [panel, plain], [], {}), tmp_path)
    assert "measured; ≈ as at 1" in page.read_text() and "| ≈ 2 | 1.5 |" in page.read_text()
    assert f"{mark}: as at 1" in picture.read_text() and "levels: by a formula" in picture.read_text()
    assert page.read_text().count("≈") == 2 and "s, by a formula" in page.read_text()


def test_a_time_that_is_no_number_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLACE, str(tmp_path))
    monkeypatch.setenv(MINUTES, "soon")
    with pytest.raises(ForebayError, match="FOREBAY_MINUTES is 'soon'"):
        spent(unfinished("x", True))
    monkeypatch.setenv(MINUTES, "0")
    assert spent(unfinished("x", True))


@pytest.mark.parametrize("scale", (1, 100))
def test_claims_name_their_own_scale(scale: int) -> None:
    """A tuple's cost is said a tuple, whatever the rates are."""
    plans = {"LAP": 4e-5, "EAP10": 3e-5, "EAP01": 2e-5, "EAP11": 1e-5}
    y = {n: [k * each * 1000 * scale for k in (1, 2, 3)] for n, each in plans.items()}
    panels = [Panel(f"({letter})", "x", "s", (1000.0, 2000.0, 3000.0), y, y) for letter in "abcd"]
    found = list(
        aggregation.judged(6, panels, {"spearman": {
            "tuned": 1.0,
            "calibrated": 1.0,
            "same_order": 1.0
        }}, scale))
    assert all(c.said.endswith("rates × 100") == (scale == 100) for c in found)
    assert any("LAP 40, EAP10 30, EAP01 20, EAP11 10" in c.why for c in found)


def test_reports_go_beside_the_folder_where_nobody_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    tracking.record("x", {"quick": True}, {"seconds": [1.0, 2.0]}, {"report.md": "said"}, {})
    assert [p.read_text() for p in tmp_path.glob(".forebay/mlflow/artifacts/*/artifacts/report.md")] == ["said"]


def figures() -> list[Any]:
    """`make test` runs every second one, which ones its seed says, `make long` the others: all take three minutes."""
    drawn = {LOGGED, *FIGURES[seed() % 2::2]}
    return [pytest.param(name, marks=[] if name in drawn else [pytest.mark.long]) for name in FIGURES]


@pytest.mark.parametrize("name", figures())
def test_each_figure_in_its_quick_form(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All plans answer alike, else it fails.

    Each claim of the paper gets a verdict and a reason; the page is written.
    """
    monkeypatch.setenv(PLACE, str(tmp_path / "points"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db" if name == LOGGED else "")
    document = experiments.document([name], quick=True, pictures=str(tmp_path))
    made = document["experiments"][name]
    if name == LOGGED:
        assert made["logged"]["run"] and {p.name for p in tmp_path.glob("artifacts/*/artifacts/*")
                                          } == {"report.json", "report.md", f"{name}.png"}
    else:
        assert made["logged"] is None
    assert made["claims"] and all(c["verdict"] in (HOLDS, PART, NOT) and c["why"] for c in made["claims"])
    series = [y for p in made["panels"] for kind in ("measured", "model") for y in p[kind].values()]
    least = float("-inf") if name == "sharing-ablation" else 0      # what a part saves can be less than nothing
    assert series and all(least < v < float("inf") or v == 0
                          for y in series
                          for v in y) and ("sharing" in name or all(max(y) > 0 for y in series))
    assert (tmp_path / f"{name}.md").exists() and (tmp_path / f"{name}.svg").exists() and not list(
        (tmp_path / "points").glob("*"))
