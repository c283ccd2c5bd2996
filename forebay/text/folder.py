"""`forebay plan`, `apply` and `check` as people read them."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

from forebay.text.layout import Text, line, table, visible

BEFORE = {"paused": "was paused, answers again", "failed": "had failed, answers again", "deleted": "had been deleted"}
WAYS = "`forebay apply --adopt NAME` writes the file of one, `--delete-others` ends all of them"


def planned(document: Mapping[str, Any]) -> Text:
    """`document` as show.folder makes it."""
    def text(out: TextIO) -> None:
        _show_changes(out, document)
        if document["changes"]:
            line(out, f"\n{_count(document)}, all in force at one boundary, by `forebay apply`; nothing is changed yet")
        for name in document["adopted"]:
            line(out, f"{name} has the text of queries/{name}.sql: `forebay apply` notes that it belongs to that file")
        if document["other"]:
            line(out, f"not from files: {', '.join(document['other'])}; {WAYS}")
    return text


def applied(document: Mapping[str, Any]) -> Text:
    """`document` as show.folder makes it."""
    def text(out: TextIO) -> None:
        _show_changes(out, document)
        if document["changes"]:
            line(out, f"\n{_count(document)}, in force at one boundary")
        for name in document["adopted"]:
            line(out, f"{name} belongs to queries/{name}.sql from now on")
        if document["other"]:
            line(out, f"not from files, and as before: {', '.join(document['other'])}")
    return text


def checked(document: Mapping[str, Any]) -> Text:
    def text(out: TextIO) -> None:
        counts = [f"{what}: {len(document[what])}" for what in ("streams", "relations", "queries")]
        counts.append(f"expectations of its own: {document['expectations']}")
        line(out, f"nothing is wrong with {document['pipeline']} ({', '.join(counts)})")
        for note in document["notes"]:
            line(out, visible(note))
    return text


def _show_changes(out: TextIO, document: Mapping[str, Any]) -> None:
    if not document["changes"]:
        return line(out, "nothing to do: the queries in force are those of queries/")
    rows = []
    for change in document["changes"]:
        predicted = "–" if change["predicted_s"] is None else f"{change['predicted_s']:.4f}"
        since = change["effective"] or "the first boundary"
        note = BEFORE.get(change["before"], "") if change["action"] != "delete" else ""
        rows.append((change["action"], change["query"], since, predicted, change["plan"] or "–", note))
    table(out, ("action", "query", "from", "predicted s", "plan", ""), rows, (False, False, False, True, False, False))
    for change in document["changes"]:
        for one in change.get("repeats", ()):
            line(out, visible(f"{change['query']}: {one['message']}"))
    return None


def _count(document: Mapping[str, Any]) -> str:
    count = len(document["changes"])
    return f"{count} {'change' if count == 1 else 'changes'}"
