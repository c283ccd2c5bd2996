"""Which queries share one work at a boundary, and why the others do not; the decision is part of the batch's intent, nothing is computed here."""
from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from jobs import expect_files, tables
from jobs.queries import Standing, standings
from jobs.shared import digest, grouped, table_of
from jobs.works import parsed, plan_value
from optimizer.plan import placed
from optimizer.query import Catalog
from optimizer.sharing.group import alone, form, parts_of
from optimizer.sharing.price import LEAST, Load, pays

if TYPE_CHECKING:
    from jobs.runner import Runtime

MOST = 2_000            # queries that one work answers: its statements grow with them
PARSED = 200            # queries that `query show` parses to say what the next boundary does; of more it says what the last one did: each takes 3 ms
SHOWN = 20              # members that `query show` names
TASKS = "tasks"
DEAR = "{count} queries of its form are in force, but their windows hold so many rows that each for itself, from state, costs less"


@dataclass(frozen=True)
class Sharing:
    """Groups by name, and of every query outside them the reason."""

    groups: Mapping[str, tuple[str, ...]]
    apart: Mapping[str, str]

    @cached_property
    def group_of(self) -> Mapping[str, str]:
        """Each member's group."""
        return {n: group for group, names in self.groups.items() for n in names}


def decide(rt: Runtime, active: Mapping[str, Standing], boundary: int | None = None) -> Sharing:
    """The groups of these queries at a boundary (None: the one after the last): those of one form, if the price says so for the rows there are."""
    formed, last = _formed_groups(rt, active), rt.ledger.last()
    before = last[1].shared if last else {}
    at = boundary if boundary is not None else last[1].boundaries[-1] + rt.pipeline.batch if last else None
    dear = {g for g, names in formed.groups.items() if at is not None and rt.share_from is None and not _pays(rt, active, names, at, g in before)}
    if not dear:
        return formed
    apart = {n: DEAR.format(count=len(formed.groups[g])) for g in dear for n in formed.groups[g]}
    return Sharing({g: names for g, names in formed.groups.items() if g not in dear}, {**formed.apart, **apart})


def _pays(rt: Runtime, active: Mapping[str, Standing], names: tuple[str, ...], boundary: int, standing: bool) -> bool:
    made = grouped(tuple((n, active[n].sql) for n in names), rt.catalog)
    window = came = 0
    for declared in made.common.inputs:
        if declared.window is None or not tables.exists(rt.path("streams", declared.source)):
            continue
        files, stamp = rt.table(f"streams/{declared.source}").files(), declared.event_time or ""
        oldest = declared.window.oldest(boundary)
        window += sum(f.rows for f in files if f.high.get(stamp, oldest) >= oldest and f.low.get("_boundary", boundary) <= boundary)
        came += sum(f.rows for f in files if boundary - rt.pipeline.batch < f.high.get("_boundary", boundary) <= boundary)
    return pays(Load(window, came, len(made.classes), len(names)), standing)


def _formed_groups(rt: Runtime, active: Mapping[str, Standing]) -> Sharing:
    least, judged = rt.share_from or LEAST, {g.name for g in rt.declared or expect_files.read(rt.pipeline) if g.subject == expect_files.QUERY}
    foreign, asked = _foreign(rt), tuple(sorted((s.name, s.sql, _bound(s, judged)) for s in active.values()))
    if rt.sharing is None or rt.sharing[0] != (least, foreign, asked):
        rt.sharing = ((least, foreign, asked), _decided(rt.catalog, asked, foreign, least))
    return rt.sharing[1]


def _bound(standing: Standing, judged: Collection[str]) -> str:
    """What a person asked of this query that a group cannot do."""
    if standing.pin:
        return f"it is pinned to {standing.pin}"
    return "expectations of its answer are declared, which are judged of it alone" if standing.name in judged else ""


def _foreign(rt: Runtime) -> str | None:
    """Why nothing here can run in tasks, where groups run."""
    if rt.engine == "jvm":
        return "groups run in tasks, and Spark SQL is asked for"
    for name in rt.pipeline.streams:
        if tables.exists(rt.path("streams", name)) and rt.table(f"streams/{name}").features:
            return f"groups run in tasks, which cannot read all of the table of stream {name}"
    return None


def _decided(catalog: Catalog, asked: Iterable[tuple[str, str, str]], foreign: str | None, least: int) -> Sharing:
    apart: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for name, sql, bound in asked:
        own, reason = _formed(sql, catalog)
        reason = foreign or bound or reason
        if reason:
            apart[name] = reason
        else:
            found.setdefault(own, []).append(name)
    few = {n: _few(names, least) for names in found.values() if len(names) < least for n in names}
    groups = {f"shared:{own}-{k}": part for own, names in found.items() if len(names) >= least for k, part in enumerate(parts_of(names, MOST))}
    return Sharing(groups, apart | few)


@lru_cache(maxsize=16384)
def _formed(sql: str, catalog: Catalog) -> tuple[str, str | None]:
    """A query's form as a short name, or why it stays alone."""
    query = parsed(sql, catalog)
    reason = alone(query)
    return ("", reason) if reason else (digest(repr(form(query))), None)


def _few(names: list[str], least: int) -> str:
    if len(names) == 1:
        return "no other query in force joins the same windows in the same way by the same groups"
    return f"only {len(names)} queries of its form are in force, and sharing pays from {least} on"


def plan_values(rt: Runtime, sharing: Sharing, active: Mapping[str, Standing]) -> dict[str, Mapping[str, Any]]:
    """Each member's plan is its group's."""
    found: dict[str, Mapping[str, Any]] = {}
    for names in sharing.groups.values():
        value = plan_value(placed(grouped(tuple((n, active[n].sql) for n in names), rt.catalog).plan, TASKS))
        found.update({n: value for n in names})
    return found


def said(rt: Runtime, standing: Standing) -> dict[str, Any]:
    """With whom a query in force shares, and where its answers are then; or why it runs alone."""
    if not standing.active:
        return {}
    active = {n: s for n, s in standings(rt.ledger.all_changes()).items() if s.active}
    now = decide(rt, active) if len(active) <= PARSED else _at_last(rt)
    group = now.group_of.get(standing.name)
    if group is None:
        return {"shares_with": [], "alone": now.apart.get(standing.name) or _own_reason(rt, standing)}
    some = [n for n in now.groups[group][:SHOWN + 1] if n != standing.name][:SHOWN]
    return {"table": table_of(standing.columns), "group": group, "members": len(now.groups[group]), "shares_with": some}


def _at_last(rt: Runtime) -> Sharing:
    """As the last batch was: what a command can say of thousands of queries without parsing each."""
    last = rt.ledger.last()
    if rt.sharing is None or rt.sharing[0] != last:
        rt.sharing = (last, Sharing(last[1].shared if last else {}, {}))
    return rt.sharing[1]


def _own_reason(rt: Runtime, standing: Standing) -> str:
    return _bound(standing, ()) or _formed(standing.sql, rt.catalog)[1] or "it shared with none at the last boundary"


def tables_of(standing: Standing) -> tuple[str, str]:
    """Where a query's answers can be: its own table, and that of queries with its columns while it shares."""
    return standing.table, table_of(standing.columns)


def newest(rt: Runtime, standing: Standing) -> str:
    """The table that holds its last published answer."""
    last = rt.ledger.last()
    own, together = tables_of(standing)
    return together if last is not None and any(standing.name in names for names in last[1].shared.values()) else own
