"""Column types by their Spark SQL names; a type that is not here cannot enter a query."""
from __future__ import annotations

import re
from dataclasses import dataclass

from optimizer.errors import ForebayError

INTEGERS = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8}      # name → bytes
ALIASES = {
    "integer": "int",
    "long": "bigint",
    "short": "smallint",
    "byte": "tinyint",
    "text": "string",
    "varchar": "string",
    "real": "float",
    "bool": "boolean",
    "numeric": "decimal",
    "dec": "decimal"
}
NAMES = (*INTEGERS, "float", "double", "decimal", "string", "boolean", "date", "timestamp")


@dataclass(frozen=True)
class Type:
    """One of NAMES; `precision` and `scale` only for decimals."""

    name: str
    precision: int = 0
    scale: int = 0

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise ForebayError("unknown-type", f"type {self.name!r} is not known", hint=f"known are {', '.join(NAMES)}")
        if self.name == "decimal" and not (0 < self.precision <= 38 and 0 <= self.scale <= self.precision):
            raise ForebayError("unknown-type", f"decimal({self.precision},{self.scale}) is not a type",
                               hint="precision is 1 to 38, scale 0 to precision")

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name

    @property
    def integral(self) -> bool:
        return self.name in INTEGERS

    @property
    def exact(self) -> bool:
        return self.integral or self.name == "decimal"

    @property
    def floating(self) -> bool:
        return self.name in ("float", "double")

    @property
    def numeric(self) -> bool:
        return self.exact or self.floating


TINYINT, SMALLINT, INT, BIGINT = (Type(n) for n in INTEGERS)
FLOAT, DOUBLE, STRING, BOOLEAN, DATE, TIMESTAMP = (Type(n) for n in ("float", "double", "string", "boolean", "date",
                                                                     "timestamp"))


def decimal(precision: int, scale: int) -> Type:
    return Type("decimal", precision, scale)


def holds(wide: Type, narrow: Type) -> bool:
    """Whether every value of one type is a value of the other, as it is: `holds(BIGINT, INT)`."""
    if wide == narrow:
        return True
    if wide.integral and narrow.integral:
        return INTEGERS[wide.name] > INTEGERS[narrow.name]
    if wide.name == narrow.name == "decimal":
        return wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale
    return (wide, narrow) == (DOUBLE, FLOAT)


def parse_type(text: str) -> Type:
    """`decimal(10,2)`, `BIGINT`, `integer` … as users write them in forebay.yml."""
    match = re.fullmatch(r"\s*([A-Za-z]+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*", text)
    if not match:
        raise ForebayError("unknown-type", f"type {text!r} is not known", hint=f"known are {', '.join(NAMES)}")
    name = ALIASES.get(match[1].lower(), match[1].lower())
    if name == "decimal":
        return Type(name, int(match[2] or 10), int(match[3] or 0))
    return Type(name)
