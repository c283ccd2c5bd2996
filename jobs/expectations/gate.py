"""Expectations of a batch: its waiting input is judged before it begins, its answers before they are written; a critical one that fails stops it there.

Nothing of a stopped batch is published, and a rerun stops again until somebody releases the boundary. What failed is entered after the commit.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from expectations import derived
from expectations.expectation import Expectation
from jobs.batch.batch import Answer
from jobs.batch.shared import Shared
from jobs.batch.works import context_of, parsed
from jobs.expectations import findings as expect_ledger
from jobs.expectations import judgement as expect_answers
from jobs.expectations import statements as expect_sql
from jobs.expectations.findings import Finding
from jobs.ledger.ledger import Batch
from jobs.ledger.queries import standings
from jobs.pipeline import declared as expect_files
from jobs.pipeline.declared import Declared
from jobs.requests.boundaries import Arrivals, read_streams
from jobs.storage import tables
from jobs.storage.tables import File
from optimizer.errors import ForebayError, failed
from optimizer.time import iso

if TYPE_CHECKING:
    from jobs.ledger.open_pipeline import OpenPipeline

STOPPED = "expectation-failed"
MOST_SAID = 3            # findings that an error spells out


@dataclass
class Judging:
    """What was found of the boundaries at hand, to be entered after their commit."""

    findings: list[Finding] = field(default_factory=list)


def begin(rt: OpenPipeline) -> None:
    """Reads what is declared, before anything changes."""
    rt.memory(Declared).given, rt.memory(Judging).findings = expect_files.read(rt.pipeline), []


def check(rt: OpenPipeline) -> None:
    """Refuses what is declared about queries that do not exist, or columns that they do not have."""
    known = standings(rt.ledger.all_changes()) if rt.memory(Declared).given else {}
    for given in rt.memory(Declared).given:
        if given.subject == expect_files.QUERY:
            if given.name not in known:
                raise expect_files.unknown(given, known)
            if known[given.name].active:
                expect_files.made(given, dict(parsed(known[given.name].sql, rt.catalog).columns))


def admitted(rt: OpenPipeline, group: tuple[int, ...]) -> tuple[int, ...]:
    """The boundaries whose input may be run: all, or those before the first that a critical expectation stops. It raises where that is the first of all."""
    found = waiting(rt, group)
    stops = _stopping(rt, found)
    first = min((f.boundary for f in stops), default=None)
    if first == group[0]:
        raise _stop(rt, [f for f in stops if f.boundary == first])
    kept = tuple(t for t in group if first is None or t < first)
    rt.memory(Judging).findings = _noted(f for f in found if f.boundary in kept)
    return kept


def waiting(rt: OpenPipeline, group: tuple[int, ...]) -> list[Finding]:
    """What fails of the input of these boundaries."""
    return [f for stream in sorted(read_streams(rt, group[0])) if tables.exists(rt.path("streams", stream)) for f in _input(rt, stream, group)]


def answered(rt: OpenPipeline, batch: Batch, made: Iterable[Answer], groups: Iterable[Shared] = ()) -> None:
    """Stops the batch if an answer fails what is critical."""
    context, hidden = context_of(rt), sensitive(rt)
    found = [f for answer in made for f in expect_answers.findings(context, batch, answer, _of_query(rt, answer), hidden)]
    found += [f for shared in groups for f in expect_answers.of_shared(batch, shared, hidden)]
    if stops := _stopping(rt, found):
        raise _stop(rt, stops)
    rt.memory(Judging).findings = [*rt.memory(Judging).findings, *_noted(found)]


def keep(rt: OpenPipeline) -> list[Finding]:
    """After the commit: what failed and did not stop it."""
    found, rt.memory(Judging).findings = rt.memory(Judging).findings, []
    expect_ledger.enter(rt, found)
    return found


def sensitive(rt: OpenPipeline) -> Mapping[str, frozenset[str]]:
    """Columns whose values are not to be shown, by source."""
    return {**{n: s.sensitive for n, s in rt.pipeline.streams.items()}, **{n: r.sensitive for n, r in rt.pipeline.relations.items()}}


def _of_query(rt: OpenPipeline, answer: Answer) -> tuple[Expectation, ...]:
    return expect_files.of_query(rt.memory(Declared).given, answer.work.name, dict(answer.work.query.columns)) if rt.memory(Declared).given else ()


def _input(rt: OpenPipeline, stream: str, group: tuple[int, ...]) -> list[Finding]:
    table, declared = rt.table(f"streams/{stream}"), rt.pipeline.streams[stream]
    asked = [e for e in expect_files.of_stream(rt.pipeline, rt.memory(Declared).given, stream) if e.severity != "row"] if rt.memory(Declared).given else []
    found = _unusual(table.files(), rt.pipeline.batch, group, stream) + _silent(rt, stream, group)
    if asked and table.features:
        raise failed("unreadable-input", f"expectations of stream {stream} cannot be judged: its table has {', '.join(sorted(table.features))}",
                     "rewrite the table without these features, or take the expectations out")
    return found + (expect_sql.of_input(table, declared, group, rt.pipeline.batch, asked) if asked else [])


def _unusual(files: Iterable[File], batch: int, group: tuple[int, ...], stream: str) -> list[Finding]:
    """Volumes beside those of the boundaries before, as far as the files' own counts tell."""
    counts = volumes(files, batch, group[0] - derived.HISTORY * batch, group[-1])
    found = []
    for t in group:
        before = [n for k in range(derived.HISTORY, 0, -1) if (n := counts.get(t - k * batch)) is not None]
        usual, now = derived.usual(before), counts.get(t)
        if usual is not None and now is not None and not usual[0] <= now <= usual[1]:
            found.append(Finding(t, f"stream {stream}", f"{derived.VOLUME}({usual[0]} to {usual[1]} rows)", f"{now} rows", "warning"))
    return found


def volumes(files: Iterable[File], batch: int, first: int, last: int) -> dict[int, int | None]:
    """Rows by boundary; None where a file of several boundaries leaves it open, and nothing before the stream's first row."""
    spans = [(f.low["_boundary"], f.high["_boundary"], f.rows) for f in files if "_boundary" in f.low and "_boundary" in f.high]
    if not spans:
        return {}
    begin = max(first, -(-min(low for low, _, _ in spans) // batch) * batch)
    counts: dict[int, int | None] = dict.fromkeys(range(begin, last + 1, batch), 0)
    for low, high, rows in spans:
        for t in range(max(-(-low // batch) * batch, begin), min(high, last) + 1, batch):
            before = counts[t]
            counts[t] = before + rows if low == high and before is not None else None
    return counts


def _silent(rt: OpenPipeline, stream: str, group: tuple[int, ...]) -> list[Finding]:
    declared = rt.pipeline.streams[stream]
    limit = derived.fresh_until(declared.lateness, declared.idle, rt.pipeline.batch)
    if stream not in rt.memory(Arrivals).marks or rt.memory(Arrivals).marks[stream].latest >= group[-1] - limit:
        return []
    said, newest = f"{derived.FRESH}(within {limit / 10**6:g} s)", rt.memory(Arrivals).marks[stream].latest
    observed = f"the newest row is of {iso(newest)}"
    return [Finding(t, f"stream {stream}", said, observed, "warning") for t in group if newest < t - limit]


def _stopping(rt: OpenPipeline, found: list[Finding]) -> list[Finding]:
    critical = [f for f in found if f.severity == "critical"]
    let = expect_ledger.released(rt) if critical else set()
    return [f for f in critical if f.key not in let]


def _noted(found: Iterable[Finding]) -> list[Finding]:
    """What is critical and passes all the same was released."""
    return [Finding(f.boundary, f.subject, f.expectation, f.observed, f.severity, f.severity == "critical") for f in found]


def _stop(rt: OpenPipeline, stops: list[Finding]) -> ForebayError:
    """Entered once, however often the batch is tried."""
    known = {t: expect_ledger.stops(rt, t) for t in {f.boundary for f in stops}}
    expect_ledger.enter(rt, [f for f in stops if f.key not in map(expect_ledger.key, known[f.boundary])])
    first = min(f.boundary for f in stops)
    at, mine = iso(first), [f for f in stops if f.boundary == first]
    said = "; ".join(f"{f.subject} expects {f.expectation}, observed: {f.observed}" for f in mine[:MOST_SAID])
    more = f" (and {len(stops) - min(len(mine), MOST_SAID)} more)" if len(stops) > min(len(mine), MOST_SAID) else ""
    return failed(STOPPED, f"boundary {at} is stopped: {said}{more}; nothing of its batch is published",
                  f"mend what brought it about, or let it pass: forebay release {at} --reason \"…\"")
