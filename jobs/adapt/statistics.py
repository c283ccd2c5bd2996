"""Statistics from the batches themselves: which batches are sampled, what was found, and what follows for a query,
together with the last look at its windows (jobs.adapt.looks).

No answer depends on any of it.
"""
from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from jobs.adapt import adaptations, statistics_table
from jobs.batch.batch import Answer
from jobs.batch.orders import located
from jobs.batch.works import Context, QueryWork, context_of, state_folder
from jobs.engine import kernel, row_counts
from jobs.engine.sample import SampleOrder, SampleResult, take
from jobs.ingest import relations
from jobs.ledger.entries import Batch
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.storage import places, tables
from jobs.storage.tables import File, Table
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
        # By query, with the samples it rests on.
        self._observed: dict[str, tuple[list[Sample], QueryStatistics | None]] = {}
        self._looks: dict[tuple[str, str], Sample] | None = None      # None: not read yet

    def begin(self) -> None:
        """Before a run: another process may have looked at windows since the last one."""
        self._looks = None

    def observed(self, name: str, query: Query) -> QueryStatistics | None:
        """What is known of a query from its batches so far and from the last look, None before its first sample."""
        samples = self._merged(name, query)
        known = self._observed.get(name)
        if known is None or len(known[0]) != len(samples) or any(a is not b for a, b in zip(known[0], samples)):
            self._observed[name] = (samples, self._estimated(name, query, samples))
        return self._observed[name][1]

    def _estimated(self, name: str, query: Query, samples: list[Sample]) -> QueryStatistics | None:
        """Of a look that contradicts itself, as a damaged row may, nothing is taken."""
        try:
            return estimated(shape(query), samples, self.pipe.pipeline.batch)
        except (ForebayError, LookupError, ValueError, ArithmeticError):
            return estimated(shape(query), self.samples(name, query), self.pipe.pipeline.batch)

    def look(self, name: str, query: Query) -> Sample | None:
        """The last look at the windows of a query."""
        if self._looks is None:
            self._looks = statistics_table.looks(self.pipe) if adaptations.exist(self.pipe) else {}
        look = self._looks.get((name, digest(query)))
        return look if look is not None and len(look.inputs) == len(query.inputs) else None

    def _merged(self, name: str, query: Query) -> list[Sample]:
        """Samples of batches after the last look, which holds what those before it tell, and the look itself.

        The newest of a batch stays in any case: it alone knows what its plan counted. All stay beside a look that could
        read fewer rows than they have.
        """
        samples, look = self.samples(name, query), self.look(name, query)
        if look is None or samples and samples[0].dialect != look.dialect:
            return samples
        if sum(_stream_rows(query, sample) for sample in samples) > _stream_rows(query, look):
            return [*samples[:KEPT - 1], look]
        newer = [sample for sample in samples if sample.at > look.at][:KEPT - 1]
        return [*(newer or samples[:1]), look]

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
        pipe = self.pipe
        read_relations = [i.source for i in query.inputs if not i.is_stream]
        of_relations = relations.versions(pipe.warehouse, read_relations) if read_relations else {}
        versions: tuple[int | None, ...] = ()      # of the tables read; None where there is none
        for i in query.inputs:
            if not i.is_stream:
                versions += (of_relations.get(i.source),)
            elif tables.exists(pipe.path("streams", i.source)):
                versions += (pipe.table(f"streams/{i.source}").refresh().version,)
            else:
                versions += (None,)
        if self._first_looks.get(query.text, ((),))[0] != versions:
            self._first_looks[query.text] = (versions, _first_look(pipe, query))
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

    def keep(self, batch: Batch, answers: Iterable[Answer], results: Sequence[SampleResult]) -> None:
        """After the commit: samples join those before them, here and in the ledger's table; losing them is harmless."""
        rows = []
        for answer in answers:
            query, name = answer.work.query, answer.work.name
            by_input = {result.input: result.sample for result in results if result.query == name}
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
            last_sample = before[0].inputs[i] if before else None
            sample = by_input.get(i, last_sample)
            if sample is None:
                return None
            version, window = None, float(sample.rows)
            if declared.is_stream:
                window = window_rows(self.pipe.table(f"streams/{declared.source}"), declared, batch.boundaries[-1])
            else:
                version = batch.relation_versions[declared.source]
            held = _rows_of_totals(context_of(self.pipe), work, i)
            samples.append(replace(sample, window=window, held=held, version=version))
        dialect = "spark" if work.plan.place == "jvm" else "duckdb"
        groups, joined = _groups_and_joined_rows(answer)
        seconds = len(batch.boundaries) * self.pipe.pipeline.batch / SECOND
        return Sample(batch.boundaries[-1], seconds, tuple(samples), dialect, groups, joined)


def _stream_rows(query: Query, sample: Sample) -> int:
    """Rows of streams behind a sample."""
    return sum(one.rows for one, declared in zip(sample.inputs, query.inputs) if declared.is_stream)


def digest(query: Query) -> str:
    """A short name of the query's text: samples of another query of that name do not count for it."""
    return f"{zlib.crc32(query.text.encode()):08x}"


def _span(pipe: OpenPipeline, batch: Batch) -> tuple[int, int]:
    return batch.boundaries[0] - pipe.pipeline.batch, batch.boundaries[-1]


def limited(before: Sample, i: int) -> Limits:
    """How far the next sample groups rows: as far as the last one reached, and somewhat further.

    Rows of values beyond would not be kept, so they need not be grouped.
    """
    sample = before.inputs[i]
    combinations = _limit(sample.combinations.below, len(sample.combinations.counts), COMBINATIONS)
    groups = SPACE
    if sample.groups is not None:
        groups = _limit(sample.groups.below, len(sample.groups.counts), COMBINATIONS)
    limit_by_key = tuple((c, _limit(values.below, len(values.counts), KEYS)) for c, values in sample.keys.items())
    return Limits(combinations, limit_by_key, tuple((c, frequent(before, c)) for c in sample.keys), groups)


def frequent(before: Sample, c: int) -> tuple[int, ...]:
    """Hashes of the keys with the largest shares of any input's rows.

    They are watched on all inputs, so that each sample tells of the heavy keys of the others.
    """
    shares: dict[int, float] = {}
    for sample in before.inputs:
        if c in sample.keys:
            for key, (count, _) in {**sample.keys[c].counts, **sample.keys[c].extra}.items():
                shares[key] = max(shares.get(key, 0.0), count / max(sample.passing, 1))
    return tuple(sorted(sorted(shares, key=lambda key: -shares[key])[:HEAVY]))


def _limit(below: int, count: int, wanted: int) -> int:
    """Where `count` values had hashes below `below`: the hash below which somewhat more than `wanted` will be."""
    return SPACE if below == SPACE else min(SPACE, int(below * SPARE * wanted / max(count, 1)))


def window_rows(table: Table, declared: Input, t: int) -> float:
    """Rows in the window at t; no row that counts by then is of a later time."""
    assert declared.window is not None and declared.event_time is not None
    times = inside(declared.window, t)
    return rows_in(table.files(), declared.event_time, replace(times, until=min(times.until, t)))


def rows_in(files: Iterable[File], stamp: str, times: Range) -> float:
    """Rows in a range, by the bounds of files; a file that lies partly in it counts by the share of its times."""
    total = 0.0
    for file in files:
        low, high = file.low.get(stamp, times.since), file.high.get(stamp, times.until)
        if file.low.get("_boundary", times.upto) <= times.upto:
            part = min(high + 1, times.until) - max(low, times.since)
            total += file.rows * min(max(part / (high + 1 - low), 0.0), 1.0)
    return total


def _rows_of_totals(context: Context, work: QueryWork, i: int) -> int | None:
    """Distinct combinations in the window, where running totals hold one row of each."""
    for state_set in state_sets(Lowering(shape(work.query), work.plan)):
        if state_set.kind == "totals" and state_set.input == i:
            return sum(file.rows for file in context.table(state_folder(work, state_set.name)).files())
    return None


def _groups_and_joined_rows(answer: Answer) -> tuple[float | None, float | None]:
    """Groups of the answer at its last boundary, before HAVING, and joined rows behind them."""
    if answer.large is not None:
        at_last = answer.large.handed_over.get((answer.work.due[-1],))
        return float(answer.large.groups), at_last[-1][0] if at_last else 0.0
    if answer.partials is None:
        return None, None
    keys = group_columns(shape(answer.work.query))
    con = kernel.shared()
    con.register("computed", answer.partials)
    try:
        grouping = f" GROUP BY {', '.join(keys)}" if keys else ""
        merged = f"SELECT sum(c) AS n FROM computed WHERE _t = {answer.work.due[-1]}{grouping}"
        groups, joined = con.execute(f"SELECT count(*), sum(n) FROM ({merged}) AS q WHERE n > 0").fetchall()[0]
        return float(groups), float(joined or 0)
    finally:
        con.close()


def _first_look(pipe: OpenPipeline, query: Query) -> QueryStatistics:
    query_shape = shape(query)
    low = Lowering(query_shape, default(query))
    samples, stream_rows, last = list[InputSample](), 0, 0
    for i, declared in enumerate(query.inputs):
        look = _look_at_stream if declared.is_stream else _look_at_relation
        sample = look(pipe, low, i, declared)
        if sample is not None:
            samples.append(sample)
            stream_rows += sample.rows if declared.is_stream else 0
    if len(samples) < len(query.inputs) or not stream_rows:
        return assumed(query_shape, pipe.pipeline.batch)
    for declared in query.inputs:
        if declared.is_stream:
            files = pipe.table(f"streams/{declared.source}").files()
            last = max([last, *(file.high.get("_boundary", 0) for file in files)])
    sample_of_all = Sample(last, pipe.pipeline.batch / SECOND, tuple(samples))
    observed = estimated(query_shape, [sample_of_all], pipe.pipeline.batch)
    assert observed is not None
    return observed


def _look_at_relation(pipe: OpenPipeline, low: Lowering, i: int, declared: Input) -> InputSample | None:
    version = relations.versions(pipe.warehouse, pipe.pipeline.relations).get(declared.source)
    if version is None:
        return None
    file = relations.version_file(pipe.warehouse, declared.source, version)
    path = pipe.path("relations", declared.source, file.path)
    sample = take(SampleOrder("", i, sampling(low, i, pipe.pipeline.batch, -1, 0), (path,))).sample
    return None if sample is None else replace(sample, window=float(sample.rows), version=version)


def _look_at_stream(pipe: OpenPipeline, low: Lowering, i: int, declared: Input) -> InputSample | None:
    path, stamp = f"streams/{declared.source}", declared.event_time or ""
    if not tables.exists(places.join(pipe.pipeline.warehouse, path)) or pipe.table(path).refresh().features:
        return None
    table = pipe.table(path)
    with_bounds = [file for file in table.files() if stamp in file.high and "_boundary" in file.high]
    files = sorted(with_bounds, key=lambda file: file.high[stamp])[-COLD_FILES:]
    if not files:
        return None
    upto = max(file.high["_boundary"] for file in files)
    since = min(file.low[stamp] for file in files)
    until = max(file.high[stamp] for file in files) + 1
    names = tuple(places.join(table.path, file.path) for file in files)
    sample = take(SampleOrder("", i, sampling(low, i, pipe.pipeline.batch, -1, upto), names, most=COLD_ROWS)).sample
    if sample is None or not sample.rows:
        return None
    rows_between = rows_in(table.files(), stamp, Range(-1, upto, since, until))
    return replace(sample, seconds=max(until - since, pipe.pipeline.batch) / SECOND * sample.rows / rows_between,
                   window=window_rows(table, declared, upto))
