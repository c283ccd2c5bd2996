"""The join of the inputs' sets, which every plan has (paper A), and the SQL of the aggregation of its rows.

`joined` is both as one SELECT, since the engine never writes the joined rows down: output partials by group.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from optimizer.expression import dialect as d
from optimizer.expression.decimals import quotient
from optimizer.expression.expr import Column, Expr
from optimizer.expression.scalar import fails, safe
from optimizer.expression.types import BIGINT, Type, decimal
from optimizer.plan.division import divided
from optimizer.plan.lowering import Lowering, Name, counted, fallible, merged, squared, stored_type, working_type
from optimizer.plan.model import EXCHANGES
from optimizer.plan.operators.operator import Charge, Expected, InputOperator, Operator
from optimizer.plan.wording import as_written, list_as_written
from optimizer.query.model import Aggregate
from optimizer.query.shape import Measure, Shape
from optimizer.statistics.cardinality import Operand

ONE = "CAST(1 AS BIGINT)"
NODE = "Join"


@dataclass(frozen=True)
class JoinTerm:
    """What one join of all inputs takes and gives: `JoinTerm(rows=1_200, raw_rows=4_000, charges=(("Join", {…}),))`.

    `raw_rows`: joined rows of the query as written, of which these are partials.
    """

    rows: float
    raw_rows: float
    charges: tuple[Charge, ...]

    def groups(self, expected: Expected, ends: float = 1.0) -> float:
        """Partials by group, and by so many ends, that its rows are aggregated to."""
        return min(expected.sizes.answer(self.raw_rows, ends), self.rows)


@dataclass(frozen=True)
class Join(Operator):
    """All inputs joined on the classes of equal attributes; `inputs` in FROM order, joined in the plan's."""

    inputs: tuple[InputOperator, ...]

    @property
    def children(self) -> tuple[Operator, ...]:
        return self.inputs

    def term(self, expected: Expected, operands: Sequence[Operand]) -> JoinTerm:
        """Joins one after another, the smaller side built.

        The kernel orders joins itself, whatever order the plan writes: taken as fewest rows first. Spark keeps the
        plan's.
        """
        ctx, sizes, shares = expected.ctx, expected.sizes, expected.shares
        if ctx.plan.place == "tasks":
            operands = sizes.ordered(operands)
        prefix, charges, first = sizes.prefixes(operands), list[Charge](), operands[0].input
        left, width, is_divided = operands[0].rows * shares[first], expected.width(first), divided(ctx, first)
        for position, operand in enumerate(operands[1:], 1):
            right, own_width = operand.rows * shares[operand.input], expected.width(operand.input)
            built = right * own_width if right <= left else left * width
            probing = max(left, right)
            is_divided = is_divided or divided(ctx, operand.input)
            left, width = prefix[position] * (1 / ctx.parts if is_divided else 1.0), width + own_width
            is_last = position + 1 == len(operands)
            charges.append((NODE, {"build": built, "probe": probing, "between": 0 if is_last else left,
                                   "fanned": max(left - probing, 0)}))
        share = 1 / ctx.parts if is_divided else 1.0
        return JoinTerm(left, sizes.raw_join(operands) * share, tuple(charges))

    def words(self, ctx: Lowering) -> str:
        query = ctx.shape.query
        order = " ⋈ ".join(query.inputs[i].alias for i in ctx.plan.order)
        keys = "; ".join(list_as_written(query, [a.expr for _, a in members], " = ") for members in ctx.shape.keys)
        residuals = [f", where {as_written(query, residual)}" for residual in query.residuals]
        return f"Join {order} on {keys}{''.join(residuals)} ({EXCHANGES[ctx.plan.exchange]})"


def leaf_name(low: Lowering) -> Name:
    """Leaves above the scans are attributes of the sets v0, v1, …"""
    def name(leaf: Expr) -> str:
        found = low.shape.attribute(leaf)
        assert found is not None and isinstance(leaf, Column)
        return f"v{found[0]}.{found[1].name}"
    return name


def group_columns(shape: Shape) -> tuple[str, ...]:
    return tuple(f"g{k}" for k in range(len(shape.query.groups)))


def out_columns(low: Lowering) -> tuple[tuple[str, Type], ...]:
    """Output partials: groups, COUNT(*), measures, failures."""
    kept = [(f"g{k}", e.type) for k, e in enumerate(low.shape.query.groups)] + [("c", BIGINT)]
    return tuple(kept + [(m.name, stored_type(m))
                         for m in low.shape.measures] + ([("e", BIGINT)] if failing(low) else []))


def out_working(low: Lowering) -> dict[str, str]:
    """The types in which output partials are computed."""
    kinds = {m.name: working_type(m, low) for m in low.shape.measures}
    return {name: kinds.get(name) or d.name(kind, low.dialect) for name, kind in out_columns(low)}


def merged_answer(low: Lowering, sql: str, where: str = "TRUE", having: str = "", extra: tuple[str, ...] = ()) -> str:
    """Output partials merged by group (and `extra` columns)."""
    keys = [*group_columns(low.shape), *extra]
    values = [f"{counted('c')} AS c"] + [f"{merged(m, m.name, low)} AS {m.name}" for m in low.shape.measures]
    values += [f"{counted('e')} AS e"] if failing(low) else []
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join(keys + values)} FROM ({sql}) AS q WHERE {where}{by}" + (f" HAVING {having}"
                                                                                       if having else "")


def failing(low: Lowering) -> bool:
    return any(fallible(low, i)
               for i in low.inputs) or any(fails(e, low.dialect, lambda _: "x") is not None for e in _above(low))


def _above(low: Lowering) -> list[Expr]:
    """What is computed of a joined row, not of one input's."""
    measures = [m.expr for m in low.shape.measures if m.home is None and m.expr is not None]
    return [*low.shape.query.residuals, *measures, *(e for e in low.shape.query.groups if not low.shape.attribute(e))]


def joined(low: Lowering, sources: Mapping[int, str], extra: tuple[tuple[str, str], ...] = (),
           signed: int | None = None, where: str = "TRUE") -> str:
    """The join of one relation an input, aggregated by group (and `extra` columns).

    Input `signed` carries a column _s of ±1.
    """
    query = low.shape.query
    groups = [f"{_group(low, e)} AS g{k}"
              for k, e in enumerate(query.groups)] + [f"{sql} AS {name}" for name, sql in extra]
    sign = None if signed is None else f"v{signed}._s"
    values = [f"{counted(_count(low, (), sign))} AS c"
              ] + [f"{_measure(low, m, sign)} AS {m.name}" for m in low.shape.measures]
    values += [f"{counted(_failures(low, sign))} AS e"] if failing(low) else []
    keys = [*group_columns(low.shape), *(name for name, _ in extra)]
    grouped = f" GROUP BY {', '.join(map(str, range(1, len(keys) + 1)))}" if keys else " HAVING count(*) > 0"
    return (f"SELECT {', '.join(groups + values)} FROM {tables(low, sources)} WHERE "
            f"{where}{residual_conditions(low)}{grouped}")


def tables(low: Lowering, sources: Mapping[int, str]) -> str:
    """v0 JOIN v1 ON … in the plan's order.

    Each key class links a new input to the first of its members that stands already.
    """
    order = low.plan.order
    text = f"{sources[order[0]]} AS v{order[0]}"
    for position, i in enumerate(order[1:], 1):
        text += f" JOIN {sources[i]} AS v{i} ON {' AND '.join(_links(low, i, order[:position])) or 'TRUE'}"
    return text


def _links(low: Lowering, i: int, before: tuple[int, ...]) -> list[str]:
    links = []
    for members in low.shape.keys:
        mine = [f"v{i}.{a.name}" for j, a in members if j == i]
        earlier = next((f"v{j}.{a.name}" for k in before for j, a in members if j == k), None)
        links += [f"{earlier} = {m}" for m in mine] if earlier else [f"{mine[0]} = {m}" for m in mine[1:]]
    return links


def _group(low: Lowering, expr: Expr) -> str:
    found = low.shape.attribute(expr)
    return f"v{found[0]}.{found[1].name}" if found else safe(expr, low.dialect, leaf_name(low))


def _count(low: Lowering, but: tuple[int, ...], sign: str | None) -> str:
    """Π c_j over the other inputs: coalescing, paper A Def. 5."""
    factors = [f"v{j}.c" for j in low.inputs if low.early(j) and j not in but] + ([sign] if sign else [])
    return " * ".join(factors) or ONE


def _measure(low: Lowering, m: Measure, sign: str | None) -> str:
    if m.kind == "whole":
        return _whole(low, m)
    if m.home is None:
        return _across(low, m, sign)
    if m.kind == "count" and low.never_null(m.home, m.expr):
        return counted(_count(low, (), sign))      # the same text as COUNT(*): the engine counts once
    value = f"v{m.home}.{m.name}"
    count = _count(low, (m.home,), sign)
    if m.kind in ("min", "max") or count == ONE:
        return merged(m, value, low)
    kind = squared(m.type) if m.kind == "square" else BIGINT if m.kind == "count" else m.type
    return merged(m, d.times(value, kind, count, low.dialect), low)


def _across(low: Lowering, m: Measure, sign: str | None) -> str:
    """A measure of an expression over several inputs: evaluated on the joined row, weighted by all counts."""
    assert m.expr is not None
    value, count = safe(m.expr, low.dialect, leaf_name(low)), _count(low, (), sign)
    if m.kind in ("min", "max"):
        return merged(m, value, low)
    if m.kind == "count":
        return merged(m, f"CASE WHEN {value} IS NULL THEN CAST(0 AS BIGINT) ELSE {count} END", low)
    kept = f"CAST({value} AS {working_type(m, low)})"
    kind = squared(m.type) if m.kind == "square" else m.type
    return merged(m, d.times(f"{kept} * {kept}" if m.kind == "square" else kept, kind, count, low.dialect), low)


def _whole(low: Lowering, m: Measure) -> str:
    """An aggregate that nothing merges, over the joined rows themselves (all counts are 1)."""
    a = m.aggregate
    assert a is not None
    value = "*" if a.argument is None else safe(a.argument, low.dialect, leaf_name(low))
    if a.function == "count_distinct":
        return f"count(DISTINCT {value})"
    if a.function in ("median", "percentile"):
        share = 0.5 if a.function == "median" else a.parameter
        percentile = "quantile_cont" if low.dialect == "duckdb" else "percentile"
        return f"{percentile}(CAST({value} AS DOUBLE), {share})"
    if a.function in ("sum", "avg") and a.type.name == "decimal" and low.dialect == "duckdb" and a.argument is not None:
        return _whole_decimal(a, value, a.argument.type.scale)
    is_spread = a.function.startswith(("stddev", "var"))
    if is_spread and low.dialect == "duckdb" and a.argument is not None and a.argument.type.floating:
        return _whole_spread(a, value)
    return f"CAST({a.function}({value}) AS {d.name(a.type, low.dialect)})"


def _whole_spread(a: Aggregate, value: str) -> str:
    """Of doubles: no number where one of them is none or infinite.

    Where their squares have no room in doubles Spark gives one thing or another.
    """
    spread, defined = f"{a.function}({value})", f"count({value}) > {1 if a.function.endswith('samp') else 0}"
    odd = f"count({value}) > count(CASE WHEN isfinite({value}) THEN 1 END)"
    nan, beyond = "CAST('NaN' AS DOUBLE)", "CAST('SPREAD_OUT_OF_RANGE' AS DOUBLE)"
    return (f"CASE WHEN {defined} THEN CASE WHEN {odd} THEN {nan} WHEN NOT isfinite({spread}) THEN {beyond} ELSE "
            f"{spread} END END")


def _whole_decimal(a: Aggregate, value: str, scale: int) -> str:
    """DuckDB's own AVG of decimals is a double."""
    total = f"CAST(sum({value}) AS DECIMAL(38,{scale}))"
    if a.function == "sum":
        return f"CAST({total} AS {d.name(a.type, 'duckdb')})"
    mean = quotient(decimal(38, scale), decimal(19, 0), a.type, total, f"CAST(count({value}) AS DECIMAL(19,0))")
    return f"CASE WHEN count({value}) > 0 THEN {mean} END"


def _failures(low: Lowering, sign: str | None) -> str:
    """How many joined rows need an expression that raises: Σ e_i·Π_{j≠i} c_j, and what fails on the joined row itself.
    """
    terms = [f"v{i}.e * {_count(low, (i,), sign)}" for i in low.inputs if fallible(low, i)]
    doubts = [f"({f})" for e in _above(low) if (f := fails(e, low.dialect, leaf_name(low))) is not None]
    terms += [f"CASE WHEN {' OR '.join(doubts)} THEN {_count(low, (), sign)} ELSE CAST(0 AS BIGINT) END"
              ] if doubts else []
    return " + ".join(terms)


def residual_conditions(low: Lowering) -> str:
    text = ""
    for expr in low.shape.query.residuals:
        doubt = fails(expr, low.dialect, leaf_name(low))
        passes = f"COALESCE({safe(expr, low.dialect, leaf_name(low))}, FALSE)"
        text += f" AND (({doubt}) OR {passes})" if doubt else f" AND {passes}"
    return text
