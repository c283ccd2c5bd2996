"""A pipeline as an object; a wrong use raises a ForebayError that says what, where, and what to do.

Times come back as integer microseconds; those that are given may also be texts (ISO 8601) or datetimes.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from forebay import show
from jobs.batch.works import parsed
from jobs.commands import adapt as adapting
from jobs.commands import folder as applying
from jobs.commands import rebuild as rebuilding
from jobs.commands.cases import running as cases
from jobs.commands.status import status as status_of
from jobs.expectations import releases
from jobs.ledger.open_pipeline import OpenPipeline, open_pipeline
from jobs.ledger.queries import QueryState, queries_at
from jobs.pipeline.config import load
from jobs.reports import docs_report as expect_report
from jobs.reports import tracking
from jobs.requests import requests
from jobs.results import answers, decisions
from jobs.results import figures as statistics_said
from jobs.results import repeats, series
from jobs.run import Loop
from optimizer.errors import ForebayError, failed
from optimizer.names import NAME

if TYPE_CHECKING:
    import pyarrow as pa

MOST_LOOKED_AT = 16      # new queries of which a look tells at once whether their joins repeat rows
MOST_SAID = 3            # inputs that could not be taken that an error names
ACTIONS = ("delete", "pause", "resume", "pin", "unpin")


class Pipeline:
    def __init__(self, folder: str = ".", engine: str | None = None,
                 by_size: Callable[[str], None] | None = None) -> None:
        """`by_size` is told where work is done: its size decides that then, unless forebay.yml says when Spark is
        wanted.
        """
        self.loop = Loop(open_pipeline(load(folder), engine, by_size=by_size))

    @property
    def runtime(self) -> OpenPipeline:
        """What every command may touch."""
        return self.loop.pipe

    def ingest(self, stream: str | None = None, data: Any = None) -> dict[str, Any]:
        """New input into the stream tables, once: from every source, or `data` (path, paths, or a data frame) into one
        stream. A file or source that cannot be taken is raised after all others were taken.
        """
        if (stream is None) != (data is None):
            raise ForebayError("bad-usage", "a stream and its data are given together",
                               hint="ingest() takes every source, ingest(stream, data) the data")
        only = None if stream is None else {stream: list(data) if isinstance(data, (list, tuple)) else [data]}
        report = self.loop.take(only)
        if report["refused"]:
            raise _refused(report)
        return report

    def run(self, to: Any = None, flush: bool = False, batches: int | None = None,
            progress: Any = lambda _: None, ahead: Any = lambda _: None) -> dict[str, Any]:
        """Every complete boundary. `progress` is told each that has run, `ahead` before each batch how many are to."""
        if batches is not None and batches < 1:
            raise ForebayError("bad-usage", f"batches is {batches}",
                               hint="at least 1, or None for all that are complete")
        return self.loop.run(_instant(to, "to"), flush, batches, progress, ahead)

    def create(self, name: str, sql: str, replace: bool = False, new_history: bool = False) -> dict[str, Any]:
        if not isinstance(name, str) or not isinstance(sql, str):
            raise ForebayError("bad-usage", "a query's name and text are strings",
                               hint='create("clicks", "SELECT COUNT(*) FROM clicks [WINDOW 1 HOUR]")')
        shown = self._shown(requests.create(self.runtime, name, sql, replace, new_history=new_history))
        repeated = repeats.repeated(self.loop.statistics, parsed(sql, self.runtime.catalog))
        return {**shown, "repeats": [one.document() for one in repeated]} if repeated else shown

    def create_together(self, queries: Mapping[str, str], replace: bool = False) -> dict[str, int | None]:
        """Queries by name, all by one request or none of them; gives the boundary from which each is in force."""
        if not all(isinstance(name, str) and isinstance(sql, str) for name, sql in queries.items()):
            raise ForebayError("bad-usage", "queries' names and texts are strings",
                               hint='create_together({"clicks": "SELECT COUNT(*) FROM clicks [WINDOW 1 HOUR]"})')
        return requests.create_together(self.runtime, queries, replace)

    def change(self, name: str, action: str, plan: str | None = None) -> dict[str, Any]:
        """delete, pause, resume, pin (with a plan's name) or unpin a query."""
        if action not in ACTIONS or (plan is not None) != (action == "pin"):
            raise ForebayError("bad-usage", f"there is no change {action!r} {'with' if plan else 'without'} a plan",
                               hint=f"changes are {', '.join(ACTIONS)}; only pin has a plan")
        return self._shown(requests.change(self.runtime, name, action, plan))

    def synchronise(self) -> list[str]:
        """New files in queries/ become queries; what else differs there is told, not applied. Of new queries also
        where their join counts rows several times.
        """
        before = queries_at(self.runtime.ledger.all_changes())
        messages = [notice.message for notice in requests.synchronise(self.runtime)]
        new = [state for name, state in queries_at(self.runtime.ledger.all_changes()).items() if name not in before]
        for state in new[:MOST_LOOKED_AT]:
            repeated = repeats.repeated(self.loop.statistics, parsed(state.sql, self.runtime.catalog))
            messages += [f"queries/{state.name}.sql: {one.message}" for one in repeated if one.times is not None]
        return messages

    def plan(self) -> dict[str, Any]:
        """What `apply` would do now; nothing is changed."""
        return applying.plan(self.loop.chooser)

    def apply(self, adopt: str | Collection[str] = (), delete_others: bool = False) -> dict[str, Any]:
        """Makes the queries of queries/ those in force, by one request: creations, replacements and deletions.

        Of queries to `adopt`, which came from no file, the files are written; `delete_others` ends all that have none.
        """
        names = [adopt] if isinstance(adopt, str) else list(adopt)
        return applying.apply(self.loop.chooser, names, delete_others)

    def check(self) -> dict[str, Any]:
        """Refuses what is wrong in the pipeline's folder, as `run` and `apply` would; notes sources without files."""
        return applying.check(self.runtime)

    def query(self, name: str) -> dict[str, Any]:
        return self._shown(requests.show(self.runtime, name))

    def queries(self) -> list[dict[str, Any]]:
        return [self._shown(s) for s in requests.listed(self.runtime)]

    def result(self, name: str, at: Any = None, every: bool = False) -> Any:
        """The answer as a pandas DataFrame: at the last boundary, at one, or at every."""
        return _frame(self.table(name, at, every))

    def table(self, name: str, at: Any = None, every: bool = False) -> pa.Table:
        """The answer as an Arrow table."""
        return self.reader(name, at, every).read_all()

    def reader(self, name: str, at: Any = None, every: bool = False) -> pa.RecordBatchReader:
        """The answer as batches of rows, for one that need not fit into memory."""
        return answers.stream(self.runtime, name, _instant(at, "at"), every)

    def newest(self, name: str, boundaries: int) -> tuple[pa.Table, list[str]]:
        """The answers at the newest boundaries, and which of their columns are groups."""
        return series.newest(self.runtime, name, boundaries)

    def explain(self, query: str, **options: Any) -> dict[str, Any]:
        """Candidates, choice, tree and SQL of a query by name or text.

        A text is never one word: that is a name, known or refused.
        """
        if re.fullmatch(NAME, query):
            requests.show(self.runtime, query)
        return answers.explain(self.loop.chooser, query, **options)

    def plans(self, name: str) -> dict[str, Any]:
        """The pin, and the plan in force at each boundary so far."""
        return decisions.document(self.runtime, name)

    def stats(self) -> dict[str, Any]:
        """What is known of each stream and join, and how it was learnt."""
        return statistics_said.document(self.loop.statistics)

    def adapt(self) -> dict[str, Any]:
        """Takes statistics from the stream tables, where that is due, and decides on plans and query groups.

        A runner that is at work is not waited for.
        """
        document = adapting.adapt(self.runtime)
        self.loop.statistics.begin()
        return document

    def status(self) -> dict[str, Any]:
        """Whether the pipeline runs, waits, is stopped or has failed; how far its streams and answers are."""
        return status_of(self.runtime)

    def track(self) -> dict[str, Any]:
        """Writes what the ledger says of batches and plans into MLflow, once."""
        return tracking.track(self.runtime)

    def verify(self, name: str | None = None, engine: str = "duckdb") -> dict[str, Any]:
        """Recomputes answers by plain SQL over all rows, without plan or state: in DuckDB, and by Spark SQL what has no
        rule of `verify`'s own (or all, by engine "jvm"). Each query's `engine` says which.
        """
        return answers.verify(self.runtime, name, engine)

    def test(self, files: Sequence[str] = ()) -> dict[str, Any]:
        """Runs the tests of the folder, or of these files, without Spark, each in a warehouse of its own."""
        return cases.tested(self.runtime.pipeline, files)

    def release(self, boundary: Any, reason: str, until: Any = None,
                expectation: str | None = None) -> dict[str, Any]:
        """Lets a boundary pass that critical expectations have stopped, or all `until` another; the ledger keeps who
        and why.
        """
        last = None if until is None else _instant(until, "until")
        return releases.release(self.runtime, _instant(boundary, "boundary"), reason, until=last,
                                expectation=expectation)

    def expectations(self, docs: bool = False) -> dict[str, Any]:
        """Every expectation in force, by subject.

        With `docs` also the index of the data docs, made anew (None before the first boundary).
        """
        index = expect_report.docs(self.runtime, anew=True) if docs else None
        return {"subjects": expect_report.listed(self.runtime), "docs": index}

    def rebuild(self, name: str) -> rebuilding.Rebuilt:
        """Lets go of a query's state, which its next boundary makes anew, and makes the tables of its answers sound
        again.
        """
        return rebuilding.rebuild(self.runtime, name)

    def close(self) -> None:
        self.runtime.tasks.stop()

    def _shown(self, query_state: QueryState) -> dict[str, Any]:
        return requests.document(self.runtime, query_state, self.loop.sharer)


def _refused(report: Mapping[str, Any]) -> ForebayError:
    """What of an ingest could not be taken, and what was."""
    texts = []
    for refusal in report["refused"]:
        of = f"stream {refusal['stream']}" if "stream" in refusal else f"relation {refusal['relation']}"
        texts.append(f"{refusal['path']} of {of}: {refusal['reason']}")
    more = f" (and {len(texts) - MOST_SAID} more)" if len(texts) > MOST_SAID else ""
    taken = ", ".join(f"{name} {counts['rows'] + counts['late']:,} rows" for name, counts in report["streams"].items())
    return failed("not-taken", f"not taken in: {'; '.join(texts[:MOST_SAID])}{more}",
                  f"all else was taken in ({taken}); mend what is named, and ingest again")


def _instant(given: Any, name: str) -> Any:
    """Microseconds of what was given as a time; None stays None."""
    if given is None or isinstance(given, int):
        return given
    return show.micros(given.isoformat() if hasattr(given, "isoformat") else str(given), name)


def _frame(answer: pa.Table) -> Any:
    """Whole numbers stay whole: pandas would make floats of those beside a NULL, and round them."""
    import pandas as pd
    import pyarrow as pa

    exact = {
        getattr(pa, name)(): getattr(pd, f"{name.capitalize()}Dtype")() for name in ("int8", "int16", "int32", "int64")
    }
    frame = answer.to_pandas()
    for name in (f.name for f in answer.schema if f.type in exact and answer[f.name].null_count):
        frame[name] = answer[name].to_pandas(types_mapper=exact.get)
    return frame


__all__: Sequence[str] = ("Pipeline",)
