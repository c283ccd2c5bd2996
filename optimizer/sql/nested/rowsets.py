"""SELECTs within SELECTs, and what is more than one block: WITH, derived tables, set operations, ORDER BY with LIMIT;
from the parser's tree to blocks (optimizer.query.blocks).
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from sqlglot import exp

from optimizer.errors import ForebayError
from optimizer.expression.arguments import choose
from optimizer.expression.expr import Column, Expr, GroupRef
from optimizer.expression.functions.arithmetic import grouped
from optimizer.expression.types import STRING
from optimizer.query.blocks import (
    Block,
    Columns,
    Item,
    JoinedItem,
    NamedRows,
    Ordering,
    Rowset,
    RowsOfInput,
    SetOperation,
)
from optimizer.query.model import Catalog, Input, Printed
from optimizer.sql.expressions import Scope, convert
from optimizer.sql.nested.block import BlockReader
from optimizer.sql.nested.grouping_sets import grouping_sets_of
from optimizer.sql.nested.reading import Names, Session, kind_of_join, orderings_of, session_call
from optimizer.sql.sources import FromEntry, declared_input, entry_of, owners
from optimizer.sql.text import Lifted, Source
from optimizer.sql.tree import described, extras, offset
from optimizer.sql.windows import length

SET_OPERATIONS: dict[type, str] = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}
SESSION = re.compile(r"\s*SESSION\s+(\S+)\s+(\w+)(?:\s+BY\s+(.+?))?\s*", re.IGNORECASE)
MOST_BLOCKS = 64      # SELECTs in one query, as written
MOST_READ = 256       # those that WITH names counted wherever they are read
FIRST_ITEM = 100      # entries of FROM are numbered from here: no input of a query has such a number


@dataclass(frozen=True)
class Question:
    """A text of several SELECTs: its rows, and the streams and relations that they are of."""

    rows: Rowset
    inputs: tuple[Input, ...]
    order: tuple[Printed, ...]


def is_nested(tree: exp.Expr, source: Source) -> bool:
    """Whether a text is more than SELECT … FROM streams WHERE … GROUP BY … HAVING …"""
    if not isinstance(tree, exp.Select):
        return True
    if any(tree.args.get(part) for part in ("with_", "distinct", "order", "limit", "offset", "qualify")):
        return True
    if grouping_sets_of(tree) or session_call(tree) is not None or any(
            SESSION.fullmatch(window.content) for window in source.windows):
        return True
    if any(isinstance(node, (exp.Select, exp.Exists, exp.Window)) for node in tree.walk() if node is not tree):
        return True
    joins = tree.args.get("joins") or []
    return any(join.args.get("method") or kind_of_join(join) not in ("inner", "?") for join in joins)


def question(tree: exp.Expr, source: Source, catalog: Catalog) -> Question:
    """The text as blocks, valid by Spark's rules and ours; its streams in the order of the text."""
    reader = TextReader(source, catalog, _windows(tree, source))
    rows = reader.rowset(tree, None, Names())
    reader.size(rows, tree)
    if not any(declared.is_stream for declared in reader.inputs):
        raise ForebayError("no-stream", "the query reads no stream, only relations",
                           hint=f"streams are {', '.join(name for name, _, _ in catalog.streams)}")
    return Question(rows, tuple(reader.inputs), reader.printed(tree, rows))


def _windows(tree: exp.Expr, source: Source) -> dict[int, tuple[FromEntry, Lifted | None]]:
    """By where a table stands in the text: its entry, and the window after it."""
    tables = [node for node in tree.find_all(exp.Table) if isinstance(node.this, exp.Identifier)]
    entries = sorted((entry_of(node, source) for node in tables), key=lambda entry: entry.start)
    windows = owners(entries, source, source.windows)
    owners(entries, source, source.stamps, "TIMESTAMP BY")
    return {entry.start: (entry, windows[place]) for place, entry in enumerate(entries)}


class TextReader:
    """One text. `inputs` are its streams and relations, each with a window once, however often it is read."""

    def __init__(self, source: Source, catalog: Catalog, entries: dict[int, tuple[FromEntry, Lifted | None]]) -> None:
        self.source, self.catalog, self.entries = source, catalog, entries
        self.inputs: list[Input] = []
        self.numbers: Iterator[int] = count(FIRST_ITEM)
        self.names, self.blocks = count(), 0
        self.sessions: dict[int, Session] = {}      # by item
        self.sizes: dict[int, int] = {}      # of what WITH names
        # by SELECT: how what it shows may be written in ORDER BY, and its name
        self.shown: dict[int, list[tuple[str, str]]] = {}

    # --- rows --------------------------------------------------------------------------------------------------------

    def rowset(self, node: exp.Expr, around: Scope | None, names: Names) -> Rowset:
        self.blocks += 1
        if self.blocks > MOST_BLOCKS:
            raise self.refusal("query-too-deep", f"a query has at most {MOST_BLOCKS} SELECTs", node)
        names = self._with(node, around, names)
        if isinstance(node, exp.Subquery):
            return self._parenthesized(node, around, names)
        if type(node) in SET_OPERATIONS:
            return self._set_operation(node, around, names)
        if isinstance(node, exp.Select):
            return BlockReader(self, node, around, names).rowset()
        raise self.refusal("not-supported", f"{described(node)} is not accepted in a query", node,
                           "a query is SELECT …, or SELECTs that UNION, INTERSECT or EXCEPT puts together")

    def _with(self, node: exp.Expr, around: Scope | None, names: Names) -> Names:
        clause = node.args.get("with_")
        if clause is None:
            return names
        if clause.args.get("recursive"):
            raise self.refusal("not-supported", "WITH RECURSIVE is not accepted", clause)
        for cte in clause.expressions:
            rows = self.rowset(cte.this, None, names)
            alias = cte.args["alias"]
            rows = self.renamed(rows, alias)
            named = NamedRows(next(self.names), rows)
            self.sizes[named.name] = self.size(rows, cte)
            names = names.and_(alias.name, named)
        return names

    def size(self, rows: Rowset, node: exp.Expr) -> int:
        """SELECTs in the rowset, those that WITH names counted wherever they are read: that they are read twice by what
        is read twice, and so on, must not become 2^n.
        """
        if isinstance(rows, SetOperation):
            parts: list[Rowset] = [rows.left, rows.right]
            count_of_named = 0
        else:
            items = [joined.item.of for joined in rows.items]
            parts = [of for of in items if isinstance(of, (Block, SetOperation))] + [s.of for s in rows.subqueries]
            count_of_named = sum(self.sizes[of.name] for of in items if isinstance(of, NamedRows))
        size = 1 + count_of_named + sum(self.size(part, node) for part in parts)
        if size > MOST_READ:
            raise self.refusal("query-too-deep", f"WITH and what reads it come to more than {MOST_READ} SELECTs", node)
        return size

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
        return Block((JoinedItem(Item(number, rows, "")),), (), tuple(outputs))

    def _parenthesized(self, node: exp.Expr, around: Scope | None, names: Names) -> Rowset:
        if more := extras(node, ("this", "alias", "with_", "order", "limit", "offset")):
            raise self.refusal("not-supported", f"{', '.join(more).upper()} is not accepted after a SELECT in "
                               "parentheses", node)
        rows = self.rowset(node.this, around, names)
        if any(node.args.get(part) for part in ("order", "limit", "offset")):
            return self._ordered(node, rows)
        return rows

    def _set_operation(self, node: exp.Expr, around: Scope | None, names: Names) -> Rowset:
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
        self.shown[id(node)] = [(name.lower(), name) for name, _ in left.columns]
        rows: Rowset = SetOperation(kind, is_all or kind == "union", left, right)
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
        return Block((JoinedItem(Item(number, rows, "")),), (), outputs)

    def distinct(self, rows: Rowset) -> Block:
        """Each row once: grouped by all its columns."""
        number = next(self.numbers)
        groups = tuple(grouped(Column(number, name, kind)) for name, kind in rows.columns)
        outputs = tuple((name, GroupRef(place, kind)) for place, (name, kind) in enumerate(rows.columns))
        return Block((JoinedItem(Item(number, rows, "")),), (), outputs, is_aggregate=True, groups=groups)

    def _ordered(self, node: exp.Expr, rows: Rowset) -> Rowset:
        """ORDER BY and LIMIT after rows that are there already: by their columns."""
        number = next(self.numbers)
        scope = Scope(self.source, (Input("", "", None, None, rows.columns),), place="ORDER BY", numbers=(number,))
        outputs = [(name, Column(number, name, kind)) for name, kind in rows.columns]
        order = [self.ordering(each, scope, outputs) for each in orderings_of(node)]
        limit, start = self.limits(node)
        return rows if limit is None and not start else _cut(Item(number, rows, ""), order, limit, start)

    def printed(self, tree: exp.Expr, rows: Rowset) -> tuple[Printed, ...]:
        """ORDER BY of the whole text: how `result` prints the answer, by columns that it has."""
        exprs, printed = self.shown.get(id(tree), ()), list[Printed]()
        for node in orderings_of(tree):
            by_number = _numbered(node.this, [(name, Column(0, name, kind)) for name, kind in rows.columns])
            name = by_number.name if isinstance(by_number, Column) else next(
                (name for expr, name in exprs if expr == node.this.sql().lower()), None)
            if name is None and tree.args.get("limit") is None:
                raise self.refusal("wrong-order", "without LIMIT, ORDER BY says how `result` prints the answer: it "
                                                  "takes columns that SELECT shows", node)
            if name is None:
                break
            printed.append((name, bool(node.args.get("desc")), bool(node.args.get("nulls_first"))))
        return tuple(printed)

    def ordering(self, node: exp.Expr, scope: Scope, outputs: Sequence[tuple[str, Expr]]) -> Ordering:
        """An entry of ORDER BY: a result column by its number or name, else an expression."""
        expr = _numbered(node.this, outputs)
        if expr is None and isinstance(node.this, exp.Literal):
            raise self.refusal("wrong-order", f"ORDER BY {node.this.sql()}: SELECT has {len(outputs)} items", node)
        expr = expr if expr is not None else convert(node.this, scope)
        return Ordering(grouped(expr), bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def union(self, blocks: Sequence[Block]) -> Rowset:
        """The rows of all of them."""
        rows: Rowset = blocks[0]
        for block in blocks[1:]:
            rows = SetOperation("union", True, rows, block)
        return rows

    def cut(self, rows: Rowset, order: Sequence[tuple[int, Ordering]], limit: int | None, start: int) -> Block:
        """LIMIT of rows by some of their columns, each by its place."""
        item = Item(next(self.numbers), rows, "")
        by = [replace(ordering, expr=Column(item.number, *rows.columns[place])) for place, ordering in order]
        return _cut(item, by, limit, start)

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

    def item(self, node: exp.Expr, names: Names) -> Item:
        if isinstance(node, exp.Subquery):
            rows = self.renamed(self.rowset(node, None, names), node.args.get("alias"))
            return Item(next(self.numbers), rows, node.alias)
        entry, window = self.entries[entry_of(node, self.source).start]
        session = SESSION.fullmatch(window.content) if window is not None else None
        if session is not None and window is not None:
            by = tuple(name.strip() for name in (session[3] or "").split(",") if name.strip())
            return self._of_sessions(entry, window, Session(length(session[1], session[2]), by))
        named = names.by_name.get(entry.name.lower())
        if named is not None:
            if window is not None:
                raise self.refusal("bad-window", f"{entry.name} is what WITH calls so, and takes no window", node,
                                   "windows stand after streams, inside WITH")
            return Item(next(self.numbers), named, entry.alias)
        declared = declared_input(entry, window, self.source, self.catalog)
        return Item(next(self.numbers), RowsOfInput(self._place(declared), declared.columns), entry.alias)

    def session_item(self, node: exp.Expr, gap: int) -> Item:
        """A stream without a window, under GROUP BY …, session_window(…)."""
        entry, window = self.entries[entry_of(node, self.source).start]
        if window is not None:
            raise self.refusal("bad-window", f"{entry.name} has a window, and session_window gives it sessions", node,
                               "use one of the two")
        return self._of_sessions(entry, Lifted(entry.start, entry.start, ""), Session(gap, None))

    def _of_sessions(self, entry: FromEntry, window: Lifted, session: Session) -> Item:
        """All rows counted, which are grouped later."""
        declared = declared_input(entry, replace(window, content=" UNTIL NOW "), self.source, self.catalog)
        item = Item(next(self.numbers), RowsOfInput(self._place(declared), declared.columns), entry.alias)
        self.sessions[item.number] = replace(session, event_time=declared.event_time or "")
        return item

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


def _cut(item: Item, order: Sequence[Ordering], limit: int | None, start: int) -> Block:
    """The item's rows up to a limit; ties are broken by all of its columns."""
    outputs = tuple((name, Column(item.number, name, kind)) for name, kind in item.columns)
    ties = [Ordering(column) for _, column in outputs]
    return Block((JoinedItem(item),), (), outputs, order=(*order, *ties), limit=limit, offset=start)


def _numbered(node: exp.Expr, outputs: Sequence[tuple[str, Expr]]) -> Expr | None:
    if isinstance(node, exp.Literal) and not node.args.get("is_string") and str(node.this).isdigit():
        place = int(node.this)
        return outputs[place - 1][1] if 1 <= place <= len(outputs) else None
    return None
