"""One expectation, valid by construction: its kind, how much it matters, the columns and values it is about.

What it says of rows is elsewhere.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from expectations.kinds import BOUNDS, FLAGS, KINDS, LEAST, MOST, MOSTLY, PATTERN, SET, SEVERITIES, Kind, suits
from expectations.literals import comparable, count, literal, number, share
from optimizer.errors import ForebayError
from optimizer.expression.types import BIGINT, DOUBLE, Type

Value = str | tuple[str, ...]
LONGEST = 160            # characters of an expectation in messages and reasons
MOST_VALUES = 1000       # of a set


@dataclass(frozen=True)
class Expectation:
    """`arguments` are canonical texts by parameter; `types` those of the columns, in order."""

    kind: str
    severity: str
    columns: tuple[str, ...] = ()
    types: tuple[Type, ...] = ()
    arguments: tuple[tuple[str, Value], ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS or self.severity not in SEVERITIES or len(self.columns) != len(self.types):
            raise ValueError(f"expectation {self.kind!r}, {self.severity!r}")
        if self.severity == "row" and (not KINDS[self.kind].row or self.get(MOSTLY) is not None):
            raise ValueError("a row is judged by itself")

    @property
    def form(self) -> Kind:
        return KINDS[self.kind]

    def get(self, parameter: str) -> str | None:
        found = dict(self.arguments).get(parameter)
        return found if isinstance(found, str) else None

    @property
    def values(self) -> tuple[str, ...]:
        """What its set holds."""
        found = dict(self.arguments).get(SET, ())
        return found if isinstance(found, tuple) else ()

    def __str__(self) -> str:
        named = [", ".join(self.columns)] if self.columns else []
        said = [
            f"{name}: {value if isinstance(value, str) else '[' + ', '.join(value) + ']'}"
            for name, value in self.arguments
        ]
        text = f"{self.kind}({', '.join([*named, *said])})"
        return text if len(text) <= LONGEST else text[:LONGEST - 2] + "…)"


def argument(kind: Kind, parameter: str, text: str | tuple[str, ...], column: Type | None) -> Value:
    """A parameter's canonical value; `column` is the type of the column that it is compared with."""
    if parameter in FLAGS:
        return literal(str(text), Type("boolean"))
    if parameter == MOSTLY:
        return share(str(text))
    if parameter == PATTERN:
        return str(text)
    if isinstance(text, tuple):
        if not 0 < len(text) <= MOST_VALUES:
            raise ForebayError("bad-value", f"{parameter} has {len(text)} values",
                               hint=f"a set has 1 to {MOST_VALUES} values")
        return tuple(dict.fromkeys(literal(t, column or DOUBLE) for t in text))
    made = {"count": count, "share": share, "number": number}.get(kind.of)
    return made(text) if made else literal(text, column or DOUBLE)


def check(made: Expectation) -> Expectation:
    """Refuses what cannot be meant, as bounds that exclude each other."""
    low, high = made.get(LEAST), made.get(MOST)
    for name, type_ in zip(made.columns, made.types):
        if not suits(made.form, type_):
            raise ForebayError("bad-expectation", f"{made.kind} takes no {type_} as {name} is",
                               hint=f"it takes columns that are {_WANTED[made.form.takes]}")
    if made.form.columns == ("column_A", "column_B") and made.types[0] != made.types[1]:
        raise ForebayError("bad-expectation",
                           f"{made.columns[0]} is {made.types[0]}, {made.columns[1]} is {made.types[1]}",
                           hint="compare columns of one type")
    if BOUNDS[0] in made.form.values and low is None and high is None:
        raise ForebayError("missing-key", f"{made.kind} has neither {LEAST} nor {MOST}", hint="give one or both")
    bounds = [comparable(bound, _measure(made)) for bound in (low, high) if bound is not None]
    if len(bounds) > 1 and bounds[0] > bounds[1]:  # type: ignore[operator]
        raise ForebayError("bad-value", f"{LEAST} {low} is more than {MOST} {high}", hint="no value could pass")
    return made


def _measure(made: Expectation) -> Type:
    return {"count": BIGINT, "share": DOUBLE, "number": DOUBLE}.get(made.form.of) or made.types[0]


_WANTED: Mapping[str, str] = {
    "ordered": "numbers, strings, dates or timestamps",
    "numeric": "numbers",
    "string": "strings",
    "any": "of any type"
}
