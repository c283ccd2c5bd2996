"""What INTERFACE says about queries, rule by rule: what is accepted and what it means, what is refused, where and with
which hint.
"""
from __future__ import annotations

import pytest

from optimizer.errors import ForebayError
from optimizer.expression.expr import AggregateRef, Call, Column, GroupRef, Literal, inputs
from optimizer.expression.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Type, decimal
from optimizer.query.model import Aggregate, Catalog, Query
from optimizer.query.windows import Window
from optimizer.sql.parse import parse

MINUTE, HOUR = 60_000_000, 3_600_000_000
VIEWS = (("ts", TIMESTAMP), ("user", STRING), ("page", STRING), ("ms", BIGINT), ("n", INT), ("price", decimal(
    10, 2)), ("score", DOUBLE), ("ok", BOOLEAN), ("day", DATE))
CLICKS = (("at", TIMESTAMP), ("user", STRING), ("page", STRING), ("amount", decimal(12, 3)), ("n", BIGINT))
BIDS = (("ts", TIMESTAMP), ("auction", BIGINT), ("bidPrice", BIGINT))
PAGES = (("page", STRING), ("section", STRING), ("weight", INT))
CATALOG = Catalog(10_000_000, (("views", "ts", VIEWS), ("clicks", "at", CLICKS), ("bids", "ts", BIDS)),
                  (("pages", PAGES),))
V, C = "views AS v [WINDOW 1 HOUR]", "clicks AS c [WINDOW 10 MINUTES]"
BOTH = f"{V}, {C} WHERE v.user = c.user"

AZURE = """SELECT DeviceID, System.Window().Id, MIN(T) AS MinTemp FROM Input TIMESTAMP BY EntryTime
GROUP BY DeviceID, Windows(Window('20 min', TumblingWindow(minute, 20)), Window('30 min', HoppingWindow(minute, 30,
    10)))"""


def query(text: str) -> Query:
    return parse(text, CATALOG)


def refused(text: str) -> ForebayError:
    with pytest.raises(ForebayError) as caught:
        query(text)
    assert caught.value.exit_code == 2
    return caught.value


def select(item: str, source: str = V) -> tuple[str, object]:
    return query(f"SELECT {item} FROM {source}").outputs[0]


def of(item: str) -> Type:
    return query(f"SELECT {item} AS r FROM {V}").outputs[0][1].type


def test_the_paper_query() -> None:
    found = query("""SELECT v.page, COUNT(*) AS n, SUM(c.amount) AS spent
    FROM views AS v [WINDOW 1 HOUR], clicks AS c [WINDOW 10 MINUTES], pages AS p
    WHERE v.user = c.user AND v.page = p.page AND p.section = 'news'
    GROUP BY v.page HAVING COUNT(*) > 10""")
    page = Column(0, "page", STRING)
    assert [(i.alias, i.source, i.window, i.event_time) for i in found.inputs] == [("v", "views", Window(
        "sliding", HOUR), "ts"), ("c", "clicks", Window("sliding", 10 * MINUTE), "at"), ("p", "pages", None, None)]
    assert found.equalities == ((Column(0, "user", STRING), Column(1, "user",
                                                                   STRING)), (page, Column(2, "page", STRING)))
    assert found.selections == (Call("eq", (Column(2, "section", STRING), Literal("news", STRING)), BOOLEAN),)
    assert found.residuals == () and found.groups == (page,)
    assert found.aggregates == (Aggregate("count", None,
                                          BIGINT), Aggregate("sum", Column(1, "amount", decimal(12, 3)), decimal(22,
                                                                                                                 3)))
    assert found.outputs == (("page", GroupRef(0, STRING)), ("n", AggregateRef(
        0, BIGINT)), ("spent", AggregateRef(1, decimal(22, 3))))
    assert found.having == Call("gt", (AggregateRef(0, BIGINT), Literal(10, BIGINT)), BOOLEAN)
    assert not found.returns_rows and not found.holistic and found.every == CATALOG.batch


@pytest.mark.parametrize(
    ("written", "window"), [("[WINDOW 1 HOUR]", Window("sliding", HOUR)),
                            ("[window 60 minutes]", Window("sliding", HOUR)),
                            ("[WINDOW 1 HOUR TUMBLING]", Window("tumbling", HOUR)),
                            ("[WINDOW 1 HOUR SLIDE 10 MINUTES]", Window("hopping", HOUR, 10 * MINUTE)),
                            ("[WINDOW UNTIL NOW]", Window("landmark")),
                            ("[ WINDOW\n90  seconds ]", Window("sliding", 90_000_000)),
                            ("[WINDOW 3600000000 MICROSECONDS]", Window("sliding", HOUR)),
                            ("[WINDOW 3600000 millisecond]", Window("sliding", HOUR)),
                            ("[WINDOW 1 WEEK]", Window("sliding", 168 * HOUR)),
                            ("[WINDOW /* one */ 1 DAY]", Window("sliding", 24 * HOUR)),
                            ("[WINDOW\u00a01 HOUR]", Window("sliding", HOUR))])
def test_windows(written: str, window: Window) -> None:
    for source in (f"views AS v {written}", f"views {written} AS v", f"views {written} v", f"views v{written}"):
        assert [(i.alias, i.window) for i in query(f"SELECT COUNT(*) FROM {source}").inputs] == [("v", window)]
    assert query(f"SELECT COUNT(*) FROM views {written}").inputs[0].alias == "views"


@pytest.mark.parametrize(("written", "code"),
                         [("", "no-window"), ("[WINDOW]", "bad-window"), ("[WINDOW 1.5 HOURS]", "bad-length"),
                          ("[WINDOW 0 SECONDS]", "bad-length"), ("[WINDOW -1 HOUR]", "bad-length"),
                          ("[WINDOW 1 MONTH]", "bad-length"), ("[WINDOW 1 HOUR SLIDE 15 SECONDS]", "bad-window"),
                          ("[WINDOW 15 SECONDS TUMBLING]", "bad-window"), ("[WINDOW 1 MICROSECOND] ", None),
                          ("[WINDOW 1000000 HOURS]", "bad-window"), ("[WINDOW 1 HOUR] [WINDOW 1 HOUR]", "bad-window"),
                          ("[1 HOUR]", "bad-window"), ("[WINDOW 1 HOUR", "bad-window"),
                          ("[WINDOW 1 HOUR SLIDE]", "bad-window"), ("[WINDOW 1 HOUR HOPPING]", "bad-window"),
                          ("[WINDOW 99999999999999999999 HOURS]", "bad-length"), ("[WINDOW 'x' HOURS]", "bad-length"),
                          ("[WINDOW 1 HOUR]]", "bad-window")])
def test_windows_refused(written: str, code: str | None) -> None:
    if code is None:
        return assert_pane_of_a_microsecond(written)
    error = refused(f"SELECT COUNT(*)\nFROM views {written}")
    assert (error.code, error.line) == (code, 2) and error.hint


def assert_pane_of_a_microsecond(written: str) -> None:
    assert query(f"SELECT COUNT(*) FROM views {written}").inputs[0].window == Window("sliding", 1)


@pytest.mark.parametrize(
    ("source", "every"),
    [("views [WINDOW 1 HOUR]", 10_000_000), ("views [WINDOW 1 HOUR TUMBLING]", HOUR),
     ("views [WINDOW 1 HOUR SLIDE 10 MINUTES]", 10 * MINUTE), ("views [WINDOW UNTIL NOW]", 10_000_000),
     ("views [WINDOW 1 HOUR TUMBLING] JOIN clicks [WINDOW 1 HOUR SLIDE 10 MINUTES] USING (user)", HOUR),
     ("views [WINDOW 1 HOUR TUMBLING] JOIN clicks [WINDOW 40 MINUTES TUMBLING] USING (user)", 10_000_000),
     ("views [WINDOW 1 HOUR TUMBLING] JOIN clicks [WINDOW 1 HOUR] USING (user)", 10_000_000),
     ("views [WINDOW 1 HOUR TUMBLING] JOIN pages USING (page)", HOUR), ("views [WINDOW 1 HOUR] EVERY 1 HOUR", HOUR),
     ("views [WINDOW 1 HOUR TUMBLING] every 20 seconds ;", 20_000_000)])
def test_every(source: str, every: int) -> None:
    assert query(f"SELECT COUNT(*) FROM {source}").every == every


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [(f"SELECT COUNT(*) FROM {V} EVERY 15 SECONDS", "bad-every", 1, 49),
     (f"SELECT COUNT(*) FROM {V} EVERY 1.5 HOURS", "bad-length", 1, 49),
     (f"SELECT v.pagee FROM {V}", "unknown-column", 1, 8), (f"SELECT x.page FROM {V}", "unknown-input", 1, 8),
     ("SELECT 1 FROM viewz [WINDOW 1 HOUR]", "unknown-input", 1, 15), ("SELECT 1 FROM pages", "no-stream", 1, 15),
     ("SELECT 1 FROM pages [WINDOW 1 HOUR], views [WINDOW 1 HOUR]", "window-on-relation", 1, 21),
     ("SELECT 1", "no-stream", 1, 1), (f"SELECT COUNT(*) FROM {V}, {C}", "cross-product", 1, 50),
     (f"SELECT COUNT(*) FROM {V}, {C} WHERE v.user < c.user", "cross-product", 1, 50),
     (f"SELECT user FROM {BOTH}", "ambiguous-column", 1, 8),
     (f"SELECT COUNT(*) FROM {V}, views AS V [WINDOW 1 HOUR]", "ambiguous-input", 1, 50),
     (f"SELECT page, ms FROM {V} GROUP BY page", "not-grouped", 1, 14),
     (f"SELECT page, COUNT(*) FROM {V}", "not-grouped", 1, 8),
     (f"SELECT COUNT(*) FROM {V} HAVING ms > 1", "not-grouped", 1, 56),
     (f"SELECT COUNT(*) FROM {V} WHERE COUNT(*) > 1", "misplaced-aggregate", 1, 55),
     (f"SELECT SUM(MAX(ms)) FROM {V}", "misplaced-aggregate", 1, 12),
     (f"SELECT COUNT(*) FROM {V} GROUP BY MAX(ms)", "misplaced-aggregate", 1, 58),
     (f"SELECT COUNT(*) AS c FROM {V} GROUP BY c", "misplaced-aggregate", 1, 8),
     (f"SELECT page FROM {V} HAVING page = 'x'", "not-supported", 1, 52),
     (f"SELECT *, COUNT(*) FROM {V}", "not-supported", 1, 8), (f"SELECT SUM(page) FROM {V}", "type-mismatch", 1, 8),
     (f"SELECT MEDIAN(user) FROM {V}", "type-mismatch", 1, 8),
     (f"SELECT COUNT(page, user) FROM {V}", "wrong-arguments", 1, 8),
     (f"SELECT COUNT(DISTINCT page, user) FROM {V}", "wrong-arguments", 1, 8),
     (f"SELECT SUM(DISTINCT ms) FROM {V}", "not-supported", 1, 8),
     (f"SELECT ms AS boundary FROM {V}", "reserved-name", 1, 8), (f"SELECT ms AS _x FROM {V}", "reserved-name", 1, 8),
     (f"SELECT ms AS Query FROM {V}", "reserved-name", 1, 8), (f"SELECT ms AS `a b` FROM {V}", "bad-name", 1, 8),
     (f"SELECT ms, n AS MS FROM {V}", "repeated-column", 1, 12),
     (f"SELECT MAX(ms), MAX(ms) FROM {V}", "repeated-column", 1, 17),
     (f"SELECT bogus(ms) FROM {V}", "unknown-function", 1, 8),
     (f"SELECT rand() AS r FROM {V}", "not-deterministic", 1, 8),
     (f"SELECT current_timestamp FROM {V}", "not-deterministic", 1, 8),
     (f"SELECT ms FROM {V} WHERE ms", "type-mismatch", 1, 49),
     (f"SELECT ms = ok AS r FROM {V}", "type-mismatch", 1, 8),
     (f"SELECT 1 FROM {V} WHERE ts > 'soon'", "bad-literal", 1, 48),
     (f"SELECT ms FROM {V} GROUP BY 2", "wrong-group", 1, 52),
     (f"SELECT COUNT(*) FROM {V} GROUP BY 'x'", "wrong-group", 1, 58),
     (f"SELECT ms + INTERVAL 1 MONTH AS r FROM {V}", "type-mismatch", 1, 8),
     (f"SELECT ABS(ms, 1) AS r FROM {V}", "wrong-arguments", 1, 8),
     (f"SELECT LEFT(page, n) AS r FROM {V}", "type-mismatch", 1, 8),
     (f"SELECT CAST(ok AS TIMESTAMP) AS r FROM {V}", "type-mismatch", 1, 13),
     (f"SELECT CAST(user AS BINARY) AS r FROM {V}", "unknown-type", 1, 13),
     (f"SELECT v.ms FROM {V} LEFT JOIN clicks AS c [WINDOW 1 HOUR] ON v.user = c.user", "not-supported", 1, 1),
     (f"SELECT COUNT(*) FROM {V} JOIN clicks AS c [WINDOW 1 HOUR]", "no-condition", 1, 49),
     (f"SELECT ms, FROM {V}", "syntax", 1, 10), (f"SELECT ms FROM {V} EVERY 1", "bad-every", 1, 43),
     (f"SELECT ms FROM {V} ORDER BY 2", "wrong-order", 1, 52),
     (f"SELECT ms FROM {V}; DROP TABLE views", "several-statements", 1, 42),
     (f"SELECT ms FROM {V} -- x\nWHERE (", "syntax", 2, 7), ("", "not-a-select", 1, 1),
     ("DELETE FROM views", "not-a-select", 1, 1), (f"SELECT ms FROM {V} WHERE ms > 1 \x07", "bad-character", 1, 56),
     (f"SELECT 'a\x00b' AS r FROM {V}", "bad-character", 1, 10), (f"SELECT 'open FROM {V}", "syntax", 1, 8),
     (f"SELECT ms /* open FROM {V}", "syntax", 1, 11), (f"SELECT /*+ BROADCAST(v) */ ms FROM {V}", "hint", 1, 8),
     (f"SELECT pagé FROM {V}", "bad-character", 1, 11),
     (f"SELECT {'(' * 101}ms{')' * 101} AS r FROM {V}", "query-too-deep", 1, 108),
     ("SELECT " + " " * 100_000 + "1", "query-too-long", 1, 100_001),
     (f"SELECT ms FROM {V}\nUNION SELECT 1", "no-stream", 2, 14), (AZURE, "unknown-input", 1, 61),
     (f"SELECT ms FROM {V} WHERE ms = [WINDOW 1 HOUR] 1", "bad-window", 1, 54),
     (f"SELECT PERCENTILE(ms, 1.5) FROM {V}", "wrong-arguments", 1, 8),
     (f"SELECT ms FROM {V} WHERE n = TRUE", "type-mismatch", 1, 49),
     (f"SELECT UPPER(TRIM(LOWER(page))) AS r FROM {V}", "too-complex", 1, 8),
     (f"SELECT -SUM(CAST(price AS DECIMAL(30, 2))) AS r FROM {V}", "type-mismatch", 1, 9),
     (f"SELECT price * 1e400 AS r FROM {V}", "bad-literal", 1, 16),
     (f"SELECT {'9' * 39} AS r FROM {V}", "bad-literal", 1, 8),
     (f"SELECT ms FROM {V}, (SELECT 1) x", "no-stream", 1, 52)])
def test_refused_where(text: str, code: str, line: int | None, column: int | None) -> None:
    error = refused(text)
    assert (error.code, error.line, error.column) == (code, line, column), str(error)


@pytest.mark.parametrize(("text", "hint"),
                         [(f"SELECT v.pagee FROM {V}", "did you mean page?"),
                          (f"SELECT uper(page) AS r FROM {V}", "did you mean UPPER?"),
                          ("SELECT 1 FROM viewz [WINDOW 1 HOUR]", "did you mean views?"),
                          (f"SELECT user FROM {BOTH}", "write v.user or c.user"),
                          (f"SELECT page, ms FROM {V} GROUP BY page", "add v.ms to GROUP BY, or write MAX(v.ms)"),
                          (f"SELECT vv.page FROM {V}", "did you mean v?")])
def test_hints(text: str, hint: str) -> None:
    assert refused(text).hint == hint


def test_errors_name_the_original_line() -> None:
    error = refused(
        "SELECT COUNT(*)\r\nFROM views AS v [WINDOW 1 HOUR] -- the last hour\r\nWHERE v.pge = 'x'\r\nEVERY 1 HOUR;\r\n")
    assert (error.code, error.line, error.column, error.hint) == ("unknown-column", 3, 7, "did you mean page?")


def test_joins_written_in_every_way_are_one() -> None:
    comma = query(f"SELECT v.ms FROM {V}, {C} WHERE v.user = c.user AND v.ms > 3")
    for text in (f"SELECT v.ms FROM {V} JOIN {C} ON v.user = c.user WHERE v.ms > 3",
                 f"SELECT v.ms FROM {V} INNER JOIN {C} ON v.user = c.user AND v.ms > 3",
                 f"SELECT V.MS FROM {V} JOIN {C} USING (USER) WHERE Ms > 3",
                 f"SELECT ms FROM {V} JOIN {C} USING (user) WHERE (v.ms > 3) AND TRUE"):
        found = query(text)
        assert (found.inputs, found.equalities, found.selections, found.residuals,
                found.outputs) == (comma.inputs, comma.equalities, comma.selections, (), comma.outputs)


def test_a_self_join_has_two_inputs_of_one_source() -> None:
    found = query("SELECT a.ms, b.ms AS later FROM views a [WINDOW 1 HOUR], views b [WINDOW 10 MINUTES] "
                  "WHERE a.user = b.user AND a.ms < b.ms AND (a.ok OR b.ok)")
    assert [i.source for i in found.inputs] == ["views", "views"] and found.returns_rows
    assert len(found.equalities) == 1 and [r.function for r in found.residuals if isinstance(r, Call)] == ["lt", "or"]


def test_columns_without_a_name_are_called_as_they_are_written() -> None:
    asked = query(f"SELECT COUNT_IF(ok), BOOL_AND(ok), APPROX_PERCENTILE(ms, 0.5), CORR(ms, n) FROM {V}")
    assert [name for name, _ in asked.columns] == ["count_if", "bool_and_ok", "percentile_disc_ms", "corr"]
    asked = query(f"SELECT TRIM(BOTH 'x' FROM page), EXTRACT(YEAR FROM ts), NVL2(ok, 1, 2) FROM {V}")
    assert [name for name, _ in asked.columns] == ["trim_page", "extract_ts", "nvl2"]


def test_group_by_all_takes_every_item_without_an_aggregate() -> None:
    items = "page, ms % 7 AS rest, COUNT(*) AS n, MAX(ms) + 1 AS m"
    assert query(f"SELECT {items} FROM {V} GROUP BY ALL").groups == query(
        f"SELECT {items} FROM {V} GROUP BY page, ms % 7").groups
    assert query(f"SELECT COUNT(*) AS n FROM {V} GROUP BY ALL").groups == ()
    assert query(f"SELECT page FROM {V} GROUP BY ALL").groups == query(f"SELECT page FROM {V} GROUP BY page").groups
    assert refused(f"SELECT ms + MAX(ms) AS x FROM {V} GROUP BY ALL").code == "not-grouped"


def test_equalities_meet_in_a_common_type() -> None:
    left, right = query(f"SELECT v.ms FROM {V}, {C} WHERE c.n = v.n").equalities[0]
    assert left == Column(1, "n", BIGINT) and right == Call("cast", (Column(0, "n", INT),), BIGINT)
    left, right = query(f"SELECT v.ms FROM {V}, {C} WHERE v.price = c.amount").equalities[0]
    assert left.type == right.type == decimal(12, 3)
    assert refused(f"SELECT v.ms FROM {V}, {C} WHERE v.user = c.n").code == "cross-product"


def test_a_join_of_five_hangs_together_transitively() -> None:
    found = query(
        f"SELECT COUNT(*) FROM {V}, {C}, views a [WINDOW 1 HOUR], clicks b [WINDOW 1 DAY], pages p "
        "WHERE v.user = c.user AND a.page = p.page AND UPPER(b.page) = p.section AND b.user = c.user AND 1 = 1")
    assert len(found.inputs) == 5 and len(found.equalities) == 4
    assert refused(f"SELECT COUNT(*) FROM {V}, {C}, pages p WHERE v.user = c.user AND p.weight = 1").message.startswith(
        "p is not joined with v")


def test_too_many_inputs() -> None:
    many = ", ".join(f"views v{i} [WINDOW 1 HOUR]" for i in range(33))
    assert refused(f"SELECT 1 FROM {many}").code == "too-many-inputs"
    chain = " AND ".join(f"v{i}.user = v{i + 1}.user" for i in range(31))
    assert len(query(f"SELECT COUNT(*) FROM {many.rsplit(',', 1)[0]} WHERE {chain}").inputs) == 32


def test_stars_expand_in_from_order() -> None:
    names = [n for n, _ in query(f"SELECT * FROM {BOTH}").outputs]
    assert names == [
        "ts", "user", "page", "ms", "n", "price", "score", "ok", "day", "at", "c_user", "c_page", "amount", "c_n"
    ]
    assert [n for n, _ in query(f"SELECT c.*, v.ms AS x FROM {BOTH}").outputs
            ] == ["at", "user", "page", "amount", "n", "x"]
    merged = [n for n, _ in query(f"SELECT * FROM {V} JOIN {C} USING (user, page)").outputs]
    assert merged == ["ts", "user", "page", "ms", "n", "price", "score", "ok", "day", "at", "amount", "c_n"]


@pytest.mark.parametrize(("item", "name"), [("v.page", "page"), ("PAGE", "page"), ("COUNT(*)", "count"),
                                            ("MAX(b.bidPrice)", "max_bidPrice"), ("SUM(ms + 1)", "sum"),
                                            ("COUNT(ms)", "count_ms"), ("COUNT(DISTINCT user)", "count_user"),
                                            ("AVG(ms)", "avg_ms"), ("STDDEV(ms)", "stddev_ms"),
                                            ("VAR_POP(ms)", "var_pop_ms"), ("UPPER(page)", "upper_page"),
                                            ("ms + 1", "column1"), ("PERCENTILE(ms, 0.5)", "percentile_ms")])
def test_plain_names(item: str, name: str) -> None:
    source = "bids AS b [WINDOW 1 HOUR]" if "b." in item else V
    assert select(item, source)[0] == name


def test_groups_by_alias_number_and_expression() -> None:
    direct = query(f"SELECT UPPER(page) AS p, COUNT(*) AS c FROM {V} GROUP BY UPPER(page)")
    for clause in ("p", "1", "UPPER(v.PAGE)", "P", "1, p"):
        found = query(f"SELECT UPPER(page) AS p, COUNT(*) AS c FROM {V} GROUP BY {clause}")
        assert (found.groups, found.outputs) == (direct.groups, direct.outputs)
    assert query(f"SELECT page AS user, COUNT(*) AS c FROM {V} GROUP BY page, user").groups == (Column(
        0, "page", STRING), Column(0, "user", STRING))
    across = query(f"SELECT v.ms + c.n AS s, COUNT(*) AS c FROM {BOTH} GROUP BY v.ms + c.n")
    assert across.outputs[0] == ("s", GroupRef(0, BIGINT)) and inputs(across.groups[0]) == {0, 1}
    deeper = query(f"SELECT (ms + 1) * 2 AS s FROM {V} GROUP BY ms + 1")
    assert deeper.outputs[0][1] == Call("multiply",
                                        (GroupRef(0, BIGINT), Literal(2, BIGINT)), BIGINT) and not deeper.returns_rows


def test_having_knows_aliases_and_aggregates_that_are_not_selected() -> None:
    found = query(
        f"SELECT page, COUNT(*) AS ms FROM {V} GROUP BY page HAVING ms > 3 AND MAX(score) > 0.5 AND page <> 'x' AND "
        "COUNT(*) < 9"
    )
    assert [a.function for a in found.aggregates] == ["count", "max"]
    assert isinstance(found.having, Call) and found.having.args[0] == Call(
        "gt", (AggregateRef(0, BIGINT), Literal(3, BIGINT)), BOOLEAN)
    assert query(f"SELECT COUNT(*) AS c FROM {V} HAVING SUM(ms) > 3").groups == ()


def test_identical_aggregates_are_one() -> None:
    found = query(
        f"SELECT SUM(ms) / COUNT(*) AS a, SUM(v.MS) AS b, COUNT(1) AS c, COUNT(v.*) AS d, AVG(ms) AS e FROM {V}")
    assert [a.function for a in found.aggregates] == ["sum", "count", "avg"]
    assert refused(f"SELECT COUNT(x.*) FROM {V}").code == "unknown-input"


def test_filter_is_folded_into_case() -> None:
    found = query(
        "SELECT SUM(ms) FILTER (WHERE ok) AS s, COUNT(*) FILTER (WHERE ok) AS c, SUM(CASE WHEN ok THEN ms END) AS t "
        f"FROM {V}"
    )
    ok, ms = Column(0, "ok", BOOLEAN), Column(0, "ms", BIGINT)
    assert found.aggregates == (Aggregate("sum", Call("case", (ok, ms, Literal(None, BIGINT)), BIGINT), BIGINT),
                                Aggregate("count", Call("case", (ok, Literal(1, INT), Literal(None, INT)), INT),
                                          BIGINT))


@pytest.mark.parametrize(("item", "expected"),
                         [("COUNT(DISTINCT v.user)", Aggregate("count_distinct", Column(0, "user", STRING), BIGINT)),
                          ("MEDIAN(ms)", Aggregate("median", Column(0, "ms", BIGINT), DOUBLE)),
                          ("PERCENTILE(ms, 0.25)", Aggregate("percentile", Column(0, "ms", BIGINT), DOUBLE, 0.25)),
                          ("PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY ms)",
                           Aggregate("percentile", Column(0, "ms", BIGINT), DOUBLE, 0.25)),
                          ("PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY ms DESC)",
                           Aggregate("percentile", Column(0, "ms", BIGINT), DOUBLE, 0.75)),
                          ("SUM(n)", Aggregate("sum", Column(0, "n", INT), BIGINT)),
                          ("SUM(price)", Aggregate("sum", Column(0, "price", decimal(10, 2)), decimal(20, 2))),
                          ("AVG(price)", Aggregate("avg", Column(0, "price", decimal(10, 2)), decimal(14, 6))),
                          ("AVG(n)", Aggregate("avg", Column(0, "n", INT), DOUBLE)),
                          ("SUM(score)", Aggregate("sum", Column(0, "score", DOUBLE), DOUBLE)),
                          ("MIN(page)", Aggregate("min", Column(0, "page", STRING), STRING)),
                          ("MAX(ok)", Aggregate("max", Column(0, "ok", BOOLEAN), BOOLEAN)),
                          ("VARIANCE(n)", Aggregate("var_samp", Column(0, "n", INT), DOUBLE)),
                          ("STDDEV_POP(n)", Aggregate("stddev_pop", Column(0, "n", INT), DOUBLE))])
def test_aggregates(item: str, expected: Aggregate) -> None:
    found = query(f"SELECT {item} AS r FROM {V}")
    assert found.aggregates == (expected,) and found.outputs == (("r", AggregateRef(0, expected.type)),)
    assert found.holistic == (expected.function in ("count_distinct", "median", "percentile"))


def test_aggregates_across_streams() -> None:
    assert query(f"SELECT SUM(v.price * c.amount) AS r FROM {BOTH}").aggregates[0].type == decimal(33, 5)


@pytest.mark.parametrize(("item", "expected"), [("1", INT), ("2147483647", INT), ("-2147483648", INT),
                                                ("2147483648", BIGINT), ("9223372036854775808", decimal(19, 0)),
                                                ("1.5", decimal(2, 1)),
                                                ("0.05", decimal(2, 2)), ("1.50", decimal(3, 2)), (".5", decimal(1, 1)),
                                                ("1e3", DOUBLE), ("5L", BIGINT), ("1.5D", DOUBLE),
                                                ("1.5BD", decimal(2, 1)), ("'x'", STRING), ("TRUE", BOOLEAN),
                                                ("ms + n", BIGINT), ("n + 1", INT), ("n / 2", DOUBLE),
                                                ("n DIV 2", BIGINT), ("price + price", decimal(11, 2)),
                                                ("price * price", decimal(21, 4)), ("price / price", decimal(23, 13)),
                                                ("price + 1", decimal(11, 2)), ("price * 2", decimal(12, 2)),
                                                ("price + n", decimal(13, 2)), ("price + score", DOUBLE),
                                                ("price % 0.3", decimal(2, 2)), ("n + NULL", INT),
                                                ("COALESCE(n, ms)", BIGINT), ("COALESCE(price, 1)", decimal(12, 2)),
                                                ("CASE WHEN ok THEN 1 ELSE 2.5 END", decimal(11, 1)),
                                                ("LEAST(n, ms)", BIGINT), ("NULLIF(n, ms)", INT),
                                                ("ROUND(price, 1)", decimal(10, 1)), ("ROUND(price)", decimal(9, 0)),
                                                ("FLOOR(score)", BIGINT), ("CEIL(price)", decimal(9, 0)),
                                                ("LENGTH(page)", INT), ("YEAR(ts)", INT),
                                                ("DATE_TRUNC('hour', ts)", TIMESTAMP), ("TO_DATE(ts)", DATE),
                                                ("ts + INTERVAL 5 MINUTES", TIMESTAMP), ("day - INTERVAL 1 WEEK", DATE),
                                                ("UNIX_MICROS(ts)", BIGINT), ("page || n", STRING),
                                                ("ts > '2013-01-02'", BOOLEAN), ("-price", decimal(10, 2)),
                                                ("ABS(n)", INT), ("SIGN(n)", DOUBLE)])
def test_types_are_those_of_spark(item: str, expected: Type) -> None:
    assert of(item) == expected


@pytest.mark.parametrize(("written", "micros"), [("'1970-01-02'", 86_400_000_000),
                                                 ("'1970-01-01 00:00:01.5'", 1_500_000),
                                                 ("'1970-01-01T01:00:00+01:00'", 0), ("'1970-01-01 00:00:00Z'", 0),
                                                 ("TIMESTAMP '1970-01-01 00:00'", 0), ("'1970-1-1'", 0),
                                                 ("CAST('1970-01-01' AS TIMESTAMP)", 0), ("DATE '1970-01-02'", None)])
def test_text_becomes_time_where_time_is_wanted(written: str, micros: int | None) -> None:
    condition = query(f"SELECT ms FROM {V} WHERE ts >= {written}").selections[0]
    assert isinstance(condition, Call)
    assert condition.args[1] == (Literal(micros, TIMESTAMP) if micros is not None else Call(
        "cast", (Literal(1, DATE),), TIMESTAMP))


def test_typography_is_forgiven() -> None:
    plain = query(f"SELECT page FROM {V} WHERE page = 'it''s' AND user <> \"x\"")
    for text in (f"SELECT page FROM {V} WHERE page = ‘it's’ AND user <> \"x\"".replace("'", "\\'"),
                 f"SELECT\u00a0page FROM {V} WHERE page = 'it\\'s' AND user <> “x” ; \n;",
                 f"SELECT page -- ‘note\nFROM {V} WHERE page = 'it''s' AND/* ; [ ( */user <> 'x'"):
        found = query(text)
        assert (found.selections, found.outputs) == (plain.selections, plain.outputs)


def test_quotes_hold_anything() -> None:
    found = query(f"SELECT '; -- /* [WINDOW 1 HOUR] EVERY 1 HOUR “ ” System.Window() (' AS r FROM {V}")
    assert found.outputs[0][1] == Literal("; -- /* [WINDOW 1 HOUR] EVERY 1 HOUR “ ” System.Window() (", STRING)
    assert query(f"SELECT `page` AS `größe` FROM {V}").outputs[0][0] == "größe"


def test_long_conditions_are_not_deep() -> None:
    terms = " OR ".join(f"page = 'p{i}'" for i in range(1000))
    condition = query(f"SELECT page FROM {V} WHERE {terms}").selections[0]
    assert isinstance(condition, Call) and len(condition.args) == 1000
    assert refused(f"SELECT {'+'.join(['ms'] * 400)} AS r FROM {V}").code == "query-too-deep"


def test_selections_keep_their_order_and_constants() -> None:
    found = query(f"SELECT ms FROM {V} WHERE n <> 0 AND ms / n > 1 AND FALSE AND TRUE")
    assert [s.function if isinstance(s, Call) else s for s in found.selections] == ["ne", "gt", Literal(False, BOOLEAN)]


def test_what_nests_deeply_is_read_in_no_time() -> None:
    """Ninety-nine levels, each of which a careless reader would look at twice."""
    for opening, closing in (("TRIM(", ")"), ("COALESCE(page, ", ")"), ("(", ")"), ("CASE WHEN ok THEN ", " END"),
                             ("CAST(", " AS STRING)")):
        assert of(f"{opening * 99}page{closing * 99}") == STRING
