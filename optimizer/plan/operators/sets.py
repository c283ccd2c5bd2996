"""SQL of one input's sets: raw rows as partials of count 1, partials merged by attributes, and a set's columns in
state.

No joins, and nothing is run.
"""
from __future__ import annotations

from collections.abc import Sequence

from optimizer.expression import dialect as d
from optimizer.expression.scalar import fails, safe
from optimizer.expression.types import BIGINT, Type
from optimizer.plan.division import share
from optimizer.plan.lowering import (
    Lowering,
    counted,
    evaluated,
    extremes,
    fallible,
    merged,
    squared,
    stored_name,
    stored_type,
    working_type,
)
from optimizer.plan.membership import bounds, known
from optimizer.plan.wording import as_written, list_as_written, state_in_words
from optimizer.query.shape import Measure


def raw(low: Lowering, i: int, source: str, interval: bool = True, where: str = "TRUE", also: tuple[str,
                                                                                                    ...] = ()) -> str:
    """Rows that pass input i's selections, as partials of count 1 (DESIGN: "not aggregating early is the same row with
    count 1").

    `interval` adds when they count, `also` more columns."""
    name = stored_name(low)
    selected = [*also, *(f"{safe(a.expr, low.dialect, name)} AS {a.name}" for a in low.shape.attributes[i])]
    selected += [f"{row_value(low, m)} AS {m.name}" for m in low.shape.own(i)] + ["CAST(1 AS BIGINT) AS c"]
    doubts = [f for e in evaluated(low, i) if (f := fails(e, low.dialect, name)) is not None]
    if doubts:
        selected.append(
            f"CASE WHEN {' OR '.join(f'({x})' for x in doubts)} THEN CAST(1 AS BIGINT) ELSE CAST(0 AS BIGINT) END AS e")
    if interval:
        selected += [f"{x} AS {n}" for n, x in zip(("_in", "_out"), bounds(low, i))]
        selected += [f"{d.micros(known(low), low.dialect)} AS _known"] if low.window(i) else []
    return f"SELECT {', '.join(selected)} FROM {source} WHERE {' AND '.join([where, *conditions(low, i)])}"


def row_value(low: Lowering, m: Measure) -> str:
    """A measure of a single row."""
    assert m.expr is not None
    value = safe(m.expr, low.dialect, stored_name(low))
    if m.kind == "count":
        return f"CASE WHEN {value} IS NULL THEN CAST(0 AS BIGINT) ELSE CAST(1 AS BIGINT) END"
    kept = f"CAST({value} AS {d.wide(m.type, low.dialect, low.narrow)})"
    if m.kind == "square":
        return f"CAST({kept} * {kept} AS {d.wide(squared(m.type), low.dialect, low.narrow)})"
    return kept if m.kind == "sum" else value


def conditions(low: Lowering, i: int) -> list[str]:
    """Selections in a form that cannot raise (a failing row stays, marked), no NULL in a join key, and this task's
    share of the keys.
    """
    name = stored_name(low)
    found = []
    for expr in low.shape.selections[i]:
        doubt = fails(expr, low.dialect, name)
        passes = f"COALESCE({safe(expr, low.dialect, name)}, FALSE)"
        found.append(f"(({doubt}) OR {passes})" if doubt else passes)
    found += [
        f"{safe(a.expr, low.dialect, name)} IS NOT NULL" for a in low.shape.key_attributes(i)
        if not low.never_null(i, a.expr)
    ]
    mine = share(low, i, [safe(a.expr, low.dialect, name) for a in low.shape.attributes[i]])
    return found + ([mine] if mine else [])


def grouped(low: Lowering, i: int, source: str, extra: tuple[str, ...] = (), where: str = "TRUE",
            having: str = "") -> str:
    """Merges partials that agree on their attributes (and `extra` columns): the early aggregation of paper A, Fig.

    4.
    """
    keys = [a.name for a in low.shape.attributes[i]] + list(extra)
    values = [f"{counted('c')} AS c"] + [f"{merged(m, m.name, low)} AS {m.name}" for m in low.shape.own(i)]
    values += [f"{counted('e')} AS e"] if fallible(low, i) else []
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    # Without any key one group stands even over nothing; an empty set has to stay empty.
    having = " AND ".join(x for x in (having, "" if keys else "count(*) > 0") if x)
    return f"SELECT {', '.join(keys + values)} FROM {source} WHERE {where}{by}" + (f" HAVING {having}"
                                                                                   if having else "")


def rows_where(low: Lowering, i: int, source: str, where: str, merge: bool = True, extra: tuple[str, ...] = ()) -> str:
    """What counts of input i's rows or partials, as an item of FROM.

    Partials are merged, unless a join may as well read them as they are.
    """
    if low.early(i) and merge:
        return f"({grouped(low, i, source, extra, where)})"
    return f"(SELECT * FROM {source} WHERE {where})"


def own_keys(low: Lowering, i: int) -> str:
    """The end of a WHERE clause that leaves this task's partials."""
    condition = share(low, i, [attribute.name for attribute in low.shape.attributes[i]])
    return f" AND {condition}" if condition else ""


def set_words(low: Lowering, i: int, state: Sequence[str] = ()) -> str:
    """A line of `explain`: `AS v = γ by v.page: COUNT(*), max(v.ms) [keeps panes0]`."""
    query = low.shape.query
    keys = list_as_written(query, [attribute.expr for attribute in low.shape.attributes[i]]) or "nothing"
    measures = [f"{m.kind}({as_written(query, m.expr)})" for m in low.shape.own(i) if m.expr is not None]
    return f"AS {query.inputs[i].alias} = γ by {keys}: {', '.join(['COUNT(*)', *measures])}{state_in_words(state)}"


def stored_columns(low: Lowering, i: int, extremes_too: bool = True) -> tuple[tuple[str, Type], ...]:
    """The schema of a set in state: attributes, count, measures, failures."""
    kept = [(a.name, a.expr.type) for a in low.shape.attributes[i]] + [("c", BIGINT)]
    measures = [m for m in low.shape.own(i) if extremes_too or m not in extremes(low, i)]
    return tuple(kept + [(m.name, stored_type(m)) for m in measures] + ([("e", BIGINT)] if fallible(low, i) else []))


def names(low: Lowering, i: int, extremes_too: bool = True) -> list[str]:
    return [n for n, _ in stored_columns(low, i, extremes_too)]


def working(low: Lowering, i: int, extremes_too: bool = True) -> list[str]:
    """A stored set's columns, cast to the types that they are computed in."""
    kinds = {m.name: working_type(m, low) for m in low.shape.own(i)}
    return [f"CAST({n} AS {kinds[n]}) AS {n}" if n in kinds else n for n in names(low, i, extremes_too)]
