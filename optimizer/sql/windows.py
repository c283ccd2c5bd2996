"""Lengths of time and windows as users write them; what a length means, not where it stands."""
from __future__ import annotations

import re

from optimizer import time
from optimizer.errors import ForebayError
from optimizer.query.windows import Window, check

LONGEST = 2**61
FORMS = "[WINDOW 1 HOUR], [WINDOW 1 HOUR TUMBLING], [WINDOW 1 HOUR SLIDE 10 MINUTES] or [WINDOW UNTIL NOW]"
WINDOW = re.compile(r"\s*(\S+)\s+(\w+)\s*(?:(TUMBLING)|SLIDE\s+(\S+)\s+(\w+))?\s*", re.IGNORECASE)


def length(count: str, unit: str) -> int:
    """`10 MINUTES` in microseconds."""
    unit_length = time.unit(unit)
    if unit_length is None:
        hint = f"units are {', '.join(time.UNITS)}, also in the plural"
        raise ForebayError("bad-length", f"{unit!r} is not a unit of fixed length", hint=hint)
    if re.fullmatch(r"-[0-9]+|[0-9]{19,}", count):
        raise _impossible(count, unit)
    if not re.fullmatch(r"[0-9]{1,18}", count):
        raise ForebayError("bad-length", f"{count!r} is not a whole number",
                           hint="use a smaller unit instead of a fraction: 90 MINUTES, not 1.5 HOURS")
    value = int(count) * unit_length
    if not 0 < value <= LONGEST:
        raise _impossible(count, unit)
    return value


def _impossible(count: str, unit: str) -> ForebayError:
    is_positive = not count.startswith("-") and count.strip("0") != ""
    hint = f"a length is at most {LONGEST // time.DAY:,} days" if is_positive else "lengths are positive"
    return ForebayError("bad-length", f"a length of {count[:40]} {unit} is not possible", hint=hint)


def window(content: str, batch: int) -> Window:
    """What stands between `[WINDOW` and `]`."""
    if re.fullmatch(r"\s*UNTIL\s+NOW\s*", content, re.IGNORECASE):
        return Window("landmark")
    match = WINDOW.fullmatch(content)
    if not match:
        raise ForebayError("bad-window", f"[WINDOW{content}] is not a window", hint=f"write {FORMS}")
    size = length(match[1], match[2])
    slide = length(match[4], match[5]) if match[4] else 0
    parsed = Window("tumbling" if match[3] else "hopping" if slide else "sliding", size, slide)
    check(parsed, batch)
    return parsed


def every(content: str, batch: int) -> int:
    """`EVERY 1 HOUR`."""
    _, count, unit = content.split()
    value = length(count, unit)
    if value % batch:
        raise ForebayError("bad-every", "EVERY must be a multiple of the batch",
                           hint=f"{value / 1_000_000:g} s is not a multiple of {batch / 1_000_000:g} s")
    return value


def default_every(windows: tuple[Window, ...], batch: int) -> int:
    """The coarsest slide among tumbling and hopping windows if there are only those and every slide divides it, else
    the batch.
    """
    slides = [w.range if w.kind == "tumbling" else w.slide for w in windows if w.kind in ("tumbling", "hopping")]
    if len(slides) == len(windows) and all(max(slides) % s == 0 for s in slides):
        return max(slides)
    return batch
