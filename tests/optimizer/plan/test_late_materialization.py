"""Row queries cross what they matched only on the way to the file: memory follows the rows that meet, not the answer
(paper E, late materialization).
"""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.engine.work import TaskOrder, perform
from optimizer.expression.types import BIGINT, TIMESTAMP
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import candidates
from optimizer.plan.operators.operator import Run
from optimizer.plan.program import BEGINNING
from optimizer.plan.tree import program
from optimizer.query.model import Catalog
from optimizer.query.shape import shape
from optimizer.sharing.group import OWNER, group
from optimizer.sharing.program import lowering
from optimizer.sharing.rows import rows_program
from optimizer.sql.parse import parse
from tests import oracle

SECOND = 10**6
NOW = 1000 * SECOND
COLUMNS = (("ts", TIMESTAMP), ("k", BIGINT), ("x", BIGINT))
SQL = "SELECT a.x, b.x AS y, a.ts AS t FROM s1 AS a [WINDOW 60 SECONDS], s2 AS b [WINDOW 60 SECONDS] WHERE a.k = b.k"
SLACK_MB = 100          # 15 million rows more are 360 MB as columns; the sides are less than one


def crossed(folder: str, count: int, queries: int) -> tuple[int, int]:
    """Rows of the answer, or of all answers together, when `count` rows a stream have one key, and this process's peak
    memory in KiB.
    """
    import resource

    con = oracle.connect()
    for name in ("s1", "s2"):
        con.execute(
            f"COPY (SELECT CAST(make_timestamp({NOW} - 1 - i) AS TIMESTAMPTZ) AS ts, CAST(make_timestamp({NOW}) AS "
            "TIMESTAMPTZ) AS _boundary, "
            f"7 AS k, i AS x FROM range({count}) AS r(i)) TO '{folder}/{name}.parquet'")
    catalog = Catalog(SECOND, tuple((s, "ts", COLUMNS) for s in ("s1", "s2")), ())
    if queries == 1:
        asked = parse(SQL, catalog)
        made = program(Lowering(shape(asked), candidates(asked)[0].plan), (NOW,), BEGINNING, 0)
    else:      # of each key's rows every query selects its own share
        many = group({f"q{n}": parse(f"{SQL} AND a.x % {queries} = {n}", catalog) for n in range(queries)})
        made = rows_program(many, lowering(many), Run((NOW,), BEGINNING, 0))
    files = {s.name: (f"{folder}/{s.of}.parquet",) for s in made.sources}
    done = perform(TaskOrder("q", 0, 1, made, made, files, {}, "b", rows_to={0: os.path.join(folder, "rows")},
                             owner=OWNER if queries > 1 else None))
    assert done.failed is None
    return done.rows[0][0].rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.slow
@pytest.mark.parametrize("queries", [1, 70])
def test_memory_follows_the_sides_not_the_product(tmp_path: Path, queries: int) -> None:
    peaks = []
    for count in (1_000, 4_000):
        folder = tmp_path / str(count)
        (folder / "rows").mkdir(parents=True)
        module = "tests.optimizer.plan.test_late_materialization"
        code = f"from {module} import crossed; print(*crossed({str(folder)!r}, {count}, {queries}))"
        rows, peak = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                                    cwd=os.getcwd()).stdout.split()
        assert int(rows) == count**2
        peaks.append(int(peak) / 1024)
    assert peaks[1] - peaks[0] < SLACK_MB, peaks
