"""Expectations that nobody has to write: of a stream by its schema and its past, of a query's answers by its text;
nothing is judged here.

Critical are only those that every sound batch fulfils; what depends on habit, as volume and freshness, is a warning.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from optimizer.expression.expr import AggregateRef, Column, Expr, GroupRef, columns
from optimizer.expression.types import Type
from optimizer.query.model import Query, references
from optimizer.query.shape import measure_of, shape

HISTORY = 20             # boundaries whose volume is looked back at
ENOUGH = 8               # of them before a volume is called unusual
TIMES = 5                # a boundary with this many times more rows than the median, or fewer, is unusual
FEW = 100                # rows; below this median chance alone makes such differences
SILENT = 10              # batches without a row, in event time, after which a stream is not fresh
TYPES, NOT_NULL, DOMAIN = "columns_of_declared_types", "event_time_not_null", "event_time_in_domain"
FRESH, VOLUME = "fresh", "volume_near_history"
UNIQUE, CONSERVED, COUNTS, MONOTONE = "groups_unique", "sums_conserved", "counts_not_negative", "boundary_monotone"


@dataclass(frozen=True)
class Derived:
    """`held` says where: at `ingest`, on the `input` of a batch, or on its `answers`."""

    name: str
    severity: str
    held: str
    text: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measured:
    """An output that is one aggregate, by which measure of the partials it can be told again.

    Its `function` is count or sum.
    """

    output: str
    aggregate: int
    function: str


def of_stream(columns_: Mapping[str, Type], event_time: str) -> tuple[Derived, ...]:
    declared = ", ".join(f"{name} {type_}" for name, type_ in columns_.items())
    return (
        Derived(TYPES, "row", "ingest", f"every value is of its declared type: {declared}",
                tuple(columns_)), Derived(NOT_NULL, "row", "ingest", f"{event_time} is not NULL", (event_time,)),
        Derived(DOMAIN, "row", "ingest", f"{event_time} is from 1970 on and at most `ahead` after the clock",
                (event_time,)),
        Derived(FRESH, "warning", "input",
                f"the newest {event_time} is at most {SILENT} batches (`idle`, `lateness`) before the boundary",
                (event_time,)),
        Derived(
            VOLUME, "warning", "input",
            f"rows are within {TIMES} times the median of the last {HISTORY} boundaries, where that is {FEW} or more"))


def of_query(query: Query) -> tuple[Derived, ...]:
    derived = [
        Derived(MONOTONE, "critical", "answers",
                "every row is of a boundary that is due, and none was published before", ("boundary",))
    ]
    keys = group_outputs(query)
    if keys is not None:
        derived.append(
            Derived(UNIQUE, "critical", "answers", f"no two rows have the same {', '.join(('boundary', *keys))}",
                    ("boundary", *keys)))
    if names := counts(query):
        derived.append(Derived(COUNTS, "critical", "answers", f"{', '.join(names)}: never below 0", names))
    if summed := conserved(query):
        names = tuple(m.output for m in summed)
        derived.append(
            Derived(CONSERVED, "critical", "answers",
                    f"{', '.join(names)}: over all groups what the join's partials have together", names))
    return tuple(derived)


def group_outputs(query: Query) -> tuple[str, ...] | None:
    """The outputs that tell groups apart, one a grouping expression.

    None where some group is not shown, or rows are published as they are.
    """
    if query.returns_rows or query.above is not None:
        return None
    shown = {e.index: name for name, e in reversed(query.outputs) if isinstance(e, GroupRef)}
    return tuple(shown[k] for k in range(len(query.groups))) if len(shown) == len(query.groups) else None


def counts(query: Query) -> tuple[str, ...]:
    if query.above is not None:
        return ()
    return tuple(name for name, e in query.outputs
                 if isinstance(e, AggregateRef) and query.aggregates[e.index].function in ("count", "count_distinct"))


def conserved(query: Query) -> tuple[Measured, ...]:
    """Outputs whose sum over the groups can be compared.

    None where HAVING removes groups, or an aggregate is computed whole.
    """
    if query.having is not None or query.holistic or query.returns_rows or query.above is not None:
        return ()
    measured = []
    for name, expr in query.outputs:
        if not isinstance(expr, AggregateRef):
            continue
        aggregate = query.aggregates[expr.index]
        argument = aggregate.argument
        exact_sum = aggregate.function == "sum" and argument is not None and argument.type.exact
        if aggregate.function == "count" or exact_sum:
            measured.append(Measured(name, expr.index, aggregate.function))
    return tuple(measured)


def conserved_columns(query: Query) -> tuple[str, ...]:
    """The columns of the join's partials that hold what is conserved, in the order of `conserved`.

    None where an aggregate has no partial states.
    """
    if shape(query).whole:
        return ()
    columns_ = []
    for measured in conserved(query):
        aggregate = query.aggregates[measured.aggregate]
        is_count = aggregate.argument is None
        columns_.append("c" if is_count else measure_of(shape(query), aggregate, measured.function).name)
    return tuple(columns_)


def revealing(query: Query, sensitive: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Outputs that can show a value of a sensitive column, by source; a count shows none."""
    def is_sensitive(column: Column) -> bool:
        return column.name in sensitive.get(query.inputs[column.input].source, frozenset())

    of_inputs = (attribute.expr for attributes in shape(query).attributes for attribute in attributes)
    if query.blocks is not None or query.above is not None:      # not followed further
        shown = [name for name, _ in query.columns]
        return frozenset(shown if any(is_sensitive(c) for expr in of_inputs for c in columns(expr)) else ())
    return frozenset(name for name, expr in query.outputs if any(map(is_sensitive, _columns_behind(query, expr))))


def _columns_behind(query: Query, output: Expr) -> tuple[Column, ...]:
    """The columns whose values an output can show."""
    read = list(columns(output))
    for leaf in references(output):
        if isinstance(leaf, GroupRef):
            read += columns(query.groups[leaf.index])
        elif isinstance(leaf, AggregateRef):
            aggregate = query.aggregates[leaf.index]
            if aggregate.argument is not None and not aggregate.function.startswith("count"):
                read += columns(aggregate.argument)
    return tuple(read)


def fresh_until(lateness: int, idle: int | None, batch: int) -> int:
    """Microseconds that a stream's newest row may lie before a boundary."""
    return max(SILENT * batch, lateness, idle or 0)


def usual(counts_: Sequence[int]) -> tuple[int, int] | None:
    """The least and most rows that are usual after these boundaries, None while too little is known."""
    if len(counts_) < ENOUGH:
        return None
    middle = sorted(counts_)[len(counts_) // 2]
    return (middle // TIMES, middle * TIMES) if middle >= FEW else None
