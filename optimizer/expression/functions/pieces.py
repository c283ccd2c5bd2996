"""Functions that take strings apart and put them together: positions, parts, padding. Characters are code points."""
from __future__ import annotations

from functools import partial

from optimizer.errors import ForebayError
from optimizer.expression.arguments import Args, want, whole_number
from optimizer.expression.casting import constant
from optimizer.expression.coercion import mismatch
from optimizer.expression.expr import Call, Expr, Literal
from optimizer.expression.functions.row import Function, Name, Texts, Written
from optimizer.expression.types import BOOLEAN, INT, STRING

MANY = 1000                # arguments
LONGEST = 100_000          # characters that padding or repeating may give


def constant_text(what: str, arg: Expr) -> str:
    """The value of an argument that has to be a string constant."""
    if not isinstance(arg, Literal) or arg.type != STRING or arg.value is None:
        raise mismatch(f"{what} must be a string constant")
    return str(arg.value)


def _joined(args: Args) -> Expr:
    """NULLs among the parts are left out; a NULL separator gives NULL."""
    return Call("concat_ws", tuple(want(a, "CONCAT_WS", STRING) for a in args), STRING)


def _padded(function: str, args: Args) -> Expr:
    name = function.upper()
    length = whole_number(args[1], f"{name}'s length", -(2**31), LONGEST)
    padding = constant_text(f"{name}'s padding", args[2]) if len(args) > 2 else " "
    return Call(function, (want(args[0], name, STRING), Literal(length, INT), Literal(padding, STRING)), STRING)


def _position(name: str, args: Args) -> Expr:
    """POSITION(part, text, from) and its like."""
    part, text = (want(a, name, STRING) for a in args[:2])
    start = whole_number(args[2], f"{name}'s first position") if len(args) > 2 else 1
    return Call("locate", (part, text, Literal(start, INT)), INT)


def _in_text(args: Args) -> Expr:
    """INSTR(text, part)."""
    return _position("INSTR", args[::-1])


def _split_part(args: Args) -> Expr:
    separator = constant_text("SPLIT_PART's separator", args[1])
    number = whole_number(args[2], "SPLIT_PART's number")
    if not number or not separator:
        raise mismatch("SPLIT_PART takes a separator that is not empty and a number that is not 0",
                       "1 is the first part, -1 the last")
    return Call("split_part", (want(args[0], "SPLIT_PART", STRING), args[1], Literal(number, INT)), STRING)


def _index(args: Args) -> Expr:
    separator = constant_text("SUBSTRING_INDEX's separator", args[1])
    if any(separator[:n] == separator[-n:] for n in range(1, len(separator))):
        raise ForebayError("bad-literal", f"SUBSTRING_INDEX's separator {separator!r} begins as it ends",
                           hint="Spark counts overlapping ones there; take one that does not, such as '.' or '://'")
    count = whole_number(args[2], "SUBSTRING_INDEX's count", -(2**31) + 1)
    return Call("substring_index", (want(args[0], "SUBSTRING_INDEX", STRING), args[1], Literal(count, INT)), STRING)


def _translated(args: Args) -> Expr:
    """The first of equal characters counts; what has no partner is taken out."""
    before, after = (constant_text("TRANSLATE's second and third argument", a) for a in args[1:])
    first = {c: i for i, c in reversed(list(enumerate(before)))}
    ordered = sorted(first, key=lambda c: (first[c] >= len(after), first[c]))
    partners = "".join(after[first[c]] for c in ordered if first[c] < len(after))
    text = want(args[0], "TRANSLATE", STRING)
    return Call("translate", (text, Literal("".join(ordered), STRING), Literal(partners, STRING)), STRING)


def _overlaid(args: Args) -> Expr:
    start = whole_number(args[2], "OVERLAY's position", 1, 10**9)
    length = whole_number(args[3], "OVERLAY's length", -1, LONGEST) if len(args) > 3 else -1
    text, part = (want(a, "OVERLAY", STRING) for a in args[:2])
    return Call("overlay", (text, part, Literal(start, INT), Literal(length, INT)), STRING)


def _repeated(args: Args) -> Expr:
    count = whole_number(args[1], "REPEAT's count", -(2**31), LONGEST)
    return Call("repeat", (want(args[0], "REPEAT", STRING), Literal(max(0, count), INT)), STRING)


def _spaces(args: Args) -> Expr:
    count = whole_number(args[0], "SPACE's count", -(2**31), LONGEST)
    return Call("repeat", (Literal(" ", STRING), Literal(max(0, count), INT)), STRING)


def _chosen(args: Args) -> Expr:
    """ELT(2, a, b) is b; the others are not computed, as in Spark."""
    number = whole_number(args[0], "ELT's number", 1, len(args) - 1)
    parts = [want(a, "ELT", STRING) for a in args[1:]]
    return parts[number - 1]


def _trimmed(function: str, args: Args) -> Expr:
    """Without other characters than spaces at the edges."""
    return Call(function, tuple(want(a, function.upper(), STRING) for a in args), STRING)


def _either_trim(function: str, plain: str, args: Args) -> Expr:
    return _trimmed(plain if len(args) == 1 else function, args)


def _in_list(args: Args) -> Expr:
    return Call("find_in_set", tuple(want(a, "FIND_IN_SET", STRING) for a in args), INT)


def _luhn(args: Args) -> Expr:
    return Call("luhn_check", (want(args[0], "LUHN_CHECK", STRING),), BOOLEAN)


# Their SQL
def _padded_sql(call: Call, args: Texts) -> str:
    """DuckDB takes no empty padding."""
    length, padding = int(str(constant(call, 1))), str(constant(call, 2))
    if length <= 0 or not padding:
        return f"left({args[0]}, {max(0, length)})"
    return f"{call.function}({args[0]}, {length}, {args[2]})"


def _position_sql(call: Call, args: Texts) -> str:
    """Nothing stands at position 1, wherever the search begins, as in Spark; before position 1 nothing is found."""
    part, text, start = args[0], args[1], int(str(constant(call, 2)))
    if start < 1:
        return f"CASE WHEN {part} IS NOT NULL AND {text} IS NOT NULL THEN 0 END"
    place = f"instr({text}, {part})"
    if start > 1:
        later = f"instr(substring({text}, {start}), {part})"
        place = f"CASE WHEN {later} = 0 THEN 0 ELSE {later} + {start - 1} END"
    return f"CAST(CASE WHEN {text} IS NULL THEN NULL WHEN {part} = '' THEN 1 ELSE {place} END AS INTEGER)"


def _index_sql(call: Call, args: Texts) -> str:
    count, separator = int(str(constant(call, 2))), str(constant(call, 1))
    if not count or not separator:
        return f"left({args[0]}, 0)"
    slice_ = f"[1:{count}]" if count > 0 else f"[{count}:]"
    return f"coalesce(array_to_string((string_split({args[0]}, {args[1]})){slice_}, {args[1]}), left({args[0]}, 0))"


def _overlaid_sql(call: Call, args: Texts) -> str:
    start, length = int(str(constant(call, 2))), int(str(constant(call, 3)))
    rest = f"{start} + length({args[1]})" if length < 0 else f"{start + length}"
    return f"(substring({args[0]}, 1, {start - 1}) || {args[1]} || substring({args[0]}, {rest}))"


def _in_list_sql(call: Call, args: Texts) -> str:
    place = f"list_position(string_split({args[1]}, ','), {args[0]})"
    return (f"CAST(CASE WHEN {args[0]} IS NULL OR {args[1]} IS NULL THEN NULL WHEN contains({args[0]}, ',') THEN 0 "
            f"ELSE coalesce({place}, 0) END AS INTEGER)")


def _luhn_sql(call: Call, args: Texts) -> str:
    """From the right every second digit counts twice, its own digits summed; the sum is a multiple of ten."""
    digit = "CAST(substring(s, length(s) + 1 - i, 1) AS INTEGER)"
    weight = f"CASE WHEN i % 2 = 1 THEN {digit} ELSE ({digit} * 2) // 10 + ({digit} * 2) % 10 END"
    total = f"list_sum(list_transform(range(1, length(s) + 1), lambda i: {weight}))"
    check = f"CASE WHEN regexp_full_match(s, '[0-9]+') THEN {total} % 10 = 0 WHEN s IS NOT NULL THEN FALSE END"
    return f"list_transform([{args[0]}], lambda s: {check})[1]"


ROWS: tuple[Written, ...] = (
    Function(_joined, (Name("CONCAT_WS", 2, MANY, "strings with the first one between them; NULLs are left out"),),
             name="concat_ws", duckdb="concat_ws({all})", spark="concat_ws({all})", order="all"),
    Function(partial(_padded, "lpad"),
             (Name("LPAD", 2, 3, "filled up on the left to a length, or cut to it (constants; padding is ' ')"),),
             name="lpad", duckdb=_padded_sql, spark="lpad({0}, {1}, {2})"),
    Function(partial(_padded, "rpad"), (Name("RPAD", 2, 3, "filled up on the right to a length, or cut to it"),),
             name="rpad", duckdb=_padded_sql, spark="rpad({0}, {1}, {2})"),
    Function(partial(_position, "LOCATE"),
             (Name("LOCATE", 2, 3, "position of the first string in the second, from a position on (a constant); 0 "
                                   "where it is not in it"),
              Name("POSITION", 2, 3, "the same as LOCATE; also POSITION(part IN text)")),
             name="locate", duckdb=_position_sql, spark="locate({0}, {1}, {2})"),
    Written(_in_text, (Name("INSTR", 2, 2, "position of the second string in the first; 0 where it is not in it"),)),
    Function(_split_part, (Name("SPLIT_PART", 3, 3, "the part of a number between separators (constants); from the end "
                                                    "where the number is negative"),),
             name="split_part", duckdb="split_part({0}, {1}, {2})"),
    Function(_index, (Name("SUBSTRING_INDEX", 3, 3, "what stands before the separator's so manieth place (constants); "
                                                    "from the end, after it, where the count is negative"),),
             name="substring_index", duckdb=_index_sql, spark="substring_index({0}, {1}, {2})"),
    Function(_translated, (Name("TRANSLATE", 3, 3, "each character of the second string by the third's at its place "
                                                   "(constants)"),),
             name="translate", duckdb="translate({0}, {1}, {2})"),
    Function(_overlaid, (Name("OVERLAY", 3, 4, "with a part replaced by the second string, from a position on and so "
                                               "long (constants)"),),
             name="overlay", duckdb=_overlaid_sql, spark="overlay({0}, {1}, {2}, {3})"),
    Function(_repeated, (Name("REPEAT", 2, 2, "a string so many times (a constant)"),),
             name="repeat", duckdb="repeat({0}, {1})"),
    Written(_spaces, (Name("SPACE", 1, 1, "so many spaces (a constant)"),)),
    Written(_chosen, (Name("ELT", 2, MANY, "the argument of a number (a constant)"),)),
    Written(partial(_either_trim, "btrim", "trim"),
            (Name("BTRIM", 1, 2, "without the second string's characters at both ends, or without spaces"),)),
    Function(partial(_trimmed, "btrim"), operators=("TRIM FROM",), name="btrim", duckdb="trim({0}, {1})",
             spark="btrim({0}, {1})"),
    Function(partial(_trimmed, "ltrim_of"), operators=("LTRIM FROM",), name="ltrim_of", duckdb="ltrim({0}, {1})",
             spark="trim(LEADING {1} FROM {0})"),
    Function(partial(_trimmed, "rtrim_of"), operators=("RTRIM FROM",), name="rtrim_of", duckdb="rtrim({0}, {1})",
             spark="trim(TRAILING {1} FROM {0})"),
    Function(_in_list, (Name("FIND_IN_SET", 2, 2, "place of a string in a list with commas; 0 where it is not in it"),),
             name="find_in_set", duckdb=_in_list_sql, spark="find_in_set({0}, {1})"),
    Function(_luhn, (Name("LUHN_CHECK", 1, 1, "whether a string of digits passes Luhn's check"),),
             name="luhn_check", duckdb=_luhn_sql, spark="luhn_check({0})"),
)
