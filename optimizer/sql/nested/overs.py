"""Window functions, function(…) OVER (PARTITION BY … ORDER BY … ROWS …): what they take, give, and of which rows.

They see rows of an answer beside each other; windows of time stand after a stream.
"""
from __future__ import annotations

from sqlglot import exp

from optimizer.errors import ForebayError
from optimizer.expression.arguments import choose
from optimizer.expression.coercion import number
from optimizer.expression.expr import Expr, Literal, OverRef
from optimizer.expression.types import BIGINT, DOUBLE, INT, Type
from optimizer.query.aggregate import Aggregate
from optimizer.query.blocks import Ordering, Over
from optimizer.sql.aggregates import AGGREGATES, aggregate
from optimizer.sql.expressions import Scope, convert
from optimizer.sql.tree import extras

# What says where a row stands among the others: (least, most arguments).
PLACES: dict[str, tuple[int, int]] = {"ROW_NUMBER": (0, 0), "RANK": (0, 0), "DENSE_RANK": (0, 0), "NTILE": (1, 1),
                                      "PERCENT_RANK": (0, 0), "CUME_DIST": (0, 0)}
OFFSETS = {"LAG": (1, 3), "LEAD": (1, 3)}
VALUES = {"FIRST_VALUE": (1, 1), "LAST_VALUE": (1, 1), "NTH_VALUE": (2, 2)}
# Which argument is a count of rows, and the least that it can be.
COUNTS = {"NTILE": (0, 1), "NTH_VALUE": (1, 1), "LAG": (1, 0), "LEAD": (1, 0)}
OVER_AGGREGATES = ("count", "sum", "avg", "min", "max")
# To these, rows that are equal in ORDER BY are one place.
PEERS = ("rank", "dense_rank", "percent_rank", "cume_dist")


def read(node: exp.Expr, scope: Scope, overs: list[Over]) -> OverRef:
    """The call by its number among the SELECT's: that of the same one before it, or the next."""
    over = _over(node, scope)
    if over not in overs:
        overs.append(over)
    return OverRef(overs.index(over), over.type)


def breaks_ties(over: Over) -> bool:
    """Whether rows that are equal in ORDER BY have to be told apart: their order would change what is seen."""
    if over.aggregate is not None:
        return over.frame.startswith("ROWS")
    return over.function not in PEERS


def _over(node: exp.Expr, scope: Scope) -> Over:
    if more := extras(node, ("this", "partition_by", "order", "spec", "over")):
        raise ForebayError("not-supported", f"OVER with {', '.join(more).upper()} is not accepted",
                           hint="write OVER (PARTITION BY … ORDER BY …)")
    call = node.this
    if not isinstance(call, exp.Anonymous):
        raise ForebayError("not-supported", "OVER stands after a function", hint="FILTER is not accepted there")
    partition = tuple(convert(each, scope) for each in node.args.get("partition_by") or [])
    order = tuple(_ordering(each, scope) for each in _entries(node.args.get("order")))
    frame = _frame(node.args.get("spec"), bool(order))
    name = call.name.upper()
    if name in AGGREGATES:
        return _aggregate(call, scope, partition, order, frame)
    if name not in {**PLACES, **OFFSETS, **VALUES}:
        raise ForebayError("unknown-function", f"{call.name} is not accepted with OVER",
                           hint=f"known are {', '.join((*PLACES, *OFFSETS, *VALUES))}, and COUNT, SUM, AVG, MIN, MAX")
    least, most = {**PLACES, **OFFSETS, **VALUES}[name]
    if not least <= len(call.expressions) <= most:
        raise ForebayError("wrong-arguments", f"{name} takes {least} to {most} arguments, not {len(call.expressions)}")
    if name not in VALUES and not order:
        raise ForebayError("no-order", f"{name} needs an ORDER BY in OVER", hint="its answer depends on the order")
    if name not in VALUES and frame:
        raise ForebayError("not-supported", f"{name} takes no frame (ROWS, RANGE)", hint="leave it out")
    args = tuple(convert(each, scope) for each in call.expressions)
    return Over(name.lower(), _arguments(name, args), partition, order, frame, _type(name, args))


def _arguments(name: str, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """LAG's value and default of one type; a count of rows is a constant."""
    place, least = COUNTS.get(name, (len(args), 0))
    if len(args) > place:
        count = args[place]
        if not isinstance(count, Literal) or not isinstance(count.value, int) or count.value < least:
            raise ForebayError("wrong-arguments", f"{name} takes a constant count of rows, {least} or more",
                               hint="for instance LAG(x, 1), NTILE(4), NTH_VALUE(x, 2)")
    if len(args) < 3:
        return args
    value, default = choose((args[0], args[2]))
    if value.type != args[0].type:
        raise ForebayError("type-mismatch", f"the default of {name} is {args[2].type}, its value {args[0].type}",
                           hint="cast one of them")
    return value, args[1], default


def _type(name: str, args: tuple[Expr, ...]) -> Type:
    if name in PLACES:
        return DOUBLE if name in ("PERCENT_RANK", "CUME_DIST") else INT
    return args[0].type


def _aggregate(call: exp.Anonymous, scope: Scope, partition: tuple[Expr, ...], order: tuple[Ordering, ...],
               frame: str) -> Over:
    numbers: dict[Aggregate, int] = {}
    reference = aggregate(call, None, lambda argument: convert(argument, scope), numbers)
    only = next(iter(numbers))
    if only.function not in OVER_AGGREGATES:
        raise ForebayError("not-supported", f"{call.name.upper()} is not accepted with OVER",
                           hint="COUNT, SUM, AVG, MIN and MAX are")
    return Over(only.function, (), partition, order, frame, BIGINT if only.function == "count" else reference.type,
                only)


def _entries(clause: exp.Expr | None) -> list[exp.Expr]:
    return list(clause.expressions) if clause is not None else []


def _ordering(node: exp.Expr, scope: Scope) -> Ordering:
    expr = convert(node.this, scope)
    if isinstance(expr, Literal):
        raise ForebayError("wrong-order", "ORDER BY in OVER takes expressions of columns, not constants",
                           hint="leave it out, or name a column")
    return Ordering(expr, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def _frame(spec: exp.Expr | None, ordered: bool) -> str:
    """ROWS BETWEEN 2 PRECEDING AND CURRENT ROW; RANGE only with the ends of the partition and the current row."""
    if spec is None:
        return ""
    kind = str(spec.args.get("kind") or "").upper()
    if extras(spec, ("kind", "start", "start_side", "end", "end_side")) or kind not in ("ROWS", "RANGE"):
        raise ForebayError("not-supported", f"a frame of {kind or 'this kind'} is not accepted",
                           hint="write ROWS BETWEEN … AND …")
    start = _bound(spec.args.get("start"), spec.args.get("start_side"), kind)
    end = _bound(spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"), kind)
    if not ordered and kind == "RANGE" and (start, end) != ("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING"):
        raise ForebayError("no-order", "a RANGE frame needs an ORDER BY in OVER")
    return f"{kind} BETWEEN {start} AND {end}"


def _bound(value: exp.Expr | str | None, side: str | None, kind: str) -> str:
    if isinstance(value, str):
        return "CURRENT ROW" if value == "CURRENT ROW" else f"{value} {side}"
    count = number(str(value.this)).value if isinstance(value, exp.Literal) and value.is_int else None
    if kind == "ROWS" and isinstance(count, int) and count >= 0 and side in ("PRECEDING", "FOLLOWING"):
        return f"{count} {side}"
    raise ForebayError("not-supported", "this end of a frame is not accepted",
                       hint="UNBOUNDED PRECEDING, CURRENT ROW, UNBOUNDED FOLLOWING, and in ROWS a constant count")
