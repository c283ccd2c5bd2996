"""Queries and their answers, as people read them."""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TextIO

from forebay import show
from forebay.text.layout import Text, cell, line, table, visible
from jobs.results.readers import readers

if TYPE_CHECKING:
    import pyarrow as pa

FEW = 10                     # rows of each query's answer where all are shown
NO_QUERIES = "no queries yet: put a file into queries/, or `forebay query create NAME \"SELECT …\"`"
PAGE = 1_000                 # rows of an answer that are laid out together


def _weighed(prices: Mapping[str, float]) -> str:
    """Prices of a group, and the paper's equation (2) beside them where it was counted."""
    tuples = ""
    if "paper_apart" in prices:
        tuples = f"; equation (2) says {prices['paper_together']:,.0f} and {prices['paper_apart']:,.0f} tuples"
    tasks = f" on {prices['parts']:.0f} tasks" if prices.get("parts") else ""
    together_off, apart_off = prices.get("together_off", 1.0), prices.get("apart_off", 1.0)
    if together_off != 1.0 or apart_off != 1.0:
        tuples = f" (times {together_off:.2f} and {apart_off:.2f} by what batches took){tuples}"
    return (f"a boundary takes{tasks} {prices['together_s']:.2f} s together and {prices['apart_s']:.2f} s apart, as "
            f"priced{tuples}")


SPLIT = {
    "before": "sets by class of each input, joined on class and key",
    "after": "cells joined with their query-sets, split by class when merged"
}


def _way(way: Mapping[str, Any]) -> str:
    by = "by key" if way["exchange"] == "partition" else "by files"
    if way["divided"]:
        by = f"the files of {way['divided']}"
    divided = "one task does all" if way.get("tasks") == 1 else f"tasks divide {by}"
    once = f"; {' ⋈ '.join(way['joined_once'])} is made once for several forms" if way.get("joined_once") else ""
    return f"{SPLIT[way['split']]}; {divided}{once}"


def _joins(weighed: Mapping[str, float], by_tuples: Collection[str]) -> list[str]:
    """What joins of two inputs that forms have in common take, made once and by each form for itself; and which of them
    equation (2) would make once.
    """
    lines = []
    for name in [key.removesuffix(", once") for key in weighed if key.endswith(", once")]:
        once, each, tuples = (weighed[f"{name}, {what}"] for what in ("once", "each for itself", "tuples"))
        first = ", and would make it once" if name in by_tuples else ""
        lines.append(f"{name}: {once:.3f} s made once, {each:.3f} s by each form for itself; equation (2) says "
                     f"{tuples:,.0f} tuples{first}")
    return lines


def query(document: Mapping[str, Any]) -> Text:
    def text(out: TextIO) -> None:
        since = document["effective"] or "the first boundary (there is no row yet)"
        line(out, f"{document['query']}: {document['state']}, last change in force from {since}")
        line(
            out,
            f"  answers in  {document['table']} ({', '.join(c['name'] + ' ' + c['type'] for c in document['columns'])})"
        )
        if document.get("before"):
            line(out, f"  until then  {document['before']}")
        by_rule = f"chosen by rule; `forebay explain {document['query']}` shows it"
        line(out, f"  plan        {'pinned to ' + document['pinned'] if document['pinned'] else by_rule}")
        if document.get("shares_with"):
            others = document["members"] - 1 - len(document["shares_with"])
            more = f" and {others} more" if others else ""
            line(
                out,
                f"  shares with {', '.join(document['shares_with'])}{more}"
            )
        if document.get("weighed"):
            line(out, f"  because     {_weighed(document['weighed'])}")
        for join in _joins(document.get("weighed") or {}, document.get("joins_by_tuples") or ()):
            line(out, f"  join        {join}")
        if document.get("way"):
            line(out, f"  by          {_way(document['way'])}")
        if document.get("alone"):
            line(out, f"  runs alone  {document['alone']}")
        if document.get("error"):
            line(out, f"  error       {visible(document['error'])}")
        for row in document["sql"].strip().splitlines():
            line(out, "  | " + visible(row))
        for one in document.get("repeats") or ():
            line(out, visible(f"  note        {one['message']}"))
        for reader, code in readers(document["path"], document["query"]):
            line(out, f"  {reader:<10}  {visible(code)}")
    return text


def queries(documents: Sequence[Mapping[str, Any]]) -> Text:
    def text(out: TextIO) -> None:
        if not documents:
            return line(out, NO_QUERIES)
        rows = [(d["query"], d["state"], d["effective"] or "the first boundary", d["pinned"] or "by rule", d["table"])
                for d in documents]
        table(out, ("query", "state", "from", "plan", "table"), rows)
    return text


def answers(documents: Sequence[Mapping[str, Any]]) -> Text:
    """The first rows of each query's last answer."""
    def text(out: TextIO) -> None:
        if not documents:
            line(out, NO_QUERIES)
        for document in documents:
            line(out, f"{document['query']}:" + (f" {visible(document['problem'])}" if document.get("problem") else ""))
            rows = document["rows"]
            if rows:
                table(out, document["columns"], rows[:FEW])
            elif document["columns"]:
                line(out, f"no rows ({', '.join(document['columns'])})")
            if len(rows) > FEW:
                line(out, f"… and {len(rows) - FEW:,} more rows: `forebay result {document['query']}`")
            line(out, "")
    return text


def result(answer: pa.Table | pa.RecordBatchReader) -> Text:
    """The first PAGE rows as a table, the others below it in columns of the same width."""
    import pyarrow as pa

    def text(out: TextIO) -> None:
        rows = show.rows(answer)
        page = list(islice(rows, PAGE))
        if not page:
            return line(out, f"no rows ({', '.join(answer.schema.names)})")
        numbers = [
            pa.types.is_integer(f.type) or pa.types.is_floating(f.type) or pa.types.is_decimal(f.type)
            for f in answer.schema
        ]
        table(out, answer.schema.names, page, numbers)
        widths = []
        for name, column in zip(answer.schema.names, zip(*page)):
            widths.append(max(len(visible(name)), *(len(cell(value)) for value in column)))
        between = "   " if out.isatty() else "  "
        for row in rows:
            cells = [cell(v).rjust(w) if right else cell(v).ljust(w) for v, w, right in zip(row, widths, numbers)]
            out.write(between.join(cells).rstrip() + "\n")
    return text
