"""From samples of a query's last batches to the statistics that plans are priced with: unions of samples, weighted by
age; numbers only.

Only samples since the last change are used: an old one that contradicts a newer one says nothing of the future.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from math import exp, log, prod, sqrt

from optimizer.query.model import Input
from optimizer.query.shape import Shape
from optimizer.query.windows import SECOND
from optimizer.statistics.cardinality import population
from optimizer.statistics.model import InputStatistics, KeyStatistics, QueryStatistics
from optimizer.statistics.samples import COMBINATIONS, HEAVY, KEYS, InputSample, Sample, Smallest, united

KEPT = 8               # samples of a query that are merged at most
HALF_LIFE = 20.0       # boundaries after which a sample weighs half
CHANGE = 1.5           # factor between two samples that is a change, beyond their noise
NOISE = 4.0            # standard deviations of a count that are noise
RATE, VALUES, DAY = 1_000.0, 1_000.0, 86_400.0      # assumed: rows a second, distinct values, seconds of history
FREQUENT = 4.0         # times the average key's rows that make a key heavy
DOUBT = 4.0            # repeated combinations of a key before its own number outweighs the average's


def observed(query_shape: Shape, samples: Sequence[Sample], batch: int) -> QueryStatistics | None:
    """`samples`, newest first, of boundaries `batch` microseconds apart; None without any."""
    if not samples:
        return None
    used = recent(samples)
    weights = [0.5 ** ((used[0].at - s.at) / batch / HALF_LIFE) for s in used]
    inputs = tuple(_input(query_shape, i, used, weights) for i in range(len(query_shape.query.inputs)))
    classes = tuple(_class(query_shape, c, used, weights, inputs) for c in range(len(query_shape.keys)))
    rows = sum(sample.inputs[i].rows
               for i, declared in enumerate(query_shape.query.inputs)
               for sample in (used if declared.is_stream else used[:1]))
    groups = next((sample.groups for sample in used if sample.groups is not None), None) or _groups_of_inputs(used)
    return QueryStatistics(inputs, classes, batch=batch / SECOND, groups=max(groups or 1.0, 1.0),
                           fanout=_fanout(used[0], inputs), weight=float(rows), at=used[0].at)


def _groups_of_inputs(used: Sequence[Sample]) -> float | None:
    """Groups where no answer has counted them: every combination of the inputs' own (paper A, equation 13)."""
    newest = next((s for s in used if any(i.groups is not None for i in s.inputs)), None)
    if newest is None:
        return None
    return prod(max(distinct_in(i.groups, i.passing), 1.0) for i in newest.inputs if i.groups is not None)


def assumed(query_shape: Shape, batch: int) -> QueryStatistics:
    """The statistics of a query before its first sample: default rates, and keys that all have equally many rows."""
    def usual_input(declared: Input) -> InputStatistics:
        window = declared.window
        rate = RATE if window else 0.0
        rows = rate * (window.range / SECOND or DAY) if window else VALUES
        return InputStatistics(rate, rows, 1.0, VALUES)

    def even_key(inputs: frozenset[int]) -> KeyStatistics:
        shares = {i: (1 / VALUES,) for i in inputs}
        return KeyStatistics(VALUES, 1 / VALUES, shares, shares)

    return QueryStatistics(tuple(map(usual_input, query_shape.query.inputs)),
                           tuple(map(even_key, query_shape.joined_inputs())), batch / SECOND)


def recent(samples: Sequence[Sample]) -> list[Sample]:
    """The newest sample and those before it, back to the last change."""
    newest = samples[0]
    return list(takewhile(lambda s: alike(newest, s), samples[:KEPT]))


def alike(newer: Sample, older: Sample) -> bool:
    """Whether rates, selectivities and distinct counts are the same up to noise."""
    if newer.dialect != older.dialect or len(newer.inputs) != len(older.inputs):
        return False
    return all(_same(a, b, a.seconds or newer.seconds, b.seconds or older.seconds)
               for a, b in zip(newer.inputs, older.inputs))


def _same(a: InputSample, b: InputSample, seconds: float, before: float) -> bool:
    """A relation is the same by its version.

    Streams are compared by what came in the shorter of both times; distinct counts where these are alike.
    """
    if a.version is not None or a.version != b.version:
        return a.version == b.version
    x, y = min(seconds, before) / seconds, min(seconds, before) / before
    if changed(a.rows * x, b.rows * y) or changed(a.passing * x, b.passing * y):
        return False
    alike_long = not changed(a.passing, b.passing)
    return not (alike_long and changed(distinct_in(a.combinations, a.passing), distinct_in(b.combinations, b.passing)))


def changed(count: float, before: float) -> bool:
    """Whether two counts differ by more than CHANGE and their noise."""
    most, least = max(count, before), min(count, before)
    return most > CHANGE * least + NOISE * sqrt(most)


def distinct_in(sample: Smallest, rows: float) -> float:
    """Distinct values in so many rows: by the mean rows of the sample's values, or by the span of their hashes,
    whichever errs less.

    The span's relative error is 1/√k (Beyer et al., SIGMOD 2007), that of rows over the mean multiplicity is the
    multiplicities' spread over its mean, /√k.
    """
    counts = [n for n, _ in sample.counts.values()]
    if sample.complete or not counts:
        return float(len(counts)) if sample.complete else rows
    mean = sum(counts) / len(counts)
    spread = sqrt(sum((n - mean) ** 2 for n in counts) / len(counts)) / mean
    return rows / mean if spread < 1 else len(counts) / sample.share


def _input(query_shape: Shape, i: int, used: Sequence[Sample], weights: Sequence[float]) -> InputStatistics:
    window, samples = query_shape.query.inputs[i].window, [sample.inputs[i] for sample in used]
    newest = samples[0]
    if window is None:
        selectivity = newest.passing / newest.rows if newest.rows else 1.0
        return InputStatistics(0.0, float(newest.rows), selectivity, _combinations(samples[:1], newest.rows))
    rows = sum(w * s.rows for w, s in zip(weights, samples))
    rate = rows / sum(w * (s.seconds or whole.seconds) for w, s, whole in zip(weights, samples, used))
    selectivity = sum(w * s.passing for w, s in zip(weights, samples)) / rows if rows else 1.0
    late = sum(w * s.late for w, s in zip(weights, samples)) / rows if rows else 0.0
    # A landmark window holds what there is; another one will hold what comes in its range, at this rate.
    in_window = max(newest.window, 0.0) if window.kind == "landmark" else rate * window.range / SECOND
    return InputStatistics(rate, in_window, selectivity, _combinations(samples, newest.window * selectivity),
                           min(late, 1.0), max(newest.window, 0.0))


def _combinations(samples: Sequence[InputSample], window: float) -> float:
    """From what state holds of a window, where that is more rows than the samples together; else from their union."""
    rows = sum(sample.passing for sample in samples)
    if samples[0].held is not None and window >= rows:
        return population(window, samples[0].held)
    return population(rows, distinct_in(united([sample.combinations for sample in samples], COMBINATIONS), rows))


def _fanout(newest: Sample, inputs: Sequence[InputStatistics]) -> float | None:
    """Rows of the join as counted, brought from the windows as they were to full ones."""
    windows = [sample.window for sample in newest.inputs]
    if newest.joined is None or any(rows <= 0 for rows in windows):
        return None
    return newest.joined * prod(full.rows / rows for full, rows in zip(inputs, windows))


def _class(query_shape: Shape, c: int, used: Sequence[Sample], weights: Sequence[float],
           inputs: Sequence[InputStatistics]) -> KeyStatistics:
    sides: dict[int, _Side] = {}
    for i in sorted(query_shape.joined_inputs()[c]):
        samples = [sample.inputs[i] for sample in (used if query_shape.query.inputs[i].is_stream else used[:1])]
        keys_by_sample = [sample.keys.get(c, Smallest()) for sample in samples]
        sides[i] = _Side(keys_by_sample, [sample.passing for sample in samples], weights[:len(samples)])
    below = min(side.sample.below for side in sides.values())
    share = min(side.sample.share for side in sides.values())
    frequent = _frequent(list(sides.values())) if share < 1 else []
    hashes = {h for side in sides.values() for h in side.sample.counts if h < below}
    sampled = sorted(hashes - set(frequent))
    if not sampled and not frequent:
        absent = {i: (0.0,) for i in sides}
        return KeyStatistics(1.0, 1.0, absent, absent)
    keys = max([len(frequent) + len(sampled) / share, *(side.keys for side in sides.values()), 1.0])
    heavy = _of(frequent, float(len(frequent)), 1.0, sides, inputs) if frequent else None
    return replace(_of(sampled or [-1], keys, share, sides, inputs), heavy=heavy)


def _of(hashes: Sequence[int], keys: float, share: float, sides: dict[int, _Side],
        inputs: Sequence[InputStatistics]) -> KeyStatistics:
    """The shares of these keys on each input."""
    rows: dict[int, tuple[float, ...]] = {}
    combinations: dict[int, tuple[float, ...]] = {}
    for i, side in sides.items():
        rows[i] = tuple(map(side.rows, hashes))
        combinations[i] = tuple(side.combinations(h, inputs[i].combinations) for h in hashes)
    return KeyStatistics(max(keys, 1.0), share, rows, combinations)


class _Side:
    """One input's samples of a join key's values, as shares of the input's rows.

    A sample says nothing of a value outside it, unless that was watched or frequent.
    """

    def __init__(self, parts: Sequence[Smallest], passing: Sequence[int], weights: Sequence[float]) -> None:
        self.sample = united(parts, KEYS)
        self.parts = list(zip(parts, passing, weights))
        self.total = sum(passing)
        self.longest = max(passing, default=0)      # rows of parts of a window are no measure for those of a batch
        self.keys = population(self.total, distinct_in(self.sample, self.total)) if self.total else 1.0
        self.weighed: dict[int, float] = {}      # rows, of keys that all samples tell of
        for part, _, weight in self.parts:
            for h, (n, _) in part.counts.items():
                self.weighed[h] = self.weighed.get(h, 0.0) + weight * n
        self.all_weighed = sum(w * n for _, n, w in self.parts)

    def rows(self, h: int) -> float:
        """The key's share, by the samples that tell of it; as the average key's if none does."""
        if h < self.sample.below and self.all_weighed:
            return self.weighed.get(h, 0.0) / self.all_weighed
        all_weighed = weighed = 0.0
        for part, passing, weight in self.parts:
            if h < part.below or h in part.extra:
                all_weighed += weight * passing
                weighed += weight * _count(part, h)[0]
        return weighed / all_weighed if all_weighed else 1.0 / max(self.keys, 1.0)

    def combinations(self, h: int, of: float) -> float:
        """Its share of all `of` combinations, from how often its own came again within a batch.

        As its share of the rows where few did.
        """
        share = self.rows(h)
        # of a key in the sample that never came again, there is nothing to see
        rows, different = self.sample.counts.get(h) or (0, 1)
        if rows == different or share <= 0:
            return share
        counts_with_length = [(count, passing) for part, passing, _ in self.parts if (count := _count(part, h))[0]]
        of_longest = [count for count, passing in counts_with_length if 2 * passing >= self.longest]
        counts = of_longest or [count for count, _ in counts_with_length]
        rows, different = sum(n for n, _ in counts), sum(m for _, m in counts)
        repeated = rows - different
        if repeated == 0:
            return share
        trust = repeated / (repeated + DOUBT)
        combinations = population(rows / len(counts), different / len(counts))
        return min(exp(trust * log(combinations / of) + (1 - trust) * log(share)), 1.0)

    def frequent(self) -> dict[int, float]:
        """Keys with more rows than FREQUENT average ones beyond noise, and their share."""
        keys = {
            h for part, passing, _ in self.parts for counts in (part.counts, part.extra) for h, (n, _) in counts.items()
            if n > FREQUENT * passing / self.keys + NOISE * sqrt(n)
        }
        return {h: self.rows(h) for h in keys}


def _count(part: Smallest, h: int) -> tuple[int, int]:
    """Rows of a key, and distinct combinations in them."""
    return part.counts.get(h) or part.extra.get(h, (0, 0))


def _frequent(sides: Sequence[_Side]) -> list[int]:
    """Keys that are heavy on any input: too few to be met by a sample of hashes, too many rows to be missed."""
    best: dict[int, float] = {}
    for side in sides:
        for h, share in side.frequent().items():
            best[h] = max(best.get(h, 0.0), share)
    return sorted(sorted(best, key=lambda h: -best[h])[:HEAVY])
