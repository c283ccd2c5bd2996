"""How one pass over an input's rows tells all its selections apart: intervals of compared expressions, a bit for any
other predicate; no SQL, no data.

Paper E's query-set of a tuple is the set of choices that its marks satisfy. Equal predicates are evaluated once;
comparisons of one expression with constants become one number, the interval in which its value lies, found by halving.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import prod
from typing import Any

from optimizer.expression.expr import Call, Expr, Literal
from optimizer.expression.types import BOOLEAN

WORD = 62                   # bits that a BIGINT holds without its sign, and one to spare
TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}
Conjuncts = tuple[Expr, ...]
Comparison = tuple[Expr, str, Literal]      # v.ms, lt, 10


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
    """A selection in terms of marks: an interval a scale, since ≤ number < until; a mask a word."""

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
        reach = []
        for k in range(len(self.scales)):
            spans = [choice.spans[k] for choice in self.choices]
            reach.append((min(since for since, _ in spans), max(until for _, until in spans)))
        return tuple(reach)

    @property
    def combinations(self) -> int:
        """How many different marks rows can have that are not left out, as far as it matters."""
        return prod(until - since for since, until in self.reach) * (1 << min(len(self.bits), WORD))

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
    selections = tuple(choices)
    all_conjuncts = tuple(dict.fromkeys(chain.from_iterable(selections)))
    compared = _comparisons(all_conjuncts)
    exprs = dict.fromkeys(expr for expr, _, _ in compared.values())
    scales = tuple(_scale(expr, compared) for expr in exprs)
    bits = tuple(conjunct for conjunct in all_conjuncts if conjunct not in compared)
    places = [_places(scale) for scale in scales]
    numbered = []
    for conjuncts in selections:
        spans = tuple(_span(scale, of_scale, conjuncts, compared) for scale, of_scale in zip(scales, places))
        numbered.append(Choice(spans, _masks(bits, conjuncts)))
    return Marks(scales, bits, tuple(numbered))


def choice_of(all_marks: Marks, conjuncts: Conjuncts) -> Choice:
    """A selection by marks that were made of it and others."""
    compared = _comparisons(conjuncts)
    spans = tuple(_span(scale, _places(scale), conjuncts, compared) for scale in all_marks.scales)
    return Choice(spans, _masks(all_marks.bits, conjuncts))


def _comparisons(conjuncts: Conjuncts) -> dict[Expr, Comparison]:
    """Those of the conjuncts that compare an expression with a constant."""
    compared = {conjunct: comparison(conjunct) for conjunct in conjuncts}
    return {conjunct: parts for conjunct, parts in compared.items() if parts is not None}


def _places(scale: Scale) -> dict[Expr, int]:
    return {cut: n for n, cut in enumerate(scale.cuts)}


def comparison(conjunct: Expr) -> Comparison | None:
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
    by_function: dict[str, tuple[Expr | None, Expr | None]] = {
        "lt": (None, before),
        "le": (None, after),
        "gt": (after, None),
        "ge": (before, None),
        "eq": (before, after),
    }
    return by_function[function]


def _scale(expr: Expr, compared: dict[Expr, Comparison]) -> Scale:
    cuts: set[Expr | None] = set()
    for other, function, constant in compared.values():
        if other == expr:
            cuts.update(_cuts(expr, function, constant))
    return Scale(expr, tuple(sorted((cut for cut in cuts if cut is not None), key=_rank)))


def _rank(cut: Expr) -> tuple[Any, bool]:
    """Cuts of one expression ascend by their constant; of one constant "below" comes before "up to"."""
    assert isinstance(cut, Call) and isinstance(cut.args[1], Literal)
    return cut.args[1].value, cut.function == "le"


def _span(scale: Scale, places: dict[Expr, int], choice: Conjuncts,
          compared: dict[Expr, Comparison]) -> tuple[int, int]:
    since, until = 0, scale.top
    for conjunct in choice:
        if conjunct not in compared or compared[conjunct][0] != scale.expr:
            continue
        lower, upper = _cuts(*compared[conjunct])
        since = max(since, places[lower] + 1) if lower is not None else since
        until = min(until, places[upper] + 1 if upper is not None else scale.top - 1)
    return since, max(since, until)


def _masks(bits: Conjuncts, choice: Conjuncts) -> tuple[int, ...]:
    chosen, masks = set(choice), []
    for k in range(0, len(bits), WORD):
        masks.append(sum(1 << n for n, bit in enumerate(bits[k:k + WORD]) if bit in chosen))
    return tuple(masks)
