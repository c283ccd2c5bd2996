"""Documents as people read them, on a terminal or through a pipe.

What they say is what --json says, and nothing is computed here.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TextIO

from forebay import show

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

Text = Callable[[TextIO], None]
SHOWN = 12                   # boundaries of a long run that are shown
FIGURES = {"predicted_s": "predicted s", "deviation_s": "± s", "paper_cost": "paper's cost", "state_rows": "state rows"}
PAGE = 1_000                 # rows of an answer that are laid out together
PIPED = 10_000               # a pipe has no width: no line is cut there


def console(out: TextIO) -> Console:
    from rich.console import Console  # a tenth of a second that --json need not pay

    return Console(file=out, markup=False, highlight=False, emoji=False, soft_wrap=True,
                   width=None if out.isatty() else PIPED)


def table(out: TextIO, names: Sequence[str], rows: Iterable[Sequence[Any]],
          right: Sequence[bool] | None = None) -> None:
    from rich import box
    from rich.table import Table

    layout = Table(box=box.SIMPLE_HEAD if out.isatty() else None, pad_edge=False, show_edge=False, header_style="bold")
    for i, name in enumerate(names):
        layout.add_column(visible(name), justify="right" if right and right[i] else "left", overflow="fold")
    for row in rows:
        layout.add_row(*map(_cell, row))
    console(out).print(layout)


def _cell(value: Any) -> str:
    return "NULL" if value is None else visible(str(value).lower() if isinstance(value, bool) else str(value))


def line(out: TextIO, text: str) -> None:
    console(out).print(text)


def rebuilt(document: Mapping[str, Any]) -> str:
    """What `doctor --rebuild` did, in a sentence."""
    name, tables = document["query"], ", ".join(document["tables"])
    parts = [f"{name}'s state is made anew at its next boundary"] if document["state"] else []
    if tables:
        anew = f"{document['boundaries']:,} answers computed anew" if document[
            "boundaries"] else "the files of its last commit are back"
        parts.append(f"{tables} is sound again: {anew}")
    return "; ".join(parts) or f"{name} has no state that could be made anew, and its answers are sound"


def visible(value: str) -> str:
    """Control characters of a value must not steer the terminal."""
    return value if value.isprintable() else "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in value)


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
    return text


def queries(documents: Sequence[Mapping[str, Any]]) -> Text:
    def text(out: TextIO) -> None:
        if not documents:
            return line(out, "no queries yet: put a file into queries/, or `forebay query create NAME \"SELECT …\"`")
        rows = [(d["query"], d["state"], d["effective"] or "the first boundary", d["pinned"] or "by rule", d["table"])
                for d in documents]
        table(out, ("query", "state", "from", "plan", "table"), rows)
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
            widths.append(max(len(visible(name)), *(len(_cell(cell)) for cell in column)))
        between = "   " if out.isatty() else "  "
        for row in rows:
            cells = [_cell(v).rjust(w) if right else _cell(v).ljust(w) for v, w, right in zip(row, widths, numbers)]
            out.write(between.join(cells).rstrip() + "\n")
    return text


def explained(document: Mapping[str, Any]) -> Text:
    def text(out: TextIO) -> None:
        line(out, f"{document['chosen']}: {document['why']}\n")
        line(out, str(document["tree"]).rstrip() + "\n")
        candidates = document["candidates"]
        present = {key for candidate in candidates for key, figure in candidate.items() if figure is not None}
        figures = [key for key in FIGURES if key in present]
        rows = []
        for candidate in candidates:
            name = f"{candidate['plan']}{' ←' if candidate['plan'] == document['chosen'] else ''}"
            rows.append((name, *(_short(candidate.get(key)) for key in figures), candidate.get("refused") or ""))
        names = [FIGURES[key] for key in figures]
        table(out, ("plan", *names, "why not"), rows, (False, *(True,) * len(names), False))
        for statement in document["sql"]:
            line(out, f"\n{str(statement).strip()};")
    return text


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


@contextmanager
def progress(what: str) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A line on the terminal that counts boundaries; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda entry: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=None)
        count = 0

        def count_boundary(entry: Mapping[str, Any]) -> None:
            nonlocal count
            count += 1
            bar.update(task, description=f"{what}: {count} boundaries, the last {show.iso(entry['boundary'])}")

        yield count_boundary
