"""Comparisons, AND and OR, NULLs, CASE and what chooses among its arguments."""
from __future__ import annotations

from decimal import Decimal
from functools import partial

from optimizer.expression.arguments import Args, choose, is_bare_null, numeric, unify, want
from optimizer.expression.coercion import as_decimal, coerce, mismatch
from optimizer.expression.expr import Call, Expr, Literal
from optimizer.expression.functions.conversion import cast
from optimizer.expression.functions.row import Function, Name, Texts, Typing, Written, infix
from optimizer.expression.types import BOOLEAN, INT, STRING


def _compare(function: str, args: Args) -> Expr:
    left, right = args
    _check_reach(function, left, right)
    if "decimal" in (left.type.name, right.type.name) and left.type.exact and right.type.exact:
        left, right = coerce(left, as_decimal(left.type, left)), coerce(right, as_decimal(right.type, right))
    return Call(function, unify((left, right)), BOOLEAN)


def _check_reach(function: str, left: Expr, right: Expr) -> None:
    """Spark answers these without a look at the whole number, FALSE or TRUE for NULL too."""
    for number, bound in ((left, right), (right, left)):
        value = bound.value if isinstance(bound, Literal) and isinstance(bound.value, Decimal) else Decimal(0)
        if number.type.integral and not -2**63 <= value < 2**63 and function in ("lt", "le", "gt", "ge"):
            raise mismatch(f"every {number.type} is on one side of {value}", "leave the comparison out")


def _logical(function: str, args: Args) -> Expr:
    """AND and OR of any number of terms; nested ones of the same kind are one."""
    terms: list[Expr] = []
    for arg in args:
        if isinstance(arg, Call) and arg.function == function:
            terms += arg.args
        else:
            terms.append(want(arg, function.upper(), BOOLEAN))
    return Call(function, tuple(terms), BOOLEAN)


def _member(args: Args) -> Expr:
    """IN: a list of constants stays a list, other items are compared one after another, as Spark does."""
    first, *items = unify(args)
    if all(isinstance(a, Literal) for a in items):
        return Call("in", (first, *items), BOOLEAN)
    comparisons = tuple(Call("eq", (first, a), BOOLEAN) for a in items)
    return _logical("or", comparisons) if len(items) > 1 else comparisons[0]


def _conditional(args: Args) -> Expr:
    """CASE's conditions and values in turn; ELSE is the last, NULL where there was none."""
    if any(is_bare_null(c) for c in args[:len(args) // 2 * 2:2]):
        raise mismatch("WHEN takes a condition, not NULL", "leave the branch out, or write FALSE")
    complete = args if len(args) % 2 else (*args, Literal(None, args[1].type))
    *values, otherwise = choose((*complete[1::2], complete[-1]))
    branches: list[Expr] = []
    for condition, value in zip(complete[:-1:2], values):
        branches += (want(condition, "WHEN", BOOLEAN), value)
    return Call("case", (*branches, otherwise), otherwise.type)


def _if(args: Args) -> Expr:
    """IF(condition, yes, no), which takes NULL for its condition as CASE does not."""
    return _conditional((cast(args[0], BOOLEAN) if is_bare_null(args[0]) else args[0], *args[1:]))


def _null_if(args: Args) -> Expr:
    return _conditional((_compare("eq", args), Literal(None, args[0].type), args[0]))


def _is_there(args: Args) -> Expr:
    return Call("not", (Call("is_null", args, BOOLEAN),), BOOLEAN)


def _if_there(args: Args) -> Expr:
    """NVL2."""
    return _conditional((_is_there(args[:1]), *args[1:]))


def _zero(removed: bool, args: Args) -> Expr:
    """NULLIFZERO and ZEROIFNULL."""
    number = numeric(args[0], "NULLIFZERO" if removed else "ZEROIFNULL")
    return _null_if((number, Literal(0, INT))) if removed else _coalesce((number, Literal(0, INT)))


def _decoded(args: Args) -> Expr:
    """DECODE(x, a, 1, b, 2, 0): the value after the first that x is, NULL like any; else the last, or NULL."""
    subject, rest = args[0], args[1:]
    if len(rest) % 2 == 0 and any(result.type != STRING for result in rest[1::2]):
        raise mismatch("DECODE without a last value has text for it in Spark", "end it with one: DECODE(x, a, 1, NULL)")
    parts: list[Expr] = []
    for search, result in zip(rest[:-1:2], rest[1::2]):
        parts += (_compare("same", (subject, search)), result)
    return _conditional((*parts, rest[-1]) if len(rest) % 2 else tuple(parts))


def _coalesce(args: Args) -> Expr:
    unified = choose(args)
    return Call("coalesce", unified, unified[0].type)


def _extreme(function: str, args: Args) -> Expr:
    """Spark reads no text as a number or a time here."""
    if len({a.type == STRING for a in args if not is_bare_null(a)}) == 2:
        raise mismatch(f"{function.upper()} takes arguments of one type, not strings and others",
                       "cast it, or write TIMESTAMP '…' or DATE '…'")
    unified = choose(args)
    return Call(function, unified, unified[0].type)


# Their SQL
def _branches_sql(call: Call, args: Texts) -> str:
    """Conditions and values in turn, the last one ELSE."""
    pairs = "".join(f" WHEN {args[i]} THEN {args[i + 1]}" for i in range(0, len(args) - 1, 2))
    return f"CASE{pairs} ELSE {args[-1]} END"


def _extreme_sql(function: str, call: Call, args: Texts) -> str:
    """Of zeros of both signs the first, as in Spark."""
    plain = f"{function}({', '.join(args)})"
    zeros = ", ".join(f"CASE WHEN {a} = 0 THEN {a} END" for a in args)
    return f"CASE WHEN {plain} = 0 THEN coalesce({zeros}) ELSE {plain} END" if call.type.floating else plain


def _comparison(function: str) -> Typing:
    return partial(_compare, function)


MANY = 1000          # arguments

ROWS: tuple[Written, ...] = (
    Function(_comparison("eq"), operators=("=",), name="eq", duckdb="({0} = {1})"),
    Function(_comparison("ne"), operators=("<>",), name="ne", duckdb="({0} <> {1})"),
    Function(_comparison("lt"), operators=("<",), name="lt", duckdb="({0} < {1})"),
    Function(_comparison("le"), operators=("<=",), name="le", duckdb="({0} <= {1})"),
    Function(_comparison("gt"), operators=(">",), name="gt", duckdb="({0} > {1})"),
    Function(_comparison("ge"), operators=(">=",), name="ge", duckdb="({0} >= {1})"),
    Function(_comparison("same"), operators=("<=>",), name="same",
             duckdb="({0} IS NOT DISTINCT FROM {1})", spark="({0} <=> {1})", order="all"),
    Function(partial(_logical, "and"), operators=("AND",), name="and", duckdb=infix("AND"), order="lazy"),
    Function(partial(_logical, "or"), operators=("OR",), name="or", duckdb=infix("OR"), order="lazy"),
    Function(lambda args: Call("not", (want(args[0], "NOT", BOOLEAN),), BOOLEAN), operators=("NOT",), name="not",
             duckdb="(NOT {0})"),
    Function(lambda args: Call("is_null", args, BOOLEAN), operators=("IS NULL",), name="is_null",
             duckdb="({0} IS NULL)", order="all"),
    Function(_member, operators=("IN",), name="in", order="all",
             duckdb=lambda call, args: f"({args[0]} IN ({', '.join(args[1:])}))"),
    # the second is the SELECT to the right of IN, as SQL in parentheses: no user's argument
    Function(name="in_subquery", order="all", duckdb="({0} IN {1})"),
    Function(_conditional, operators=("CASE",), name="case", duckdb=_branches_sql, order="lazy"),
    Written(_if, operators=("IF",)),
    Written(lambda args: _compare("same", args), (Name("EQUAL_NULL", 2, 2, "as <=>: TRUE also of two NULLs"),)),
    Written(lambda args: Call("is_null", args, BOOLEAN), (Name("ISNULL", 1, 1, "as x IS NULL"),)),
    Written(_is_there, (Name("ISNOTNULL", 1, 1, "as x IS NOT NULL"),)),
    Written(_decoded, (Name("DECODE", 3, MANY, "DECODE(x, a, 1, b, 2, 0): the value after the one that x is, else the "
                                               "last, or NULL"),)),
    Written(_if_there, (Name("NVL2", 3, 3, "second argument where the first is not NULL, else the third"),)),
    Written(partial(_zero, True), (Name("NULLIFZERO", 1, 1, "NULL where the number is 0"),)),
    Written(partial(_zero, False), (Name("ZEROIFNULL", 1, 1, "0 where the number is NULL"),)),
    # the two arguments of an aggregate, which takes them apart; by itself it fails where one of them does
    Function(name="pair", duckdb="({0} + {1})"),
    Written(_null_if, (Name("NULLIF", 2, 2, "NULL where both are equal, else the first"),)),
    Function(_coalesce, (Name("COALESCE", 1, MANY, "first argument that is not NULL"),
                         Name("IFNULL", 2, 2, "second argument where the first is NULL"),
                         Name("NVL", 2, 2, "the same as IFNULL")),
             name="coalesce", duckdb="coalesce({all})", order="lazy"),
    Function(partial(_extreme, "least"), (Name("LEAST", 2, MANY, "smallest argument; NULLs are skipped"),),
             name="least", duckdb=partial(_extreme_sql, "least"), spark="least({all})", order="all"),
    Function(partial(_extreme, "greatest"), (Name("GREATEST", 2, MANY, "largest argument; NULLs are skipped"),),
             name="greatest", duckdb=partial(_extreme_sql, "greatest"), spark="greatest({all})", order="all"),
)
