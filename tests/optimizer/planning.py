"""A small catalog for tests of the planner, and queries over it."""
from __future__ import annotations

from functools import cache

from optimizer.expression.types import BIGINT, DOUBLE, STRING, TIMESTAMP, decimal
from optimizer.query.model import Catalog, Query
from optimizer.sql.parse import parse

SECOND = 10**6
BATCH = 10 * SECOND
VIEWS = (("ts", TIMESTAMP), ("user", STRING), ("page", STRING), ("ms", BIGINT), ("score", DOUBLE))
CLICKS = (("ts", TIMESTAMP), ("user", STRING), ("amount", decimal(10, 2)))
CATALOG = Catalog(BATCH, (("views", "ts", VIEWS), ("clicks", "ts", CLICKS)),
                  (("pages", (("page", STRING), ("section", STRING))),))
TWO = "FROM views AS v [WINDOW 1 MINUTE], clicks AS c [WINDOW 40 SECONDS] WHERE v.user = c.user"
NOW = "FROM views AS v [WINDOW UNTIL NOW], clicks AS c [WINDOW UNTIL NOW] WHERE v.user = c.user"
QUERIES = {
    "two-streams": f"SELECT v.page, COUNT(*) AS n, SUM(c.amount) AS spent, AVG(v.ms) AS ms {TWO} GROUP BY v.page "
                   "HAVING COUNT(*) > 1",
    "extremes": f"SELECT v.page, MIN(c.amount) AS low, MAX(v.ms) AS high {TWO} GROUP BY v.page",
    "relation": "SELECT p.section, COUNT(*) AS n FROM views AS v [WINDOW 1 MINUTE TUMBLING], pages AS p WHERE v.page = "
                "p.page GROUP BY p.section",
    "hopping": "SELECT COUNT(*) AS n, STDDEV(v.ms) AS s FROM views AS v [WINDOW 1 MINUTE SLIDE 20 SECONDS]",
    "landmark": f"SELECT v.user, MAX(v.ms) AS m, SUM(v.score) AS s {NOW} GROUP BY v.user",
    "across": f"SELECT SUM(v.ms * c.amount) AS s {TWO} AND v.ms > c.amount AND v.page <> 'x'",
    "rows": f"SELECT v.page, c.amount {TWO}",
    "distinct": f"SELECT COUNT(DISTINCT v.page) AS n, SUM(v.ms) AS s {TWO}",
}


@cache
def query(name: str) -> Query:
    return parse(QUERIES.get(name, name), CATALOG)
