"""SELECTs within SELECTs, and what is more than one block: WITH, derived tables, subqueries, joins that are not inner,
set operations, ORDER BY with LIMIT; from the parser's tree to blocks (optimizer.query.blocks).
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from optimizer.errors import ForebayError
from optimizer.expression.arguments import choose
from optimizer.expression.expr import Call, Column, Expr, GroupRef, Literal, SubqueryRef, inputs, walk
from optimizer.expression.functions.arithmetic import grouped
from optimizer.expression.functions.table import OPERATORS
from optimizer.expression.scalar import can_fail
from optimizer.expression.types import BOOLEAN, INT, STRING
from optimizer.query.aggregate import Aggregate
from optimizer.query.blocks import (
    Block,
    Columns,
    Item,
    Joined,
    Named,
    Ordering,
    Over,
    Rows,
    Rowset,
    SetOperation,
    Subquery,
    columns_within,
    expressions,
    items_within,
    within,
)
from optimizer.query.model import Catalog, Input
from optimizer.sql import overs
from optimizer.sql.expressions import Scope, convert, resolve
from optimizer.sql.select import SelectItem, grouping, having_of, named_outputs, over_groups, select_item, select_items
from optimizer.sql.sources import Entry, declared_input, entry_of, owners
from optimizer.sql.text import Source
from optimizer.sql.tree import described, extras, offset

SET_OPERATIONS: dict[type, str] = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}
KINDS = {"": "inner", "INNER": "inner", "CROSS": "inner", "LEFT": "left", "LEFT OUTER": "left", "RIGHT": "right",
         "RIGHT OUTER": "right", "FULL": "full", "FULL OUTER": "full", "OUTER": "full", "LEFT SEMI": "semi",
         "SEMI": "semi", "LEFT ANTI": "anti", "ANTI": "anti"}
SELECT_PARTS = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "order", "limit", "offset",
                "qualify", "with_", "kind", "operation_modifiers")
MOST_BLOCKS = 64      # SELECTs in one query
FIRST_ITEM = 100      # entries of FROM are numbered from here: no input of a query has such a number


@dataclass(frozen=True)
class Question:
    """A text of several SELECTs: its rows, and the streams and relations that they are of."""

    rows: Rowset
    inputs: tuple[Input, ...]


def is_nested(tree: exp.Expr) -> bool:
    """Whether a text is more than SELECT … FROM streams WHERE … GROUP BY … HAVING …"""
    if not isinstance(tree, exp.Select):
        return True
    if any(tree.args.get(part) for part in ("with_", "distinct", "order", "limit", "offset", "qualify")):
        return True
    if any(isinstance(node, (exp.Select, exp.Exists, exp.Window)) for node in tree.walk() if node is not tree):
        return True
    return any(_kind(join) not in ("inner", "?") for join in tree.args.get("joins") or [])


def question(tree: exp.Expr, source: Source, catalog: Catalog) -> Question:
    """The text as blocks, valid by Spark's rules and ours; its streams in the order of the text."""
    reader = _Reader(source, catalog, _windows(tree, source))
    rows = reader.rowset(tree, None, _Names())
    if not any(declared.is_stream for declared in reader.inputs):
        raise ForebayError("no-stream", "the query reads no stream, only relations",
                           hint=f"streams are {', '.join(name for name, _, _ in catalog.streams)}")
    return Question(rows, tuple(reader.inputs))


def _windows(tree: exp.Expr, source: Source) -> dict[int, tuple[Entry, object]]:
    """By where a table stands in the text: its entry, and the window after it."""
    tables = [node for node in tree.find_all(exp.Table) if isinstance(node.this, exp.Identifier)]
    entries = sorted((entry_of(node, source) for node in tables), key=lambda entry: entry.start)
    windows = owners(entries, source, source.windows)
    owners(entries, source, source.stamps, "TIMESTAMP BY")
    return {entry.start: (entry, windows[place]) for place, entry in enumerate(entries)}


def _kind(join: exp.Expr) -> str:
    """One of JOINS; `?` for what Spark has no word for."""
    words = " ".join(str(join.args[part]).upper() for part in ("method", "side", "kind") if join.args.get(part))
    return KINDS.get(words, "?")


@dataclass(frozen=True)
class _Names:
    """What WITH has named so far."""

    by_name: dict[str, Named] = field(default_factory=dict)

    def and_(self, name: str, named: Named) -> _Names:
        return _Names({**self.by_name, name.lower(): named})


@dataclass
class _SelectParts:
    """What is collected while one SELECT is read."""

    subqueries: list[Subquery] = field(default_factory=list)
    overs: list[Over] = field(default_factory=list)


class _Reader:
    """One text. `inputs` are its streams and relations, each with a window once, however often it is read."""

    def __init__(self, source: Source, catalog: Catalog, entries: dict[int, tuple[Entry, object]]) -> None:
        self.source, self.catalog, self.entries = source, catalog, entries
        self.inputs: list[Input] = []
        self.numbers, self.names, self.blocks = count(FIRST_ITEM), count(), 0

    # --- rows --------------------------------------------------------------------------------------------------------

    def rowset(self, node: exp.Expr, around: Scope | None, names: _Names) -> Rowset:
        self.blocks += 1
        if self.blocks > MOST_BLOCKS:
            raise self.refusal("query-too-deep", f"a query has at most {MOST_BLOCKS} SELECTs", node)
        names = self._with(node, around, names)
        if isinstance(node, exp.Subquery):
            return self._parenthesized(node, around, names)
        if type(node) in SET_OPERATIONS:
            return self._set_operation(node, around, names)
        if isinstance(node, exp.Select):
            return _BlockReader(self, node, around, names).rowset()
        raise self.refusal("not-supported", f"{described(node)} is not accepted in a query", node,
                            "a query is SELECT …, or SELECTs that UNION, INTERSECT or EXCEPT puts together")

    def _with(self, node: exp.Expr, around: Scope | None, names: _Names) -> _Names:
        clause = node.args.get("with_")
        if clause is None:
            return names
        if clause.args.get("recursive"):
            raise self.refusal("not-supported", "WITH RECURSIVE is not accepted", clause)
        for cte in clause.expressions:
            rows = self.rowset(cte.this, None, names)
            alias = cte.args["alias"]
            rows = self.renamed(rows, alias)
            names = names.and_(alias.name, Named(next(self.names), rows))
        return names

    def renamed(self, rows: Rowset, alias: exp.Expr | None) -> Rowset:
        """With the column names that stand after an alias: AS t(a, b)."""
        columns = alias.args.get("columns") if alias is not None else None
        if not columns:
            return rows
        if len(columns) != len(rows.columns):
            raise self.refusal("wrong-arguments", f"{alias.name if alias else ''} names {len(columns)} columns, and "
                                                   f"has {len(rows.columns)}", columns[0])
        number = next(self.numbers)
        outputs = [(name.name, Column(number, old, kind)) for name, (old, kind) in zip(columns, rows.columns)]
        return Block((Joined(Item(number, rows, "")),), (), tuple(outputs))

    def _parenthesized(self, node: exp.Expr, around: Scope | None, names: _Names) -> Rowset:
        if more := extras(node, ("this", "alias", "with_", "order", "limit", "offset")):
            raise self.refusal("not-supported", f"{', '.join(more).upper()} is not accepted after a SELECT in "
                                                 "parentheses", node)
        rows = self.rowset(node.this, around, names)
        if any(node.args.get(part) for part in ("order", "limit", "offset")):
            return self._ordered(node, rows)
        return rows

    def _set_operation(self, node: exp.Expr, around: Scope | None, names: _Names) -> Rowset:
        if more := extras(node, ("this", "expression", "distinct", "with_", "order", "limit", "offset")):
            raise self.refusal("not-supported", f"{', '.join(more).upper()} is not accepted after "
                                                 f"{described(node)}", node)
        left, right = self.rowset(node.this, around, names), self.rowset(node.expression, around, names)
        kind = SET_OPERATIONS[type(node)]
        if len(left.columns) != len(right.columns):
            raise self.refusal("type-mismatch", f"{kind.upper()} of {len(left.columns)} columns and "
                                                 f"{len(right.columns)}", node, "both sides have as many columns")
        left, right = self._of_one_type(left, right, kind)
        is_all = not node.args.get("distinct")
        rows: Rowset = SetOperation(kind, is_all or kind == "union", left, right, next(self.numbers))
        if kind == "union" and not is_all:
            rows = self.distinct(rows)
        if any(node.args.get(part) for part in ("order", "limit", "offset")):
            return self._ordered(node, rows)
        return rows

    def _of_one_type(self, left: Rowset, right: Rowset, kind: str) -> tuple[Rowset, Rowset]:
        """Both with the wider of each pair of types."""
        one, other = next(self.numbers), next(self.numbers)
        firsts, seconds = list[Expr](), list[Expr]()
        for (name, kind_of_left), (second_name, kind_of_right) in zip(left.columns, right.columns):
            if kind_of_left != kind_of_right and STRING in (kind_of_left, kind_of_right):
                raise ForebayError("type-mismatch", f"{kind.upper()}: column {name} is {kind_of_left} on one side and "
                                                    f"{kind_of_right} on the other", hint="cast one of them")
            pair = choose((Column(one, name, kind_of_left), Column(other, second_name, kind_of_right)))
            normal = kind != "union"      # 0.0 and -0.0 are one value to INTERSECT and EXCEPT
            firsts.append(grouped(pair[0]) if normal else pair[0])
            seconds.append(grouped(pair[1]) if normal else pair[1])
        return self._computed(left, one, firsts, left.columns), self._computed(right, other, seconds, left.columns)

    def _computed(self, rows: Rowset, number: int, exprs: Sequence[Expr], names: Columns) -> Rowset:
        """The rows with these values in the place of their columns; the rows themselves where that is nothing else."""
        if all(isinstance(expr, Column) for expr in exprs):
            return rows
        outputs = tuple((name, expr) for (name, _), expr in zip(names, exprs))
        return Block((Joined(Item(number, rows, "")),), (), outputs)

    def distinct(self, rows: Rowset) -> Block:
        """Each row once: grouped by all its columns."""
        number = next(self.numbers)
        groups = tuple(grouped(Column(number, name, kind)) for name, kind in rows.columns)
        outputs = tuple((name, GroupRef(place, kind)) for place, (name, kind) in enumerate(rows.columns))
        return Block((Joined(Item(number, rows, "")),), (), outputs, is_aggregate=True, groups=groups)

    def _ordered(self, node: exp.Expr, rows: Rowset) -> Rowset:
        """ORDER BY and LIMIT after rows that are there already: by their columns."""
        number = next(self.numbers)
        scope = Scope(self.source, (Input("", "", None, None, rows.columns),), place="ORDER BY", numbers=(number,))
        outputs = tuple((name, Column(number, name, kind)) for name, kind in rows.columns)
        order = [self.ordering(each, scope, outputs) for each in _orderings(node)]
        ties = [Ordering(expr) for _, expr in outputs]
        limit, start = self.limits(node)
        if limit is None and not start:
            return rows
        return Block((Joined(Item(number, rows, "")),), (), outputs, order=(*order, *ties), limit=limit, offset=start)

    def ordering(self, node: exp.Expr, scope: Scope, outputs: Sequence[tuple[str, Expr]]) -> Ordering:
        """An entry of ORDER BY: a result column by its number or name, else an expression."""
        expr = _numbered(node.this, outputs)
        if expr is None and isinstance(node.this, exp.Literal):
            raise self.refusal("wrong-order", f"ORDER BY {node.this.sql()}: SELECT has {len(outputs)} items", node)
        expr = expr if expr is not None else convert(node.this, scope)
        return Ordering(grouped(expr), bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def limits(self, node: exp.Expr) -> tuple[int | None, int]:
        limit, start = node.args.get("limit"), node.args.get("offset")
        if limit is not None and not isinstance(limit, exp.Limit):
            raise self.refusal("not-supported", "FETCH is not accepted", limit, "write LIMIT")
        return (self._whole(limit.expression, "LIMIT") if limit is not None else None,
                self._whole(start.expression, "OFFSET") if start is not None else 0)

    def _whole(self, node: exp.Expr, what: str) -> int:
        if not isinstance(node, exp.Literal) or node.args.get("is_string") or not str(node.this).isdigit():
            raise self.refusal("wrong-arguments", f"{what} takes a whole number", node, f"for instance {what} 10")
        return min(int(node.this), 2**31 - 1)

    # --- entries of FROM ---------------------------------------------------------------------------------------------

    def item(self, node: exp.Expr, names: _Names) -> Item:
        if isinstance(node, exp.Subquery):
            rows = self.renamed(self.rowset(node, None, names), node.args.get("alias"))
            return Item(next(self.numbers), rows, node.alias)
        entry, window = self.entries[entry_of(node, self.source).start]
        named = names.by_name.get(entry.name.lower())
        if named is not None:
            if window is not None:
                raise self.refusal("bad-window", f"{entry.name} is what WITH calls so, and takes no window", node,
                                    "windows stand after streams, inside WITH")
            return Item(next(self.numbers), named, entry.alias)
        declared = declared_input(entry, window, self.source, self.catalog)      # type: ignore[arg-type]
        return Item(next(self.numbers), Rows(self._place(declared), declared.columns), entry.alias)

    def _place(self, declared: Input) -> int:
        """The same stream with the same window is one input."""
        for place, other in enumerate(self.inputs):
            if (other.source, other.window) == (declared.source, declared.window):
                return place
        taken = {other.alias.lower() for other in self.inputs}
        alias = declared.alias
        if alias.lower() in taken:
            alias = next(f"{alias}_{n}" for n in count(2) if f"{alias}_{n}".lower() not in taken)
        self.inputs.append(replace(declared, alias=alias))
        return len(self.inputs) - 1

    def refusal(self, code: str, message: str, node: exp.Expr, hint: str | None = None) -> ForebayError:
        return self.source.error(code, message, offset(node), hint)


class _BlockReader:
    """One SELECT; also what reads subqueries and window functions in its expressions."""

    def __init__(self, reader: _Reader, node: exp.Select, around: Scope | None, names: _Names) -> None:
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
            self.where += self._conjuncts(where.this, self.base.at("WHERE"))
        items = [item for node in self.node.expressions for item in select_items(node, self.base, self.aggregates)]
        groups = grouping(self.node.args.get("group"), items, self.base)
        having = having_of(self.node.args.get("having"), items, groups, self.base, self.aggregates)
        qualify = self._qualify(items)
        orderings = [self._ordering(each, items) for each in _orderings(self.node)]
        is_aggregate = bool(groups or self.aggregates)
        if not is_aggregate and having is not None:
            raise self.reader.refusal("not-supported", "HAVING needs GROUP BY or aggregates",
                                      self.node.args["having"], "conditions on rows stand in WHERE")
        block = self._block(items, groups, having, qualify, orderings, is_aggregate)
        self._check(block)
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

    def _over(self, over: Over, above: object, items: list[SelectItem], ties: tuple[Ordering, ...]) -> Over:
        """With what is over groups, and an order that leaves no ties where that could be seen."""
        item = items[0] if not items[0].starred else replace(items[0], starred=False)

        def lifted(expr: Expr) -> Expr:
            return above(expr, item)      # type: ignore[operator, no-any-return]

        aggregate = over.aggregate
        if aggregate is not None and aggregate.argument is not None:
            aggregate = replace(aggregate, argument=lifted(aggregate.argument))
        order = tuple(replace(ordering, expr=lifted(ordering.expr)) for ordering in over.order)
        return replace(over, args=tuple(map(lifted, over.args)), partition=tuple(grouped(lifted(e)) for e in
                       over.partition), order=(*order, *ties) if overs.breaks_ties(over) else order,
                       aggregate=aggregate)

    def _ties(self, groups: tuple[Expr, ...], is_aggregate: bool) -> tuple[Ordering, ...]:
        """INTERFACE, "Language": all columns of the block's input, left to right; of groups what tells them apart."""
        if is_aggregate:
            return tuple(Ordering(GroupRef(place, expr.type)) for place, expr in enumerate(groups))
        return tuple(Ordering(Column(joined.item.number, name, kind))
                     for joined in self.joined if joined.is_shown for name, kind in joined.item.columns)

    def _distinct(self, block: Block) -> Rowset:
        """SELECT DISTINCT: its rows grouped, then ordered by what they show."""
        if self.node.args["distinct"].args.get("on"):
            raise self.reader.refusal("not-supported", "DISTINCT ON is not accepted", self.node)
        rows = self.reader.distinct(replace(block, order=(), limit=None, offset=0))
        if block.limit is None and not block.offset:
            return rows
        place_by_expr = {expr: place for place, (_, expr) in enumerate(block.outputs)}
        order, ties = [], [Ordering(ref) for _, ref in rows.outputs]
        for ordering in block.order[:len(_orderings(self.node))]:
            place = next((p for expr, p in place_by_expr.items() if ordering.expr in (expr, grouped(expr))), None)
            if place is None:
                raise self.reader.refusal("wrong-order", "SELECT DISTINCT is ordered by columns that it shows",
                                          self.node.args["order"])
            order.append(replace(ordering, expr=rows.outputs[place][1]))
        return replace(rows, order=(*order, *ties), limit=block.limit, offset=block.offset)

    # --- FROM --------------------------------------------------------------------------------------------------------

    def _from(self, around: Scope | None) -> tuple[tuple[Joined, ...], Scope]:
        joins = self.node.args.get("joins") or []
        joined = [Joined(self.reader.item(self.node.args["from_"].this, self.names))]
        merged: frozenset[tuple[int, str]] = frozenset()
        has_comma, kinds = False, [self._kind(join) for join in joins]
        for place, (join, kind) in enumerate(zip(joins, kinds)):
            item = self.reader.item(join.this, self.names)
            is_comma = not any(join.args.get(part) for part in ("on", "using", "method", "side", "kind"))
            if kind in ("right", "full") and has_comma:
                raise self.reader.refusal("not-supported", f"{kind.upper()} JOIN after a comma is not accepted", join,
                                          "write JOIN … ON in the place of the comma")
            has_comma = has_comma or is_comma
            self._check_name(item, joined, join)
            scope = self._scope([*joined, Joined(item)], around, merged)
            on = self._conjuncts(join.args["on"], scope.at("ON")) if join.args.get("on") else []
            for name in join.args.get("using") or []:
                on.append(self._using(name, joined, item, kind, around, merged))
                merged |= {(item.number, name.name.lower())}
            # What is joined from the right keeps its rows, whatever was left out before.
            if kind == "inner" and not {"right", "full"} & set(kinds[place + 1:]):
                self.where += on
                on = []
            joined.append(Joined(item, kind, tuple(on)))
        return tuple(joined), self._scope([each for each in joined if each.is_shown], around, merged)

    def _kind(self, join: exp.Expr) -> str:
        kind = _kind(join)
        if more := extras(join, ("this", "on", "using", "method", "side", "kind")):
            raise self.reader.refusal("not-supported", f"a join with {', '.join(more).upper()} is not accepted", join)
        if kind == "?":
            words = " ".join(str(join.args[part]) for part in ("method", "side", "kind") if join.args.get(part))
            raise self.reader.refusal("not-supported", f"{words} JOIN is not accepted", join,
                                      "write [LEFT, RIGHT, FULL] JOIN … ON, or LEFT SEMI or LEFT ANTI JOIN … ON")
        return kind

    def _check_name(self, item: Item, before: list[Joined], node: exp.Expr) -> None:
        if item.alias and any(each.item.alias.lower() == item.alias.lower() for each in before):
            raise self.reader.refusal("ambiguous-input", f"{item.alias} stands twice in FROM", node,
                                      "give each an alias")

    def _scope(self, joined: Sequence[Joined], around: Scope | None, merged: frozenset[tuple[int, str]]) -> Scope:
        declared = tuple(Input(each.item.alias, "", None, None, each.item.columns) for each in joined)
        return Scope(self.reader.source, declared, merged, numbers=tuple(each.item.number for each in joined),
                     around=around, nested=self)

    def _using(self, name: exp.Expr, before: list[Joined], item: Item, kind: str, around: Scope | None,
               merged: frozenset[tuple[int, str]]) -> Expr:
        if kind in ("right", "full"):
            raise self.reader.refusal("not-supported", f"{kind.upper()} JOIN … USING is not accepted", name,
                                      "write ON, and COALESCE where a column may come from either side")
        left = self._scope(before, None, merged)
        right = self._scope([Joined(item)], None, frozenset())
        return OPERATORS["="]((resolve(name.name, None, left), resolve(name.name, None, right)))

    def _conjuncts(self, node: exp.Expr, scope: Scope) -> list[Expr]:
        whole = convert(node, scope)
        if isinstance(whole, Literal) and whole.value is None:
            whole = Literal(None, BOOLEAN)
        if whole.type != BOOLEAN:
            raise self.reader.refusal("type-mismatch", f"{scope.place} takes a condition, not {whole.type}", node)
        terms = whole.args if isinstance(whole, Call) and whole.function == "and" else (whole,)
        return [term for term in terms if not (isinstance(term, Literal) and term.value is True)]

    # --- what stands in expressions ----------------------------------------------------------------------------------

    def subquery(self, node: exp.Expr, scope: Scope) -> Expr:
        if scope.place == "ON":
            raise ForebayError("not-supported", "a subquery in ON is not accepted", hint="write it in WHERE")
        kind = "exists" if isinstance(node, exp.Exists) else "list" if isinstance(node, exp.In) else "scalar"
        tree = node.args["query"] if kind == "list" else node.this if kind == "exists" else node
        rows = self.reader.rowset(tree, replace(scope.at("WHERE"), correlations={}), self.names)
        if kind == "exists" and isinstance(rows, Block) and rows.is_plain:
            rows = replace(rows, outputs=(("one", Literal(1, INT)),))
        own = {item.number for item in items_within(rows)} | {each.number for each in within(rows) if isinstance(each, SetOperation)}
        outer = {column for column in columns_within(rows) if column.input not in own}
        if outer:
            self._check_correlated(rows, own, kind)
        if kind == "list":
            return self._member(node, rows, scope, bool(outer))
        if kind == "scalar":
            self._check_scalar(rows, bool(outer))
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
            rows = Block((Joined(Item(number, rows, "")),), (), ((name, pair.args[1]),))
        self.parts.subqueries.append(Subquery("list", rows, correlated))
        reference = SubqueryRef(len(self.parts.subqueries) - 1, pair.args[1].type)
        return Call("in_subquery", (pair.args[0], reference), BOOLEAN)

    def _check_scalar(self, rows: Rowset, correlated: bool) -> None:
        if len(rows.columns) != 1:
            raise ForebayError("wrong-arguments", f"a subquery that stands for a value has one column, this one has "
                                                  f"{len(rows.columns)}")
        if not is_one_row(rows) or correlated and not (isinstance(rows, Block) and rows.is_aggregate):
            raise ForebayError("several-rows", "a subquery that stands for a value could give several rows",
                               hint="write an aggregate, (SELECT MAX(x) FROM …), or IN or EXISTS")

    def _check_correlated(self, rows: Rowset, own: set[int], kind: str) -> None:
        """A subquery that reads columns of the SELECT around it hangs together with it by an equality in WHERE."""
        if not isinstance(rows, Block) or rows.limit is not None or rows.overs or rows.subqueries and any(
                subquery.correlated for subquery in rows.subqueries):
            raise ForebayError("not-supported", "a subquery that reads columns of the SELECT around it is one SELECT "
                                                "without LIMIT, OVER and set operations",
                               hint="write the condition in the outer WHERE, or join a derived table")
        if rows.is_aggregate and (rows.groups or kind != "scalar"):
            raise ForebayError("not-supported", "a subquery that reads columns of the SELECT around it has no GROUP BY",
                               hint="join a derived table that is grouped")
        elsewhere = [expr for block in within(rows) if isinstance(block, Block)
                     for expr in expressions(block) if block is not rows or expr not in rows.where]
        if any(inputs(expr) - own for expr in elsewhere):
            raise ForebayError("not-supported", "a subquery reads columns of the SELECT around it in its WHERE only",
                               hint="move the condition to its WHERE")
        if not any(_equates(term, own) for term in rows.where):
            raise ForebayError("cross-product", "a subquery hangs together with the SELECT around it by no equality",
                               hint="add one to its WHERE: inner.x = outer.y")
        if any(can_fail(expr) for block in within(rows) if isinstance(block, Block) for expr in expressions(block)):
            raise ForebayError("not-supported", "a subquery that reads columns of the SELECT around it has an "
                                                "expression that can fail (division, overflow, a cast)",
                               hint="compute it in the outer SELECT, or write try_divide, try_add, TRY_CAST")

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
        _check_products(block, self.node, self.reader)
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


def _orderings(node: exp.Expr) -> list[exp.Expr]:
    clause = node.args.get("order")
    return list(clause.expressions) if clause is not None else []


def _numbered(node: exp.Expr, outputs: Sequence[tuple[str, Expr]]) -> Expr | None:
    if isinstance(node, exp.Literal) and not node.args.get("is_string") and str(node.this).isdigit():
        place = int(node.this)
        return outputs[place - 1][1] if 1 <= place <= len(outputs) else None
    return None


def is_one_row(rows: Rowset) -> bool:
    """Whether it never has more than one row."""
    if isinstance(rows, Block):
        return rows.limit in (0, 1) or rows.is_aggregate and not rows.groups
    return rows.limit in (0, 1)


def _equates(term: Expr, own: set[int]) -> bool:
    """Whether a condition is an equality of a value of these items with one of others."""
    if not isinstance(term, Call) or term.function != "eq":
        return False
    sides = [inputs(side) for side in term.args]
    return all(sides) and any(sides[one] <= own and not sides[1 - one] & own for one in (0, 1))


def _check_products(block: Block, node: exp.Expr, reader: _Reader) -> None:
    """Every item hangs together with those before it by equalities, or is one row."""
    numbers = [joined.item.number for joined in block.items]
    edges = list[frozenset[int]]()
    for terms in (block.where, *(joined.on for joined in block.items)):
        edges += [inputs(term) & set(numbers) for term in terms if _is_equality(term)]
    reached = {numbers[0]} | {joined.item.number for joined in block.items if _is_single(joined)}
    while touching := [edge for edge in edges if edge & reached and not edge <= reached]:
        reached.update(*touching)
    loose = [joined.item for joined in block.items if joined.item.number not in reached]
    if loose and not _is_single(block.items[0]):
        raise reader.refusal("cross-product", f"{loose[0].alias or 'an entry of FROM'} is not joined with what stands "
                                              "before it: there are no cross products", node,
                             "add an equality that cannot raise: a.x = b.y")
    for joined in block.items:
        if joined.kind != "inner" and not _is_single(joined) and not any(
                _equates(term, {joined.item.number}) for term in joined.on):
            raise reader.refusal("cross-product", f"{joined.kind.upper()} JOIN of {joined.item.alias} has no equality "
                                                  "in ON", node, "add one: a.x = b.y")


def _is_single(joined: Joined) -> bool:
    of = joined.item.of
    return not isinstance(of, Rows) and is_one_row(of.of if isinstance(of, Named) else of)


def _is_equality(term: Expr) -> bool:
    return isinstance(term, Call) and term.function == "eq" and not can_fail(term) and all(
        len(inputs(side)) >= 1 for side in term.args) and inputs(term.args[0]) != inputs(term.args[1])
