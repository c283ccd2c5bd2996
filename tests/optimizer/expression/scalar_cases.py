"""Expressions and edge values on which DuckDB's form of a scalar expression and Spark's must agree.

Every expression is read by the real parser.
"""
from __future__ import annotations

import itertools
from datetime import date, datetime, timezone
from decimal import Context, Decimal
from functools import cache

from optimizer.expression.expr import Column, Expr, Literal, columns
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
from optimizer.query.model import Catalog
from optimizer.sql.parse import parse
from optimizer.time import micros

INF, NAN = float("inf"), float("nan")
TYPES = {
    "i8": TINYINT,
    "i16": SMALLINT,
    "i32": INT,
    "i64": BIGINT,
    "f": FLOAT,
    "d": DOUBLE,
    "p5": decimal(5, 2),
    "p10": decimal(10, 2),
    "p20": decimal(20, 4),
    "p38": decimal(38, 2),
    "p22": decimal(2, 2),
    "p1818": decimal(38, 18),
    "s": STRING,
    "b": BOOLEAN,
    "ts": TIMESTAMP,
    "dt": DATE
}
COLUMNS = tuple((f"{side}_{short}", kind) for side in ("x", "y", "z") for short, kind in TYPES.items())
CATALOG = Catalog(1_000_000, (("t", "x_ts", COLUMNS),), ())


def day(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


def at(text: str) -> int:
    return micros(datetime.fromisoformat(text).replace(tzinfo=timezone.utc))


def whole(bits: int) -> list[int]:
    top = 1 << (bits - 1)
    return [0, 1, -1, 2, 7, -7, 100, top - 1, -top, -top + 1]


def exact(kind: Type) -> list[Decimal]:
    top = 10**kind.precision - 1
    units = {
        0, 1, -1, 5 * 10 ** max(kind.scale - 1, 0), 15 * 10 ** max(kind.scale - 1, 0),
        -25 * 10 ** max(kind.scale - 1, 0), 3 * 10 ** kind.scale, top, -top, top // 3
    }
    return [Decimal(u).scaleb(-kind.scale, Context(prec=60)) for u in sorted(units) if abs(u) <= top]


EDGES: dict[str, list[object]] = {
    "i8": [*whole(8)],
    "i16": [*whole(16)],
    "i32": [*whole(32)],
    "i64": [*whole(64), 2 ** 53 + 1, 1_000_000],
    "f": [
        0.0, -0.0, 0.5, -2.5, 0.10000000149011612, 1.5e10, 2147483648.0, 9.223372036854776e18, 3.4028234663852886e38,
        INF, -INF, NAN
    ],
    "d": [
        1.7e38, 1e36, 0.0, -0.0, 0.5, 1.5, 2.5, -2.5, -0.4, 0.285, 1.005, 0.1, 3.0, 1e-7, 123456.785, 2147483647.5,
        -2147483648.5, 2.0 ** 52 + 1, 9.223372036854775807e18, -9.3e18, 1e20, 1e300, 5e-324, INF, -INF, NAN
    ],
    **{
        short: [*exact(kind)] for short, kind in TYPES.items() if kind.name == "decimal"
    }, "s": [
        "", " ", "abc", "ABC", "aBc def", " 5 ", "+5", "-0012", "5.", ".5", "1.5", "99.995", "1e3", "1e-3", "1_000",
        "1e400", "0x10", "1.5f", "2d", "NaN", "nan", "inf", "-Infinity", "+INF", "true", " T ", "no", "on", "2", "abc%",
        "a_c", "axc", "back\\slash", "it's", "line\nbreak", "\t7\n", "é", "\u00e9t\u00e9", "😀x", "straße ﬁx", "ΑΣ ΣΑΣ",
        "İĂ", "  both  ", "9223372036854775808", "128", "1e38", "1.7e38", "-9.3e18",
        "12345678901234567890123456789012345678901234567890", "0.000000000000000000000000000000000000000000001",
        "\u00a05", "--5", "+", ".", "abc\n", "x.html\r\n", "b\r", "c\u2028", "2000-02-29", "2000-02-29 12:34:56",
        "20000229",
        "29/02/2000", "2001-02-29", "2000-02-29T12:34:56", "2000-02-29 12:34:56.7", "+12000-01-01", "79927398713",
        "a,b,,c"
    ],
    "b": [True, False],
    "ts": [
        at("1970-01-01"), -1, 1,
        at("1969-12-31T23:59:59.500000"),
        at("2000-02-29T12:34:56.789012"),
        at("1582-10-10T01:02:03"),
        at("0001-01-01"),
        at("9999-12-31T23:59:59.999999"),
        at("2024-12-30T00:00:00.100000")
    ],
    "dt": [
        day("1970-01-01"),
        day("1969-12-31"),
        day("2000-02-29"),
        day("1582-10-10"),
        day("0001-01-01"),
        day("9999-12-31"),
        day("2024-12-29")
    ],
}
NUMERIC = ("i8", "i16", "i32", "i64", "f", "d", "p5", "p10", "p20", "p38", "p22", "p1818")
INTEGRAL = NUMERIC[:4]
DECIMAL = NUMERIC[6:]


TOO_WIDE = ("p20*", "p38/", "p1818+", "p1818-", "p1818*", "p1818/")         # refused: more than 38 digits


@cache
def read(text: str) -> Expr:
    """The expression behind SELECT text."""
    return parse(f"SELECT {text} AS r FROM t [WINDOW 1 HOUR]", CATALOG).outputs[0][1]


def short(column: Column) -> str:
    return column.name.split("_")[1]


def rows(expr: Expr, most: int = 400) -> list[tuple[object, ...]]:
    """Edge values of the columns that an expression reads, crossed, NULL among them.

    Thinned evenly where there are too many.
    """
    crossed = list(itertools.product(*([*EDGES[short(c)], None] for c in columns(expr))))
    step = -(-len(crossed) // most)
    return crossed[::step] if step == 1 else crossed[::step | 1]


def values(expr: Expr, found: list[tuple[object, ...]], dialect: str) -> str:
    """The rows as a VALUES table whose columns carry the names of those that the expression reads."""
    from optimizer.expression.scalar import literal

    used = columns(expr)
    lines = ", ".join("(" + ", ".join(literal(Literal(v, c.type), dialect)
                                      for v, c in zip(row, used)) + f", {i})"
                      for i, row in enumerate(found))
    names = ", ".join(c.name for c in used)
    return f"(VALUES {lines}) AS t({names}, i)" if dialect == "duckdb" else f"VALUES {lines} AS t({names}, i)"


def texts() -> list[str]:
    """Every function and operator with the types it takes."""
    found = [f"x_{t} {op} y_{t}" for t in NUMERIC for op in ("+", "-", "*", "/", "%") if t + op not in TOO_WIDE]
    found += [
        f"x_{t} {op} y_{u}" for t, u in (("i8", "i32"), ("i32", "i64"), ("i64", "p10"), ("p5", "p20"), ("i32", "d"),
                                         ("f", "i32"), ("p10", "d"), ("p20", "p10"), ("p10", "i32"))
        for op in ("+", "-", "*", "/", "%", "=", "<", "<=>")
    ]
    found += [f"x_{t} {op} y_{t}" for t in TYPES for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")]
    found += [f"{f}(x_{t})" for t in NUMERIC if not t.startswith(("p38", "p1818")) for f in ("-", "ABS")]
    found += [f"{f}(x_{t})" for t in NUMERIC for f in ("SIGN", "CEIL", "FLOOR", "SQRT", "EXP", "LN", "LOG10")]
    found += [f"x_{t} IS NULL" for t in TYPES] + [f"x_{t} IS NOT NULL"
                                                  for t in TYPES] + [f"x_{t} DIV y_{t}" for t in INTEGRAL]
    found += [f"PMOD(x_{t}, 7)" for t in INTEGRAL] + [f"POWER(x_{t}, y_{t})" for t in ("d", "i32", "p5")]
    found += [f"ROUND(x_{t}, {n})" for t in NUMERIC if t != "f" for n in (0, 1, 2, 5)]
    found += [f"x_i64 {op} {n}" for op in ("/", "%", "DIV", "*", "+") for n in (0, 1, -1, 3)]
    found += [f"x_p10 {op} {n}" for op in ("/", "%", "*", "+") for n in (3, "1.5", "0.001")]
    found += [
        f"{c}(x_{t} AS {u})" for c in ("CAST", "TRY_CAST") for t in NUMERIC
        for u in ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5,1)", "DECIMAL(20,3)",
                  "DECIMAL(38,0)", "DECIMAL(38,20)")
    ]
    found += [f"CAST(x_{t} AS STRING)" for t in (*INTEGRAL, *DECIMAL, "b", "dt", "ts")
              ] + [f"CAST(x_b AS {u})" for u in ("INT", "BIGINT", "TINYINT")]
    found += [
        f"{c}(x_s AS {u})" for c in ("CAST", "TRY_CAST")
        for u in ("TINYINT", "INT", "BIGINT", "DOUBLE", "BOOLEAN", "DECIMAL(5,2)", "DECIMAL(38,5)", "DECIMAL(3,0)")
    ]
    found += [
        "CAST(x_ts AS DATE)", "CAST(x_dt AS TIMESTAMP)", "TO_DATE(x_ts)", "x_ts + INTERVAL 5 MINUTES",
        "x_ts - INTERVAL 1 WEEK", "x_ts + INTERVAL '1 day 3 milliseconds'", "x_dt + INTERVAL 3 DAYS",
        "DATE_ADD(x_dt, 30)", "DATE_SUB(x_dt, 30)", "DATEDIFF(x_dt, y_dt)", "DATEDIFF(x_ts, y_dt)", "x_ts < y_dt",
        "x_dt = y_ts", "x_ts >= '2000-02-29 12:34:56.789012'", "x_dt < DATE '1970-01-01'",
        "x_ts = TIMESTAMP '1970-01-01 00:00:00'"
    ]
    found += [
        f"{f}(x_{t})" for t in ("ts", "dt")
        for f in ("YEAR", "QUARTER", "MONTH", "DAY", "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR", "HOUR", "MINUTE", "SECOND")
    ]
    found += [
        f"DATE_TRUNC('{u}', x_{t})" for t in ("ts", "dt")
        for u in ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
    ]
    found += [f"{f}(x_ts)" for f in ("UNIX_MICROS", "UNIX_MILLIS", "UNIX_SECONDS")]
    found += [f"{f}(x_s)" for f in ("UPPER", "LOWER", "LENGTH", "TRIM", "LTRIM", "RTRIM")
              ] + [f"{f}(x_s, y_s)" for f in ("CONTAINS", "STARTSWITH", "ENDSWITH", "CONCAT")]
    found += [f"SUBSTRING(x_s, {p}, {n})" for p in (-5, -2, -1, 0, 1, 2, 9)
              for n in (-1, 0, 1, 2, 9)] + [f"SUBSTR(x_s, {p})" for p in (-2, 0, 2)]
    found += [f"{f}(x_s, {n})" for f in ("LEFT", "RIGHT") for n in (-1, 0, 2)
              ] + ["x_s || y_s || 'é'", "CONCAT(x_s, x_i32, x_b)", "REPLACE(x_s, y_s, 'Z')", "REPLACE(x_s, 'b', '')"]
    found += [f"x_s LIKE '{p}'" for p in ("a%", "%c", "a_c", r"%\\%", r"a\_c", "%", "", "_", "%\\n%", "%é%", "back%")
              ] + ["x_s NOT LIKE 'a%'"]
    found += [
        "x_b AND y_b", "x_b OR y_b", "NOT x_b", "x_b IS TRUE", "x_b IS NOT FALSE", "x_b = y_b", "x_i32 IN (1, 7, NULL)",
        "x_s IN ('abc', 'é')", "x_i32 NOT IN (1, 7)", "x_i32 IN (y_i32, 7)", "x_i32 BETWEEN 0 AND 7",
        "x_i32 NOT BETWEEN y_i32 AND 7", "x_i32 IS DISTINCT FROM y_i32", "x_d IN (0.5D, 1.5D)"
    ]
    found += [
        f"{f}(x_{t}, y_{t})" for t in ("i32", "d", "p10", "s", "dt")
        for f in ("LEAST", "GREATEST", "COALESCE", "NULLIF", "NVL", "IFNULL")
    ]
    found += [
        f"x_{t} {op} {n} {c} {k}" for t in ("i32", "i64", "p38") for op, n in (("+", 1), ("-", 1), ("*", 2))
        for c, k in ((">", 0), ("<", 5), ("=", 4), ("<>", 4), ("<=>", 4))
    ]
    found += [f"{n} {op} x_i32 {c} {k}" for op, n in (("+", 1), ("-", 1), ("*", 2)) for c, k in ((">", 0), ("=", 4))]
    found += [
        "-x_i32 > 0", "ABS(x_i32) = 1", "x_i32 + 1 IN (1, 2)", "x_i32 + 1 BETWEEN 1 AND 2", "x_i32 + 1 IS NULL",
        "(x_i32 + 1) * 0 = 0", "0 * (x_i32 + 1)", "x_i32 + 1 = x_i32 + 1", "COALESCE(x_i32 + 1, 2) > 0",
        "NOT (x_i32 + 1 > 0)", "x_i32 - x_i32 + 1 > 0", "CAST(x_i64 AS INT) > 5", "CAST(x_d AS INT) = 1",
        "CAST(x_p10 AS TINYINT) = 1", "CAST(x_s AS INT) = 5", "CAST(x_s AS DECIMAL(5,2)) < 3",
        "CAST(x_i64 AS INT) IN (1, 7)", "x_i32 / 0 > 1", "x_i32 % 0 = 1", "x_i32 DIV 0 IS NULL",
        "x_ts + INTERVAL 1 DAY > '2000-01-01'"
    ]
    return found + LAZY


LAZY = [
    "IF(x_i32 > 0, 100 / x_i32, 0)", "CASE WHEN x_i32 = 0 THEN 0 ELSE 7 DIV x_i32 END",
    "CASE x_i32 WHEN 0 THEN 1 WHEN 7 DIV x_i32 THEN 2 END", "COALESCE(x_i32, 1 DIV y_i32)",
    "x_i32 <> 0 AND 10 / x_i32 > 1", "x_i32 = 0 OR 10 / x_i32 > 1", "x_b OR y_b OR x_i32 + 1 > 0",
    "10 / x_i32 > 1 AND x_b", "x_b AND 10 / x_i32 > 1 AND y_b", "x_i32 + 7 DIV y_i32", "7 DIV x_i32 + y_i32",
    "(x_i32 + 7 DIV y_i32) * y_i32", "x_i32 / y_i32 + y_i32 / x_i32", "x_i32 / (y_i32 / x_i32)",
    "LEAST(x_i32, 7 DIV y_i32)", "COALESCE(7 DIV x_i32, 7 DIV y_i32, 1)", "CAST(x_s AS INT) + x_i32",
    "x_i32 + CAST(x_s AS INT)", "CAST(x_s AS INT) IS NULL", "TRY_CAST(x_s AS INT) + 1 > 0 AND CAST(x_s AS INT) > 0",
    "NULLIF(x_i32, 0) + 1", "CONCAT(x_s, CAST(x_i32 + 1 AS STRING))", "NOT (10 / x_i32 > 1)", "x_i64 * y_i64 + x_i64",
    "CASE WHEN x_b THEN 1 / x_i32 WHEN y_b THEN 2 / x_i32 END", "x_i32 <=> 7 DIV y_i32", "(7 DIV x_i32) IS NULL",
    "x_i32 IN (7 DIV y_i32, 1)", "TRY_CAST(7 DIV x_i32 AS TINYINT)", "COALESCE(x_b, 1 / y_i32 > 0) AND x_i32 > 0"
]
