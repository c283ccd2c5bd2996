"""From the partials of queries that share a work to the rows of each.

A query whose last statement fails, or whose class holds a row that fails, is named and has no rows; the others have
theirs.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from jobs.batch import quiet
from jobs.batch.figures import Told
from jobs.batch.large import Merge, Merged, WrittenRows
from jobs.engine import kernel
from optimizer.plan.final import final
from optimizer.plan.lowering import Lowering
from optimizer.plan.operators.join import failing
from optimizer.query.shape import shape
from optimizer.sharing.expand import CLASS
from optimizer.sharing.group import OWNER, Group, Template
from optimizer.sharing.program import lowering

Published = TypeVar("Published")
# What becomes of a template's rows: from a connection, the template's number and the statement that gives them.
Publish = Callable[[kernel.Connection, int, str], Published]


def finished(members: Group, partials: pa.Table,
             repeats: Sequence[tuple[int, int]]) -> tuple[list[tuple[Template, pa.Table]], frozenset[str]]:
    """WrittenRows (query, boundary, outputs) of each template, and the members that have none.

    `repeats` are pairs of a boundary and the computed one that it repeats.
    """
    con = kernel.shared()
    try:
        con.register("computed", partials)
        return published(con, members, repeats, lambda con, number, sql: kernel.table(con, sql))
    finally:
        con.close()


def published(con: kernel.Connection, members: Group, repeats: Sequence[tuple[int, int]],
              publish: Publish[Published]) -> tuple[list[tuple[Template, Published]], frozenset[str]]:
    """The same from the relation `computed`."""
    con.register("same", quiet.repeats_table(repeats))
    bad_classes: set[int] = set()
    if failing(lowering(members, narrow=False)):
        rows_with_errors = con.execute(f"SELECT DISTINCT {CLASS} FROM computed WHERE e > 0").fetchall()
        bad_classes = {number for number, in rows_with_errors}
    apart: set[str] = set()
    rows_by_template: list[tuple[Template, Published]] = []
    for number, template in enumerate(members.templates):
        apart |= {name for name, of_class in template.members if of_class in bad_classes}
        sound = tuple((name, of_class) for name, of_class in template.members if of_class not in bad_classes)
        of_template, failed = _published(con, members, number, replace(template, members=sound), publish)
        rows_by_template += of_template
        apart |= failed
    return rows_by_template, frozenset(apart)


def _published(con: kernel.Connection, query_group: Group, number: int, template: Template,
               publish: Publish[Published]) -> tuple[list[tuple[Template, Published]], set[str]]:
    """By halves where the last statement fails, until those that fail stand alone."""
    members = template.members
    if not members:
        return [], set()
    try:
        return [(template, publish(con, number, _statement(con, query_group, template)))], set()
    except kernel.Error as error:
        if not kernel.about_data(error):
            raise
    if len(members) == 1:
        return [], {members[0][0]}
    middle = len(members) // 2
    first, second = replace(template, members=members[:middle]), replace(template, members=members[middle:])
    rows_of_first, failed_of_first = _published(con, query_group, number, first, publish)
    rows_of_second, failed_of_second = _published(con, query_group, number, second, publish)
    return rows_of_first + rows_of_second, failed_of_first | failed_of_second


def _statement(con: kernel.Connection, query_group: Group, template: Template) -> str:
    names, numbers = zip(*template.members)
    con.register("members", pa.table({OWNER: pa.array(names, pa.string()), CLASS: pa.array(numbers, pa.int64())}))
    con.execute(
        f"CREATE OR REPLACE TEMP VIEW partials AS SELECT members.{OWNER}, same._t, computed.* EXCLUDE (_t, {CLASS}) "
        f"FROM computed JOIN same ON computed._t = same._of JOIN members ON members.{CLASS} = computed.{CLASS}")
    con.execute(f"CREATE OR REPLACE TEMP VIEW due AS SELECT members.{OWNER}, same._t FROM members, same")
    return final(Lowering(shape(template.query), query_group.plan, narrow=False), owner=(OWNER,))


@dataclass(frozen=True)
class MembersMerge(Merge):
    """The rows of a query group's members, where there are many groups."""

    members: Group

    def write(self, con: kernel.Connection) -> Merged:
        told = [Told.of(template.query, is_shared=True) for template in self.members.templates]

        def publish(con: kernel.Connection, number: int, sql: str) -> tuple[WrittenRows, ...]:
            return self.written(con, number, sql, told[number])

        rows_by_template, apart = published(con, self.members, self.repeats, publish)
        return Merged(self.of, tuple(rows for _, parts in rows_by_template for rows in parts), apart=apart)

    def without(self, queries: frozenset[str]) -> MembersMerge:
        templates = []
        for template in self.members.templates:
            left = tuple((name, number) for name, number in template.members if name not in queries)
            templates.append(replace(template, members=left))
        return replace(self, members=replace(self.members, templates=tuple(templates)))
