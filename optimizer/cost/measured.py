"""What a batch really costs, in seconds: amounts of work (optimizer.cost.features) times unit costs.

The model is linear, y = c·x + b·p, with c normal and never negative. p are the stated seconds of each kind of operator
and b by what share they are off, normal around what was measured of many plans (`OFF`): amounts that an operator states
never say all, and the doubt that stays is the operator's. optimizer.cost.fitting fits c and b to measured batches;
nothing is measured here.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import median
from types import MappingProxyType

from optimizer.errors import ForebayError

# Kinds of a plan's nodes: an operator of each kind does its work in another way under each way of keeping.
NODES = ("Scan", "AS", "Join", "Late aggregation")
SPREAD = 0.5          # standard deviation of a unit cost nobody has measured, relative to it
# Seconds a unit of the kernel on the machine that this was made on (2 cores), fitted to a run of
# jobs.papers.model_error; `forebay calibrate` measures them elsewhere, batches correct them. Those of the JVM and of
# exchanges are guesses by what statements and Spark's own plans took (DESIGN, "Measured").
SECONDS: Mapping[str, float] = MappingProxyType({
    "scan": 4.6e-09,
    "files": 5.4e-05,
    "times": 5e-08,
    "keep": 1.3e-08,
    "group": 1.4e-09,
    "made": 3e-08,
    "look": 1.6e-09,
    "build": 3.2e-08,
    "probe": 1.3e-09,
    "between": 1.2e-08,
    "pairs": 7.6e-10,
    "fanned": 2e-08,
    "products": 1.7e-09,
    "state_read": 9e-09,
    "state_write": 3.6e-08,
    "writes": 0.00061,
    "exchange": 2.5e-07,
    "statements": 0.0036,
    "operands": 0.0013,
    "merge": 1.1e-07,
    "published": 9.2e-08,
    "commits": 0.0029,
    "jobs": 0.077,
    "shuffles": 0.13,
    "batches": 0.027,
    "jvm_scan": 1e-8,
    "jvm_files": 2e-3,
    "jvm_times": 1e-7,
    "jvm_keep": 2e-8,
    "jvm_group": 2e-8,
    "jvm_made": 1e-7,
    "jvm_look": 1e-8,
    "jvm_build": 5e-8,
    "jvm_probe": 3e-8,
    "jvm_between": 3e-8,
    "jvm_pairs": 1.5e-8,
    "jvm_fanned": 5e-8,
    "jvm_products": 1.5e-8,
    "jvm_state_read": 1.5e-8,
    "jvm_state_write": 8e-8,
    "jvm_writes": 0.2,
    "jvm_exchange": 1e-7,
    "jvm_statements": 0.1,
    "jvm_operands": 0.02,
    "jvm_merge": 3e-8,
    "jvm_published": 3e-8,
    "jvm_commits": 7e-3,
    "jvm_jobs": 0.1,
    "jvm_shuffles": 0.1,
    "jvm_batches": 0.03
})
# By what share an operator's seconds are more than its amounts at the unit costs above say, by way of keeping: fitted
# together with them.
OFF: Mapping[str, float] = MappingProxyType({
    "Scan recompute": -0.46,
    "Scan running": 0.18,
    "Scan retract": 0.17,
    "Scan expire": -0.09,
    "AS recompute": 0.14,
    "AS running": 0.01,
    "AS retract": -0.14,
    "AS expire": -0.14,
    "Join recompute": 0.14,
    "Join running": -0.35,
    "Join retract": -0.21,
    "Join expire": -0.05,
    "Late aggregation recompute": 0.42,
    "Late aggregation running": -0.17,
    "Late aggregation retract": -0.10,
    "Late aggregation expire": 0.22
})
OFF_SPREAD = 0.15     # standard deviation of these shares between queries nobody has measured
NAMES = (*SECONDS, *OFF)
PLACE = MappingProxyType({name: n for n, name in enumerate(NAMES)})
Row = tuple[float, ...]


@dataclass(frozen=True)
class UnitCosts:
    """What each kind of work costs on this machine: `prior()["scan"]` is 3e-9, so 10,000,000 values are read in 0.03 s.

    `mean` holds the seconds a unit, in the order of NAMES, and after them by what share operators are off;
    `covariance` is how sure they are. `measurements` is how many batches they rest on, `source` where they come from.
    """

    mean: Row
    covariance: tuple[Row, ...]
    source: str = "prior"
    measurements: int = 0

    def __post_init__(self) -> None:
        n = len(NAMES)
        if len(self.mean) != n or len(self.covariance) != n or any(len(row) != n for row in self.covariance):
            raise _bad(f"{len(self.mean)} unit costs", f"expected {n}, with a covariance of {n} × {n}")
        for name, value, row in zip(NAMES, self.mean, self.covariance):
            is_possible = isfinite(value) and (value >= 0 or name in OFF)
            if not is_possible or not all(map(isfinite, row)) or row[PLACE[name]] < 0:
                raise _bad(f"unit cost {name} is {value!r}",
                           "expected a finite number of seconds, not negative, and a finite covariance")

    def __getitem__(self, name: str) -> float:
        return self.mean[PLACE[name]]

    def document(self) -> dict[str, object]:
        return {"seconds": dict(zip(NAMES, self.mean)), "covariance": [list(row) for row in self.covariance],
                "source": self.source, "measurements": self.measurements}


@dataclass(frozen=True)
class Measurement:
    """A batch's amounts of work and the seconds it took."""

    amounts: Mapping[str, float]
    seconds: float


def prior(seconds: Mapping[str, float] = SECONDS, source: str = "prior", spread: float = SPREAD) -> UnitCosts:
    """Unit costs before any batch.

    What is not given is as SECONDS says. `spread` is the doubt about those that are given.
    """
    unknown = [name for name in seconds if name not in SECONDS]
    if unknown:
        raise _bad(f"unknown unit cost {unknown[0]!r}", f"known are {', '.join(SECONDS)}")
    unit_costs = [float(seconds.get(name, stated)) for name, stated in SECONDS.items()]
    faster = median(value / stated for value, stated in zip(unit_costs, SECONDS.values()))
    mean = (*unit_costs, *(share * faster for share in OFF.values()))
    deviations = [(spread if name in seconds else SPREAD) * value for name, value in zip(SECONDS, unit_costs)]
    deviations += [OFF_SPREAD * faster] * len(OFF)
    rows = []
    for i, deviation in enumerate(deviations):
        row = [0.0] * len(NAMES)
        row[i] = deviation * deviation
        rows.append(tuple(row))
    return UnitCosts(mean, tuple(rows), source)


def read(document: object) -> UnitCosts:
    """Unit costs from JSON, as `document` writes them; a wrong one is refused by its name.

    An older version may have known fewer kinds of work: what it does not say is as it is before any batch.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("seconds"), Mapping):
        raise _bad("no `seconds`", "expected {\"seconds\": {name: seconds}, \"covariance\": [[…]], …}")
    values, rows, count = document["seconds"], document.get("covariance"), document.get("measurements", 0)
    wrong = [name for name in values if name not in PLACE or not _number(values[name])]
    if wrong or not values:
        name = wrong[0] if wrong else NAMES[0]
        raise _bad(f"unit cost {name!r} is {values.get(name)!r}", f"expected numbers for {', '.join(NAMES)}")
    if not isinstance(rows, list) or len(rows) != len(values) or not all(_is_row(row, len(rows)) for row in rows):
        raise _bad("the covariance is not a square matrix of numbers, a row for each unit cost",
                   "forebay calibrate makes it anew")
    stated = prior()
    covariance = [list(row) for row in stated.covariance]
    for name, row in zip(values, rows):
        for other, value in zip(values, row):
            covariance[PLACE[name]][PLACE[other]] = float(value)
    return UnitCosts(mean=tuple(float(values.get(name, stated[name])) for name in NAMES),
                     covariance=tuple(map(tuple, covariance)),
                     source=str(document.get("source", "")),
                     measurements=count if isinstance(count, int) and count >= 0 else 0)


def _is_row(row: object, length: int) -> bool:
    return isinstance(row, list) and len(row) == length and all(map(_number, row))


def seconds(amounts: Mapping[str, float], unit_costs: UnitCosts) -> float:
    mean = unit_costs.mean
    return sum(mean[PLACE[kind]] * amount for kind, amount in amounts.items())


def deviation(amounts: Mapping[str, float], unit_costs: UnitCosts,
              than: Mapping[str, float] | None = None) -> float:
    """Standard deviation of a price; or of the difference of two, in which what they share cancels."""
    other = than or {}
    differences = [(PLACE[name], amounts.get(name, 0.0) - other.get(name, 0.0)) for name in {*amounts, *other}]
    x = [(place, difference) for place, difference in differences if difference]
    return sqrt(max(sum(u * v * unit_costs.covariance[i][j] for i, u in x for j, v in x), 0.0))


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _bad(message: str, hint: str) -> ForebayError:
    return ForebayError("bad-calibration", message, hint=hint)
