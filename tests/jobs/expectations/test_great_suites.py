"""Suites as Great Expectations writes them: what SQL judges is what Great Expectations says, kind by kind, on random
tables; they are gates like ours; custom classes; what is refused.
"""
from __future__ import annotations

import json
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import forebay
from expectations.great import JUDGED_BY_SQL, GreatExpectation
from jobs.engine import kernel
from jobs.expectations import by_great
from jobs.expectations import findings as expect_ledger
from jobs.expectations import great
from jobs.expectations import statements as expect_sql
from jobs.pipeline import suites
from jobs.pipeline.schema import arrow
from optimizer.errors import ForebayError
from optimizer.expression.types import parse_type
from tests import seeds
from tests.jobs.pipelines import COUNT, boundary, opened, pipeline, ran, rows

pytestmark = pytest.mark.slow
TYPES = {name: parse_type(kind) for name, kind in {
    "i": "bigint", "j": "int", "t": "tinyint", "d": "double", "f": "float", "s": "string", "at": "timestamp",
    "b": "boolean", "m": "decimal(9,2)", "day": "date"}.items()}
WORDS = ["", "a", "b", "ab", "abc", "a\n", "b\n", "é", "日本", "a.b", "a+b", "x1", "X-9", "12", "１２", " ", "ab,c",
         "a/b"]
PATTERNS = ["a", "^a", "a.b", r"a\.b", "b$", "[a-c]+", "^[0-9]+$", r"\d", "a|b", "^(a|ab)c?", "x{1,2}", "[^a]", "A",
            " ", "(?i)a", "[a-z]{2}", r"a\+b", "^x[0-9]", "ab,"]
TABLES, ASKED = 4, 12      # random tables, and expectations of a kind that each is asked
START = datetime(2025, 1, 1, tzinfo=timezone.utc)


def values(draw: random.Random, kind: str) -> Any:
    if draw.random() < 0.2:
        return None
    if kind in ("bigint", "int", "tinyint"):
        most = {"tinyint": 127, "int": 2**31 - 1, "bigint": 2**63 - 1}[kind]
        return draw.choice([draw.randrange(-4, 5), draw.randrange(-4, 5), most, -most - 1, min(most, 2**53 + 1)])
    if kind in ("double", "float"):
        return draw.choice([0.0, -0.0, 1.0, 0.5, 1.5, -2.0, float("nan"), float("inf"), 3.0])
    if kind == "timestamp":
        return START + timedelta(microseconds=draw.choice([0, 1, 10**6, 86_400 * 10**6, -1]))
    if kind == "date":
        return (START + timedelta(days=draw.randrange(3))).date()
    if kind == "boolean":
        return draw.random() < 0.5
    if kind.startswith("decimal"):
        from decimal import Decimal
        return Decimal(draw.randrange(-300, 300)) / 100
    return draw.choice(WORDS)


def table(draw: random.Random) -> pa.Table:
    count = draw.choice([0, 1, 2, 5, 12])
    columns = {}
    for name, kind in TYPES.items():
        drawn = [values(draw, str(kind)) for _ in range(count)]
        if draw.random() < 0.3:
            drawn = [value if value is not None else values(random.Random(1), str(kind)) for value in drawn]
        columns[name] = pa.array(drawn, arrow(kind))
    return pa.table(columns)


def bounds(draw: random.Random, kind: str) -> dict[str, Any]:
    if kind == "timestamp":
        texts = ["2025-01-01", "2025-01-01T00:00:00.000001", "2025-01-01T00:00:01Z", "2025-01-02T01:00:00+01:00"]
        low, high = draw.choice(texts), draw.choice(texts)
    else:
        low, high = (draw.choice([draw.randrange(-3, 4), draw.randrange(-3, 4) + 0.5, 0.0, 127, 2**53 - 1, 2**60])
                     for _ in range(2))
    given: dict[str, Any] = {"min_value": low} if draw.random() < 0.7 else {}
    given |= {"max_value": high} if draw.random() < 0.7 or not given else {}
    if draw.random() < 0.4:
        given |= {draw.choice(["strict_min", "strict_max"]): draw.random() < 0.7}
    return given


def drawn(draw: random.Random, kind: str) -> dict[str, Any]:
    """Arguments of a kind, most of them sensible."""
    name = draw.choice(list(TYPES))
    type_ = str(TYPES[name])
    mostly = {"mostly": draw.choice([0, 0.5, 0.7, 1, 1.0, 2 / 3])} if draw.random() < 0.5 else {}
    match kind:
        case "expect_column_values_to_not_be_null" | "expect_column_values_to_be_null":
            return {"column": name, **mostly}
        case "expect_column_values_to_be_between":
            return {"column": name, **bounds(draw, type_), **mostly}
        case "expect_column_values_to_be_in_set" | "expect_column_values_to_not_be_in_set":
            members = draw.choice([[1, 2, 3], [0, -1, 127, 2**53 + 1], ["a", "ab", "é"], ["a\n", ""], [1.5, 1], [True]])
            return {"column": name, "value_set": members, **mostly}
        case "expect_column_values_to_match_regex" | "expect_column_values_to_not_match_regex":
            return {"column": draw.choice(["s", "s", "s", name]), "regex": draw.choice(PATTERNS), **mostly}
        case "expect_column_value_lengths_to_be_between":
            return {"column": draw.choice(["s", "s", name]), "min_value": draw.randrange(3), **mostly,
                    **({"max_value": draw.randrange(4)} if draw.random() < 0.5 else {})}
        case "expect_column_value_lengths_to_equal":
            return {"column": draw.choice(["s", "s", name]), "value": draw.randrange(4), **mostly}
        case "expect_column_values_to_be_unique":
            return {"column": name, **mostly}
        case "expect_table_row_count_to_equal" | "expect_table_column_count_to_equal":
            return {"value": draw.choice([0, 1, 2, 5, 10])}
        case "expect_table_row_count_to_be_between":
            return bounds(draw, "int")
        case "expect_column_to_exist":
            return {"column": draw.choice([name, "nobody"])}
        case "expect_table_columns_to_match_ordered_list":
            return {"column_list": draw.choice([list(TYPES), list(TYPES)[::-1], ["i"]])}
        case _:
            return {"column": name, **bounds(draw, type_)}


def by_sql(e: GreatExpectation, rows_: pa.Table) -> bool:
    con = kernel.shared()
    try:
        stamped = rows_.append_column("_boundary", pa.array([0] * rows_.num_rows, pa.timestamp("us", "UTC")))
        con.register("stamped", stamped)
        return not expect_sql.judge(con, "x", "stamped", "_boundary", (0,), [e], frozenset())
    finally:
        con.close()


@pytest.mark.parametrize("kind", JUDGED_BY_SQL)
def test_sql_judges_as_great_expectations(kind: str) -> None:
    draw = random.Random(f"{seeds.seed()} {kind}")
    by_sql_count, verdicts = 0, set[bool]()
    for _ in range(TABLES):
        rows_, asked = table(draw), list[GreatExpectation]()
        while len(asked) < ASKED:
            e = GreatExpectation("random", len(asked), kind, drawn(draw, kind), "critical", TYPES)
            if by_great.is_sql(e):
                asked.append(e)
        for e, observed in zip(asked, great.judged(asked, rows_, hidden=False)):
            by_sql_count += 1
            verdicts.add(by_sql(e, rows_))
            assert by_sql(e, rows_) == (observed is None), (str(e), observed, rows_.to_pylist())
    assert by_sql_count == TABLES * ASKED and (len(verdicts) == 2 or kind == "expect_column_to_exist")


def test_the_core_kinds_are_great_expectations_own() -> None:
    own = {suites.kind_of_class(name) for name in dir(great.gxe) if name.startswith("Expect")}
    own |= {"unexpected_rows_expectation"}
    assert own - {"expectation"} <= suites.CORE and set(JUDGED_BY_SQL) <= suites.CORE


def entry(kind: str, severity: str | None = None, **kwargs: Any) -> dict[str, Any]:
    """As Great Expectations writes it."""
    return {"type": kind, "kwargs": kwargs, "meta": {}, "id": "c8a239a6-fb80-4f51-a90e-40c38dffdf91",
            **({"severity": severity} if severity else {})}


def suite(folder: Path, name: str, *entries: dict[str, Any], file: str | None = None, **more: Any) -> None:
    (folder / "expectations").mkdir(exist_ok=True)
    document = {"name": name, "expectations": list(entries), "meta": {"great_expectations_version": "1.24.1"},
                "notes": None, **more}
    (folder / "expectations" / f"{file or name}.json").write_text(json.dumps(document))


def told(pipe: forebay.Pipeline) -> list[tuple[float, str, str, str, bool]]:
    """Boundary, subject, kind, severity, released: each that failed."""
    return sorted(((row["boundary"] - boundary(0)) / 1e6, row["subject"], row["expectation"].split("(")[0],
                   row["severity"], row["released"]) for row in expect_ledger.entered(pipe.runtime))


BETWEEN, PAIR, ROWS = ("expect_column_values_to_be_between", "expect_column_pair_values_a_to_be_greater_than_b",
                       "expect_table_row_count_to_be_between")
MEDIAN = "expect_column_median_to_be_between"
CLASSES = """
import great_expectations.expectations as gxe


class ExpectKeysBelowTen(gxe.ExpectColumnValuesToBeBetween):
    column: str = "k"
    max_value: float = 9
"""


def test_a_suite_is_a_gate(tmp_path: Path) -> None:
    """Severity as Great Expectations names it: critical, which is its default, stops; what SQL cannot judge, its own
    engine does.
    """
    pipe = pipeline(tmp_path, queries={"n": COUNT, "sums": "SELECT v.k, SUM(v.x) AS s FROM views AS v [WINDOW 10 "
                                                           "SECONDS] GROUP BY v.k"})
    suite(tmp_path, "views", entry(BETWEEN, "warning", column="x", min_value=2), entry(ROWS, "info", max_value=1),
          entry(PAIR, column_A="x", column_B="k", or_equal=True))
    suite(tmp_path, "sums", entry(BETWEEN, "warning", column="s", max_value=4),
          entry(MEDIAN, "warning", column="s", max_value=3))
    rows(pipe, [1, 2], k=1, x=[1, 3])
    rows(pipe, [11], k=1, x=9)
    rows(pipe, [21], k=5, x=4)
    with pytest.raises(ForebayError, match="boundary 2026-01-01T00:00:30Z is stopped: stream views expects "
                       f"{PAIR}.x, k, or_equal: true., observed: 1 of 1 rows fail") as stopped:
        pipe.run(flush=True)
    assert stopped.value.exit_code == 1
    assert told(pipe) == [(10.0, "query sums", MEDIAN, "warning", False),
                          (10.0, "stream views", BETWEEN, "warning", False),
                          (10.0, "stream views", ROWS, "info", False),
                          (20.0, "query sums", MEDIAN, "warning", False),
                          (20.0, "query sums", BETWEEN, "warning", False),
                          (30.0, "stream views", PAIR, "critical", False)]
    pipe.release(boundary(30), "that is so", expectation=PAIR)
    assert ran(pipe, flush=True) == [30]


def test_classes_of_the_operators_own(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"n": COUNT})
    suite(tmp_path, "mine", entry("expect_keys_below_ten", "critical"), meta={"forebay": {"stream": "views"}})
    with pytest.raises(ForebayError, match="no class of expectations/.*.py is called like it"):
        pipe.run()
    (tmp_path / "expectations" / "classes.py").write_text(CLASSES)
    rows(pipe, [1], k=3)
    rows(pipe, [11], k=10)
    with pytest.raises(ForebayError, match="expect_keys_below_ten.., observed: 1 of 1 rows fail"):
        pipe.run(flush=True)
    (tmp_path / "expectations" / "classes.py").write_text("raise RuntimeError('no')\n" + CLASSES)
    with pytest.raises(ForebayError, match="cannot be run: RuntimeError: no") as refused:
        opened(tmp_path).run(flush=True)
    assert refused.value.exit_code == 2


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "kind": ({"expectations": [entry("expect_column_max_to_be")]}, "did you mean expect_column_max_to_be_between"),
    "column": ({"expectations": [entry(BETWEEN, column="y", min_value=1)]}, "no column 'y'"),
    "severity": ({"expectations": [entry(BETWEEN, "row", column="x", min_value=1)]}, "known are critical, warning"),
    "kwargs": ({"expectations": [{"type": BETWEEN, "kwargs": [1]}]}, "write"),
    "no suite": ({"expectations": {}}, "no list `expectations`"),
    "name": ({"name": "../views", "expectations": []}, "a name has"),
    "ours": ({"name": "stream_views", "expectations": []}, "Forebay makes"),
    "subject": ({"name": "nobody", "expectations": []}, "there is no query 'nobody', and no stream"),
    "meta": ({"meta": {"forebay": {"table": "views"}}, "expectations": []}, "QUERY"),
    "taken": ({"expectations": [entry(PAIR, column_A="x", column_B=7)]}, "Great Expectations does not take"),
}


@pytest.mark.parametrize(("more", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_meant_is_refused_before_anything_begins(tmp_path: Path, more: dict[str, Any],
                                                                said: str) -> None:
    pipe = pipeline(tmp_path, queries={"n": COUNT})
    suite(tmp_path, more.get("name", "views"), file="views", **{k: v for k, v in more.items() if k != "name"})
    rows(pipe, [1])
    with pytest.raises(ForebayError) as refused:
        pipe.run(flush=True)
    assert refused.value.exit_code == 2 and said.lower() in str(refused.value).lower(), str(refused.value)
    assert pipe.runtime.ledger.begun() is None


def test_a_bad_call_of_great_expectations_own_is_a_finding(tmp_path: Path) -> None:
    """What it cannot judge does not hold, and says so; nothing crashes."""
    pipe = pipeline(tmp_path, columns="{ts: timestamp, k: string, x: bigint}", queries={"n": COUNT})
    suite(tmp_path, "views", entry("expect_column_mean_to_be_between", "warning", column="k", min_value=1))
    (tmp_path / "a.csv").write_text("ts,k,x\n2026-01-01T00:00:01Z,a,1\n")
    pipe.ingest("views", str(tmp_path / "a.csv"))
    entry_, = pipe.run(flush=True)["ran"]
    assert "could not be judged" in entry_["unexpected"][0]


def test_values_of_sensitive_columns_are_not_told(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, columns="{ts: timestamp, k: bigint, x: {type: bigint, sensitive: true}}",
                    queries={"n": COUNT})
    suite(tmp_path, "views", entry("expect_column_max_to_be_between", "warning", column="x", max_value=1),
          entry(MEDIAN, "warning", column="x", max_value=1))
    rows(pipe, [1], x=987654)
    unexpected = pipe.run(flush=True)["ran"][0]["unexpected"]
    assert len(unexpected) == 2 and not any("987654" in text for text in unexpected)
    pipe.expectations(docs=True)
    pages = [*(tmp_path / "warehouse/docs").rglob("*.*"), *(tmp_path / "warehouse/gx").rglob("*.*")]
    assert len(pages) > 5 and not [path for path in pages if path.is_file() and b"987654" in path.read_bytes()]


def test_the_context_has_suites_and_results_that_say_what_the_gate_says(tmp_path: Path) -> None:
    draw = random.Random(seeds.seed())
    pipe = pipeline(tmp_path, queries={"n": COUNT})
    kinds = [k for k in JUDGED_BY_SQL if not k.endswith(("_regex", "_to_equal")) and "length" not in k]
    types = {"ts": parse_type("timestamp"), "k": parse_type("bigint"), "x": parse_type("bigint")}
    asked = list[dict[str, Any]]()
    while len(asked) < 25:
        kind = draw.choice([*kinds, PAIR])
        kwargs = drawn(draw, kind) if kind != PAIR else {"column_A": "x", "column_B": "k"}
        kwargs |= {"column": draw.choice(["k", "x"])} if "column" in kwargs else {}
        instants = [kwargs.get(bound) for bound in ("min_value", "max_value") if isinstance(kwargs.get(bound), str)]
        if kind != "expect_table_columns_to_match_ordered_list" and not instants:
            asked.append(entry(kind, "warning", **kwargs))
    suite(tmp_path, "views", *asked)
    rows(pipe, [1, 2, 3, 4], k=[draw.randrange(4) for _ in range(4)], x=[draw.randrange(5) for _ in range(4)])
    pipe.run(flush=True)
    failing = {row["expectation"] for row in expect_ledger.entered(pipe.runtime)}
    pipe.expectations(docs=True)
    context = great.gx.get_context(mode="file", project_root_dir=str(tmp_path / "warehouse"))
    assert {"views", "stream_views", "query_n"} <= {found.name for found in context.suites.all()}
    assert len(context.suites.get("views").expectations) == len(asked)
    newest = max((tmp_path / "warehouse/gx/uncommitted/validations/views").rglob("*.json"),
                 key=lambda path: path.stat().st_mtime)
    results = json.loads(newest.read_text())["results"]
    assert len(results) == len(asked)
    for result in results:
        number = result["expectation_config"]["meta"][great.NUMBER]
        mine = GreatExpectation("views", number, asked[number]["type"], asked[number]["kwargs"], "warning", types)
        assert result["success"] == (str(mine) not in failing), str(mine)
    assert "views.html" in (tmp_path / "warehouse/docs/index.html").read_text()


@pytest.mark.parametrize(("more", "said"), WRONG.values(), ids=WRONG)
def test_check_refuses_the_same(tmp_path: Path, more: dict[str, Any], said: str) -> None:
    pipe = pipeline(tmp_path, queries={"n": COUNT})
    suite(tmp_path, more.get("name", "views"), file="views", **{k: v for k, v in more.items() if k != "name"})
    with pytest.raises(ForebayError) as refused:
        pipe.check()
    assert refused.value.exit_code == 2 and said.lower() in str(refused.value).lower()


def test_check_counts_suites(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"n": COUNT})
    suite(tmp_path, "views", entry(BETWEEN, column="x", min_value=2), entry(PAIR, column_A="x", column_B="k"))
    assert pipe.check()["expectations"] == 2
