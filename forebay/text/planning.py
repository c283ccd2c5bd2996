"""Plans, decisions and statistics, as people read them."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from forebay.text.layout import Text, line, table, visible

FIGURES = {"predicted_s": "predicted s", "deviation_s": "± s", "paper_cost": "paper's cost", "state_rows": "state rows"}
LEGEND = {
    "EAP10": "sums the first of two inputs before the join (1), the other is joined row by row (0)",
    "LAP": "joins rows, and aggregates afterwards",
    "recompute": "reads its windows anew at each boundary",
    "running": "keeps a total for each group of an input, and brings it up to date",
    "expire": "keeps what each boundary added to the answer, until it has left the window",
    "retract": "keeps the answer, adds what came and subtracts what left",
    "± s": "how far such prices were off so far",
}
CHEAPEST = 5                 # plans that are shown unless all are wanted


def explained(document: Mapping[str, Any], every: bool = False, statements: bool = False) -> Text:
    """The cheapest plans, or `every` one; with the `statements` of the chosen one where they are wanted."""
    def text(out: TextIO) -> None:
        line(out, f"{document['chosen']}: {document['summary']}")
        line(out, f"{document['why']}\n")
        for one in document["repeats"]:
            line(out, visible(f"note: {one['message']}") + "\n")
        line(out, str(document["tree"]).rstrip() + "\n")
        shown, hidden = _shown(document, every)
        present = {key for candidate in shown for key, figure in candidate.items() if figure is not None}
        figures = [key for key in FIGURES if key in present]
        rows = []
        for candidate in shown:
            name = f"{candidate['plan']}{' ←' if candidate['plan'] == document['chosen'] else ''}"
            rows.append((name, *(_short(candidate.get(key)) for key in figures), candidate.get("refused") or ""))
        names = [FIGURES[key] for key in figures]
        table(out, ("plan", *names, "why not"), rows, (False, *(True,) * len(names), False))
        if hidden:
            line(out, f"… and {hidden} more plans: `--all` shows them")
        for word, meaning in _legend(shown):
            line(out, f"  {word:<10} {meaning}")
        for statement in document["sql"] if statements else ():
            line(out, f"\n{str(statement).strip()};")
        if not statements:
            line(out, "`--sql` shows what a task runs at a boundary")
    return text


def _shown(document: Mapping[str, Any], every: bool) -> tuple[list[Mapping[str, Any]], int]:
    """The candidates that are shown, the chosen one always, and how many are not."""
    candidates = document["candidates"]
    if every:
        return list(candidates), 0
    allowed = [candidate for candidate in candidates if candidate.get("refused") is None]
    cheapest = sorted(allowed, key=lambda candidate: candidate["predicted_s"] or 0.0)[:CHEAPEST]
    names = {candidate["plan"] for candidate in cheapest} | {document["chosen"]}
    shown = [candidate for candidate in candidates if candidate["plan"] in names]
    return shown, len(candidates) - len(shown)


def _legend(candidates: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The words that stand in the table."""
    words = {word for candidate in candidates for word in str(candidate["plan"]).split()}
    has_early = any(word.startswith("EAP") for word in words)
    has_deviation = any(candidate.get("deviation_s") is not None for candidate in candidates)
    return [(word, meaning) for word, meaning in LEGEND.items()
            if word in words or word == "EAP10" and has_early or word == "± s" and has_deviation]


def _short(number: float | None) -> str:
    return "–" if number is None else f"{number:,.4g}"


def plans(document: Mapping[str, Any]) -> Text:
    """One line a span under one plan."""
    def text(out: TextIO) -> None:
        line(out, f"{document['query']}: {'pinned to ' + document['pinned'] if document['pinned'] else 'not pinned'}")
        spans = list(_spans(document["decisions"]))
        if not spans:
            return line(out, "no boundary has run yet")
        table(out, ("from", "boundaries", "plan", "predicted s", "measured s", "reason"), spans,
              (False, True, False, True, True, False))
        if document.get("regret_s") is not None:
            line(out, f"\nregret so far (measured less the best candidate's estimate): {document['regret_s']:.2f} s")
        trying = document["trying"]
        if trying["pipeline_s"] > 0:
            share = trying["pipeline_s"] / trying["of_s"]
            line(out, f"trying plans beside those in force took {trying['query_s']:.2f} s for this query, and for all "
                      f"{trying['pipeline_s']:.2f} s of {trying['of_s']:.2f} s ({share:.1%})")
    return text


def _spans(decisions: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, int, str, str, str, str]]:
    start = 0
    for i in range(1, len(decisions) + 1):
        if i == len(decisions) or any(decisions[i][k] != decisions[start][k] for k in ("plan", "reason")):
            part = decisions[start:i]
            count = sum(d["boundaries"] for d in part)
            predicted, measured = part[-1]["predicted_s"], sum(d["measured_s"] * d["boundaries"] for d in part) / count
            shown = "–" if predicted is None else f"{predicted:.3f}"
            yield part[0]["boundary"], count, part[0]["plan"], shown, f"{measured:.3f}", part[0]["reason"]
            start = i


def stats(document: Mapping[str, Any]) -> Text:
    """`document` as show.stats makes it."""
    def text(out: TextIO) -> None:
        streams = []
        for name, s in document["streams"].items():
            age = "–" if s["age"] is None else str(s["age"])
            streams.append((name, _amount(s["rate"]), _amount(s["rows_a_batch"]), _part(s["late"]), _amount(s["rows"]),
                            s["from"] or "–", age))
        table(out, ("stream", "rows a second", "rows a batch", "late", "stored", "known from", "boundaries ago"),
              streams, (False, *(True,) * 4, False, True))
        for name, query in document["queries"].items():
            counted = "counted" if query["counted"] else "expected"
            line(
                out,
                f"\n{name}: {_amount(query['groups'])} groups, {_amount(query['fanout'])} joined rows a full window "
                f"({counted}); "
                f"from {query['from']}, {query['age']} boundaries ago, resting on {_amount(query['weight'])} rows")
            table(out, ("input", "of", "window's rows", "selectivity", "combinations"),
                  [(i["alias"], i["source"], _amount(i["window"]), _part(i["selectivity"]), _amount(i["combinations"]))
                   for i in query["inputs"]], (False, False, True, True, True))
            if query["joins"]:
                table(out, ("join", "keys", "on all", "heaviest", "agree", "sampled"),
                      [(j["on"], _amount(j["keys"]), _part(j["overlap"]), _part(j["heaviest"]), _part(j["selectivity"]),
                        _part(j["sampled"])) for j in query["joins"]], (False, *(True,) * 5))
        if not document["queries"]:
            line(out, "no batch was sampled yet: `forebay run` does it")
    return text


def _part(share: float | None) -> str:
    return "–" if share is None else f"{share:.2%}" if share >= 0.001 or share == 0 else f"{share:.1e}"


def _amount(number: float | None) -> str:
    return f"{number:,.0f}" if number is not None and 1_000 <= number < 1e12 else _short(number)
