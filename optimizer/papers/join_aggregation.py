"""Paper C: time and space of a window join's aggregate by PC (pipelined), IC (inclusion, exclusion) and TC (each tuple
counts its later matches); two windows.

Time is per arriving tuple, in accesses C to one item; a tuple arrives in A, so it probes B. By symmetry swap the sides
for an arrival in B.
"""
from __future__ import annotations

from dataclasses import dataclass, fields

from optimizer.papers.contract import Price
from optimizer.papers.statistics import checked

UNIT = "accesses an arriving tuple"
SPACE = "bytes"


@dataclass(frozen=True)
class Windows:
    """a, b = tuples in the windows of A and B.

    SetA, SetB = tuples expired since the last arrival; M hash buckets; σ the join's selectivity (Table 1).
    """

    a: float
    b: float
    expired_a: float
    expired_b: float
    buckets: float = 1
    selectivity: float = 1

    def __post_init__(self) -> None:
        for field in fields(self)[:4]:
            checked("the windows", field.name, getattr(self, field.name), "tuples")
        checked("the windows", "buckets", self.buckets, "hash buckets", 1)
        checked("the windows", "selectivity", self.selectivity, "the share of pairs that match", 0, 1)

    @property
    def swapped(self) -> Windows:
        """The same for an arrival in B."""
        return Windows(self.b, self.a, self.expired_b, self.expired_a, self.buckets, self.selectivity)


@dataclass(frozen=True)
class Widths:
    """Bytes of an item of A, of an item of B, and of the counter TC keeps with each (SizeOf(Int))."""

    a: float
    b: float
    counter: float = 4

    def __post_init__(self) -> None:
        for field in fields(self):
            checked("the widths", field.name, getattr(self, field.name), "bytes")


def steady(rate_a: float, rate_b: float, seconds: float, buckets: float = 1, selectivity: float = 1) -> Windows:
    """Windows of one length T at constant rates: λT tuples each, and as many expire as arrive, so at each arrival
    λA/(λA+λB) of A and the rest of B.
    """
    for name, rate in (("rate_a", rate_a), ("rate_b", rate_b)):
        checked("the windows", name, rate, "tuples a second")
    checked("the windows", "seconds", seconds, "the windows' length in seconds")
    arriving = rate_a + rate_b or 1
    return Windows(rate_a * seconds, rate_b * seconds, rate_a / arriving, rate_b / arriving, buckets, selectivity)


def inclusion(w: Windows, access: float = 1) -> Price:
    """(a+b + b/M + |SetA|·b/M + |SetB|·a/M + |SetA||SetB|)·C (3): expiry, then the joins that equation 2 adds and
    subtracts.
    """
    expiring = w.expired_a * w.b / w.buckets + w.expired_b * w.a / w.buckets + w.expired_a * w.expired_b
    parts = (
        ("expire", (w.a + w.b) * access),
        ("probe", w.b / w.buckets * access),
        ("joins of what expired", expiring * access),
    )
    return Price(parts, UNIT, "paper C, Eq. 3")


def counting(w: Windows, access: float = 1) -> Price:
    """(2(a+b) + b/M)·C (6): expiry, the probe that raises counters, and the naive sum of all counters.

    Nothing is joined for what expired.
    """
    parts = (
        ("expire", (w.a + w.b) * access),
        ("probe", w.b / w.buckets * access),
        ("sum of counters", (w.a + w.b) * access),
    )
    return Price(parts, UNIT, "paper C, Eq. 6")


def counting_by_total(w: Windows, access: float = 1) -> Price:
    """(|SetA| + |SetB| + b/M)·C: TC with a running total and windows in order of expiry.

    Only what expired is read and its counters subtracted.
    """
    parts = (("expire", (w.expired_a + w.expired_b) * access), ("probe", w.b / w.buckets * access))
    return Price(parts, UNIT, "paper C, Eq. 6",
                 ("a running total replaces the sum of all counters and the search of both windows",))


def pipelined(w: Windows, access: float = 1, write: float = 1) -> Price:
    """(a+b + b/M)·C + σb·Cw + σab·C: expiry, probe, joined items written, all of them aggregated.

    The paper has no time for PC; its steps counted.
    """
    joined = w.selectivity * w.b
    parts = (("expire", (w.a + w.b) * access), ("probe", w.b / w.buckets * access), ("write", joined * write),
             ("aggregate", joined * w.a * access))
    return Price(parts, UNIT, "paper C, Table 1", ("the paper gives no time for PC, its steps are counted here",))


def inclusion_space(w: Windows, widths: Widths) -> Price:
    """O(a·sizeA + b·sizeB + |SetA|·sizeA + |SetB|·sizeB), section 1.1."""
    expired = w.expired_a * widths.a + w.expired_b * widths.b
    return Price((("windows", w.a * widths.a + w.b * widths.b), ("expired", expired)), SPACE, "paper C, section 1.1")


def counting_space(w: Windows, widths: Widths) -> Price:
    """O(a·sizeA + b·sizeB + (a+b)·SizeOf(Int)) (7)."""
    return Price((("windows", w.a * widths.a + w.b * widths.b), ("counters", (w.a + w.b) * widths.counter)), SPACE,
                 "paper C, Eq. 7")


def pipelined_space(w: Windows, widths: Widths) -> Price:
    """O(a·b), abstract: the windows, and each joined item as the two it is made of."""
    joined = w.selectivity * w.a * w.b * (widths.a + widths.b)
    return Price((("windows", w.a * widths.a + w.b * widths.b), ("joined", joined)), SPACE, "paper C, abstract")
