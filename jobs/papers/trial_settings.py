"""The settings of `bench model-error`: rates, windows, keys, groups, skew, selections, one to four streams.

Small enough to run every plan of each for real.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jobs.calibrate.trial import TrialSetting, TrialStream

EXTREMES = "s1.g, COUNT(*) AS n, SUM(s1.a) AS x, SUM(s2.a) AS y, MIN(s2.a) AS lo, MAX(s1.a) AS hi"
STAR3, STAR4 = "s1.j = s2.j AND s2.j = s3.j", "s1.j = s2.j AND s2.j = s3.j AND s3.j = s4.j"
CHAIN3, CHAIN4 = "s1.j = s2.j AND s2.k = s3.k", "s1.j = s2.j AND s2.k = s3.k AND s3.g = s4.g"
ONE = "s1.g, COUNT(*) AS n, SUM(s1.a) AS x"
BOTH = "s1.g, s2.g AS g2, COUNT(*) AS n, SUM(s1.a) AS x"


def sliding(rate: int, seconds: int, keys: int = 100, groups: int = 10, skew: float = 1.0) -> TrialStream:
    return TrialStream(rate, f"{seconds} SECONDS", seconds, keys, groups, skew)


def settings() -> tuple[TrialSetting, ...]:
    return (*_one(), *_rates(), *_shapes(), *_windows(), *_three(), *_four())


def quick() -> tuple[TrialSetting, ...]:
    """Every seventh."""
    return settings()[::7]


def _one() -> Iterator[TrialSetting]:
    for rate, seconds, groups in ((2_000, 20, 10), (10_000, 60, 10), (10_000, 120, 5_000), (40_000, 60, 100)):
        yield TrialSetting(f"one stream, {rate}/s, {seconds} s, {groups} groups",
                           (sliding(rate, seconds, 100, groups),), ONE, "")


def _rates() -> Iterator[TrialSetting]:
    """Rates against windows against keys, alike on both streams."""
    for rate, seconds in ((500, 30), (2_000, 60), (10_000, 30), (10_000, 120), (20_000, 60)):
        for keys, groups in ((50, 5), (1_000, 150), (20_000, 20)):
            stream = sliding(rate, seconds, keys, groups)
            yield TrialSetting(f"{rate}/s, {seconds} s, {keys} keys, {groups} groups", (stream, stream))


def _shapes() -> Iterator[TrialSetting]:
    """Unlike streams, skew, selections, extremes, groups of both."""
    base, big, small = sliding(5_000, 60, 500, 50), sliding(20_000, 60, 500, 50), sliding(500, 60, 500, 50)
    yield TrialSetting("s1 40 × s2", (big, small))
    yield TrialSetting("s2 40 × s1", (small, big))
    yield TrialSetting("window of s1 12 × that of s2", (sliding(5_000, 120, 500, 50), sliding(5_000, 10, 500, 50)))
    yield TrialSetting("window of s2 12 × that of s1", (sliding(5_000, 10, 500, 50), sliding(5_000, 120, 500, 50)))
    for skew in (2.0, 4.0):
        yield TrialSetting(f"skew {skew:g} on both", (replace(base, skew=skew), replace(base, skew=skew)))
        yield TrialSetting(f"skew {skew:g} on s1", (replace(base, skew=skew), base))
    for least in (900, 990):
        yield TrialSetting(f"s1 selects {1000 - least} of 1000", (base, base), also=f"s1.a >= {least}")
        yield TrialSetting(f"s2 selects {1000 - least} of 1000", (base, base), also=f"s2.a >= {least}")
    yield TrialSetting("both select 20 of 1000", (big, big), also="s1.a >= 980 AND s2.a >= 980")
    for stream in (base, big, sliding(10_000, 120, 1_000, 150)):
        yield TrialSetting(f"extremes, {stream.rate}/s, {stream.reach} s", (stream, stream), EXTREMES)
    for keys, groups in ((100, 10), (1_000, 30), (5_000, 100)):
        stream = sliding(5_000, 60, keys, groups)
        yield TrialSetting(f"groups of both, {keys} keys, {groups} groups each", (stream, stream), BOTH,
                           group="s1.g, s2.g")
    yield TrialSetting("5000 groups", (sliding(5_000, 60, 500, 5_000), base))
    yield TrialSetting("no groups", (base, base), "COUNT(*) AS n, SUM(s1.a) AS x, SUM(s2.a) AS y", group="")
    yield TrialSetting("groups are the key", (base, base), "s1.j, COUNT(*) AS n, SUM(s2.a) AS y", group="s1.j")


def _windows() -> Iterator[TrialSetting]:
    """Tumbling, hopping, landmark, and mixed."""
    for rate, keys in ((2_000, 100), (10_000, 1_000)):
        tumbling, hopping = TrialStream(rate, "20 SECONDS TUMBLING", 20, keys,
                                        20), TrialStream(rate, "60 SECONDS SLIDE 5 SECONDS", 60, keys, 20)
        landmark = TrialStream(rate, "UNTIL NOW", 60, keys, 20)
        yield TrialSetting(f"tumbling, {rate}/s", (tumbling, tumbling))
        yield TrialSetting(f"tumbling, {rate}/s, every 5 s", (tumbling, tumbling), every="5 SECONDS")
        yield TrialSetting(f"hopping, {rate}/s", (hopping, hopping))
        yield TrialSetting(f"landmark, {rate}/s", (landmark, landmark))
        yield TrialSetting(f"landmark and sliding, {rate}/s", (landmark, sliding(rate, 30, keys, 20)))


def _three() -> Iterator[TrialSetting]:
    for rate, keys in ((100, 50), (500, 500), (2_000, 5_000)):
        stream = sliding(rate, 30, keys, 20)
        yield TrialSetting(f"three in a star, {rate}/s, {keys} keys", (stream, stream, stream), joins=STAR3)
        yield TrialSetting(f"three in a chain, {rate}/s, {keys} keys", (stream, stream, stream), joins=CHAIN3)
    yield TrialSetting("three, s3 10 × the others",
                       (sliding(300, 30, 300, 10), sliding(300, 30, 300, 10), sliding(3_000, 30, 300, 10)), joins=STAR3)
    yield TrialSetting("three, s1 10 × the others",
                       (sliding(3_000, 30, 300, 10), sliding(300, 30, 300, 10), sliding(300, 30, 300, 10)), joins=STAR3)
    yield TrialSetting("three, s2 selects 20 of 1000", (sliding(1_000, 30, 300, 10),) * 3, joins=STAR3,
                       also="s2.a >= 980")


def _four() -> Iterator[TrialSetting]:
    for rate, keys in ((50, 50), (500, 1_000)):
        stream = sliding(rate, 20, keys, 20)
        yield TrialSetting(f"four in a star, {rate}/s, {keys} keys", (stream,) * 4, joins=STAR4)
    yield TrialSetting("four in a chain, 20/s", (sliding(20, 20, 100, 100),) * 4, joins=CHAIN4)
    yield TrialSetting("four, s4 10 × the others", (*(sliding(100, 20, 200, 20),) * 3, sliding(1_000, 20, 200, 20)),
                       joins=STAR4)
