"""From samples of a query's last batches to what the optimizer prices with (Observed): unions of samples, weighted by
age; numbers only.

Only samples since the last change are used: an old one that contradicts a newer one says nothing of the future.
"""
from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from math import exp, log, prod, sqrt

from optimizer.query.model import Input
from optimizer.query.shape import Shape
from optimizer.query.windows import SECOND
from optimizer.statistics.cardinality import population
from optimizer.statistics.observed import ClassObserved, InputObserved, Observed
from optimizer.statistics.samples import COMBINATIONS, HEAVY, KEYS, InputSample, Sample, Smallest, united

KEPT = 8               # samples of a query that are merged at most
HALF_LIFE = 20.0       # boundaries after which a sample weighs half
CHANGE = 1.5           # factor between two samples that is a change, beyond their noise
NOISE = 4.0            # standard deviations of a count that are noise
RATE, VALUES, DAY = 1_000.0, 1_000.0, 86_400.0      # assumed: rows a second, distinct values, seconds of history
FREQUENT = 4.0         # times the average key's rows that make a key heavy
DOUBT = 4.0            # repeated combinations of a key before its own number outweighs the average's


def observed(asked: Shape, samples: Sequence[Sample], batch: int) -> Observed | None:
    """`samples`, newest first, of boundaries `batch` microseconds apart; None without any."""
    if not samples:
        return None
    used = recent(samples)
    weights = [0.5 ** ((used[0].at - s.at) / batch / HALF_LIFE) for s in used]
    inputs = tuple(_input(asked, i, used, weights) for i in range(len(asked.query.inputs)))
    classes = tuple(_class(asked, c, used, weights, inputs) for c in range(len(asked.keys)))
    rows = sum(s.inputs[i].rows
               for i, declared in enumerate(asked.query.inputs)
               for s in (used if declared.is_stream else used[:1]))
    groups = next((s.groups for s in used if s.groups is not None), None)
    return Observed(inputs, classes, batch / SECOND, max(groups or 1.0, 1.0), _fanout(used[0], inputs), float(rows),
                    used[0].at)


def assumed(asked: Shape, batch: int) -> Observed:
    """What is taken where nothing was seen."""
    def one(declared: Input) -> InputObserved:
        window = declared.window
        rate = RATE if window else 0.0
        rows = rate * (window.range / SECOND or DAY) if window else VALUES
        return InputObserved(rate, rows, 1.0, VALUES)

    def alike(c: int) -> ClassObserved:
        even = {i: (1 / VALUES,) for i, _ in asked.keys[c]}
        return ClassObserved(VALUES, 1 / VALUES, even, even)

    return Observed(tuple(map(one, asked.query.inputs)), tuple(alike(c) for c in range(len(asked.keys))),
                    batch / SECOND)


def recent(samples: Sequence[Sample]) -> list[Sample]:
    """The newest sample and those before it that tell the same."""
    newest = samples[0]
    return list(takewhile(lambda s: alike(newest, s), samples[:KEPT]))


def alike(newer: Sample, older: Sample) -> bool:
    """Whether rates, selectivities and distinct counts are the same up to noise."""
    if newer.dialect != older.dialect or len(newer.inputs) != len(older.inputs):
        return False
    return all(
        _same(a, b, a.seconds or newer.seconds, b.seconds or older.seconds) for a, b in zip(newer.inputs, older.inputs))


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


def distinct_in(found: Smallest, rows: float) -> float:
    """Distinct values in so many rows. Of a sample the mean rows of its values, or the span of their hashes: whichever
    errs less.

    The span's relative error is 1/√k (Beyer et al., SIGMOD 2007), that of rows over the mean multiplicity is the
    multiplicities' spread over its mean, /√k.
    """
    counts = [n for n, _ in found.counts.values()]
    if found.complete or not counts:
        return float(len(counts)) if found.complete else rows
    mean = sum(counts) / len(counts)
    spread = sqrt(sum((n - mean) ** 2 for n in counts) / len(counts)) / mean
    return rows / mean if spread < 1 else len(counts) / found.share


def _input(asked: Shape, i: int, used: Sequence[Sample], weights: Sequence[float]) -> InputObserved:
    declared, found = asked.query.inputs[i], [s.inputs[i] for s in used]
    if not declared.is_stream:
        newest = found[0]
        return InputObserved(0.0, float(newest.rows), newest.passing / newest.rows if newest.rows else 1.0,
                             _combinations(found[:1], newest.rows))
    rows = sum(w * f.rows for w, f in zip(weights, found))
    rate = rows / sum(w * (f.seconds or s.seconds) for w, f, s in zip(weights, found, used))
    selectivity = sum(w * f.passing for w, f in zip(weights, found)) / rows if rows else 1.0
    late = sum(w * f.late for w, f in zip(weights, found)) / rows if rows else 0.0
    return InputObserved(rate, _window(declared, rate, found[0]), selectivity,
                         _combinations(found, found[0].window * selectivity), min(late, 1.0))


def _window(declared: Input, rate: float, newest: InputSample) -> float:
    """A landmark window holds what there is; another one will hold what comes in its range, at this rate."""
    window = declared.window
    assert window is not None
    return max(newest.window, 0.0) if window.kind == "landmark" else rate * window.range / SECOND


def _combinations(found: Sequence[InputSample], window: float) -> float:
    """From what state holds of a window, where that is more rows than the samples together; else from their union."""
    rows = sum(f.passing for f in found)
    if found[0].held is not None and window >= rows:
        return population(window, found[0].held)
    return population(rows, distinct_in(united([f.combinations for f in found], COMBINATIONS), rows))


def _fanout(newest: Sample, inputs: Sequence[InputObserved]) -> float | None:
    """Rows of the join as counted, brought from the windows as they were to full ones."""
    held = [s.window for s in newest.inputs]
    if newest.joined is None or any(h <= 0 for h in held):
        return None
    return newest.joined * prod(full.rows / h for full, h in zip(inputs, held))


def _class(asked: Shape, c: int, used: Sequence[Sample], weights: Sequence[float],
           inputs: Sequence[InputObserved]) -> ClassObserved:
    members = [i for i in range(len(asked.query.inputs)) if any(j == i for j, _ in asked.keys[c])]
    sides = {i: _side(asked, c, i, used, weights) for i in members}
    below = min(s.sample.below for s in sides.values())
    share = min(s.sample.share for s in sides.values())
    frequent = _frequent(list(sides.values())) if share < 1 else []
    sampled = sorted({h for s in sides.values() for h in s.sample.counts if h < below} - set(frequent))
    if not sampled and not frequent:
        return ClassObserved(1.0, 1.0, {i: (0.0,) for i in members}, {i: (0.0,) for i in members})
    keys = max([len(frequent) + len(sampled) / share, *(s.keys for s in sides.values()), 1.0])
    heavy = _of(frequent, float(len(frequent)), 1.0, sides, inputs) if frequent else None
    found = _of(sampled or [-1], keys, share, sides, inputs)
    return ClassObserved(found.keys, found.share, found.rows, found.combinations, heavy)


def _of(hashes: Sequence[int], keys: float, share: float, sides: dict[int, _Side],
        inputs: Sequence[InputObserved]) -> ClassObserved:
    rows = {i: tuple(s.rows(h) for h in hashes) for i, s in sides.items()}
    combinations = {i: tuple(s.combinations(h, inputs[i].combinations) for h in hashes) for i, s in sides.items()}
    return ClassObserved(max(keys, 1.0), share, rows, combinations)


class _Side:
    """One input's samples of a class, as shares of its rows.

    Not known of a key outside the sample unless it was watched or frequent.
    """

    def __init__(self, parts: Sequence[Smallest], passing: Sequence[int], weights: Sequence[float]) -> None:
        self.sample = united(parts, KEYS)
        self.parts = list(zip(parts, passing, weights))
        self.total = sum(passing)
        self.keys = population(self.total, distinct_in(self.sample, self.total)) if self.total else 1.0
        self.weighed: dict[int, float] = {}      # rows, of keys that all samples tell of
        for part, _, weight in self.parts:
            for h, (n, _) in part.counts.items():
                self.weighed[h] = self.weighed.get(h, 0.0) + weight * n
        self.known = sum(w * n for _, n, w in self.parts)

    def rows(self, h: int) -> float:
        """The key's share, by the samples that tell of it; as the average key's if none does."""
        if h < self.sample.below and self.known:
            return self.weighed.get(h, 0.0) / self.known
        known = weighed = 0.0
        for part, passing, weight in self.parts:
            if h < part.below or h in part.extra:
                known += weight * passing
                weighed += weight * _count(part, h)[0]
        return weighed / known if known else 1.0 / max(self.keys, 1.0)

    def combinations(self, h: int, of: float) -> float:
        """Its share of all `of` combinations, from how often its own came again within a batch.

        As its share of the rows where few did.
        """
        share = self.rows(h)
        # of a key in the sample that never came again, there is nothing to see
        n, m = self.sample.counts.get(h) or (0, 1)
        if n == m or share <= 0:
            return share
        seen = [c for part, _, _ in self.parts if (c := _count(part, h))[0]]
        n, m = sum(x for x, _ in seen), sum(y for _, y in seen)
        if n == m:
            return share
        trust = (n - m) / (n - m + DOUBT)
        own = population(n / len(seen), m / len(seen))
        return min(exp(trust * log(own / of) + (1 - trust) * log(share)), 1.0)

    def frequent(self) -> dict[int, float]:
        """Keys with more rows than FREQUENT average ones beyond noise, and their share."""
        found = {
            h for part, passing, _ in self.parts for side in (part.counts, part.extra) for h, (n, _) in side.items()
            if n > FREQUENT * passing / self.keys + NOISE * sqrt(n)
        }
        return {h: self.rows(h) for h in found}


def _count(part: Smallest, h: int) -> tuple[int, int]:
    return part.counts.get(h) or part.extra.get(h, (0, 0))


def _side(asked: Shape, c: int, i: int, used: Sequence[Sample], weights: Sequence[float]) -> _Side:
    found = [s.inputs[i] for s in (used if asked.query.inputs[i].is_stream else used[:1])]
    return _Side([f.keys.get(c, Smallest()) for f in found], [f.passing for f in found], weights[:len(found)])


def _frequent(sides: Sequence[_Side]) -> list[int]:
    """Keys that are heavy on any input: too few to be met by a sample of hashes, too many rows to be missed."""
    best: dict[int, float] = {}
    for side in sides:
        for h, share in side.frequent().items():
            best[h] = max(best.get(h, 0.0), share)
    return sorted(sorted(best, key=lambda h: -best[h])[:HEAVY])
