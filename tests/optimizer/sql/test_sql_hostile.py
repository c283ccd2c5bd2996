"""Nothing but a ForebayError comes out of the parser for a text that is no query: a corpus of attacks and slips, and
what Hypothesis makes up.
"""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_sql import CATALOG, V

from optimizer.errors import ForebayError
from optimizer.expression.expr import Call, walk
from optimizer.expression.functions.table import FUNCTIONS
from optimizer.sql.parse import parse

CALLS = """reflect('java.lang.System', 'exit', 1)
java_method('java.lang.OpenPipeline', 'getRuntime')|try_reflect('a', 'b')|input_file_name()|current_user()|version()
uuid()|rand()|randn(1)|shuffle(page)
now()|current_timestamp()|current_date|localtimestamp()|unix_timestamp()|monotonically_increasing_id()
spark_partition_id()|assert_true(FALSE)
raise_error('x')|from_json(page, 'a INT')|xpath(page, 'a')
read_files('/etc/passwd')|http_get('x')|ai_query('a', 'b')|identifier('ms')|IDENTIFIER('m')|explode(page)
posexplode(page)|stack(2, ms, n)
inline(page)|json_tuple(page, 'a')|transform(page, x -> x)
aggregate(page, 0, (a, b) -> a)|filter(page, x -> x)|map(1, 2)|array(1, 2)|array(1)[0]|struct(ms)|named_struct('a', 1)
page.a.b.c|page:a|page['a']
sha2(page, 512)|hash(score)|regexp_replace(page, 'a*', 'b')
split(page, ',')|page RLIKE '(?=a)'|page ILIKE page|page LIKE 'a' ESCAPE '!'|page LIKE ANY ('a')|page LIKE user
page REGEXP '(a)++'|ms & score|page ^ n|~page
ms << 1|ms XOR n|!!!ms|ms !> n|:ms|?|$1|@x|@@version
${env:HOME}|{{ config }}|{# x #}|{d '2020-01-01'}|X'4142'|r'abc'|b'abc'|'\\u0041'|'\\x41'|'\\101'|INTERVAL 1 DAY
INTERVAL ms DAYS + ts
ts + INTERVAL '1-1' YEAR TO MONTH|ts - ts|EXTRACT(EON FROM ts)
POSITION(1 IN page)|TRIM(BOTH 1 FROM page)|OVERLAY(page PLACING 'a' FROM 0)|SUBSTRING(page FROM n FOR 2)
CAST(ms AS ARRAY<INT>)
CAST(ms AS STRUCT<a: INT>)|CAST(ms AS INTERVAL)|CAST(ms AS VARIANT)
CAST(page AS TIMESTAMP_NTZ)|CAST(ok AS DATE)|CAST(score AS STRING)|CAST(ms AS DECIMAL(39, 2))
CAST(ms AS DECIMAL(5, 6))|CAST(ms AS DECIMAL(a))
CAST(ms AS INT FORMAT 'x')|CAST(ms)|CAST()|CAST(ms AS)
(SELECT 1)|(SELECT MAX(ms) FROM views)|EXISTS (SELECT 1)|ms IN (SELECT ms FROM views)|ms = ANY (SELECT 1)|ms IN ()
ms BETWEEN SYMMETRIC 1 AND 2
ms BETWEEN 1|CASE END|CASE WHEN ok THEN END|CASE ms WHEN END
SUM(ms) FILTER (WHERE COUNT(*) > 1)|SUM(ms) FILTER (ms)
ms FILTER (WHERE ok)|FIRST(ms) IGNORE NULLS
MAX(ms ORDER BY ts)|COUNT()|COUNT(*, *)|COUNT(DISTINCT *)
COUNT(DISTINCT)|SUM()|SUM(*)|AVG(ok)|MEDIAN(DISTINCT ms)|PERCENTILE(ms)|PERCENTILE(ms, n)|PERCENTILE_CONT(0.5)
PERCENTILE(ms, 0.5) WITHIN GROUP (ORDER BY ms)|LISTAGG(page)|collect_list(ms)|approx_count_distinct()
MODE() WITHIN GROUP (ORDER BY ms)|RANK(ms) WITHIN GROUP (ORDER BY ms)|GROUPING(ms)|UPPER(DISTINCT page)
UPPER(page) FILTER (WHERE ok)|UPPER(page AS x)
UPPER(x => page)|UPPER(*)|views.ms.ms
SUM(SUM(ms))|SUM(COUNT(*))|SUM(ms OVER)|ms::|::int|ms ms ms|ms,|,ms|*|*, ms AS ts|v.* AS x|v.* EXCEPT (ms)
* EXCEPT (ms)|* REPLACE (1 AS ms)|x.*|v..ms
.ms|v.|`|``|`a``|'a|"a|/*|*/|--|ms;ms|ms;;SELECT 1
NULL + 'a'|'1' + '1'|page + page|ok + 1|ms + ok|-page|ABS(page)|NOT ms|ms AND ok|ok OR page|ok < 1|ts < 1|ts = 'never'
day = '2020-13-45'
day > '2020-01-01 10:00'|ms LIKE 'a'|page LIKE 'a\\\\b'|COALESCE(ms, ok)|CASE WHEN ok THEN 1 ELSE ts END
GREATEST(ms)|NULLIF(ms, ok)|ROUND(ms, n)|ROUND(ms, -1)|ROUND(page)|PMOD(ms, 0)|PMOD(ms, n)|MOD(ms)|LEFT(page, n)
SUBSTRING(page, n)
SUBSTRING(page, 1.5)|DATE_TRUNC(page, ts)|DATE_TRUNC('eon', ts)|DATE_TRUNC('hour', page)
YEAR(ms)|HOUR(page)|DATEDIFF(ts, ms)|DATE_ADD(day, n)|UNIX_MICROS(ms)|LENGTH(ms)|REPLACE(page, 1, 2)|CONCAT(ms, score)
CONCAT()|IF(ok, 1)|IF(ms, 1, 2)
ms / ok|CONCAT('a', score)|price % ok|1e999|0x10|1__0|99999999999999999999999999999999999999999"""
STATEMENTS = """ADD JAR /tmp/x.jar
ADD FILE '/etc/passwd'|SET spark.sql.ansi.enabled=false|RESET|DROP TABLE views|CREATE FUNCTION f AS 'x'
CREATE TABLE t AS SELECT 1
INSERT INTO views SELECT 1|DELETE FROM views|UPDATE views SET ms = 1
MERGE INTO views USING clicks ON TRUE WHEN MATCHED THEN DELETE|TRUNCATE TABLE views
LOAD DATA INPATH 'x' INTO TABLE views|REFRESH TABLE views
CACHE TABLE views|EXPLAIN SELECT 1|DESCRIBE views|SHOW TABLES|USE x|VALUES (1)|TABLE views
WITH x AS (SELECT 1) SELECT * FROM x|FROM views SELECT ms|(SELECT ms FROM views)|EXECUTE IMMEDIATE 'SELECT 1'
BEGIN SELECT 1; END|DECLARE x INT
COPY INTO views FROM 'x'|CALL f()|COMMENT ON TABLE views IS 'x'|SELECT|SELECT FROM|;|'|(|)|\\|\ufeff
SELECT ms FROM parquet.`/etc`|SELECT ms FROM delta.`/x`|SELECT ms FROM csv.`x`|SELECT ms FROM a.b.views
SELECT ms FROM default.views [WINDOW 1 HOUR]
SELECT ms FROM `../x` [WINDOW 1 HOUR]|SELECT ms FROM range(10)|SELECT ms FROM IDENTIFIER('views')
SELECT ms FROM views FOR VERSION AS OF 1|SELECT ms FROM views@v1|SELECT ms FROM views TIMESTAMP AS OF '2020-01-01'
SELECT ms FROM views TABLESAMPLE (1 PERCENT)|SELECT ms FROM views [WINDOW 1 HOUR] TABLESAMPLE (1 ROWS)
SELECT ms FROM STREAM(views)
SELECT ms FROM views [WINDOW 1 HOUR] LATERAL VIEW explode(page) x AS y
SELECT ms FROM views [WINDOW 1 HOUR], LATERAL explode(page)
SELECT ms FROM views [WINDOW 1 HOUR] PIVOT (SUM(ms) FOR page IN ('a'))
SELECT ms FROM views [WINDOW 1 HOUR] UNPIVOT (a FOR b IN (ms))
SELECT TRANSFORM (ms) USING 'sh -c id' AS x FROM views [WINDOW 1 HOUR]
SELECT MAP ms USING 'cat' FROM views [WINDOW 1 HOUR]|SELECT ALL ms FROM views|SELECT TOP 3 ms FROM views [WINDOW 1 HOUR]
SELECT AS STRUCT ms FROM views [WINDOW 1 HOUR]
SELECT ms FROM views [WINDOW 1 HOUR] UNION SELECT 1|SELECT ms FROM views [WINDOW 1 HOUR] EXCEPT SELECT 1
SELECT ms FROM views [WINDOW 1 HOUR] ORDER BY 2
SELECT ms FROM views [WINDOW 1 HOUR] SORT BY ms|SELECT ms FROM views [WINDOW 1 HOUR] CLUSTER BY ms
SELECT ms FROM views [WINDOW 1 HOUR] DISTRIBUTE BY ms|SELECT ms FROM views [WINDOW 1 HOUR] QUALIFY ms > 1
SELECT ms FROM views [WINDOW 1 HOUR] WINDOW w AS (ORDER BY ms)
SELECT ms INTO x FROM views [WINDOW 1 HOUR]|SELECT ms FROM views [WINDOW 1 HOUR] FOR UPDATE
SELECT 1 AS x FROM views [WINDOW 1 HOUR] GROUP BY ALL
SELECT page FROM views [WINDOW 1 HOUR] GROUP BY page.x
SELECT page FROM views [WINDOW 1 HOUR] GROUP BY|SELECT page FROM views [WINDOW 1 HOUR] GROUP BY 0
SELECT page FROM views [WINDOW 1 HOUR] WHERE
SELECT page FROM views [WINDOW 1 HOUR] HAVING|SELECT page FROM views [WINDOW 1 HOUR] AS v(a, b)
SELECT 1 FROM views [WINDOW 1 HOUR] CROSS JOIN pages|SELECT 1 FROM views [WINDOW 1 HOUR] FULL OUTER JOIN pages ON TRUE
SELECT 1 FROM views v [WINDOW 1 HOUR] LEFT SEMI JOIN pages p ON v.page = p.page
SELECT 1 FROM views v [WINDOW 1 HOUR] ANTI JOIN pages p ON v.page = p.page
SELECT 1 FROM views v [WINDOW 1 HOUR] RIGHT JOIN pages p ON v.page = p.page
SELECT 1 FROM views v [WINDOW 1 HOUR] JOIN pages
SELECT 1 FROM views v [WINDOW 1 HOUR] JOIN pages USING (x)|SELECT 1 FROM views v [WINDOW 1 HOUR] JOIN pages USING ()
SELECT 1 FROM views v [WINDOW 1 HOUR] JOIN (pages) USING (page)|SELECT 1 FROM (views [WINDOW 1 HOUR])
SELECT 1 FROM views [WINDOW 1 HOUR],
SELECT 1 FROM ,views [WINDOW 1 HOUR]
SELECT ms, FROM views [WINDOW 1 HOUR]|SELECT /*+ REPARTITION(3) */ ms FROM views [WINDOW 1 HOUR]
SELECT ms /*+ x */ FROM views [WINDOW 1 HOUR]
SELECT ms FROM views [WINDOW 1 HOUR] /* /* */|SELECT ms FROM views [WINDOW 1 HOUR] */
SELECT ms FROM views [WINDOW 1 HOUR] EVERY|SELECT ms FROM views EVERY 1 HOUR [WINDOW 1 HOUR]
SELECT ms FROM views [WINDOW 1 HOUR] EVERY 1 HOUR EVERY 1 HOUR
SELECT ms FROM views [WINDOW 1 HOUR] EVERY 1 HOUR WHERE ok|EVERY 1 HOUR
SELECT [WINDOW 1 HOUR]|[WINDOW 1 HOUR]
SELECT System.Window().Id FROM views|SELECT 1 FROM views TIMESTAMP BY ts
SELECT 1 FROM views GROUP BY TumblingWindow(minute, 5)
SELECT ms FROM views [WINDOW 1 HOUR] x y|SELECT ms FROM ｖiews [WINDOW 1 HOUR]|SELECT ms ＦROM views
SELECT \u202ems FROM views [WINDOW 1 HOUR]
SELECT m\u0073\u0301 FROM views [WINDOW 1 HOUR]|SELECT ms\u200b FROM views [WINDOW 1 HOUR]
SELECT ms FROM views [WINDOW １ HOUR]
SELECT ms FROM views [WINDOW 1 HOUR]\x00|SELECT ms FROM views [WINDOW 1 HOUR]\x1b[31m
SELECT '\ud800' AS r FROM views [WINDOW 1 HOUR]"""
LARGE = {
    "pipe": f"SELECT ms FROM {V} |> WHERE ok",
    "hidden": f"SELECT ms FROM {V} -- x\nDROP TABLE views",
    "parentheses": "SELECT " + "(" * 50_000,
    "closing": "SELECT " + ")" * 50_000,
    "nots": f"SELECT {'NOT ' * 8_000}ok AS r FROM {V}",
    "minuses": f"SELECT {'- ' * 20_000}ms AS r FROM {V}",
    "cases": f"SELECT {'CASE WHEN ok THEN ' * 1000}1{' END' * 1000} AS r FROM {V}",
    "sum": f"SELECT {'+'.join(['ms'] * 3_000)} AS r FROM {V}",
    "brackets": "SELECT " + "[" * 50_000,
    "windows": "SELECT 1 FROM views" + " [WINDOW 1 HOUR]" * 5000,
    "quotes": "SELECT " + "'" * 99_001,
    "comments": "SELECT " + "/*" * 40_000,
    "commas": "SELECT ms" + "," * 9_000,
    "long": "SELECT " + "x" * 99_000,
    "too long": "x" * 100_001,
    "newlines": "\n" * 99_999,
    "dots": "SELECT " + "a." * 9_000 + "b FROM views",
    "parenthesised": f"SELECT {'(' * 99}ms{')' * 98} AS r FROM {V}",
    "divisions": f"SELECT {'1 / (' * 90}ms{')' * 90} AS r FROM {V}",
    "ors": f"SELECT {'ok OR (ms / n > 1 AND ' * 60}ok{')' * 60} AS r FROM {V}",
    "coalesce": f"SELECT {'COALESCE(ms / n, ' * 90}1{')' * 90} AS r FROM {V}",
    "casts": f"SELECT ms{'::int' * 1_000} AS r FROM {V}",
    "tables": "SELECT 1 FROM views" + ", views" * 1_000,
    "semicolons": f"SELECT ms FROM {V}" + ";" * 50_000 + "x",
    "joins": f"SELECT 1 FROM {V}" + " JOIN clicks" * 500,
    "in": f"SELECT ms IN ({'(' * 90}1{')' * 90}, TRUE) AS r FROM {V}"
}
LONG = 5_000      # characters: what is longer takes a tenth of a second; of the others the fast set has every second
CORPUS = [
    *(f"SELECT {c} AS r FROM {V}" for c in CALLS.replace("\n", "|").split("|")),
    *STATEMENTS.replace("\n", "|").split("|"), *LARGE.values()
]


def test_the_corpus_is_large() -> None:
    assert len(set(CORPUS)) >= 300


@pytest.mark.parametrize("text", [
    pytest.param(t, id=str(i), marks=pytest.mark.slow if len(t) > LONG or i % 2 else ()) for i, t in enumerate(CORPUS)
])
def test_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(ForebayError) as caught:
        parse(text, CATALOG)
    found = caught.value
    assert found.code and found.message and found.exit_code == 2 and len(str(found)) < 2000
    assert found.line and found.column and found.hint, "what, where, what would be right"


WORDS = st.sampled_from([
    "\n", "[WINDOW 1 HOUR]", "[WINDOW UNTIL NOW]", "views v [WINDOW 1 HOUR]", "clicks c [WINDOW 1 HOUR TUMBLING]",
    "GROUP BY", "COUNT(*)", *"""
    SELECT FROM WHERE GROUP BY HAVING AND OR NOT NULL IS IN LIKE BETWEEN CASE WHEN THEN ELSE END JOIN ON USING AS EVERY
    WINDOW 1 HOUR COUNT
    SUM AVG MAX MEDIAN UPPER LENGTH COALESCE IF CAST TRY_CAST INT STRING DECIMAL(5,2) INTERVAL DAY MINUTES views clicks
    pages v c p ts user page ms n price
    score ok day v.page c.user p.section v.* * ( ) , . + - / % || = <> < <=> :: 'a' '2020-01-01' 1.5 1e3 0 TRUE FILTER
    DISTINCT WITHIN PERCENTILE
    OVER ORDER UNION LIMIT LEFT EXISTS `page` ‘x’ ; -- /* */ [ ]""".split()
])
LEAVES = st.sampled_from([
    "ms", "n", "price", "score", "page", "user", "ok", "ts", "day", "1", "0", "2.5", "1e2", "'a'", "'7'", "NULL",
    "TRUE", "v.ms", "COUNT(*)", "'2013-01-02'"
])


def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    infix = st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "%", "DIV", "=", "<>", "<", "<=>", "AND", "OR",
                                              "||"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
    call = st.tuples(
        st.sampled_from([
            "ABS", "UPPER", "LENGTH", "COALESCE", "NULLIF", "ROUND", "SUM", "MAX", "FLOOR", "CONCAT", "LEAST", "YEAR",
            "DATE_TRUNC", "IF", "LEFT", "SQRT", "NOSUCH"
        ]), st.lists(inner, max_size=3)).map(lambda t: f"{t[0]}({', '.join(t[1])})")
    other = st.one_of(inner.map(lambda e: f"NOT {e}"), inner.map(lambda e: f"-{e}"),
                      inner.map(lambda e: f"{e} IS NULL"), inner.map(lambda e: f"CAST({e} AS INT)"),
                      inner.map(lambda e: f"TRY_CAST({e} AS DECIMAL(9,3))"),
                      st.tuples(inner, inner, inner).map(lambda t: f"CASE WHEN {t[0]} THEN {t[1]} ELSE {t[2]} END"),
                      st.tuples(inner, inner).map(lambda t: f"{t[0]} IN ({t[1]}, 1)"))
    return st.one_of(infix, call, other)


EXPRESSIONS = st.recursive(LEAVES, joined, max_leaves=12)


def survives(text: str) -> bool:
    """True for a query whose every call is in the table, False for a refusal; anything else fails the test."""
    try:
        found = parse(text, CATALOG)
    except ForebayError:
        return False
    exprs = [*(e for _, e in found.outputs), *found.selections, *found.residuals, *found.groups]
    assert all(e.function in FUNCTIONS for whole in exprs for e in walk(whole) if isinstance(e, Call))
    return True


@given(st.text(max_size=200) | st.text(alphabet="SELECTFROMviewsv [WINDOW1HR]()'\"`*,.;-/\\\n", max_size=120))
def test_raw_text(text: str) -> None:
    survives(text)
    survives(f"SELECT {text} FROM {V}")


@given(st.lists(WORDS, max_size=40).map(" ".join))
def test_word_salad(text: str) -> None:
    survives(text)
    survives(f"SELECT {text} FROM {V}")
    survives(f"SELECT COUNT(*) FROM {V} WHERE {text}")


@given(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS)
def test_queries_from_a_grammar(item: str, condition: str, group: str) -> None:
    survives(f"SELECT {item} AS r FROM {V}")
    survives(f"SELECT {item} AS r FROM {V} WHERE {condition} GROUP BY {group} HAVING {condition}")


def test_the_grammar_makes_queries_too() -> None:
    """The fuzz above is worth nothing if all it makes is refused."""
    assert survives(
        f"SELECT COALESCE(ms, n) AS r FROM {V} WHERE (ms = 1) GROUP BY COALESCE(ms, n) HAVING COUNT(*) IS NULL")
