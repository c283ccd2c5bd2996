"""What is asked of the rows that came with a batch: one pass that counts them and keeps those with the smallest hashes;
SQL and values, nothing is run.

Of the distinct combinations of an input's attributes, and of the key values of each equality class, the ones with the
smallest hashes are kept with their rows: a uniform sample of distinct values (KMV: Beyer et al., SIGMOD 2007), the same
keys on every input of a class, mergeable by union.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from optimizer.expression import dialect as d
from optimizer.expression.scalar import safe
from optimizer.plan.lowering import Lowering, stored_name
from optimizer.plan.membership import Range, known, within
from optimizer.plan.operators.scan import read_columns
from optimizer.plan.operators.sets import conditions
from optimizer.plan.program import Definition, Source
from optimizer.query.shape import Attribute
from optimizer.statistics.samples import COMBINATIONS, HEAVY, KEYS, SPACE, InputSample, Smallest, smallest


@dataclass(frozen=True)
class Limits:
    """Rows whose hashes are not below these are counted, but not grouped: a sample needs none of them.

    `watched` keys are kept whatever their hash.
    """

    combinations: int = SPACE
    keys: tuple[tuple[int, int], ...] = ()                     # class, limit
    watched: tuple[tuple[int, tuple[int, ...]], ...] = ()      # class, hashes

    def key(self, c: int) -> int:
        return dict(self.keys).get(c, SPACE)

    def watch(self, c: int) -> tuple[int, ...]:
        return dict(self.watched).get(c, ())


@dataclass(frozen=True)
class Sampling:
    """`counts` gives rows, passing and late ones; `combinations` (hash, rows); `keys`, by class, (hash, rows, distinct
    combinations). `define` comes first.

    `frequent`, by class, gives the same of keys wherever their hashes are: only needed where the smallest are not all.
    """

    source: Source
    counts: str
    define: tuple[Definition, ...] = ()
    combinations: str | None = None
    keys: tuple[tuple[int, str], ...] = ()
    frequent: tuple[tuple[int, str], ...] = ()
    limits: Limits = field(default_factory=Limits)
    dialect: str = "duckdb"


def sampling(low: Lowering, i: int, batch: int, after: int, upto: int, limits: Limits = Limits()) -> Sampling:
    """Of stream i's rows with after < `_boundary` ≤ upto, or of all rows of a relation.

    `batch` is the pipeline's, in microseconds.
    """
    declared = low.shape.query.inputs[i]
    ranges = (Range(after, upto),) if declared.is_stream else ()
    source = Source(f"s{i}", "stream" if declared.is_stream else "relation", declared.source, ranges,
                    read_columns(low, i))
    where, passes = within(low, i, ranges) if ranges else "TRUE", " AND ".join(conditions(low, i)) or "TRUE"
    counts = f"SELECT count(*), count_if({passes}), {_late(low, i, batch)} FROM s{i} WHERE {where}"
    if not low.shape.attributes[i]:
        return Sampling(source, counts, limits=limits, dialect=low.dialect)
    classes = _classes(low, i)
    define = (Definition(f"sampled{i}", _grouped(low, i, f"{where} AND {passes}", classes, limits), True),
              *(Definition(f"keyed{i}_{c}", _keyed(i, c), True) for c in classes))
    combinations = (f"SELECT h, CAST(sum(c) AS BIGINT) AS n FROM sampled{i} WHERE h < {limits.combinations} GROUP BY h "
                    f"ORDER BY h LIMIT {COMBINATIONS}")
    keys, frequent = (tuple((c, make(i, c, limits)) for c in classes) for make in (_smallest, _frequent))
    return Sampling(source, counts, define, combinations, keys, frequent, limits, low.dialect)


def _classes(low: Lowering, i: int) -> dict[int, Attribute]:
    """The input's key in each class that it is a member of.

    Of several the first: only rows in which they agree are joined.
    """
    return {
        c: next(a for j, a in members if j == i) for c, members in enumerate(low.shape.keys) if any(j == i
                                                                                                    for j, _ in members)
    }


def _late(low: Lowering, i: int, batch: int) -> str:
    """A row that came in time has its `_boundary` at most one batch after its event time."""
    declared = low.shape.query.inputs[i]
    if declared.event_time is None:
        return "0"
    stamp, came = (d.micros(sql, low.dialect)
                   for sql in (f"s{i}.{d.identifier(declared.event_time, low.dialect)}", known(low)))
    return f"count_if({stamp} + {batch} < {came})"


def _grouped(low: Lowering, i: int, where: str, classes: dict[int, Attribute], limits: Limits) -> str:
    """Rows by the hashes of their attributes and keys.

    Keys of a class have one type, so equal ones have one hash on every input.
    """
    def of(*attributes: Attribute) -> str:
        return d.hashed([safe(a.expr, low.dialect, stored_name(low)) for a in attributes], low.dialect)

    hashes = [f"{of(*low.shape.attributes[i])} AS h", *(f"{of(a)} AS k{c}" for c, a in classes.items())]
    names = ", ".join(["h", *(f"k{c}" for c in classes)])
    return (f"SELECT {names}, count(*) AS c FROM (SELECT {', '.join(hashes)} FROM s{i} WHERE {where}) AS q WHERE "
            f"{_wanted(classes, limits)} GROUP BY {names}")


def _wanted(classes: dict[int, Attribute], limits: Limits) -> str:
    if limits.combinations == SPACE or any(limits.key(c) == SPACE for c in classes):
        return "TRUE"
    return " OR ".join([
        f"h < {limits.combinations}", *(f"k{c} < {limits.key(c)}{_watched(f'k{c}', limits.watch(c))}" for c in classes)
    ])


def _watched(name: str, hashes: tuple[int, ...]) -> str:
    return f" OR {name} IN ({', '.join(map(str, hashes))})" if hashes else ""


def _keyed(i: int, c: int) -> str:
    return f"SELECT k{c} AS k, CAST(sum(c) AS BIGINT) AS n, count(*) AS m FROM sampled{i} GROUP BY k{c}"


def _smallest(i: int, c: int, limits: Limits) -> str:
    return f"SELECT k, n, m FROM keyed{i}_{c} WHERE k < {limits.key(c)} ORDER BY k LIMIT {KEYS}"


def _frequent(i: int, c: int, limits: Limits) -> str:
    """The watched keys, and the most frequent of those of which all rows were grouped."""
    watched = limits.watch(c)
    first = f"CASE WHEN FALSE{_watched('k', watched)} THEN 0 ELSE 1 END"
    return (
        f"SELECT k, n, m FROM keyed{i}_{c} WHERE k < {limits.key(c)}{_watched('k', watched)} ORDER BY {first}, n DESC, "
        f"k LIMIT {HEAVY + len(watched)}"
    )


def taken(asked: Sampling, counts: Sequence[int], combinations: Iterable[Sequence[int]],
          keys: Mapping[int, Iterable[Sequence[int]]]) -> InputSample:
    """What the statements of a sampling gave."""
    rows, passing, late = (int(n or 0) for n in counts)
    if asked.combinations is None:
        whole = Smallest(SPACE, {0: (passing, 1)} if passing else {})
        return InputSample(rows, passing, late, combinations=whole)
    found = smallest({int(h): (int(n), 1) for h, n in combinations}, asked.limits.combinations, COMBINATIONS)
    by_class = {
        c: smallest({
            int(k): (int(n), int(m)) for k, n, m in got
        }, asked.limits.key(c), KEYS) for c, got in keys.items()
    }
    return InputSample(rows, passing, late, combinations=found, keys=by_class)
