"""What follows from a schema or a query's text: which outputs are held to what, what can show a sensitive value, what
volume is usual.
"""
from __future__ import annotations

import pytest

from expectations import derived
from optimizer.expression.types import BIGINT, STRING, TIMESTAMP, decimal
from optimizer.query.model import Catalog, Query
from optimizer.sql.parse import parse

COLUMNS = (("ts", TIMESTAMP), ("user", STRING), ("x", BIGINT), ("d", decimal(10, 2)))
CATALOG = Catalog(10 * 10 ** 6, (("views", "ts", COLUMNS), ("clicks", "ts", COLUMNS)),
                  (("pages", (("user", STRING), ("kind", STRING))),))
FROM = "FROM views AS v [WINDOW 1 MINUTE], clicks AS c [WINDOW 1 MINUTE] WHERE v.user = c.user"


def query(sql: str) -> Query:
    return parse(sql, CATALOG)


def held(sql: str) -> dict[str, tuple[str, ...]]:
    return {d.name: d.columns for d in derived.of_query(query(sql))}


def test_a_query_is_held_to_what_its_text_implies() -> None:
    assert held(f"SELECT v.user, COUNT(*) AS n, SUM(v.x) AS s, AVG(v.x) AS a {FROM} GROUP BY v.user") == {
        "boundary_monotone": ("boundary",),
        "groups_unique": ("boundary", "user"),
        "counts_not_negative": ("n",),
        "sums_conserved": ("n", "s")
    }
    assert held(f"SELECT COUNT(*) AS n {FROM}")["groups_unique"] == ("boundary",)


@pytest.mark.parametrize(("sql", "missing"), [
    (f"SELECT COUNT(*) AS n {FROM} GROUP BY v.user", "groups_unique"),
    (f"SELECT v.user, v.x {FROM}", "groups_unique"),
    (f"SELECT v.user, v.x {FROM}", "sums_conserved"),
    (f"SELECT v.user, COUNT(*) AS n {FROM} GROUP BY v.user HAVING COUNT(*) > 1", "sums_conserved"),
    (f"SELECT v.user, COUNT(*) AS n, MEDIAN(v.x) AS m {FROM} GROUP BY v.user", "sums_conserved"),
    (f"SELECT v.user, SUM(v.x) AS s {FROM} GROUP BY v.user", "counts_not_negative"),
    (f"SELECT v.user, COUNT(*) + 1 AS n {FROM} GROUP BY v.user", "counts_not_negative"),
])
def test_nothing_is_asked_that_a_sound_answer_could_fail(sql: str, missing: str) -> None:
    assert missing not in held(sql)


def test_critical_are_only_expectations_of_answers() -> None:
    assert {d.severity for d in derived.of_query(query(f"SELECT COUNT(*) AS n {FROM}"))} == {"critical"}
    assert {
        d.name: d.severity for d in derived.of_stream(dict(COLUMNS), "ts")
    } == {
        "columns_of_declared_types": "row",
        "event_time_not_null": "row",
        "event_time_in_domain": "row",
        "fresh": "warning",
        "volume_near_history": "warning"
    }


def test_outputs_that_show_a_sensitive_value() -> None:
    sensitive = {"views": frozenset({"user", "d"}), "pages": frozenset({"kind"})}
    sql = ("SELECT v.user AS who, COUNT(v.user) AS n, MAX(v.d) AS most, SUM(c.d) AS other, MAX(c.user) AS theirs "
           f"{FROM} GROUP BY v.user")
    assert derived.revealing(query(sql), sensitive) == {"who", "most"}
    assert derived.revealing(query(f"SELECT c.user, UPPER(v.user) AS u, c.x {FROM}"), sensitive) == {"u"}


@pytest.mark.parametrize(("counts", "usual"), [([], None), ([1000] * 7, None), ([1000] * 8, (200, 5000)),
                                               ([99] * 20, None), ([100] * 20, (20, 500)),
                                               ([0] * 9 + [1000] * 10, (200, 5000))])
def test_what_volume_is_usual(counts: list[int], usual: tuple[int, int] | None) -> None:
    assert derived.usual(counts) == usual


def test_how_long_a_stream_may_be_silent() -> None:
    assert derived.fresh_until(0, None, 10) == 100 and derived.fresh_until(150, 700, 10) == 700 and derived.fresh_until(
        150, None, 10) == 150
