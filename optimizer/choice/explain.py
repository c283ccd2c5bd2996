"""A plan as people read it: a tree with a line a node, its statements, and the document of `forebay explain`.

It decides and prices nothing.
"""
from __future__ import annotations

from collections.abc import Mapping

from optimizer.choice.decide import Decision, Priced
from optimizer.choice.explain_windows import described, graphs
from optimizer.plan.final import published
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import KEEPING, PLAIN, Plan
from optimizer.plan.program import BEGINNING
from optimizer.plan.tree import program, state_sets, tree_in_words
from optimizer.plan.wording import list_as_written
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.query.windows import SECOND
from optimizer.sql.pretty import pretty

LEAST = 0.0005             # seconds: what is less is not told in figures
HOW = {
    "recompute": "reads its windows anew at each boundary",
    "running": "keeps totals of each group and brings them up to date",
    "expire": "keeps what each boundary added to the answer until it leaves the window",
    "retract": "keeps the answer, adds what came and subtracts what left",
}
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
    texts += [] if query.returns_rows else [published(ctx, (at,))]
    return [pretty(text, ctx.dialect) for text in texts]


def document(query: Query, decision: Decision, statistics: Mapping[str, object]) -> dict[str, object]:
    """The keys of `explain --json`: every candidate with its prices, the plan in force or to be taken, and why."""
    chosen = decision.plan
    return {
        "chosen": chosen.name,
        "summary": summary(query, decision),
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


def summary(query: Query, decision: Decision) -> str:
    """`sums purchases by b.user before the join; reads its windows anew at each boundary; 21 ms (10%) less than LAP
    recompute, which does neither`.
    """
    chosen = _priced(decision, decision.plan.name)
    return f"{in_words(query, decision.plan)}{_beside(query, decision, chosen) if chosen is not None else ''}"


def in_words(query: Query, plan: Plan) -> str:
    """What a plan does, in a few words."""
    query_shape, several = shape(query), len(query.inputs) > 1
    early = []
    for i, is_early in enumerate(plan.digits):
        if is_early and query.inputs[i].window is not None:
            by = list_as_written(query, [attribute.expr for attribute in query_shape.attributes[i]])
            early.append(f"{query.inputs[i].source}{f' by {by}' if by else ''}")
    before_join = " before the join" if several else ""
    rows = "joins rows" if several else "aggregates rows"
    sums = f"sums {' and '.join(early)}{before_join}" if early else rows
    return f"{sums}; {HOW[plan.keeping]}"


def _beside(query: Query, decision: Decision, chosen: Priced) -> str:
    """What it saves beside joining rows anew; of that plan itself, what the next best would take more."""
    others = sorted((c for c in decision.candidates if c.refused is None and c.plan.name != chosen.plan.name),
                    key=lambda candidate: candidate.seconds)
    plain = _priced(decision, PLAIN)
    if chosen.plan.name == PLAIN or plain is None or plain.refused is not None:
        if not others:
            return ""
        more = others[0].seconds - chosen.seconds
        return f"; the next best, {others[0].plan.name}, would take {_difference(more, chosen.seconds)} more"
    return f"; {_difference(plain.seconds - chosen.seconds, plain.seconds)} less than {PLAIN}, which does neither"


def _difference(seconds: float, of: float) -> str:
    if abs(seconds) < LEAST:
        return "less than a millisecond"
    amount = f"{seconds * 1000:,.0f} ms" if abs(seconds) < 1 else f"{seconds:.2f} s"
    return amount + (f" ({seconds / of:.0%})" if of > 0 else "")


def _priced(decision: Decision, name: str) -> Priced | None:
    return next((candidate for candidate in decision.candidates if candidate.plan.name == name), None)


def why(query: Query, decision: Decision) -> str:
    """The decision's reason, or why there was nothing to decide."""
    if query.returns_rows:
        return "joined rows are published as they are: nothing can be aggregated early"
    if query.blocks is not None:
        return "it is more than one SELECT of joined and grouped rows: computed from the windows' rows each time"
    if shape(query).whole:
        return "an aggregate of the query has no partial states: it is computed from the joined rows each time"
    return f"{decision.reason}; {decision.plan.keeping} is {KEEPING[decision.plan.keeping]}"
