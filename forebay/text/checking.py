"""What was expected, verified, released, tracked or found by `doctor`, as people read it."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, TextIO

from forebay.text.layout import Text, line, table, visible


def rebuilt(document: Mapping[str, Any]) -> str:
    """What `doctor --rebuild` did, in a sentence."""
    name, tables = document["query"], ", ".join(document["tables"])
    parts = [f"{name}'s state is made anew at its next boundary"] if document["state"] else []
    if tables:
        anew = f"{document['boundaries']:,} answers computed anew" if document[
            "boundaries"] else "the files of its last commit are back"
        parts.append(f"{tables} is sound again: {anew}")
    return "; ".join(parts) or f"{name} has no state that could be made anew, and its answers are sound"


def verified(document: Mapping[str, Any]) -> Text:
    def text(out: TextIO) -> None:
        if not document["queries"]:
            return line(out, "nothing is published yet: `forebay run` first")
        rows = []
        for name, q in document["queries"].items():
            same = "equal" if q["boundaries"] else "nothing published"
            rows.append((name, q["boundaries"], q["equal"], "DIFFERENT" if q["differences"] else same))
        table(out, ("query", "boundaries", "equal", ""), rows, (False, True, True, False))
        for name, q in document["queries"].items():
            if q.get("left"):
                line(out,
                     f"{name}: {q['left']} earlier boundaries cannot be recomputed, their rows have left by `keep`")
        for name, q in document["queries"].items():
            if q.get("because"):
                line(out, f"{name}: recomputed by Spark SQL: {visible(q['because'])}")
        for name, q in document["queries"].items():
            for d in q["differences"]:
                line(out, f"{name} at {d['boundary']}: {visible(str(d['difference']))}")
    return text


def tracked(document: Mapping[str, Any]) -> Text:
    def text(out: TextIO) -> None:
        if document["uri"] is None:
            return line(out, "`tracking` is off in forebay.yml")
        table(out, ("query", "new batches", "MLflow run"),
              [(n, q["batches"], q["run"]) for n, q in document["queries"].items()], (False, True, False))
        line(out, f"experiment {document['experiment']} at {document['page'] or document['uri']}")
    return text


def released(document: Mapping[str, Any]) -> Text:
    def text(out: TextIO) -> None:
        for one in document["released"]:
            line(
                out,
                visible(
                    f"{document['boundary']} may pass although {one['subject']} expects {one['expectation']}, "
                    f"observed: {one['observed']}"
                ))
        if document["until"] is not None:
            what = document["expectation"] or "whatever fails"
            line(out, visible(f"{what} may pass at every boundary up to {document['until']} as well"))
        line(out, visible(f"released by {document['by']}: {document['reason']}; `forebay run` runs it"))
    return text


def expectations(document: Mapping[str, Any]) -> Text:
    def text(out: TextIO) -> None:
        names = ("expectation", "severity", "held")
        get = itemgetter(*names)
        rows = [(subject, *get(row)) for subject, entries in document["subjects"].items() for row in entries]
        table(out, ("of", *names), rows)
        if document["docs"]:
            line(out, f"data docs: {document['docs']}")
    return text


def facts(facts_: Sequence[Any]) -> Text:
    def text(out: TextIO) -> None:
        for f in facts_:
            line(out, f"{'ok ' if f.ok else 'BAD'}  {f.name}: {f.value}" + (f"; {f.fix}" if not f.ok and f.fix else ""))
    return text
