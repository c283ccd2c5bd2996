"""What a run says of itself: the plan, why, predicted and measured, switches, candidates."""
from __future__ import annotations

from jobs.ledger.queries import QueryState
from jobs.reports.tracking_text import of_experiment, of_plan, of_query
from jobs.results.candidates import compared
from tests.jobs.spans import NAME, span, switched
from tests.optimizer.planning import QUERIES

STATE = QueryState(NAME, "active", None, QUERIES[NAME], "results/extremes", "[]")


def test_a_query_s_run_says_which_plan_is_in_force_and_why() -> None:
    text = of_query(STATE, switched(), 0.5, "r1")
    assert text.startswith("**EAP01 recompute** answers `extremes` since 1970-01-01T00:00:50Z. A boundary")
    assert "Why: EAP01 recompute is the cheapest." in text and "Regret so far: 0.5 s" in text
    assert "predicted to take **0.3 s**, and was measured to take **0.31 s**, the median of 2 boundaries." in text
    newest, older = text.index("| EAP01 recompute | 2 |"), text.index("| LAP recompute | 4 |")
    assert newest < older and QUERIES[NAME] in text and "run_uuid=r1" in text


def test_many_switches_are_cut_short_and_said_to_be() -> None:
    spans = [span(("LAP recompute", "EAP01 recompute")[n % 2], {n: 0.2}) for n in range(1, 13)]
    text = of_query(STATE, spans, 0.0, "r1")
    assert "4 before them: `switches.json`" in text and text.count("is the cheapest |") == 8


def test_a_plan_s_run_says_what_came_before_and_after_and_what_it_was_chosen_from() -> None:
    early, late = spans = switched()
    text = of_plan(NAME, early, late, compared(early, early.price_lists[0], spans))
    assert text.startswith("**LAP recompute** answers `extremes` from 1970-01-01T00:00:10Z to 1970-01-01T00:00:40Z. ")
    assert "After it: EAP01 recompute, since 1970-01-01T00:00:50Z" in text
    assert "| **LAP recompute**, chosen | 0.2 s | 0.6 s | 10 |" in text
    assert "11 plans can hold the query, 4 cannot" in text and "Refused, for example: EAP01 retract: " in text
    text = of_plan(NAME, late, None, compared(late, late.price_lists[0], spans))
    assert "on, so far to 1970-01-01T00:01:00Z" in text
    assert "Before it: LAP recompute, measured to take 0.6 s a boundary, and predicted to take 1.2 s from" in text


def test_the_experiment_says_how_to_read_it() -> None:
    text = of_experiment("shop")
    assert "**shop**" in text and "`forebay__shop__adapt`" in text and "candidates.json" in text
