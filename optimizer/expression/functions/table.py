"""The table of functions, put together from its families; indexes of it by call, by users' names and by operator.

To let users write another function, add a row to the family that it belongs to; the judge in tests/optimizer compares
it with Spark by itself, and a test asks for its line in docs/queries.md.
"""
from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from optimizer.errors import ForebayError
from optimizer.expression.arguments import Args
from optimizer.expression.expr import Expr
from optimizer.expression.functions import arithmetic, conditions, conversion, text, times
from optimizer.expression.functions.row import Function, Name, Typing, Written

TABLE: tuple[Written, ...] = (*arithmetic.ROWS, *conditions.ROWS, *conversion.ROWS, *text.ROWS, *times.ROWS)
FUNCTIONS: Mapping[str, Function] = MappingProxyType({row.name: row for row in TABLE if isinstance(row, Function)})
_BY_ALPHABET = sorted((name for row in TABLE for name in row.names), key=lambda name: name.text)
NAMES: Mapping[str, Name] = MappingProxyType({name.text: name for name in _BY_ALPHABET})
OPERATORS: Mapping[str, Typing] = MappingProxyType(
    {operator: row.typed for row in TABLE for operator in row.operators if row.typed is not None})
_TYPED: Mapping[str, Typing] = MappingProxyType(
    {name.text: row.typed for row in TABLE for name in row.names if row.typed is not None})


def build(name: str, args: Args) -> Expr:
    """A call of a function as a user named it, `build("SUBSTR", (column, Literal(2, INT)))`."""
    if not NAMES[name].least <= len(args) <= NAMES[name].most:
        raise ForebayError("wrong-arguments", f"{name} takes {NAMES[name].arguments}, not {len(args)}")
    return _TYPED[name](args)
