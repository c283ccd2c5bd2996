"""`forebay status` as people read it."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

from forebay.text.layout import Text, line, table, visible
from forebay.text.running import age_of_decisions, next_boundary

MINUTE, HOUR, DAY = 60, 3600, 86400


def status(document: Mapping[str, Any]) -> Text:
    """`document` as show.status makes it."""
    def text(out: TextIO) -> None:
        line(out, visible(f"{document['state']}: {document['because']}"))
        is_told = document["next"] is None or document["state"] in ("stopped", "waiting")
        if not is_told and (document["runner"] or document["state"] == "failed"):
            line(out, next_boundary(document))
        if any(query["unpublished"] for query in document["queries"].values()):
            line(out, _lag(document))
        if document["decided"]["mode"] == "task":
            line(out, age_of_decisions(document["decided"]))
        _show_streams(out, document["streams"])
        _show_queries(out, document["queries"])
    return text


def _lag(document: Mapping[str, Any]) -> str:
    public = f"only those up to {document['published']} are public" if document["published"] else "none are public"
    when = "at the end of its run" if document["runner"] else "by the next `forebay run`"
    return f"answers up to {document['committed']} are committed, {public}: the others will be {when}"


def _show_streams(out: TextIO, streams: Mapping[str, Any]) -> None:
    line(out, "")
    rows = [(name, s["last_row"] or "no row yet", _length(s["lag_s"]), s["late"], s["quarantined"])
            for name, s in streams.items()]
    table(out, ("stream", "last row", "behind the clock", "late", "quarantined"), rows,
          (False, False, True, True, True))
    for name, stream in streams.items():
        reasons = [f"{count:,} {reason}" for reason, count in stream["reasons"].items()]
        rest = stream["quarantined"] - sum(stream["reasons"].values())
        if reasons:
            more = f"; {rest:,} for other reasons" if rest > 0 else ""
            line(out, visible(f"quarantined of {name}: {'; '.join(reasons)}{more}"))


def _show_queries(out: TextIO, queries: Mapping[str, Any]) -> None:
    if not queries:
        return
    line(out, "")
    rows = []
    for name, q in queries.items():
        plan = q["plan"] or "–"
        pinned = " (pinned)" if q["pinned"] is not None and q["pinned"] == q["plan"] else ""
        rows.append((name, q["state"], q["boundary"] or "none yet", "–" if q["rows"] is None else f"{q['rows']:,}",
                     plan + pinned, q["unpublished"] or "", q["address"]))
    table(out, ("query", "state", "last boundary", "rows", "plan", "not public yet", "answers in"), rows,
          (False, False, False, True, False, True, False))
    for name, q in queries.items():
        if q["problem"]:
            line(out, visible(f"{name}: {q['problem']}"))


def _length(seconds: float | None) -> str:
    """Rounded down, in the largest unit of which there are two."""
    if seconds is None:
        return "–"
    for unit, name in ((DAY, "days"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= 2 * unit:
            return f"{seconds // unit:,.0f} {name}"
    return f"{seconds:.0f} s"
