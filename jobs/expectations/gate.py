"""Expectations of a batch: its waiting input is judged before it begins, its answers before they are written; a
critical one that fails stops it there.

Nothing of a stopped batch is published, and a rerun stops again until somebody releases the boundary. What failed is
entered after the commit.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from expectations import derived
from expectations.expectation import Expectation
from jobs.batch.batch import Answer
from jobs.batch.shared import Shared
from jobs.batch.works import context_of, parsed
from jobs.expectations import findings as expect_ledger
from jobs.expectations import judgement as expect_answers
from jobs.expectations import statements as expect_sql
from jobs.expectations.findings import Finding
from jobs.ledger.entries import Batch
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import queries_at
from jobs.pipeline import declared as expect_files
from jobs.pipeline.declared import DeclaredExpectations
from jobs.requests.boundaries import Arrivals, read_streams
from jobs.storage import tables
from jobs.storage.tables import File
from optimizer.errors import ForebayError, failed
from optimizer.time import iso

STOPPED = "expectation-failed"
MOST_SAID = 3            # findings that an error spells out


class Gate:
    """Judges the input and the answers of the boundaries at hand; remembers its findings until their commit.

    `Gate(pipe, DeclaredExpectations(pipe.pipeline), arrivals).admitted((60, 120))` is `(60,)` where 120 must not run.
    """

    def __init__(self, pipe: OpenPipeline, declared: DeclaredExpectations, arrivals: Arrivals) -> None:
        self.pipe = pipe
        self.declared = declared
        self.arrivals = arrivals
        self._findings: list[Finding] = []      # to be entered after the commit

    def begin(self) -> None:
        """Reads what is declared, before anything changes."""
        self.declared.read()
        self._findings = []

    def check(self) -> None:
        """Refuses what is declared about queries that do not exist, or columns that they do not have."""
        queries = queries_at(self.pipe.ledger.all_changes()) if self.declared.given else {}
        for given in self.declared.given:
            if given.subject == expect_files.QUERY:
                if given.name not in queries:
                    raise expect_files.unknown(given, queries)
                if queries[given.name].is_active:
                    expect_files.made(given, dict(parsed(queries[given.name].sql, self.pipe.catalog).columns))

    def admitted(self, group: tuple[int, ...]) -> tuple[int, ...]:
        """The boundaries whose input may be run: all, or those before the first that a critical expectation stops.

        It raises where that is the first of all.
        """
        findings = self.waiting(group)
        stops = _stopping(self.pipe, findings)
        first = min((f.boundary for f in stops), default=None)
        if first == group[0]:
            raise _stop(self.pipe, [f for f in stops if f.boundary == first])
        boundaries = tuple(t for t in group if first is None or t < first)
        self._findings = _noted(f for f in findings if f.boundary in boundaries)
        return boundaries

    def waiting(self, group: tuple[int, ...]) -> list[Finding]:
        """What fails of the input of these boundaries."""
        streams = sorted(read_streams(self.pipe, group[0]))
        stored = [stream for stream in streams if tables.exists(self.pipe.path("streams", stream))]
        return [finding for stream in stored for finding in self._input(stream, group)]

    def answered(self, batch: Batch, answers: Iterable[Answer], groups: Iterable[Shared] = ()) -> None:
        """Stops the batch if an answer fails what is critical."""
        context, hidden = context_of(self.pipe), sensitive(self.pipe)
        findings = []
        for answer in answers:
            findings += expect_answers.findings(context, batch, answer, self._of_query(answer), hidden)
        findings += [f for shared in groups for f in expect_answers.of_shared(batch, shared, hidden)]
        if stops := _stopping(self.pipe, findings):
            raise _stop(self.pipe, stops)
        self._findings = [*self._findings, *_noted(findings)]

    def enter(self) -> list[Finding]:
        """After the commit: what failed and did not stop it."""
        findings, self._findings = self._findings, []
        expect_ledger.enter(self.pipe, findings)
        return findings

    def _of_query(self, answer: Answer) -> tuple[Expectation, ...]:
        return self.declared.of_query(answer.work.name, dict(answer.work.query.columns)) if self.declared.given else ()

    def _input(self, stream: str, group: tuple[int, ...]) -> list[Finding]:
        table, batch = self.pipe.table(f"streams/{stream}"), self.pipe.pipeline.batch
        expected = [e for e in self.declared.of_stream(stream) if e.severity != "row"] if self.declared.given else []
        findings = _unusual(table.files(), batch, group, stream) + self._silent(stream, group)
        if expected and table.features:
            features = ", ".join(sorted(table.features))
            raise failed("unreadable-input",
                         f"expectations of stream {stream} cannot be judged: its table has {features}",
                         "rewrite the table without these features, or take the expectations out")
        declared = self.pipe.pipeline.streams[stream]
        return findings + (expect_sql.of_input(table, declared, group, batch, expected) if expected else [])

    def _silent(self, stream: str, group: tuple[int, ...]) -> list[Finding]:
        """The boundaries at which the newest row is too old."""
        declared, newest = self.pipe.pipeline.streams[stream], self.arrivals.newest(stream)
        limit = derived.fresh_until(declared.lateness, declared.idle, self.pipe.pipeline.batch)
        if newest is None or newest >= group[-1] - limit:
            return []
        expectation = f"{derived.FRESH}(within {limit / 10**6:g} s)"
        observed = f"the newest row is of {iso(newest)}"
        return [Finding(t, f"stream {stream}", expectation, observed, "warning") for t in group if newest < t - limit]


def sensitive(pipe: OpenPipeline) -> Mapping[str, frozenset[str]]:
    """Columns whose values are not to be shown, by source."""
    return {
        **{
            n: s.sensitive for n, s in pipe.pipeline.streams.items()
        },
        **{
            n: r.sensitive for n, r in pipe.pipeline.relations.items()
        }
    }


def _unusual(files: Iterable[File], batch: int, group: tuple[int, ...], stream: str) -> list[Finding]:
    """Volumes beside those of the boundaries before, as far as the files' own counts tell."""
    counts = volumes(files, batch, group[0] - derived.HISTORY * batch, group[-1])
    found = []
    for t in group:
        before = [n for k in range(derived.HISTORY, 0, -1) if (n := counts.get(t - k * batch)) is not None]
        usual, now = derived.usual(before), counts.get(t)
        if usual is not None and now is not None and not usual[0] <= now <= usual[1]:
            found.append(
                Finding(t, f"stream {stream}", f"{derived.VOLUME}({usual[0]} to {usual[1]} rows)", f"{now} rows",
                        "warning"))
    return found


def volumes(files: Iterable[File], batch: int, first: int, last: int) -> dict[int, int | None]:
    """Rows by boundary.

    None where a file of several boundaries leaves it open, and nothing before the stream's first row.
    """
    spans = [(f.low["_boundary"], f.high["_boundary"], f.rows)
             for f in files
             if "_boundary" in f.low and "_boundary" in f.high]
    if not spans:
        return {}
    begin = max(first, -(-min(low for low, _, _ in spans) // batch) * batch)
    counts: dict[int, int | None] = dict.fromkeys(range(begin, last + 1, batch), 0)
    for low, high, rows in spans:
        for t in range(max(-(-low // batch) * batch, begin), min(high, last) + 1, batch):
            before = counts[t]
            counts[t] = before + rows if low == high and before is not None else None
    return counts


def _stopping(pipe: OpenPipeline, found: list[Finding]) -> list[Finding]:
    critical = [f for f in found if f.severity == "critical"]
    let = expect_ledger.released(pipe) if critical else set()
    return [f for f in critical if f.key not in let]


def _noted(found: Iterable[Finding]) -> list[Finding]:
    """What is critical and passes all the same was released."""
    return [
        Finding(f.boundary, f.subject, f.expectation, f.observed, f.severity, f.severity == "critical") for f in found
    ]


def _stop(pipe: OpenPipeline, stops: list[Finding]) -> ForebayError:
    """Entered once, however often the batch is tried."""
    known = {t: expect_ledger.stops(pipe, t) for t in {f.boundary for f in stops}}
    expect_ledger.enter(pipe, [f for f in stops if f.key not in map(expect_ledger.key, known[f.boundary])])
    first = min(f.boundary for f in stops)
    at, mine = iso(first), [f for f in stops if f.boundary == first]
    said = "; ".join(f"{f.subject} expects {f.expectation}, observed: {f.observed}" for f in mine[:MOST_SAID])
    more = f" (and {len(stops) - min(len(mine), MOST_SAID)} more)" if len(stops) > min(len(mine), MOST_SAID) else ""
    return failed(STOPPED, f"boundary {at} is stopped: {said}{more}; nothing of its batch is published",
                  f"mend what brought it about, or let it pass: forebay release {at} --reason \"…\"")
