"""Blocks as one statement.

A block becomes up to four SELECTs within each other: its joined rows, their groups, window functions, what it shows.
Where an expression can raise, none does here: it gives NULL, the rows or groups on which that happens are looked for
in a SELECT beside (`doubts`), and if there is one the answer fails. Names are distinct at any depth: `"103.user"` is
column user of item 103, g0, a0 and w0 are a block's groups, aggregates and window functions, o0 what it shows.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from optimizer.expression import dialect as d
from optimizer.expression.decimals import quotient
from optimizer.expression.expr import AggregateRef, Column, Expr, GroupRef, Literal, OverRef, SubqueryRef, walk
from optimizer.expression.scalar import fails, literal, safe
from optimizer.expression.types import decimal
from optimizer.plan.lowering import Lowering
from optimizer.plan.operators.join import whole_value
from optimizer.query.blocks import (
    ANSWER,
    BOUNDARY,
    Block,
    Item,
    JoinedItem,
    NamedRows,
    Ordering,
    Over,
    Rowset,
    RowsOfInput,
    SetOperation,
    Subquery,
    columns_within,
)
from optimizer.query.model import Query
from optimizer.query.shape import Shape

FAILED = "an expression of the query failed on a row of the answer (division by zero, overflow or a cast)"
Leaf = Callable[[Expr], str]
JOIN_WORDS = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN", "semi": "SEMI JOIN",
              "anti": "ANTI JOIN"}
SPARK_JOIN_WORDS = {**JOIN_WORDS, "semi": "LEFT SEMI JOIN", "anti": "LEFT ANTI JOIN"}


def statement(ctx: Lowering, members: Mapping[int, str], boundary: int) -> str:
    """The rows of the query's blocks, as partials of their own: groups, each row with a number as the last, and how
    many rows fail. `members` are what the inputs' windows hold at the boundary, as items of FROM.
    """
    rows = ctx.shape.query.blocks
    assert rows is not None
    times = {"t": boundary, "previous": boundary - ctx.shape.query.every}
    written = _Written(ctx.shape, ctx.dialect, members, frozenset(columns_within(rows)), times)
    answer, count = written.rowset(rows), len(rows.columns)
    failing = "CAST(0 AS BIGINT)"
    if written.doubts:
        written.ctes.append(f"doubts AS ({' UNION ALL '.join(written.doubts)})")
        failing = "(SELECT count(*) FROM doubts)"
    columns = [f"o{n} AS g{n}" for n in range(count)]
    shown = (f"SELECT {', '.join(columns)}, row_number() OVER (ORDER BY 1) AS g{count}, CAST(1 AS BIGINT) AS c, "
             f"{failing} AS e FROM ({answer}) AS answer")
    if written.doubts:      # an answer without rows fails, too
        nothing = [f"CAST(NULL AS {d.name(kind, ctx.dialect)})" for _, kind in rows.columns]
        shown += (f" UNION ALL SELECT {', '.join(nothing)}, CAST(0 AS BIGINT), CAST(1 AS BIGINT), CAST(1 AS BIGINT) "
                  "FROM (SELECT 1 FROM doubts LIMIT 1) AS doubted")
    return _with(written, shown)


def above(query: Query, answer: str, boundary: int, dialect: str) -> str:
    """What is published at one boundary: a SELECT of o0, o1, …, from the answer that is below it. `answer` is that, as
    an item of FROM. Raises where a row fails.
    """
    assert query.above is not None
    times = {"t": boundary, "previous": boundary - query.every}
    written = _Written(None, dialect, {ANSWER: answer}, frozenset(columns_within(query.above)), times)
    rows = written.rowset(query.above)
    names = [d.identifier(name, dialect) for name, _ in query.columns]
    columns = ", ".join(f"o{n} AS {name}" for n, name in enumerate(names))
    time = f"{d.from_micros(f'CAST({boundary} AS BIGINT)', dialect)} AS boundary"
    shown = f"SELECT {time}, {columns} FROM ({rows}) AS shown"
    if not written.doubts:
        return _with(written, shown)
    written.ctes.append(f"doubts AS ({' UNION ALL '.join(written.doubts)})")
    failure = d.failure(FAILED, dialect)
    nothing = [f"CAST(NULL AS {d.name(kind, dialect)})" for _, kind in query.columns]
    failed = (f"SELECT {time}, {', '.join(nothing)} FROM (SELECT count(*) AS n FROM doubts) AS doubted "
              f"WHERE CASE WHEN n > 0 THEN {failure} ELSE FALSE END")
    return _with(written, f"{shown} UNION ALL {failed}")


def _with(written: _Written, sql: str) -> str:
    return f"WITH {', '.join(written.ctes)} {sql}" if written.ctes else sql


class _Written:
    """One statement while it is written: what stands in front of it, and where to look for rows that fail."""

    def __init__(self, shape: Shape | None, dialect: str, members: Mapping[int, str], read: frozenset[Column],
                 times: Mapping[str, int]) -> None:
        self.shape, self.dialect, self.members, self.read, self.times = shape, dialect, members, read, times
        self.ctes: list[str] = []
        self.doubts: list[str] = []
        self.named: dict[int, str] = {}

    def rowset(self, rows: Rowset) -> str:
        """A SELECT of o0, o1, …"""
        return self._set_operation(rows) if isinstance(rows, SetOperation) else self._block(rows)

    def _set_operation(self, rows: SetOperation) -> str:
        columns = ", ".join(f"o{n}" for n in range(len(rows.columns)))
        words = f"{rows.kind.upper()}{' ALL' if rows.all else ''}"
        left, right = self.rowset(rows.left), self.rowset(rows.right)
        return (f"SELECT {columns} FROM (SELECT {columns} FROM ({left}) AS l {words} SELECT {columns} FROM ({right}) "
                "AS r) AS both_sides")

    def _block(self, block: Block) -> str:
        leaf = self._leaf(block)
        source = self._joined(block, leaf)
        if block.is_aggregate:
            source = self._grouped(block, source, leaf)
        if block.overs:
            source = self._with_overs(block, source, leaf)
        columns = [f"CAST({safe(expr, self.dialect, leaf)} AS {d.name(expr.type, self.dialect)}) AS o{n}"
                   for n, (_, expr) in enumerate(block.outputs)]
        return f"SELECT {', '.join(columns)} FROM {source}{self._cut(block, leaf)}"

    def _with_overs(self, block: Block, source: str, leaf: Leaf) -> str:
        values = [f"{self._over(over, leaf)} AS w{n}" for n, over in enumerate(block.overs)]
        sql = f"SELECT *, {', '.join(values)} FROM {source}"
        own = [expr for _, expr in block.outputs] + [ordering.expr for ordering in block.order]
        exprs = [expr for expr in own if _reads_over(expr)]
        if block.qualify is not None:
            sql = f"SELECT * FROM ({sql}) AS with_overs WHERE {self._passes(block.qualify, leaf)}"
            exprs.append(block.qualify)
        return self._doubted(sql, exprs, leaf)

    def _cut(self, block: Block, leaf: Leaf) -> str:
        if block.limit is None and not block.offset:
            return ""
        order = f" ORDER BY {self._orders(block.order, leaf)}" if block.order else ""
        limit = f" LIMIT {block.limit}" if block.limit is not None else ""
        return order + limit + (f" OFFSET {block.offset}" if block.offset else "")

    def _shown(self, block: Block) -> list[Expr]:
        """What is computed of the rows, or groups, that a block shows."""
        of_overs = [expr for over in block.overs for expr in (
            *over.args, *over.partition, *(ordering.expr for ordering in over.order),
            *([over.aggregate.argument] if over.aggregate and over.aggregate.argument is not None else []))]
        own = [expr for _, expr in block.outputs] + [ordering.expr for ordering in block.order]
        return of_overs + [expr for expr in own if not _reads_over(expr)]

    def _joined(self, block: Block, leaf: Leaf) -> str:
        """FROM and WHERE: the rows that the block is about, and those of which that cannot be said."""
        text = ""
        for joined in block.items:
            text += self._join(joined, leaf, is_first=not text)
        of_rows = [*block.where]
        if block.is_aggregate:
            of_rows += [*block.groups, *(a.argument for a in block.aggregates if a.argument is not None)]
        else:
            of_rows += self._shown(block)
        where = " AND ".join(self._passes(term, leaf) for term in block.where)
        return self._doubted(f"SELECT * FROM {text}{f' WHERE {where}' if where else ''}", of_rows, leaf)

    def _join(self, joined: JoinedItem, leaf: Leaf, is_first: bool) -> str:
        item = self._item(joined.item)
        if is_first:
            return item
        if joined.kind == "inner" and not joined.on:
            return f" CROSS JOIN {item}"
        words = (JOIN_WORDS if self.dialect == "duckdb" else SPARK_JOIN_WORDS)[joined.kind]
        return f" {words} {item} ON {' AND '.join(safe(term, self.dialect, leaf) for term in joined.on)}"

    def _item(self, item: Item) -> str:
        """An entry of FROM with those of its columns that are read anywhere."""
        of, selected = item.of, list[str]()
        for place, (name, kind) in enumerate(of.columns):
            column = Column(item.number, name, kind)
            if column in self.read:
                stored = self._stored(of, name) if isinstance(of, RowsOfInput) else f"o{place}"
                selected.append(f"{stored} AS {self._column(column)}")
        nothing = d.identifier(f"{item.number}.", self.dialect)
        columns = ", ".join(selected) or f"1 AS {nothing}"
        return f"(SELECT {columns} FROM {self._rows(of)}) AS i{item.number}"

    def _rows(self, of: RowsOfInput | NamedRows | Rowset) -> str:
        if isinstance(of, RowsOfInput):
            return f"{self.members[of.input]} AS members"
        if not isinstance(of, NamedRows):
            return f"({self.rowset(of)}) AS shown"
        if of.name not in self.named:
            text = self.rowset(of.of)
            self.named[of.name] = f"with_{of.name}"
            self.ctes.append(f"with_{of.name} AS ({text})")
        return self.named[of.name]

    def _stored(self, of: RowsOfInput, name: str) -> str:
        """How the rows of an input, or of an answer, call a column."""
        if self.shape is None:
            return d.identifier(name, self.dialect)
        return next(a.name for a in self.shape.attributes[of.input]
                    if isinstance(a.expr, Column) and a.expr.name == name)

    def _grouped(self, block: Block, source: str, leaf: Leaf) -> str:
        keys = [f"{safe(expr, self.dialect, leaf)} AS g{n}" for n, expr in enumerate(block.groups)]
        values = []
        for n, a in enumerate(block.aggregates):
            values.append(f"{whole_value(a, lambda e: safe(e, self.dialect, leaf), self.dialect)} AS a{n}")
        by = f" GROUP BY {', '.join(str(n + 1) for n in range(len(keys)))}" if keys else ""
        grouped = f"SELECT {', '.join([*keys, *values])} FROM {source}{by}"
        having = f" WHERE {self._passes(block.having, leaf)}" if block.having is not None else ""
        of_groups = [*self._shown(block), *([block.having] if block.having is not None else [])]
        return self._doubted(f"SELECT * FROM ({grouped}) AS grouped{having}", of_groups, leaf)

    def _doubted(self, sql: str, exprs: Iterable[Expr], leaf: Leaf) -> str:
        """The SELECT as an item of FROM; where one of these can fail on its rows, such rows are looked for."""
        doubts = [fails(expr, self.dialect, leaf) for expr in dict.fromkeys(exprs)]
        conditions = [doubt for doubt in doubts if doubt is not None]
        if not conditions:
            return f"({sql}) AS rows_of_block"
        name = f"rows_{len(self.ctes)}"
        is_kept = " MATERIALIZED" if self.dialect == "duckdb" else ""
        self.ctes.append(f"{name} AS{is_kept} ({sql})")
        self.doubts.append(f"SELECT 1 AS one FROM {name} WHERE {' OR '.join(conditions)}")
        return name

    def _passes(self, term: Expr, leaf: Leaf) -> str:
        """A condition in a form that cannot raise; where it would, the row stays and is doubted."""
        doubt = fails(term, self.dialect, leaf)
        if doubt is None:
            return safe(term, self.dialect, leaf)
        return f"(({doubt}) OR COALESCE({safe(term, self.dialect, leaf)}, FALSE))"

    def _orders(self, order: Sequence[Ordering], leaf: Leaf) -> str:
        texts = []
        for ordering in order:
            direction = "DESC" if ordering.descending else "ASC"
            nulls = "FIRST" if ordering.nulls_first else "LAST"
            texts.append(f"{safe(ordering.expr, self.dialect, leaf)} {direction} NULLS {nulls}")
        return ", ".join(texts)

    def _over(self, over: Over, leaf: Leaf) -> str:
        partition = ", ".join(safe(expr, self.dialect, leaf) for expr in over.partition)
        parts = [f"PARTITION BY {partition}" if partition else "",
                 f"ORDER BY {self._orders(over.order, leaf)}" if over.order else "", over.frame]
        window, kind = f"({' '.join(part for part in parts if part)})", d.name(over.type, self.dialect)
        if over.aggregate is not None:
            return self._aggregate_over(over, window, leaf)
        args = ", ".join(safe(expr, self.dialect, leaf) for expr in over.args)
        return f"CAST({over.function}({args}) OVER {window} AS {kind})"

    def _aggregate_over(self, over: Over, window: str, leaf: Leaf) -> str:
        a, kind = over.aggregate, d.name(over.type, self.dialect)
        assert a is not None
        value = "*" if a.argument is None else safe(a.argument, self.dialect, leaf)
        if a.function == "avg" and a.type.name == "decimal" and a.argument is not None and self.dialect == "duckdb":
            scale = a.argument.type.scale
            total, count = f"sum({value}) OVER {window}", f"count({value}) OVER {window}"
            mean = quotient(decimal(38, scale), decimal(19, 0), a.type, f"CAST({total} AS DECIMAL(38,{scale}))",
                            f"CAST({count} AS DECIMAL(19,0))")
            return f"CASE WHEN {count} > 0 THEN {mean} END"
        return f"CAST({a.function}({value}) OVER {window} AS {kind})"

    # --- leaves ------------------------------------------------------------------------------------------------------

    def _column(self, column: Column) -> str:
        return d.identifier(f"{column.input}.{column.name}", self.dialect)

    def _leaf(self, block: Block) -> Leaf:
        subqueries: dict[int, str] = {}

        def name(leaf: Expr) -> str:
            if isinstance(leaf, Column) and leaf.input == BOUNDARY:
                return literal(Literal(self.times[leaf.name], leaf.type), self.dialect)
            if isinstance(leaf, Column):
                return self._column(leaf)
            if isinstance(leaf, (GroupRef, AggregateRef, OverRef)):
                return f"{ {GroupRef: 'g', AggregateRef: 'a', OverRef: 'w'}[type(leaf)]}{leaf.index}"
            assert isinstance(leaf, SubqueryRef)
            if leaf.index not in subqueries:
                subqueries[leaf.index] = self._subquery(block.subqueries[leaf.index])
            return subqueries[leaf.index]

        return name

    def _subquery(self, subquery: Subquery) -> str:
        sql = self.rowset(subquery.of)
        return f"EXISTS ({sql})" if subquery.kind == "exists" else f"({sql})"


def _reads_over(expr: Expr) -> bool:
    return any(isinstance(leaf, OverRef) for leaf in walk(expr))
