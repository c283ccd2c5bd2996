"""A plan as people read it: a tree with a line a node, its statements, and the document of `forebay explain`.

It decides and prices nothing.
"""
from __future__ import annotations

from collections.abc import Mapping

from optimizer.choice.decide import Decision, Priced
from optimizer.choice.explain_windows import described, graphs
from optimizer.plan.final import final
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import KEEPING, Plan
from optimizer.plan.program import BEGINNING
from optimizer.plan.tree import program, state_sets, tree_in_words
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.query.windows import SECOND
from optimizer.sql.pretty import pretty

EXAMPLE = 1_700_000_000 * SECOND


def tree(query: Query, plan: Plan) -> str:
    """The plan from the answer down to the scans."""
    several = ["", graphs(query, plan)] if query.windows else []
    return "\n".join([plan.name, *tree_in_words(Lowering(shape(query), plan)), *several])


def sql(query: Query, plan: Plan, boundary: int = EXAMPLE) -> list[str]:
    """What one task runs at a boundary, after the one before it where state is kept, and what makes rows of the
    partials.
    """
    ctx = Lowering(shape(query), plan)
    at = boundary // query.every * query.every
    statements = program(ctx, (at,), at - query.every if state_sets(ctx) else BEGINNING)
    definitions = [*statements.setup, *(definition for step in statements.steps for definition in step.define)]
    texts = [f"CREATE TEMP {'TABLE' if relation.is_table else 'VIEW'} {relation.name} AS {relation.sql}"
             for relation in definitions]
    texts += [step.answer for step in statements.steps] + [write.sql for write in statements.writes]
    texts += [] if query.returns_rows else [final(ctx)]
    return [pretty(text, ctx.dialect) for text in texts]


def document(query: Query, decision: Decision, statistics: Mapping[str, object]) -> dict[str, object]:
    """The keys of `explain --json`: every candidate with its prices, the plan in force or to be taken, and why."""
    chosen = decision.plan
    return {
        "chosen": chosen.name,
        "why": why(query, decision),
        "statistics": dict(statistics),
        "tree": tree(query, chosen),
        "sql": sql(query, chosen),
        "candidates": [_candidate(query, c) for c in decision.candidates]
    }


def _candidate(query: Query, c: Priced) -> dict[str, object]:
    allowed, plan = c.refused is None, c.plan
    document: dict[str, object] = {
        "plan": plan.name,
        "predicted_s": c.seconds if allowed else None,
        "deviation_s": c.deviation if allowed else None,
        "paper_cost": c.paper if allowed else None,
        "state_rows": c.state_rows if allowed else None,
        "building_s": c.building if allowed else None,
        "refused": c.refused,
        "order": [query.inputs[i].alias for i in plan.order],
        "exchange": plan.exchange,
        "layout": plan.layout,
        "invalidation": plan.invalidation,
        "parts": plan.parts,
        "place": plan.place,
    }
    if query.windows:
        document |= {"sharing": plan.sharing, "levels": [described(level) for level in plan.kept_windows]}
    return document


def why(query: Query, decision: Decision) -> str:
    """The decision's reason, or why there was nothing to decide."""
    if query.returns_rows:
        return "joined rows are published as they are: nothing can be aggregated early"
    if shape(query).whole:
        return "an aggregate of the query has no partial states: it is computed from the joined rows each time"
    return f"{decision.reason}; {decision.plan.keeping} is {KEEPING[decision.plan.keeping]}"
