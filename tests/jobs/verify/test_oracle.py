"""The oracle itself: against nested loops over each instant of small cases, against hand-computed answers, and on
random cases.
"""
from __future__ import annotations

from collections import Counter
from decimal import Decimal
from functools import cache
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from jobs.verify import text
from jobs.verify.recompute import compare, recompute
from jobs.verify.sql import Table, plain, straight
from optimizer.errors import ForebayError
from optimizer.expression.types import parse_type
from optimizer.query.model import Catalog
from optimizer.sql.parse import parse
from tests.oracle import answers, arrow, catalog, instant, stream_table, tables
from tests.streams import SECOND, Case, cases

COLUMNS = {"ts": "timestamp", "k": "int", "v": "bigint"}
BATCH = 10
# (event time, key, value, boundary) in units of one microsecond: instants can be enumerated
LEFT = [(0, 1, 5, 10), (1, 1, 7, 10), (9, 2, None, 10), (10, 1, 5, 20), (10, 1, 5, 20), (19, 2, 8, 20), (3, 1, 11, 30),
        (21, None, 4, 30), (29, 2, 6, 30), (40, 1, 3, 50)]
RIGHT = [(0, 2, 1, 10), (5, 1, 2, 10), (15, 1, 3, 20), (20, 2, 4, 30), (12, 2, 9, 40), (31, 1, 6, 40), (39, 2, 7, 40)]
BOUNDARIES = [10, 20, 30, 40, 50, 60, 70]
WINDOWS = {
    "sliding 20": "WINDOW 20 MICROSECONDS",
    "sliding 7": "WINDOW 7 MICROSECONDS",
    "tumbling 20": "WINDOW 20 MICROSECONDS TUMBLING",
    "hopping 30/20": "WINDOW 30 MICROSECONDS SLIDE 20 MICROSECONDS",
    "hopping 5/20": "WINDOW 5 MICROSECONDS SLIDE 20 MICROSECONDS",
    "landmark": "WINDOW UNTIL NOW"
}
PAIRED = [
    pytest.param(left, right,
                 marks=() if left == right or (left, right) == ("sliding 20", "landmark") else pytest.mark.slow)
    for left, right in product(WINDOWS, WINDOWS)
]


@cache
def member(window: str, ts: int, t: int) -> bool:
    """INTERFACE's table, word for word."""
    kind, _, lengths = window.partition(" ")
    length, _, slide = lengths.partition("/")
    if kind == "sliding":
        return t - int(length) <= ts < t
    if kind == "tumbling":
        return max(m for m in range(-100, t) if m % int(length) == 0) <= ts < t
    if kind == "hopping":
        return member(f"sliding {length}", ts, max(m for m in range(-100, t + 1) if m % int(slide) == 0))
    return ts < t


def small(sql: str) -> Case:
    return Case(BATCH, {"l": ("ts", COLUMNS, LEFT), "r": ("ts", COLUMNS, RIGHT)}, {}, sql, BOUNDARIES, False)


def rows(answer: Any) -> Counter[tuple[Any, ...]]:
    assert isinstance(answer, pa.Table)
    return Counter(tuple(row[n] for n in answer.column_names if n != "_magnitude") for row in answer.to_pylist())


@pytest.mark.parametrize("left,right", PAIRED)
def test_aggregates_are_those_of_nested_loops(left: str, right: str) -> None:
    case = small(
        f"""SELECT a.k, COUNT(*) AS n, SUM(a.v) AS s, MIN(b.v) AS m FROM l AS a [{WINDOWS[left]}], r AS b
        [{WINDOWS[right]}]
        WHERE a.k = b.k GROUP BY a.k EVERY 10 MICROSECONDS""")
    for t, answer in answers(case).items():
        pairs = [(a, b) for a, b in product(LEFT, RIGHT) if a[1] is not None and a[1] == b[1] and max(a[3], b[3]) <= t
                 and member(left, a[0], t) and member(right, b[0], t)]
        expected: Counter[tuple[Any, ...]] = Counter()
        for key in {a[1] for a, _ in pairs}:
            values = [a[2] for a, _ in pairs if a[1] == key and a[2] is not None]
            expected[(key, sum(a[1] == key for a, _ in pairs), sum(values) if values else None,
                      min(b[2] for a, b in pairs if a[1] == key))] += 1
        assert rows(answer) == expected, t


@pytest.mark.parametrize("left,right", PAIRED)
def test_each_combination_is_published_once_if_at_an_instant_all_are_in_their_windows(left: str, right: str) -> None:
    case = small(
        f"SELECT a.ts AS x, a.v AS av, b.ts AS y FROM l AS a [{WINDOWS[left]}], r AS b [{WINDOWS[right]}] WHERE a.k = "
        "b.k EVERY 20 MICROSECONDS"
    )
    previous = -1
    got = answers(case)
    assert list(got) == [20, 40, 60]
    for t, answer in got.items():
        expected = Counter((instant(a[0]), a[2], instant(b[0])) for a, b in product(LEFT, RIGHT)
                           if a[1] is not None and a[1] == b[1] and previous < max(a[3], b[3]) <= t
                           and any(member(left, a[0], i) and member(right, b[0], i) for i in range(200)))
        assert rows(answer) == expected, t
        previous = t


def test_a_query_created_later_begins_with_everything_known() -> None:
    case = small("SELECT a.ts, b.ts AS other FROM l AS a [WINDOW UNTIL NOW], r AS b [WINDOW UNTIL NOW] WHERE a.k = b.k")
    early, late = answers(case), answers(case, creation=40)
    assert rows(late[40]) == sum((rows(early[t]) for t in (10, 20, 30, 40)), Counter())
    assert rows(late[50]) == rows(early[50])


def test_late_rows_count_from_their_boundary_on() -> None:
    counts = {
        t: rows(a) for t, a in answers(
            small("SELECT COUNT(*) AS n, SUM(v) AS s FROM l [WINDOW 30 MICROSECONDS] WHERE k = 1")).items()
    }
    assert counts[20] == Counter({(4, 22): 1})           # 0, 1, 10, 10
    assert counts[30] == Counter({(5, 33): 1})           # and 3, late by two boundaries
    assert counts[70] == Counter({(1, 3): 1})            # 40: the first of its window


def test_an_empty_window_without_groups_is_one_row_and_with_groups_none() -> None:
    assert rows(answers(small("SELECT COUNT(*) AS n, AVG(v) AS a FROM l [WINDOW 10 MICROSECONDS]"))[70]) == Counter({
        (0, None): 1
    })
    assert rows(answers(small("SELECT k, COUNT(*) AS n FROM l [WINDOW 10 MICROSECONDS] GROUP BY k"))[70]) == Counter()


def test_a_relation_is_the_version_of_the_boundary() -> None:
    columns = {"k": "int", "name": "string"}
    case = Case(BATCH, {"l": ("ts", COLUMNS, LEFT)},
                {"names": (columns, [(0, [(1, "one"), (1, "uno")]), (30, [(1, "eins")])])},
                "SELECT n.name, COUNT(*) AS c FROM l [WINDOW UNTIL NOW], names AS n WHERE l.k = n.k GROUP BY n.name",
                BOUNDARIES, False)
    got = {t: rows(a) for t, a in answers(case).items()}
    assert got[20] == Counter({("one", 4): 1, ("uno", 4): 1})
    assert got[30] == Counter({("eins", 5): 1})


TYPED = {"ts": "timestamp", "i": "int", "b": "bigint", "d": "decimal(10,2)", "f": "double", "s": "string"}
VALUES = [(1, 7, 2 ** 62, Decimal("0.10"), 0.5, "x", 10), (2, -7, 2 ** 61, Decimal("0.20"), float("nan"), None, 10),
          (3, None, None, Decimal("0.25"), 2.0, "y", 10)]


@pytest.mark.parametrize("expression,expected",
                         [("SUM(i)", 0), ("AVG(i)", 0.0), ("AVG(d)", Decimal("0.183333")), ("SUM(d)", Decimal("0.55")),
                          ("AVG(-d)", Decimal("-0.183333")), ("SUM(d / 3)", Decimal("0.183333")), ("SUM(i / 2)", 0.0),
                          ("MIN(i DIV 2)", -3), ("MIN(i % 4)", -3), ("MAX(f) > 100", True), ("COUNT(t.*)", 3),
                          ("COUNT(s)", 2), ("COUNT(DISTINCT i % 7)", 1), ("MEDIAN(d)", 0.2),
                          ("PERCENTILE(d, 0.25)", 0.15), ("SUM(d * d)", Decimal("0.1125")),
                          ("STDDEV(d)", 0.07637626158259733), ("VAR_POP(i)", 49.0),
                          ("SUM(CAST(f AS INT)) FILTER (WHERE f < 10)", 2), ("MAX(CAST(d * 10 AS INT))", 2),
                          ("MIN(COALESCE(i, 1.5))", Decimal("-7.0")), ("MAX(UPPER(s))", "Y"),
                          ("COUNT(*) FILTER (WHERE i IS NULL OR b > 5)", 3),
                          ("SUM(CASE WHEN i = 7 THEN 1 ELSE b / 0 END) FILTER (WHERE i = 7)", 1.0),
                          ("MAX(b / NULLIF(i - 7, 0))", 2 ** 61 / -14)])
def test_values_are_those_of_spark_sql(expression: str, expected: object) -> None:
    case = Case(BATCH, {"t": ("ts", TYPED, VALUES)}, {}, f"SELECT {expression} AS x FROM t [WINDOW 10 MICROSECONDS]",
                [10], False)
    (value,), = rows(answers(case)[10])
    assert value == (pytest.approx(expected, rel=1e-12)
                     if isinstance(expected, float) else expected) and type(value) is type(expected)


@pytest.mark.parametrize("expression", [
    "SUM(b)", "SUM(b * 4)", "SUM(i / (i - 7))", "SUM(1 / (d - 0.25))", "MAX(i % (i - 7))", "MIN(CAST(s AS INT))",
    "SUM(i + 2147483641)", "MAX(b DIV (i + 7))"
])
def test_a_value_that_cannot_be_computed_fails_the_query_from_there_on(expression: str) -> None:
    good = (5, 1, 1, Decimal("1.00"), 1.0, "1", 10)
    later = [(ts + 10, *rest, 20) for ts, *rest, _ in VALUES] + [(14, 1, 2**62, None, None, None, 20)]
    case = Case(BATCH, {"t": ("ts", TYPED, [good, *later])}, {},
                f"SELECT {expression} AS x FROM t [WINDOW 10 MICROSECONDS]", [10, 20, 30], True)
    got = answers(case)
    assert list(got) == [10, 20] and isinstance(got[10], pa.Table)
    assert isinstance(got[20], ForebayError) and got[20].code == "query-failed" and got[20].exit_code == 1


def test_only_a_joined_row_can_fail_a_query() -> None:
    other = arrow({"k": "int", "z": "int"}, [(1, 1), (2, 0)])
    sql = "SELECT SUM(l.v / n.z) AS x FROM l [WINDOW 10 MICROSECONDS], n WHERE l.k = n.k AND {}"
    known = {"l": Table(COLUMNS, "ts"), "n": Table({"k": "int", "z": "int"})}
    data = {"l": stream_table(small(""), "l"), "n": other}

    def failed(condition: str) -> bool:
        return isinstance(recompute(sql.format(condition), data, known, BATCH, [20])[20], ForebayError)

    assert failed("TRUE") and failed("l.v / n.z > 0") and failed("n.z < 1")
    assert not failed("n.z <> 0") and not failed("l.v / n.z > 0 AND n.z <> 0") and not failed("l.v < 8")


def test_what_is_not_joined_fails_nothing() -> None:
    """DuckDB aggregates below a join where it can (partial_aggregate_pushdown)."""
    other = arrow({"k": "int"}, [(7,)] * 50 + [(1,)] * 50)
    left = {"ts": "timestamp", "k": "int", "x": "int", "y": "int"}
    rows_ = arrow({**left, "_boundary": "timestamp"}, [(i, 2, i, 0, 10) for i in range(5)] * 50 + [(5, 7, 4, 2, 10)])
    known = {"l": Table(left, "ts"), "n": Table({"k": "int"})}
    sql = "SELECT SUM(l.x / l.y) AS q, SUM(l.x DIV l.y) AS d FROM l [WINDOW 10 MICROSECONDS], n WHERE l.k = n.k"
    got = recompute(sql, {"l": rows_, "n": other}, known, BATCH, [10])
    assert rows(got[10]) == Counter({(100.0, 100): 1})


@pytest.mark.parametrize("windows,every", [
    (["10 SECONDS"], 5), (["20 SECONDS TUMBLING"], 20), (["20 SECONDS TUMBLING", "1 MINUTE SLIDE 10 SECONDS"], 20),
    (["20 SECONDS TUMBLING", "15 SECONDS TUMBLING"], 5),
    (["20 SECONDS TUMBLING", "UNTIL NOW"], 5), (["7 SECONDS SLIDE 30 SECONDS", "10 SECONDS TUMBLING"], 30)])
def test_when_answers_are_due(windows: list[str], every: int) -> None:
    entries = ", ".join(f"l AS x{i} [WINDOW {w}]" for i, w in enumerate(windows))
    text = "SELECT COUNT(*) FROM " + entries
    assert plain(text, {"l": Table(COLUMNS, "ts")}, 5 * SECOND).every == every * SECOND
    assert plain(text + " every 1 hour;", {"l": Table(COLUMNS, "ts")}, 5 * SECOND).every == 3600 * SECOND


def test_names_of_outputs_and_typography() -> None:
    text = "SELECT l.k, COUNT(*), MAX(l.v), sum(l.v + 1) FROM l [window 1 minute] WHERE ‘a’ <> 'b' GROUP BY l.k;"
    query = plain(text, {"l": Table(COLUMNS, "ts")}, SECOND)
    assert [name for name, _ in query.outputs] == ["k", "count", "max_v", "sum"]
    star = plain("SELECT * FROM l AS a [WINDOW 1 DAY], l [WINDOW 1 WEEK] AS b WHERE a.k = b.k",
                 {"l": Table(COLUMNS, "ts")}, SECOND)
    assert [name for name, _ in star.outputs] == ["ts", "k", "v", "b_ts", "b_k", "b_v"]
    assert [s.window for s in star.sources] == [("sliding", 86400 * SECOND, 0), ("sliding", 7 * 86400 * SECOND, 0)]


def test_joins_written_out_and_by_comma_are_the_same() -> None:
    forms = [
        "FROM l [WINDOW 30 MICROSECONDS], r [WINDOW UNTIL NOW] WHERE l.k = r.k",
        "FROM l [WINDOW 30 MICROSECONDS] JOIN r [WINDOW UNTIL NOW] ON l.k = r.k",
        "FROM l [WINDOW 30 MICROSECONDS] INNER JOIN r [WINDOW UNTIL NOW] USING (k)"
    ]
    first, *others = [answers(small(f"SELECT SUM(l.v * r.v) AS s {form}")) for form in forms]
    assert all(rows(other[t]) == rows(first[t])
               for other in others
               for t in first) and any(rows(a) != Counter({(None,): 1}) for a in first.values())


def test_answers_are_compared_as_multisets() -> None:
    def made(*values: tuple[Any, ...], total: float = 0.0) -> pa.Table:
        return pa.table({
            "k": pa.array([v[0] for v in values], pa.int64()),
            "x": pa.array([v[1] for v in values], pa.float64()),
            "_magnitude": pa.array([[None, total]] * len(values), pa.list_(pa.float64()))
        })

    nan, inf = float("nan"), float("inf")
    base = made((1, 0.5), (1, 0.5), (2, nan), (None, None), (3, inf))
    assert compare(base, made((3, inf), (None, None), (1, 0.5), (2, nan), (1, 0.5 + 1e-11))) == []
    assert compare(base, made((3, inf), (None, None), (1, 0.5), (2, nan))) == ["missing: (1, 0.5)"]
    assert len(compare(base, made((3, -inf), (None, None), (1, 0.5), (2, 0.0), (1, 0.6)))) == 6
    assert compare(made((1, 0.0), total=1e6), made((1, 1e-4))) == [] and compare(made(
        (1, 0.0), total=1e6), made((1, 1e-2))) != []
    assert compare(made((1, 0.0)), made((1, 1e-12))) != [] and compare(made((1, 0.0)), made((1, None))) != []
    assert compare(base, base.drop_columns(["x"])) == ["column 'x' is missing; there are k, _magnitude"]


def accepted(case: Case) -> str | None:
    """The refusal of the optimizer's front end, which is read here as another reader of the same text: it must agree on
    names and on when answers are due.
    """
    def typed(columns: dict[str, str]) -> tuple[tuple[str, Any], ...]:
        return tuple((n, parse_type(k)) for n, k in columns.items())

    streams = tuple((n, e, typed(c)) for n, (e, c, _) in case.streams.items())
    known = Catalog(case.batch_us, streams, tuple((n, typed(c)) for n, (c, _) in case.relations.items()))
    try:
        query = parse(case.sql, known)
    except ForebayError as error:
        return f"{error}: {case.sql}"
    other = plain(case.sql, catalog(case), case.batch_us)
    assert (query.every, [n for n, _ in query.outputs]) == (other.every, [n for n, _ in other.outputs])
    return None


@pytest.mark.parametrize("draws", [12, pytest.param(100, marks=pytest.mark.slow)])
def test_random_cases_run_have_rows_and_are_accepted(draws: int) -> None:
    counted: Counter[str] = Counter()
    refused: list[str] = []

    @settings(max_examples=draws, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(cases())
    def run(case: Case) -> None:
        refused.extend(filter(None, [accepted(case)]))
        got = answers(case, creation=case.boundaries[len(case.boundaries) // 2:][:3][-1])
        overflows = " * " in case.sql      # 40,000,000,000 times itself is more than a BIGINT holds
        assert case.may_fail or overflows or not any(isinstance(a, ForebayError) for a in got.values())
        counted.update(drawn=1, filled=any(isinstance(a, pa.Table) and a.num_rows for a in got.values()))

    run()
    assert counted["drawn"] >= draws and counted["filled"] > counted["drawn"] / 6      # some 40 of 100 on the average
    assert len(refused) <= max(2, counted["drawn"] // 20), refused[:5]


def test_a_case_can_be_pasted() -> None:
    names = {"Case": Case, "Decimal": Decimal, "nan": float("nan"), "inf": float("inf")}

    @settings(max_examples=10, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(cases())
    def run(case: Case) -> None:
        assert repr(eval(repr(case), names)) == repr(case)

    run()


@pytest.mark.spark
def test_spark_sql_gives_the_same_answers(spark: Any) -> None:
    @settings(max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(cases())
    def run(case: Case) -> None:
        few = Case(case.batch_us, case.streams, case.relations, case.sql, case.boundaries[-4:], case.may_fail)
        ours, theirs = answers(few), answers(few, "jvm", spark)
        assert list(ours) == list(theirs)
        for t, answer in ours.items():
            assert isinstance(answer, ForebayError) == isinstance(theirs[t], ForebayError)
            assert isinstance(answer, ForebayError) or compare(answer, theirs[t]) == []

    run()


def test_files_are_read_as_arrow_tables_are(tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    case = small("SELECT k, SUM(v) AS s FROM l [WINDOW UNTIL NOW] GROUP BY k")
    whole = stream_table(case, "l")
    for i, part in enumerate((whole.slice(0, 4), whole.slice(4))):
        pq.write_table(part, tmp_path / f"{i}.parquet")
    got = recompute(case.sql,
                    {"l": [str(tmp_path / "0.parquet"), str(tmp_path / "1.parquet")]}, catalog(case), BATCH, BOUNDARIES)
    assert {
        t: rows(a) for t, a in got.items()
    } == {
        t: rows(a) for t, a in recompute(case.sql, tables(case), catalog(case), BATCH, BOUNDARIES).items()
    }


@pytest.mark.parametrize(("text", "expected"), [
    ("\ufeffSELECT \u2018a\u2019 AS \u201cn\u201d\u00a0FROM l ; \n;", "SELECT 'a' AS \"n\" FROM l"),
    ("SELECT 1 -- it's\nFROM l EVERY 1 HOUR -- x", "SELECT 1   FROM l EVERY 1 HOUR"),
    ("SELECT 'it\u2019s\u00a0--', 'a''b;' /* x /* y */ ' */", "SELECT 'it\u2019s\u00a0--', 'a''b;'")])
def test_typography_is_made_plain_outside_quotes_only(text: str, expected: str) -> None:
    assert straight(text) == expected


@pytest.mark.parametrize(("select", "tail", "expected"),
                         [("SUM(i) AS b", "GROUP BY b HAVING b > 3", [(-7,), (7,)]),
                          ("-i AS i", "GROUP BY i HAVING i < 0", [(7,)]),
                          ("SUM(i) AS f", "GROUP BY b HAVING f > 0", [(7,)]),
                          ("'o''k [WINDOW 1 HOUR]' AS g, COUNT(*) AS n", "", [("o'k [WINDOW 1 HOUR]", 3)]),
                          ("MAX(d / 7L) AS x", "", [(Decimal("0.035714"),)]),
                          ("MAX(d / CAST(7 AS INT)) AS x", "", [(Decimal("0.0357142857143"),)]),
                          ("MAX(i + 2 || s) AS x", "", [("9x",)]),
                          ("PERCENTILE_CONT(0.0) WITHIN GROUP (ORDER BY i DESC) AS p", "", [(7.0,)]),
                          ("MEAN(i) AS m, STD(i) AS s", "", [(0.0, pytest.approx(98 ** 0.5))]),
                          ("MIN(7 DIV (i - 7)) AS x, i", "GROUP BY i HAVING i < 0", [(0, -7)])])
def test_names_constants_and_precedence_are_read_as_spark_reads_them(select: str, tail: str,
                                                                     expected: list[tuple[Any, ...]]) -> None:
    case = Case(BATCH, {"t": ("ts", TYPED, VALUES)}, {}, f"SELECT {select} FROM t [WINDOW 10 MICROSECONDS] {tail}",
                [10], False)
    assert sorted(rows(answers(case)[10]).elements()) == expected


def test_every_name_with_a_rule_is_one_that_is_read() -> None:
    unread = {name for name in text.RULED if name not in text._Dialect.Parser.FUNCTIONS}
    assert unread == {"PERCENTILE", "PMOD"}      # read by a parser of its own, and by its name
