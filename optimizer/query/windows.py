"""When a row counts: each window as the interval of boundaries [in, out] in which a pane is inside it; integers in
microseconds, no SQL and no clock.

Every window is known by two functions of an event time, rounded down to a tick that divides the batch, all ranges and
all slides (DESIGN, "When a row counts"). A row with `_boundary` b is a member at boundary t iff max(in, b) ≤ t ≤ out.
"""
from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from optimizer.errors import ForebayError

ALWAYS = 2**62                # an `out` that never comes; fits BIGINT with room for arithmetic
MICROSECOND = 1
SECOND = 1_000_000
MAX_PANES = 100_000           # panes a window, INTERFACE "Boundaries"


@dataclass(frozen=True)
class Window:
    """`kind` is sliding, tumbling, hopping or landmark; lengths in microseconds, 0 where the kind has none."""

    kind: str
    range: int = 0
    slide: int = 0

    def __post_init__(self) -> None:
        lengths = {"sliding": (1, 0), "tumbling": (1, 0), "hopping": (1, 1), "landmark": (0, 0)}
        if self.kind not in lengths:
            raise ValueError(f"window kind {self.kind!r}: known are {', '.join(lengths)}")
        if ((self.range > 0), (self.slide > 0)) != tuple(map(bool, lengths[self.kind])):
            raise ValueError(f"{self.kind} window with range {self.range} and slide {self.slide}")

    def enters(self, ts: int, tick: int) -> int:
        """First boundary at which a row of this event time can count."""
        if self.kind == "hopping":
            return (ts // self.slide + 1) * self.slide
        return ts // tick * tick + tick

    def leaves(self, ts: int, tick: int) -> int:
        """Last boundary at which it counts."""
        pane = ts // tick * tick
        if self.kind == "sliding":
            return pane + self.range
        if self.kind == "tumbling":
            return (pane // self.range + 1) * self.range
        if self.kind == "hopping":
            return ((pane + self.range) // self.slide + 1) * self.slide - tick
        return ALWAYS

    def oldest(self, t: int) -> int:
        """No row with an earlier event time is in the window at t."""
        if self.kind == "sliding":
            return t - self.range
        if self.kind == "tumbling":
            return -(-t // self.range) * self.range - self.range
        if self.kind == "hopping":
            return t // self.slide * self.slide - self.range
        return -ALWAYS

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(x for x in (self.range, self.slide) if x)


def tick(batch: int, windows: tuple[Window, ...]) -> int:
    """gcd(batch, all ranges, all slides): event times within one tick enter and leave together."""
    return gcd(batch, *(length for w in windows for length in w.lengths))


def check(window: Window, batch: int) -> None:
    """Refuses what INTERFACE "Boundaries" refuses: slides and tumbling lengths off the batch, more than MAX_PANES panes
    a window.
    """
    aligned = {"tumbling": window.range, "hopping": window.slide}.get(window.kind, 0)
    if aligned % batch:
        raise ForebayError(
            "bad-window",
            f"a {window.kind} window's {'length' if window.kind == 'tumbling' else 'slide'} must be a multiple of the "
            "batch",
            hint=f"{aligned / SECOND:g} s is not a multiple of {batch / SECOND:g} s")
    panes = window.range // gcd(batch, *window.lengths) if window.range else 0
    if panes > MAX_PANES:
        raise ForebayError("bad-window", f"the window would have {panes:,} panes, at most {MAX_PANES:,} are possible",
                           hint="use a shorter range, or lengths with a larger common divisor with the batch")
