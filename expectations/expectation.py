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
    """What rows are expected to be: `Expectation("expect_column_values_to_not_be_null", "row", ("user",), (STRING,))`.

    `arguments` are canonical texts by parameter; `types` those of the columns, in order.
    """

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

    @property
    def typed_columns(self) -> dict[str, Type]:
        """The columns that its SQL reads."""
        return dict(zip(self.columns, self.types))

    @property
    def shows_values(self) -> bool:
        """Whether what is observed of it is a value of a column, or nearly: an extreme or a sum."""
        return not self.form.row and self.form.of in ("column", "number") and bool(self.form.values)

    def get(self, parameter: str) -> str | None:
        value = dict(self.arguments).get(parameter)
        return value if isinstance(value, str) else None

    @property
    def values(self) -> tuple[str, ...]:
        """What its set holds."""
        value = dict(self.arguments).get(SET, ())
        return value if isinstance(value, tuple) else ()

    def __str__(self) -> str:
        parts = [", ".join(self.columns)] if self.columns else []
        for name, value in self.arguments:
            parts.append(f"{name}: {value if isinstance(value, str) else '[' + ', '.join(value) + ']'}")
        text = f"{self.kind}({', '.join(parts)})"
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
    read = {"count": count, "share": share, "number": number}.get(kind.of)
    return read(text) if read else literal(text, column or DOUBLE)


def check(expectation: Expectation) -> Expectation:
    """Refuses what cannot be meant, as bounds that exclude each other."""
    low, high = expectation.get(LEAST), expectation.get(MOST)
    for name, type_ in zip(expectation.columns, expectation.types):
        if not suits(expectation.form, type_):
            raise ForebayError("bad-expectation", f"{expectation.kind} takes no {type_} as {name} is",
                               hint=f"it takes columns that are {_WANTED[expectation.form.takes]}")
    types, columns = expectation.types, expectation.columns
    if expectation.form.columns == ("column_A", "column_B") and types[0] != types[1]:
        raise ForebayError("bad-expectation", f"{columns[0]} is {types[0]}, {columns[1]} is {types[1]}",
                           hint="compare columns of one type")
    if BOUNDS[0] in expectation.form.values and low is None and high is None:
        raise ForebayError("missing-key", f"{expectation.kind} has neither {LEAST} nor {MOST}", hint="give one or both")
    numbers = {"count": BIGINT, "share": DOUBLE, "number": DOUBLE}.get(expectation.form.of)
    bounds = [comparable(bound, numbers or types[0]) for bound in (low, high) if bound is not None]
    if len(bounds) > 1 and bounds[0] > bounds[1]:  # type: ignore[operator]
        raise ForebayError("bad-value", f"{LEAST} {low} is more than {MOST} {high}", hint="no value could pass")
    return expectation


_WANTED: Mapping[str, str] = {
    "ordered": "numbers, strings, dates or timestamps",
    "numeric": "numbers",
    "string": "strings",
    "any": "of any type"
}
