"""Functions of numbers beyond arithmetic: trigonometry, logarithms, bits, and what does not fail where + would.

DuckDB raises where Java gives NaN, an infinity or NULL: each row says so in its SQL.
"""
from __future__ import annotations

import math
from functools import partial

from optimizer.expression.arguments import Args, numeric, unify, whole_number
from optimizer.expression.casting import constant, sql_type
from optimizer.expression.coercion import coerce, mismatch
from optimizer.expression.decimals import scaled, unscaled
from optimizer.expression.expr import Call, Expr, Literal
from optimizer.expression.functions.arithmetic import real
from optimizer.expression.functions.row import Function, Name, Template, Texts, Written
from optimizer.expression.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TINYINT, Type, decimal

NAN, INFINITY = "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)"
_DEGREES, _RADIANS = "CAST('57.29577951308232' AS DOUBLE)", "CAST('0.017453292519943295' AS DOUBLE)"      # Java's
_LARGEST_INDEX = 10**9      # of width_bucket: far from where Java's long arithmetic wraps


def _is_nan(args: Args) -> Expr:
    return Call("isnan", (coerce(numeric(args[0], "ISNAN"), DOUBLE),), BOOLEAN)


def _or_if_nan(args: Args) -> Expr:
    """The second argument is computed only where the first is not a number."""
    first, second = (coerce(numeric(a, "NANVL"), DOUBLE) for a in _no_floats("NANVL", args))
    return Call("case", (_is_nan((first,)), second, first), DOUBLE)


def _no_floats(name: str, args: Args) -> Args:
    if any(a.type.name == "float" for a in args):
        raise mismatch(f"{name} takes double, not float", "cast it: CAST(… AS DOUBLE)")
    return args


def _logarithm(args: Args) -> Expr:
    """LOG(x) is the natural one, LOG(base, x) that of a base."""
    return real("ln" if len(args) == 1 else "log", args)


def _constant(value: float, args: Args) -> Expr:
    return Literal(value, DOUBLE)


def _factorial(args: Args) -> Expr:
    if args[0].type.name not in ("tinyint", "smallint", "int"):
        raise mismatch(f"FACTORIAL takes an int, not {args[0].type}", "cast it: CAST(… AS INT)")
    return Call("factorial", (coerce(args[0], INT),), BIGINT)


def _text_of_whole(function: str, args: Args) -> Expr:
    """BIN and HEX of a whole number."""
    if function == "hex" and args[0].type == STRING:
        return Call("hex", args, STRING)
    if not args[0].type.integral:
        raise mismatch(f"{function.upper()} takes whole numbers{' and strings' if function == 'hex' else ''}, not "
                       f"{args[0].type}")
    return Call(function, (coerce(args[0], BIGINT),), STRING)


def _bits(function: str, sign: str, args: Args) -> Expr:
    """& | ^ of whole numbers of one type."""
    for arg in args:
        if not arg.type.integral:
            raise mismatch(f"{sign} takes whole numbers, not {arg.type}")
    unified = unify(args)
    return Call(function, unified, unified[0].type)


def _complement(args: Args) -> Expr:
    if not args[0].type.integral:
        raise mismatch(f"~ takes whole numbers, not {args[0].type}")
    return Call("bit_not", args, args[0].type)


def _bit_count(args: Args) -> Expr:
    if not args[0].type.integral:
        raise mismatch(f"BIT_COUNT takes whole numbers, not {args[0].type}")
    return Call("bit_count", args, INT)


def _bit(args: Args) -> Expr:
    if not args[0].type.integral:
        raise mismatch(f"GETBIT takes a whole number, not {args[0].type}")
    sizes = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
    place = whole_number(args[1], "GETBIT's position", 0, sizes[args[0].type.name] - 1)
    return Call("getbit", (args[0], Literal(place, INT)), TINYINT)


def _shift(function: str, args: Args) -> Expr:
    """Java counts places modulo the width; narrower numbers become INT."""
    if not args[0].type.integral:
        raise mismatch(f"{function.upper()} takes a whole number, not {args[0].type}")
    kind = BIGINT if args[0].type == BIGINT else INT
    places = whole_number(args[1], f"{function.upper()}'s number of places") % (64 if kind == BIGINT else 32)
    return Call(function, (coerce(args[0], kind), Literal(places, INT)), kind)


def _whole(function: str, args: Args) -> Expr:
    if not args[0].type.integral:
        raise mismatch(f"{function.upper()} takes a whole number, not {args[0].type}")
    return Call(function, (coerce(args[0], BIGINT),), BIGINT)


def _half_even(args: Args) -> Expr:
    """BROUND: of decimals and whole numbers, to the even one of two that are as near."""
    digits = whole_number(args[1], "BROUND's number of digits", 0, 15) if len(args) > 1 else 0
    kind = args[0].type
    if not kind.exact:
        raise mismatch(f"BROUND takes decimals and whole numbers, not {kind}", "cast it: CAST(… AS DECIMAL(18,6))")
    if kind.name == "decimal":
        scale = min(kind.scale, digits)
        kind = decimal(min(38, kind.precision - kind.scale + 1 + scale), scale)
    return Call("bround", (args[0], Literal(digits, INT)), kind)


def _grouped_digits(args: Args) -> Expr:
    """FORMAT_NUMBER of whole numbers and decimals whose whole part has room in a BIGINT."""
    digits, kind = whole_number(args[1], "FORMAT_NUMBER's number of places", 0, 15), args[0].type
    if args[1].type == BIGINT:
        raise mismatch("FORMAT_NUMBER's number of places is an INT, not a BIGINT", "leave the L out")
    if not kind.exact or kind.precision - kind.scale > 18:
        raise mismatch(f"FORMAT_NUMBER takes whole numbers and decimals of at most 18 whole digits, not {kind}",
                       "cast it: CAST(… AS DECIMAL(18,2))")
    return Call("format_number", (args[0], Literal(digits, INT)), STRING)


def _bucket(args: Args) -> Expr:
    count = whole_number(args[3], "WIDTH_BUCKET's number of buckets", 1, _LARGEST_INDEX)
    values = tuple(coerce(numeric(a, "WIDTH_BUCKET"), DOUBLE) for a in args[:3])
    return Call("width_bucket", (*values, Literal(count, BIGINT)), BIGINT)


# Their SQL
def _finite(function: str) -> str:
    """Java's NaN of infinities, where DuckDB raises."""
    return f"CASE WHEN isinf({{0}}) THEN {NAN} ELSE {function} END"


def _within_one(function: str) -> str:
    return f"CASE WHEN abs({{0}}) > 1 THEN {NAN} ELSE {function}({{0}}) END"


def _once(formula: str) -> Template:
    """A formula of x, computed of the argument once."""
    def write(call: Call, args: Texts) -> str:
        return f"list_transform([{args[0]}], lambda x: {formula})[1]"
    return write


def _once_of_two(formula: str) -> Template:
    """A formula of p.x and p.y."""
    def write(call: Call, args: Texts) -> str:
        return f"list_transform([{{'x': {args[0]}, 'y': {args[1]}}}], lambda p: {formula})[1]"
    return write


ACOSH = f"CASE WHEN {{0}} < 1 THEN {NAN} ELSE acosh({{0}}) END"
# ln(1 + x) and exp(x) - 1 without loss of digits near 0 (W. Kahan; N. Higham, Accuracy and Stability, 1.14.1)
_LOG1P = ("CASE WHEN {0} = -1 THEN -" + INFINITY + " WHEN isinf({0}) OR isnan({0}) OR CAST(1 AS DOUBLE) + {0} = 1 "
          "THEN {0} ELSE ln(CAST(1 AS DOUBLE) + {0}) * ({0} / ((CAST(1 AS DOUBLE) + {0}) - CAST(1 AS DOUBLE))) END")
LOG1P = f"CASE WHEN x <= -1 THEN CAST(NULL AS DOUBLE) ELSE {_LOG1P.format('x')} END"
ATANH = (f"CASE WHEN abs(x) > 1 THEN {NAN} ELSE CAST('0.5' AS DOUBLE) * (({_LOG1P.format('x')}) - "
         f"({_LOG1P.format('(-x)')})) END")
EXPM1 = ("CASE WHEN exp(x) = 1 THEN x WHEN x < -40 THEN CAST(-1 AS DOUBLE) WHEN x > 40 THEN exp(x) ELSE (exp(x) - "
         "CAST(1 AS DOUBLE)) * (x / ln(exp(x))) END")
LOG2 = "CASE WHEN {0} <= 0 THEN CAST(NULL AS DOUBLE) ELSE ln({0}) / ln(CAST(2 AS DOUBLE)) END"
LOG = "CASE WHEN {0} <= 0 OR {1} <= 0 THEN CAST(NULL AS DOUBLE) ELSE ln({1}) / ln({0}) END"
_LONGER, _SHORTER = "greatest(abs(p.x), abs(p.y))", "least(abs(p.x), abs(p.y))"
HYPOT = (f"CASE WHEN p.x IS NULL OR p.y IS NULL THEN CAST(NULL AS DOUBLE) WHEN isinf(p.x) OR isinf(p.y) THEN "
         f"{INFINITY} WHEN isnan(p.x) OR isnan(p.y) THEN {NAN} "
         f"WHEN {_LONGER} = 0 THEN CAST(0 AS DOUBLE) "
         f"ELSE {_LONGER} * sqrt(CAST(1 AS DOUBLE) + ({_SHORTER} / {_LONGER}) * ({_SHORTER} / {_LONGER})) END")
_ONE_ZERO = "CASE WHEN {0} = 0 THEN CAST(0 AS DOUBLE) ELSE {0} END"
ATAN2 = f"atan2({_ONE_ZERO.format('{0}')}, {_ONE_ZERO.format('{1}')})"
_TWO_52 = "CAST('4503599627370496' AS DOUBLE)"      # from here on doubles are whole; adding it rounds half to even
RINT = (f"CASE WHEN NOT abs(x) < {_TWO_52} OR x = 0 THEN x WHEN x < 0 AND x >= -0.5 THEN CAST('-0.0' AS DOUBLE) WHEN x "
        f"> 0 THEN (x + {_TWO_52}) - {_TWO_52} ELSE (x - {_TWO_52}) + {_TWO_52} END")


def _bit_sql(call: Call, args: Texts) -> str:
    return f"CAST((CAST({args[0]} AS BIGINT) >> {constant(call, 1)}) & 1 AS TINYINT)"


def _wrapped(value: str, kind: Type) -> str:
    """A whole number cut to its lowest bits, as Java does."""
    half, target = 2 ** (31 if kind == INT else 63), sql_type(kind, "duckdb")
    wide = "BIGINT" if kind == INT else "HUGEINT"
    mask = f"CAST('{2 * half - 1}' AS {wide})"
    return f"CAST(((({value}) + CAST('{half}' AS {wide})) & {mask}) - CAST('{half}' AS {wide}) AS {target})"


def _shift_left_sql(call: Call, args: Texts) -> str:
    wide = "BIGINT" if call.type == INT else "HUGEINT"
    return _wrapped(f"CAST({args[0]} AS {wide}) * CAST('{2 ** int(str(constant(call, 1)))}' AS {wide})", call.type)


def _shift_right_sql(call: Call, args: Texts) -> str:
    return f"({args[0]} >> {constant(call, 1)})"


def _unsigned_shift_sql(call: Call, args: Texts) -> str:
    places = int(str(constant(call, 1)))
    if not places:
        return args[0]
    wide, bits = ("BIGINT", 32) if call.type == INT else ("HUGEINT", 64)
    unsigned = f"(CAST({args[0]} AS {wide}) & CAST('{2 ** bits - 1}' AS {wide}))"
    return f"CAST({unsigned} >> {places} AS {sql_type(call.type, 'duckdb')})"


def _half_even_sql(call: Call, args: Texts) -> str:
    """By the whole number behind the decimal: what is cut off, doubled, against the unit that is left."""
    source = call.args[0].type
    cut = source.scale - call.type.scale
    if source.integral or cut <= 0:
        return f"CAST({args[0]} AS {sql_type(call.type, 'duckdb')})"
    unit = f"CAST('1{'0' * cut}' AS HUGEINT)"
    rest = f"abs(u % {unit})"
    up = f"CASE WHEN {rest} > {unit} - {rest} OR {rest} = {unit} - {rest} AND (u // {unit}) % 2 <> 0 THEN 1 ELSE 0 END"
    whole = f"(u // {unit} + CASE WHEN u < 0 THEN -({up}) ELSE {up} END)"
    rounded = f"list_transform([{unscaled(source, args[0])}], lambda u: {whole})[1]"
    return f"CAST({scaled(rounded, call.type.scale)} AS {sql_type(call.type, 'duckdb')})"


def _grouped_digits_sql(call: Call, args: Texts) -> str:
    """Half to the even digit; the sign is that of the number before it was rounded, as in Java."""
    source, digits = call.args[0].type, int(str(constant(call, 1)))
    kind = decimal(38, digits)
    if source.name == "decimal":
        rounded = _half_even((call.args[0], Literal(digits, INT)))
        assert isinstance(rounded, Call)
        value = f"CAST({_half_even_sql(rounded, (args[0], str(digits)))} AS {sql_type(kind, 'duckdb')})"
    else:
        value = f"CAST({args[0]} AS {sql_type(kind, 'duckdb')})"
    places = f" || '.' || right(CAST(v AS VARCHAR), {digits})" if digits else ""
    whole = "CAST(CAST(trunc(v) AS DECIMAL(38,0)) AS HUGEINT)"
    grouped = f"regexp_replace(reverse(CAST({whole} AS VARCHAR)), '([0-9][0-9][0-9])', '\\1,', 'g')"
    text = f"ltrim(reverse({grouped}), ','){places}"
    return (f"(CASE WHEN {args[0]} < 0 THEN '-' ELSE '' END || list_transform([abs({value})], lambda v: {text})[1])")


# Of bitmaps of 32,768 bits, as Spark's BitmapExpressionUtils has them
_BUCKET_NUMBER = "CASE WHEN {0} > 0 THEN 1 + ({0} - 1) // 32768 ELSE {0} // 32768 END"
_BIT_POSITION = ("CASE WHEN {0} > 0 THEN ({0} - 1) % 32768 ELSE CAST((-CAST({0} AS HUGEINT)) % 32768 AS BIGINT) END")


def _bucket_sql(call: Call, args: Texts) -> str:
    """Spark's WidthBucket.computeBucketNumber."""
    count = constant(call, 3)
    struct = f"{{'v': {args[0]}, 'a': {args[1]}, 'b': {args[2]}}}"
    none = ("p.v IS NULL OR p.a IS NULL OR p.b IS NULL OR isnan(p.v) OR p.a = p.b OR NOT isfinite(p.a) OR NOT "
            "isfinite(p.b)")
    number = f"CAST({count} AS DOUBLE)"
    rising = f"CAST(trunc(({number} * (p.v - p.a)) / (p.b - p.a)) AS BIGINT) + 1"
    falling = f"CAST(trunc(({number} * (p.a - p.v)) / (p.a - p.b)) AS BIGINT) + 1"
    formula = (f"CASE WHEN {none} THEN CAST(NULL AS BIGINT) WHEN p.a < p.b THEN CASE WHEN p.v < p.a THEN 0 WHEN p.v >= "
               f"p.b THEN {count} + 1 ELSE {rising} END ELSE CASE WHEN p.v > p.a THEN 0 WHEN p.v <= p.b THEN {count} + "
               f"1 ELSE {falling} END END")
    return f"CAST(list_transform([{struct}], lambda p: {formula})[1] AS BIGINT)"


def _row(name: str, about: str, duckdb: Template, quiet: bool = False, arguments: int = 1) -> Function:
    """A function of doubles."""
    return Function(partial(real, name), (Name(name.upper(), arguments, arguments, about),), name=name,
                    duckdb=duckdb, spark=f"{name}({{all}})", quiet="TRUE" if quiet else None)


ROWS: tuple[Written, ...] = (
    Written(partial(_constant, math.pi), (Name("PI", 0, 0, "3.14…, the ratio of a circle's circumference to its "
                                                           "diameter"),)),
    Written(partial(_constant, math.e), (Name("E", 0, 0, "2.71…, the base of natural logarithms"),)),
    _row("sin", "sine of an angle in radians", _finite("sin({0})")),
    _row("cos", "cosine of an angle in radians", _finite("cos({0})")),
    _row("tan", "tangent of an angle in radians", _finite("tan({0})")),
    _row("cot", "cotangent, 1 / TAN", _finite("CAST(1 AS DOUBLE) / tan({0})")),
    _row("sec", "secant, 1 / COS", _finite("CAST(1 AS DOUBLE) / cos({0})")),
    _row("csc", "cosecant, 1 / SIN", _finite("CAST(1 AS DOUBLE) / sin({0})")),
    _row("asin", "angle of a sine; NaN beyond 1", _within_one("asin")),
    _row("acos", "angle of a cosine; NaN beyond 1", _within_one("acos")),
    _row("atan", "angle of a tangent", "atan({0})"),
    _row("atan2", "angle of the point (second argument, first argument)", ATAN2, arguments=2),
    _row("sinh", "hyperbolic sine", "sinh({0})"),
    _row("cosh", "hyperbolic cosine", "cosh({0})"),
    _row("tanh", "hyperbolic tangent", "tanh({0})"),
    _row("asinh", "inverse hyperbolic sine", "asinh({0})"),
    _row("acosh", "inverse hyperbolic cosine; NaN below 1", ACOSH),
    _row("atanh", "inverse hyperbolic tangent; NaN beyond 1", _once(ATANH)),
    _row("degrees", "radians as degrees", f"({{0}} * {_DEGREES})"),
    _row("radians", "degrees as radians", f"({{0}} * {_RADIANS})"),
    _row("cbrt", "cube root", "cbrt({0})"),
    _row("hypot", "square root of the sum of both squares", _once_of_two(HYPOT), arguments=2),
    _row("rint", "nearest whole number as a double, the even one of two", _once(RINT)),
    _row("log2", "logarithm of base 2; NULL for 0 and below", LOG2, quiet=True),
    _row("log1p", "natural logarithm of 1 + x; NULL for -1 and below", _once(LOG1P), quiet=True),
    _row("expm1", "e to the power of x, less 1", _once(EXPM1)),
    Function(_logarithm, (Name("LOG", 1, 2, "natural logarithm, or the one of a base: LOG(base, x); NULL for 0 and "
                                            "below"),),
             name="log", duckdb=LOG, spark="log({0}, {1})", quiet="TRUE"),
    Function(_is_nan, (Name("ISNAN", 1, 1, "whether a number is NaN; FALSE for NULL"),), name="isnan",
             duckdb="coalesce(isnan({0}), FALSE)", spark="isnan({0})", order="all"),
    Written(_or_if_nan, (Name("NANVL", 2, 2, "second argument where the first is NaN"),)),
    Function(_factorial, (Name("FACTORIAL", 1, 1, "of 0 to 20, else NULL"),), name="factorial",
             duckdb="CASE WHEN {0} BETWEEN 0 AND 20 THEN CAST(factorial({0}) AS BIGINT) END", spark="factorial({0})",
             quiet="TRUE"),
    Function(partial(_text_of_whole, "bin"), (Name("BIN", 1, 1, "a whole number's bits as text"),), name="bin",
             duckdb="bin({0})"),
    Function(partial(_text_of_whole, "hex"), (Name("HEX", 1, 1, "a whole number, or the bytes of a string, in "
                                                                "hexadecimal"),),
             name="hex", duckdb="hex({0})"),
    Function(partial(_bits, "bit_and", "&"), operators=("&",), name="bit_and", duckdb="({0} & {1})"),
    Function(partial(_bits, "bit_or", "|"), operators=("|",), name="bit_or", duckdb="({0} | {1})"),
    Function(partial(_bits, "bit_xor", "^"), operators=("^",), name="bit_xor", duckdb="xor({0}, {1})",
             spark="({0} ^ {1})"),
    Function(_complement, operators=("~",), name="bit_not", duckdb="(~{0})"),
    Function(_bit_count, (Name("BIT_COUNT", 1, 1, "number of bits that are 1, of 64 where the number is negative"),),
             name="bit_count", duckdb="CAST(bit_count(CAST({0} AS BIGINT)) AS INTEGER)", spark="bit_count({0})"),
    Function(_bit, (Name("GETBIT", 2, 2, "the bit at a place (a constant; 0 is the lowest)"),
                    Name("BIT_GET", 2, 2, "the same")), name="getbit", duckdb=_bit_sql, spark="getbit({0}, {1})"),
    Function(partial(_shift, "shiftleft"), (Name("SHIFTLEFT", 2, 2, "bits moved up by so many places (a constant)"),),
             name="shiftleft", duckdb=_shift_left_sql, spark="shiftleft({0}, {1})"),
    Function(partial(_shift, "shiftright"), (Name("SHIFTRIGHT", 2, 2, "bits moved down, keeping the sign"),),
             name="shiftright", duckdb=_shift_right_sql, spark="shiftright({0}, {1})"),
    Function(partial(_shift, "shiftrightunsigned"),
             (Name("SHIFTRIGHTUNSIGNED", 2, 2, "bits moved down, filled up with 0"),),
             name="shiftrightunsigned", duckdb=_unsigned_shift_sql, spark="shiftrightunsigned({0}, {1})"),
    Function(_half_even, (Name("BROUND", 1, 2, "of decimals and whole numbers: half to the even digit, to so many "
                                               "digits (a constant)"),),
             name="bround", duckdb=_half_even_sql, spark="bround({0}, {1})"),
    Function(_grouped_digits, (Name("FORMAT_NUMBER", 2, 2, "a whole number or decimal as '1,234.50', with so many "
                                                           "places (a constant)"),),
             name="format_number", duckdb=_grouped_digits_sql, spark="format_number({0}, {1})"),
    Function(partial(_whole, "bitmap_bucket_number"),
             (Name("BITMAP_BUCKET_NUMBER", 1, 1, "number of the bitmap of 32,768 bits that has a value"),),
             name="bitmap_bucket_number", duckdb=_BUCKET_NUMBER, spark="bitmap_bucket_number({0})"),
    Function(partial(_whole, "bitmap_bit_position"),
             (Name("BITMAP_BIT_POSITION", 1, 1, "place of a value in its bitmap, from 0"),),
             name="bitmap_bit_position", duckdb=_BIT_POSITION, spark="bitmap_bit_position({0})"),
    Function(_bucket, (Name("WIDTH_BUCKET", 4, 4, "number of the bucket of a value among so many (a constant) between "
                                                  "two bounds"),),
             name="width_bucket", duckdb=_bucket_sql, spark="width_bucket({0}, {1}, {2}, {3})", quiet="TRUE"),
)
