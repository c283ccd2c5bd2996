"""What `ingest`, `run` and `adapt` did, as people read it."""
from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, TextIO

from forebay.text.layout import Text, line, table, visible

SHOWN = 12                   # boundaries of a long run that are shown


def _relation(relation: Mapping[str, Any]) -> str:
    if relation["version"] is None:
        return "no version yet"
    return f"{relation['rows']:,} rows, version {relation['version']}{', new' if relation['changed'] else ''}"


def ingested(document: Mapping[str, Any]) -> Text:
    def text(out: TextIO) -> None:
        counts = ("files", "rows", "late", "quarantined")
        get_counts = itemgetter(*counts)
        table(out, ("stream", *counts), [(name, *get_counts(s)) for name, s in document["streams"].items()],
              (False, True, True, True, True))
        for name, relation in document["relations"].items():
            line(out, visible(f"relation {name}: {_relation(relation)}"))
        for note in document["notes"]:
            line(out, visible(note))
        for r in document["refused"]:
            line(out, f"refused whole: {visible(r['path'])}: {visible(r['reason'])}")
        for r in document["ignored"]:
            line(out, f"{visible(r['path'])}: {visible(r['reason'])}")
        if any(s["quarantined"] for s in document["streams"].values()):
            line(out, "quarantined rows are in warehouse/quarantine/<stream>, each with its reason")
    return text


def ran(document: Mapping[str, Any]) -> Text:
    """`document` as show.run makes it."""
    def text(out: TextIO) -> None:
        entries = document["ran"]
        if len(entries) > SHOWN:
            line(out, f"… and {len(entries) - SHOWN} boundaries before these")
        rows = []
        for e in entries[-SHOWN:]:
            new_rows = ", ".join(f"{count:,} {stream}" for stream, count in e["rows"].items())
            plans_ = ", ".join(f"{name}: {plan}" for name, plan in e["plans"].items())
            rows.append((e["boundary"], f"{e['seconds']:.2f}", new_rows or "none", plans_))
        if rows:
            table(out, ("boundary", "seconds", "new rows", "plans"), rows, (False, True, False, False))
        for e in entries:
            if e.get("passed_over"):
                count, at = e["passed_over"], e["boundary"]
                line(out, f"{count:,} boundaries before {at} were passed over: no row came, and each answer repeats "
                          "the one before")
        for failure in document["failed"]:
            name, message = failure["query"], visible(failure["message"])
            line(out, f"query {name} failed at {failure['boundary']}: {message}")
            line(out, f"  the others go on; mend it, then `forebay query resume {name}`, or delete it")
        unexpected = [f"at {e['boundary']}: {finding}" for e in entries for finding in e.get("unexpected", ())]
        for message in unexpected[-SHOWN:]:
            line(out, visible(message))
        line(out, _closing(document))
        if document["decided"]["mode"] == "task":
            line(out, age_of_decisions(document["decided"]))
    return text


def age_of_decisions(decided: Mapping[str, Any]) -> str:
    if decided["at"] is None:
        return "plans are the first ones: `forebay adapt` has not run yet (in Airflow: its DAG …__adapt)"
    statistics = f", by statistics of {decided['statistics_boundary']}" if decided["statistics_boundary"] else ""
    return f"plans as decided at {decided['at']}, after boundary {decided['boundary']}{statistics}"


def adapted(document: Mapping[str, Any]) -> Text:
    def text(out: TextIO) -> None:
        line(out, f"statistics: {visible(document['statistics']['reason'])}")
        rows = []
        for entry in document["decisions"]:
            predicted = None if entry["predicted_s"] is None else f"{entry['predicted_s']:.4f}"
            before = entry["switched_from"] or ""
            rows.append((entry["query"], entry["plan"], before, entry["effective"] or "", predicted, entry["reason"]))
        if rows:
            table(out, ("query", "plan", "instead of", "from", "predicted s", "why"), rows,
                  (False, False, False, False, True, False))
        else:
            line(out, "there is no query in force to decide on")
    return text


def _closing(document: Mapping[str, Any]) -> str:
    count = len(document["ran"])
    ran_so_far = f"{count} {'boundary' if count == 1 else 'boundaries'} ran" if count else "nothing to run"
    if document["next"] is None:
        return f"{ran_so_far}; there is no row yet, or no query (put one into queries/, then `forebay ingest`)"
    return f"{ran_so_far}; {next_boundary(document)}"


def next_boundary(document: Mapping[str, Any]) -> str:
    """Of a run or of `status`: the next boundary, and what it waits for."""
    lacking = document["without_version"]
    waiting = [name for name in document["waiting_for"] if name not in lacking]
    reasons = []
    if waiting:
        reasons.append(f"newer rows of {' and '.join(waiting)} (`--flush` treats the input as ended)")
    if lacking:
        reasons.append(f"a first version of {' and '.join(lacking)}: see that the source is there, then "
                       "`forebay ingest`")
    waits = f", which waits for {', and for '.join(reasons)}" if reasons else ""
    return f"next is {document['next']}{waits}"
