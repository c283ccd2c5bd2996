"""Functions of strings."""
from __future__ import annotations

import re
from functools import partial

from optimizer.errors import ForebayError
from optimizer.expression.arguments import Args, is_bare_null, want, whole_number
from optimizer.expression.casting import constant
from optimizer.expression.coercion import coerce, mismatch
from optimizer.expression.expr import Call, Expr, Literal, walk
from optimizer.expression.functions.conversion import cast
from optimizer.expression.functions.row import Function, Name, Texts, Written, infix
from optimizer.expression.types import BIGINT, BOOLEAN, INT, INTEGERS, STRING, Type


def _strings(function: str, result: Type, args: Args) -> Expr:
    """Functions whose arguments are all strings."""
    return Call(function, tuple(want(a, function.upper(), STRING) for a in args), result)


def refuse_nested_letters(args: Args) -> None:
    """UPPER's form in DuckDB repeats the argument, and LOWER's, so they do not nest."""
    if any(isinstance(e, Call) and e.function in ("upper", "lower", "ilike") for e in walk(args[0])):
        raise ForebayError("too-complex", "UPPER, LOWER and ILIKE are not accepted inside each other",
                           hint="leave the inner one out")


def _letters(function: str, args: Args) -> Expr:
    refuse_nested_letters(args)
    return _strings(function, STRING, args)


def checked_like(name: str, args: Args) -> Args:
    """The text and the constant pattern of LIKE and ILIKE."""
    text, pattern = want(args[0], name, STRING), args[1]
    if not isinstance(pattern, Literal) or pattern.type != STRING:
        raise mismatch(f"{name}'s pattern must be a string constant")
    unescaped = str(pattern.value)
    for escape in ("\\\\", "\\%", "\\_"):
        unescaped = unescaped.replace(escape, "")
    if "\\" in unescaped:
        raise ForebayError("bad-literal", f"{name}'s pattern has a \\ before something other than %, _ or \\",
                           hint="write \\\\\\\\ in the text for one backslash")
    return text, pattern


def _like(args: Args) -> Expr:
    return Call("like", checked_like("LIKE", args), BOOLEAN)


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


def _type_name(args: Args) -> Expr:
    """Spark never computes the argument."""
    if is_bare_null(args[0]):
        raise mismatch("NULL alone has no type", "give it one: CAST(NULL AS INT)")
    return Literal(str(args[0].type), STRING)


def _character(args: Args) -> Expr:
    if not args[0].type.integral:
        raise mismatch(f"CHR takes a whole number, not {args[0].type}")
    return Call("chr", (coerce(args[0], BIGINT),), STRING)


def _digest(args: Args) -> Expr:
    bits = whole_number(args[1], "SHA2's number of bits")
    if bits not in (0, 256):
        raise mismatch(f"SHA2 of {bits} bits is not offered", "256 is")
    return Call("sha2", (want(args[0], "SHA2", STRING), Literal(256, INT)), STRING)


def _without(args: Args) -> Expr:
    """REPLACE(text, part) takes the part out."""
    return _strings("replace", STRING, args if len(args) == 3 else (*args, Literal("", STRING)))


def _collation(args: Args) -> Expr:
    want(args[0], "COLLATION", STRING)
    return Literal("SYSTEM.BUILTIN.UTF8_BINARY", STRING)


def _formatted(args: Args) -> Expr:
    """FORMAT_STRING: %s of strings, whole numbers and truths, %d of whole numbers, %% for one %."""
    form = args[0].value if isinstance(args[0], Literal) and args[0].type == STRING else None
    if not isinstance(form, str):
        raise mismatch("FORMAT_STRING's form must be a string constant", "for instance '%s: %d'")
    parts: list[Expr] = [Literal("", STRING)]
    values = list(args[1:])
    for piece in re.split("(%[sd%])", form):
        if piece not in ("%s", "%d"):
            if "%" in piece.replace("%%", ""):
                raise mismatch(f"FORMAT_STRING's form {form!r} has a % that is not %s, %d or %%")
            parts.append(Literal(piece.replace("%%", "%"), STRING))
        elif not values or not _fits_form(piece, values[0].type):
            raise mismatch(f"FORMAT_STRING: {piece} has {values[0].type if values else 'no argument'}",
                           "%d takes whole numbers, %s strings, whole numbers and booleans")
        else:
            parts.append(Call("coalesce", (cast(values.pop(0), STRING), Literal("null", STRING)), STRING))
    if values:
        raise mismatch(f"FORMAT_STRING's form takes {len(args) - 1 - len(values)} arguments, not {len(args) - 1}")
    return _concatenation(tuple(parts))


def _fits_form(piece: str, kind: Type) -> bool:
    return kind.integral or piece == "%s" and kind in (STRING, BOOLEAN)


def _hashed(args: Args) -> Expr:
    """HASH: Murmur3 over all arguments, NULLs left out."""
    for arg in args:
        if is_bare_null(arg) or arg.type.name not in _HASHED:
            raise mismatch(f"HASH takes strings, whole numbers, booleans, dates and timestamps, not {arg.type}")
    return Call("hash", args, INT)


def _itself(name: str, args: Args) -> Expr:
    """Strings of a pipeline are valid UTF-8: others never come in."""
    return want(args[0], name, STRING)


# Their SQL
def _substring_sql(call: Call, args: Texts) -> str:
    """Spark counts position 0 as 1 and takes nothing where the length is not positive."""
    start, length = int(str(constant(call, 1))), int(str(constant(call, 2)))
    if length <= 0:
        return f"left({args[0]}, 0)"
    return f"substring({args[0]}, {start or 1}, {length})"


def _edge_sql(function: str, call: Call, args: Texts) -> str:
    return f"{function}({args[0]}, {max(0, int(str(constant(call, 1))))})"


# How each type's values are words of 32 bits
_HASHED = {"tinyint": "int", "smallint": "int", "int": "int", "boolean": "int", "date": "int", "bigint": "long",
           "timestamp": "long", "string": "text"}
_AS_NUMBER = {"boolean": "CAST({0} AS INTEGER)", "date": "({0} - DATE '1970-01-01')", "timestamp": "epoch_us({0})"}


def _hash_sql(call: Call, args: Texts) -> str:
    """Each argument's hash is the next one's seed; 42 is the first."""
    value = "CAST(42 AS HUGEINT)"
    for arg, text in zip(call.args, args):
        number = _AS_NUMBER.get(arg.type.name, "{0}").format("v")
        hashed = f"CASE WHEN v IS NULL THEN s ELSE spark_murmur_{_HASHED[arg.type.name]}({number}, s) END"
        value = f"list_transform([{value}], lambda s: list_transform([{text}], lambda v: {hashed})[1])[1]"
    return f"spark_signed({value})"


QUOTED = "(chr(39) || replace({0}, chr(39), chr(92) || chr(39)) || chr(39))"
# Bytes in UTF-8, each as % and two digits; other bytes have no text.
_CODED = ("%[0-7]H|%(?:C[2-9A-F]|DH)%[89AB]H|%E0%[AB]H%[89AB]H|%E[1-9A-CEF]%[89AB]H%[89AB]H|%ED%[89]H%[89AB]H|"
          "%F0%[9AB]H%[89AB]H%[89AB]H|%F[1-3]%[89AB]H%[89AB]H%[89AB]H|%F4%8H%[89AB]H%[89AB]H")
CODED = f"(?is)^(?:[^%]|{_CODED.replace('H', '[0-9A-F]')})*$"
PERCENT = "(?is)^(?:[^%]|%[0-9A-F][0-9A-F])*$"
NO_TEXT = "bytes that are no text in UTF-8"


def _decoded_sql(keyword: str, call: Call, args: Texts) -> str:
    """Malformed text is an error or NULL; what is well formed but no UTF-8 fails: Java would replace it."""
    text = args[0]
    return (f"CASE WHEN regexp_matches({text}, '{CODED}') THEN url_decode(replace({text}, '+', ' ')) WHEN "
            f"regexp_matches({text}, '{PERCENT}') THEN CAST(CAST('{NO_TEXT}' AS INTEGER) AS VARCHAR) WHEN ({text}) IS "
            f"NOT NULL THEN CAST({keyword}('CANNOT_DECODE_URL' AS INTEGER) AS VARCHAR) END")


def _spark_decoded(function: str, otherwise: str, call: Call, args: Texts) -> str:
    """Java keeps no way back (++, *+): it would keep one for each character."""
    coded, percent = (p.replace("[^%]", "[^%]++").replace(")*$", ")*+$") for p in (CODED, PERCENT))
    return (f"CASE WHEN {args[0]} RLIKE '{coded}' OR NOT {args[0]} RLIKE '{percent}' OR ({args[0]}) IS NULL THEN "
            f"{function}({args[0]}) ELSE CAST({otherwise} AS STRING) END")


ROWS: tuple[Written, ...] = (
    # Spark escapes with \ without being told so.
    Function(_like, operators=("LIKE",), name="like", duckdb="({0} LIKE {1} ESCAPE '\\')", spark="({0} LIKE {1})"),
    # Both macros are those of optimizer.expression.letters.
    Function(partial(_letters, "upper"),
             (Name("UPPER", 1, 1, "in upper case"), Name("UCASE", 1, 1, "the same as UPPER")),
             name="upper", duckdb="spark_upper({0})", spark="upper({0})"),
    Function(partial(_letters, "lower"),
             (Name("LOWER", 1, 1, "in lower case"), Name("LCASE", 1, 1, "the same as LOWER")),
             name="lower", duckdb="spark_lower({0})", spark="lower({0})"),
    # DuckDB's is a BIGINT.
    Function(partial(_strings, "length", INT),
             (Name("LENGTH", 1, 1, "number of characters"), Name("LEN", 1, 1, "the same as LENGTH"),
              Name("CHAR_LENGTH", 1, 1, "the same as LENGTH"), Name("CHARACTER_LENGTH", 1, 1, "the same as LENGTH")),
             name="length", duckdb="CAST(length({0}) AS INTEGER)", spark="length({0})"),
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
    Function(_without,
             (Name("REPLACE", 2, 3, "every occurrence of the second string by the third, or taken out"),),
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
    Function(partial(_strings, "octet_length", INT), (Name("OCTET_LENGTH", 1, 1, "number of bytes in UTF-8"),),
             name="octet_length", duckdb="CAST(strlen({0}) AS INTEGER)", spark="octet_length({0})"),
    Function(partial(_strings, "bit_length", INT), (Name("BIT_LENGTH", 1, 1, "number of bits in UTF-8"),),
             name="bit_length", duckdb="CAST(strlen({0}) * 8 AS INTEGER)", spark="bit_length({0})"),
    Function(partial(_strings, "ascii", INT), (Name("ASCII", 1, 1, "code point of the first character; 0 of none"),),
             name="ascii", duckdb="CASE WHEN {0} = '' THEN 0 ELSE unicode({0}) END", spark="ascii({0})"),
    Function(_character, (Name("CHR", 1, 1, "character of a number from 0 to 255, of which higher ones count the rest"),
                          Name("CHAR", 1, 1, "the same as CHR")),
             name="chr", duckdb="CASE WHEN {0} < 0 THEN '' ELSE chr(CAST({0} & 255 AS INTEGER)) END", spark="chr({0})"),
    # DuckDB's own reverses what looks like one character, with its accents, as one.
    Function(partial(_strings, "reverse", STRING), (Name("REVERSE", 1, 1, "characters from the last to the first"),),
             name="reverse", spark="reverse({0})",
             duckdb="coalesce(array_to_string(list_reverse(regexp_extract_all({0}, '(?s).')), ''), {0})"),
    Function(partial(_strings, "md5", STRING), (Name("MD5", 1, 1, "MD5 in hexadecimal"),), name="md5",
             duckdb="md5({0})"),
    Function(partial(_strings, "sha1", STRING), (Name("SHA1", 1, 1, "SHA-1 in hexadecimal"),
                                                 Name("SHA", 1, 1, "the same as SHA1")),
             name="sha1", duckdb="sha1({0})"),
    Function(_digest, (Name("SHA2", 2, 2, "SHA-256 in hexadecimal (the number of bits is 256 or 0)"),), name="sha2",
             duckdb="sha256({0})", spark="sha2({0}, {1})"),
    Function(partial(_strings, "base64", STRING), (Name("BASE64", 1, 1, "a string's bytes in base 64"),), name="base64",
             duckdb="to_base64(encode({0}))", spark="base64({0})"),
    Function(partial(_strings, "url_encode", STRING),
             (Name("URL_ENCODE", 1, 1, "as a form of a web page sends it: + for spaces, % and two digits for others"),),
             name="url_encode", spark="url_encode({0})",
             duckdb="replace(replace(replace(url_encode({0}), '%20', '+'), '~', '%7E'), '%2A', '*')"),
    Function(partial(_strings, "is_valid_utf8", BOOLEAN),
             (Name("IS_VALID_UTF8", 1, 1, "TRUE: strings of a pipeline are valid"),), name="is_valid_utf8",
             duckdb="({0} IS NOT NULL OR CAST(NULL AS BOOLEAN))", spark="is_valid_utf8({0})"),
    Written(partial(_itself, "VALIDATE_UTF8"), (Name("VALIDATE_UTF8", 1, 1, "the string, which is valid"),)),
    Written(partial(_itself, "TRY_VALIDATE_UTF8"), (Name("TRY_VALIDATE_UTF8", 1, 1, "the string, which is valid"),)),
    Written(partial(_itself, "MAKE_VALID_UTF8"), (Name("MAKE_VALID_UTF8", 1, 1, "the string, which is valid"),)),
    Function(_hashed, (Name("HASH", 1, 8, "Spark's hash of all arguments, NULLs left out (Murmur3 of 32 bits)"),),
             name="hash", duckdb=_hash_sql, spark="hash({all})", order="all"),
    Function(partial(_strings, "crc32", BIGINT), (Name("CRC32", 1, 1, "cyclic redundancy check of the bytes"),),
             name="crc32", duckdb="spark_crc32({0})", spark="crc32({0})"),
    Function(partial(_strings, "url_decode", STRING),
             (Name("URL_DECODE", 1, 1, "what URL_ENCODE made; fails where % is not followed by two digits"),),
             name="url_decode", duckdb=partial(_decoded_sql, "CAST"), fails=lambda call: True,
             spark=partial(_spark_decoded, "url_decode", f"raise_error('{NO_TEXT}')"),
             attempt=partial(_spark_decoded, "try_url_decode", "NULL")),
    Function(partial(_strings, "try_url_decode", STRING),
             (Name("TRY_URL_DECODE", 1, 1, "as URL_DECODE; NULL where % is not followed by two digits"),),
             name="try_url_decode", duckdb=partial(_decoded_sql, "TRY_CAST"), fails=lambda call: True,
             spark=partial(_spark_decoded, "try_url_decode", f"raise_error('{NO_TEXT}')"),
             attempt=partial(_spark_decoded, "try_url_decode", "NULL"),
             quiet=lambda call, args: f"try_url_decode({args[0]}) IS NULL"),
    Written(_formatted, (Name("FORMAT_STRING", 1, 1000, "a form (a constant) with %s and %d for the other arguments"),
                         Name("PRINTF", 1, 1000, "the same as FORMAT_STRING"))),
    Function(partial(_strings, "quote", STRING), (Name("QUOTE", 1, 1, "in quotes, those inside escaped"),),
             name="quote",
             duckdb=QUOTED, spark="quote({0})"),
    Written(_collation, (Name("COLLATION", 1, 1, "name of the string's collation, by bytes"),)),
    Written(_type_name, (Name("TYPEOF", 1, 1, "name of the argument's type"),)),
)
