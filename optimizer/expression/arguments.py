"""What functions ask of their arguments: a type, a number, one type for all, a whole constant.

NULL as a word has the type of what stands beside it.
"""
from __future__ import annotations

from optimizer.expression import casting
from optimizer.expression.coercion import coerce, common, mismatch
from optimizer.expression.expr import Expr, Literal
from optimizer.expression.types import DATE, DOUBLE, STRING, TIMESTAMP, Type

Args = tuple[Expr, ...]


def want(arg: Expr, what: str, to: Type, *from_types: str) -> Expr:
    """`arg` as `to` if its type may become that silently, else refused with what it is."""
    if arg.type == to or is_bare_null(arg):
        return coerce(arg, to)
    if arg.type.name in from_types or to.name in from_types and isinstance(
            arg, Literal) and arg.type == STRING and to in (TIMESTAMP, DATE):
        return coerce(arg, to)
    raise mismatch(f"{what} takes {to}, not {arg.type}",
                   f"cast it: CAST(… AS {to})" if casting.castable(arg.type, to) else None)


def numeric(arg: Expr, what: str) -> Expr:
    if is_bare_null(arg) and not arg.type.numeric:
        return coerce(arg, DOUBLE)
    if not arg.type.numeric:
        raise mismatch(f"{what} takes numbers, not {arg.type}",
                       "cast it: CAST(… AS DOUBLE)" if arg.type == STRING else None)
    return arg


def unify(args: Args) -> Args:
    """All to one common type, as CASE and COALESCE do; string constants next to timestamps become timestamps."""
    typed = [a for a in args if not is_bare_null(a)]
    if any(a.type in (TIMESTAMP, DATE) for a in typed):
        typed = [a for a in typed if not (isinstance(a, Literal) and a.type == STRING)]
    kinds = [a.type for a in typed]
    target = kinds[0] if kinds else args[0].type
    for kind in kinds[1:]:
        target = common(target, kind)
    return tuple(coerce(a, target) for a in args)


def choose(args: Args) -> Args:
    """As `_unify`, for functions that give one of their arguments: NULLs alone have no type that a column could have.
    """
    if all(is_bare_null(a) for a in args):
        raise mismatch("NULL alone has no type", "give it one: CAST(NULL AS INT)")
    return unify(args)


def read_texts(args: Args) -> Args:
    """A text beside a number becomes a number, as Spark's ANSI mode has it: BIGINT beside whole ones, else DOUBLE."""
    numbers = [a for a in args if a.type.numeric and not is_bare_null(a)]
    texts = [a for a in args if a.type == STRING and not is_bare_null(a)]
    return unify(args) if texts and numbers else args


def typed_nulls(args: Args) -> Args:
    """A bare NULL takes the other operand's type."""
    kinds = [a.type for a in args if not is_bare_null(a)]
    return tuple(coerce(a, kinds[0]) if is_bare_null(a) and kinds else a for a in args)


def is_bare_null(arg: Expr) -> bool:
    """NULL as a word; CAST(NULL AS INT) is an INT like any other."""
    return isinstance(arg, Literal) and arg.value is None


def whole_number(arg: Expr, what: str, least: int = -(2**31), most: int = 2**31 - 1) -> int:
    """The value of an argument that has to be a whole constant."""
    value = arg.value if isinstance(arg, Literal) and arg.type.integral else None
    if not isinstance(value, int) or not least <= value <= most:
        raise mismatch(f"{what} must be a whole constant" + (f" from {least} to {most}" if most < 2**31 - 1 else ""))
    return value
