"""The parser's expressions as ours: names resolved, types given, aggregates collected.

Every node type that is not listed here is refused.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

from optimizer.errors import ForebayError, suggestion
from optimizer.expression.coercion import number
from optimizer.expression.expr import Column, Expr, Literal, columns
from optimizer.expression.functions.calendar import plus_months
from optimizer.expression.functions.conversion import cast
from optimizer.expression.functions.table import NAMES, OPERATORS, build
from optimizer.expression.functions.times import plus_interval
from optimizer.expression.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    Type,
    decimal,
)
from optimizer.query.model import WINDOW_NAME, Aggregate, Input
from optimizer.query.simplify import conjunctive_terms
from optimizer.sql.aggregates import AGGREGATES, ORDERED, aggregate
from optimizer.sql.text import Source, located
from optimizer.sql.tree import Plus, described, extras, offset
from optimizer.sql.windows import length
from optimizer.time import UNITS

DEEPEST = 120
BINARY: dict[type, str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "DIV",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.DPipe: "||",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^"
}
PATTERNS: dict[type, str] = {exp.Like: "LIKE", exp.ILike: "ILIKE", exp.RegexpLike: "RLIKE"}
UNIT_FIRST = ("DATE_ADD", "DATEADD", "TIMESTAMPADD", "DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF")      # of three arguments
CASTS = {"TINYINT": TINYINT, "SMALLINT": SMALLINT, "INT": INT, "BIGINT": BIGINT, "FLOAT": FLOAT, "DOUBLE": DOUBLE,
         "DECIMAL": decimal(10, 0), "STRING": STRING, "BOOLEAN": BOOLEAN, "DATE": DATE, "TIMESTAMP": TIMESTAMP}
CHAINS: dict[type, str] = {exp.And: "AND", exp.Or: "OR"}
TYPES = {
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INT": "int",
    "BIGINT": "bigint",
    "FLOAT": "float",
    "DOUBLE": "double",
    "TEXT": "string",
    "VARCHAR": "string",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "DECIMAL": "decimal"
}
VOLATILE = {
    "now", "current_timestamp", "current_date", "localtimestamp", "curdate", "current_time", "rand", "randn", "random",
    "uuid", "unix_timestamp", "shuffle", "current_user", "session_user", "user", "current_catalog", "current_database",
    "current_schema", "current_timezone", "version", "monotonically_increasing_id", "spark_partition_id",
    "input_file_name", "randstr", "uniform"
}


class Nested(Protocol):
    """Reads what stands in an expression and is more than one: a SELECT, a window function."""

    def subquery(self, node: exp.Expr, scope: Scope) -> Expr:
        """(SELECT …), EXISTS (SELECT …) or x IN (SELECT …)."""

    def over(self, node: exp.Expr, scope: Scope) -> Expr:
        """function(…) OVER (…)."""


@dataclass
class Scope:
    """What names mean at one place of the query.

    `aggregates` collects them, None where they are not allowed (`place` says where that is). `aliases` are SELECT's
    names, for HAVING; an expression of `groups` comes before them. `column_offsets` collects where columns stand.

    Of a SELECT among others: `numbers` are those of its inputs, where they do not count from 0; a name that is not
    known here may be one of the SELECT `around` it; `nested` reads what is nested.
    """

    source: Source
    inputs: tuple[Input, ...]
    merged: frozenset[tuple[int, str]] = frozenset()
    place: str = "WHERE"
    aggregates: dict[Aggregate, int] | None = None
    aliases: dict[str, Expr] = field(default_factory=dict)
    column_offsets: dict[Expr, int | None] = field(default_factory=dict)
    depth: int = 0
    groups: tuple[Expr, ...] = ()
    numbers: tuple[int, ...] = ()
    around: Scope | None = None
    nested: Nested | None = None

    def at(self, place: str, aggregates: dict[Aggregate, int] | None = None, aliases: dict[str, Expr] | None = None,
           groups: tuple[Expr, ...] = ()) -> Scope:
        """The same names at another place."""
        return replace(self, place=place, aggregates=aggregates, aliases=aliases or {}, column_offsets={},
                       groups=groups)

    def number(self, place: int) -> int:
        """By which number columns name the input at a place of `inputs`."""
        return self.numbers[place] if self.numbers else place

    def alias(self, number: int) -> str:
        """What the text calls the input that columns name so; of the SELECT around too."""
        for place, declared in enumerate(self.inputs):
            if self.number(place) == number:
                return declared.alias
        return self.around.alias(number) if self.around else str(number)

    def error(self, code: str, message: str, node: exp.Expr, hint: str | None = None) -> ForebayError:
        return self.source.error(code, message, offset(node), hint)


def convert(node: exp.Expr, scope: Scope) -> Expr:
    """One expression; a refusal carries the place of the innermost node that has one."""
    scope.depth += 1
    try:
        if scope.depth > DEEPEST:
            raise ForebayError("query-too-deep", f"an expression is nested more than {DEEPEST} deep",
                               hint="use fewer nested expressions")
        return _grouping(node, scope) or _reader(node)(node, scope)
    except ForebayError as error:
        raise (located(scope.source.original, error, offset(node)) if error.line is None else error) from None
    finally:
        scope.depth -= 1


def conjuncts(node: exp.Expr, scope: Scope) -> list[Expr]:
    """The terms of a condition that must all hold; TRUE is none."""
    whole = convert(node, scope)
    if isinstance(whole, Literal) and whole.value is None:
        whole = Literal(None, BOOLEAN)
    if whole.type != BOOLEAN:
        raise scope.error("type-mismatch", f"{scope.place} takes a condition, not {whole.type}", node)
    return [term for term in conjunctive_terms(whole) if not (isinstance(term, Literal) and term.value is True)]


def _grouping(node: exp.Expr, scope: Scope) -> Expr | None:
    """The grouping expression that a part of HAVING is, where a name in it is both a column's and SELECT's."""
    if not scope.groups:
        return None
    columns_of_inputs = {name.lower() for declared in scope.inputs for name, _ in declared.columns}
    twice = columns_of_inputs.intersection(scope.aliases)
    if not any(column.name.lower() in twice for column in node.find_all(exp.Column)):
        return None
    if any(call.name.upper() in AGGREGATES for call in node.find_all(exp.Anonymous)):
        return None
    try:
        expr = convert(node, scope.at(scope.place))
    except ForebayError:
        return None
    if expr not in scope.groups and isinstance(expr, Column) and not node.args.get("table") and any(
            expr in columns(g) for g in scope.groups):
        # Spark would take the grouping expression also where it is written in another order, which is not told apart
        # here.
        raise ForebayError("ambiguous-column",
                           f"{node.name} in HAVING is a result column, and a column of GROUP BY's expressions",
                           hint="give the result column another name")
    return expr if expr in scope.groups else None


def _reader(node: exp.Expr) -> Callable[[exp.Expr, Scope], Expr]:
    if type(node) in BINARY:
        return _binary
    if type(node) in CHAINS:
        return _chain
    return READERS.get(type(node), _refused)


def _refused(node: exp.Expr, scope: Scope) -> Expr:
    if scope.nested is not None and isinstance(node, (exp.Subquery, exp.Exists)):
        return scope.nested.subquery(node, scope)
    if scope.nested is not None and isinstance(node, exp.Window):
        return scope.nested.over(node, scope)
    if isinstance(node, (exp.Subquery, exp.Select, exp.Exists)):
        raise ForebayError("not-supported", "subqueries are not accepted", hint="write the join in FROM and WHERE")
    if isinstance(node, exp.Window):
        raise ForebayError("not-supported", "window functions (OVER) are not accepted",
                           hint="windows stand after a stream: FROM stream [WINDOW 1 HOUR]")
    if isinstance(node, exp.Star):
        raise ForebayError("not-supported", "* stands alone in SELECT or in COUNT(*)", hint="name the column")
    if isinstance(node, exp.Interval):
        raise ForebayError("not-supported", "an interval can only be added to or subtracted from a timestamp or a date",
                           hint="for instance ts + INTERVAL 5 MINUTES")
    raise ForebayError("not-supported", f"{described(node)} is not accepted in a query",
                       hint="docs/queries.md lists what is")


def _binary(node: exp.Expr, scope: Scope) -> Expr:
    _complete(node, ("this", "expression", "safe", "typed"))
    sides = (node.this, node.expression)
    if isinstance(node, (exp.Add, exp.Sub)) and any(isinstance(_bare(s), exp.Interval) for s in sides):
        return _moved(node, scope)
    return OPERATORS[BINARY[type(node)]](tuple(convert(s, scope) for s in sides))


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _chain(node: exp.Expr, scope: Scope) -> Expr:
    """a AND b AND c …, read along its left spine: thousands of terms are not deep."""
    terms, kind = [], type(node)
    while type(node) is kind:
        terms.append(node.expression)
        node = node.this
    return OPERATORS[CHAINS[kind]](tuple(convert(t, scope) for t in (node, *reversed(terms))))


def _moved(node: exp.Expr, scope: Scope) -> Expr:
    """timestamp ± INTERVAL."""
    left, right = _bare(node.this), _bare(node.expression)
    if isinstance(left, exp.Interval) and isinstance(node, exp.Sub):
        raise ForebayError("type-mismatch", "nothing can be subtracted from an interval",
                           hint="write timestamp - INTERVAL")
    moment, interval = (node.this, right) if isinstance(right, exp.Interval) else (node.expression, left)
    months = _months(interval)
    if months is not None:
        return plus_months(convert(moment, scope), -months if isinstance(node, exp.Sub) else months)
    us = _interval(interval)
    return plus_interval(convert(moment, scope), -us if isinstance(node, exp.Sub) else us)


def _months(node: exp.Expr) -> int | None:
    """INTERVAL 3 MONTHS, INTERVAL '1' YEAR; None of other units, which have a fixed length."""
    unit = node.args.get("unit")
    words = f"{node.this.name} {unit.name if isinstance(unit, exp.Var) else ''}".lower().split()
    units = {"month": 1, "year": 12}
    if len(words) != 2 or not re.fullmatch(r"-?[0-9]{1,6}", words[0]) or words[1].rstrip("s") not in units:
        return None
    return int(words[0]) * units[words[1].rstrip("s")]


def _interval(node: exp.Expr) -> int:
    """INTERVAL 5 MINUTES, INTERVAL '5' MINUTE, INTERVAL '1 hour 5 minutes'."""
    unit = node.args.get("unit")
    if not isinstance(node.this, exp.Literal) or unit is not None and not isinstance(unit, exp.Var):
        raise ForebayError("bad-length", "an interval is a constant count and a unit",
                           hint="for instance INTERVAL 5 MINUTES")
    words = f"{node.this.this} {unit.name if unit is not None else ''}".split()
    if not words or len(words) % 2:
        raise ForebayError("bad-length", f"{node.this.this!r} is not an interval",
                           hint="for instance INTERVAL 5 MINUTES")
    if any(w.lower().rstrip("s") in ("month", "year", "quarter") for w in words[1::2]):
        raise ForebayError("bad-length", "months and years have no fixed length",
                           hint=f"INTERVAL 3 MONTHS stands alone; units beside others are {', '.join(UNITS)}")
    return sum(-length(c[1:], u) if c.startswith("-") else length(c, u) for c, u in zip(words[::2], words[1::2]))


def _column(node: exp.Expr, scope: Scope) -> Expr:
    if offset(node) in scope.source.ids:
        if scope.place in ("WHERE", "ON"):
            raise ForebayError("not-supported",
                               f"System.Window().Id is not accepted in {scope.place}: a row is in several windows",
                               hint="write it in HAVING")
        return WINDOW_NAME
    if isinstance(node.this, exp.Star):
        return _refused(node.this, scope)
    if node.args.get("db"):
        raise ForebayError("not-supported", f"{node.sql()}: a column is written column or alias.column")
    column = resolve(node.name, node.args["table"].name if node.args.get("table") else None, scope)
    scope.column_offsets.setdefault(column, offset(node))
    return column


def resolve(name: str, qualifier: str | None, scope: Scope) -> Expr:
    """The column a name means; upper and lower case do not matter, as in Spark."""
    if qualifier is None and name.lower() in scope.aliases:
        return scope.aliases[name.lower()]
    if qualifier is not None and qualifier.lower() == "session_window":
        return _of_session(name, scope)
    if scope.around is not None and not _is_known(name, qualifier, scope):
        return resolve(name, qualifier, scope.around)
    chosen = named(qualifier, scope)
    same_name = [Column(i, spelled, kind) for i, x in chosen for spelled, kind in x.columns
                 if spelled.lower() == name.lower()]
    if qualifier is None:      # of two columns that USING merges only one counts
        same_name = [column for column in same_name if (column.input, column.name.lower()) not in scope.merged]
    if len(same_name) > 1:
        places = " or ".join(f"{scope.alias(column.input)}.{column.name}" for column in same_name)
        raise ForebayError("ambiguous-column", f"column {name} is ambiguous", hint=f"write {places}")
    return same_name[0] if same_name else _unknown(name, qualifier, chosen)


def _of_session(name: str, scope: Scope) -> Expr:
    """`session_window.start` and `session_window.end`, where rows are grouped by sessions."""
    column = f"~{name.lower()}"
    for place, declared in enumerate(scope.inputs):
        if (column, TIMESTAMP) in declared.columns:
            return Column(scope.number(place), column, TIMESTAMP)
    raise ForebayError("unknown-column", f"session_window.{name} is not known here",
                       hint="session_window.start and session_window.end are, over [WINDOW SESSION 30 MINUTES BY user]")


def _is_known(name: str, qualifier: str | None, scope: Scope) -> bool:
    """Whether a SELECT's own FROM has such a column, or would have to."""
    if qualifier is not None:
        return any(declared.alias.lower() == qualifier.lower() for declared in scope.inputs)
    return any(spelled.lower() == name.lower() for declared in scope.inputs for spelled, _ in declared.columns)


def named(qualifier: str | None, scope: Scope) -> list[tuple[int, Input]]:
    """The inputs in which a column is looked for: the one of that alias, or all."""
    chosen = [(scope.number(place), declared) for place, declared in enumerate(scope.inputs)
              if qualifier is None or declared.alias.lower() == qualifier.lower()]
    if not chosen:
        aliases = [x.alias for x in scope.inputs]
        raise ForebayError("unknown-input", f"{qualifier} is not in FROM", hint=suggestion(str(qualifier), aliases)
                           or f"FROM has {', '.join(aliases)}")
    return chosen


def _unknown(name: str, qualifier: str | None, chosen: list[tuple[int, Input]]) -> Expr:
    if name.lower() in VOLATILE:
        raise ForebayError("not-deterministic", f"{name} differs from run to run",
                           hint="answers depend on rows only; use the event time column")
    names = [spelled for _, x in chosen for spelled, _ in x.columns]
    where = (f"{qualifier} has no column {name}" if qualifier else f"no column {name} in "
                                                                   f"{', '.join(x.alias for _, x in chosen)}")
    raise ForebayError("unknown-column", where, hint=suggestion(name, names) or f"columns are {', '.join(names[:20])}")


def _literal(node: exp.Expr, scope: Scope) -> Expr:
    return Literal(str(node.this), STRING) if node.args.get("is_string") else number(str(node.this))


def _negative(node: exp.Expr, scope: Scope) -> Expr:
    """A constant's own sign came with it, unless a word that is no operator stands before it."""
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.args.get("is_string") and not inner.this.startswith("-"):
        return number(f"-{inner.this}")
    return OPERATORS["NEGATE"]((convert(inner, scope),))


def _is(node: exp.Expr, scope: Scope) -> Expr:
    value = convert(node.this, scope)
    if isinstance(node.expression, exp.Null):
        return OPERATORS["IS NULL"]((value,))
    if isinstance(node.expression, exp.Boolean):
        return OPERATORS["<=>"]((value, convert(node.expression, scope)))
    raise ForebayError("not-supported", "IS takes NULL, TRUE or FALSE", hint="for instance x IS NOT NULL")


def _in(node: exp.Expr, scope: Scope) -> Expr:
    if scope.nested is not None and node.args.get("query"):
        return scope.nested.subquery(node, scope)
    _complete(node, ("this", "expressions"))
    if not node.expressions:
        raise ForebayError("syntax", "IN needs at least one value", hint="for instance x IN (1, 2)")
    return OPERATORS["IN"](tuple(convert(n, scope) for n in (node.this, *node.expressions)))


def _between(node: exp.Expr, scope: Scope) -> Expr:
    _complete(node, ("this", "low", "high"))
    value, low, high = (convert(node.args[k], scope) for k in ("this", "low", "high"))
    return OPERATORS["AND"]((OPERATORS[">="]((value, low)), OPERATORS["<="]((value, high))))


def _like(node: exp.Expr, scope: Scope) -> Expr:
    """LIKE, ILIKE and RLIKE."""
    _complete(node, ("this", "expression", "negate"))
    like = OPERATORS[PATTERNS[type(node)]]((convert(node.this, scope), convert(node.expression, scope)))
    return OPERATORS["NOT"]((like,)) if node.args.get("negate") else like


def _case(node: exp.Expr, scope: Scope) -> Expr:
    subject = convert(node.this, scope) if node.this else None
    parts: list[Expr] = []
    for branch in node.args["ifs"]:
        condition = convert(branch.this, scope)
        parts += [OPERATORS["="]((subject, condition)) if subject else condition, convert(branch.args["true"], scope)]
    if node.args.get("default"):
        parts.append(convert(node.args["default"], scope))
    return OPERATORS["CASE"](tuple(parts))


def _cast(node: exp.Expr, scope: Scope) -> Expr:
    _complete(node, ("this", "to", "safe"))
    return cast(convert(node.this, scope), data_type(node.args["to"]), isinstance(node, exp.TryCast))


def data_type(node: exp.Expr) -> Type:
    """A type as written in a cast."""
    written = node.this.name if hasattr(node.this, "name") else str(node.this)
    if written not in TYPES or extras(node, ("this", "expressions", "nested")) or node.args.get("nested"):
        raise ForebayError("unknown-type", f"type {written} is not known",
                           hint=f"known are {', '.join(sorted(set(TYPES.values())))}")
    if TYPES[written] != "decimal":
        return Type(TYPES[written])
    sizes = [int(p.name) if p.name.isdigit() else -1 for p in node.expressions] or [10]
    return decimal(sizes[0], sizes[1] if len(sizes) > 1 else 0)


def _function(node: exp.Expr, scope: Scope) -> Expr:
    name = node.name.upper()
    if name in AGGREGATES:
        return _aggregate(node, None, scope)
    if name == "IF":
        if len(node.expressions) != 3:
            raise ForebayError("wrong-arguments", f"IF takes 3 arguments, not {len(node.expressions)}")
        return OPERATORS["IF"](tuple(convert(argument, scope) for argument in node.expressions))
    if name in CASTS and len(node.expressions) == 1:
        return cast(convert(node.expressions[0], scope), CASTS[name])
    if name in WORDED:
        return _worded(name, node, scope)
    if name not in NAMES:
        raise _unknown_function(node.name)
    if name in UNIT_FIRST and len(node.expressions) == 3:
        unit, *rest = node.expressions
        return build(name, (_unit(unit, name), *(convert(a, scope) for a in rest)))
    return build(name, tuple(convert(a, scope) for a in node.expressions))


def _unit(node: exp.Expr, name: str) -> Expr:
    """MONTH in DATEADD(MONTH, 2, time): a word, no column."""
    if not isinstance(node, exp.Column) or node.args.get("table") or node.this.args.get("quoted"):
        raise ForebayError("bad-unit", f"{name} begins with a unit here", hint="for instance MONTH")
    return Literal(node.name, STRING)


def _worded(words: str, node: exp.Expr, scope: Scope) -> Expr:
    """Calls with words between their arguments: EXTRACT(YEAR FROM x), TRIM(BOTH x FROM y) and so on."""
    args = node.expressions
    if WORDED[words] != len(args):
        raise ForebayError("wrong-arguments", f"{words} takes {WORDED[words]} arguments, not {len(args)}")
    name, *rest = words.split()
    if name == "EXTRACT":
        return build(name, (_unit(args[0], name), convert(args[1], scope)))
    values = tuple(convert(a, scope) for a in args)
    if name == "TRIM":
        return OPERATORS[{"LEADING": "LTRIM FROM", "TRAILING": "RTRIM FROM"}.get(rest[0], "TRIM FROM")](values[::-1])
    return build(name, values)


def _unknown_function(name: str) -> ForebayError:
    if name.lower() in VOLATILE:
        return ForebayError("not-deterministic", f"{name} differs from run to run",
                            hint="answers depend on rows only; use the event time column")
    names = [*NAMES, *AGGREGATES, *CASTS, "IF", "CASE", "CAST", "TRY_CAST"]
    return ForebayError("unknown-function", f"function {name} is not accepted", hint=suggestion(name, names)
                        or "docs/queries.md lists the functions")


def _aggregate(node: exp.Expr, condition: exp.Expr | None, scope: Scope) -> Expr:
    """An aggregate, with FILTER's condition if it has one.

    Its arguments are of rows, so neither aggregates nor SELECT's names are known in them.
    """
    if scope.aggregates is None:
        raise ForebayError("misplaced-aggregate", f"{node.name.upper()} is not accepted in {scope.place}",
                           hint="conditions on aggregates stand in HAVING" if scope.place in ("WHERE", "ON") else None)
    inner = scope.at(f"the argument of {node.name.upper()}")
    for arg in node.expressions:
        if isinstance(arg, exp.Column) and isinstance(arg.this, exp.Star):
            named(arg.table, scope)
    test = convert(condition, inner) if condition is not None else None
    if test is not None and test.type != BOOLEAN:
        raise ForebayError("type-mismatch", f"FILTER takes a condition, not {test.type}")
    return aggregate(node, test, lambda n: convert(n, inner), scope.aggregates)


def _filter(node: exp.Expr, scope: Scope) -> Expr:
    inner, where = node.this, node.expression
    if not isinstance(where, exp.Where) or not isinstance(inner, (exp.Anonymous, exp.WithinGroup)):
        raise ForebayError("not-supported", "FILTER (WHERE …) stands after an aggregate")
    call = inner.this if isinstance(inner, exp.WithinGroup) else inner
    if call.name.upper() not in AGGREGATES:
        raise ForebayError("not-supported", f"FILTER stands after an aggregate, {call.name} is none")
    return _aggregate(inner, where.this, scope)


def _within(node: exp.Expr, scope: Scope) -> Expr:
    if not isinstance(node.this, exp.Anonymous) or node.this.name.upper() not in ORDERED:
        raise ForebayError("not-supported", f"WITHIN GROUP stands after {' and '.join(ORDERED)}")
    return _aggregate(node, None, scope)


def _complete(node: exp.Expr, understood: tuple[str, ...]) -> None:
    if more := extras(node, understood):
        detail = ("subqueries are not accepted" if "query" in more else f"{described(node)} with "
                                                                        f"{', '.join(more).upper()} is not accepted")
        raise ForebayError("not-supported", detail, hint="docs/queries.md lists what is")


WORDED = {"EXTRACT FROM": 2, "POSITION IN": 2, "SUBSTRING FROM": 2, "SUBSTRING FROM FOR": 3, "OVERLAY PLACING FROM": 3,
          "OVERLAY PLACING FROM FOR": 4, "TRIM FROM": 2, "TRIM BOTH FROM": 2, "TRIM LEADING FROM": 2,
          "TRIM TRAILING FROM": 2}      # and how many arguments each has
READERS: dict[type, Callable[[exp.Expr, Scope], Expr]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Neg: _negative,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    **{kind: _like for kind in PATTERNS},
    exp.BitwiseNot: lambda node, scope: OPERATORS["~"]((convert(node.this, scope),)),
    exp.Case: _case,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Anonymous: _function,
    exp.Filter: _filter,
    exp.WithinGroup: _within,
    Plus: lambda node, scope: OPERATORS["PLUS"]((convert(node.this, scope),)),
    exp.Paren: lambda node, scope: convert(node.this, scope),
    exp.Not: lambda node, scope: OPERATORS["NOT"]((convert(node.this, scope),)),
    exp.Boolean: lambda node, scope: Literal(bool(node.this), BOOLEAN),
    exp.Null: lambda node, scope: Literal(None, STRING),
    exp.NullSafeNEQ: lambda node, scope: OPERATORS["NOT"]
    ((OPERATORS["<=>"]((convert(node.this, scope), convert(node.expression, scope))),)),
    exp.Concat: lambda node, scope: OPERATORS["||"](tuple(convert(n, scope) for n in node.expressions)),
}
