"""The join of the inputs' sets, which every plan has (paper A), and the SQL of the aggregation of its rows.

`joined` is both as one SELECT, since the engine never writes the joined rows down: output partials by group.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from optimizer.expression import dialect as d
from optimizer.expression.decimals import quotient
from optimizer.expression.expr import Call, Column, Expr
from optimizer.expression.scalar import fails, safe
from optimizer.expression.types import BIGINT, Type, decimal
from optimizer.plan.division import divided
from optimizer.plan.lowering import Lowering, Name, counted, fallible, merged, squared, stored_type, working_type
from optimizer.plan.model import EXCHANGES
from optimizer.plan.operators.operator import Charge, Expected, InputOperator, Operator
from optimizer.plan.wording import as_written, list_as_written
from optimizer.query.aggregate import PAIRED, Aggregate
from optimizer.query.shape import Attribute, Measure, Shape
from optimizer.statistics.cardinality import Operand

ONE = "CAST(1 AS BIGINT)"
NODE = "Join"
AT = "_t"               # the boundary at which a row counts, as its column where one statement answers several


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
            right, right_width = operand.rows * shares[operand.input], expected.width(operand.input)
            built = right * right_width if right <= left else left * width
            probing = max(left, right)
            is_divided = is_divided or divided(ctx, operand.input)
            left, width = prefix[position] * (1 / ctx.parts if is_divided else 1.0), width + right_width
            is_last = position + 1 == len(operands)
            charges.append((NODE, {"build": built, "probe": probing, "between": 0 if is_last else left,
                                   "fanned": max(left - probing, 0)}))
        share = 1 / ctx.parts if is_divided else 1.0
        return JoinTerm(left, sizes.raw_join(operands) * share, tuple(charges))

    def words(self, ctx: Lowering) -> str:
        query = ctx.shape.query
        first, *others = sorted(ctx.plan.order, key=lambda i: i in query.semi)
        joined_in_order = [f" {'⋉' if i in query.semi else '⋈'} {query.inputs[i].alias}" for i in others]
        order = query.inputs[first].alias + "".join(joined_in_order)
        equalities = []
        for members in ctx.shape.keys:
            equalities.append(list_as_written(query, [attribute.expr for _, attribute in members], " = "))
        residuals = [f", where {as_written(query, residual)}" for residual in query.residuals]
        return f"Join {order} on {'; '.join(equalities)}{''.join(residuals)} ({EXCHANGES[ctx.plan.exchange]})"


def leaf_name(ctx: Lowering) -> Name:
    """Leaves above the scans are attributes of the sets v0, v1, …"""
    def name(leaf: Expr) -> str:
        attribute = _attribute_name(ctx, leaf)
        assert attribute is not None and isinstance(leaf, Column)
        return attribute
    return name


def _attribute_name(ctx: Lowering, expr: Expr) -> str | None:
    """`v0.a0_1`, the attribute that holds a value; None where no input has it."""
    of_input = ctx.shape.attribute(expr)
    return f"v{of_input[0]}.{of_input[1].name}" if of_input else None


def group_columns(shape: Shape) -> tuple[str, ...]:
    return tuple(f"g{k}" for k in range(len(shape.query.groups)))


def out_columns(ctx: Lowering) -> tuple[tuple[str, Type], ...]:
    """Output partials: groups, COUNT(*), measures, failures."""
    columns = [(f"g{k}", e.type) for k, e in enumerate(ctx.shape.query.groups)] + [("c", BIGINT)]
    columns += [(measure.name, stored_type(measure)) for measure in ctx.shape.measures]
    return tuple(columns + ([("e", BIGINT)] if failing(ctx) else []))


def out_working(ctx: Lowering) -> dict[str, str]:
    """The types in which output partials are computed."""
    kinds = {m.name: working_type(m, ctx) for m in ctx.shape.measures}
    return {name: kinds.get(name) or d.name(kind, ctx.dialect) for name, kind in out_columns(ctx)}


def merged_answer(ctx: Lowering, sql: str, where: str = "TRUE", having: str = "", extra: tuple[str, ...] = ()) -> str:
    """Output partials merged by group (and `extra` columns)."""
    keys = [*group_columns(ctx.shape), *extra]
    values = [f"{counted('c')} AS c"] + [f"{merged(m, m.name, ctx)} AS {m.name}" for m in ctx.shape.measures]
    values += [f"{counted('e')} AS e"] if failing(ctx) else []
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    having = f" HAVING {having}" if having else ""
    return f"SELECT {', '.join(keys + values)} FROM ({sql}) AS q WHERE {where}{by}{having}"


def failing(ctx: Lowering) -> bool:
    """Whether something that is computed can raise, so that partials count by `e` the rows on which it does."""
    if ctx.shape.query.blocks is not None or any(fallible(ctx, i) for i in ctx.inputs):
        return True
    return any(fails(expr, ctx.dialect, lambda _: "x") is not None for expr in on_joined_rows(ctx))


def on_joined_rows(ctx: Lowering) -> list[Expr]:
    """What is computed of a joined row, not of one input's."""
    measures = [m.expr for m in ctx.shape.measures if m.home is None and m.expr is not None]
    return [*ctx.shape.query.residuals, *measures, *(e for e in ctx.shape.query.groups if not ctx.shape.attribute(e))]


def joined(ctx: Lowering, sources: Mapping[int, str], extra: tuple[tuple[str, str], ...] = (),
           signed: int | None = None, where: str = "TRUE") -> str:
    """The join of one relation an input, aggregated by group (and `extra` columns).

    Input `signed` carries a column _s of ±1.
    """
    groups = []
    for k, expr in enumerate(ctx.shape.query.groups):
        groups.append(f"{_attribute_name(ctx, expr) or safe(expr, ctx.dialect, leaf_name(ctx))} AS g{k}")
    groups += [f"{sql} AS {name}" for name, sql in extra]
    sign = None if signed is None else f"v{signed}._s"
    values = [f"{counted(_count(ctx, (), sign))} AS c"]
    values += [f"{_measure(ctx, m, sign)} AS {m.name}" for m in ctx.shape.measures]
    values += [f"{counted(_failures(ctx, sign))} AS e"] if failing(ctx) else []
    keys = [*group_columns(ctx.shape), *(name for name, _ in extra)]
    grouped = f" GROUP BY {', '.join(map(str, range(1, len(keys) + 1)))}" if keys else " HAVING count(*) > 0"
    return (f"SELECT {', '.join(groups + values)} FROM {tables(ctx, sources)} WHERE "
            f"{where}{residual_conditions(ctx)}{grouped}")


def by_boundary(ctx: Lowering) -> Lowering:
    """For rows of several boundaries: those of streams are joined on their boundary as well."""
    same = tuple((i, Attribute(AT, Column(i, AT, BIGINT))) for i in ctx.inputs if ctx.window(i) is not None)
    return replace(ctx, shape=replace(ctx.shape, keys=(*ctx.shape.keys, same)))


def tables(ctx: Lowering, sources: Mapping[int, str]) -> str:
    """v0 JOIN v1 ON … in the plan's order.

    Each key class links a new input to the first of its members that stands already.
    """
    semi = ctx.shape.query.semi
    order = tuple(sorted(ctx.plan.order, key=lambda i: i in semi))
    word = "SEMI JOIN" if ctx.dialect == "duckdb" else "LEFT SEMI JOIN"
    text = f"{sources[order[0]]} AS v{order[0]}"
    for position, i in enumerate(order[1:], 1):
        links = " AND ".join(_links(ctx, i, order[:position])) or "TRUE"
        text += f" {word if i in semi else 'JOIN'} {sources[i]} AS v{i} ON {links}"
    return text


def _links(ctx: Lowering, i: int, before: tuple[int, ...]) -> list[str]:
    links = []
    for members in ctx.shape.keys:
        columns = [f"v{i}.{a.name}" for j, a in members if j == i]
        earlier = next((f"v{j}.{a.name}" for k in before for j, a in members if j == k), None)
        if earlier is None and columns:
            earlier, *columns = columns
        links += [f"{earlier} = {column}" for column in columns]
    return links


def _count(ctx: Lowering, but: tuple[int, ...], sign: str | None) -> str:
    """Π c_j over the other inputs: coalescing, paper A Def. 5."""
    counted_once = (*but, *ctx.shape.query.semi)
    factors = [f"v{j}.c" for j in ctx.inputs if ctx.early(j) and j not in counted_once] + ([sign] if sign else [])
    return " * ".join(factors) or ONE


def _measure(ctx: Lowering, m: Measure, sign: str | None) -> str:
    if m.kind == "whole":
        return _whole(ctx, m)
    if m.home is None:
        return _across(ctx, m, sign)
    if m.kind == "count" and ctx.never_null(m.home, m.expr):
        return counted(_count(ctx, (), sign))      # the same text as COUNT(*): the engine counts once
    value = f"v{m.home}.{m.name}"
    count = _count(ctx, (m.home,), sign)
    if m.kind in ("min", "max") or count == ONE:
        return merged(m, value, ctx)
    kind = squared(m.type) if m.kind == "square" else BIGINT if m.kind == "count" else m.type
    return merged(m, d.times(value, kind, count, ctx.dialect), ctx)


def _across(ctx: Lowering, m: Measure, sign: str | None) -> str:
    """A measure of an expression over several inputs: evaluated on the joined row, weighted by all counts."""
    assert m.expr is not None
    value, count = safe(m.expr, ctx.dialect, leaf_name(ctx)), _count(ctx, (), sign)
    if m.kind in ("min", "max"):
        return merged(m, value, ctx)
    if m.kind == "count":
        return merged(m, f"CASE WHEN {value} IS NULL THEN CAST(0 AS BIGINT) ELSE {count} END", ctx)
    value = f"CAST({value} AS {working_type(m, ctx)})"
    if m.kind == "square":
        return merged(m, d.times(f"{value} * {value}", squared(m.type), count, ctx.dialect), ctx)
    return merged(m, d.times(value, m.type, count, ctx.dialect), ctx)


def _whole(ctx: Lowering, m: Measure) -> str:
    """An aggregate that nothing merges, over the joined rows themselves (all counts are 1)."""
    a = m.aggregate
    assert a is not None
    return whole_value(a, lambda e: safe(e, ctx.dialect, leaf_name(ctx)), ctx.dialect)


def whole_value(a: Aggregate, write: Callable[[Expr], str], dialect: str) -> str:
    """An aggregate of rows as they are; `write` gives the SQL of what is asked of each."""
    if a.function in PAIRED + ("listagg",) and isinstance(a.argument, Call):
        first, second = map(write, a.argument.args)
        return _of_pairs(a.function, first, second, dialect) if a.function in PAIRED else _listed(
            first, second, dialect)
    value = "*" if a.argument is None else write(a.argument)
    if a.function == "count_distinct":
        return f"count(DISTINCT {value})"
    if a.function in ("median", "percentile"):
        share = 0.5 if a.function == "median" else a.parameter
        percentile = "quantile_cont" if dialect == "duckdb" else "percentile"
        return f"{percentile}(CAST({value} AS DOUBLE), {share})"
    if a.function == "percentile_disc":
        return _nearest_rank(a, value, dialect)
    if a.function in ("sum", "avg") and a.type.name == "decimal" and dialect == "duckdb" and a.argument is not None:
        return _whole_decimal(a, value, a.argument.type.scale)
    is_spread = a.function.startswith(("stddev", "var"))
    if is_spread and dialect == "duckdb" and a.argument is not None and a.argument.type.floating:
        return _whole_spread(a, value)
    return f"CAST({a.function}({value}) AS {d.name(a.type, dialect)})"


def _listed(text: str, separator: str, dialect: str) -> str:
    """Strings one after another, in their own order."""
    if dialect == "spark":
        return f"listagg({text}, {separator}) WITHIN GROUP (ORDER BY {text})"
    return f"string_agg({text}, {separator} ORDER BY {text})"


def _nearest_rank(a: Aggregate, value: str, dialect: str) -> str:
    """The value of rank ⌈p · n⌉ of n."""
    count, kind = f"CAST(count({value}) AS DOUBLE)", d.name(a.type, dialect)
    if dialect == "spark":
        rank = f"CAST(greatest(1, ceil({count} * {a.parameter}D)) AS INT)"
        return f"CAST(try_element_at(sort_array(collect_list({value})), {rank}) AS {kind})"
    rank = f"greatest(1, CAST(ceil({count} * CAST({a.parameter} AS DOUBLE)) AS BIGINT))"
    return f"CAST((list_sort(list({value}) FILTER (WHERE ({value}) IS NOT NULL)))[{rank}] AS {kind})"


def _of_pairs(function: str, y: str, x: str, dialect: str) -> str:
    """Infinities and NaN give no number; where squares have no room in doubles Spark gives one thing or another.

    CORR divides by the spread of both, which fails where one is 0, as in Spark.
    """
    if dialect == "spark":
        return f"{function}({y}, {x})"
    least = 2 if function in ("corr", "covar_samp") else 1
    odd = f"count(CASE WHEN NOT isfinite({y}) OR NOT isfinite({x}) THEN ({y}) + ({x}) END) > 0"
    value, flat = f"{function}({y}, {x})", f"regr_sxx({y}, {x}) = 0"
    special = {"corr": f"WHEN {flat} OR regr_syy({y}, {x}) = 0 THEN CAST('DIVIDE_BY_ZERO' AS DOUBLE) ",
               "regr_slope": f"WHEN {flat} THEN NULL ",
               "regr_intercept": f"WHEN NOT isfinite(regr_sxx({y}, {x})) THEN CAST('SPREAD_OUT_OF_RANGE' AS DOUBLE) "
               }.get(function, "")
    return (f"CASE WHEN count(({y}) + ({x})) < {least} THEN NULL WHEN {odd} THEN CAST('NaN' AS DOUBLE) {special}"
            f"WHEN NOT isfinite({value}) THEN CAST('SPREAD_OUT_OF_RANGE' AS DOUBLE) ELSE {value} END")


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


def _failures(ctx: Lowering, sign: str | None) -> str:
    """How many joined rows need an expression that raises: Σ e_i·Π_{j≠i} c_j, and what fails on the joined row itself.
    """
    terms = [f"v{i}.e * {_count(ctx, (i,), sign)}" for i in ctx.inputs if fallible(ctx, i)]
    failures = [fails(expr, ctx.dialect, leaf_name(ctx)) for expr in on_joined_rows(ctx)]
    doubts = [f"({condition})" for condition in failures if condition is not None]
    if doubts:
        terms.append(f"CASE WHEN {' OR '.join(doubts)} THEN {_count(ctx, (), sign)} ELSE CAST(0 AS BIGINT) END")
    return " + ".join(terms)


def residual_conditions(ctx: Lowering) -> str:
    text = ""
    for expr in ctx.shape.query.residuals:
        doubt = fails(expr, ctx.dialect, leaf_name(ctx))
        passes = f"COALESCE({safe(expr, ctx.dialect, leaf_name(ctx))}, FALSE)"
        text += f" AND (({doubt}) OR {passes})" if doubt else f" AND {passes}"
    return text
