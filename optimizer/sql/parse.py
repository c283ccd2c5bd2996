"""SQL text to a Query, the one way in for what users write: nothing comes through that is not known to be harmless,
deterministic and row-wise.
"""
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, count

from sqlglot import exp

from optimizer.errors import ForebayError
from optimizer.expression.expr import Call, Column, Expr, inputs
from optimizer.expression.functions.table import OPERATORS
from optimizer.expression.scalar import can_fail, fails, render, safe
from optimizer.query.blocks import Block, RowsOfInput, expressions, within
from optimizer.query.leaves import leaf
from optimizer.query.model import Catalog, Input, Query, of_blocks
from optimizer.query.semi_joins import in_order
from optimizer.query.simplify import is_one_block, is_row_query, simplified, substituted
from optimizer.sql.azure import lift
from optimizer.sql.expressions import Scope, conjuncts, resolve
from optimizer.sql.nested.rowsets import is_nested, question
from optimizer.sql.select import Body, body, row_conditions
from optimizer.sql.sources import From
from optimizer.sql.sources import inputs as read_from
from optimizer.sql.text import Source, located, read
from optimizer.sql.tree import extras, offset, tree
from optimizer.sql.windows import default_every, every

CLAUSES = {
    "with_": "WITH",
    "distinct": "SELECT DISTINCT",
    "order": "ORDER BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "laterals": "LATERAL VIEW",
    "hint": "a hint",
    "into": "INTO",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE"
}
HINTS = {
    "order": "order the answer where it is read",
    "limit": "cut the answer where it is read",
    "distinct": "use GROUP BY",
    "with_": "write one SELECT"
}


def parse(text: str, catalog: Catalog) -> Query:
    """The query that a text asks, or a ForebayError that says what is wrong, where, and what would be right."""
    try:
        return _parsed(text, catalog)
    except ForebayError as error:
        error.hint = error.hint or "docs/queries.md says what a query may be"
        raise located(text, error, len(text) - len(text.lstrip()))


def _parsed(text: str, catalog: Catalog) -> Query:
    source = lift(read(text))
    select = tree(source)
    if not isinstance(select, exp.Select) or is_nested(select, source):
        return _of_blocks(select, source, catalog)
    _check_clauses(select, source)
    from_clause = read_from(select, source, catalog)
    base, using = _merge_using(Scope(source, from_clause.inputs), from_clause)
    conditions = [(condition, "ON") for condition in from_clause.conditions]
    if where := select.args.get("where"):
        conditions.append((where.this, "WHERE"))
    terms = list(using)
    for condition, place in conditions:
        terms += conjuncts(condition, base.at(place))
    _check_connected(base, _sorted(terms)[0], from_clause.starts)
    return _query(from_clause.inputs, terms, body(select, base), _every(source, from_clause.inputs, catalog),
                  source)


def _query(declared: tuple[Input, ...], terms: list[Expr], asked: Body, interval: int, source: Source) -> Query:
    answer, below = row_conditions(asked)
    terms += below
    equalities, selections, residuals = _sorted(terms)
    every_expr = [*terms, *answer.groups]
    every_expr += [aggregate.argument for aggregate in answer.aggregates if aggregate.argument]
    every_expr += [expr for _, expr in answer.outputs]
    _check_renders([*every_expr, answer.having] if answer.having else every_expr)
    return Query(declared, equalities, selections, residuals, answer.groups, answer.aggregates, answer.having,
                 answer.outputs, interval, source.original, source.set)


def _of_blocks(tree_of_text: exp.Expr, source: Source, catalog: Catalog) -> Query:
    """A text of several SELECTs, or of one that is more than joins and groups: as one SELECT where it can be one."""
    if source.set or source.stamps:
        raise source.error("not-supported", "Windows(…) and TIMESTAMP BY stand in a query of one SELECT",
                           source.set_start, "write a query for each window")
    asked = question(tree_of_text, source, catalog)
    rows, interval = simplified(asked.rows), _every(source, asked.inputs, catalog)
    if isinstance(rows, Block) and is_one_block(rows) and _joins_a_stream(rows, asked.inputs):
        return replace(_of_one_block(rows, asked.inputs, interval, source), order=asked.order)
    if is_row_query(rows):
        raise ForebayError("not-supported", "rows of outer, semi and anti joins, of EXISTS and IN, and of UNION ALL "
                                            "are not published one by one yet",
                           hint="group them: GROUP BY, or SELECT DISTINCT, which answers at each boundary")
    _check_renders(expr for block in within(rows) if isinstance(block, Block) for expr in expressions(block))
    below = leaf(rows)
    if below is not None and _joins_a_stream(below.block, asked.inputs):
        return replace(_of_one_block(below.block, asked.inputs, interval, source), above=below.above,
                       order=asked.order)
    return replace(of_blocks(rows, asked.inputs, interval, source.original), order=asked.order)


def _of_one_block(block: Block, declared: tuple[Input, ...], interval: int, source: Source) -> Query:
    """Its streams are numbered in FROM order; one that stands twice is two."""
    inputs_of_block, values, aliases = list[Input](), dict[Column, Expr](), set[str]()
    items = in_order(block)
    for place, joined in enumerate(items):
        of = joined.item.of
        assert isinstance(of, RowsOfInput)
        own_alias = joined.item.alias or declared[of.input].alias
        names = chain([own_alias], (f"{own_alias}_{n}" for n in count(2)))
        alias = next(name for name in names if name and name.lower() not in aliases)
        aliases.add(alias.lower())
        inputs_of_block.append(replace(declared[of.input], alias=alias))
        values |= {Column(joined.item.number, name, kind): Column(place, name, kind) for name, kind in of.columns}

    def own(expr: Expr) -> Expr:
        return substituted(expr, values)

    asked = Body(tuple(map(own, block.groups)), tuple(a.of(own) for a in block.aggregates), block.having,
                 tuple((name, own(expr)) for name, expr in block.outputs))
    terms = [own(term) for terms in (block.where, *(joined.on for joined in items)) for term in terms]
    semi = frozenset(place for place, joined in enumerate(items) if joined.kind == "semi")
    return replace(_query(tuple(inputs_of_block), terms, asked, interval, source), semi=semi)


def _joins_a_stream(block: Block, declared: tuple[Input, ...]) -> bool:
    """Whether the rows that it is about are of a stream, not only those that they are asked to have."""
    return any(isinstance(joined.item.of, RowsOfInput) and declared[joined.item.of.input].is_stream
               for joined in block.items if joined.kind == "inner")


def _check_clauses(select: exp.Select, source: Source) -> None:
    for name in extras(select,
                       ("expressions", "from_", "joins", "where", "group", "having", "kind", "operation_modifiers")):
        node = select.args[name][0] if isinstance(select.args[name], list) else select.args[name]
        place = offset(node) if isinstance(node, exp.Expr) else None
        word = re.search(rf"\b{'DISTINCT' if name == 'distinct' else CLAUSES.get(name, name).split()[0]}\b",
                         source.masked, re.IGNORECASE)
        where = word.start() if word and place is None else place
        raise source.error("not-supported", f"{CLAUSES.get(name, name.upper())} is not accepted", where,
                           HINTS.get(name))
    if select.args.get("kind") or select.args.get("operation_modifiers"):
        raise source.error("not-supported", "SELECT takes no modifiers", None, "write SELECT expression, …")


def _merge_using(scope: Scope, from_clause: From) -> tuple[Scope, list[Expr]]:
    """JOIN … USING (k): an equality, and one column k instead of two."""
    equalities: list[Expr] = []
    for number, names in from_clause.using:
        for name in names:
            left = Scope(scope.source, from_clause.inputs[:number], scope.merged)
            try:
                pair = (resolve(name.name, None, left), resolve(name.name, from_clause.inputs[number].alias, scope))
                equalities.append(OPERATORS["="](pair))
            except ForebayError as error:
                raise located(scope.source.original, error, offset(name)) from None
            scope = Scope(scope.source, scope.inputs, scope.merged | {(number, name.name.lower())})
    return scope, equalities


def _sorted(conjuncts: list[Expr]) -> tuple[tuple[tuple[Expr, Expr], ...], tuple[Expr, ...], tuple[Expr, ...]]:
    """Equalities of two inputs, conditions on one input or none, and the rest."""
    equalities = {
        c: (c.args[0], c.args[1])
        for c in conjuncts
        if isinstance(c, Call) and c.function == "eq" and _joins(c.args[0], c.args[1])
    }
    selections = tuple(c for c in conjuncts if len(inputs(c)) <= 1)
    residuals = tuple(c for c in conjuncts if len(inputs(c)) > 1 and c not in equalities)
    return tuple(equalities.values()), selections, residuals


def _joins(left: Expr, right: Expr) -> bool:
    """Whether an equality can be a join key: a side that can raise is evaluated on joined rows only, as any other
    condition is.
    """
    if can_fail(left) or can_fail(right):
        return False
    return len(inputs(left)) == len(inputs(right)) == 1 and inputs(left) != inputs(right)


def _check_connected(base: Scope, equalities: tuple[tuple[Expr, Expr], ...], starts: tuple[int, ...]) -> None:
    """Every input hangs together with the first by equalities."""
    reached = {0}
    edges = [inputs(a) | inputs(b) for a, b in equalities]
    while touching := [edge for edge in edges if edge & reached and not edge <= reached]:
        reached.update(*touching)
    loose = [i for i in range(len(base.inputs)) if i not in reached]
    if loose:
        alias = base.inputs[loose[0]].alias
        raise base.source.error(
            "cross-product", f"{alias} is not joined with {base.inputs[0].alias}: there are no cross products",
            starts[loose[0]], f"add an equality that cannot raise, for instance {base.inputs[0].alias}.… = {alias}.…")


def _every(source: Source, inputs_of_query: tuple[Input, ...], catalog: Catalog) -> int:
    """How often the query answers, in microseconds."""
    windows = tuple(declared.window for declared in inputs_of_query if declared.window)
    if source.set:
        if source.every is not None:
            raise source.error("bad-every",
                               "EVERY is not accepted with Windows(…): each window is published when it ends",
                               source.every.start, "leave it out")
        return windows[0].slide
    if source.every is None:
        return default_every(windows, catalog.batch)
    try:
        return every(source.every.content, catalog.batch)
    except ForebayError as error:
        raise located(source.original, error, source.every.start) from None


def _check_renders(exprs: Iterable[Expr]) -> None:
    """What cannot be written in both dialects is refused now, not when it runs."""
    for expr in exprs:
        for dialect in ("duckdb", "spark"):
            for form in (render, fails, safe):
                form(expr, dialect, lambda leaf: "an_input.a_column_name")
