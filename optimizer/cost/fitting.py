"""Unit costs, and by what share operators are off, fitted to measured batches by recursive least squares.

Nothing is measured here. A measurement moves mean and covariance of the unit costs c by its relative error
(y − c·x) / max(y, c·x), where x are its amounts of work and y its seconds. Before each the covariance goes a little
back to the prior's, so that old measurements are forgotten and what is never measured keeps its doubt.
"""
from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from optimizer.cost.measured import NAMES, OFF, SECONDS, STATED, Measurement, UnitCosts, prior

NOISE = 0.15          # standard deviation of a measured batch: other work of the machine, what the amounts leave out
# The same of a batch of many boundaries, whose amounts are those of one, times how many there are.
NOISE_OF_MANY = 0.3
FORGETTING = 0.02     # how far the covariance goes back to the prior's with each measurement
Array = NDArray[np.float64]
# Of its stated seconds that a unit of work costs at least: work that often comes together with other work would else be
# taken for free, and nothing would ever teach what it costs alone.
LEAST = 0.25
LEAST_SHARE = -0.7    # no operator takes less than three tenths of what its amounts say
_STATED: Array = np.array([STATED.get(name, SECONDS.get(name, 1.0)) for name in NAMES])
_PRIOR_VARIANCES: Array = np.diag(np.array(prior().covariance))
_IS_SHARE: Array = np.array([name in OFF for name in NAMES])


def fit(before: UnitCosts, measurements: Iterable[Measurement], noise: float = NOISE,
        forgetting: float = FORGETTING) -> UnitCosts:
    """The unit costs after these measurements, in the order in which they were made.

    `fit(prior(), [Measurement({"scan": 1e7}, 0.1)])`: scanning 10,000,000 values took 0.1 s, where 0.03 s were
    expected, so "scan" costs more than before, and is less doubtful.
    """
    mean, covariance, count = np.array(before.mean), np.array(before.covariance), before.measurements
    with np.errstate(over="ignore", invalid="ignore"):      # UnitCosts refuses what is not finite
        for measurement in measurements:
            x = np.array([measurement.amounts.get(name, 0.0) for name in NAMES])
            scale = max(measurement.seconds, float(mean @ x))
            if not isfinite(scale) or scale <= 0 or measurement.seconds < 0:
                continue
            _forget_slowly(covariance, forgetting)
            _update(mean, covariance, x / scale, measurement.seconds / scale, noise)
            count += 1
        expected = _never_too_little(mean, covariance)
    rows = tuple(tuple(row) for row in covariance.tolist())
    return UnitCosts(tuple(expected.tolist()), rows, before.source, count)


def _forget_slowly(covariance: Array, share: float) -> None:
    """Moves the variances towards the prior's, λΣ + (1 − λ)Σ₀, where the doubt is below the prior's."""
    variances = np.einsum("ii->i", covariance)      # a view of the diagonal that can be written to
    variances += share * np.maximum(_PRIOR_VARIANCES - variances, 0.0)


def _update(mean: Array, covariance: Array, x: Array, y: float, noise: float) -> None:
    """The Kalman step of recursive least squares; x and y are already relative, so their noise is one number."""
    along = covariance @ x
    gain = along / (noise * noise + x @ along)
    mean += gain * (y - mean @ x)
    covariance -= np.outer(gain, along)
    np.fill_diagonal(covariance, np.maximum(covariance.diagonal(), 0.0))


def _never_too_little(mean: Array, covariance: Array) -> Array:
    """The mean given that no work costs less than LEAST of what is stated; an operator's share may be below 0.

    The worst component is set to that, the others to what is then expected, until none is below.
    """
    expected, covariance = mean.copy(), covariance.copy()
    for _ in NAMES:
        worst = int(np.argmin(np.where(_IS_SHARE, np.inf, expected / _STATED)))
        if expected[worst] >= LEAST * _STATED[worst]:
            break
        if (variance := covariance[worst, worst]) > 0:
            share = covariance[:, worst] / variance
            expected += share * (LEAST * _STATED[worst] - expected[worst])
            covariance -= np.outer(share, covariance[worst])      # its row is then 0, so it stays where it is
        expected[worst] = LEAST * _STATED[worst]
    return np.maximum(expected, np.where(_IS_SHARE, LEAST_SHARE, LEAST * _STATED))
