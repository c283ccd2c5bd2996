"""A plan as people read it: a tree with a line a node, its statements, and the document of `forebay explain`; it decides and prices nothing."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from optimizer.choice.decide import Decision, Priced
from optimizer.choice.explain_windows import graphs
from optimizer.expression.expr import AggregateRef, Column, Expr, GroupRef
from optimizer.expression.scalar import render
from optimizer.plan.division import divided
from optimizer.plan.final import final
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import EXCHANGES, KEEPING, Plan
from optimizer.plan.operators.state import state_sets
from optimizer.plan.operators.steps import program
from optimizer.plan.program import BEGINNING
from optimizer.query.model import WINDOW_NAME, Aggregate, Query
from optimizer.query.shape import shape
from optimizer.query.spans import span
from optimizer.query.windows import SECOND, Window
from optimizer.sql.pretty import pretty

FORMULAS = {
    "recompute": "A(t) = γ( S₁(t) ⋈ … ⋈ Sₘ(t) )",
    "running": "ASᵢ(t) = ASᵢ(t′) + came − left; A(t) = γ( AS₁(t) ⋈ … ⋈ ASₘ(t) )",
    "retract": "A(t) = A(t′) + Σᵢ γ( S₍<i₎(t) ⋈ Δᵢ ⋈ S₍>i₎(t′) ), Δ = came − left",
    "expire": "A(t) = γ{ partials with e ≥ t }, each made once by the member that comes last, e = minᵢ outᵢ",
}
EXAMPLE = 1_700_000_000 * SECOND


@dataclass(frozen=True)
class Node:
    text: str
    children: tuple[Node, ...] = ()


def tree(query: Query, plan: Plan) -> str:
    """The plan from the answer down to the scans."""
    low = Lowering(shape(query), plan)
    inputs = tuple(_input(low, i) for i in plan.order)
    joined = inputs if len(inputs) == 1 else (Node(_join(low), inputs),)
    below = joined if query.returns_rows else (Node(_late(low), joined),)
    several = ["", graphs(query, plan)] if query.windows else []
    return "\n".join([plan.name, *_lines(Node(_answer(low), below), "", ""), *several])


def sql(query: Query, plan: Plan, boundary: int = EXAMPLE) -> list[str]:
    """What one task runs at a boundary, after the one before it where state is kept, and the statement that makes rows of the partials."""
    low = Lowering(shape(query), plan)
    at = boundary // query.every * query.every
    made = program(low, (at,), at - query.every if state_sets(low) else BEGINNING)
    found = [f"CREATE TEMP {'TABLE' if kept else 'VIEW'} {name} AS {text}" for name, text, kept in (*made.setup, *(x for s in made.steps for x in s.define))]
    found += [s.answer for s in made.steps] + [w.sql for w in made.writes] + ([] if query.returns_rows else [final(low)])
    return [pretty(text, low.dialect) for text in found]


def document(query: Query, decision: Decision, statistics: Mapping[str, object]) -> dict[str, object]:
    """The keys of `explain --json`: every candidate with its prices, the plan in force or to be taken, and why."""
    chosen = decision.plan
    return {"chosen": chosen.name, "why": why(query, decision), "statistics": dict(statistics), "tree": tree(query, chosen), "sql": sql(query, chosen),
            "candidates": [_candidate(query, c) for c in decision.candidates]}


def _candidate(query: Query, c: Priced) -> dict[str, object]:
    sound = c.refused is None
    return {"plan": c.plan.name, "predicted_s": c.seconds if sound else None, "deviation_s": c.deviation if sound else None,
            "paper_cost": c.paper if sound else None, "state_rows": c.state_rows if sound else None, "building_s": c.building if sound else None,
            "refused": c.refused, "order": _order(query, c.plan), "exchange": c.plan.exchange, "layout": c.plan.layout,
            "invalidation": c.plan.invalidation, "parts": c.plan.parts, "place": c.plan.place,
            **({"sharing": c.plan.sharing, "levels": [span(f) for f in c.plan.levels]} if query.windows else {})}


def why(query: Query, decision: Decision) -> str:
    """The decision's reason, or why there was nothing to decide."""
    if query.returns_rows:
        return "joined rows are published as they are: nothing can be aggregated early"
    if shape(query).whole:
        return "an aggregate of the query has no partial states: it is computed from the joined rows each time"
    return f"{decision.reason}; {decision.plan.keeping} is {KEEPING[decision.plan.keeping]}"


def _lines(node: Node, first: str, rest: str) -> list[str]:
    found = [first + node.text]
    for n, child in enumerate(node.children):
        last = n == len(node.children) - 1
        found += _lines(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
    return found


def _words(query: Query) -> Callable[[Expr], str]:
    """Expressions as a user would write them."""
    def leaf(expr: Expr) -> str:
        if isinstance(expr, Column):
            return f"{query.inputs[expr.input].alias}.{expr.name}"
        if isinstance(expr, GroupRef):
            return words(query.groups[expr.index])
        assert isinstance(expr, AggregateRef)
        return _aggregate(query.aggregates[expr.index], words)

    def words(expr: Expr) -> str:
        if expr == WINDOW_NAME:
            return "System.Window().Id"
        return render(expr, "spark", leaf)
    return words


def _aggregate(a: Aggregate, words: Callable[[Expr], str]) -> str:
    if a.function == "count_distinct" and a.argument is not None:
        return f"COUNT(DISTINCT {words(a.argument)})"
    more = f", {a.parameter}" if a.parameter is not None else ""
    return f"{a.function.upper()}({'*' if a.argument is None else words(a.argument)}{more})"


def _answer(low: Lowering) -> str:
    query, words = low.shape.query, _words(low.shape.query)
    kept = [s.name for s in state_sets(low) if s.input is None]
    having = f", having {words(query.having)}" if query.having is not None else ""
    formula = "each joined combination once" if query.returns_rows else FORMULAS[low.plan.keeping]
    return f"Answer ({', '.join(n for n, _ in query.outputs)}) every {span(query.every)}{having}: {formula}{_kept(kept)}"


def _kept(names: list[str]) -> str:
    return f" [keeps {', '.join(names)}]" if names else ""


def _late(low: Lowering) -> str:
    query, words = low.shape.query, _words(low.shape.query)
    by = f" by {', '.join(map(words, query.groups))}" if query.groups else ""
    early = [query.inputs[i].alias for i in low.inputs if low.early(i)]
    coalesced = f"; counts and sums × COUNT(*) of {', '.join(early)} where they are another's (coalescing)" if early and len(low.inputs) > 1 else ""
    return f"Late aggregation{by}: {', '.join(_aggregate(a, words) for a in query.aggregates) or 'groups only'}{coalesced}"


def _join(low: Lowering) -> str:
    query, words = low.shape.query, _words(low.shape.query)
    keys = [" = ".join(words(a.expr) for _, a in members) for members in low.shape.keys]
    rest = [f", where {words(r)}" for r in query.residuals]
    return f"Join {' ⋈ '.join(_order(query, low.plan))} on {'; '.join(keys)}{''.join(rest)} ({EXCHANGES[low.plan.exchange]})"


def _order(query: Query, plan: Plan) -> list[str]:
    return [query.inputs[i].alias for i in plan.order]


def _input(low: Lowering, i: int) -> Node:
    scan = Node(_scan(low, i))
    if not low.early(i):
        return scan
    words = _words(low.shape.query)
    by = ", ".join(words(a.expr) for a in low.shape.attributes[i]) or "nothing"
    measures = ["COUNT(*)", *(f"{m.kind}({words(m.expr)})" for m in low.shape.own(i) if m.expr is not None)]
    kept = [s.name for s in state_sets(low) if s.input == i]
    return Node(f"AS {low.shape.query.inputs[i].alias} = γ by {by}: {', '.join(measures)}{_kept(kept)}", (scan,))


def _scan(low: Lowering, i: int) -> str:
    declared, words = low.shape.query.inputs[i], _words(low.shape.query)
    chosen = f", where {' and '.join(map(words, low.shape.selections[i]))}" if low.shape.selections[i] else ""
    share = " (divided)" if divided(low, i) else ""
    window = f", {_window(declared.window)}" if declared.window else ", a relation's version at t"
    return f"Scan {declared.source} as {declared.alias}{window}{chosen}{share}"


def _window(window: Window) -> str:
    if window.kind == "sliding":
        return f"t − {span(window.range)} ≤ ts < t"
    if window.kind == "tumbling":
        return f"from the last multiple of {span(window.range)} before t, up to t"
    if window.kind == "hopping":
        return f"u − {span(window.range)} ≤ ts < u, u the last multiple of {span(window.slide)} not after t"
    return "ts < t"
