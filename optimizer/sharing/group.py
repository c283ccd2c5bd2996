"""Query groups: which queries one work can answer, and what it needs of each: its selections by number, its aggregates
among all.

Nothing is priced here.
"""
from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain

from optimizer.expression.expr import AggregateRef, Call, Expr
from optimizer.expression.scalar import can_fail
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import Plan, connected_order
from optimizer.plan.operators.join import failing
from optimizer.query.model import Aggregate, Query
from optimizer.query.normal import normal
from optimizer.query.shape import home, mergeable, shape
from optimizer.sharing.marks import Conjuncts, Marks, marks

OWNER = "query"         # the column of a shared result table that says whose row it is


@dataclass(frozen=True)
class Template:
    """Queries whose answers differ in selections only: one last statement serves all.

    `members` are (name, class): `Template(query, (("news", 0), ("sport", 1)))`.
    """

    query: Query
    members: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Group:
    """A query group: queries of one join shape that one work answers, such as `group({"news": query, "sport": query})`.

    `common` is every member's query without what differs, and with all their aggregates; `choices[i]` are the distinct
    selections of input i.

    A class is a combination of choices, one an input: queries of one class read the same joined rows. `chosen`: a plan
    other than the usual one.
    """

    common: Query
    choices: tuple[tuple[Conjuncts, ...], ...]
    classes: tuple[tuple[int, ...], ...]
    templates: tuple[Template, ...]
    chosen: Plan | None = None

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names):
            raise ValueError("a query stands in a group once")
        if any(not 0 <= number < len(self.classes) for t in self.templates for _, number in t.members):
            raise ValueError("a member's class is one of the group's")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for t in self.templates for name, _ in t.members)

    @cached_property
    def marks(self) -> tuple[Marks, ...]:
        return tuple(marks(c) for c in self.choices)

    @property
    def splits_after(self) -> bool:
        """Whether cells are joined with their query-sets; with one class there is nothing to split."""
        if self.plan.split != "after" or len(self.common.inputs) < 2:
            return False
        return any(self.marks[i].names for i in self.told_apart)

    @cached_property
    def told_apart(self) -> tuple[int, ...]:
        """The inputs of which members select differently.

        The first one where none is, so that every row has a class.
        """
        return tuple(i for i, c in enumerate(self.choices) if len(c) > 1) or (0,)

    @cached_property
    def plan(self) -> Plan:
        """All inputs aggregate early, and what comes of that is joined; rows are joined as they are, with their
        query-sets.

        Nothing is kept, so members come and go at no cost.
        """
        if self.chosen is not None:
            return self.chosen
        exchange = "partition" if self.keyed else "slice"
        order, count = connected_order(shape(self.common)), len(self.common.inputs)
        if self.common.returns_rows:
            return Plan((False,) * count, "recompute", order, exchange, split="after")
        return Plan((True,) * count, "recompute", order, exchange, "raw")

    @cached_property
    def keyed(self) -> bool:
        """Whether a key is common to all inputs, by which tasks can divide them."""
        return shape(self.common).common_key() is not None


def alone(query: Query) -> str | None:
    """Why this query cannot share a work with others; None if it can."""
    whole = next((a.function for a in query.aggregates if not mergeable(a)), None)
    if query.blocks is not None or query.above is not None:
        return "it is more than one SELECT of joined and grouped rows"
    if query.semi:
        return "it asks whether rows have a partner (EXISTS, IN)"
    if query.windows:
        return "it has several windows of its own"
    if whole:
        return f"{whole} has no exact partial states"
    if any(can_fail(e) for e in query.selections):
        return "a selection can fail on a row, which must not fail others"
    if any(name.lower() == OWNER for name, _ in query.columns):
        return f"a column of its answer is named {OWNER}, as the one of a shared table that says whose row it is"
    return None


def form(query: Query) -> Hashable:
    """Queries of one form can share.

    What can fail on a row is part of it: a row fails all its readers alike, or none. What row queries show is not: a
    value is computed for a query that needs it.
    """
    return _form(normal(query))


@lru_cache(maxsize=16384)
def _form(query: Query) -> Hashable:
    count = len(query.inputs)
    any_plan = Plan((False,) * count, "recompute", tuple(range(count)))
    fallible = query.aggregates if failing(Lowering(shape(query), any_plan)) else ()
    common = (query.inputs, query.equalities, query.residuals, query.groups, query.every)
    return ("rows", *common) if query.returns_rows else (*common, fallible)


def group(queries: Mapping[str, Query]) -> Group:
    """Queries of one form as one group; deterministic in their order."""
    members = {name: normal(query) for name, query in queries.items()}
    if len({_form(query) for query in members.values()}) != 1:
        raise ValueError("queries of several forms")
    first, *others = members.values()
    of_all = frozenset(first.selections).intersection(*(other.selections for other in others))
    choices: list[dict[Conjuncts, int]] = [{} for _ in first.inputs]      # each with its number
    classes: dict[tuple[int, ...], int] = {}                              # the same
    class_by_name: dict[str, int] = {}
    for name, query in members.items():
        numbers = []
        for i, numbered in enumerate(choices):
            choice = tuple(s for s in query.selections if s not in of_all and home(s) == i)
            numbers.append(numbered.setdefault(choice, len(numbered)))
        class_by_name[name] = classes.setdefault(tuple(numbers), len(classes))
    aggregates = tuple(dict.fromkeys(chain.from_iterable(query.aggregates for query in members.values())))
    common = replace(first, selections=tuple(s for s in first.selections if s in of_all), aggregates=aggregates,
                     having=None, outputs=_joined_values(members) if first.returns_rows else ())
    return Group(common, tuple(map(tuple, choices)), tuple(classes), _templates(members, aggregates, class_by_name))


def _joined_values(members: Mapping[str, Query]) -> tuple[tuple[str, Expr], ...]:
    """What any row query shows of a joined row, each once."""
    exprs = dict.fromkeys(expr for query in members.values() for _, expr in query.outputs)
    return tuple((f"o{n}", expr) for n, expr in enumerate(exprs))


def _templates(members: Mapping[str, Query], aggregates: tuple[Aggregate, ...],
               class_by_name: Mapping[str, int]) -> tuple[Template, ...]:
    names_by_query: dict[Query, list[str]] = {}
    number = {aggregate: n for n, aggregate in enumerate(aggregates)}
    for name, query in members.items():
        place = [number[aggregate] for aggregate in query.aggregates]
        outputs = tuple((column, _renumbered(expr, place)) for column, expr in query.outputs)
        having = _renumbered(query.having, place) if query.having is not None else None
        last_statement = replace(query, selections=(), aggregates=aggregates, having=having, outputs=outputs)
        names_by_query.setdefault(last_statement, []).append(name)
    templates = []
    for query, names in names_by_query.items():
        templates.append(Template(query, tuple((name, class_by_name[name]) for name in names)))
    return tuple(templates)


def _renumbered(expr: Expr, place: list[int]) -> Expr:
    if isinstance(expr, AggregateRef):
        return replace(expr, index=place[expr.index])
    return replace(expr, args=tuple(_renumbered(a, place) for a in expr.args)) if isinstance(expr, Call) else expr


def forms(queries: Mapping[str, Query]) -> tuple[tuple[tuple[str, ...], ...], dict[str, str]]:
    """Names by form, of those that can share; and why each other one cannot."""
    refused: dict[str, str] = {}
    names_by_form: dict[Hashable, list[str]] = {}
    for name, query in queries.items():
        reason = alone(query)
        if reason is None:
            names_by_form.setdefault(form(query), []).append(name)
        else:
            refused[name] = reason
    return tuple(map(tuple, names_by_form.values())), refused


def parts_of(names: Iterable[str], most: int) -> tuple[tuple[str, ...], ...]:
    """In runs of at most so many."""
    listed = tuple(names)
    return tuple(listed[k:k + most] for k in range(0, len(listed), most))
