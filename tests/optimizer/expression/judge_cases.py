"""What the judge asks: every function, operator and cast of the optimizer's tables over every type, and every form of a
constant, as users write them.

A row that is added to those tables is asked, too. What the parser refuses is left out: a refused query is no wrong
answer.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterator

import pyarrow as pa
from function_cases import calls
from scalar_cases import EDGES, TYPES
from scalar_cases import texts as listed

from optimizer.expression.functions.table import NAMES
from optimizer.expression.types import Type

# Constants of every kind that may stand where a column may.
CONSTANTS = ("0", "1", "-1", "7", "7L", "-7L", "7Y", "1.5", "-0.05", "0.5D", "1e3", "2.5f", "'abc'", "''",
             "'2000-02-29'", "'2000-02-29 12:34:56.789012'", "NULL", "TRUE", "DATE '2000-02-29'",
             "TIMESTAMP '1970-01-01 00:00:00'", "CAST(7 AS INT)", "CAST(NULL AS INT)", "CAST(NULL AS DECIMAL(3,3))",
             "INTERVAL 3 DAYS", "INTERVAL '1 hour 5 microseconds'", "'hour'", "'quarter'", "12345678901234567890",
             "9223372036854775807", "-(7)", "+7")
NUMBERS = ("0", "-0", "0012", "127", "128", "2147483647", "2147483648", "-2147483648", "9223372036854775807",
           "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "1" * 38, "1" * 39, "0.0", "-0.0",
           "00.10", ".5", "5.", "0." + "1" * 38, "0." + "1" * 39, "1.5", "-1.50", "1e3", "1E+3", "1e-3", "5.e3",
           "1e400", "1e-400", "1e", "1_000", "0x1F", "1.7976931348623157e308", "1.7976931348623158e308", "4.9e-324",
           "2e-324", "0.1", "1e22", "123456789.123456789e10")
SUFFIXED = ("5", "-5", "127", "128", "-128", "-129", "32767", "32768", "-32768", "-32769", "9223372036854775807",
            "9223372036854775808", "-9223372036854775808", "1.5", ".5", "5.", "1e3", "1e-5", "1.50", "0.1", "16777217",
            "3.4028234663852886e38", "3.4028235e38", "3.5e38", "1e-45", "1e-46", "7.038531e-26", "1e308", "1e309",
            "1" * 38, "1" * 39, "0.000")
STRINGS = (r"'o''k'", r"'a' 'b'", r"'a''' 'b'", r"'it\'s'", r'"a""b"', r'"it''s"', r"'say \"hi\"'",
           r"'tab\tline\nback\\slash'", r"'50\% a\_b'", "''", "'😀 é'", r"r'a\n'", r"X'1F'", "'--no comment'",
           "'/* nor this */'", "'a;b'", r"'[WINDOW 1 HOUR]'")
OTHERS = ("DATE '2000-02-29'", "DATE '2000-2-9'", "DATE '0001-01-01'", "DATE '9999-12-31'", "DATE '2001-02-29'",
          "TIMESTAMP '2000-02-29 12:34:56.789012'", "TIMESTAMP '2000-02-29'", "TIMESTAMP '2000-02-29T01:02:03Z'",
          "TIMESTAMP '2000-02-29 01:02:03+05:30'", "TIMESTAMP '2000-02-29 01:02'", "TRUE", "false", "NULL",
          "CAST(NULL AS INT)", "CAST(NULL AS DECIMAL(3,3))", "CAST(NULL AS STRING)", "TRY_CAST('x' AS INT)",
          "TRY_CAST(NULL AS DATE)", "-NULL", "+NULL")
# How each operator is written: {0}, {1}, {2} are its operands. A test holds these keys to those of OPERATORS.
FORMS = {
    **{
        sign: "{0} " + sign + " {1}"
        for sign in ("+", "-", "*", "/", "DIV", "%", "=", "<>", "<", "<=", ">", ">=", "<=>", "AND", "OR", "||", "&",
                     "|", "^", "RLIKE", "ILIKE")
    }, "NOT": "NOT {0}",
    "NEGATE": "-{0}",
    "PLUS": "+{0}",
    "IS NULL": "{0} IS NULL",
    "IN": "{0} IN ({1}, {2})",
    "LIKE": "{0} LIKE {1}",
    "~": "~{0}",
    "TRIM FROM": "TRIM(BOTH {1} FROM {0})",
    "LTRIM FROM": "TRIM(LEADING {1} FROM {0})",
    "RTRIM FROM": "TRIM(TRAILING {1} FROM {0})",
    "CASE": "CASE WHEN {2} IS NULL THEN {0} ELSE {1} END",
    "IF": "IF({0}, {1}, {2})"
}
MORE_FORMS = ("{0} IS NOT NULL", "{0} IS TRUE", "{0} IS NOT FALSE", "{0} IS DISTINCT FROM {1}",
              "{0} BETWEEN {1} AND {2}", "{0} NOT BETWEEN {1} AND {2}", "CASE {0} WHEN {1} THEN 1 ELSE 2 END",
              "{0} NOT IN ({1}, {2})", "-(-{0})", "{0} IN ({1})", "CASE WHEN {0} = {1} THEN 'a' END")
TARGETS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BOOLEAN", "DATE", "TIMESTAMP",
           "DECIMAL(1,0)", "DECIMAL(3,3)", "DECIMAL(5,1)", "DECIMAL(10,2)", "DECIMAL(20,0)", "DECIMAL(20,19)",
           "DECIMAL(38,0)", "DECIMAL(38,20)", "DECIMAL(38,37)", "DECIMAL(38,38)")
# What binds how tightly, and operands of operands.
PRECEDENCE = ("x_b = y_b IS NULL", "x_b = y_b IN (TRUE)", "NOT x_b = y_b", "NOT x_b AND y_b", "x_i32 < y_i32 = x_b",
              "x_b < y_b BETWEEN FALSE AND TRUE", "x_i32 + y_i64 || x_s", "x_s || x_i32 * 2", "x_s || '!' || x_i32",
              "'x' || 2 * 3", "-x_i8 * y_i64", "- -7", "x_i64 - -7", "x_i64 -7", "7 % 4 * 2", "2 * 7 % 4",
              "x_i64 DIV 7 * 3", "-7::string", "-7.5::int", "(x_i8 IS NULL)::string", "x_i8::string || 'z'",
              "x_i32 <=> NULL IS NULL", "x_b OR y_b AND z_b", "x_b IS NULL OR NOT y_b IS NULL",
              "x_i32 IS NOT NULL :: string", "x_i32 IN (1) IS NULL", "x_b = NOT y_b", "x_i32 IS NULL = TRUE",
              "'four: ' || 2 + 2", "'1' || x_i32 + 2", "x_i32 BETWEEN 0 AND 1 + 1",
              "x_b BETWEEN FALSE AND TRUE AND y_b", "x_i32 IS DISTINCT FROM y_i32 = x_b")


def candidates() -> Iterator[str]:
    """Everything that is asked; less than half of it are expressions that the parser accepts."""
    yield from NUMBERS
    yield from (f"{number}{suffix}" for number in SUFFIXED for suffix in ("L", "S", "Y", "D", "F", "BD"))
    wholes = [f"{number}{suffix}" for number in ("5", "-5", "100") for suffix in ("", "L", "S", "Y", "BD")]
    for whole, column, sign in itertools.product((*wholes, "CAST(5 AS INT)", "-(5)"), ("x_p10", "x_p38"),
                                                 ("+", "*", "/", "%", "=")):
        yield f"{column} {sign} {whole}"
    yield from (*STRINGS, *OTHERS, *PRECEDENCE)
    yield from listed()
    yield from calls()
    for word, value, target in itertools.product(("CAST", "TRY_CAST"), (*(f"x_{t}" for t in TYPES), *CONSTANTS),
                                                 TARGETS):
        yield f"{word}({value} AS {target})"
    for form in (*FORMS.values(), *MORE_FORMS):
        yield from (form.format(*operands) for operands in _operands(3 if "{2}" in form else 2 if "{1}" in form else 1))
    for name, function in NAMES.items():
        for count in range(function.least, min(function.most, max(function.least, 3)) + 1):
            yield from (f"{name}({', '.join(operands)})" for operands in _operands(count))


TRIPLES = (("1", "2"), ("-2", "9"), ("0", "NULL"), ("'b'", "'Z'"), ("7L", "1.5"), ("TRUE", "NULL"), ("y_i32", "0.5D"))
MIXED = (("b", "i32", "i64"), ("b", "i8", "p5"), ("b", "s", "s"), ("b", "dt", "ts"), ("i8", "p20", "i64"),
         ("p5", "i64", "p20"), ("f", "i32", "d"), ("ts", "dt", "ts"))


def _operands(count: int) -> Iterator[tuple[str, ...]]:
    """Columns of all types, in all pairs; constants in every place."""
    columns = [[f"{side}_{t}" for t in TYPES] for side in "xyz"]
    if count == 1:
        yield from ((c,) for c in (*columns[0], *CONSTANTS))
    elif count == 2:
        yield from itertools.product(columns[0], (*columns[1], *CONSTANTS))
        yield from itertools.product(CONSTANTS, columns[1])
    elif count == 3:
        yield from zip(*columns)
        yield from ((x, y, z) for x, y in zip(*columns[:2]) for z in (columns[0][0], "NULL", "7", "'b'"))
        yield from ((x, a, b) for x in columns[0] for a, b in TRIPLES)
        yield from ((f"x_{t}", f"y_{u}", f"z_{v}") for t, u, v in MIXED)


def _cycle(short: str) -> list[object]:
    """As many values for each type, NULL among them, so that one table of rows crosses the values of any two columns.
    """
    values = [*EDGES[short], None]
    return [values[i % len(values)] for i in range(WIDTH)]


WIDTH = max(map(len, EDGES.values())) + 1


def rows() -> pa.Table:
    """x_, y_ and z_ columns of every type: each value of an x_ beside each of a y_."""
    count = range(WIDTH**2)
    places = {
        "x": [i // WIDTH for i in count],
        "y": [i % WIDTH for i in count],
        "z": [(i * 7 + i // WIDTH) % WIDTH for i in count]
    }
    return pa.table({f"{side}_{short}": pa.array(_cycle(short), arrow_type(kind)).take(pa.array(at))
                     for side, at in places.items() for short, kind in TYPES.items()})


def arrow_type(kind: Type) -> pa.DataType:
    plain = {
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC")
    }
    return pa.decimal128(kind.precision, kind.scale) if kind.name == "decimal" else plain[kind.name]
