"""From partials to rows: what tasks hand over is merged, states become values, and a marked row fails the query."""
from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from jobs.engine import kernel
from optimizer.plan.final import final
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import candidates
from optimizer.query.shape import shape
from tests.optimizer.planning import query

WINDOW = "FROM views [WINDOW 1 MINUTE]"


def rows(sql: str, partials: dict[str, Any], due: list[int]) -> list[tuple[Any, ...]]:
    asked = query(sql)
    con = kernel.shared()
    con.register("partials", pa.table(partials))
    con.register("due", pa.table({"_t": pa.array(due, pa.int64())}))
    found = kernel.table(con, final(Lowering(shape(asked), candidates(asked)[0].plan, narrow=False)))
    return sorted((r["boundary"].timestamp() * 1e6, *list(r.values())[1:]) for r in found.to_pylist())


def test_the_parts_of_a_group_are_merged_and_a_group_without_rows_is_none() -> None:
    partials = {"_t": [10, 10, 10, 10, 20], "g0": ["a", "a", "b", "b", "a"], "c": [2, 3, 2, -2, 1]}
    assert rows(f"SELECT page, COUNT(*) AS n {WINDOW} GROUP BY page", partials, [10, 20]) == [(10, "a", 5),
                                                                                              (20, "a", 1)]


def test_having_sees_merged_values() -> None:
    partials = {"_t": [10, 10, 10], "g0": ["a", "a", "b"], "c": [2, 3, 4]}
    assert rows(f"SELECT page, COUNT(*) AS n {WINDOW} GROUP BY page HAVING COUNT(*) > 4", partials,
                [10]) == [(10, "a", 5)]


def test_without_groups_each_boundary_has_a_row() -> None:
    partials = {"_t": [10], "c": [3], "m0": [2], "m1": pa.array([Decimal(7)], pa.decimal128(38, 0))}
    assert rows(f"SELECT COUNT(*) AS n, SUM(ms) AS s {WINDOW}", partials, [10, 20]) == [(10, 3, 7), (20, 0, None)]


def test_a_spread_comes_from_exact_sums() -> None:
    far = 10**15
    values = [far + 1, far + 3]
    partials = {"_t": [10], "c": [2], "m0": [2], "m1": pa.array([Decimal(sum(values))], pa.decimal128(38, 0)),
                "m2": pa.array([Decimal(sum(v * v for v in values))], pa.decimal128(38, 0))}
    assert rows(f"SELECT VAR_POP(ms) AS v, STDDEV(ms) AS s {WINDOW}", partials,
                [10]) == [(10, 1.0, pytest.approx(2 ** 0.5, rel=1e-15))]


def test_an_answer_with_a_marked_row_fails() -> None:
    partials = {"_t": [10, 20], "c": [3, 2], "m0": [3, 1], "m1": pa.array([1.0, 2.0]), "e": [0, 1]}
    sql = f"SELECT SUM(ms / ms) AS s {WINDOW}"
    assert rows(sql, {k: v[:1] for k, v in partials.items()}, [10]) == [(10, 1.0)]
    with pytest.raises(kernel.Error, match="failed on a row of the answer"):
        rows(sql, partials, [10, 20])
