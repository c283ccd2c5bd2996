"""From the partials of a query that shares its work with no other to its rows: here, where there are few, else as tasks
are to do it.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from expectations import derived
from jobs.batch import quiet
from jobs.batch.figures import Told
from jobs.batch.large import Merge, Merged
from jobs.batch.orders import points
from jobs.batch.works import Context, QueryWork
from jobs.engine import kernel
from jobs.engine.partials import PartialsGrouping
from jobs.ledger.entries import Batch
from jobs.storage import places
from optimizer.plan.division import whole_groups
from optimizer.plan.final import published
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import Plan
from optimizer.plan.operators.join import group_columns
from optimizer.query.model import Query
from optimizer.query.shape import shape


@lru_cache(maxsize=4096)
def groupings(query: Query) -> Mapping[int, PartialsGrouping]:
    """By what its partials can be divided; a query without GROUP BY has few, and what is asked above an answer is asked
    of all of its rows.
    """
    keys = () if query.returns_rows or query.above is not None else group_columns(shape(query))
    return {0: PartialsGrouping(keys, ("_t",), summed(query))} if keys else {}


def has_whole_groups(work: QueryWork) -> bool:
    """Whether no other task has partials of the groups that a task has."""
    return whole_groups(Lowering(shape(work.query), work.plan, parts=work.parts))


def repeats(context: Context, work: QueryWork) -> tuple[tuple[int, int], ...]:
    return tuple(quiet.repeated(work.due, points(context, work)))


def last_statement(con: kernel.Connection, query: Query, plan: Plan, due: tuple[int, ...],
                   repeats: tuple[tuple[int, int], ...]) -> str:
    """What gives the rows, from the relation `computed`."""
    con.register("same", quiet.repeats_table(repeats))
    con.execute("CREATE TEMP VIEW partials AS SELECT same._t, computed.* EXCLUDE (_t) "
                "FROM computed JOIN same ON computed._t = same._of")
    con.register("due", pa.table({"_t": pa.array(due, pa.int64())}))
    return published(Lowering(shape(query), plan, narrow=False), due)


def merge(context: Context, batch: Batch, work: QueryWork) -> QueryMerge:
    """How the query's answer is merged where it has many groups."""
    folder = places.join(context.warehouse, work.query_state.address)
    return QueryMerge((work.name, 0), (folder,), f"b{batch.number}", work.due, repeats(context, work),
                      summed(work.query), work.query, work.plan)


def summed(query: Query) -> tuple[str, ...]:
    """Columns of the partials that outputs are held against, and the count of joined rows."""
    return *derived.conserved_columns(query), "c"


@dataclass(frozen=True)
class QueryMerge(Merge):
    """The rows of one query."""

    query: Query
    plan: Plan

    def write(self, con: kernel.Connection) -> Merged:
        sql = last_statement(con, self.query, self.plan, self.due, self.repeats)
        rows = self.written(con, 0, sql, Told.of(self.query, is_shared=False))
        last = (self.due[-1],)
        if self.query.having is None:
            return Merged(self.of, rows, sum(part.figures.rows.get(last, 0) for part in rows))
        keys = ", ".join(group_columns(shape(self.query)))
        groups = f"SELECT sum(c) AS n FROM computed WHERE _t = {self.due[-1]} GROUP BY {keys}"
        (count,), = con.execute(f"SELECT count(*) FROM ({groups}) AS q WHERE n > 0").fetchall()
        return Merged(self.of, rows, count)
