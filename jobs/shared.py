"""Many queries' answers from one work in one batch: its orders for tasks, then each query's rows from what they hand over; it decides nothing, commits nothing.

A query that fails, or whose class holds a row that fails, is named and left out: it is run apart, where it fails (or not) as if there were no others.
"""
from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import pyarrow as pa

from jobs import kernel, quiet
from jobs.ledger import Batch
from jobs.orders import complete, located, points
from jobs.queries import Standing
from jobs.work import Order, Outcome
from jobs.works import Context, Work, parsed
from optimizer.final import final
from optimizer.join import failing
from optimizer.lowering import Lowering
from optimizer.plan import Plan
from optimizer.program import BEGINNING
from optimizer.query import Catalog
from optimizer.shape import shape
from optimizer.sharing.expand import CLASS
from optimizer.sharing.group import OWNER, Group, Template, group
from optimizer.sharing.program import lowering, shared_program


@dataclass(frozen=True)
class Together:
    """A group in one batch. `work` is as if the group were one query: its first member's name stands for it."""

    name: str
    group: Group
    work: Work
    standings: Mapping[str, Standing]


@dataclass(frozen=True)
class Shared:
    """What came of it: rows of the members of each template, who has to run apart, the longest task's seconds; `partials` and `repeats` as of an Answer."""

    together: Together
    made: tuple[tuple[Template, pa.Table], ...]
    apart: frozenset[str]
    seconds: float
    partials: pa.Table | None = None
    repeats: tuple[tuple[int, int], ...] = ()

    @cached_property
    def rows(self) -> tuple[tuple[str, pa.Table], ...]:
        """By shared table."""
        return tuple((table_of(self.together.standings[template.members[0][0]].columns), rows) for template, rows in self.made)

    @cached_property
    def answered(self) -> tuple[str, ...]:
        return tuple(n for n in self.together.group.names if n not in self.apart)


def digest(text: str) -> str:
    """A short name of a text that no other one has."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def table_of(columns: str) -> str:
    """The table in which queries with these columns (as the ledger writes them) have their answers while they share."""
    return f"results/shared-{digest(columns)}"


@lru_cache(maxsize=64)
def grouped(texts: tuple[tuple[str, str], ...], catalog: Catalog) -> Group:
    """The group of these queries (name, text): made once for as long as its members stay."""
    return group({name: parsed(sql, catalog) for name, sql in texts})


def together(context: Context, batch: Batch, standings: Mapping[str, Standing]) -> list[Together]:
    """Every group of the batch that has a boundary to answer in it."""
    found = []
    for name, names in batch.shared.items():
        made = grouped(tuple((n, standings[n].sql) for n in names), context.catalog)
        due = tuple(t for t in batch.boundaries if t % made.common.every == 0)
        if due:
            work = Work(standings[names[0]], made.common, made.plan, due, BEGINNING, due[0], _parts(context, made.plan))
            found.append(Together(name, made, work, {n: standings[n] for n in names}))
    return found


def watched(context: Context, asked: Together) -> Work:
    """The member of which samples are taken, for all: as if it ran alone."""
    first = asked.work.standing
    return replace(asked.work, query=parsed(first.sql, context.catalog))


def _parts(context: Context, plan: Plan) -> int:
    return plan.parts or max(context.tasks.width, 1)


def orders(context: Context, batch: Batch, asked: Together) -> list[Order]:
    """One for each task."""
    work = asked.work
    low = lowering(asked.group, parts=work.parts, complete=complete(context, work))
    todo = points(context, work)
    return [_order(context, batch, asked, replace(low, part=part), todo) for part in range(work.parts)]


def _order(context: Context, batch: Batch, asked: Together, low: Lowering, todo: tuple[int, ...]) -> Order:
    narrow, wide = (shared_program(asked.group, replace(low, narrow=n), todo) for n in (True, False))
    found = {s.name: located(context, batch, asked.work, s, low.part) for s in narrow.sources}
    files, certain = {n: p[0] for n, p in found.items()}, {n: p[1] for n, p in found.items()}
    return Order(asked.name, low.part, low.parts, narrow, wide, files, {}, f"b{batch.number}", certain=certain)


def shared(context: Context, asked: Together, outcomes: Sequence[Outcome]) -> Shared:
    """All members' answers; where a task failed, for whatever member's sake, all run apart."""
    seconds = max((o.seconds for o in outcomes), default=0.0)
    if any(o.failed for o in outcomes):
        return Shared(asked, (), frozenset(asked.group.names), seconds)
    partials = pa.concat_tables([o.partials for o in outcomes if o.partials is not None])
    same = quiet.repeated(asked.work.due, points(context, asked.work))
    found, apart = finished(asked.group, partials, same)
    return Shared(asked, tuple(found), apart, seconds, partials, tuple(same))


def finished(asked: Group, partials: pa.Table, same: Sequence[tuple[int, int]]) -> tuple[list[tuple[Template, pa.Table]], frozenset[str]]:
    """Rows (query, boundary, outputs) of each template, and the members that have none. `same` is (boundary, the computed one that it repeats)."""
    con = kernel.shared()
    try:
        con.register("computed", partials)
        con.register("same", pa.table({"_t": pa.array([t for t, _ in same], pa.int64()), "_of": pa.array([c for _, c in same], pa.int64())}))
        doubtful = failing(lowering(asked, narrow=False))
        bad = {row[0] for row in con.execute(f"SELECT DISTINCT {CLASS} FROM computed WHERE e > 0").fetchall()} if doubtful else set()
        apart = {n for t in asked.templates for n, number in t.members if number in bad}
        found = []
        for template in asked.templates:
            members = tuple(m for m in template.members if m[1] not in bad)
            made, failed = _finished(con, asked, replace(template, members=members))
            found += made
            apart |= failed
        return found, frozenset(apart)
    finally:
        con.close()


def _finished(con: kernel.Connection, asked: Group, template: Template) -> tuple[list[tuple[Template, pa.Table]], set[str]]:
    """By halves where the last statement fails, until those that fail stand alone."""
    members = template.members
    if not members:
        return [], set()
    try:
        return [(template, _rows(con, asked, template))], set()
    except kernel.Error as error:
        if not kernel.about_data(error):
            raise
    if len(members) == 1:
        return [], {members[0][0]}
    halves = [_finished(con, asked, replace(template, members=half)) for half in (members[:len(members) // 2], members[len(members) // 2:])]
    return [f for found, _ in halves for f in found], halves[0][1] | halves[1][1]


def _rows(con: kernel.Connection, asked: Group, template: Template) -> pa.Table:
    names, numbers = zip(*template.members)
    con.register("members", pa.table({OWNER: pa.array(names, pa.string()), CLASS: pa.array(numbers, pa.int64())}))
    con.execute(f"CREATE OR REPLACE TEMP VIEW partials AS SELECT members.{OWNER}, same._t, computed.* EXCLUDE (_t, {CLASS}) "
                f"FROM computed JOIN same ON computed._t = same._of JOIN members ON members.{CLASS} = computed.{CLASS}")
    con.execute(f"CREATE OR REPLACE TEMP VIEW due AS SELECT members.{OWNER}, same._t FROM members, same")
    return kernel.table(con, final(Lowering(shape(template.query), asked.plan, narrow=False), owner=(OWNER,)))
