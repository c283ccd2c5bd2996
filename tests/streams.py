"""Random cases: a schema, rows with the boundary that first counts them, and a query over them, as plain data for any
engine.

Nothing is run here.
"""
from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import Decimal
from pprint import pformat
from typing import Any, TypeVar

from hypothesis import strategies as st

SECOND = 10**6
T = TypeVar("T")
Row = tuple[Any, ...]
Columns = dict[str, str]
UNITS = (("HOURS", 3600 * SECOND), ("MINUTES", 60 * SECOND), ("SECONDS", SECOND), ("MILLISECONDS", 1000),
         ("MICROSECONDS", 1))
SIZES = {1: 40, 2: 30, 3: 16, 4: 10, 5: 7}      # rows a stream by inputs of the query: joins multiply
VALUES: dict[str, list[Any]] = {
    "int": [1, 2, None, 0, -3, 7, 100],
    "bigint": [1, 3, None, 0, -2, 40_000_000_000, 5],
    "string": ["a", "b", None, "", "B", "é", "o'k", "a "],
    "double": [1.0, 0.5, None, 0.0, -2.25, -0.0, 1024.125],
    "decimal(10,2)": [Decimal("1.00"),
                      Decimal("0.25"), None,
                      Decimal("0.00"),
                      Decimal("-7.77"),
                      Decimal("99999.99")],
    "boolean": [True, False, None],
    "timestamp": [0, 1_700_000_000_000_000, None, 1_700_000_000_000_001]
}
EXTREMES: dict[str, list[Any]] = {
    "int": [2 ** 31 - 1, -2 ** 31],
    "bigint": [2 ** 63 - 1, -2 ** 63, 2 ** 62],
    "decimal(10,2)": [Decimal("99999999.99")]
}
SPECIAL: list[Any] = [float("nan"), float("inf"), float("-inf")]
KEYS: dict[str, list[Any]] = {
    "int": [1, 1, 2, 2, 3, None],
    "bigint": [1, 1, 1, 2, 3, None, 4],
    "string": ["x", "x", "y", "y", "", None]
}
NUMBERS = ("int", "bigint", "double", "decimal(10,2)")


@dataclass(frozen=True, repr=False)
class Case:
    """Rows of a stream are its columns in order, then `_boundary`.

    Times are microseconds since 1970. A relation has versions: from a boundary on, its rows.
    """

    batch_us: int
    streams: dict[str, tuple[str, Columns, list[Row]]]                      # event time, columns, rows
    relations: dict[str, tuple[Columns, list[tuple[int, list[Row]]]]]       # columns, versions
    sql: str
    boundaries: list[int]
    # it has values or expressions that can fail the query
    may_fail: bool

    def __repr__(self) -> str:
        """An expression that makes this case again, given `nan = float("nan"); inf = float("inf")`."""
        return "Case(\n" + "".join(f"  {f.name}={pformat(getattr(self, f.name), width=150)},\n"
                                   for f in fields(self)) + ")"


@dataclass(frozen=True)
class Item:
    """One entry of FROM while a query is drawn."""

    alias: str
    columns: Columns

    def of(self, *types: str) -> list[str]:
        return [f"{self.alias}.{name}" for name, kind in self.columns.items() if kind in types]


def duration(microseconds: int) -> str:
    name, unit = next((n, u) for n, u in UNITS if microseconds % u == 0)
    count = microseconds // unit
    return f"{count} {name[:-1] if count == 1 else name}"


def chance(draw: st.DrawFn, percent: int) -> bool:
    """Shrinks towards no."""
    return draw(st.integers(0, 99)) >= 100 - percent


def pick(draw: st.DrawFn, values: list[T]) -> T:
    return draw(st.sampled_from(values))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any case that INTERFACE accepts; about one in ten has values or expressions that can fail."""
    batch = pick(draw, [10, 1, 60, 7]) * SECOND
    start = draw(st.integers(100, 124)) * batch
    count = draw(st.integers(1, 8))
    # the ends are drawn most often, and many inputs take longest
    inputs = pick(draw, [2, 1, 5, 1, 3, 4, 3, 2, 1, 2])
    family = pick(draw, ["int", "string"])
    extreme, special = chance(draw, 5), chance(draw, 8)
    streams, relations = {}, {}
    for i in range(draw(st.integers(1, min(3, inputs)))):
        columns = _columns(draw, family, "ts")
        streams[f"s{i}"] = ("ts", columns, _rows(draw, columns, batch, start, count, SIZES[inputs], extreme, special))
    for i in range(draw(st.integers(0, min(2, inputs - 1)))):
        columns = _columns(draw, family, "")
        relations[f"r{i}"] = (columns, _versions(draw, columns, batch, start, count, extreme, special))
    sql, fails = _query(draw, streams, relations, inputs, batch, calm=not extreme and not special)
    return Case(batch, streams, relations, sql, _boundaries(draw, streams, batch, start, count), fails or extreme)


def _columns(draw: st.DrawFn, family: str, event_time: str) -> Columns:
    key = pick(draw, ["int", "bigint"]) if family == "int" else "string"
    others = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4))
    columns = {"k": key, **{f"c{i}": kind for i, kind in enumerate(others)}}
    return {event_time: "timestamp", **columns} if event_time else columns


def _value(columns: Columns, name: str, number: int, extreme: bool, special: bool) -> tuple[Any, int]:
    """A value from the low digits of `number`, and its other digits."""
    kind = columns[name]
    pool = KEYS[kind] if name == "k" else VALUES[kind] + (EXTREMES.get(kind, []) if extreme else []) + (
        SPECIAL if special and kind == "double" else [])
    return pool[number % len(pool)], number // len(pool)


def _rows(draw: st.DrawFn, columns: Columns, batch: int, start: int, count: int, size: int, extreme: bool,
          special: bool) -> list[Row]:
    """One number a row, so that a case is cheap to draw and small when it shrinks: its digits are the event time,
    lateness and values.
    """
    copies, least = pick(draw, [1, 1, 4]), pick(draw, [0, size // 2, size])
    numbers = draw(st.lists(st.integers(0, 2**48), min_size=least, max_size=size))
    return [
        _row(n, columns, batch, start, count, extreme, special)
        for n in numbers
        for _ in range(copies if n % 11 == 7 else 1)
    ]


def _row(number: int, columns: Columns, batch: int, start: int, count: int, extreme: bool, special: bool) -> Row:
    # exactly on a boundary, one microsecond beside it, between
    near = [0, batch // 2, 1, batch - 1, batch // 3, 2 * SECOND % batch, number // 7 % batch]
    ts, number = start + number % count * batch, number // count
    ts, number = ts + near[number % len(near)], number // len(near)
    late, number = max(0, number % 12 - 8), number // 12
    values = []
    for name in columns:
        value, number = (ts, number) if name == "ts" else _value(columns, name, number, extreme, special)
        values.append(value)
    return (*values, (ts // batch + 1 + late) * batch)


def _versions(draw: st.DrawFn, columns: Columns, batch: int, start: int, count: int, extreme: bool,
              special: bool) -> list[tuple[int, list[Row]]]:
    versions = [(0, _relation(draw, columns, extreme, special))]
    if chance(draw, 20):
        versions.append((start + draw(st.integers(1, count)) * batch, _relation(draw, columns, extreme, special)))
    return versions


def _relation(draw: st.DrawFn, columns: Columns, extreme: bool, special: bool) -> list[Row]:
    rows = []
    for number in draw(st.lists(st.integers(0, 2**40), max_size=6)):
        values = []
        for name in columns:
            value, number = _value(columns, name, number, extreme, special)
            values.append(value)
        rows.append(tuple(values))
    return rows


def _boundaries(draw: st.DrawFn, streams: dict[str, tuple[str, Columns, list[Row]]], batch: int, start: int,
                count: int) -> list[int]:
    """From the first after the earliest row to the last that first counts a row, and some empty ones after it."""
    known = [row[-1] for _, _, rows in streams.values() for row in rows]
    times = [row[list(columns).index("ts")] for _, columns, rows in streams.values() for row in rows]
    first = min(times, default=start) // batch * batch + batch
    last = max(known, default=first) + draw(st.integers(0, 3)) * batch
    return list(range(first, last + 1, batch))


def _query(draw: st.DrawFn, streams: dict[str, Any], relations: dict[str, Any], inputs: int, batch: int,
           calm: bool) -> tuple[str, bool]:
    """The text, and whether it has an expression that may fail."""
    names = ["s0"] + [pick(draw, [*streams, *relations]) for _ in range(inputs - 1)]
    names = names[::-1] if chance(draw, 30) else names
    items = [Item("abcde"[i], streams[n][1] if n in streams else relations[n][0]) for i, n in enumerate(names)]
    entries = [f"{n} AS {it.alias}{_window(draw, batch) if n in streams else ''}" for n, it in zip(names, items)]
    joins = [_equality(draw, items, i) for i in range(1, inputs)]
    source, conditions = _from(draw, entries, joins)
    conditions += [_condition(draw, items) for _ in range(pick(draw, [0, 0, 1, 2]))]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    every = f" EVERY {duration(draw(st.integers(1, 4)) * batch)}" if chance(draw, 20) else ""
    if chance(draw, 25):
        return f"SELECT {_row_outputs(draw, items)} FROM {source}{where}{every}", False
    outputs, groups, fails = _aggregated(draw, items)
    having = f" HAVING {_having(draw, items)}" if calm and not fails and chance(draw, 25) else ""
    shown = sum(" AS g" in output for output in outputs)
    group = f" GROUP BY {', '.join(groups)}" if groups else ""
    group = " GROUP BY ALL" if groups and shown == len(groups) and chance(draw, 10) else group
    return f"SELECT {', '.join(outputs)} FROM {source}{where}{group}{having}{every}", fails


def _window(draw: st.DrawFn, batch: int) -> str:
    kind = pick(draw, ["sliding", "sliding", "tumbling", "hopping", "landmark"])
    if kind == "landmark":
        return " [WINDOW UNTIL NOW]"
    length = draw(st.integers(1, 5)) * batch
    if kind == "tumbling":
        return f" [WINDOW {duration(length)} TUMBLING]"
    length = pick(draw,
                  [length, length, length + batch // 2,
                   max(SECOND, batch // 5 // SECOND * SECOND), length + SECOND])
    slide = f" SLIDE {duration(draw(st.integers(1, 3)) * batch)}" if kind == "hopping" else ""
    return f" [WINDOW {duration(length)}{slide}]"


def _equality(draw: st.DrawFn, items: list[Item], i: int) -> str:
    """A chain, a star or any tree; sometimes a second pair of equal types."""
    other = items[pick(draw, [0, i - 1, draw(st.integers(0, i - 1))])]
    equality = f"{other.alias}.k = {items[i].alias}.k"
    pairs = [
        f"{other.alias}.{x} = {items[i].alias}.{y}" for x, s in other.columns.items()
        for y, t in items[i].columns.items() if s == t and x[0] == y[0] == "c"
    ]
    return f"{equality} AND {pick(draw, pairs)}" if pairs and chance(draw, 15) else equality


def _from(draw: st.DrawFn, entries: list[str], joins: list[str]) -> tuple[str, list[str]]:
    if chance(draw, 30):
        return entries[0] + "".join(f" JOIN {e} ON {j}" for e, j in zip(entries[1:], joins)), []
    return ", ".join(entries), joins


def _condition(draw: st.DrawFn, items: list[Item]) -> str:
    item, other = pick(draw, items), pick(draw, items)
    numbers, others = item.of(*NUMBERS), other.of(*NUMBERS)
    choices = [f"{item.alias}.k IS NOT NULL", f"NOT {item.alias}.k IS NULL"]
    choices += [
        c for n in numbers for c in (f"{n} > 0", f"{n} <= 5", f"{n} IN (1, 2, 100)", f"{n} BETWEEN 0 AND 7",
                                     f"{n} <> 1", f"({n} < 2 OR {n} IS NULL)")
    ]
    choices += [f"{n} <> 'a'" for n in item.of("string")] + [n for n in item.of("boolean")]
    if item is not other:
        choices += [f"{x} {op} {y}" for x in numbers for y in others for op in ("<", ">=")]
    return pick(draw, choices)


def _row_outputs(draw: st.DrawFn, items: list[Item]) -> str:
    if chance(draw, 30):
        return "*"
    columns = [f"{i.alias}.{c}" for i in items for c in i.columns]
    chosen = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=5))
    extra = [f"CASE WHEN {n} > 1 THEN 'big' ELSE 'small' END AS e" for i in items for n in i.of(*NUMBERS)]
    return ", ".join([f"{c} AS o{n}" for n, c in enumerate(chosen)]
                     + (draw(st.lists(st.sampled_from(extra), max_size=1)) if extra else []))


def _aggregated(draw: st.DrawFn, items: list[Item]) -> tuple[list[str], list[str], bool]:
    """Outputs, grouping expressions, and whether one may fail."""
    columns = [f"{i.alias}.{c}" for i in items for c in i.columns if c != "ts"]
    groups = draw(st.lists(st.sampled_from(columns), max_size=pick(draw, [1, 1, 2, 3]), unique=True))
    numbers = [n for i in items for n in i.of(*NUMBERS)]
    fails = bool(numbers) and chance(draw, 5)
    chosen = [_aggregate(draw, items) for _ in range(draw(st.integers(1, 4)))]
    chosen += [f"SUM({pick(draw, numbers)} / {pick(draw, numbers)})"] if fails else []
    shown = groups if not chance(draw, 10) else groups[:1]
    return [f"{g} AS g{i}" for i, g in enumerate(shown)] + [f"{a} AS o{i}" for i, a in enumerate(chosen)], groups, fails


def _aggregate(draw: st.DrawFn, items: list[Item]) -> str:
    item, other = pick(draw, items), pick(draw, items)
    columns = [f"{item.alias}.{c}" for c in item.columns]
    numbers, others = item.of(*NUMBERS), other.of(*NUMBERS)
    choices = [
        "COUNT(*)", f"COUNT({pick(draw, columns)})", f"COUNT({item.alias}.*)",
        f"{pick(draw, ['MIN', 'MAX'])}({pick(draw, columns)})", f"COUNT(DISTINCT {pick(draw, columns)})",
        f"{pick(draw, ['COUNT_IF', 'BOOL_AND', 'ANY'])}({_condition(draw, items)})"
    ]
    choices += [f"APPROX_COUNT_DISTINCT({s})" for s in item.of("string")]
    if numbers:
        x = pick(draw, numbers)
        statistic = pick(draw, ["STDDEV", "STDDEV_SAMP", "STDDEV_POP", "VARIANCE", "VAR_SAMP", "VAR_POP"])
        choices += [
            f"SUM({x})", f"AVG({x})", f"{statistic}({x})", f"SUM({x})", f"AVG({x})", f"MEDIAN({x})", f"SUM({x} + 1)",
            f"SUM(CASE WHEN {x} > 1 THEN {x} ELSE 0 END)", f"MAX({x}) - MIN({x})", f"SUM({x}) / COUNT({x})"
        ]
    if numbers and others:
        choices += [
            f"{pick(draw, ['REGR_COUNT', 'REGR_AVGX', 'COVAR_POP'])}({pick(draw, numbers)}, {pick(draw, others)})",
            f"APPROX_PERCENTILE({pick(draw, numbers)}, 0.3)",
            f"SUM({pick(draw, numbers)} * {pick(draw, others)})", f"MAX({pick(draw, numbers)} - {pick(draw, others)})"
        ]
    chosen = pick(draw, choices)
    plain = chosen.endswith(")") and ") " not in chosen
    return f"{chosen} FILTER (WHERE {_condition(draw, items)})" if plain and chance(draw, 10) else chosen


def _having(draw: st.DrawFn, items: list[Item]) -> str:
    numbers = [n for i in items for n in i.of(*NUMBERS)]
    choices = ["COUNT(*) > 1", "COUNT(*) BETWEEN 1 AND 5"
               ] + [h for n in numbers for h in (f"SUM({n}) > 2", f"MAX({n}) IS NOT NULL", f"MIN({n}) < 1")]
    return pick(draw, choices)
