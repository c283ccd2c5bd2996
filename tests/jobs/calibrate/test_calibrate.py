"""Calibration: what is kept is what is read, a damaged or foreign one is not used, pieces of work scale unit costs.

Trials measure real plans.
"""
from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.calibrate import machine as calibrate
from jobs.calibrate import trial
from jobs.calibrate.exact import fitted, observe
from jobs.calibrate.machine import REFERENCE, Calibration, machine, scaled
from optimizer.cost.measured import SECONDS, prior
from optimizer.errors import ForebayError
from optimizer.papers.statistics import Constants
from optimizer.plan.model import named
from optimizer.statistics.cardinality import distinct, sizes

SMALL = trial.TrialStream(200, "20 SECONDS", 20, 50, 5)
SETTING = trial.TrialSetting("small", (SMALL, SMALL))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOREBAY_CALIBRATION", str(tmp_path / "deep" / "calibration.json"))
    return calibrate.path()


def kept(**changes: object) -> Calibration:
    made = replace(Calibration(prior({"scan": 1e-9}, "here"), Constants(), {"Cinv": 1.0}, machine()),
                   **changes)  # type: ignore[arg-type]
    calibrate._write_down(made)
    return made


def test_by_wish_the_prior_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_CALIBRATION", "none")
    assert calibrate.coefficients() == prior()


@pytest.mark.slow
def test_the_first_use_measures_small_pieces_and_keeps_them(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "SIZES", (1_000, 2_000, 4_000))
    assert calibrate.stored() is None
    first = calibrate.coefficients()
    made = calibrate.stored()
    assert made is not None and made.here and made.coefficients == first != prior()
    monkeypatch.setattr(calibrate, "unit_costs", lambda: pytest.fail("measured again"))
    assert calibrate.coefficients() == first


def test_what_is_kept_is_what_is_read(place: Path) -> None:
    made = kept()
    assert calibrate.stored() == made
    assert calibrate.coefficients()["scan"] == 1e-9


def test_a_calibration_of_another_machine_is_not_used(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = kept(machine={**machine(), "cpu": "another"})
    monkeypatch.setattr(calibrate, "unit_costs", lambda: dict(calibrate.REFERENCE))
    assert calibrate.coefficients() != other.coefficients and calibrate.stored() != other


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"seconds": 3}'])
def test_a_damaged_calibration_is_refused_with_its_path(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True)
    place.write_text(text, encoding="utf-8")
    with pytest.raises(ForebayError, match="calibration.json is not a calibration"):
        calibrate.coefficients()


def test_nothing_kept_names_the_host(place: Path) -> None:
    import socket
    kept()
    assert socket.gethostname() not in json.dumps(json.loads(place.read_text(encoding="utf-8"))["machine"])


def test_a_machine_twice_as_slow_has_twice_the_costs() -> None:
    found = scaled({name: 2 * seconds for name, seconds in REFERENCE.items()})
    assert found["scan"] == pytest.approx(2 * SECONDS["scan"]) and found["made"] == pytest.approx(
        2 * SECONDS["made"]) and "jobs" not in found


def test_one_disturbed_piece_moves_its_own_cost_and_by_less() -> None:
    found = scaled({**REFERENCE, "scan": 4 * REFERENCE["scan"]})
    assert found["scan"] == pytest.approx(2 * SECONDS["scan"]) and found["group"] == pytest.approx(SECONDS["group"])


def test_fitted_finds_the_number_that_distinct_needs() -> None:
    assert distinct(fitted(600, 150), 600) == pytest.approx(150)
    assert fitted(600, 600) > 1e9


def test_exact_statistics_are_those_of_the_rows() -> None:
    with trial.generated(SETTING) as data:
        known = observe(data, SETTING.full)
        found = sizes(SETTING.query, known)
        left, right = data.paths("s1"), data.paths("s2")
    assert (known.inputs[0].rate, known.inputs[0].rows, known.groups, known.classes[0].keys) == (200, 4000, 5, 50)
    assert found.join([found.raw(0), found.raw(1)]) == pytest.approx(4000 * 4000 / 50,
                                                                     rel=0.05) and len(left) == len(right)


@pytest.mark.slow
def test_a_trial_runs_plans_for_real() -> None:
    with trial.generated(SETTING) as data:
        plans = [named(SETTING.query, name) for name in ("LAP recompute", "EAP01 recompute", "EAP11 running")]
        ran = trial.run(data, plans)
    assert set(ran) == {p.name for p in plans} and all(first > 0 and warm > 0 for first, warm in ran.values())


@pytest.mark.slow
def test_calibrating_measures_this_machine_and_keeps_it(place: Path) -> None:
    made = calibrate.calibrate()
    assert calibrate.stored() == made and made.here and made.coefficients.measurements > 20
    assert all(value > 0 for value in vars(made.constants).values())
    assert calibrate.coefficients() == made.coefficients
