"""One SELECT of several: its FROM with joins of every kind, what is asked of the rows, and what stands in its
expressions that is more than an expression.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from optimizer.errors import ForebayError
from optimizer.expression.expr import Call, Column, Expr, GroupRef, Literal, SubqueryRef, walk
from optimizer.expression.functions.arithmetic import grouped
from optimizer.expression.functions.table import OPERATORS
from optimizer.expression.scalar import can_fail
from optimizer.expression.types import BOOLEAN, INT, STRING, TIMESTAMP
from optimizer.query.aggregate import Aggregate
from optimizer.query.blocks import (
    BOUNDARY,
    Block,
    Item,
    JoinedItem,
    Ordering,
    Over,
    Rowset,
    Subquery,
    columns_within,
    expressions,
)
from optimizer.query.model import Input
from optimizer.query.sessions import END, START, of_sessions
from optimizer.sql.expressions import Scope, conjuncts, convert, resolve
from optimizer.sql.nested import overs
from optimizer.sql.nested.grouping_sets import grouping_sets_of
from optimizer.sql.nested.reading import Names, Rowsets, Session, kind_of_join, orderings_of, session_call
from optimizer.sql.nested.subqueries import check_correlated, check_products, check_scalar, numbers_within
from optimizer.sql.select import SelectItem, grouping, having_of, named_outputs, over_groups, select_item, select_items
from optimizer.sql.tree import extras
from optimizer.sql.windows import length

SELECT_PARTS = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "order", "limit", "offset",
                "qualify", "with_", "kind", "operation_modifiers")


@dataclass
class _SelectParts:
    """What is collected while one SELECT is read."""

    subqueries: list[Subquery] = field(default_factory=list)
    overs: list[Over] = field(default_factory=list)


class BlockReader:
    """One SELECT; also what reads subqueries and window functions in its expressions."""

    def __init__(self, reader: Rowsets, node: exp.Select, around: Scope | None, names: Names) -> None:
        self.reader, self.node, self.names = reader, node, names
        self.parts = _SelectParts()
        self.aggregates: dict[Aggregate, int] = {}
        if more := extras(node, SELECT_PARTS):
            raise reader.refusal("not-supported", f"{', '.join(more).upper()} is not accepted", node)
        if node.args.get("kind") or node.args.get("operation_modifiers"):
            raise reader.refusal("not-supported", "SELECT takes no modifiers", node, "write SELECT expression, …")
        if node.args.get("from_") is None:
            raise reader.refusal("no-stream", "a SELECT reads nothing", node, "write SELECT … FROM …")
        self.where: list[Expr] = []
        self.joined, self.base = self._from(around)

    def rowset(self) -> Rowset:
        where = self.node.args.get("where")
        if where is not None:
            self.where += conjuncts(where.this, self.base.at("WHERE"))
        items = [item for node in self.node.expressions for item in select_items(node, self.base, self.aggregates)]
        session, sets = self._session(), self._grouping_sets(items)
        groups = grouping(self.node.args.get("group"), items, self.base)
        groups += self._groups_of_session(session, groups)
        having = having_of(self.node.args.get("having"), items, groups, self.base, self.aggregates)
        qualify = self._qualify(items)
        orderings = [self._ordering(each, items) for each in orderings_of(self.node)]
        is_aggregate = bool(groups or self.aggregates)
        if not is_aggregate and having is not None:
            raise self.reader.refusal("not-supported", "HAVING needs GROUP BY or aggregates",
                                      self.node.args["having"], "conditions on rows stand in WHERE")
        block = self._block(items, groups, having, qualify, orderings, is_aggregate)
        names = [name for name, _ in block.outputs]
        self.reader.shown[id(self.node)] = [
            pair for item, name in zip(items, names)
            for pair in ((name.lower(), name), *(() if item.starred else ((item.node.sql().lower(), name),)))]
        self._check(block)
        if sets:
            return self._by_sets(block, groups, sets)
        if session is not None:
            numbers = self.reader.numbers
            block = of_sessions(block, session.event_time, session.gap, (next(numbers), next(numbers), next(numbers)))
        if not self.node.args.get("distinct"):
            return block
        return self._distinct(block)

    def _block(self, items: list[SelectItem], groups: tuple[Expr, ...], having: SelectItem | None,
               qualify: SelectItem | None, orderings: list[tuple[Ordering, SelectItem]], is_aggregate: bool) -> Block:
        def above(expr: Expr, item: SelectItem) -> Expr:
            if is_aggregate and item.starred:
                raise self.reader.refusal("not-supported", "* is not accepted in a query with aggregates", item.node,
                                          "name the grouping columns")
            return over_groups(expr, groups, item, self.base) if is_aggregate else expr

        outputs = named_outputs(items, [above(item.expr, item) for item in items], self.base, tuple(self.aggregates))
        order = [replace(ordering, expr=above(ordering.expr, item)) for ordering, item in orderings]
        ties = self._ties(groups, is_aggregate)
        all_overs = tuple(self._over(over, above, items, ties) for over in self.parts.overs)
        limit, start = self.reader.limits(self.node)
        is_cut = limit is not None or start > 0
        by_output = [] if order or not is_cut else [Ordering(expr) for _, expr in outputs]
        return Block(self.joined, tuple(self.where), outputs, is_aggregate, tuple(map(grouped, groups)),
                     tuple(self.aggregates), above(having.expr, having) if having else None, all_overs,
                     above(qualify.expr, qualify) if qualify else None,
                     (*order, *by_output, *ties) if is_cut else (), limit, start, tuple(self.parts.subqueries))

    def _over(self, over: Over, above: Callable[[Expr, SelectItem], Expr], items: list[SelectItem],
              ties: tuple[Ordering, ...]) -> Over:
        """With what is over groups, and an order that leaves no ties where that could be seen."""
        item = items[0] if not items[0].starred else replace(items[0], starred=False)

        def lifted(expr: Expr) -> Expr:
            return above(expr, item)

        own = over.of(lifted)
        return replace(own, partition=tuple(map(grouped, own.partition)),
                       order=(*own.order, *ties) if overs.breaks_ties(over) else own.order)

    def _ties(self, groups: tuple[Expr, ...], is_aggregate: bool) -> tuple[Ordering, ...]:
        """INTERFACE, "Language": all columns of the block's input, left to right; of groups what tells them apart."""
        if is_aggregate:
            return tuple(Ordering(GroupRef(place, expr.type)) for place, expr in enumerate(groups))
        return tuple(Ordering(Column(joined.item.number, name, kind))
                     for joined in self.joined if joined.is_shown for name, kind in joined.item.columns)

    def _grouping_sets(self, items: list[SelectItem]) -> list[frozenset[Expr]]:
        """Of ROLLUP, CUBE and GROUPING SETS; GROUP BY has all of their expressions afterwards."""
        sets = grouping_sets_of(self.node)
        if not sets:
            return []
        self.node.set("group", exp.Group(expressions=list({
            node.sql(): node for nodes in sets for node in nodes}.values())))
        return [frozenset(expr for node in nodes
                          for expr in grouping(exp.Group(expressions=[node]), items, self.base)) for nodes in sets]

    def _by_sets(self, block: Block, groups: tuple[Expr, ...], sets: list[frozenset[Expr]]) -> Rowset:
        """A block for each set: what is not in it is NULL, a constant by which rows are grouped too."""
        if block.overs or self.node.args.get("distinct"):
            raise self.reader.refusal("not-supported", "OVER and DISTINCT beside ROLLUP, CUBE and GROUPING SETS are "
                                                       "not accepted", self.node, "put them around a derived table")
        plain = replace(block, order=(), limit=None, offset=0)
        blocks = [replace(plain, groups=tuple(own if expr in members else Literal(None, own.type)
                                              for own, expr in zip(block.groups, groups))) for members in sets]
        rows = self.reader.union(blocks)
        if block.limit is None and not block.offset:
            return rows
        place_by_expr = {expr: place for place, (_, expr) in enumerate(block.outputs)}
        order = []
        for ordering in block.order[:len(orderings_of(self.node))]:
            if ordering.expr not in place_by_expr:
                raise self.reader.refusal("wrong-order", "the groups of several sets are ordered by columns that "
                                                         "SELECT shows", self.node.args["order"])
            order.append((place_by_expr[ordering.expr], ordering))
        return self.reader.cut(rows, order, block.limit, block.offset)

    def _session(self) -> Session | None:
        """Of the one item, if its rows are grouped by sessions."""
        sessions = [self.reader.sessions[joined.item.number] for joined in self.joined
                    if joined.item.number in self.reader.sessions]
        if not sessions:
            return None
        if len(self.joined) > 1:
            raise self.reader.refusal("not-supported", "sessions are of one stream: nothing is joined with them",
                                      self.node, "group them in a derived table, and join that")
        return sessions[0]

    def _groups_of_session(self, session: Session | None, groups: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """When it began and ended; what it is by is grouped by already."""
        if session is None:
            return ()
        if session.by is not None:
            by = {resolve(name.strip("`"), None, self.base) for name in session.by}
            if by != set(groups):
                raise self.reader.refusal(
                    "wrong-group", "a query over sessions is grouped by the columns BY which they are told apart: "
                                   f"{', '.join(session.by) or 'none'}", self.node,
                    f"write GROUP BY {', '.join(session.by)}" if session.by else "leave GROUP BY out, or write BY")
        elif resolve(self.session_time.name, self.session_time.table or None, self.base) != Column(
                self.joined[0].item.number, session.event_time, TIMESTAMP):
            raise self.reader.refusal("wrong-arguments", f"session_window takes the event time, {session.event_time}",
                                      self.node)
        number = self.joined[0].item.number
        return Column(number, START, TIMESTAMP), Column(number, END, TIMESTAMP)

    def _distinct(self, block: Block) -> Rowset:
        """SELECT DISTINCT: its rows grouped, then ordered by what they show."""
        if self.node.args["distinct"].args.get("on"):
            raise self.reader.refusal("not-supported", "DISTINCT ON is not accepted", self.node)
        rows = self.reader.distinct(replace(block, order=(), limit=None, offset=0))
        if block.limit is None and not block.offset:
            return rows
        place_by_expr = {expr: place for place, (_, expr) in enumerate(block.outputs)}
        order, ties = [], [Ordering(ref) for _, ref in rows.outputs]
        for ordering in block.order[:len(orderings_of(self.node))]:
            place = next((p for expr, p in place_by_expr.items() if ordering.expr in (expr, grouped(expr))), None)
            if place is None:
                raise self.reader.refusal("wrong-order", "SELECT DISTINCT is ordered by columns that it shows",
                                          self.node.args["order"])
            order.append(replace(ordering, expr=rows.outputs[place][1]))
        return replace(rows, order=(*order, *ties), limit=block.limit, offset=block.offset)

    # --- FROM --------------------------------------------------------------------------------------------------------

    def _from(self, around: Scope | None) -> tuple[tuple[JoinedItem, ...], Scope]:
        joins = self.node.args.get("joins") or []
        first, gap = self.node.args["from_"].this, self._gap()
        joined = [JoinedItem(self.reader.item(first, self.names) if gap is None else
                             self.reader.session_item(first, gap))]
        merged: frozenset[tuple[int, str]] = frozenset()
        has_comma, kinds = False, [self._kind(join) for join in joins]
        for place, (join, kind) in enumerate(zip(joins, kinds)):
            item = self.reader.item(join.this, self.names)
            is_comma = not join.args.get("on") and not join.args.get("using")
            if kind in ("right", "full") and has_comma:
                raise self.reader.refusal("not-supported", f"{kind.upper()} JOIN after a comma is not accepted", join,
                                          "write JOIN … ON in the place of the comma")
            has_comma = has_comma or is_comma
            self._check_name(item, joined, join)
            scope = self._scope([*joined, JoinedItem(item)], around, merged)
            on = conjuncts(join.args["on"], scope.at("ON")) if join.args.get("on") else []
            for name in join.args.get("using") or self._common_names(join, joined, item):
                on.append(self._using(name, joined, item, kind, around, merged))
                merged |= {(item.number, name.name.lower())}
            # What is joined from the right keeps its rows, whatever was left out before.
            if kind == "inner" and not {"right", "full"} & set(kinds[place + 1:]):
                self.where += on
                on = []
            joined.append(JoinedItem(item, kind, tuple(on)))
        return tuple(joined), self._scope([each for each in joined if each.is_shown], around, merged)

    def _common_names(self, join: exp.Expr, before: list[JoinedItem], item: Item) -> list[exp.Expr]:
        """Of NATURAL JOIN."""
        if not join.args.get("method"):
            return []
        earlier = {name.lower() for each in before for name, _ in each.item.columns}
        names = [exp.to_identifier(name) for name, _ in item.columns if name.lower() in earlier]
        if not names:
            raise self.reader.refusal("cross-product", f"{item.alias} has no column in common with what stands before "
                                                       "it", join, "write JOIN … ON")
        return list(names)

    def _gap(self) -> int | None:
        """The pause that session_window(ts, '30 minutes') in GROUP BY allows; the call then leaves the list."""
        call = session_call(self.node)
        if call is None:
            return None
        words = call.expressions[1].name.split() if len(call.expressions) == 2 else []
        if len(words) != 2 or not isinstance(call.expressions[0], exp.Column):
            raise self.reader.refusal("wrong-arguments", "session_window takes the event time and a constant length",
                                      call, "session_window(ts, '30 minutes')")
        clause = self.node.args["group"]
        clause.set("expressions", [each for each in clause.expressions if each is not call])
        self.session_time = call.expressions[0]
        if not clause.expressions:
            self.node.set("group", None)
        return length(words[0], words[1])

    def _kind(self, join: exp.Expr) -> str:
        kind = kind_of_join(join)
        if more := extras(join, ("this", "on", "using", "method", "side", "kind")):
            raise self.reader.refusal("not-supported", f"a join with {', '.join(more).upper()} is not accepted", join)
        if kind == "?":
            words = " ".join(str(join.args[part]) for part in ("method", "side", "kind") if join.args.get(part))
            raise self.reader.refusal("not-supported", f"{words} JOIN is not accepted", join,
                                      "write [LEFT, RIGHT, FULL] JOIN … ON, or LEFT SEMI or LEFT ANTI JOIN … ON")
        return kind

    def _check_name(self, item: Item, before: list[JoinedItem], node: exp.Expr) -> None:
        if item.alias and any(each.item.alias.lower() == item.alias.lower() for each in before):
            raise self.reader.refusal("ambiguous-input", f"{item.alias} stands twice in FROM", node,
                                      "give each an alias")

    def _scope(self, joined: Sequence[JoinedItem], around: Scope | None, merged: frozenset[tuple[int, str]]) -> Scope:
        hidden = ((START, TIMESTAMP), (END, TIMESTAMP))
        declared = tuple(Input(each.item.alias, "", None, None, (
            *each.item.columns, *(hidden if each.item.number in self.reader.sessions else ()))) for each in joined)
        return Scope(self.reader.source, declared, merged, numbers=tuple(each.item.number for each in joined),
                     around=around, nested=self)

    def _using(self, name: exp.Expr, before: list[JoinedItem], item: Item, kind: str, around: Scope | None,
               merged: frozenset[tuple[int, str]]) -> Expr:
        if kind in ("right", "full"):
            raise self.reader.refusal("not-supported", f"{kind.upper()} JOIN … USING is not accepted", name,
                                      "write ON, and COALESCE where a column may come from either side")
        left = self._scope(before, None, merged)
        right = self._scope([JoinedItem(item)], None, frozenset())
        return OPERATORS["="]((resolve(name.name, None, left), resolve(name.name, None, right)))

    # --- what stands in expressions ----------------------------------------------------------------------------------

    def subquery(self, node: exp.Expr, scope: Scope) -> Expr:
        if scope.place == "ON":
            raise ForebayError("not-supported", "a subquery in ON is not accepted", hint="write it in WHERE")
        kind = "exists" if isinstance(node, exp.Exists) else "list" if isinstance(node, exp.In) else "scalar"
        tree = node.args["query"] if kind == "list" else node.this if kind == "exists" else node
        rows = self.reader.rowset(tree, scope.at("WHERE"), self.names)
        if kind == "exists" and isinstance(rows, Block) and rows.is_plain:
            rows = replace(rows, outputs=(("one", Literal(1, INT)),))
        own = numbers_within(rows)
        outer = {column for column in columns_within(rows) if column.input not in own | {BOUNDARY}}
        if outer:
            check_correlated(rows, own, kind)
        if kind == "list":
            return self._member(node, rows, scope, bool(outer))
        if kind == "scalar":
            check_scalar(rows, bool(outer))
        type_ = BOOLEAN if kind == "exists" else rows.columns[0][1]
        self.parts.subqueries.append(Subquery(kind, rows, bool(outer)))
        return SubqueryRef(len(self.parts.subqueries) - 1, type_)

    def _member(self, node: exp.Expr, rows: Rowset, scope: Scope, correlated: bool) -> Expr:
        """x IN (SELECT …): both sides of one type, as for =."""
        if len(rows.columns) != 1:
            raise ForebayError("wrong-arguments", f"IN (SELECT …) compares one column, this one has "
                                                  f"{len(rows.columns)}", hint="write EXISTS for several")
        number = next(self.reader.numbers)
        name, kind = rows.columns[0]
        left = convert(node.this, scope)
        if left.type != kind and STRING in (left.type, kind):
            raise ForebayError("type-mismatch", f"IN compares {left.type} with {kind}", hint="cast one of them")
        pair = OPERATORS["="]((left, Column(number, name, kind)))
        assert isinstance(pair, Call)
        if pair.args[1] != Column(number, name, kind):
            rows = Block((JoinedItem(Item(number, rows, "")),), (), ((name, pair.args[1]),))
        self.parts.subqueries.append(Subquery("list", rows, correlated))
        reference = SubqueryRef(len(self.parts.subqueries) - 1, pair.args[1].type)
        return Call("in_subquery", (pair.args[0], reference), BOOLEAN)

    def over(self, node: exp.Expr, scope: Scope) -> Expr:
        if scope.place not in ("SELECT", "QUALIFY", "ORDER BY"):
            raise ForebayError("misplaced-aggregate", f"a window function (OVER) is not accepted in {scope.place}",
                               hint="compute it in a derived table, or write QUALIFY")
        return overs.read(node, scope, self.parts.overs)

    # --- above -------------------------------------------------------------------------------------------------------

    def _qualify(self, items: list[SelectItem]) -> SelectItem | None:
        clause = self.node.args.get("qualify")
        if clause is None:
            return None
        aliases = {item.alias.lower(): item.expr for item in items if item.alias}
        item = select_item(clause.this, None, self.base, "QUALIFY", self.aggregates, aliases)
        if item.expr.type != BOOLEAN:
            raise self.reader.refusal("type-mismatch", f"QUALIFY takes a condition, not {item.expr.type}", clause.this)
        if not self.parts.overs:
            raise self.reader.refusal("not-supported", "QUALIFY needs a window function (OVER)", clause,
                                      "conditions on rows stand in WHERE, on groups in HAVING")
        return item

    def _ordering(self, node: exp.Expr, items: list[SelectItem]) -> tuple[Ordering, SelectItem]:
        aliases = {item.alias.lower(): item.expr for item in items if item.alias}
        scope = self.base.at("ORDER BY", self.aggregates, aliases)
        ordering = self.reader.ordering(node, scope, [(item.alias or "", item.expr) for item in items])
        return ordering, SelectItem(node.this, None, ordering.expr, ungrouped=tuple(scope.column_offsets.items()))

    def _check(self, block: Block) -> None:
        """What hangs together by no equality, and what cannot be decided where it stands, is refused."""
        check_products(block)
        if block.is_aggregate:
            above = [expr for _, expr in block.outputs] + [block.having] * (block.having is not None)
            refs = [leaf for expr in above if expr is not None for leaf in walk(expr) if isinstance(leaf, SubqueryRef)]
            if any(block.subqueries[ref.index].correlated for ref in refs):
                raise self.reader.refusal("not-supported", "a subquery that reads columns of a SELECT with aggregates "
                                                           "is accepted in its WHERE only", self.node)
        for expr in expressions(block):
            if can_fail(expr) and any(isinstance(leaf, SubqueryRef) for leaf in walk(expr)):
                raise self.reader.refusal("not-supported", "an expression with a subquery can fail (division, overflow,"
                                                           " a cast)", self.node,
                                          "compute it in the subquery, or in a derived table")
        for joined in block.items:
            if any(can_fail(expr) for expr in joined.on):
                raise self.reader.refusal("not-supported", f"the condition of a {joined.kind.upper()} JOIN can fail on "
                                                           "a row (division, overflow, a cast)", self.node,
                                          "compute the value in a derived table first")
