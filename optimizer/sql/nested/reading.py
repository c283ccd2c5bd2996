"""What those who read a text of several SELECTs tell one another: names, sessions, what is numbered through the text,
and parts of the parser's tree that they look for.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from optimizer.errors import ForebayError
from optimizer.expression.expr import Expr
from optimizer.query.blocks import Block, Item, NamedRows, Ordering, Rowset
from optimizer.sql.expressions import Scope
from optimizer.sql.text import Source

KINDS = {"NATURAL": "inner", "NATURAL INNER": "inner", "NATURAL LEFT": "left", "NATURAL LEFT OUTER": "left",
         "": "inner", "INNER": "inner", "CROSS": "inner", "LEFT": "left", "LEFT OUTER": "left", "RIGHT": "right",
         "RIGHT OUTER": "right", "FULL": "full", "FULL OUTER": "full", "OUTER": "full", "LEFT SEMI": "semi",
         "SEMI": "semi", "LEFT ANTI": "anti", "ANTI": "anti"}


@dataclass(frozen=True)
class Names:
    """What WITH has named so far."""

    by_name: dict[str, NamedRows] = field(default_factory=dict)

    def and_(self, name: str, named: NamedRows) -> Names:
        return Names({**self.by_name, name.lower(): named})


@dataclass(frozen=True)
class Session:
    """Of an item whose rows are grouped by sessions: the longest pause within one, in microseconds, and the columns BY
    which they are told apart, None where GROUP BY says it.
    """

    gap: int
    by: tuple[str, ...] | None
    event_time: str = ""


class Rowsets(Protocol):
    """Who reads the whole text: SELECTs wherever they stand, entries of FROM, what is numbered through all of it."""

    source: Source
    numbers: Iterator[int]
    shown: dict[int, list[tuple[str, str]]]
    sessions: dict[int, Session]

    def rowset(self, node: exp.Expr, around: Scope | None, names: Names) -> Rowset:
        """A SELECT, or several that are put together."""

    def item(self, node: exp.Expr, names: Names) -> Item:
        """An entry of FROM."""

    def session_item(self, node: exp.Expr, gap: int) -> Item:
        """An entry of FROM whose rows session_window groups."""

    def distinct(self, rows: Rowset) -> Block:
        """Each row once."""

    def ordering(self, node: exp.Expr, scope: Scope, outputs: Sequence[tuple[str, Expr]]) -> Ordering:
        """An entry of ORDER BY."""

    def union(self, blocks: Sequence[Block]) -> Rowset:
        """The rows of all of them."""

    def cut(self, rows: Rowset, order: Sequence[tuple[int, Ordering]], limit: int | None, start: int) -> Block:
        """LIMIT of rows by some of their columns, each by its place."""

    def limits(self, node: exp.Expr) -> tuple[int | None, int]:
        """LIMIT and OFFSET."""

    def refusal(self, code: str, message: str, node: exp.Expr, hint: str | None = None) -> ForebayError:
        """What is wrong, with the place of a node."""


def kind_of_join(join: exp.Expr) -> str:
    """One of JOINS; `?` for what Spark has no word for."""
    words = " ".join(str(join.args[part]).upper() for part in ("method", "side", "kind") if join.args.get(part))
    return KINDS.get(words, "?")


def orderings_of(node: exp.Expr) -> list[exp.Expr]:
    clause = node.args.get("order")
    return list(clause.expressions) if clause is not None else []


def session_call(select: exp.Expr) -> exp.Anonymous | None:
    """session_window(…) in GROUP BY."""
    group = select.args.get("group")
    return next((node for node in group.expressions if isinstance(node, exp.Anonymous)
                 and node.name.upper() == "SESSION_WINDOW"), None) if group is not None else None
