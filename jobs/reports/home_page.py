"""A pipeline's own page: how it stands, how far its streams and answers are, each query's last answer as a table and as
a picture, and how others read it.

It is made of documents that commands give; nothing is computed here.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from jobs.reports import line_picture
from jobs.reports.docs_pages import Markup, heading, page_head, table
from jobs.results.readers import readers
from jobs.results.series import PlottedAnswer
from optimizer.time import iso

MOST_ROWS = 20           # of an answer that are shown
STYLE = """<style>
pre { user-select: all; background: #8881; padding: .3rem .6rem; margin: .2rem 0 .5rem; overflow-x: auto; }
svg { max-width: 100%; height: auto; } svg text { fill: currentColor; font-size: 11px; opacity: .8; }
svg text.figure { font-size: 13px; font-weight: 600; opacity: 1; } svg .grid { stroke: currentColor; opacity: .15; }
.legend { font-size: .85em; margin: 0 0 1rem 5rem; } section { border-top: 1px solid var(--line); margin-top: 2rem; }
td.number { text-align: right; } details summary { cursor: pointer; margin: .6rem 0; }
</style>"""


@dataclass(frozen=True)
class ShownAnswer:
    """A query's last answer: its first rows as texts, how many more there are, the picture of the newest boundaries,
    and where it can be read. `hidden` are columns whose values are not shown.
    """

    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    more: int
    plot: PlottedAnswer
    path: str
    hidden: tuple[str, ...] = ()
    regret: float | None = None


def page(name: str, document: Mapping[str, Any], answers: Mapping[str, ShownAnswer],
         links: Sequence[Markup] = ()) -> str:
    """`document` is `forebay status`'s, instants in microseconds."""
    state = str(document["state"])
    bad = state in ("stopped", "failed")
    because = [str(document["because"])]
    notice = heading(state.upper(), because) if bad else Markup(
        f'<div class="alert good"><strong>{escape(state.upper())}</strong><p>{escape(because[0])}</p></div>')
    parts = [page_head(f"Pipeline {name}"), STYLE, f"<body><h1>{escape(name)}</h1>", notice,
             f"<p>{' · '.join(links)}</p>" if links else "", "<h2>Streams</h2>", _streams(document["streams"]),
             "<h2>Queries</h2>", _queries(document["queries"])]
    for query, one in document["queries"].items():
        parts.append(_query(query, one, answers.get(query)))
    return "\n".join([*parts, "</body></html>"])


def _streams(streams: Mapping[str, Mapping[str, Any]]) -> str:
    rows = []
    for name, stream in streams.items():
        reasons = "; ".join(f"{count:,} {reason}" for reason, count in stream["reasons"].items())
        lag = "" if stream["lag_s"] is None else span(stream["lag_s"])
        rows.append((name, _at(stream["last_row"]), lag, f"{stream['late']:,}", f"{stream['quarantined']:,}", reasons))
    return table(("stream", "last row", "behind the clock", "late", "quarantined", "first reasons"), rows)


def _queries(queries: Mapping[str, Mapping[str, Any]]) -> str:
    rows = []
    for name, query in queries.items():
        count = "" if query["rows"] is None else f"{query['rows']:,}"
        problem = Markup(f'<strong class="bad">{escape(query["problem"])}</strong>') if query["problem"] else "none"
        rows.append((Markup(f'<a href="#{escape(name)}">{escape(name)}</a>'), query["state"], _at(query["boundary"]),
                     count, query["plan"] or "", problem))
    return table(("query", "state", "last boundary", "rows", "plan", "problems"), rows)


def _query(name: str, query: Mapping[str, Any], answer: ShownAnswer | None) -> str:
    parts = [f'<section id="{escape(name)}"><h2>{escape(name)}</h2>']
    if answer is None:
        why = query["problem"] or "no boundary of it is public yet"
        return "".join([*parts, f'<p class="muted">No answer: {escape(str(why))}</p></section>'])
    parts.append(f"<p>At boundary {_at(query['boundary'])}</p>")
    parts.append(line_picture.svg(answer.plot))
    parts.append(table(answer.columns, answer.rows))
    if answer.more:
        more = f"and {answer.more:,} more rows"
        parts.append(f'<p class="muted">{more}: <code>forebay result {escape(name)}</code></p>')
    if answer.hidden:
        parts.append(f'<p class="muted">Values of {escape(", ".join(answer.hidden))} are sensitive and not shown.</p>')
    if answer.regret is not None:
        regret = f"Its plans took {answer.regret:.2f} s more than the best candidates' estimates"
        parts.append(f'<p class="muted">{regret}, without first batches, which also start Spark.</p>')
    codes = "".join(f"<dt>{escape(reader)}</dt><dd><pre>{escape(code)}</pre></dd>"
                    for reader, code in readers(answer.path, name))
    parts.append(f"<details><summary>Read it elsewhere (a click on a line selects it)</summary><dl>{codes}</dl>"
                 "</details></section>")
    return "".join(parts)


def _at(micros: int | None) -> str:
    return "" if micros is None else iso(micros)


def span(seconds: float) -> str:
    """`3 days`, in the largest unit of which there is one at least."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if abs(seconds) >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:,.0f} seconds"
