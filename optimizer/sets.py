"""SQL of one input's sets: rows and partials with the interval [_in, _out] of boundaries at which they count; nothing here joins and nothing is run.

Times are integer microseconds. `_in` and `_out` are rounded to the boundaries at which the query is published (up and down), so partials that enter
and leave together are one. `_in` = 0 says "long since": only comparisons with later boundaries remain.
"""
from __future__ import annotations

from dataclasses import dataclass

from optimizer import dialect as d
from optimizer.expr import Column, Expr
from optimizer.plan import Plan
from optimizer.scalar import fails, safe
from optimizer.shape import Measure, Shape
from optimizer.types import BIGINT, Type
from optimizer.windows import ALWAYS, Window

INTERVAL = (("_in", BIGINT), ("_out", BIGINT))


@dataclass(frozen=True)
class Lowering:
    """A plan on its way to one engine's SQL: `part` of `parts` tasks, `narrow` 64-bit sums (see dialect.wide)."""

    shape: Shape
    plan: Plan
    dialect: str = "duckdb"
    narrow: bool = True
    parts: int = 1
    part: int = 0

    def early(self, i: int) -> bool:
        return self.plan.digits[i]

    def window(self, i: int) -> Window | None:
        return self.shape.query.inputs[i].window


def column(expr: Expr) -> str:
    """How a stored column is named where raw rows are read."""
    assert isinstance(expr, Column)
    return '"' + expr.name.replace('"', '""') + '"'


def quoted(name: str, dialect: str) -> str:
    return f'"{name}"' if dialect == "duckdb" else f"`{name}`"


def known(low: Lowering) -> str:
    """The boundary that first counts a stored row."""
    return quoted("_boundary", low.dialect)


def extremes(low: Lowering, i: int) -> tuple[Measure, ...]:
    """Measures that running totals cannot hold: kept by interval beside them."""
    return tuple(m for m in low.shape.own(i) if m.kind in ("min", "max"))


def fallible(low: Lowering, i: int) -> bool:
    return any(fails(e, low.dialect, _namer(low)) is not None for e in _evaluated(low, i))


def _evaluated(low: Lowering, i: int) -> list[Expr]:
    own = [m.expr for m in low.shape.own(i) if m.expr is not None]
    return [*low.shape.selections[i], *(a.expr for a in low.shape.attributes[i]), *own]


def _namer(low: Lowering):  # type: ignore[no-untyped-def]
    return lambda e: quoted(column(e)[1:-1].replace('""', '"'), low.dialect)


def merged(measure: Measure, sql: str, low: Lowering) -> str:
    """The aggregate that merges a measure over partials."""
    if measure.kind in ("min", "max"):
        return f"{measure.kind}({sql})"
    if measure.kind == "count":
        return f"CAST(sum({sql}) AS BIGINT)"
    return f"CAST(sum({sql}) AS {d.wide(measure.type, low.dialect, low.narrow)})"


def counted(sql: str) -> str:
    return f"CAST(sum({sql}) AS BIGINT)"


def raw(low: Lowering, i: int, source: str, interval: bool = True, where: str = "TRUE") -> str:
    """Rows that pass input i's selections, as partials of count 1 (DESIGN: "not aggregating early is the same row with count 1")."""
    name = _namer(low)
    selected = [f"{safe(a.expr, low.dialect, name)} AS {a.name}" for a in low.shape.attributes[i]]
    selected += [f"{row_value(low, m)} AS {m.name}" for m in low.shape.own(i)] + ["CAST(1 AS BIGINT) AS c"]
    doubts = [f for e in _evaluated(low, i) if (f := fails(e, low.dialect, name)) is not None]
    if doubts:
        selected.append(f"CASE WHEN {' OR '.join(f'({x})' for x in doubts)} THEN CAST(1 AS BIGINT) ELSE CAST(0 AS BIGINT) END AS e")
    if interval:
        selected += [f"{x} AS {n}" for n, x in zip(("_in", "_out"), bounds(low, i))]
        selected += [f"{d.micros(known(low), low.dialect)} AS _known"] if low.window(i) else []
    return f"SELECT {', '.join(selected)} FROM {source} WHERE {' AND '.join([where, *conditions(low, i)])}"


def row_value(low: Lowering, m: Measure) -> str:
    """A measure of a single row."""
    assert m.expr is not None
    value = safe(m.expr, low.dialect, _namer(low))
    if m.kind == "count":
        return f"CASE WHEN {value} IS NULL THEN CAST(0 AS BIGINT) ELSE CAST(1 AS BIGINT) END"
    kept = f"CAST({value} AS {d.wide(m.type, low.dialect, low.narrow)})"
    if m.kind == "square":
        return f"CAST({kept} * {kept} AS {d.wide(squared(m.type), low.dialect, low.narrow)})"
    return kept if m.kind == "sum" else value


def squared(type_: Type) -> Type:
    return Type("decimal", 38, 2 * type_.scale) if type_.name == "decimal" else type_


def conditions(low: Lowering, i: int) -> list[str]:
    """Selections in a form that cannot raise (a failing row stays, marked), no NULL in a join key, and this task's share of the keys."""
    name = _namer(low)
    found = []
    for expr in low.shape.selections[i]:
        doubt = fails(expr, low.dialect, name)
        passes = f"COALESCE({safe(expr, low.dialect, name)}, FALSE)"
        found.append(f"(({doubt}) OR {passes})" if doubt else passes)
    found += [f"{safe(a.expr, low.dialect, name)} IS NOT NULL" for a in low.shape.key_attributes(i)]
    mine = share(low, i, [safe(a.expr, low.dialect, name) for a in low.shape.attributes[i]])
    return found + ([mine] if mine else [])


def share(low: Lowering, i: int, attributes: list[str]) -> str | None:
    """Which of input i's partials are this task's, by a hash of the key that all inputs share, or of all attributes of the one input that is divided.

    By hash, not by file, wherever partials are subtracted: what leaves must meet the total it once entered, or leftovers that cancel pile up.
    """
    if low.parts == 1:
        return None
    if low.plan.exchange == "partition":
        common = low.shape.common_key()
        assert common is not None
        return f"{d.part_of([attributes[low.shape.attributes[i].index(common[i])]], low.parts, low.dialect)} = {low.part}"
    if low.plan.keeping in ("recompute", "expire") or i != pivot(low):
        return None
    return f"{d.part_of(attributes, low.parts, low.dialect)} = {low.part}" if attributes else ("TRUE" if low.part == 0 else "FALSE")


def pivot(low: Lowering) -> int:
    """The input that is divided among the tasks when a common key does not divide all: a stream that does not aggregate early, if there is any."""
    streams = [i for i, x in enumerate(low.shape.query.inputs) if x.is_stream]
    return next((i for i in streams if not low.early(i)), streams[0])


def bounds(low: Lowering, i: int) -> tuple[str, str]:
    """[_in, _out] of a raw row: DESIGN's table, taken at the instant of the row and rounded to published boundaries."""
    query, window = low.shape.query, low.window(i)
    if window is None:
        return "CAST(0 AS BIGINT)", f"CAST({ALWAYS} AS BIGINT)"
    ts, came = event_time(low, i), d.micros(known(low), low.dialect)
    enters = f"greatest({came}, {d.div(ts, window.slide, low.dialect)} * {window.slide} + {window.slide})" if window.kind == "hopping" else came
    leaves = {"sliding": f"{ts} + {window.range}",
              "tumbling": f"{d.div(ts, window.range or 1, low.dialect)} * {window.range} + {window.range}",
              "hopping": f"{d.div(f'{ts} + {window.range}', window.slide or 1, low.dialect)} * {window.slide} + {window.slide - 1}",
              "landmark": f"CAST({ALWAYS} AS BIGINT)"}[window.kind]
    up = f"{d.div(f'{enters} + {query.every - 1}', query.every, low.dialect)} * {query.every}"
    down = leaves if window.kind == "landmark" else f"{d.div(leaves, query.every, low.dialect)} * {query.every}"
    return up, down


def event_time(low: Lowering, i: int) -> str:
    stamp = low.shape.query.inputs[i].event_time
    assert stamp is not None
    return d.micros(quoted(stamp, low.dialect), low.dialect)


def inside(low: Lowering, i: int, t: int) -> str:
    """Raw rows of W_i(t), said by event time so that files and row groups can be skipped."""
    window, stamp = low.window(i), low.shape.query.inputs[i].event_time
    if window is None or stamp is None:
        return "TRUE"
    arrived = f"{known(low)} <= {d.instant(t, low.dialect)}"
    if window.kind == "landmark":
        return arrived
    since = f"{quoted(stamp, low.dialect)} >= {d.instant(window.oldest(t), low.dialect)}"
    until = f" AND {quoted(stamp, low.dialect)} < {d.instant(t // window.slide * window.slide, low.dialect)}" if window.kind == "hopping" else ""
    return f"{arrived} AND {since}{until}"


def instants(low: Lowering, i: int) -> tuple[str, str]:
    """The closed interval of instants at which a raw row is in its window: what row queries compare (tick = 1 µs)."""
    window = low.window(i)
    if window is None:
        return "CAST(0 AS BIGINT)", f"CAST({ALWAYS} AS BIGINT)"
    ts = event_time(low, i)
    first = f"{d.div(ts, window.slide, low.dialect)} * {window.slide} + {window.slide}" if window.kind == "hopping" else f"{ts} + 1"
    last = {"sliding": f"{ts} + {window.range}",
            "tumbling": f"{d.div(ts, window.range or 1, low.dialect)} * {window.range} + {window.range}",
            "hopping": f"{d.div(f'{ts} + {window.range}', window.slide or 1, low.dialect)} * {window.slide} + {window.slide - 1}",
            "landmark": f"CAST({ALWAYS} AS BIGINT)"}[window.kind]
    return first, last


def grouped(low: Lowering, i: int, source: str, extra: tuple[str, ...] = (), where: str = "TRUE", having: str = "") -> str:
    """Merges partials that agree on their attributes (and `extra` columns): the early aggregation of paper A, Fig. 4."""
    keys = [a.name for a in low.shape.attributes[i]] + list(extra)
    values = [f"{counted('c')} AS c"] + [f"{merged(m, m.name, low)} AS {m.name}" for m in low.shape.own(i)]
    values += [f"{counted('e')} AS e"] if fallible(low, i) else []
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    # Without any key one group stands even over nothing; an empty set has to stay empty.
    having = " AND ".join(x for x in (having, "" if keys else "count(*) > 0") if x)
    return f"SELECT {', '.join(keys + values)} FROM {source} WHERE {where}{by}" + (f" HAVING {having}" if having else "")


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


def stored_type(m: Measure) -> Type:
    if m.kind == "count":
        return BIGINT
    if m.kind == "square":
        return d.stored(squared(m.type))
    return d.stored(m.type) if m.kind == "sum" else m.type


def working_type(m: Measure, low: Lowering) -> str:
    if m.kind == "count":
        return "BIGINT"
    if m.kind == "square":
        return d.wide(squared(m.type), low.dialect, low.narrow)
    return d.wide(m.type, low.dialect, low.narrow) if m.kind == "sum" else d.name(m.type, low.dialect)
