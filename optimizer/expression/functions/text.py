"""Functions of strings."""
from __future__ import annotations

from functools import partial

from optimizer.errors import ForebayError
from optimizer.expression.arguments import Args, want, whole_number
from optimizer.expression.casting import constant
from optimizer.expression.coercion import mismatch
from optimizer.expression.expr import Call, Expr, Literal, walk
from optimizer.expression.functions.row import Function, Name, Texts, Written, infix
from optimizer.expression.types import BOOLEAN, INT, INTEGERS, STRING, Type


def _strings(function: str, result: Type, args: Args) -> Expr:
    """Functions whose arguments are all strings."""
    return Call(function, tuple(want(a, function.upper(), STRING) for a in args), result)


def _letters(function: str, args: Args) -> Expr:
    """Their form in DuckDB repeats the argument, so they do not nest."""
    if any(isinstance(e, Call) and e.function in ("upper", "lower") for e in walk(args[0])):
        raise ForebayError("too-complex", "UPPER and LOWER are not accepted inside UPPER and LOWER",
                           hint="leave the inner one out")
    return _strings(function, STRING, args)


def _like(args: Args) -> Expr:
    text, pattern = want(args[0], "LIKE", STRING), args[1]
    if not isinstance(pattern, Literal) or pattern.type != STRING:
        raise mismatch("LIKE's pattern must be a string constant")
    unescaped = str(pattern.value)
    for escape in ("\\\\", "\\%", "\\_"):
        unescaped = unescaped.replace(escape, "")
    if "\\" in unescaped:
        raise ForebayError("bad-literal", "LIKE's pattern has a \\ before something other than %, _ or \\",
                           hint="write \\\\\\\\ in the text for one backslash")
    return Call("like", (text, pattern), BOOLEAN)


def _concatenation(args: Args) -> Expr:
    parts: list[Expr] = []
    for arg in args:
        part = want(arg, "CONCAT", STRING, *INTEGERS, "decimal", "date", "timestamp", "boolean")
        parts += part.args if isinstance(part, Call) and part.function == "concat" else (part,)
    return parts[0] if len(parts) == 1 else Call("concat", tuple(parts), STRING)


def _substring(args: Args) -> Expr:
    numbers = [whole_number(a, "SUBSTRING's position and length") for a in args[1:]]
    length = numbers[1] if len(numbers) > 1 else 2**31 - 1
    text = want(args[0], "SUBSTRING", STRING)
    return Call("substring", (text, Literal(numbers[0], INT), Literal(length, INT)), STRING)


def _edge(function: str, args: Args) -> Expr:
    """LEFT and RIGHT."""
    text, length = want(args[0], function.upper(), STRING), whole_number(args[1], f"{function.upper()}'s length")
    return Call(function, (text, Literal(length, INT)), STRING)


# Their SQL
def _substring_sql(call: Call, args: Texts) -> str:
    """Spark counts position 0 as 1 and takes nothing where the length is not positive."""
    start, length = int(str(constant(call, 1))), int(str(constant(call, 2)))
    if length <= 0:
        return f"left({args[0]}, 0)"
    return f"substring({args[0]}, {start or 1}, {length})"


def _edge_sql(function: str, call: Call, args: Texts) -> str:
    return f"{function}({args[0]}, {max(0, int(str(constant(call, 1))))})"


ROWS: tuple[Written, ...] = (
    # Spark escapes with \ without being told so.
    Function(_like, operators=("LIKE",), name="like", duckdb="({0} LIKE {1} ESCAPE '\\')", spark="({0} LIKE {1})"),
    # Both macros are those of optimizer.expression.letters.
    Function(partial(_letters, "upper"), (Name("UPPER", 1, 1, "in upper case"),), name="upper",
             duckdb="spark_upper({0})", spark="upper({0})"),
    Function(partial(_letters, "lower"), (Name("LOWER", 1, 1, "in lower case"),), name="lower",
             duckdb="spark_lower({0})", spark="lower({0})"),
    # DuckDB's is a BIGINT.
    Function(partial(_strings, "length", INT), (Name("LENGTH", 1, 1, "number of characters"),), name="length",
             duckdb="CAST(length({0}) AS INTEGER)", spark="length({0})"),
    Function(partial(_strings, "trim", STRING), (Name("TRIM", 1, 1, "without leading and trailing spaces"),),
             name="trim", duckdb="trim({0}, ' ')", spark="trim({0})"),
    Function(partial(_strings, "ltrim", STRING), (Name("LTRIM", 1, 1, "without leading spaces"),),
             name="ltrim", duckdb="ltrim({0}, ' ')", spark="ltrim({0})"),
    Function(partial(_strings, "rtrim", STRING), (Name("RTRIM", 1, 1, "without trailing spaces"),),
             name="rtrim", duckdb="rtrim({0}, ' ')", spark="rtrim({0})"),
    Function(_substring,
             (Name("SUBSTRING", 2, 3,
                   "from a position (1 is the first, negative from the end), so many characters (constants)"),
              Name("SUBSTR", 2, 3, "the same as SUBSTRING")),
             name="substring", duckdb=_substring_sql, spark="substring({0}, {1}, {2})"),
    Function(partial(_edge, "left"), (Name("LEFT", 2, 2, "first characters (how many: a constant)"),),
             name="left", duckdb=partial(_edge_sql, "left"), spark="left({0}, {1})"),
    Function(partial(_edge, "right"), (Name("RIGHT", 2, 2, "last characters (how many: a constant)"),),
             name="right", duckdb=partial(_edge_sql, "right"), spark="right({0}, {1})"),
    Function(_concatenation, (Name("CONCAT", 1, 1000, "strings one after another; NULL if one is NULL"),), ("||",),
             name="concat", duckdb=infix("||"), spark="concat({all})"),
    Function(partial(_strings, "replace", STRING),
             (Name("REPLACE", 3, 3, "every occurrence of the second string by the third"),),
             name="replace", duckdb="replace({0}, {1}, {2})"),
    Function(partial(_strings, "startswith", BOOLEAN),
             (Name("STARTSWITH", 2, 2, "whether the first string begins with the second"),),
             name="startswith", duckdb="starts_with({0}, {1})", spark="startswith({0}, {1})"),
    Function(partial(_strings, "endswith", BOOLEAN),
             (Name("ENDSWITH", 2, 2, "whether the first string ends with the second"),),
             name="endswith", duckdb="ends_with({0}, {1})", spark="endswith({0}, {1})"),
    Function(partial(_strings, "contains", BOOLEAN),
             (Name("CONTAINS", 2, 2, "whether the first string holds the second"),),
             name="contains", duckdb="contains({0}, {1})"),
)
