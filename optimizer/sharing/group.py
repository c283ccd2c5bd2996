"""Which queries one work can answer, and what it has to know of each: its selections by number, its aggregates among
all.

Nothing is priced here.
"""
from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

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
    """Queries that differ in selections only, once joined: one last statement serves all.

    `members` are (name, class).
    """

    query: Query
    members: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Group:
    """`common` is every member's query without what differs, and with all their aggregates; `choices[i]` the distinct
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
        return self.plan.split == "after" and len(self.common.inputs) > 1 and any(self.marks[i].names
                                                                                  for i in self.told_apart)

    @cached_property
    def told_apart(self) -> tuple[int, ...]:
        """The inputs of which members select differently.

        The first one where none is, so that every row has a class.
        """
        return tuple(i for i, c in enumerate(self.choices) if len(c) > 1) or (0,)

    @cached_property
    def plan(self) -> Plan:
        """All inputs aggregate early, and what comes of that is joined.

        Nothing is kept, so members come and go at no cost.
        """
        if self.chosen is not None:
            return self.chosen
        exchange = "partition" if self.keyed else "slice"
        return Plan((True,) * len(self.common.inputs), "recompute", connected_order(shape(self.common)), exchange,
                    "raw")

    @cached_property
    def keyed(self) -> bool:
        """Whether a key is common to all inputs, by which tasks can divide them."""
        return shape(self.common).common_key() is not None


def alone(query: Query) -> str | None:
    """Why no work that others share can answer this query; None: one can."""
    whole = next((a.function for a in query.aggregates if not mergeable(a)), None)
    if query.returns_rows:
        return "it returns rows: only answers by group are read from sets that others share"
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

    What can fail on a row is part of it: a row fails all its readers alike, or none.
    """
    return _form(normal(query))


@lru_cache(maxsize=16384)
def _form(query: Query) -> Hashable:
    fallible = query.aggregates if failing(Lowering(shape(query), _lone(query))) else ()
    return query.inputs, query.equalities, query.residuals, query.groups, query.every, fallible


def _lone(query: Query) -> Plan:
    return Plan((False,) * len(query.inputs), "recompute", tuple(range(len(query.inputs))))


def group(queries: Mapping[str, Query]) -> Group:
    """Queries of one form as one group; deterministic in their order."""
    asked = {name: normal(query) for name, query in queries.items()}
    if len({_form(q) for q in asked.values()}) != 1:
        raise ValueError("queries of several forms")
    first = next(iter(asked.values()))
    same = tuple(s for s in first.selections if all(s in q.selections for q in asked.values()))
    own = {name: _own(q, same) for name, q in asked.items()}
    choices = tuple(tuple(dict.fromkeys(o[i] for o in own.values())) for i in range(len(first.inputs)))
    numbers = [{choice: n for n, choice in enumerate(c)} for c in choices]
    vector = {name: tuple(numbers[i][c] for i, c in enumerate(o)) for name, o in own.items()}
    classes = tuple(dict.fromkeys(vector.values()))
    aggregates = tuple(dict.fromkeys(a for q in asked.values() for a in q.aggregates))
    common = replace(first, selections=same, aggregates=aggregates, having=None, outputs=())
    number = {v: n for n, v in enumerate(classes)}
    return Group(common, choices, classes, _templates(asked, aggregates, {
        name: number[v] for name, v in vector.items()
    }))


def _own(query: Query, same: Conjuncts) -> tuple[Conjuncts, ...]:
    rest = [s for s in query.selections if s not in same]
    return tuple(tuple(s for s in rest if home(s) == i) for i in range(len(query.inputs)))


def _templates(asked: Mapping[str, Query], aggregates: tuple[Aggregate, ...],
               classes: Mapping[str, int]) -> tuple[Template, ...]:
    found: dict[Query, list[tuple[str, int]]] = {}
    number = {a: n for n, a in enumerate(aggregates)}
    for name, query in asked.items():
        place = [number[a] for a in query.aggregates]
        outputs = tuple((n, _renumbered(e, place)) for n, e in query.outputs)
        having = _renumbered(query.having, place) if query.having is not None else None
        found.setdefault(replace(query, selections=(), aggregates=aggregates, having=having, outputs=outputs),
                         []).append((name, classes[name]))
    return tuple(Template(query, tuple(members)) for query, members in found.items())


def _renumbered(expr: Expr, place: list[int]) -> Expr:
    if isinstance(expr, AggregateRef):
        return replace(expr, index=place[expr.index])
    return replace(expr, args=tuple(_renumbered(a, place) for a in expr.args)) if isinstance(expr, Call) else expr


def forms(queries: Mapping[str, Query]) -> tuple[tuple[tuple[str, ...], ...], dict[str, str]]:
    """Names by form, of those that can share; and why each other one cannot."""
    refused = {name: reason for name, q in queries.items() if (reason := alone(q)) is not None}
    found: dict[Hashable, list[str]] = {}
    for name in (n for n in queries if n not in refused):
        found.setdefault(form(queries[name]), []).append(name)
    return tuple(tuple(names) for names in found.values()), refused


def parts_of(names: Iterable[str], most: int) -> tuple[tuple[str, ...], ...]:
    """In runs of at most so many."""
    listed = tuple(names)
    return tuple(listed[k:k + most] for k in range(0, len(listed), most))
