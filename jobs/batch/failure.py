"""Why a query failed at a boundary: the expression, and the row or group on which it fails.

Looked up once the boundary is known, by a task that reads the windows of that boundary again. Where it does not come to
an answer, the engine's own message has to do.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from jobs.batch.orders import located, task_orders
from jobs.batch.works import Context, QueryWork
from jobs.engine import kernel
from jobs.engine.reach import Split
from jobs.engine.work import TaskOrder, perform, relation
from jobs.ledger.entries import Batch
from optimizer.errors import first_line
from optimizer.expression import dialect as d
from optimizer.expression.expr import columns
from optimizer.expression.types import Type
from optimizer.plan.failing import FAILING_ROW, ExpressionOnRows, expressions_on_joined_rows, expressions_on_rows
from optimizer.plan.final import failing_groups
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import PLAIN, named
from optimizer.plan.nested.words import fallible
from optimizer.plan.program import BEGINNING, Columns
from optimizer.plan.wording import as_written
from optimizer.query.blocks import Rowset
from optimizer.query.shape import shape
from optimizer.time import iso

ZERO_DIVISOR, DIVISION = "'DIVIDE_BY_ZERO'", "division by zero"      # as optimizer/expression/scalar.py brings it about
MOST_COLUMNS, MOST_CHARACTERS = 8, 60      # of a row, and of a value, that a message shows


@dataclass(frozen=True)
class FailureOrder:
    """What a task looks up: expressions over rows with the files of each, those over groups of the answer, and
    those over joined rows, which are only named.

    `partials` computes the answer's partials by the least plan; None for row queries, which have none. Values of
    `sensitive` columns are not shown, nor those of groups made of them.
    """

    boundary: int
    rows: tuple[tuple[ExpressionOnRows, Split], ...]
    joined: tuple[str, ...] = ()
    groups: tuple[tuple[str, str], ...] = ()
    group_columns: Columns = ()
    partials: TaskOrder | None = None
    sensitive: Mapping[str, frozenset[str]] = field(default_factory=dict)
    hides_groups: bool = False


def explained(context: Context, batch: Batch, work: QueryWork, message: str, previous: int) -> str:
    """The message of a work that fails at its only boundary, with the expression and where it fails if that can be
    told.
    """
    if work.plan.place == "jvm":      # its files are none that the kernel may read
        return message
    message = _readable(message)
    if work.query.blocks is not None:
        return _of_blocks(work.query.blocks, message)
    where, = context.tasks.map(_WhereItFails(message), [_order(context, batch, work, previous)])
    if where is None and work.query.above is not None:
        return _of_blocks(work.query.above, message)
    return where or message


def _of_blocks(rows: Rowset, message: str) -> str:
    """In which of several SELECTs it was is not followed; what can fail in them is named."""
    expressions = fallible(rows)
    if not expressions:
        return message
    which = expressions[0] if len(expressions) == 1 else f"one of {', '.join(expressions)}"
    return f"{which} fails on a row that the answer needs ({message})"


def _order(context: Context, batch: Batch, work: QueryWork, previous: int) -> FailureOrder:
    query, t = work.query, work.due[-1]
    plain = replace(work, plan=named(query, PLAIN), due=(t,), previous=BEGINNING, parts=1, runs=1, together=1,
                    coded=False)
    low = Lowering(shape(query), plain.plan, narrow=False)
    since = max(previous, 0) + 1 if query.returns_rows else t
    rows = tuple((one, located(context, batch, plain, one.source, 0)) for one in expressions_on_rows(low, t, since))
    joined = expressions_on_joined_rows(low)
    if query.returns_rows:
        return FailureOrder(t, rows, joined, sensitive=context.sensitive)
    hides_groups = any(column.name in context.sensitive.get(query.inputs[column.input].source, ())
                       for group in query.groups for column in columns(group))
    keys = tuple((as_written(query, expr), expr.type) for expr in query.groups)
    return FailureOrder(t, rows, joined, tuple(failing_groups(low)), keys, task_orders(context, batch, plain)[0],
                        context.sensitive, hides_groups)


@dataclass(frozen=True)
class _WhereItFails:
    """`CAST(v.x AS INT) fails on the row of views with ts = 2026-01-01T00:00:25Z, x = 'abc'`; None: it cannot tell."""

    message: str

    def __call__(self, order: FailureOrder) -> str | None:
        con = kernel.shared()
        try:
            row = _on_a_row(con, order)
            if row is not None:
                return row
            place = _on_a_group(con, order) or _on_joined_rows(order)
            return f"{place} ({self.message})" if place is not None else None
        except kernel.Error as error:
            if not kernel.about_data(error):
                kernel.discard()
            return None
        finally:
            con.close()


def _on_a_row(con: kernel.Connection, order: FailureOrder) -> str | None:
    for one, (files, certain) in order.rows:
        con.execute(f"CREATE OR REPLACE TEMP VIEW {one.source.name} AS {relation(con, one.source, files, certain)}")
        con.execute(f"CREATE OR REPLACE TEMP TABLE {FAILING_ROW} AS {one.row}")
        values = con.execute(f"SELECT {', '.join(_printable(*column) for column in one.columns)} "
                             f"FROM {FAILING_ROW}").fetchone()
        if values is None:
            continue
        kind = "row" if one.source.kind == "stream" else "row of the relation"
        hidden = order.sensitive.get(one.source.of, frozenset())
        shown = _shown(one.columns, ["***" if name in hidden else value
                                     for (name, _), value in zip(one.columns, values)])
        reason = "" if hidden & one.reads else _reason(con, one)
        return f"{one.expression} fails on the {kind} of {one.source.of} with {shown}{reason}"
    return None


def _reason(con: kernel.Connection, one: ExpressionOnRows) -> str:
    """The engine's own; of a cast the values say more than its message, which is of what the cast is made of."""
    try:
        con.execute(one.value).fetchall()
    except kernel.Error as error:
        reason = _readable(first_line(error))
        return "" if reason.startswith("Conversion Error") else f" ({reason})"
    return ""


def _readable(message: str) -> str:
    return DIVISION if ZERO_DIVISOR in message else message


def _on_a_group(con: kernel.Connection, order: FailureOrder) -> str | None:
    result = perform(order.partials) if order.partials is not None else None
    if result is None or result.partials is None:
        return None
    con.register("partials", result.partials)
    con.register("due", pa.table({"_t": pa.array([order.boundary], pa.int64())}))
    for expression, sql in order.groups:
        con.execute(f"CREATE OR REPLACE TEMP TABLE {FAILING_ROW} AS {sql}")
        names = [f"g{k}" for k in range(len(order.group_columns))]
        printable = [_printable(name, type_) for name, (_, type_) in zip(names, order.group_columns)]
        values = con.execute(f"SELECT {', '.join(printable) or '1'} FROM {FAILING_ROW}").fetchone()
        if values is not None and order.hides_groups:
            return f"{expression} fails for a group"
        if values is not None and order.group_columns:
            return f"{expression} fails for the group with {_shown(order.group_columns, values)}"
        if values is not None:
            return f"{expression} fails"
    return None


def _on_joined_rows(order: FailureOrder) -> str | None:
    return f"{' or '.join(order.joined)} fails on a joined row" if order.joined else None


def _printable(name: str, type_: Type) -> str:
    column = d.identifier(name)
    return d.micros(column, "duckdb") if type_.name == "timestamp" else f"CAST({column} AS VARCHAR)"


def _shown(columns: Columns, values: Sequence[Any]) -> str:
    shown = [f"{name} = {_value(value, type_)}" for (name, type_), value in zip(columns, values)][:MOST_COLUMNS]
    return ", ".join(shown) + (" …" if len(columns) > MOST_COLUMNS else "")


def _value(value: Any, type_: Type) -> str:
    if value is None:
        return "NULL"
    if type_.name == "timestamp" and not isinstance(value, str):
        return str(iso(value))
    text = str(value) if len(str(value)) <= MOST_CHARACTERS else f"{str(value)[:MOST_CHARACTERS]}…"
    return f"'{text}'" if type_.name == "string" else text
