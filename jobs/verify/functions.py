"""Functions of one row as DuckDB SQL that means what Spark's do: as sqlglot transpiles them, or by a form of our own
where that means something else.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from jobs.verify.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    Typed,
    as_text,
    bounded,
    cast,
    in_calendar,
    widest,
)
from optimizer.errors import ForebayError, failed

Recur = Callable[[exp.Expr], Typed]

RESULTS: dict[type[exp.Expr], Kind] = {
    exp.Replace: VARCHAR,
    exp.Length: INTEGER,
    exp.Year: INTEGER,
    exp.Quarter: INTEGER,
    exp.Month: INTEGER,
    exp.Day: INTEGER,
    exp.DayOfMonth: INTEGER,
    exp.DayOfYear: INTEGER,
    exp.Hour: INTEGER,
    exp.Minute: INTEGER,
    exp.Second: INTEGER,
    exp.StartsWith: BOOLEAN,
    exp.EndsWith: BOOLEAN,
    exp.Contains: BOOLEAN,
    exp.TsOrDsToDate: DATE,
    exp.UnixMicros: BIGINT,
    exp.Sqrt: DOUBLE,
    exp.Exp: DOUBLE
}
UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
FORMS: dict[type[exp.Expr], tuple[str, Kind]] = {
    exp.Sign: ("CASE WHEN isnan(CAST({0} AS DOUBLE)) OR {0} = 0 THEN {0} ELSE sign({0}) END", DOUBLE),
    exp.Pow: ("CASE WHEN abs(CAST({0} AS DOUBLE)) = 1 AND NOT isfinite(CAST({1} AS DOUBLE)) THEN CAST('nan' AS DOUBLE) "
              "ELSE pow(CAST({0} AS DOUBLE), CAST({1} AS DOUBLE)) END", DOUBLE),
    # the engine's macros: letters that become several, a sigma at a word's end
    exp.Upper: ("spark_upper({0})", VARCHAR),
    exp.Lower: ("spark_lower({0})", VARCHAR),
    exp.Ln: ("CASE WHEN {0} > 0 THEN ln({0}) END", DOUBLE),
    exp.Log: ("CASE WHEN {1} > 0 THEN log10({1}) END", DOUBLE),
    exp.Like: ("{0} LIKE {1} ESCAPE '\\'", BOOLEAN),
    exp.Left: ("left({0}, greatest({1}, 0))", VARCHAR),
    exp.Right: ("right({0}, greatest({1}, 0))", VARCHAR),
    exp.DayOfWeek: ("dayofweek({0}) + 1", INTEGER),
    exp.UnixSeconds: ("(epoch_us({0}) - (epoch_us({0}) % 1000000 + 1000000) % 1000000) // 1000000", BIGINT),
    exp.UnixMillis: ("(epoch_us({0}) - (epoch_us({0}) % 1000 + 1000) % 1000) // 1000", BIGINT),
    exp.DateDiff: ("CAST({0} AS DATE) - CAST({1} AS DATE)", INTEGER)}


def function(node: exp.Expr, recur: Recur) -> Typed:
    """Any function of columns; one that has no rule here is refused, never guessed."""
    if isinstance(node,
                  exp.Anonymous) and node.name.upper() not in SPECIAL:      # before its words are taken for columns
        raise without_rule(node)
    values = [recur(n) for n in node.iter_expressions() if not isinstance(n, (exp.Var, exp.Identifier, exp.DataType))]
    if any(v.kind == NULL for v in values):
        raise failed("cannot-verify",
                     f"{node.sql('spark')[:80]}: NULL as an argument cannot be recomputed independently",
                     "write CAST(NULL AS …)")
    special = SPECIAL.get(node.name.upper() if isinstance(node, exp.Anonymous) else type(node).__name__.upper())
    if special and values:
        return special(node, values)
    sql, kind = FORMS.get(type(node), ("", RESULTS.get(type(node))))
    if kind is None:
        raise without_rule(node)
    sql = sql.format(*(v.sql for v in values)) if sql else _by_sqlglot(node, values)
    return Typed(f"CAST({'NOT ' if node.args.get('negate') and type(node) in FORMS else ''}({sql}) AS {kind})", kind,
                 True)


def without_rule(node: exp.Expr) -> ForebayError:
    return failed("cannot-verify", f"{node.sql('spark')[:80]} cannot be recomputed independently",
                  "use --engine jvm, which runs Spark's own function")


def _by_sqlglot(node: exp.Expr, values: list[Typed]) -> str:
    """The function as sqlglot writes it for DuckDB, around arguments translated here."""
    copy, left = node.copy(), list(values)
    for child in list(copy.iter_expressions()):
        if not isinstance(child, (exp.Var, exp.Identifier, exp.DataType)):
            child.replace(exp.Var(this=left.pop(0).sql))
    return copy.sql("duckdb")


def _same_type(node: exp.Expr, values: list[Typed]) -> Typed:
    return Typed(f"CAST({_by_sqlglot(node, values)} AS {values[0].kind})", values[0].kind, True)


def _whole(node: exp.Expr, values: list[Typed]) -> Typed:
    """FLOOR and CEIL: a double becomes BIGINT as in Java, where NaN is 0 and what is too large is the largest."""
    value, word = values[0], type(node).__name__.lower()
    if value.kind.name == "DECIMAL":
        kind = Kind("DECIMAL", value.kind.precision - value.kind.scale + (value.kind.scale > 0), 0)
        return Typed(f"CAST({word}({value.sql}) AS {kind})", kind, True)
    if value.kind.name not in ("FLOAT", "DOUBLE"):
        return cast(value, BIGINT)
    largest, x = 2**63, f"{word}({value.sql})"
    limits = f"WHEN {x} >= {largest}.0 THEN {largest - 1} WHEN {x} <= -{largest}.0 THEN -{largest - 1} - 1"
    return Typed(f"(CASE WHEN isnan({value.sql}) THEN 0 {limits} ELSE CAST({x} AS BIGINT) END)", BIGINT, True)


def _round(node: exp.Expr, values: list[Typed]) -> Typed:
    kind, places = values[0].kind, int(node.args["decimals"].this.rstrip("LSYlsy")) if node.args.get("decimals") else 0
    if kind.name == "DECIMAL":
        scale = min(kind.scale, max(0, places))
        kind = bounded(max(1, kind.precision - kind.scale + 1 + scale), scale)
    if kind.name not in ("FLOAT", "DOUBLE"):
        return Typed(f"CAST(round({values[0].sql}, {places}) AS {kind})", kind, True)
    # as it is written, half up
    whole = f"CAST(CAST(CAST({values[0].sql} AS VARCHAR) AS DECIMAL(38,{places})) AS VARCHAR)"
    return Typed(f"(CASE WHEN abs({values[0].sql}) < {2**52} THEN CAST({whole} AS {kind}) ELSE {values[0].sql} END)",
                 kind, True)


def _pmod(_: exp.Expr, values: list[Typed]) -> Typed:
    """((a % b) + b) % b for a negative remainder; x % 0 raises in DuckDB as in Spark."""
    kind = widest(values)
    if kind.name == "DECIMAL":
        raise failed("cannot-verify", "PMOD of decimals cannot be recomputed independently",
                     "use --engine jvm, which runs Spark's own function")
    a, b = (cast(v, kind).sql for v in values)
    return Typed(f"CAST(CASE WHEN {a} % {b} < 0 THEN ({a} % {b} + {b}) % {b} ELSE {a} % {b} END AS {kind})", kind, True)


def _substring(_: exp.Expr, values: list[Typed]) -> Typed:
    """Position 0 is the first character, as 1 is."""
    text, start, *length = (v.sql for v in values)
    part = f"substring({', '.join([text, f'CASE WHEN {start} = 0 THEN 1 ELSE {start} END', *length])})"
    return Typed(f"(CASE WHEN {length[0]} <= 0 THEN left({text}, 0) ELSE {part} END)" if length else part, VARCHAR,
                 True)


def _concatenation(_: exp.Expr, values: list[Typed]) -> Typed:
    return Typed(f"({' || '.join(v.sql if v.kind == VARCHAR else as_text(v) for v in values)})", VARCHAR,
                 any(v.fallible for v in values))


def _trim(node: exp.Expr, values: list[Typed]) -> Typed:
    """Of blanks only; without them named DuckDB takes all of Unicode's."""
    if len(values) > 1:
        raise without_rule(node)
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    return replace(values[0], sql=f"{name}({values[0].sql}, ' ')", kind=VARCHAR)


def _truncated(node: exp.Expr, values: list[Typed]) -> Typed:
    """DATE_TRUNC of the units that both engines call alike."""
    if node.args["unit"].name.lower() not in UNITS:
        raise without_rule(node)
    return Typed(f"CAST({_by_sqlglot(node, values)} AS TIMESTAMPTZ)", TIMESTAMPTZ, True)


def _days_later(_: exp.Expr, values: list[Typed]) -> Typed:
    day, days = cast(values[0], DATE), values[1]
    return Typed(in_calendar(f"CAST({day.sql} + CAST({days.sql} AS INTEGER) AS DATE)", DATE), DATE, True)


SPECIAL: dict[str, Callable[[exp.Expr, list[Typed]], Typed]] = {
    "ABS": _same_type, "FLOOR": _whole, "CEIL": _whole, "ROUND": _round, "PMOD": _pmod, "SUBSTRING": _substring,
    "TRIM": _trim, "CONCAT": _concatenation, "DPIPE": _concatenation, "TSORDSADD": _days_later,
    "TIMESTAMPTRUNC": _truncated,
    "POSITIVE": lambda _, values: replace(values[0], digits=0)}      # +x, which is no constant
