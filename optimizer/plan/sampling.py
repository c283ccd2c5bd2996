"""The statements that sample the rows that came with a batch, or those that a window holds: one pass that counts them
and keeps those with the smallest hashes; SQL and values, nothing is run.

Of the distinct combinations of an input's attributes, and of the key values of each equality class, the ones with the
smallest hashes are kept with their rows: a uniform sample of distinct values (KMV: Beyer et al., SIGMOD 2007), the same
keys on every input of a class, mergeable by union.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from optimizer.expression import dialect as d
from optimizer.expression.expr import inputs
from optimizer.expression.scalar import safe
from optimizer.plan import table
from optimizer.plan.lowering import Lowering, stored_name
from optimizer.plan.membership import Range, first_boundary, inside, within
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
    groups: int = SPACE

    def key(self, c: int) -> int:
        return dict(self.keys).get(c, SPACE)

    def watch(self, c: int) -> tuple[int, ...]:
        return dict(self.watched).get(c, ())


@dataclass(frozen=True)
class Sampling:
    """`counts` gives rows, passing and late ones; `combinations` (hash, rows); `keys`, by class, (hash, rows, distinct
    combinations). `define` comes first.

    `frequent`, by class, gives the same of keys wherever their hashes are: only needed where the smallest are not all.
    `groups` (hash, rows) are those of the grouping attributes alone.
    """

    source: Source
    counts: str
    define: tuple[Definition, ...] = ()
    combinations: str | None = None
    keys: tuple[tuple[int, str], ...] = ()
    frequent: tuple[tuple[int, str], ...] = ()
    groups: str | None = None
    limits: Limits = field(default_factory=Limits)
    dialect: str = "duckdb"


def sampling(ctx: Lowering, i: int, batch: int, after: int, upto: int, limits: Limits = Limits()) -> Sampling:
    """Of stream i's rows with after < `_boundary` ≤ upto, or of all rows of a relation.

    `batch` is the pipeline's, in microseconds.
    """
    return _sampling(ctx, i, batch, (Range(after, upto),) if ctx.shape.query.inputs[i].is_stream else (), limits)


def window_sampling(ctx: Lowering, i: int, batch: int, t: int, limits: Limits = Limits()) -> Sampling:
    """Of all rows that stream i's window holds at boundary t, or of a relation; also of its groups."""
    window = ctx.shape.query.inputs[i].window
    statements = _sampling(ctx, i, batch, (inside(window, t),) if window is not None else (), limits)
    grouping = [expr for expr in ctx.shape.query.groups if inputs(expr) == {i}]
    if not grouping:
        return statements
    where = within(ctx, i, statements.source.ranges) if window is not None else "TRUE"
    values = [safe(expr, ctx.dialect, stored_name(ctx)) for expr in grouping]
    passing = " AND ".join([where, *conditions(ctx, i)])
    hashes = f"SELECT {d.hashed(values, ctx.dialect)} AS g FROM {table.files(i)} WHERE {passing}"
    return replace(statements, groups=f"SELECT g, count(*) AS n FROM ({hashes}) AS q WHERE g < {limits.groups} "
                                      f"GROUP BY g ORDER BY g LIMIT {COMBINATIONS}")


def _sampling(ctx: Lowering, i: int, batch: int, ranges: tuple[Range, ...], limits: Limits) -> Sampling:
    declared = ctx.shape.query.inputs[i]
    files = table.files(i)
    source = Source(files, "stream" if declared.is_stream else "relation", declared.source, ranges,
                    read_columns(ctx, i))
    where, passes = within(ctx, i, ranges) if ranges else "TRUE", " AND ".join(conditions(ctx, i)) or "TRUE"
    counts = f"SELECT count(*), count_if({passes}), {_late(ctx, i, batch)} FROM {files} WHERE {where}"
    if not ctx.shape.attributes[i]:
        return Sampling(source, counts, limits=limits, dialect=ctx.dialect)
    key_by_class: dict[int, Attribute] = {}
    for c, members in enumerate(ctx.shape.keys):
        for j, attribute in members:
            if j == i:      # of several the first: only rows in which they agree are joined
                key_by_class.setdefault(c, attribute)
    define = [Definition(table.sampled(i), _grouped(ctx, i, f"{where} AND {passes}", key_by_class, limits), True)]
    smallest_keys, frequent_keys = [], []
    for c in key_by_class:
        of_key = f"SELECT k{c} AS k, CAST(sum(c) AS BIGINT) AS n, count(*) AS m FROM {table.sampled(i)} GROUP BY k{c}"
        keyed = table.keyed(i, c)
        define.append(Definition(keyed, of_key, True))
        smallest_keys.append((c, f"SELECT k, n, m FROM {keyed} WHERE k < {limits.key(c)} ORDER BY k LIMIT {KEYS}"))
        frequent_keys.append((c, _frequent(keyed, c, limits)))
    combinations = (f"SELECT h, CAST(sum(c) AS BIGINT) AS n FROM {table.sampled(i)} WHERE h < {limits.combinations} "
                    f"GROUP BY h ORDER BY h LIMIT {COMBINATIONS}")
    return Sampling(source, counts, tuple(define), combinations, tuple(smallest_keys), tuple(frequent_keys),
                    limits=limits, dialect=ctx.dialect)


def _late(ctx: Lowering, i: int, batch: int) -> str:
    """A row that came in time has its `_boundary` at most one batch after its event time."""
    declared = ctx.shape.query.inputs[i]
    if declared.event_time is None:
        return "0"
    stamp = d.micros(f"{table.files(i)}.{d.identifier(declared.event_time, ctx.dialect)}", ctx.dialect)
    return f"count_if({stamp} + {batch} < {d.micros(first_boundary(ctx), ctx.dialect)})"


def _grouped(ctx: Lowering, i: int, where: str, key_by_class: dict[int, Attribute], limits: Limits) -> str:
    """Rows by the hashes of their attributes and keys.

    Keys of a class have one type, so equal ones have one hash on every input.
    """
    def hash_of(*attributes: Attribute) -> str:
        return d.hashed([safe(a.expr, ctx.dialect, stored_name(ctx)) for a in attributes], ctx.dialect)

    hashes = [f"{hash_of(*ctx.shape.attributes[i])} AS h"]
    hashes += [f"{hash_of(attribute)} AS k{c}" for c, attribute in key_by_class.items()]
    names = ", ".join(["h", *(f"k{c}" for c in key_by_class)])
    return (f"SELECT {names}, count(*) AS c FROM (SELECT {', '.join(hashes)} FROM {table.files(i)} WHERE {where}) AS q "
            f"WHERE {_below_limits(key_by_class, limits)} GROUP BY {names}")


def _below_limits(key_by_class: dict[int, Attribute], limits: Limits) -> str:
    """The condition that one of a row's hashes can be in a sample."""
    if limits.combinations == SPACE or any(limits.key(c) == SPACE for c in key_by_class):
        return "TRUE"
    terms = [f"h < {limits.combinations}"]
    terms += [f"k{c} < {limits.key(c)}{_or_watched(f'k{c}', limits.watch(c))}" for c in key_by_class]
    return " OR ".join(terms)


def _or_watched(name: str, hashes: tuple[int, ...]) -> str:
    return f" OR {name} IN ({', '.join(map(str, hashes))})" if hashes else ""


def _frequent(keyed: str, c: int, limits: Limits) -> str:
    """The watched keys, and the most frequent of those of which all rows were grouped."""
    watched = limits.watch(c)
    or_watched = _or_watched("k", watched)
    first = f"CASE WHEN FALSE{or_watched} THEN 0 ELSE 1 END"
    return (f"SELECT k, n, m FROM {keyed} WHERE k < {limits.key(c)}{or_watched} ORDER BY {first}, n DESC, "
            f"k LIMIT {HEAVY + len(watched)}")


def input_sample(statements: Sampling, counts: Sequence[int], combinations: Iterable[Sequence[int]],
                 keys: Mapping[int, Iterable[Sequence[int]]], groups: Iterable[Sequence[int]] = ()) -> InputSample:
    """The sample, from the rows that the statements of a sampling returned."""
    rows, passing, late = (int(n or 0) for n in counts)
    if statements.combinations is None:
        whole = Smallest(SPACE, {0: (passing, 1)} if passing else {})
        return InputSample(rows, passing, late, combinations=whole)
    limits = statements.limits
    rows_of_groups = {int(g): (int(n), 1) for g, n in groups}
    of_groups = smallest(rows_of_groups, limits.groups, COMBINATIONS) if statements.groups is not None else None
    rows_by_hash = {int(h): (int(n), 1) for h, n in combinations}
    keys_by_class: dict[int, Smallest] = {}
    for c, returned in keys.items():
        counts_by_hash = {int(k): (int(n), int(m)) for k, n, m in returned}
        keys_by_class[c] = smallest(counts_by_hash, limits.key(c), KEYS)
    return InputSample(rows, passing, late, keys=keys_by_class, groups=of_groups,
                       combinations=smallest(rows_by_hash, limits.combinations, COMBINATIONS))
