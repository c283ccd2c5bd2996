"""What a row of the table of functions says: its names, its typing, its SQL in both dialects, when it raises."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Union

from optimizer.expression.arguments import Args
from optimizer.expression.expr import Call, Expr

Texts = tuple[str, ...]                                 # the arguments of a call as SQL
# SQL with {0}, {1} … for the arguments and {all} for all of them with commas between; or what writes it from the call
Template = Union[str, Callable[[Call, Texts], str]]
Typing = Callable[[Args], Expr]                         # gives the typed call, or refuses its arguments


@dataclass(frozen=True)
class Name:
    """A name that users write, how many arguments it takes, and its line in docs/queries.md.

    `Name("SUBSTRING", 2, 3, "from a position …")`: SUBSTRING(text, start) and SUBSTRING(text, start, length).
    """

    text: str
    least: int
    most: int
    about: str

    @property
    def arguments(self) -> str:
        """`1 argument`, `2 to 3 arguments`."""
        count = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
        return f"{count} argument{'s' if count != '1' else ''}"


@dataclass(frozen=True)
class Written:
    """What users may write by these names and operators, typed by `typed`.

    Alone it is made of other functions: `Written(typed=_null_if, names=(Name("NULLIF", 2, 2, "…"),))` gives a CASE.
    `unfailing`: its arguments may not fail, as what catches its own errors in DuckDB would catch theirs.
    """

    typed: Typing | None = None
    names: tuple[Name, ...] = ()
    operators: tuple[str, ...] = ()
    unfailing: bool = False

    def __post_init__(self) -> None:
        if self.typed is None and (self.names or self.operators):
            raise ValueError(f"{self} can be written, so it needs a typing rule")


@dataclass(frozen=True, kw_only=True)
class Function(Written):
    """A function of typed expressions: the calls with its `name`, in both dialects with Spark's value.

    For instance `ENDSWITH(page, '.html')`, which becomes `Call("endswith", …)`:

        Function(name="endswith", typed=partial(strings, "endswith", BOOLEAN),
                 names=(Name("ENDSWITH", 2, 2, "whether the first string ends with the second"),),
                 duckdb="ends_with({0}, {1})", spark="endswith({0}, {1})")

    - `spark`: None where it is written as in DuckDB.
    - `fails`: whether this call can raise for some row; `attempt` is then Spark's form that gives NULL instead.
    - `order`: how arguments are evaluated: `strict` (left to right, a NULL ends it), `divisor` (the same, the second
      first), `all` (each one, NULL or not), `lazy` (as optimizer.expression.scalar knows of this function).
    - `quiet`: Spark's condition under which values that are not NULL give NULL without an error.

    Without names and operators nobody writes it: other rules put it into expressions.
    """

    name: str
    duckdb: Template
    spark: Template | None = None
    fails: Callable[[Call], bool] = lambda call: False
    attempt: Template | None = None
    order: str = "strict"
    quiet: Template | None = None

    def sql(self, dialect: str, call: Call, args: Texts) -> str:
        return filled(self.duckdb if dialect == "duckdb" or self.spark is None else self.spark, call, args)

    def never_raising(self, call: Call, args: Texts) -> str:
        """Spark's SQL that gives NULL where `call` raises."""
        if self.attempt is None or not self.fails(call):
            return self.sql("spark", call, args)
        return filled(self.attempt, call, args)

    def null_condition(self, call: Call, args: Texts) -> str:
        """`quiet` of this call, empty where there is no such case."""
        return filled(self.quiet, call, args) if self.quiet is not None else ""


def filled(template: Template, call: Call, args: Texts) -> str:
    return template.format(*args, all=", ".join(args)) if isinstance(template, str) else template(call, args)


def infix(operator: str) -> Template:
    """Any number of arguments with an operator between them."""
    return lambda call, args: "(" + f" {operator} ".join(args) + ")"
