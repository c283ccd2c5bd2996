"""`forebay calibrate`: unit costs of this machine by small pieces of work, corrected by real plans on generated rows;
kept as JSON in the user's cache.

A piece of work's unit cost is the slope of seconds over sizes, so what a statement costs by itself drops out. Work
alone is not work in a plan, where operators feed one another: what is taken from the pieces is how many times slower or
faster than REFERENCE this machine is at each, and the unit costs that were fitted to whole plans there
(measured.SECONDS) are scaled by that. The paper's constants are the same in plain Python, tuple by tuple as the papers
work: a list scanned (Pn, C_scan), a bucket of a dict probed (Ph), a tuple put at one end of a deque and taken from the
other (Un; C_ins and C_inv apart), the same in a dict's bucket (Uh), a group found and updated (Ug).
"""
from __future__ import annotations

import json
import os
import platform
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from math import sqrt
from pathlib import Path
from statistics import linear_regression
from typing import Any

import pyarrow as pa

from jobs.calibrate import trial
from jobs.calibrate.exact import observe
from jobs.engine import kernel
from jobs.engine.tasks import Tasks
from jobs.storage import tables
from optimizer.cost.features import building, steady
from optimizer.cost.fitting import fit
from optimizer.cost.measured import SECONDS, Measurement, UnitCosts, prior, read
from optimizer.errors import ForebayError
from optimizer.papers.statistics import Constants
from optimizer.plan.model import candidates

PATH = "FOREBAY_CALIBRATION"
NONE = "none"                # instead of a path: unit costs are the stated ones, nothing is measured or read
SIZES = (50_000, 100_000, 200_000)
MOST_PAIRS = 2e7             # values of joined rows beyond which a plan is not tried
ROW = ("SELECT 'g' || floor(random() * 20)::INT AS g, 'k' || floor(random() * 500)::INT AS j, "
       "floor(random() * 1000)::BIGINT AS a, "
       "CAST(make_timestamp(1356998400000000 + i) AS TIMESTAMPTZ) AS ts FROM range({n}) AS r(i)")
# Statements of n rows by the unit cost that is their slope, and how many units a row is.
STATEMENTS: Mapping[str, tuple[str, float]] = {
    "scan": ("SELECT max(g), max(j), sum(a) FROM read_parquet('{file}')", 3),
    "times": ("SELECT sum(((epoch_us(ts) + 60000000) // 5000000) * 5000000), sum(epoch_us(ts)) FROM r", 1),
    "keep": ("CREATE OR REPLACE TEMP TABLE kept AS SELECT g, j, a FROM r", 3),
    "group": ("SELECT g, j, sum(a) AS x, count(*) AS c FROM r GROUP BY 1, 2", 4),
    "probe": ("SELECT sum(d.x) FROM r JOIN d ON r.j = d.j", 1),
    "pairs": ("SELECT r.g, sum(r.a * d.c), sum(d.x), sum(d.c) FROM r JOIN d ON r.j = d.j GROUP BY 1", 4),
    "state_write": ("COPY (SELECT g, j, a, ts FROM r) TO '{file}.out' (FORMAT parquet, COMPRESSION snappy)", 4),
}


# The same pieces on the machine of measured.SECONDS, when it was quiet.
REFERENCE: Mapping[str, float] = {
    "scan": 2.3e-9, "times": 5.4e-9, "keep": 1.6e-8, "group": 5.8e-9, "probe": 3e-8, "pairs": 3.1e-9,
    "state_write": 3e-8, "files": 8.8e-5, "statements": 4.3e-4, "writes": 8.8e-4, "commits": 1.9e-3}
FARTHEST = 8.0               # times slower or faster: beyond it a piece was disturbed


@dataclass(frozen=True)
class Calibration:
    """Unit costs, the paper's constants in seconds, and the machine that both are of."""

    coefficients: UnitCosts
    constants: Constants
    steps: Mapping[str, float]
    machine: Mapping[str, object]

    @property
    def here(self) -> bool:
        """Whether it was made on a machine like this one."""
        return dict(self.machine) == machine()

    def document(self) -> dict[str, object]:
        return {
            "machine": dict(self.machine),
            **self.coefficients.document(), "constants": vars(self.constants),
            "steps": dict(self.steps)
        }


def path() -> Path:
    """One calibration a user and machine; FOREBAY_CALIBRATION names another file."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(os.environ.get(PATH) or os.path.join(cache, "forebay", "calibration.json"))


def machine() -> dict[str, object]:
    """What unit costs depend on; nothing that names the host."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30 if hasattr(os, "sysconf") else 0
    return {"cpu": _cpu(), "cores": os.cpu_count() or 1, "memory_gib": memory, "python": platform.python_version(),
            **{name: version(name) for name in ("duckdb", "deltalake", "pyarrow")}}


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def stored() -> Calibration | None:
    """The calibration on file, None if there is none; a damaged one is refused by name."""
    place = path()
    if not place.exists():
        return None
    try:
        document = json.loads(place.read_text(encoding="utf-8"))
        coefficients = read(document)
        return Calibration(coefficients, Constants(**document["constants"]), dict(document["steps"]),
                           dict(document["machine"]))
    except (OSError, ValueError, KeyError, TypeError, ForebayError) as error:
        raise ForebayError("bad-calibration", f"{place} is not a calibration: {error}",
                           hint="forebay calibrate makes it anew") from error


def coefficients() -> UnitCosts:
    """Those of this machine.

    Where nobody has calibrated it, or it has changed since, its small pieces of work are measured once, in about a
    second.
    """
    if os.environ.get(PATH) == NONE:
        return prior()
    calibration = stored()
    if calibration is None or not calibration.here:
        calibration = Calibration(_pieces("first use"), *paper(), machine())
        with suppress(OSError):      # a home that cannot be written to: the next process measures again
            _write_down(calibration)
    return calibration.coefficients


def _pieces(source: str) -> UnitCosts:
    return prior(scaled(unit_costs()), source, trial.SPREAD)


def calibrate(say: Callable[[str], object] = lambda _: None, tasks: Tasks | None = None) -> Calibration:
    """Measures this machine in some ten seconds and writes its unit costs to a file.

    With `tasks` of a Spark session also what only Spark does, in a minute more.
    """
    say("unit costs of the engine")
    first = _pieces("forebay calibrate")
    say("plans on generated rows")
    fitted = fit(first, tried(), forgetting=0.0)
    if tasks is not None:
        from jobs.calibrate.on_spark import calibrated

        fitted = calibrated(tasks, fitted, say)
    say("the papers' constants")
    constants, steps = paper()
    calibration = Calibration(fitted, constants, steps, machine())
    _write_down(calibration)
    return calibration


def _write_down(calibration: Calibration) -> None:
    """Put whole in its place, so that no reader sees half of it."""
    place = path()
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f"{place.name}.{os.getpid()}")
    beside.write_text(json.dumps(calibration.document(), indent=1), encoding="utf-8")
    os.replace(beside, place)


def scaled(pieces: Mapping[str, float]) -> dict[str, float]:
    """Unit costs by how this machine does each piece of work, half way to what is usual of all, since one piece is
    easily disturbed; what has no piece by what is usual. Spark jobs wait more than they work."""
    ratios = {}
    for name, reference in REFERENCE.items():
        if name in pieces:
            ratios[name] = min(max(pieces[name] / reference, 1 / FARTHEST), FARTHEST)
    usual = statistics.median(ratios.values()) if ratios else 1.0
    stated = {name: seconds for name, seconds in SECONDS.items() if name not in ("jobs", "jvm_jobs")}
    return {name: seconds * sqrt(ratios.get(name, usual) * usual) for name, seconds in stated.items()}


def unit_costs() -> dict[str, float]:
    """Seconds a unit of each piece of work in the kernel's lowering, and of a commit."""
    with tempfile.TemporaryDirectory(prefix="forebay-calibrate-") as folder:
        points: dict[str, list[float]] = {name: [] for name in STATEMENTS}
        for n in SIZES:
            _measure(os.path.join(folder, f"{n}.parquet"), n, points)
        costs = {name: linear_regression(SIZES, points[name]).slope / units for name, (_, units) in STATEMENTS.items()}
        costs["pairs"] = max(costs["pairs"] - costs["probe"] / STATEMENTS["pairs"][1], costs["pairs"] / 4)
        costs["files"] = _files(folder)
        costs["statements"] = _statement()
        costs["writes"] = _least(lambda: _write_small_file(folder))
        costs["commits"] = _commit(folder)
    return {name: seconds for name, seconds in costs.items() if seconds > 0}


def _measure(file: str, n: int, points: dict[str, list[float]]) -> None:
    con = kernel.shared()
    con.execute(f"CREATE TEMP TABLE r AS {ROW.format(n=n)}")
    con.execute("CREATE TEMP TABLE d AS SELECT j, sum(a) AS x, count(*) AS c FROM r GROUP BY j")
    con.execute(f"COPY r TO '{file}' (FORMAT parquet, COMPRESSION zstd)")
    for name, (sql, _) in STATEMENTS.items():
        points[name].append(_least(lambda: con.execute(sql.format(file=file)).fetchall()))
    con.close()


def _least(work: Callable[[], object], times: int = 3) -> float:
    """Processor seconds; the least, since other work of the machine only adds."""
    seconds = []
    for _ in range(times):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return min(seconds)


def _files(folder: str) -> float:
    con, paths = kernel.shared(), [os.path.join(folder, f"small-{k}.parquet") for k in range(16)]
    for small in paths:
        con.execute(f"COPY ({ROW.format(n=100)}) TO '{small}' (FORMAT parquet)")
    reads = [f"SELECT g, sum(a) FROM read_parquet({kernel.file_list(tuple(paths[:k]))}) GROUP BY 1" for k in (1, 8, 16)]
    seconds = linear_regression((1, 8, 16), [_least(lambda: con.execute(sql).fetchall()) for sql in reads]).slope
    con.close()
    return seconds


def _statement() -> float:
    con = kernel.shared()
    seconds = _least(lambda: [
        con.execute(f"CREATE OR REPLACE TEMP TABLE t AS SELECT {k} AS a, count(*) AS c FROM range(10) GROUP BY 1")
        for k in range(20)
    ]) / 20
    con.close()
    return seconds


def _write_small_file(folder: str) -> None:
    con = kernel.shared()
    con.execute(f"COPY (SELECT 1 AS a) TO '{folder}/one.parquet' (FORMAT parquet, COMPRESSION snappy)")
    tables.describe(folder, "one.parquet")
    con.close()


def _commit(folder: str) -> float:
    """Wall time: a commit waits for the disk."""
    table = tables.create(os.path.join(folder, "table"), pa.schema([("a", pa.int64())]))
    seconds = []
    for k in range(5):
        file = tables.write(table.path, pa.table({"a": [k]}), tables.unique("c"))
        started = time.perf_counter()
        table.commit([file])
        seconds.append(time.perf_counter() - started)
    return sorted(seconds)[len(seconds) // 2]


def tried() -> list[Measurement]:
    """Every plan of two small settings for real: what amounts of work cost together, in plans rather than alone."""
    measurements = []
    for rate, extremes in ((2_000, False), (10_000, True)):
        stream = trial.TrialStream(rate, "30 SECONDS", 30, 500, 20)
        select = "s1.g, COUNT(*) AS n, SUM(s1.a) AS x, " + ("MIN(s2.a) AS y" if extremes else "SUM(s2.a) AS y")
        measurements += measured(trial.TrialSetting("calibration", (stream, stream), select))
    return measurements


def measured(setting: trial.TrialSetting) -> list[Measurement]:
    """A setting's plans, each its first batch and a warm one."""
    with trial.generated(setting) as data:
        observed, query = observe(data, setting.full), setting.query
        sound = [candidate.plan for candidate in candidates(query) if not candidate.refused]
        amounts_of_first = {plan: building(query, plan, observed) for plan in sound}
        plans = [plan for plan in sound if amounts_of_first[plan].total.get("pairs", 0.0) < MOST_PAIRS]
        seconds = trial.run(data, plans)
        first, warm = [], []
        for plan in plans:
            seconds_of_first, seconds_of_warm = seconds[plan.name]
            first.append(Measurement(amounts_of_first[plan].in_task, seconds_of_first))
            amounts_of_warm = steady(query, plan, observed, age=trial.WARM - 1)
            warm.append(Measurement(amounts_of_warm.in_task, seconds_of_warm))
    return first + warm


def paper(n: int = 20_000) -> tuple[Constants, dict[str, float]]:
    """Paper A's constants and paper B's steps in seconds."""
    rows = [(k % 100, k) for k in range(n)]
    buckets: dict[int, deque[tuple[int, int]]] = {k: deque() for k in range(100)}
    groups: dict[int, int] = {}

    def hashed() -> None:
        for row in rows:
            bucket = buckets[row[0]]
            bucket.append(row)
            bucket.popleft()

    def grouped() -> None:
        for key, value in rows:
            groups[key] = groups.get(key, 0) + value

    queue: deque[tuple[int, int]] = deque()

    def inserted() -> None:
        for row in rows:
            queue.append(row)

    def removed() -> None:
        for _ in range(n):
            queue.popleft()

    insert, invalidate = _each(n, inserted), _each(n, removed)
    scan = _each(n, lambda: [row for row in rows if row[0] == 7])
    probe = _each(n, lambda: [row for row in rows if buckets[row[0]] is None])
    return Constants(Pn=scan, Ph=probe, Un=insert + invalidate, Uh=_each(n, hashed), Ug=_each(n, grouped)), {
        "Cinv": invalidate,
        "Cins": insert,
        "Cscan": scan
    }


def _each(n: int, work: Callable[[], Any], times: int = 3) -> float:
    return max(_least(work, times) / n, 1e-10)
