"""What MLflow's runs and experiments say of themselves, in Markdown: which plan is in force, why, what it was predicted
to cost and what was measured.

Words for what it is given; decides and prices nothing.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobs.ledger.queries import QueryState
from jobs.results.candidates import CandidateRow
from jobs.results.history import Span
from optimizer.time import iso

SHOWN = 8                 # candidates and switches of a description; artifacts have all
STARTS = "A process's first batch also starts Spark, whatever the plan."


def of_experiment(name: str) -> str:
    return f"""What queries of **{name}** were predicted to cost, and what was measured: \
a run for each query, below it one for each plan that was in force.

- *Runs*, as a chart: `prices` is a picture of each query: measured and predicted seconds, all candidates' prices, each
  switch of plans. `seconds` has measured and predicted seconds a boundary side by side, `work` the rows behind them.
  A step is a batch.
- The menu *Views* has *Predicted and measured*: both in one chart, and a list of runs with both as columns.
- A run's overview says which plan is in force and why; its artifact `candidates.json` has every plan with its price.
- To compare plans, open a query by its plus sign, tick two runs, press *Compare*.

All of it is a copy of the pipeline's ledger, written by `forebay track` and by the DAG `forebay__{name}__adapt`.
"""


def of_query(query_state: QueryState, spans: Sequence[Span], regret: float, run: str) -> str:
    """The picture is asked of the server that shows the text; elsewhere its title stands there."""
    now = spans[-1]
    state = "" if query_state.is_active else f" The query is {query_state.status}."
    parts = [
        f"**{now.plan.name}** answers `{query_state.name}` since {iso(now.first.boundary)}.{state} {_seconds(now)}",
        f"Why: {now.reason}.",
        f"Regret so far: {_s(regret)} (measured less the cheapest plan's price). {STARTS}",
        f"![Seconds a boundary over time](get-artifact?path=cost.png&run_uuid={run})",
        "### Plans so far\n\n" + _switches(spans),
        f"### The query\n\n```sql\n{query_state.sql.strip()}\n```"
    ]
    return "\n\n".join(parts) + "\n"


def of_plan(query: str, span: Span, following: Span | None, rows: Sequence[CandidateRow]) -> str:
    """A plan in force: from when to when, at what cost, and beside which others."""
    until = f"to {iso(span.last.last)}" if following else f"on, so far to {iso(span.last.last)}"
    parts = [
        f"**{span.plan.name}** answers `{query}` from {iso(span.first.boundary)} {until}. {_seconds(span)}",
        f"Why: {span.reason}.",
        STARTS,
    ]
    if span.switched_from:
        before = next((row for row in rows if row.plan == span.switched_from), None)
        measured, predicted = (before.measured_s, before.predicted_s) if before else (None, None)
        parts.append(f"Before it: {span.switched_from}, measured to take {_s(measured)} a boundary, and predicted to "
                     f"take {_s(predicted)} from here on.")
    if following:
        parts.append(f"After it: {following.plan.name}, since {iso(following.first.boundary)}: {following.reason}.")
    parts.append(f"### Candidates when it was decided\n\n{_candidates(rows)}")
    return "\n\n".join(parts) + "\n"


def _seconds(span: Span) -> str:
    """Pages show three lines of a description before somebody asks for more."""
    predicted, best = span.median("predicted_s"), span.median("best_s")
    cheapest = f" (the cheapest plan: {_s(best)})" if best is not None and best != predicted else ""
    return (f"A boundary is predicted to take **{_s(predicted)}**{cheapest}, and was measured to take "
            f"**{_s(span.median('measured_s'))}**, the median of {_count(span)}.")


def _count(span: Span) -> str:
    return f"{span.boundaries} {'boundary' if span.boundaries == 1 else 'boundaries'}"


def _switches(spans: Sequence[Span]) -> str:
    """The newest first."""
    rows = [(iso(span.first.boundary), span.plan.name, str(span.boundaries), _s(span.median("predicted_s")),
             _s(span.median("measured_s")), span.reason) for span in reversed(spans)]
    more = f"\n\n{len(rows) - SHOWN} before them: `switches.json`." if len(rows) > SHOWN else ""
    return _table(("since", "plan", "boundaries", "predicted", "measured", "why"), rows[:SHOWN]) + more


def _candidates(rows: Sequence[CandidateRow]) -> str:
    """The cheapest, and the chosen one wherever it stands."""
    sound, refused = [row for row in rows if not row.refused], [row for row in rows if row.refused]
    shown = [row for number, row in enumerate(sound) if number < SHOWN or row.chosen]
    table = _table(("plan", "predicted", "measured", "rows of state"),
                   [(f"**{row.plan}**, chosen" if row.chosen else row.plan, _s(row.predicted_s), _s(row.measured_s),
                     "–" if row.state_rows is None else f"{row.state_rows:,.0f}") for row in shown])
    lines = [table, f"{len(sound)} plans can hold the query, {len(refused)} cannot: `candidates.json` has them all."]
    lines += [f"Refused, for example: {row.plan}: {row.refused}." for row in refused[:1]]
    return "\n\n".join(lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _s(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.3g} s"
