"""Paper A event by event: late and every early aggregation plan of a join of any number of streams on one attribute, by the algorithm of Fig. 5.

For each tuple that comes and then for each that leaves: its aggregation set is updated if its stream has one (Def. 4), its window is updated, it probes the
set or the window of every other stream one after another (Def. 6), and what it becomes updates the answer. The sets are by group and join value (rule 1) and
keep COUNT(*) and the sum of the stream's attribute (rule 2, and what is subtracted from always carries COUNT(*)). Probes go by nested loop or by hash as
the caller says; sets are found by hash on the join value and the answer by hash on the first stream's group, with either (Eqs. 5–12, 22).
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jobs.operators.arrivals import Arrivals, Windows
from jobs.operators.compiled import compiled
from jobs.operators.contents import GROUP, KEY, NONE, VALUE, Contents, contents, enter, expiring, leave, oldest
from jobs.operators.rings import Ints, Rings, added, remove, rings, roomy, slot
from jobs.operators.totals import Answer
from optimizer.errors import ForebayError

SET_KEY, SET_GROUP, SET_COUNT, SET_SUM = range(4)
CODE, COUNT, SUM = range(3)
PART_CODE, PART_FIRST, PART_COUNT, PART_SUM = range(4)      # a combination on its way: its groups so far, the first stream's, its COUNT(*) and SUM
MOST_BUCKETS = 1021                                         # B of paper A's experiments


class Plan(NamedTuple):
    """`early` says by stream whether it aggregates early; `order` by stream which others it probes, first to last."""

    early: tuple[bool, ...]
    order: tuple[tuple[int, ...], ...]
    hashed: bool = True
    answer_buckets: int = MOST_BUCKETS


class Aggregation(NamedTuple):
    contents: Contents
    sets: Rings
    answer: Rings
    parts: tuple[Rings, Rings]
    plan: Plan
    windows: Windows


def start(windows: Windows, early: tuple[bool, ...], order: tuple[tuple[int, ...], ...] | None = None, hashed: bool = True,
          answer_buckets: int = MOST_BUCKETS) -> Aggregation:
    """Nothing has come yet. `windows.buckets` is that of sets and, if `hashed`, of windows; the order is FROM order if none is given."""
    inputs = range(len(windows.spans))
    if len(early) != len(windows.spans):
        raise ForebayError("bad-arrivals", f"a plan of {len(early)} streams for {len(windows.spans)} windows", hint="expected one digit a stream")
    chosen = order or tuple(tuple(j for j in inputs if j != k) for k in inputs)
    if [sorted((k, *others)) for k, others in enumerate(chosen)] != [list(inputs)] * len(early):
        raise ForebayError("bad-arrivals", f"probes go {chosen}", hint="expected for each stream every other one once")
    used = min(max(answer_buckets, 1), windows.groups[0])
    return Aggregation(contents(windows if hashed else Windows(windows.spans, 1, windows.groups, windows.owner)), rings(len(early) * windows.buckets, 4),
                       rings(used, 3), (rings(1, 4), rings(1, 4)), Plan(early, chosen, hashed, used), windows)


def advance(state: Aggregation, arrivals: Arrivals) -> Aggregation:
    """The state after the tuples; the state given is used up."""
    w, plan = state.windows, state.plan
    w.fitting(arrivals)
    early, order = np.array(plan.early, np.int64), np.array(plan.order, np.int64)
    found, sets, answer, one, two = _advance(
        state.contents, state.sets, state.answer, *state.parts, arrivals.stream, arrivals.time, arrivals.key, arrivals.group, arrivals.value,
        np.array(w.spans), np.array(w.strides), early, order, w.buckets, plan.hashed, w.owner)
    return state._replace(contents=found, sets=sets, answer=answer, parts=(one, two))


def answers(state: Aggregation) -> dict[int, Answer]:
    """COUNT(*), SUM and AVG of the owner's attribute by group; groups without joined rows do not appear."""
    r = state.answer
    slots = [slot(r, ring, i) for ring in range(len(r.held)) for i in range(r.held[ring])]
    return {int(r.cells[CODE, at]): Answer(int(r.cells[COUNT, at]), int(r.cells[SUM, at])) for at in slots}


@compiled
def _advance(c: Contents, sets: Rings, answer: Rings, one: Rings, two: Rings, stream: Ints, time: Ints, key: Ints, group: Ints, value: Ints, spans: Ints,
             strides: Ints, early: Ints, order: Ints, buckets: int, hashed: bool, owner: int) -> tuple[Contents, Rings, Rings, Rings, Rings]:
    """Fig. 5. What has expired leaves before the tuple comes, so no pair is made that is not alive."""
    for i in range(len(stream)):
        left = expiring(c, spans, time[i])
        while left != NONE:
            at, cells = oldest(c, left), c.tuples.cells
            gone, gone_group, worth = cells[KEY, at], cells[GROUP, at], cells[VALUE, at]
            if early[left]:
                sets = _update_set(sets, left * buckets + gone % buckets, gone, gone_group, worth, -1)
            leave(c, left)
            answer, one, two = _probe(c, sets, answer, one, two, left, gone, gone_group, worth, -1, strides, early, order[left], buckets, hashed, owner)
            left = expiring(c, spans, time[i])
        s = stream[i]
        if early[s]:
            sets = _update_set(sets, s * buckets + key[i] % buckets, key[i], group[i], value[i], 1)
        c, _ = enter(c, s, s * buckets + key[i] % buckets if hashed else s, time[i], key[i], group[i], value[i])
        answer, one, two = _probe(c, sets, answer, one, two, s, key[i], group[i], value[i], 1, strides, early, order[s], buckets, hashed, owner)
    return c, sets, answer, one, two


@compiled
def _update_set(sets: Rings, ring: int, key: int, group: int, worth: int, sign: int) -> Rings:
    """Def. 4 for COUNT(*) and SUM: a row whose count is 0 is no row."""
    cells = sets.cells
    for i in range(sets.held[ring]):
        at = slot(sets, ring, i)
        if cells[SET_KEY, at] == key and cells[SET_GROUP, at] == group:
            cells[SET_COUNT, at] += sign
            cells[SET_SUM, at] += sign * worth
            if cells[SET_COUNT, at] == 0:
                remove(sets, ring, i)
            return sets
    sets = roomy(sets, ring)
    at = added(sets, ring)
    cells = sets.cells
    cells[SET_KEY, at], cells[SET_GROUP, at], cells[SET_COUNT, at], cells[SET_SUM, at] = key, group, sign, sign * worth
    return sets


@compiled
def _update_answer(answer: Rings, code: int, first: int, count: int, total: int) -> Rings:
    """Def. 4 for the answer, whose bucket is by the first stream's group."""
    ring = first % len(answer.held)
    cells = answer.cells
    for i in range(answer.held[ring]):
        at = slot(answer, ring, i)
        if cells[CODE, at] == code:
            cells[COUNT, at] += count
            cells[SUM, at] += total
            if cells[COUNT, at] == 0:
                remove(answer, ring, i)
            return answer
    answer = roomy(answer, ring)
    at = added(answer, ring)
    cells = answer.cells
    cells[CODE, at], cells[COUNT, at], cells[SUM, at] = code, count, total
    return answer


@compiled
def _probe(c: Contents, sets: Rings, answer: Rings, one: Rings, two: Rings, s: int, key: int, group: int, worth: int, sign: int, strides: Ints, early: Ints,
           order: Ints, buckets: int, hashed: bool, owner: int) -> tuple[Rings, Rings, Rings]:
    """One join after another, "a sequence of one-way joins"; what the last one gives goes into the answer at once."""
    one.held[0] = 0
    one = _put(one, group * strides[s], group if s == 0 else 0, sign, sign * worth if s == owner else sign)
    for level in range(len(order)):
        j, last = order[level], level == len(order) - 1
        two.held[0] = 0
        first = j * buckets + key % buckets if hashed else (j * buckets if early[j] else j)
        past = first + 1 if hashed or not early[j] else first + buckets
        for part in range(one.held[0]):
            at = slot(one, 0, part)
            if early[j]:
                answer, two = _join_set(sets, answer, two, one.cells, at, j, key, first, past, strides, owner, last)
            else:
                answer, two = _join_window(c.tuples, answer, two, one.cells, at, j, key, first, strides, owner, last)
        one, two = two, one
    return answer, one, two


@compiled
def _join_set(sets: Rings, answer: Rings, two: Rings, parts: Ints, at: int, j: int, key: int, first: int, past: int, strides: Ints, owner: int,
              last: bool) -> tuple[Rings, Rings]:
    """The AS join: a group of so many tuples coalesces, SUM(a) to a × count and COUNT to count (Def. 5)."""
    cells = sets.cells
    for ring in range(first, past):
        for i in range(sets.held[ring]):
            row = slot(sets, ring, i)
            if cells[SET_KEY, row] == key:
                count = parts[PART_COUNT, at] * cells[SET_COUNT, row]
                total = parts[PART_SUM, at] * (cells[SET_SUM, row] if j == owner else cells[SET_COUNT, row])
                code, home = parts[PART_CODE, at] + cells[SET_GROUP, row] * strides[j], cells[SET_GROUP, row] if j == 0 else parts[PART_FIRST, at]
                if last:
                    answer = _update_answer(answer, code, home, count, total)
                else:
                    two = _put(two, code, home, count, total)
    return answer, two


@compiled
def _join_window(r: Rings, answer: Rings, two: Rings, parts: Ints, at: int, j: int, key: int, ring: int, strides: Ints, owner: int,
                 last: bool) -> tuple[Rings, Rings]:
    """The window join: each match is one tuple."""
    cells = r.cells
    for i in range(r.held[ring]):
        row = slot(r, ring, i)
        if cells[KEY, row] == key:
            total = parts[PART_SUM, at] * (cells[VALUE, row] if j == owner else 1)
            code, home = parts[PART_CODE, at] + cells[GROUP, row] * strides[j], cells[GROUP, row] if j == 0 else parts[PART_FIRST, at]
            if last:
                answer = _update_answer(answer, code, home, parts[PART_COUNT, at], total)
            else:
                two = _put(two, code, home, parts[PART_COUNT, at], total)
    return answer, two


@compiled
def _put(parts: Rings, code: int, first: int, count: int, total: int) -> Rings:
    """A combination that goes to the next join. Its sum is its count until the owner's tuple has joined."""
    parts = roomy(parts, 0)
    at = added(parts, 0)
    cells = parts.cells
    cells[PART_CODE, at], cells[PART_FIRST, at], cells[PART_COUNT, at], cells[PART_SUM, at] = code, first, count, total
    return parts
