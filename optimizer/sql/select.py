"""SELECT, GROUP BY and HAVING: what is asked of the joined rows or of their groups, and how the answer's columns are
called.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, replace

from sqlglot import exp

from optimizer.errors import ForebayError
from optimizer.expression.arguments import is_bare_null
from optimizer.expression.expr import AggregateRef, Call, Column, Expr, GroupRef, Literal, inputs, walk
from optimizer.expression.functions.arithmetic import grouped
from optimizer.expression.types import BOOLEAN
from optimizer.query.model import WINDOW_NAME, Aggregate, references
from optimizer.sql.aggregates import AGGREGATES
from optimizer.sql.expressions import Scope, convert, named
from optimizer.sql.text import located
from optimizer.sql.tree import extras, offset

PLAIN_NAMES = {"avg": "avg", "stddev_samp": "stddev", "var_samp": "variance", "count_distinct": "count"}
RESERVED = ("boundary", "query")


@dataclass(frozen=True)
class Body:
    groups: tuple[Expr, ...]
    aggregates: tuple[Aggregate, ...]
    having: Expr | None
    outputs: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True)
class SelectItem:
    """One entry of SELECT: its node (a column of `*` has none), its alias if it has one, and its expression."""

    node: exp.Expr
    alias: str | None
    expr: Expr
    starred: bool = False
    ungrouped: tuple[tuple[Expr, int | None], ...] = ()


def body(select: exp.Select, base: Scope) -> Body:
    """All that follows from the SELECT list, GROUP BY and HAVING."""
    aggregates: dict[Aggregate, int] = {}
    items = [i for node in select.expressions for i in select_items(node, base, aggregates)]
    groups = grouping(select.args.get("group"), items, base)
    having = having_of(select.args.get("having"), items, groups, base, aggregates)
    if not aggregates and not groups:
        if having is not None:
            raise base.error("not-supported", "HAVING needs GROUP BY or aggregates", select.args["having"].this,
                             "conditions on rows stand in WHERE")
        return Body((), (), None, named_outputs(items, [i.expr for i in items], base, ()))
    for item in items:
        if item.starred:
            raise base.error("not-supported", "* is not accepted in a query with aggregates", item.node,
                             "name the grouping columns")
    outputs = [over_groups(i.expr, groups, i, base) for i in items]
    condition = over_groups(having.expr, groups, having, base) if having else None
    return Body(tuple(map(grouped, groups)), tuple(aggregates), condition,
                named_outputs(items, outputs, base, tuple(aggregates)))


def row_conditions(answer: Body) -> tuple[Body, list[Expr]]:
    """The body without those terms of HAVING that read grouping columns only, and these as conditions on rows: there
    Spark evaluates them, so that no value is computed of a group that they drop. A row is in several windows, so a
    window's name is no column of it.
    """
    terms: tuple[Expr, ...] = (answer.having,) if answer.having else ()
    if isinstance(answer.having, Call) and answer.having.function == "and":
        terms = answer.having.args
    below = []
    for term in terms:
        read = references(term)
        if read and all(isinstance(r, GroupRef) and answer.groups[r.index] != WINDOW_NAME for r in read):
            below.append(term)
    above = tuple(t for t in terms if t not in below)
    having = None if not above else above[0] if len(above) == 1 else Call("and", above, BOOLEAN)
    return replace(answer, having=having), [_on_rows(t, answer.groups) for t in below]


def _on_rows(expr: Expr, groups: tuple[Expr, ...]) -> Expr:
    if isinstance(expr, GroupRef):
        return groups[expr.index]
    return replace(expr, args=tuple(_on_rows(a, groups) for a in expr.args)) if isinstance(expr, Call) else expr


def select_items(node: exp.Expr, base: Scope, aggregates: dict[Aggregate, int]) -> list[SelectItem]:
    inner, alias = (node.this, node.alias) if isinstance(node, exp.Alias) else (node, None)
    star = inner if isinstance(
        inner, exp.Star) else inner.this if isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star) else None
    if star is None:
        return [select_item(inner, alias or None, base, "SELECT", aggregates)]
    if alias or any(star.args.values()) or inner.args.get("db"):
        raise base.error("not-supported", "* takes no alias and no EXCEPT", inner, "name the columns")
    return _star(inner, base)


def _star(node: exp.Expr, base: Scope) -> list[SelectItem]:
    """Every column, in FROM order; a name that came before gets its alias in front."""
    qualifier = node.args["table"].name if isinstance(node, exp.Column) and node.args.get("table") else None
    try:
        chosen = named(qualifier, base)
    except ForebayError as error:
        raise located(base.source.original, error, offset(node)) from None
    return [SelectItem(node, None, Column(i, name, kind), starred=True) for i, x in chosen for name, kind in x.columns
            if qualifier is not None or (i, name.lower()) not in base.merged]


def select_item(node: exp.Expr, alias: str | None, base: Scope, place: str, aggregates: dict[Aggregate, int] | None,
                aliases: dict[str, Expr] | None = None, groups: tuple[Expr, ...] = ()) -> SelectItem:
    scope = base.at(place, aggregates, aliases, groups)
    expr = convert(node, scope)
    return SelectItem(node, alias, expr, ungrouped=tuple(scope.column_offsets.items()))


def grouping(clause: exp.Expr | None, items: list[SelectItem], base: Scope) -> tuple[Expr, ...]:
    if clause is None:
        return ()
    if clause.args.get("all") is True and not extras(clause, ("all",)):
        return tuple(dict.fromkeys(_of_item(i, base) for i in items if not _of_aggregates(i)))
    if more := extras(clause, ("expressions",)):
        raise base.error("not-supported", f"GROUP BY {', '.join(more).upper()} is not accepted", clause,
                         "list the grouping expressions")
    if not clause.expressions:
        raise base.error("syntax", "GROUP BY has no expressions", clause, "list the grouping expressions")
    return tuple(dict.fromkeys(_group(node, items, base) for node in clause.expressions))


def _group(node: exp.Expr, items: list[SelectItem], base: Scope) -> Expr:
    """A grouping expression: itself, a SELECT item by its number, or by its alias if no column is called so."""
    item = _by_number(node, items, base)
    if item is None:
        try:
            return _constant_free(select_item(node, None, base, "GROUP BY", None), base)
        except ForebayError as error:
            named_so = [
                i for i in items if isinstance(node, exp.Column) and not node.args.get("table") and (
                    i.alias or "").lower() == node.name.lower()
            ]
            if error.code != "unknown-column" or not named_so:
                raise
            item = named_so[0]
    return _of_item(item, base)


def _of_item(item: SelectItem, base: Scope) -> Expr:
    """What a SELECT item is grouped by."""
    if item.starred:
        return item.expr
    return _constant_free(select_item(item.node, None, base, "GROUP BY", None), base)


def _of_aggregates(item: SelectItem) -> bool:
    """GROUP BY ALL leaves these out."""
    return any(isinstance(e, AggregateRef) for e in walk(item.expr))


def _by_number(node: exp.Expr, items: list[SelectItem], base: Scope) -> SelectItem | None:
    if not isinstance(node, exp.Literal) or node.args.get("is_string"):
        return None
    if not str(node.this).isdigit() or not 1 <= int(node.this) <= len(items):
        raise base.error("wrong-group",
                         f"GROUP BY {node.this}: SELECT has {len(items)} item{'s' if len(items) > 1 else ''}", node,
                         "count from 1, or write the expression")
    return items[int(node.this) - 1]


def _constant_free(item: SelectItem, base: Scope) -> Expr:
    if not inputs(item.expr) and item.expr != WINDOW_NAME:
        raise base.error("wrong-group", "GROUP BY takes expressions of columns, not constants", item.node,
                         "leave the constant out")
    return item.expr


def having_of(clause: exp.Expr | None, items: list[SelectItem], groups: tuple[Expr, ...], base: Scope,
              aggregates: dict[Aggregate, int]) -> SelectItem | None:
    """Spark's order: an expression that is grouped by is that, whatever SELECT calls so.

    Only then come SELECT's names.
    """
    if clause is None:
        return None
    aliases = {i.alias.lower(): i.expr for i in items if i.alias}
    item = select_item(clause.this, None, base, "HAVING", aggregates, aliases, groups)
    if item.expr.type != BOOLEAN:
        raise base.error("type-mismatch", f"HAVING takes a condition, not {item.expr.type}", clause.this)
    return item


def over_groups(expr: Expr, groups: tuple[Expr, ...], item: SelectItem, base: Scope) -> Expr:
    """The expression over groups: grouping expressions become references, a column that is left is refused."""
    if expr in groups:
        return GroupRef(groups.index(expr), expr.type)
    if isinstance(expr, Call):
        return Call(expr.function, tuple(over_groups(a, groups, item, base) for a in expr.args), expr.type)
    if isinstance(expr, Column):
        column = f"{base.alias(expr.input)}.{expr.name}"
        place = dict(item.ungrouped).get(expr, offset(item.node))
        raise base.source.error("not-grouped", f"{column} is neither in GROUP BY nor inside an aggregate", place,
                                f"add {column} to GROUP BY, or write MAX({column})")
    return expr


def named_outputs(items: list[SelectItem], exprs: list[Expr], base: Scope,
                  aggregates: tuple[Aggregate, ...]) -> tuple[tuple[str, Expr], ...]:
    """Result columns; names are distinct whatever their case."""
    names: set[str] = set()
    outputs = []
    for number, (item, expr) in enumerate(zip(items, exprs), 1):
        if is_bare_null(expr):
            raise base.error("type-mismatch", "NULL alone has no type that a result column could have", item.node,
                             "give it one: CAST(NULL AS INT)")
        name = item.alias or _plain_name(item, aggregates, number)
        if item.starred and name.lower() in names and isinstance(expr, Column):
            name = f"{base.alias(expr.input)}_{name}"
        _check_name(name, item, names, base)
        names.add(name.lower())
        outputs.append((name, expr))
    return tuple(outputs)


def _check_name(name: str, item: SelectItem, names: set[str], base: Scope) -> None:
    if name.lower() in names:
        raise base.error("repeated-column", f"two result columns are called {name}", item.node,
                         f"name one of them: … AS {name}2")
    if name.lower() in RESERVED or not re.fullmatch(r"[^\W\d_]\w*", name):
        reason = "is kept for forebay's own columns" if name.lower() in RESERVED or name.startswith(
            "_") else "is not a plain name"
        raise base.error("reserved-name" if "kept" in reason else "bad-name",
                         f"a result column cannot be called {name!r}: it {reason}", item.node,
                         "give it another name with AS: a letter, then letters, digits and _")


def _plain_name(item: SelectItem, aggregates: tuple[Aggregate, ...], number: int) -> str:
    """`count`, `max_bidPrice`, `upper_page`, the column's own name; `column3` for what has no name in it."""
    expr = item.expr
    if expr == WINDOW_NAME:
        return "Id"
    if isinstance(expr, Column):
        return expr.name
    if isinstance(expr, AggregateRef):
        aggregate = aggregates[expr.index]
        argument = aggregate.argument
        written = item.node.name.upper() if isinstance(item.node, exp.Anonymous) else ""
        function = AGGREGATES.get(written, aggregate.function)      # COUNT_IF is a count, but not called so
        name = PLAIN_NAMES.get(function, function)
        return f"{name}_{argument.name}" if isinstance(argument, Column) else name
    if isinstance(item.node, exp.Anonymous):
        only = [a for a in expr.args if not isinstance(a, Literal)] if isinstance(expr, Call) else []
        name = item.node.name.lower().partition(" ")[0]
        return f"{name}_{only[0].name}" if len(only) == 1 and isinstance(only[0], Column) else name
    return f"column{number}"
