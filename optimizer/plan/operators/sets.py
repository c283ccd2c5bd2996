"""SQL of one input's sets: raw rows as partials of count 1, partials merged by attributes, and a set's columns in
state.

No joins, and nothing is run.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from optimizer.plan.membership import bounds, first_boundary
from optimizer.plan.wording import as_written, list_as_written, state_in_words
from optimizer.query.shape import Measure
from optimizer.query.windows import ALWAYS


def raw(ctx: Lowering, i: int, source: str, interval: bool = True, where: str = "TRUE",
        also: tuple[str, ...] = ()) -> str:
    """Rows that pass input i's selections, as partials of count 1 (DESIGN: "not aggregating early is the same row with
    count 1").

    `interval` adds when they count, `also` more columns.
    """
    name = stored_name(ctx)
    selected = [*also, *(f"{safe(a.expr, ctx.dialect, name)} AS {a.name}" for a in ctx.shape.attributes[i])]
    selected += [f"{row_value(ctx, m)} AS {m.name}" for m in ctx.shape.measures_of(i)] + ["CAST(1 AS BIGINT) AS c"]
    failures = [fails(expr, ctx.dialect, name) for expr in evaluated(ctx, i)]
    doubts = [f"({condition})" for condition in failures if condition is not None]
    if doubts:
        selected.append(f"CASE WHEN {' OR '.join(doubts)} THEN CAST(1 AS BIGINT) ELSE CAST(0 AS BIGINT) END AS e")
    if interval:
        first, last = bounds(ctx, i)
        selected += [f"{first} AS _in", f"{last} AS _out"]
        selected += [f"{d.micros(first_boundary(ctx), ctx.dialect)} AS _known"] if ctx.window(i) else []
    return f"SELECT {', '.join(selected)} FROM {source} WHERE {' AND '.join([where, *conditions(ctx, i)])}"


def row_value(ctx: Lowering, m: Measure) -> str:
    """A measure of a single row."""
    assert m.expr is not None
    value = safe(m.expr, ctx.dialect, stored_name(ctx))
    if m.kind == "count":
        return f"CASE WHEN {value} IS NULL THEN CAST(0 AS BIGINT) ELSE CAST(1 AS BIGINT) END"
    if m.kind not in ("sum", "square"):
        return value
    wide_value = f"CAST({value} AS {d.wide(m.type, ctx.dialect, ctx.narrow)})"
    if m.kind == "sum":
        return wide_value
    return f"CAST({wide_value} * {wide_value} AS {d.wide(squared(m.type), ctx.dialect, ctx.narrow)})"


def conditions(ctx: Lowering, i: int) -> list[str]:
    """Selections in a form that cannot raise (a failing row stays, marked), no NULL in a join key, and this task's
    share of the keys.
    """
    name = stored_name(ctx)
    terms = []
    for expr in ctx.shape.selections[i]:
        doubt = fails(expr, ctx.dialect, name)
        passes = f"COALESCE({safe(expr, ctx.dialect, name)}, FALSE)"
        terms.append(f"(({doubt}) OR {passes})" if doubt else passes)
    for key in ctx.shape.key_attributes(i):
        if not ctx.never_null(i, key.expr):
            terms.append(f"{safe(key.expr, ctx.dialect, name)} IS NOT NULL")
    of_this_task = share(ctx, i, [safe(a.expr, ctx.dialect, name) for a in ctx.shape.attributes[i]])
    return terms + ([of_this_task] if of_this_task else [])


def grouped(ctx: Lowering, i: int, source: str, extra: tuple[str, ...] = (), where: str = "TRUE",
            having: str = "") -> str:
    """Merges partials that agree on their attributes (and `extra` columns): paper A's early aggregation, Fig. 4."""
    keys = [a.name for a in ctx.shape.attributes[i]] + list(extra)
    values = [f"{counted('c')} AS c"] + [f"{merged(m, m.name, ctx)} AS {m.name}" for m in ctx.shape.measures_of(i)]
    values += [f"{counted('e')} AS e"] if fallible(ctx, i) else []
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    # Without any key one group stands even over nothing; an empty set has to stay empty.
    terms = [term for term in (having, "" if keys else "count(*) > 0") if term]
    only = f" HAVING {' AND '.join(terms)}" if terms else ""
    return f"SELECT {', '.join(keys + values)} FROM {source} WHERE {where}{by}{only}"


def summed_up(keys: Sequence[str], columns: Mapping[str, tuple[str, str]], events: str, where: str) -> str:
    """What columns come to, each by its aggregate in its type, from every `_at` of the events to the next one: `_in` to
    `_out`.

    `events`: rows (keys, columns, _at) that add to what was before; `where` says of which sums there is something.
    """
    aggregates = [f"{function}({name}) AS {name}" for name, (function, _) in columns.items()]
    moment = ", ".join([*keys, "_at"])
    at_once = f"SELECT {', '.join([moment, *aggregates])} FROM ({events}) AS q GROUP BY {moment}"
    by = f"PARTITION BY {', '.join(keys)} " if keys else ""
    so_far = [f"CAST({function}({name}) OVER so_far AS {kind}) AS {name}" for name, (function, kind) in columns.items()]
    so_far += ["_at AS _in", f"lead(_at, 1, CAST({ALWAYS} AS BIGINT)) OVER so_far - 1 AS _out"]
    running = (f"SELECT {', '.join([*keys, *so_far])} FROM ({at_once}) AS changed "
               f"WINDOW so_far AS ({by}ORDER BY _at ROWS UNBOUNDED PRECEDING)")
    return f"SELECT * FROM ({running}) AS running WHERE {where}"


def rows_where(ctx: Lowering, i: int, source: str, where: str, merge: bool = True, extra: tuple[str, ...] = ()) -> str:
    """What counts of input i's rows or partials, as an item of FROM.

    Partials are merged, unless a join may as well read them as they are.
    """
    if ctx.early(i) and merge:
        return f"({grouped(ctx, i, source, extra, where)})"
    return f"(SELECT * FROM {source} WHERE {where})"


def own_keys(ctx: Lowering, i: int) -> str:
    """The end of a WHERE clause that leaves this task's partials."""
    condition = share(ctx, i, [attribute.name for attribute in ctx.shape.attributes[i]])
    return f" AND {condition}" if condition else ""


def set_words(ctx: Lowering, i: int, state: Sequence[str] = ()) -> str:
    """A line of `explain`: `AS v = γ by v.page: COUNT(*), max(v.ms) [keeps panes0]`."""
    query = ctx.shape.query
    keys = list_as_written(query, [attribute.expr for attribute in ctx.shape.attributes[i]]) or "nothing"
    measures = [f"{m.kind}({as_written(query, m.expr)})" for m in ctx.shape.measures_of(i) if m.expr is not None]
    return f"AS {query.inputs[i].alias} = γ by {keys}: {', '.join(['COUNT(*)', *measures])}{state_in_words(state)}"


def stored_columns(ctx: Lowering, i: int, extremes_too: bool = True) -> tuple[tuple[str, Type], ...]:
    """The schema of a set in state: attributes, count, measures, failures."""
    columns = [(a.name, a.expr.type) for a in ctx.shape.attributes[i]] + [("c", BIGINT)]
    measures = [m for m in ctx.shape.measures_of(i) if extremes_too or m not in extremes(ctx, i)]
    columns += [(m.name, stored_type(m)) for m in measures]
    return tuple(columns + ([("e", BIGINT)] if fallible(ctx, i) else []))


def names(ctx: Lowering, i: int, extremes_too: bool = True) -> list[str]:
    return [n for n, _ in stored_columns(ctx, i, extremes_too)]


def working(ctx: Lowering, i: int, extremes_too: bool = True) -> list[str]:
    """A stored set's columns, cast to the types that they are computed in."""
    kinds = {m.name: working_type(m, ctx) for m in ctx.shape.measures_of(i)}
    return [f"CAST({n} AS {kinds[n]}) AS {n}" if n in kinds else n for n in names(ctx, i, extremes_too)]
