"""Statistics from the batches themselves: which batches are sampled, what was found, and what follows for a query.

No answer depends on any of it.
"""
from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from jobs.adapt import statistics_table
from jobs.batch.batch import Answer
from jobs.batch.orders import located
from jobs.batch.works import Context, QueryWork, context_of, state_folder
from jobs.engine import kernel, row_counts
from jobs.engine.sample import SampleOrder, SampleResult, take
from jobs.ingest import relations
from jobs.ledger.entries import Batch
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.storage import places, tables
from jobs.storage.tables import Table
from optimizer.errors import ForebayError
from optimizer.plan.lowering import Lowering
from optimizer.plan.membership import Range, inside
from optimizer.plan.model import default
from optimizer.plan.operators.join import group_columns
from optimizer.plan.sampling import Limits, sampling
from optimizer.plan.tree import state_sets
from optimizer.query.model import Input, Query
from optimizer.query.shape import shape
from optimizer.query.windows import SECOND
from optimizer.statistics.estimate import KEPT, assumed, changed
from optimizer.statistics.estimate import observed as estimated
from optimizer.statistics.estimate import recent
from optimizer.statistics.figures import inputs
from optimizer.statistics.model import QueryStatistics
from optimizer.statistics.samples import COMBINATIONS, HEAVY, KEYS, SPACE, InputSample, Sample

FIRST = 3                # samples of a query, or since the last change, before the rhythm below
EVERY = 5                # boundaries between two samples then
# How far beyond what is needed rows are still grouped, should there be fewer distinct values next time.
SPARE = 2.0
COLD_FILES = 2           # of a stream, newest, that a first look reads
COLD_ROWS = 100_000      # of each


class Statistics:
    """What one process knows of queries from samples of their batches; after a start as the ledger's table has them.

    `Statistics(pipe).observed("top", query)` is what is known of the query `top`, None before its first sample.
    """

    def __init__(self, pipe: OpenPipeline) -> None:
        self.pipe = pipe
        self._samples: dict[str, tuple[str, list[Sample]]] = {}      # by query: its text's digest, and newest first
        # By text of a query that never ran.
        self._first_looks: dict[str, tuple[tuple[int | None, ...], QueryStatistics]] = {}
        # By query, with the sample it rests on.
        self._observed: dict[str, tuple[Sample | None, QueryStatistics | None]] = {}

    def observed(self, name: str, query: Query) -> QueryStatistics | None:
        """What is known of a query from its batches so far, None before its first sample."""
        samples = self.samples(name, query)
        newest = samples[0] if samples else None
        if name not in self._observed or self._observed[name][0] is not newest:
            self._observed[name] = (newest, estimated(shape(query), samples, self.pipe.pipeline.batch))
        return self._observed[name][1]

    def samples(self, name: str, query: Query) -> list[Sample]:
        """The last ones, newest first."""
        text = digest(query)
        if name not in self._samples or self._samples[name][0] != text:
            self._samples[name] = (text, statistics_table.last(self.pipe, name, text))
        return self._samples[name][1]

    def first_look(self, query: Query) -> QueryStatistics:
        """Of a query that never ran: a look at the newest rows of its streams.

        What is assumed, where there are none yet or the kernel may not read them.
        """
        versions = tuple(_version(self.pipe, i) for i in query.inputs)
        if self._first_looks.get(query.text, ((),))[0] != versions:
            self._first_looks[query.text] = (versions, _first_look(self.pipe, query))
        return self._first_looks[query.text][1]

    def wanted(self, batch: Batch, works: Iterable[QueryWork]) -> list[SampleOrder]:
        """The samples that this batch takes. Whatever goes wrong here, there are none."""
        try:
            arrived: dict[str, int] = {}
            due = [work for work in works if self.is_due(batch, work, arrived)]
            return [sample for work in due for sample in self._wanted_of(batch, work)]
        except (ForebayError, tables.Broken, kernel.Error, OSError):
            return []

    def is_due(self, batch: Batch, work: QueryWork, arrived: dict[str, int]) -> bool:
        """Whether this batch is sampled: a query's first, every EVERYth, and any whose rows tell of a change.

        One to which nothing came is never sampled. `arrived` is filled with the rows that came to each stream.
        """
        streams = {i.source for i in work.query.inputs if i.is_stream}
        for stream in streams - arrived.keys():
            counts = row_counts.by_boundary(self.pipe.table(f"streams/{stream}"), *_span(self.pipe, batch))
            arrived[stream] = sum(rows for _, rows in counts)
        if not any(arrived[stream] for stream in streams):
            return False
        samples = self.samples(work.name, work.query)
        if not samples or len(recent(samples)) < FIRST:
            return True
        newest, length = samples[0], self.pipe.pipeline.batch
        seconds = len(batch.boundaries) * length / SECOND
        before = {i.source: sample.rows / (sample.seconds or newest.seconds) * seconds
                  for i, sample in zip(work.query.inputs, newest.inputs) if i.is_stream}
        has_changed = any(changed(arrived[stream], rows) for stream, rows in before.items())
        return has_changed or batch.boundaries[-1] - newest.at >= EVERY * length

    def _wanted_of(self, batch: Batch, work: QueryWork) -> list[SampleOrder]:
        pipe, query = self.pipe, work.query
        context = context_of(pipe)
        dialect = "spark" if work.plan.place == "jvm" else "duckdb"
        low = Lowering(shape(query), replace(work.plan, order=tuple(range(len(query.inputs)))), dialect)
        newest = next((s for s in self.samples(work.name, query)[:1] if s.dialect == dialect), None)
        wanted = []
        for i, declared in enumerate(query.inputs):
            version = None if declared.is_stream else batch.relation_versions[declared.source]
            if newest and version is not None and newest.inputs[i].version == version:
                continue
            limits = limited(newest, i) if newest and declared.is_stream else Limits()
            statement = sampling(low, i, pipe.pipeline.batch, *_span(pipe, batch), limits)
            stream = pipe.table(f"streams/{declared.source}") if declared.is_stream and dialect == "spark" else None
            files = () if stream else located(context, batch, replace(work, parts=1), statement.source, 0)[0]
            at = (stream.path, stream.version) if stream else None
            wanted.append(SampleOrder(work.name, i, statement, files, at))
        return wanted

    def keep(self, batch: Batch, answers: Iterable[Answer], taken: Sequence[SampleResult]) -> None:
        """After the commit: samples join those before them, here and in the ledger's table; losing them is harmless."""
        rows = []
        for answer in answers:
            query, name = answer.work.query, answer.work.name
            by_input = {t.input: t.sample for t in taken if t.query == name}
            sample = self._sample(batch, answer, by_input) if by_input and answer.failed is None else None
            if sample is not None:
                self._samples[name] = (digest(query), [sample, *self.samples(name, query)][:KEPT])
                observed = self.observed(name, query)
                assert observed is not None
                rows += statistics_table.rows(name, digest(query), sample, inputs(query, observed))
        if rows:
            try:
                statistics_table.append(self.pipe, rows)
            except (ForebayError, tables.Broken, kernel.Error, OSError):
                return

    def _sample(self, batch: Batch, answer: Answer, by_input: dict[int, InputSample | None]) -> Sample | None:
        """A relation that did not change is as it was sampled before."""
        work, before = answer.work, self.samples(answer.work.name, answer.work.query)
        samples = []
        for i, declared in enumerate(work.query.inputs):
            one = by_input[i] if i in by_input else before[0].inputs[i] if before else None
            if one is None:
                return None
            version, window = None, float(one.rows)
            if declared.is_stream:
                window = _window(self.pipe.table(f"streams/{declared.source}"), declared, batch.boundaries[-1])
            else:
                version = batch.relation_versions[declared.source]
            samples.append(replace(one, window=window, held=_held(context_of(self.pipe), work, i), version=version))
        dialect = "spark" if work.plan.place == "jvm" else "duckdb"
        groups, joined = _counted(answer)
        seconds = len(batch.boundaries) * self.pipe.pipeline.batch / SECOND
        return Sample(batch.boundaries[-1], seconds, tuple(samples), dialect, groups, joined)


def digest(query: Query) -> str:
    """Samples of another query of that name are not its."""
    return f"{zlib.crc32(query.text.encode()):08x}"


def _span(rt: OpenPipeline, batch: Batch) -> tuple[int, int]:
    return batch.boundaries[0] - rt.pipeline.batch, batch.boundaries[-1]


def limited(before: Sample, i: int) -> Limits:
    """Rows of values that would not be kept need not be grouped.

    Those are grouped as far as the last sample reached, and somewhat further.
    """
    mine = before.inputs[i]
    return Limits(_limit(mine.combinations.below, len(mine.combinations.counts), COMBINATIONS),
                  tuple((c, _limit(s.below, len(s.counts), KEYS)) for c, s in mine.keys.items()),
                  tuple((c, frequent(before, c)) for c in mine.keys))


def frequent(before: Sample, c: int) -> tuple[int, ...]:
    """Keys with the largest shares of any input's rows.

    They are watched on all inputs, so that each tells of the others' heavy keys.
    """
    shares: dict[int, float] = {}
    for one in before.inputs:
        for h, (n, _) in ({**one.keys[c].counts, **one.keys[c].extra} if c in one.keys else {}).items():
            shares[h] = max(shares.get(h, 0.0), n / max(one.passing, 1))
    return tuple(sorted(sorted(shares, key=lambda h: -shares[h])[:HEAVY]))


def _limit(below: int, found: int, wanted: int) -> int:
    return SPACE if below == SPACE else min(SPACE, int(below * SPARE * wanted / max(found, 1)))


def _window(table: Table, declared: Input, t: int) -> float:
    """Rows in the window at t; no row that counts by then is of a later time."""
    assert declared.window is not None and declared.event_time is not None
    wanted = inside(declared.window, t)
    return _within(table, declared.event_time, replace(wanted, until=min(wanted.until, t)))


def _within(table: Table, stamp: str, wanted: Range) -> float:
    """Rows in a range by the files' bounds: of a file that lies partly in it, the part that its times let expect."""
    total = 0.0
    for f in table.files():
        low, high = f.low.get(stamp, wanted.since), f.high.get(stamp, wanted.until)
        if f.low.get("_boundary", wanted.upto) <= wanted.upto:
            part = min(high + 1, wanted.until) - max(low, wanted.since)
            total += f.rows * min(max(part / (high + 1 - low), 0.0), 1.0)
    return total


def _held(context: Context, work: QueryWork, i: int) -> int | None:
    """Distinct combinations in the window, where running totals hold one row of each."""
    low = Lowering(shape(work.query), work.plan)
    kept = next((s for s in state_sets(low) if s.kind == "totals" and s.input == i), None)
    return sum(f.rows for f in context.table(state_folder(work, kept.name)).files()) if kept else None


def _counted(answer: Answer) -> tuple[float | None, float | None]:
    """Groups of the answer at its last boundary, before HAVING, and joined rows behind them."""
    if answer.partials is None:
        return None, None
    keys = group_columns(shape(answer.work.query))
    con = kernel.shared()
    con.register("computed", answer.partials)
    try:
        merged = ("SELECT sum(c) AS n FROM computed WHERE _t = "
                  f"{answer.work.due[-1]}{' GROUP BY ' + ', '.join(keys) if keys else ''}")
        groups, joined = con.execute(f"SELECT count(*), sum(n) FROM ({merged}) AS q WHERE n > 0").fetchall()[0]
        return float(groups), float(joined or 0)
    finally:
        con.close()


def _version(rt: OpenPipeline, declared: Input) -> int | None:
    if not declared.is_stream:
        return relations.versions(rt.warehouse, rt.pipeline.relations).get(declared.source)
    path = f"streams/{declared.source}"
    return rt.table(path).refresh().version if tables.exists(places.join(rt.pipeline.warehouse, path)) else None


def _first_look(rt: OpenPipeline, query: Query) -> QueryStatistics:
    asked_shape = shape(query)
    low = Lowering(asked_shape, default(query))
    found = [_cold(rt, low, i) for i in range(len(query.inputs))]
    whole = [f for f in found if f is not None]
    if len(whole) < len(found) or not any(f.rows for f, i in zip(whole, query.inputs) if i.is_stream):
        return assumed(asked_shape, rt.pipeline.batch)
    last = max(
        f.high.get("_boundary", 0) for i in query.inputs if i.is_stream
        for f in rt.table(f"streams/{i.source}").files())
    sample = Sample(last, rt.pipeline.batch / SECOND, tuple(whole))
    known = estimated(asked_shape, [sample], rt.pipeline.batch)
    assert known is not None
    return known


def _cold(rt: OpenPipeline, low: Lowering, i: int) -> InputSample | None:
    declared = low.shape.query.inputs[i]
    if not declared.is_stream:
        version = relations.versions(rt.warehouse, rt.pipeline.relations).get(declared.source)
        if version is None:
            return None
        file = relations.version_file(rt.warehouse, declared.source, version)
        path = rt.path("relations", declared.source, file.path)
        one = take(SampleOrder("", i, sampling(low, i, rt.pipeline.batch, -1, 0), (path,))).sample
        return None if one is None else replace(one, window=float(one.rows), version=version)
    return _cold_stream(rt, low, i, declared)


def _cold_stream(rt: OpenPipeline, low: Lowering, i: int, declared: Input) -> InputSample | None:
    path, stamp = f"streams/{declared.source}", declared.event_time or ""
    if not tables.exists(places.join(rt.pipeline.warehouse, path)) or rt.table(path).refresh().features:
        return None
    files = sorted((f for f in rt.table(path).files() if stamp in f.high and "_boundary" in f.high),
                   key=lambda f: f.high[stamp])[-COLD_FILES:]
    if not files:
        return None
    upto, since, until = max(f.high["_boundary"] for f in files), min(
        f.low[stamp] for f in files), max(f.high[stamp] for f in files) + 1
    names = tuple(places.join(rt.table(path).path, f.path) for f in files)
    one = take(SampleOrder("", i, sampling(low, i, rt.pipeline.batch, -1, upto), names, most=COLD_ROWS)).sample
    if one is None or not one.rows:
        return None
    there = _within(rt.table(path), stamp, Range(-1, upto, since, until))
    return replace(one, seconds=max(until - since, rt.pipeline.batch) / SECOND * one.rows / there,
                   window=_window(rt.table(path), declared, upto))
