"""Spark as the judge: the type and the values of expressions as Spark has them, row by row, also where a row fails.

And the same from our three forms.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from judge_cases import candidates, rows
from scalar_cases import COLUMNS, read

from jobs.verify.sql import Table, plain
from optimizer.errors import ForebayError
from optimizer.expression.expr import Column, Expr, columns
from optimizer.expression.scalar import DUCKDB_SETTINGS, fails, render, safe
from optimizer.expression.types import Type, parse_type

NULL, FAILS = "\x01null", "\x01fails"
SIZE = 40           # expressions a statement of Spark
# the last digits are the mathematics library's
INEXACT = ("EXP", "LN", "LOG", "POW", "SIN", "COS", "TAN", "COT", "SEC(", "CSC", "CBRT", "HYPOT")
TABLES = {"t": Table({name: str(kind) for name, kind in COLUMNS}, "x_ts")}
# docs/limits.md: what gives a day or time before the year 1 or after 9999 fails.
BEYOND = ("DATE_ADD", "DATE_SUB", "INTERVAL", "DATEADD", "TIMESTAMPADD", "ADD_MONTHS", "NEXT_DAY", "UTC_TIMESTAMP",
          "MAKE_DATE",
          "MAKE_TIMESTAMP")
NUMBERED = {"TIMESTAMP_SECONDS": 6 * 10**10, "TIMESTAMP_MILLIS": 6 * 10**13, "TIMESTAMP_MICROS": 6 * 10**16,
            "FROM_UNIXTIME": 6 * 10**10, "DATE_FROM_UNIX_DATE": 700_000}      # numbers beyond are near the ends
SIGNED = ("TO_TIMESTAMP", "TO_DATE", "UNIX_TIMESTAMP", "AS DATE", "AS TIMESTAMP", "DATE(", "TIMESTAMP(", "DATE '",
          "TIMESTAMP '", "_TS", "_DT")      # texts that stand beside times are read as such


@dataclass(frozen=True)
class Case:
    """An expression that the parser accepts, as it was written and as it was read."""

    text: str
    expr: Expr

    @classmethod
    def of(cls, text: str) -> Case:
        return cls(text, read(text))

    @property
    def type(self) -> Type:
        return self.expr.type


def cases(part: int = 0, parts: int = 1) -> list[Case]:
    """What the parser accepts of the candidates, or of every so manieth of them."""
    accepted = []
    for text in list(dict.fromkeys(candidates()))[part::parts]:
        try:
            accepted.append(Case.of(text))
        except ForebayError:
            continue
    return accepted


def name(leaf: Expr) -> str:
    assert isinstance(leaf, Column)
    return leaf.name


class Judge:
    """Spark with the rows as a view, and the kernel with the same.

    A part that two expressions share must fail in each by itself, and not before both.
    """

    def __init__(self, spark: Any) -> None:
        self.spark, self.duck, table = spark, duckdb.connect(), rows()
        spark.conf.set("spark.sql.subexpressionElimination.enabled", "false")
        for setting in DUCKDB_SETTINGS:
            self.duck.execute(setting)
        self.rows = table.num_rows
        numbers = pa.array(range(table.num_rows), pa.int32())
        self.duck.register("given", table.append_column("i", numbers))
        self.duck.execute("CREATE TABLE t AS SELECT * FROM given")
        frame = spark.createDataFrame(_integers(table).append_column("i", numbers))
        back = [
            f"date_from_unix_date({c}) AS {c}" if str(k) == "date" else
            f"timestamp_micros({c}) AS {c}" if str(k) == "timestamp" else f"CAST({c} AS {k}) AS {c}" for c, k in COLUMNS
        ]
        frame.selectExpr(*back, "i").repartition(1).persist().createOrReplaceTempView("t")

    def close(self) -> None:
        self.spark.conf.unset("spark.sql.subexpressionElimination.enabled")
        self.spark.catalog.dropTempView("t")

    def wrong(self, asked: list[Case]) -> list[str]:
        """What is not as Spark has it: refusals, types, values."""
        found, there = [], []
        for case in asked:
            kind = self._types([case.text])
            if kind is None or kind[0] != str(case.type):
                found.append(f"{case.text}: {case.type} here, {kind[0] if kind else 'refused'} in Spark")
            else:
                there.append(case)
        return found + [w for start in range(0, len(there), SIZE) for w in self._values(there[start:start + SIZE])]

    def judged(self, asked: list[Case]) -> list[str]:
        """As `wrong`, but types of many at once where all are accepted."""
        kinds = self._types([c.text for c in asked])
        if kinds is None or kinds != [str(c.type) for c in asked]:
            half = len(asked) // 2
            return self.judged(asked[:half]) + self.judged(asked[half:]) if half > 2 else self.wrong(asked)
        return [w for start in range(0, len(asked), SIZE) for w in self._values(asked[start:start + SIZE])]

    def _types(self, texts: list[str]) -> list[str] | None:
        try:
            frame = self.spark.sql(f"SELECT {', '.join(f'{text} AS e{i}' for i, text in enumerate(texts))} FROM t")
            return [field.dataType.simpleString() for field in frame.schema.fields]
        except Exception:      # refused by the parser or the analyser, whose errors have no common base
            return None

    def _values(self, asked: list[Case]) -> list[str]:
        forms = [f"{_attempt(form, c.type)} AS {side}{i}" for i, c in enumerate(asked)
                 for side, form in (("a", c.text), ("b", render(c.expr, "spark", name)))]
        try:
            there = self.spark.sql(f"SELECT {', '.join(forms)} FROM t ORDER BY i").toArrow()
        except Exception:      # any class, as above: what no function catches is looked at by itself
            return [w for case in asked for w in self._values([case])] if len(asked) > 1 else self._alone(asked[0])
        return [
            w for i, case in enumerate(asked) for w in self._differences(case, _typed(there.column(f"a{i}"), case.type),
                                                                         _typed(there.column(f"b{i}"), case.type))
        ]

    def _alone(self, case: Case) -> list[str]:
        """A value that Spark computes beside the expression (BETWEEN's first operand) fails the statement: so without
        the rows that fail here, and a few of those one by one."""
        ours = self._kernel(case)
        failing, near = [int(i) for i in np.flatnonzero(ours.fails)], self._near(case)
        try:
            there = self.spark.sql(f"SELECT {_attempt(case.text, case.type)} AS a, i FROM t "
                                   f"WHERE i NOT IN ({', '.join(map(str, failing or [-1]))}) ORDER BY i").toArrow()
        except Exception as error:
            return [f"{case.text}: {str(error).splitlines()[0][:200]}"]
        some = [i for i in [i for i in failing if not near[i]][:3] if not self._fails(case.text, i)]
        if some:
            return [f"{case.text} fails here, not in Spark, in row {some[0]}"]
        rest = _typed(there.column("a"), case.type)
        at = np.full(len(ours.fails), -1)
        at[there.column("i").to_numpy()] = np.arange(there.num_rows)
        places = pa.array([int(k) if k >= 0 else None for k in at], pa.int64())
        judged = Answer(rest.values.take(places), ours.fails)
        return self._differences(case, judged, None)

    def _fails(self, text: str, row: int) -> bool:
        try:
            self.spark.sql(f"SELECT {text} AS a FROM t WHERE i = {row}").toArrow()
            return False
        except Exception:      # any class, as above
            return True

    def _differences(self, case: Case, judged: Answer, twin: Answer | None) -> list[str]:
        answers: dict[str, Callable[[], Answer | None]] = {
            "in Spark SQL": lambda: twin,
            "in DuckDB": lambda: self._kernel(case),
            "verified": lambda: self._verified(case)
        }
        return [w for place, answer in answers.items() for w in self._difference(case, place, judged, answer)]

    def _difference(self, case: Case, place: str, judged: Answer, answer: Callable[[], Answer | None]) -> list[str]:
        try:
            ours = answer()
        except Exception as error:      # any: it is a finding
            return [f"{case.text} {place}: {type(error).__name__} {str(error).splitlines()[0][:200]}"]
        if ours is None:
            return []
        at = _first(case, judged, ours, self._near(case))
        if at is None:
            return []
        given = self.duck.execute(
            f"SELECT {', '.join(c.name for c in columns(case.expr)) or '1'} FROM t WHERE i = {at}").fetchall()[0]
        return [f"{case.text} {place}: {ours.shown(at)}, but {judged.shown(at)} in Spark, of {given}"]

    def _near(self, case: Case) -> np.ndarray[Any, Any]:
        """Rows from which some functions leave the calendar, so that they fail here."""
        upper = case.text.upper()
        if not any(word in upper for word in (*BEYOND, *NUMBERED, *SIGNED)):
            return np.zeros(self.rows, dtype=bool)
        tests = [f"year({c.name}) IN (1, 9999)" for c in columns(case.expr) if c.type.name in ("date", "timestamp")]
        numbers = [c.name for c in columns(case.expr) if c.type.integral]
        tests += [f"abs(CAST({c} AS HUGEINT)) > {most}" for word,
                  most in NUMBERED.items() for c in numbers if word in upper]
        tests += [f"{c} NOT BETWEEN 1 AND 9999" for c in numbers if "MAKE_" in upper]
        if any(word in upper for word in SIGNED):
            tests += [f"regexp_matches({c.name}, '^[-+]|^0000')" for c in columns(case.expr) if c.type.name == "string"]
        near = self.duck.sql(f"SELECT coalesce({' OR '.join(tests) or 'FALSE'}, FALSE) AS n FROM t ORDER BY i"
                             ).to_arrow_table().column("n")
        return np.asarray(near.to_numpy(zero_copy_only=False)).astype(bool)

    def _kernel(self, case: Case) -> Answer:
        doubt = fails(case.expr, "duckdb", name) or "FALSE"
        return _duck(self.duck, safe(case.expr, "duckdb", name), doubt, case.type)

    def _verified(self, case: Case) -> Answer | None:
        """None where the oracle refuses to compute it."""
        try:
            value = plain(f"SELECT {case.text} AS r FROM t [WINDOW UNTIL NOW]", TABLES, 1).outputs[0][1]
        except ForebayError as error:
            if error.code == "cannot-verify":
                return None
            raise
        kind = str(value.kind)
        wanted = {
            "int": "INTEGER",
            "string": "VARCHAR",
            "timestamp": "TIMESTAMPTZ"
        }.get(str(case.type),
              str(case.type).upper())
        if kind not in (wanted, "NULL"):
            raise TypeError(f"{kind}, not {wanted}")
        text = value.sql
        for column, _ in COLUMNS:
            text = text.replace(f'"t.{column}"', column)
        return _duck(self.duck, f"TRY({text})", f"TRY(hash({text})) IS NULL", case.type)


@dataclass(frozen=True)
class Answer:
    """Values by row, and which rows fail."""

    values: pa.Array
    fails: np.ndarray[Any, Any]

    def shown(self, at: int) -> str:
        return "fails" if self.fails[at] else repr(
            self.values[at].as_py()) if not pa.types.is_temporal(self.values.type) else str(self.values[at])


def _attempt(text: str, kind: Type) -> str:
    """The value as text, or that it fails: of Spark's functions that catch any error the one whose value is a text
    again.
    """
    plain = {"date": f"unix_date({text})", "timestamp": f"unix_micros({text})"}.get(kind.name, f"({text})")
    return f"coalesce(CAST(try_to_binary(coalesce(CAST({plain} AS STRING), '{NULL}'), 'utf-8') AS STRING), '{FAILS}')"


def _storage(kind: Type) -> pa.DataType:
    plain = {"float": pa.float64(), "double": pa.float64(), "string": pa.string(), "boolean": pa.bool_()}
    return pa.decimal128(kind.precision, kind.scale) if kind.name == "decimal" else plain.get(kind.name, pa.int64())


def _typed(column: pa.ChunkedArray, kind: Type) -> Answer:
    texts = column.combine_chunks()
    failing = pc.equal(texts, FAILS).to_numpy(zero_copy_only=False)
    absent = pc.or_(pc.equal(texts, NULL), pc.equal(texts, FAILS))
    values = pc.if_else(absent, pa.scalar(None, pa.string()), texts)
    # or it is rounded twice
    return Answer((values.cast(pa.float32()) if kind.name == "float" else values).cast(_storage(kind)), failing)


def _duck(duck: duckdb.DuckDBPyConnection, value: str, doubt: str, kind: Type) -> Answer:
    number = {
        "date": "CAST(({}) - DATE '1970-01-01' AS BIGINT)",
        "timestamp": "epoch_us({})"
    }.get(kind.name, "{}").format(value)
    table = duck.sql(f"SELECT {number} AS v, {doubt} AS f FROM t ORDER BY i").to_arrow_table()
    failing = table.column("f").combine_chunks().to_numpy(zero_copy_only=False).astype(bool)
    values = table.column("v").combine_chunks()
    values = values.cast(_storage(kind)) if values.type != _storage(kind) else values
    return Answer(pc.if_else(pa.array(failing), pa.scalar(None, values.type), values), failing)


def _first(case: Case, judged: Answer, ours: Answer, near: np.ndarray[Any, Any]) -> int | None:
    """The first row that differs; `near` are rows with days from which some more leave the calendar."""
    failing = judged.fails != ours.fails
    failing &= ~(ours.fails & near)
    left, right = (pc.fill_null(a.values.is_null(), True).to_numpy(zero_copy_only=False) for a in (judged, ours))
    differ = failing | (~judged.fails & ~ours.fails & ((left != right) |
                                                       (~left & ~right & _unequal(case, judged.values, ours.values))))
    return int(np.argmax(differ)) if differ.any() else None


def _unequal(case: Case, judged: pa.Array, ours: pa.Array) -> np.ndarray[Any, Any]:
    if not case.type.floating:
        return np.asarray(pc.fill_null(pc.not_equal(judged, ours), False).to_numpy(zero_copy_only=False))
    a, b = (v.fill_null(0.0).to_numpy(zero_copy_only=False) for v in (judged, ours))
    if case.type.name == "float":
        a, b = a.astype(np.float32), b.astype(np.float32)
    same = (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)
    if any(word in case.text.upper() for word in INEXACT):
        with np.errstate(invalid="ignore"):
            same |= np.abs(a - b) <= 1e-14 * np.abs(a)
    return np.asarray(~same)


def _integers(table: pa.Table) -> pa.Table:
    """Times as whole numbers: PySpark would shift them by the zone of this process."""
    kinds = [parse_type(str(k)) for _, k in COLUMNS]
    return pa.table({n: (c.cast(pa.int32()) if k.name == "date" else c.cast(pa.int64()) if k.name == "timestamp" else c)
                     for (n, c), k in zip(zip(table.column_names, table.columns), kinds)})
