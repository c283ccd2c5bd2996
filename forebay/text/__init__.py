"""Documents as people read them, on a terminal or through a pipe.

What they say is what --json says, and nothing is computed here.
"""
from forebay.text.answering import answers, queries, query, result
from forebay.text.cases import tested
from forebay.text.checking import expectations, facts, rebuilt, released, tracked, verified
from forebay.text.folder import applied, checked, planned
from forebay.text.layout import Text, line, table, visible
from forebay.text.planning import explained, plans, stats
from forebay.text.run_progress import progress
from forebay.text.running import adapted, age_of_decisions, ingested, next_boundary, ran
from forebay.text.standing import status

__all__ = [
    "Text", "adapted", "age_of_decisions", "answers", "applied", "checked", "expectations", "explained", "facts",
    "ingested", "line", "next_boundary", "planned", "plans", "progress", "queries", "query", "ran", "rebuilt",
    "released", "result", "stats", "status", "table", "tested", "tracked", "verified", "visible"
]
