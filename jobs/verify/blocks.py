"""A user's text of several SELECTs for Spark SQL: every stream in it, at any depth, becomes the rows of its window;
where an order leaves ties, they are broken as INTERFACE says. Spark does all the rest; nothing of the planner.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

Names = list[str]
ColumnsOf = Callable[[str], Names]      # of a stream or relation
PARTS = ("with_", "with", "distinct", "order", "limit", "offset", "qualify")
# Functions to which rows that are equal in ORDER BY are one place.
PEERS = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)


def is_nested(tree: exp.Expr) -> bool:
    """Whether a text is more than one SELECT with joins that are inner."""
    if not isinstance(tree, exp.Select) or any(tree.args.get(part) for part in PARTS):
        return True
    group = tree.args.get("group")
    if group is not None and any("session_window" in each.sql().lower() for each in group.expressions):
        return True
    if any(node is not tree and isinstance(node, (exp.Select, exp.Exists, exp.Window)) for node in tree.walk()):
        return True
    return any(join.args.get("side") or join.args.get("kind") in ("OUTER", "SEMI", "ANTI")
               for join in tree.args.get("joins") or [])


def names_of_ctes(tree: exp.Expr) -> set[str]:
    return {cte.alias.lower() for cte in tree.find_all(exp.CTE)}


def tables_of(tree: exp.Expr) -> list[exp.Table]:
    """Every stream and relation that is read, as often as it is."""
    named = names_of_ctes(tree)
    return [node for node in tree.find_all(exp.Table) if node.name.lower() not in named]


def with_rows(tree: exp.Expr, rows_of: Callable[[exp.Table], exp.Expr], columns_of: ColumnsOf,
              ended: Callable[[str], tuple[str, str] | None]) -> exp.Expr:
    """The text with each table replaced by its rows, under the name that it has there."""
    tree = tree.copy()
    for select in tree.find_all(exp.Select):
        _group_by_sessions(select, ended)
    ties = _Ties(tree, columns_of)
    ties.add()
    for select in list(tree.find_all(exp.Select)):
        if select.args.get("qualify"):
            without = _without_qualify(select, ties.shown(select))
            if select is tree:
                tree = without
            else:
                select.replace(without)
    for table in tables_of(tree):
        alias = table.args.get("alias")
        name = alias.this if alias is not None else exp.to_identifier(table.name.partition("__")[2] or table.name)
        table.replace(exp.Subquery(this=rows_of(table), alias=exp.TableAlias(this=name)))
    return tree


def _group_by_sessions(select: exp.Select, ended: Callable[[str], tuple[str, str] | None]) -> None:
    """The sessions that have ended: by a bracket after the stream, or as GROUP BY says."""
    start = select.args.get("from_") or select.args.get("from")
    if start is None or not isinstance(start.this, exp.Table):
        return
    group, told = select.args.get("group"), ended(start.this.name)
    own = group is not None and any("session_window" in each.sql().lower() for each in group.expressions)
    if told is None or not (own or told[0]):
        return
    if told[0]:
        grouped = list(group.expressions) if group is not None else []
        select.set("group", exp.Group(expressions=[*grouped, sqlglot.parse_one(told[0], read="databricks")]))
    having = select.args.get("having")
    conditions = [*([having.this] if having is not None else []), sqlglot.parse_one(told[1], read="databricks")]
    # Spark moves a condition on grouping columns below GROUP BY, here to rows before they are sessions; not this one.
    later = sqlglot.parse_one("CASE WHEN monotonically_increasing_id() >= 0 THEN TRUE END", read="databricks")
    later.args["ifs"][0].set("true", exp.and_(*conditions))
    select.set("having", exp.Having(this=later))


def _without_qualify(select: exp.Select, names: Names) -> exp.Select:
    """QUALIFY as Spark of every version has it: a condition that is computed, then asked for."""
    inner = select.copy()
    parts = {part: inner.args.get(part) for part in ("limit", "offset", "with_", "with")}
    order, condition = inner.args.get("order"), inner.args["qualify"].this
    for part in (*parts, "order", "qualify"):
        inner.set(part, None)
    orderings = list(order.expressions) if order is not None else []
    keys = [exp.alias_(ordering.this, f"_o{n}") for n, ordering in enumerate(orderings)]
    inner.set("expressions", [*inner.expressions, *keys, exp.alias_(condition, "_q")])
    outer = exp.select(*(exp.column(name) for name in names)).from_(inner.subquery("_qualified"))
    outer = outer.where(exp.column("_q"))
    for n, ordering in enumerate(orderings):
        ordering.set("this", exp.column(f"_o{n}"))
    if orderings:
        outer.set("order", exp.Order(expressions=orderings))
    for part, value in parts.items():
        outer.set(part, value)
    return outer


@dataclass(frozen=True)
class _Ties:
    """Orders made whole. `columns_of` gives the columns of a table as the text marks it."""

    tree: exp.Expr
    columns_of: ColumnsOf

    def add(self) -> None:
        for select in list(self.tree.find_all(exp.Select)):
            for window in self._own_windows(select):
                self._order(window, self._ties(select))
            if select.args.get("limit") or select.args.get("offset"):
                by_output = [] if select.args.get("order") else self._outputs(select)
                self._order(select, [*by_output, *self._ties(select)])
        for operation in list(self.tree.find_all(exp.SetOperation)):
            if operation.args.get("limit") or operation.args.get("offset"):
                self._order(operation, [exp.column(name) for name in self.shown(operation)])

    def _own_windows(self, select: exp.Select) -> list[exp.Window]:
        """The SELECT's window functions in which equal rows would have to be told apart."""
        own = []
        for window in select.find_all(exp.Window):
            spec = window.args.get("spec")
            is_aggregate = isinstance(window.this, exp.AggFunc) and not isinstance(
                window.this, (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.First, exp.Last))
            by_rows = spec is not None and str(spec.args.get("kind")).upper() == "ROWS"
            if window.find_ancestor(exp.Select) is select and not isinstance(window.this, PEERS) and (
                    not is_aggregate or by_rows):
                own.append(window)
        return own

    def _order(self, node: exp.Expr, ties: list[exp.Expr]) -> None:
        clause = node.args.get("order")
        entries = [*(clause.expressions if clause is not None else []),
                   *(exp.Ordered(this=tie.copy(), nulls_first=True) for tie in ties)]
        if entries:
            node.set("order", exp.Order(expressions=entries))

    def _ties(self, select: exp.Select) -> list[exp.Expr]:
        """Grouping expressions, or all columns of FROM; of SELECT DISTINCT what it shows."""
        if select.args.get("distinct"):
            return self._outputs(select)
        group = select.args.get("group")
        if group is not None:
            return [self._by_number(select, each) for each in group.expressions]
        if any(isinstance(node, exp.AggFunc) and not node.find_ancestor(exp.Window) for e in select.selects
               for node in e.find_all(exp.AggFunc)):
            return []
        return [exp.column(column, table=alias) for alias, names in self._items(select) for column in names]

    def _by_number(self, select: exp.Select, node: exp.Expr) -> exp.Expr:
        return select.selects[int(node.this) - 1].unalias() if isinstance(node, exp.Literal) else node

    def _outputs(self, select: exp.Select) -> list[exp.Expr]:
        return [exp.column(name) for name in self.shown(select)]

    def _items(self, select: exp.Select) -> list[tuple[str, Names]]:
        """The entries of FROM that are seen above their joins, with their columns."""
        start = select.args.get("from_") or select.args["from"]
        joins = select.args.get("joins") or []
        shown = [start.this, *(join.this for join in joins if join.args.get("kind") not in ("SEMI", "ANTI"))]
        return [(node.alias or node.name.partition("__")[2] or node.name, self._columns(node)) for node in shown]

    def _columns(self, node: exp.Expr) -> Names:
        alias = node.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            return [column.name for column in alias.args["columns"]]
        if isinstance(node, exp.Subquery):
            return self.shown(node.this)
        for cte in self.tree.find_all(exp.CTE):
            if cte.alias.lower() == node.name.lower():
                columns = cte.args["alias"].args.get("columns")
                return [column.name for column in columns] if columns else self.shown(cte.this)
        return self.columns_of(node.name)

    def shown(self, rows: exp.Expr) -> Names:
        """The names of what a SELECT shows."""
        if isinstance(rows, (exp.SetOperation, exp.Subquery)):
            return self.shown(rows.this)
        assert isinstance(rows, exp.Select)
        names: Names = []
        for item in rows.selects:
            if isinstance(item, exp.Star) or isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                only = item.table.lower() if isinstance(item, exp.Column) else ""
                names += [name for alias, columns in self._items(rows) for name in columns
                          if only in ("", alias.lower())]
            else:
                names.append(item.alias or item.name)
        return names
