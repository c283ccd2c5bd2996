"""Calls of functions whose arguments are constants of their own kind: patterns, units, positions.

The judge draws all other calls from the table itself.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random

from scalar_cases import TYPES

from optimizer.errors import ForebayError
from optimizer.expression.expr import Expr

COLUMN = re.compile(r"\bx_[a-z]+[0-9]*\b")
PATTERNS = (r"a", r"^a", r"c$", r"^abc$", r"[0-9]+", r"\\d+\\.?\\d*", r"(\\w)(\\w)", r"([a-z]+) ?([a-z]*)", r"\\s",
            r"\\s+$",
            r"[^a-z]$", r".$", r"^.", r"(?i)A", r"(?i)[a-c]+", r"(?s)a.*", r"a|b|(c)", r"(?:ab|a)(c|bcd)?", r"\\S+",
            r"\\W",
            r"x{2}", r"[a-c]{1,2}?", r"é+", r"[é-ÿ]", r"😀", r"[^\\x00-\\x7F]", r"\\.", r"\\\\", r"\\(", r"\\p{Alpha}+",
            r"(a)|b", r"[\\w.]+@", r"\\n", r"\\r$", r".\\n$", r"[0-9a-f]{2}", r"-?[0-9]+$", r"a.c", r"[-+]?\\d+", r"'")
MANY_PATTERNS = tuple(p for p in PATTERNS if p not in (r"\\s+$", r"[^a-z]$", r"\\r$", r".\\n$"))
WRITTEN = ("yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss", "dd/MM/yyyy", "yyyyMMdd", "y-M-d H:m:s", "HH:mm:ss.SSS", "ss.SSSSSS",
           "S",
           "EEE, d MMM yyyy", "EEEE MMMM", "hh:mm a", "h a", "D DDD", "yy", "yyyy-MM-dd''T''HH:mm:ssXXX",
           "x xx xxx X XX Z z",
           "''it''''s''", "E EE", "yyyy.")
READ = ("yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss", "dd/MM/yyyy", "yyyyMMdd", "yyyy-MM-dd HH:mm:ss.SSS",
        "yyyy-MM-dd''T''HH:mm:ss",
        "yyyy", "yyyy-MM", "yyyyMMddHHmmss", "HH:mm dd.MM.yyyy", "yyyy-MM-dd HH:mm:ss.SSSSSS")
UNITS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "DAYOFYEAR", "WEEK", "MONTH", "QUARTER",
         "YEAR")
FIELDS = ("YEAR", "Y", "QUARTER", "MONTH", "MON", "WEEK", "W", "DAY", "D", "DAYOFWEEK", "DOW", "DAYOFWEEK_ISO",
          "DOW_ISO", "DOY",
          "YEAROFWEEK", "HOUR", "MINUTE", "SECOND", "SECS")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'" if "''" not in text else f"'{text}'"


def calls() -> Iterator[str]:
    """Each is an expression over x_, y_ and z_ columns."""
    yield from _of_patterns()
    yield from _of_strings()
    yield from _of_times()
    yield from _of_numbers()


def _of_patterns() -> Iterator[str]:
    for pattern in PATTERNS:
        yield f"x_s RLIKE {_quoted(pattern)}"
        yield f"REGEXP_EXTRACT(x_s, {_quoted(pattern)}, 0)"
        yield f"REGEXP_INSTR(x_s, {_quoted(pattern)})"
        yield f"REGEXP_SUBSTR(x_s, {_quoted(pattern)})"
        if "(" in pattern.replace("(?", "").replace("\\(", ""):
            yield f"REGEXP_EXTRACT(x_s, {_quoted(pattern)})"
    for pattern in MANY_PATTERNS:
        yield f"REGEXP_COUNT(x_s, {_quoted(pattern)})"
        yield f"REGEXP_REPLACE(x_s, {_quoted(pattern)}, '<$0>')" if "$" not in pattern else (
            f"REGEXP_REPLACE(x_s, {_quoted(pattern)}, '<>')")
    yield from (r"REGEXP_EXTRACT(x_s, '(\\w)(\\w)', 2)", r"REGEXP_REPLACE(x_s, '(\\w)(\\w)', '$2$1\\$\\\\')",
                "REGEXP(x_s, 'a')",
                "REGEXP_LIKE(x_s, '^a')", "RLIKE(x_s, 'b$')", "x_s NOT RLIKE 'a'", "REGEXP_REPLACE(x_s, "
                                                                                   "'([a-z])([0-9])?', '$2-$1')",
                r"REGEXP_EXTRACT(x_s, '(a|b)+c', 0)", r"REGEXP_EXTRACT(x_s, '([a-z]+)$', 1)", "REGEXP_REPLACE(x_s, "
                                                                                              "'([a-z])$', '$1$1')")
    for pattern in ("A%", "%C", "a_c", "%É%", "%SS%", "ΑΣ%", r"a\\_c", "", "%i̇%"):
        yield f"x_s ILIKE '{pattern}'"
    yield "x_s NOT ILIKE 'A%'"


def _of_strings() -> Iterator[str]:
    for n in (-1, 0, 1, 3, 7):
        yield from (f"{f}(x_s, {n}, '{p}')" for f in ("LPAD", "RPAD") for p in ("", "-", "xyz", "é😀"))
        yield f"LPAD(x_s, {n})"
        yield f"RPAD(x_s, {n})"
        yield f"REPEAT(x_s, {n})"
        yield f"SPACE({n})"
    for n in (-1, 0, 1, 2, 4):
        yield from (f"{f}(y_s, x_s, {n})" for f in ("LOCATE", "POSITION"))
    yield from ("POSITION('b' IN x_s)", "TRIM(BOTH ' a' FROM x_s)", "TRIM(LEADING 'a ' FROM x_s)", "TRIM(TRAILING ' "
                                                                                                   "cé' FROM x_s)",
                "TRIM(x_s)", "TRIM(y_s FROM x_s)", "LTRIM(x_s)",
                "SUBSTRING(x_s FROM 2 FOR 3)", "SUBSTRING(x_s FROM 2)", "OVERLAY(x_s PLACING 'é' FROM 2)",
                "OVERLAY(x_s PLACING 'é' FROM 2 FOR 0)", "OVERLAY(x_s, y_s, 1)", "OVERLAY(x_s, y_s, 3, 2)")
    for n in (1, 2, 5, -1, -2, -9):
        yield from (f"SPLIT_PART(x_s, '{p}', {n})" for p in (" ", "b", "😀", "ab", "."))
        yield from (f"SUBSTRING_INDEX(x_s, '{p}', {n})" for p in (" ", "b", "😀", "ab", ".", "1."))
    yield from ("FORMAT_STRING('%s-%d%%', x_s, x_i32)", "FORMAT_STRING('%s %s', x_b, x_i8)", "PRINTF('a')",
                "CRC32(x_s)", "HASH(x_s, y_i32, x_i64)",
                "HASH(CONCAT(x_s, y_s, z_s))", "HASH(x_dt, y_ts, x_b, y_i8, x_i16)", "HASH(CAST(NULL AS INT), x_s)",
                "QUOTE(x_s)", "COLLATION(x_s)", "URL_DECODE(x_s)", "TRY_URL_DECODE(x_s)", "URL_DECODE(URL_ENCODE(x_s))",
                "TRY_URL_DECODE(CONCAT('%4', x_i8))", "URL_DECODE('a+b%20c%C3%A9')", "TRY_URL_DECODE(CONCAT(x_s, '%'))")
    yield from ("SUBSTRING_INDEX(x_s, '', 1)", "SUBSTRING_INDEX(x_s, 'a', 0)", "TRANSLATE(x_s, 'abc', 'xy')",
                "TRANSLATE(x_s, 'aab', 'xyz')", "TRANSLATE(x_s, 'é😀1', '1é')", "TRANSLATE(x_s, '', 'x')",
                "TRANSLATE(x_s, 'a', '')",
                "ELT(1, x_s, y_s)", "ELT(2, x_s, y_s)", "SHA2(x_s, 256)", "SHA2(x_s, 0)", "LUHN_CHECK('79927398713')",
                "LUHN_CHECK(x_s)", "CONCAT_WS(',', x_s, y_s, 'z')", "CONCAT_WS(x_s, y_s, z_s)", "REPLACE(x_s, 'a')")


def _of_times() -> Iterator[str]:
    for pattern in WRITTEN:
        yield from (f"DATE_FORMAT(x_{t}, '{pattern}')" for t in ("ts", "dt"))
    yield from (f"FROM_UNIXTIME(x_{t}{more})" for t in ("i32", "i64", "i8") for more in ("", ", 'yyyy-MM-dd'"))
    for pattern in READ:
        yield from (f"{f}(x_s, '{pattern}')" for f in ("TO_TIMESTAMP", "TRY_TO_TIMESTAMP", "TO_DATE", "TRY_TO_DATE",
                                                       "TO_TIMESTAMP_LTZ", "UNIX_TIMESTAMP",
                                                       "TO_UNIX_TIMESTAMP"))
        yield from (f"{f}(DATE_FORMAT(x_ts, '{pattern}'), '{pattern}')" for f in ("TO_TIMESTAMP", "TO_DATE"))
    for unit in UNITS:
        yield from (f"{f}({unit}, {n}, x_{t})" for f in ("DATEADD", "TIMESTAMPADD", "DATE_ADD") for n in (-3, 0, 1, 25)
                    for t in ("ts", "dt"))
        yield from (f"{f}({unit}, x_{t}, y_{u})" for f in ("TIMESTAMPDIFF", "DATEDIFF",
                                                           "DATE_DIFF") if unit != "DAYOFYEAR"
                    for t, u in (("ts", "ts"), ("dt", "ts"), ("dt", "dt")))
    for field in FIELDS:
        yield from (f"EXTRACT({field} FROM x_{t})" for t in ("ts", "dt"))
        yield f"DATE_PART('{field}', x_ts)"
        yield f"DATEPART('{field.lower()}', x_dt)"
    yield from (f"ADD_MONTHS(x_{t}, {n})" for t in ("dt", "ts") for n in (-13, -1, 0, 1, 12, 25))
    yield from (f"MONTHS_BETWEEN(x_{t}, y_{u}{more})" for t, u in (("ts", "ts"), ("dt", "dt"), ("dt", "ts"))
                for more in ("", ", TRUE", ", FALSE"))
    yield from (f"NEXT_DAY(x_{t}, '{day}')" for t in ("dt", "ts") for day in ("MO", "tue", "Sunday"))
    yield from (f"TRUNC(x_{t}, '{unit}')" for t in ("dt", "ts") for unit in ("year", "YY", "quarter", "mon", "MM",
                                                                             "week"))
    yield from (f"DATE_TRUNC('{unit}', x_ts)" for unit in ("yyyy", "yy", "mon", "MM", "dd"))
    yield from (f"{f}(x_{t}, '{zone}')" for f in ("FROM_UTC_TIMESTAMP", "TO_UTC_TIMESTAMP") for t in ("ts", "dt")
                for zone in ("+02:00", "-05:30", "UTC", "+00:00"))
    yield from (f"MAKE_DATE(x_i32, {m}, {d})" for m, d in ((1, 1), (2, 29), (13, 1)))
    yield from (f"MAKE_DATE({y}, x_i8, y_i8)" for y in (2000, 1999))
    yield from (f"{f}({y}, x_i8, y_i8, {h}, z_i8, {s})" for f in ("MAKE_TIMESTAMP", "TRY_MAKE_TIMESTAMP",
                "MAKE_TIMESTAMP_LTZ", "TRY_MAKE_TIMESTAMP_LTZ") for y, h, s in (
                    (2000, 0, 0), (2001, 23, "59.999999"), (1999, 12, 60), (2000, 24, 1), (2000, 1, "60.5"), (2000, 1,
                                                                                                              "x_p5")))
    yield "TRY_MAKE_TIMESTAMP(2000, 2, x_i8, 1, 2, 3)"
    yield "MAKE_TIMESTAMP(x_i32, 2, 29, 1, 2, 3)"
    yield from (f"DATE_FROM_UNIX_DATE(x_{t})" for t in ("i8", "i16", "i32"))
    yield from ("UNIX_DATE(x_dt)", "LAST_DAY(x_ts)", "TO_TIMESTAMP(x_dt)", "TO_TIMESTAMP(x_ts)")


def _of_numbers() -> Iterator[str]:
    whole = ("i8", "i16", "i32", "i64")
    yield from (f"{f}(x_{t}, {n})" for f in ("SHIFTLEFT", "SHIFTRIGHT", "SHIFTRIGHTUNSIGNED") for t in whole
                for n in (0, 1, 5, 31, 33, 63, -1))
    yield from (f"{f}(x_{t}, {n})" for f in ("GETBIT", "BIT_GET") for t in whole for n in (0, 1, 7))
    yield from (f"WIDTH_BUCKET(x_{t}, {a}, {b}, {n})" for t in ("d", "i32", "p10")
                for a, b, n in ((0, 10, 5), ("-2.5", "7.25", 3), (10, 0, 5), (1, 1, 2), ("0", "1e300", 7), ("y_d",
                                                                                                            "z_d", 4)))
    yield from (f"{f}(x_{t}, y_{t})" for f in ("TRY_ADD", "TRY_SUBTRACT", "TRY_MULTIPLY", "TRY_DIVIDE", "TRY_MOD")
                for t in (*whole, "f", "d", "p5", "p10"))
    yield from (f"BROUND(x_{t}, {n})" for t in (*whole, "p5", "p10", "p20", "p38", "p22", "p1818") for n in (0, 1, 2,
                                                                                                             5))
    yield from (f"{f}(x_{t})" for f in ("BITMAP_BUCKET_NUMBER", "BITMAP_BIT_POSITION", "BROUND") for t in whole)
    yield from (f"FORMAT_NUMBER(x_{t}, {n})" for t in (*whole, "p5", "p10", "p20", "p22") for n in (0, 1, 2, 3, 5))
    yield from (f"DECODE(x_{t}, y_{t}, 'a', NULL, 'b', 'c')" for t in ("i32", "s", "d", "p5", "dt"))
    yield from ("DECODE(x_i32, 1, 'a', 7, 'b')", "DECODE(x_s, 'abc', 1, x_i32)", "DECODE(x_b, TRUE, 1, 2L)")
    yield from (f"TRY_ADD(x_{t}, y_{t}) > 5" for t in whole)
    yield from (f"{name}(x_{t})" for t in ("i8", "i64", "d", "p10", "s", "b") for name in (
        "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "STRING", "BOOLEAN"))
    yield from ("LOG(x_d, y_d)", "DATE(x_ts)", "TIMESTAMP(x_dt)", "PI()", "E()", "PI() * x_d", "x_i32 & 7 | 8 ^ 3",
                "x_i32 | y_i32 & 7",
                "x_i32 ^ y_i32 | 1", "1 + x_i8 & 3", "x_i32 & y_i32 = 0", "~x_i8", "- ~x_i32", "~x_i64 & y_i64")


def nested(choice: Random, count: int, read: Callable[[str], Expr]) -> Iterator[str]:
    """Calls in whose place of a column stands another call of the column's type, twice over where that is accepted."""
    known = [text for text in dict.fromkeys(calls()) if _accepted(text, read)]
    by_column: dict[str, list[str]] = {}
    for text in known:
        by_column.setdefault(f"x_{next((s for s, k in TYPES.items() if k == read(text).type), '')}", []).append(text)
    given = 0
    while given < count:
        text = choice.choice(known)
        for _ in range(2):
            columns = sorted({c for c in COLUMN.findall(text) if c in by_column})
            inner = choice.choice(by_column[choice.choice(columns)]) if columns else None
            place = f"x_{next(s for s, k in TYPES.items() if k == read(inner).type)}" if inner else ""
            deeper = re.sub(rf"\b{place}\b", lambda _, inner=inner: f"({inner})", text) if inner else text
            text = deeper if _accepted(deeper, read) else text
        if "((" in text or text.count("(") > 1:
            given += 1
            yield text


def _accepted(text: str, read: Callable[[str], Expr]) -> bool:
    try:
        return bool(read(text))
    except ForebayError:
        return False
