"""Expressions as SQL for DuckDB and Spark with one value in both, Spark's in ANSI mode and UTC, also in what raises and
what is left alone.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable

from optimizer.errors import ForebayError
from optimizer.expression.casting import sql_type
from optimizer.expression.dialect import string
from optimizer.expression.expr import Call, Expr, Literal, walk
from optimizer.expression.functions.arithmetic import nonzero
from optimizer.expression.functions.table import FUNCTIONS
from optimizer.expression.letters import macros
from optimizer.time import DAY, instant

Name = Callable[[Expr], str]
MOST = 200_000          # characters of one expression's SQL
# A session that does not set these computes something else: DuckDB's common subexpression elimination moves failing
# parts out of TRY.
DUCKDB_SETTINGS = ("SET TimeZone = 'UTC'", "SET disabled_optimizers = 'common_subexpressions'",
                   "SET error_on_division_by_zero = true", *macros())


def render(expr: Expr, dialect: str, name: Name) -> str:
    """The SQL of an expression; `name` gives that of its leaves. Raises where Spark's ANSI mode does."""
    if isinstance(expr, Literal):
        return literal(expr, dialect)
    if not isinstance(expr, Call):
        return name(expr)
    args = tuple(render(a, dialect, name) for a in expr.args)
    function = FUNCTIONS[expr.function]
    if dialect == "spark":
        return _limited(function.sql("spark", expr, args))
    guarded = _guarded(expr, args, name)
    if expr.function in ("and", "or"):
        return _limited(_short_circuit(expr, guarded))
    return _limited(function.sql("duckdb", expr, guarded))


def can_fail(expr: Expr) -> bool:
    """Whether some row can make it raise."""
    return any(isinstance(e, Call) and FUNCTIONS[e.function].fails(e) for e in walk(expr))


def fails(expr: Expr, dialect: str, name: Name) -> str | None:
    """A condition, never NULL and never failing, true on exactly the rows that make `expr` raise; None when there are
    none. DuckDB's hash is never NULL, so only an error makes the TRY around it NULL, and no statistic can fold it
    away."""
    if not can_fail(expr):
        return None
    if dialect == "duckdb":
        return _limited(f"(TRY(hash({render(expr, dialect, name)})) IS NULL)")
    return _limited(f"({' OR '.join(_failures(expr, name))})")


def safe(expr: Expr, dialect: str, name: Name) -> str:
    """As `render`, but NULL (or anything) where that raises."""
    if not can_fail(expr):
        return render(expr, dialect, name)
    if dialect == "duckdb":
        return _limited(f"TRY({render(expr, dialect, name)})")
    if not isinstance(expr, Call):
        return name(expr)
    args = tuple(safe(a, dialect, name) for a in expr.args)
    return _limited(FUNCTIONS[expr.function].never_raising(expr, args))


def literal(value: Literal, dialect: str) -> str:
    """A constant with its type spelled out: DuckDB would otherwise choose its own."""
    kind, content = value.type, value.value
    if content is None:
        return f"CAST(NULL AS {sql_type(kind, dialect)})"
    if isinstance(content, bool):
        return str(content).upper()
    if kind.name == "string":
        return string(str(content), dialect)
    if kind.name == "timestamp":
        return (f"{'TIMESTAMPTZ' if dialect == 'duckdb' else 'TIMESTAMP'} "
                f"'{instant(int(content)).isoformat(' ', 'microseconds')}'")
    if kind.name == "date":
        return f"DATE '{instant(int(content) * DAY).date().isoformat()}'"
    text = f"{content:f}" if kind.name == "decimal" else repr(content)
    return (f"CAST('{text}' AS {sql_type(kind, dialect)})" if not kind.integral else f"CAST({text} AS "
                                                                                     f"{sql_type(kind, dialect)})")


def _limited(text: str) -> str:
    if len(text) > MOST:
        raise ForebayError("too-complex", f"an expression becomes more than {MOST:,} characters of SQL",
                           hint="split it over several columns or queries")
    return text


def _order(call: Call) -> list[int]:
    """In which order Spark evaluates the arguments."""
    indexes = list(range(len(call.args)))
    return indexes[::-1] if FUNCTIONS[call.function].order == "divisor" else indexes


def _guarded(call: Call, args: tuple[str, ...], name: Name) -> tuple[str, ...]:
    """Arguments that can fail are not evaluated after a NULL, as in Spark: DuckDB evaluates all of them."""
    if FUNCTIONS[call.function].order not in ("strict", "divisor"):
        return args
    texts, order = list(args), _order(call)
    for place, i in enumerate(order):
        if place and can_fail(call.args[i]):
            nulls = [condition for j in order[:place] for condition in _nulls(call.args[j], name)]
            if nulls:
                texts[i] = f"CASE WHEN {' OR '.join(dict.fromkeys(nulls))} THEN NULL ELSE {args[i]} END"
    if FUNCTIONS[call.function].order == "divisor" and call.type.floating and not nonzero(call):
        texts[1] = _not_zero(call, texts[1], name)
    return tuple(texts)


def _not_zero(call: Call, divisor: str, name: Name) -> str:
    """DuckDB's doubles divide by zero to infinity.

    An impossible cast is Spark's error here: error() is volatile, which TRY refuses; NULL / 0 is NULL.
    """
    nulls = _nulls(call.args[0], name)
    there = f" AND NOT ({' OR '.join(nulls)})" if nulls else ""
    return (f"CASE WHEN {divisor} = 0{there} THEN CAST('DIVIDE_BY_ZERO' AS {sql_type(call.type, 'duckdb')}) ELSE "
            f"{divisor} END")


def _nulls(expr: Expr, name: Name) -> list[str]:
    """Conditions under which an expression that does not raise is NULL: those of its leaves where it is NULL only
    through them.
    """
    if isinstance(expr, Literal):
        return [] if expr.value is not None else ["TRUE"]
    if not isinstance(expr, Call):
        return [f"{name(expr)} IS NULL"]
    function = FUNCTIONS[expr.function]
    if function.order in ("strict", "divisor") and not function.null_condition(expr, ("",) * len(expr.args)):
        return list(dict.fromkeys(c for a in expr.args for c in _nulls(a, name)))
    return [f"({render(expr, 'duckdb', name)}) IS NULL"]


def _short_circuit(call: Call, args: tuple[str, ...]) -> str:
    """AND and OR left to right: a term that can fail is evaluated only where those before it leave the answer open."""
    risky = [i for i, a in enumerate(call.args) if i and can_fail(a)]
    function = FUNCTIONS[call.function]
    if not risky:
        return function.sql("duckdb", call, args)
    first = function.sql("duckdb", call, args[:risky[0]])
    rest = _short_circuit(Call(call.function, call.args[risky[0]:], call.type), args[risky[0]:])
    decided = f"NOT {first} THEN FALSE" if call.function == "and" else f"{first} THEN TRUE"
    return _limited(f"CASE WHEN {decided} ELSE ({first} {call.function.upper()} {rest}) END")


def _failures(expr: Expr, name: Name) -> list[str]:
    """Spark's conditions, one of which holds where `expr` raises."""
    if not isinstance(expr, Call) or not can_fail(expr):
        return []
    conditions, reached = [], _reached(expr, name)
    for i in range(len(expr.args)):
        conditions += [_all((*reached[i], f)) for f in _failures(expr.args[i], name)]
    if FUNCTIONS[expr.function].fails(expr):
        conditions.append(_failure_of_itself(expr, name))
    return [_limited(f) for f in conditions]


def _failure_of_itself(call: Call, name: Name) -> str:
    """The condition that all arguments are there, but no result, and no reason for that."""
    args = tuple(safe(a, "spark", name) for a in call.args)
    there = [f"{text} IS NOT NULL" for a, text in zip(call.args, args) if not isinstance(a, Literal)]
    reason = FUNCTIONS[call.function].null_condition(call, args)
    return _all((*there, f"{safe(call, 'spark', name)} IS NULL", *([f"NOT ({reason})"] if reason else [])))


def _reached(call: Call, name: Name) -> list[tuple[str, ...]]:
    """For each argument: the conditions under which Spark evaluates it."""
    texts = [safe(a, "spark", name) for a in call.args]
    passes = {
        "and": "coalesce({}, TRUE)",
        "or": "NOT coalesce({}, FALSE)",
        "coalesce": "({}) IS NULL"
    }.get(call.function, "({}) IS NOT NULL")
    order = FUNCTIONS[call.function].order
    if order == "all":
        return [() for _ in texts]
    if call.function == "case":
        return _branches_reached(texts)
    reached: list[tuple[str, ...]] = [() for _ in texts]
    before: tuple[str, ...] = ()
    for i in _order(call):
        reached[i] = before
        before = (*before, passes.format(texts[i]))
    return reached


def _branches_reached(texts: list[str]) -> list[tuple[str, ...]]:
    reached: list[tuple[str, ...]] = []
    before: tuple[str, ...] = ()
    for i in range(0, len(texts) - 1, 2):
        reached += [before, (*before, f"coalesce({texts[i]}, FALSE)")]
        before = (*before, f"NOT coalesce({texts[i]}, FALSE)")
    return [*reached, before]


def _all(conditions: Iterable[str]) -> str:
    return "(" + " AND ".join(conditions) + ")"
