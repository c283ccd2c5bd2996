"""The table of functions, put together from its families; indexes of it by call, by users' names and by operator.

To let users write another function, add a row to the family that it belongs to; the judge in tests/optimizer compares
it with Spark by itself, and a test asks for its line in docs/queries.md.
"""
from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from optimizer.errors import ForebayError
from optimizer.expression.arguments import Args
from optimizer.expression.expr import Call, Expr, walk
from optimizer.expression.functions import (
    arithmetic,
    calendar,
    conditions,
    conversion,
    formats,
    mathematics,
    patterns,
    pieces,
    text,
    times,
)
from optimizer.expression.functions.row import Function, Name, Typing, Written

FAMILIES: Mapping[str, tuple[Written, ...]] = MappingProxyType({
    "Numbers": (*arithmetic.ROWS, *mathematics.ROWS), "Conditions": conditions.ROWS, "Types": conversion.ROWS,
    "Strings": (*text.ROWS, *pieces.ROWS), "Regular expressions": patterns.ROWS,
    "Dates and times": (*times.ROWS, *calendar.ROWS, *formats.ROWS)})
TABLE: tuple[Written, ...] = tuple(row for rows in FAMILIES.values() for row in rows)
FUNCTIONS: Mapping[str, Function] = MappingProxyType({row.name: row for row in TABLE if isinstance(row, Function)})
_BY_ALPHABET = sorted((name for row in TABLE for name in row.names), key=lambda name: name.text)
NAMES: Mapping[str, Name] = MappingProxyType({name.text: name for name in _BY_ALPHABET})
OPERATORS: Mapping[str, Typing] = MappingProxyType(
    {operator: row.typed for row in TABLE for operator in row.operators if row.typed is not None})
_ROWS: Mapping[str, Written] = MappingProxyType({name.text: row for row in TABLE for name in row.names})


def build(name: str, args: Args) -> Expr:
    """A call of a function as a user named it, `build("SUBSTR", (column, Literal(2, INT)))`."""
    if not NAMES[name].least <= len(args) <= NAMES[name].most:
        raise ForebayError("wrong-arguments", f"{name} takes {NAMES[name].arguments}, not {len(args)}")
    row = _ROWS[name]
    assert row.typed is not None
    if row.unfailing and any(isinstance(e, Call) and FUNCTIONS[e.function].fails(e) for a in args for e in walk(a)):
        raise ForebayError("not-supported", f"{name}'s arguments may not fail themselves",
                           hint="use TRY_CAST, TRY_ADD … in them")
    return row.typed(args)
