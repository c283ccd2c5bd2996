"""How one pass over an input's rows tells all its selections apart: intervals of compared expressions, a bit for any
other predicate; no SQL, no data.

Paper E's query-set of a tuple is the set of choices that its marks satisfy. Equal predicates are evaluated once;
comparisons of one expression with constants become one number, the interval in which its value lies, found by halving.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from optimizer.expression.expr import Call, Expr, Literal
from optimizer.expression.types import BOOLEAN

WORD = 62                   # bits that a BIGINT holds without its sign, and one to spare
TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}
Conjuncts = tuple[Expr, ...]


@dataclass(frozen=True)
class Scale:
    """The cuts of one expression, ascending: "below cut n" is a predicate.

    A value lies in interval 0 … n; NULL in n + 1, which only the unrestricted reach.
    """

    expr: Expr
    cuts: tuple[Expr, ...]

    @property
    def top(self) -> int:
        return len(self.cuts) + 2


@dataclass(frozen=True)
class Choice:
    """A selection as marks say it: an interval a scale, since ≤ number < until; a mask a word."""

    spans: tuple[tuple[int, int], ...]
    masks: tuple[int, ...]


@dataclass(frozen=True)
class Marks:
    """Of one input: what is noted of each row, and the choices that can be read from it."""

    scales: tuple[Scale, ...]
    bits: tuple[Expr, ...]
    choices: tuple[Choice, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return (*(f"_r{k}" for k in range(len(self.scales))), *(f"_w{k}" for k in range(self.words)))

    @property
    def words(self) -> int:
        return -(-len(self.bits) // WORD)

    @cached_property
    def reach(self) -> tuple[tuple[int, int], ...]:
        """The intervals that any choice takes, a scale: a row outside is nobody's."""
        return tuple((min(c.spans[k][0]
                          for c in self.choices), max(c.spans[k][1]
                                                      for c in self.choices))
                     for k in range(len(self.scales)))

    @property
    def direction(self) -> str:
        """`below` or `above` where each choice is all that lies on one side of a cut of the only scale, `between` where
        it has two, else ''.
        """
        if len(self.scales) != 1 or self.bits:
            return ""
        since, until = {c.spans[0][0] for c in self.choices}, {c.spans[0][1] for c in self.choices}
        return "below" if since == {0} else "above" if len(until) == 1 else "between"


def marks(choices: Iterable[Conjuncts]) -> Marks:
    """Of distinct selections (conjunctions; an empty one takes every row)."""
    wanted = tuple(choices)
    compared = {c: found for choice in wanted for c in choice if (found := comparison(c)) is not None}
    scales = tuple(_scale(e, compared) for e in dict.fromkeys(e for e, _, _ in compared.values()))
    bits = tuple(dict.fromkeys(c for choice in wanted for c in choice if c not in compared))
    places = {s.expr: {c: n for n, c in enumerate(s.cuts)} for s in scales}
    return Marks(
        scales, bits,
        tuple(
            Choice(tuple(_span(s, places[s.expr], choice, compared)
                         for s in scales), _masks(bits, choice))
            for choice in wanted))


def choice_of(known: Marks, conjuncts: Conjuncts) -> Choice:
    """A selection by marks that were made of it and others."""
    compared = {c: found for c in conjuncts if (found := comparison(c)) is not None}
    spans = tuple(_span(s, {c: n for n, c in enumerate(s.cuts)}, conjuncts, compared) for s in known.scales)
    return Choice(spans, _masks(known.bits, conjuncts))


def comparison(conjunct: Expr) -> tuple[Expr, str, Literal] | None:
    """expression, operator, constant; of types whose order Python and the engines share."""
    if not isinstance(conjunct, Call) or conjunct.function not in TURNED:
        return None
    left, right = conjunct.args
    function = conjunct.function
    if isinstance(left, Literal):
        left, right, function = right, left, TURNED[function]
    if isinstance(left, Literal) or not isinstance(right, Literal) or right.value is None:
        return None
    ordered = right.type == left.type and (right.type.exact or right.type.name in ("date", "timestamp"))
    return (left, function, right) if ordered else None


def _cuts(expr: Expr, function: str, constant: Literal) -> tuple[Expr | None, Expr | None]:
    """(lower, upper): what is selected lies not below the first, and below the second."""
    before, after = (Call(f, (expr, constant), BOOLEAN) for f in ("lt", "le"))
    return {
        "lt": (None, before),
        "le": (None, after),
        "gt": (after, None),
        "ge": (before, None),
        "eq": (before, after)
    }[function]


def _scale(expr: Expr, compared: dict[Expr, tuple[Expr, str, Literal]]) -> Scale:
    cuts = {
        cut for e, function, constant in compared.values() if e == expr for cut in _cuts(e, function, constant)
        if cut is not None
    }
    return Scale(expr, tuple(sorted(cuts, key=_rank)))


def _rank(cut: Expr) -> tuple[Any, bool]:
    assert isinstance(cut, Call) and isinstance(cut.args[1], Literal)
    return cut.args[1].value, cut.function == "le"


def _span(scale: Scale, places: dict[Expr, int], choice: Conjuncts,
          compared: dict[Expr, tuple[Expr, str, Literal]]) -> tuple[int, int]:
    since, until = 0, scale.top
    for conjunct in choice:
        if conjunct not in compared or compared[conjunct][0] != scale.expr:
            continue
        lower, upper = _cuts(*compared[conjunct])
        since = max(since, places[lower] + 1) if lower is not None else since
        until = min(until, places[upper] + 1 if upper is not None else scale.top - 1)
    return since, max(since, until)


def _masks(bits: Conjuncts, choice: Conjuncts) -> tuple[int, ...]:
    chosen = set(choice)
    return tuple(
        sum(1 << n for n, bit in enumerate(bits[k:k + WORD]) if bit in chosen) for k in range(0, len(bits), WORD))
