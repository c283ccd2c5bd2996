"""Paper B: what joining two time windows costs by nested loop (WNL) or hash (WHJ), and what each way of invalidation
leaves stale; tuples arrive in order.

The paper's text and its totals differ: "total = 2·half" with half(A) = λA(λB/λA·Cinv + TB·λB·Cscan + Cins) gives Eq. 1
only if the streams are alike; Eq. 1 is half(A) + half(B), which is used. Eq. 2 is printed with NB for both buffers;
half(A) + half(B) has each buffer's own N and is the same where NA = NB.
"""
from __future__ import annotations

from dataclasses import dataclass, fields

from optimizer.errors import ForebayError
from optimizer.papers.contract import Price
from optimizer.papers.statistics import checked

STRATEGIES = {
    "probe": "the probed bucket (probe time)",
    "probe and insert": "the probed bucket and the one inserted into",
    "all probed": "all buckets of the probed buffer (probe all buckets)",
    "optimal": "all buckets of both buffers",
}
UNIT = "units of the constants a second"


@dataclass(frozen=True)
class Buffer:
    """A stream's window buffer: λ tuples a second arrive, each stays for `seconds` (T).

    N = `buckets`, 1 for a nested loop.
    """

    name: str
    rate: float
    seconds: float
    buckets: float = 1

    def __post_init__(self) -> None:
        owner = f"stream {self.name}"
        checked(owner, "rate", self.rate, "tuples a second")
        checked(owner, "seconds", self.seconds, "the window's length in seconds")
        checked(owner, "buckets", self.buckets, "hash buckets of the buffer", 1)


@dataclass(frozen=True)
class Steps:
    """Cinv, Cins, Cscan: units of time for each tuple removed, inserted, scanned."""

    invalidate: float = 1.0
    insert: float = 1.0
    scan: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            checked("the steps", field.name, getattr(self, field.name), "units of time a tuple")


def window_join(a: Buffer, b: Buffer, steps: Steps) -> Price:
    """(λA+λB)(Cinv+Cins) + λAλB(TA+TB)Cscan (1) with one bucket; with more λAλB(TA/NA + TB/NB)Cscan, which is (2) for
    NA = NB.
    """
    arriving = a.rate + b.rate
    scanned = a.rate * b.rate * (a.seconds / a.buckets + b.seconds / b.buckets)
    parts = (
        ("invalidate", arriving * steps.invalidate),
        ("insert", arriving * steps.insert),
        ("scan", scanned * steps.scan),
    )
    unequal = ("Eq. 2 has one number of buckets, here the buffers differ",) if a.buckets != b.buckets else ()
    return Price(parts, UNIT, f"paper B, Eq. {1 if a.buckets == b.buckets == 1 else 2}", unequal)


def half(arriving: Buffer, opposite: Buffer, steps: Steps) -> float:
    """λA(λB/λA·Cinv + TB·λB/NB·Cscan + Cins), section 3.1: what tuples arriving on one stream cost."""
    scanned = opposite.seconds * opposite.rate / opposite.buckets
    return opposite.rate * steps.invalidate + arriving.rate * (scanned * steps.scan + steps.insert)


def useful_buckets(buckets: float, distinct: float) -> float:
    """More buckets than distinct join values are empty ones: figures 5 and 6 flatten there, "not captured by the cost
    formula given in Equation 2".
    """
    checked("the buffer", "distinct", distinct, "distinct join values", 1)
    return min(buckets, distinct)


def invalidations(buffer: Buffer, opposite: Buffer, strategy: str) -> float:
    """How often a second one bucket of `buffer` is cleared.

    Probes come from the opposite stream, inserts from the buffer's own, to one of N buckets each.
    """
    if strategy not in STRATEGIES:
        raise ForebayError("bad-statistics", f"invalidation is {strategy!r}", hint=f"expected {', '.join(STRATEGIES)}")
    one_bucket = {"probe": opposite.rate, "probe and insert": buffer.rate + opposite.rate}
    all_buckets = {"all probed": opposite.rate, "optimal": buffer.rate + opposite.rate}
    return one_bucket[strategy] / buffer.buckets if strategy in one_bucket else all_buckets[strategy]


def stale(buffer: Buffer, opposite: Buffer, strategy: str) -> float:
    """Stale tuples that gather in one bucket between two invalidations: their interval × λ/N (section 3.2).

    λB/λA by probe and λB/(λA+λB) by probe and insert, as printed; the same rule gives a share 1/N of these where all
    buckets are cleared at once (the paper says only that none gather between arrivals). Without a probe they gather for
    ever.
    """
    cleared = invalidations(buffer, opposite, strategy)
    entering = buffer.rate / buffer.buckets
    if cleared == 0:
        return float("inf") if entering else 0.0
    return entering / cleared


def occupancy(buffer: Buffer, opposite: Buffer, strategy: str) -> float:
    """Tuples a buffer holds when its buckets are about to be cleared: the window's λ·T, and what is stale in N buckets
    (Fig. 8).
    """
    return buffer.rate * buffer.seconds + buffer.buckets * stale(buffer, opposite, strategy)


def invalidating_join(a: Buffer, b: Buffer, steps: Steps, strategy: str) -> Price:
    """Eq. 1 or 2 and a look at the oldest tuple of each bucket cleared: Nstale + 1 comparisons (section 3.2),
    strategies differ only in these looks (Fig. 7).

    The look is priced as Cscan ("the cost of scanning at least the bottom tuple in each bucket", section 2); Eqs. 1, 2
    leave it out.
    """
    whole = window_join(a, b, steps)
    looks = a.buckets * invalidations(a, b, strategy) + b.buckets * invalidations(b, a, strategy)
    reason = "the equations leave out the look at a bucket's oldest tuple, counted here as section 3.2 says"
    return Price((*whole.parts, ("look", looks * steps.scan)), UNIT, whole.equation, (*whole.outside, reason))
