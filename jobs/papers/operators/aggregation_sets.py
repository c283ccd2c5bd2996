"""Paper A event by event: late and every early aggregation plan of a join of any number of streams on one attribute, by
the algorithm of Fig. 5.

For each tuple that comes and then for each that leaves: its aggregation set is updated if its stream has one (Def. 4),
its window is updated, it probes the set or the window of every other stream one after another (Def. 6), and what it
becomes updates the answer. The sets are by group and join value (rule 1) and keep COUNT(*) and the sum of the stream's
attribute (rule 2, and what is subtracted from always carries COUNT(*)). Probes go by nested loop or by hash as the
caller says; sets are found by hash on the join value and the answer by hash on the first stream's group, with either
(Eqs. 5–12, 22). For nested loops a set is one piece of memory, as a window is, and its buckets are chains through it:
so a row that is probed costs the same in both (the equations' P).

MAX and MIN, where asked for, are kept beside. When a row leaves that may have been the extreme of its group, they are
evaluated again (Def. 4): a set's over the window's tuples of that group and join value, the answer's by probing once
more with every row of the owner's set or window.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jobs.papers.operators.arrivals import ArrivingTuples, JoinWindows
from jobs.papers.operators.compiled import compiled
from jobs.papers.operators.contents import (
    GROUP,
    KEY,
    NONE,
    VALUE,
    Contents,
    contents,
    crowded,
    enter,
    expiring,
    leave,
    oldest,
    parts,
    widened,
)
from jobs.papers.operators.rings import (
    HEAD,
    HELD,
    ROOM,
    START,
    Ints,
    Rings,
    added,
    copied,
    full,
    grown,
    replace_by_last,
    rings,
    slot,
)
from jobs.papers.operators.totals import HIGHEST, LOWEST, GroupTotals
from optimizer.errors import ForebayError

SET_KEY, SET_GROUP, SET_COUNT, SET_SUM, SET_MOST, SET_LEAST = range(6)
CODE, COUNT, SUM, MOST, LEAST = range(5)
# a combination on its way: its groups so far, the first stream's, its COUNT(*) and SUM, the owner's extremes in it
PART_CODE, PART_HOME, PART_COUNT, PART_SUM, PART_MOST, PART_LEAST = range(6)
PARTS = 64                                                  # room for them at first
MOST_BUCKETS = 1021                                         # B of paper A's experiments


Order = tuple[tuple[int, ...], ...]


class SetsPlan(NamedTuple):
    """`early` says by stream whether it aggregates early.

    `order` by stream which others it probes, first to last; `extremes`: MAX and MIN, too.
    """

    early: tuple[bool, ...]
    order: Order
    hashed: bool = True
    answer_buckets: int = MOST_BUCKETS
    extremes: bool = False


class Aggregation(NamedTuple):
    """`sets` has a ring a stream and bucket, or for nested loops a ring a stream.

    `links` then begins the chain of each bucket: places from 1, 0 is none.
    """

    contents: Contents
    sets: Rings
    links: Ints
    answer: Rings
    plan: SetsPlan
    windows: JoinWindows


def start(windows: JoinWindows, early: tuple[bool, ...], order: Order | None = None, hashed: bool = True,
          answer_buckets: int = MOST_BUCKETS, extremes: bool = False) -> Aggregation:
    """Nothing has come yet.

    `windows.buckets` is that of sets and, if `hashed`, of windows; the order is FROM order if none is given.
    """
    used = min(max(answer_buckets, 1), windows.groups[0])
    tuples = contents(windows if hashed else JoinWindows(windows.spans, 1, windows.groups, windows.owner))
    plan = SetsPlan(early, _order(windows, early, order), hashed, used, extremes)
    count, columns = len(windows.spans), 6 if extremes else 4
    sets = rings(count * windows.buckets, columns) if hashed else rings(count, columns + 1)
    return Aggregation(tuples, sets, np.zeros(count * windows.buckets, np.int64), rings(used, 5 if extremes else 3),
                       plan, windows)


def switched(state: Aggregation, early: tuple[bool, ...], order: Order | None = None) -> Aggregation:
    """A copy that goes on by another plan, whose sets the state's plan must keep.

    Sets that no plan keeps up to date are empty.
    """
    if any(wanted and not is_kept for wanted, is_kept in zip(early, state.plan.early)):
        raise ForebayError("bad-arrivals", f"from a plan {state.plan.early} to {early}",
                           hint="expected only sets that are there")
    windows, plan = state.windows, state.plan
    contents_ = Contents(copied(state.contents.tuples), copied(state.contents.queue))
    sets, links = copied(state.sets), state.links.copy()
    each = windows.buckets if plan.hashed else 1
    for k in (k for k, wanted in enumerate(early) if not wanted):
        sets.bounds[k * each:(k + 1) * each, HELD] = 0
        links[k * windows.buckets:(k + 1) * windows.buckets] = 0
    return Aggregation(contents_, sets, links, copied(state.answer),
                       plan._replace(early=early, order=_order(windows, early, order)), windows)


def _order(windows: JoinWindows, early: tuple[bool, ...], order: Order | None) -> Order:
    inputs = range(len(windows.spans))
    if len(early) != len(windows.spans):
        raise ForebayError("bad-arrivals", f"a plan of {len(early)} streams for {len(windows.spans)} windows",
                           hint="expected one digit a stream")
    chosen = order or tuple(tuple(j for j in inputs if j != k) for k in inputs)
    if [sorted((k, *others)) for k, others in enumerate(chosen)] != [list(inputs)] * len(early):
        raise ForebayError("bad-arrivals", f"probes go {chosen}", hint="expected for each stream every other one once")
    return chosen


def advance(state: Aggregation, arrivals: ArrivingTuples) -> Aggregation:
    """The state after the tuples; the state given is used up."""
    w, plan = state.windows, state.plan
    w.fitting(arrivals)
    early, order = np.array(plan.early, np.int64), np.array(plan.order, np.int64)
    contents_, sets, answer = _advance(state.contents, state.sets, state.links, state.answer, arrivals.stream,
                                       arrivals.time, arrivals.key, arrivals.group, arrivals.value, np.array(w.spans),
                                       np.array(w.strides), early, order, w.buckets, plan.hashed, w.owner,
                                       plan.extremes)
    return state._replace(contents=contents_, sets=sets, answer=answer)


def answers(state: Aggregation) -> dict[int, GroupTotals]:
    """COUNT(*), SUM and AVG of the owner's attribute by group, MAX and MIN where kept.

    Groups without joined rows do not appear.
    """
    r = state.answer
    slots = [slot(r.bounds, ring, i) for ring in range(len(r.bounds) - 1) for i in range(r.bounds[ring, HELD])]
    return {int(r.cells[CODE, at]): GroupTotals(*map(int, r.cells[COUNT:, at])) for at in slots}


@compiled
def _advance(c: Contents, sets: Rings, links: Ints, answer: Rings, stream: Ints, time: Ints, key: Ints, group: Ints,
             value: Ints, spans: Ints, strides: Ints, early: Ints, order: Ints, buckets: int, hashed: bool, owner: int,
             extremes: bool) -> tuple[Contents, Rings, Rings]:
    """Fig. 5. What has expired leaves before the tuple comes, so no pair is made that is not alive."""
    one, two = np.zeros((6, PARTS), np.int64), np.zeros((6, PARTS), np.int64)
    cells, bounds, queued, queue = parts(c)
    for i in range(len(stream)):
        left, lost = expiring(cells, bounds, queued, queue, spans, time[i]), False
        while left != NONE:
            at = oldest(bounds, queued, queue, left)
            gone, gone_group, worth = cells[KEY, at], cells[GROUP, at], cells[VALUE, at]
            if early[left]:
                sets = _update_set(sets, links, left, buckets, hashed, gone, gone_group, worth, -1, extremes)
            leave(bounds, queued, queue, left)
            if extremes and early[left]:
                _set_extremes(c, sets, left * buckets + gone % buckets if hashed else left, gone, gone_group, worth)
            answer, one, two, touched = _probe(c, sets, answer, one, two, left, gone, gone_group, worth, -1, strides,
                                               early, order[left], buckets, hashed, owner, extremes)
            lost = lost or touched
            left = expiring(cells, bounds, queued, queue, spans, time[i])
        if lost:
            answer, one, two = _answer_extremes(c, sets, answer, one, two, strides, early, order[owner], buckets,
                                                hashed, owner)
        s = stream[i]
        ring = s * buckets + key[i] % buckets if hashed else s
        if early[s]:
            sets = _update_set(sets, links, s, buckets, hashed, key[i], group[i], value[i], 1, extremes)
        if crowded(bounds, queue, s, ring):
            c = widened(c, s, ring)
            cells, bounds, queued, queue = parts(c)
        enter(cells, bounds, queued, queue, s, ring, time[i], key[i], group[i], value[i])
        answer, one, two, _ = _probe(c, sets, answer, one, two, s, key[i], group[i], value[i], 1, strides, early,
                                     order[s], buckets, hashed, owner, extremes)
    return c, sets, answer


@compiled
def _update_set(sets: Rings, links: Ints, s: int, buckets: int, hashed: bool, key: int, group: int, worth: int,
                sign: int, extremes: bool) -> Rings:
    """Def. 4: a row whose count is 0 is no row. Extremes only rise by what comes."""
    bucket = s * buckets + key % buckets
    ring = bucket if hashed else s
    cells, at = sets.cells, _row(sets, links, ring, bucket, hashed, key, group)
    if at == NONE:
        if full(sets.bounds, ring):
            sets = grown(sets, ring)
        cells, at = sets.cells, added(sets.bounds, ring)
        cells[SET_KEY, at], cells[SET_GROUP, at], cells[SET_COUNT, at], cells[SET_SUM, at] = key, group, 0, 0
        if extremes:
            cells[SET_MOST, at], cells[SET_LEAST, at] = LOWEST, HIGHEST
        if not hashed:
            cells[-1, at], links[bucket] = links[bucket], sets.bounds[ring, HELD]
    cells[SET_COUNT, at] += sign
    cells[SET_SUM, at] += sign * worth
    if extremes and sign > 0:
        cells[SET_MOST, at], cells[SET_LEAST, at] = max(cells[SET_MOST, at], worth), min(cells[SET_LEAST, at], worth)
    if cells[SET_COUNT, at] == 0:
        if not hashed:
            _unlink(sets, links, ring, bucket, s * buckets, buckets, at)
        replace_by_last(cells, sets.bounds, ring, at)
    return sets


@compiled
def _row(sets: Rings, links: Ints, ring: int, bucket: int, hashed: bool, key: int, group: int) -> int:
    """Where a set has the row of a join value and group, NONE if it has none: its bucket is a ring, or a chain through
    the stream's one.
    """
    cells, first = sets.cells, sets.bounds[ring, START]
    if hashed:
        for at in range(first, first + sets.bounds[ring, HELD]):
            if cells[SET_KEY, at] == key and cells[SET_GROUP, at] == group:
                return at
        return NONE
    place = links[bucket]
    while place > 0:
        at = first + place - 1
        if cells[SET_KEY, at] == key and cells[SET_GROUP, at] == group:
            return at
        place = cells[-1, at]
    return NONE


@compiled
def _unlink(sets: Rings, links: Ints, ring: int, bucket: int, base: int, buckets: int, at: int) -> None:
    """Takes a row out of its chain, and lets the chain of the stream's last row find that where it is about to be put.
    """
    cells, first = sets.cells, sets.bounds[ring, START]
    last = first + sets.bounds[ring, HELD] - 1
    _redirect(cells, links, first, bucket, at - first + 1, cells[-1, at])
    if last != at:
        _redirect(cells, links, first, base + cells[SET_KEY, last] % buckets, last - first + 1, at - first + 1)


@compiled
def _redirect(cells: Ints, links: Ints, first: int, bucket: int, old: int, new: int) -> None:
    """Whatever leads to one place in a chain leads to another."""
    place = links[bucket]
    if place == old:
        links[bucket] = new
        return
    while cells[-1, first + place - 1] != old:
        place = cells[-1, first + place - 1]
    cells[-1, first + place - 1] = new


@compiled
def _set_extremes(c: Contents, sets: Rings, ring: int, key: int, group: int, gone: int) -> None:
    """Def. 4: of a set's row from which an extreme left, over the window's tuples that are still there."""
    cells, first, tuples, index = sets.cells, sets.bounds[ring, START], c.tuples.cells, c.tuples.bounds
    for at in range(first, first + sets.bounds[ring, HELD]):
        if cells[SET_KEY, at] == key and cells[SET_GROUP, at] == group and (gone == cells[SET_MOST, at]
                                                                            or gone == cells[SET_LEAST, at]):
            most, least = LOWEST, HIGHEST
            for i in range(index[ring, HELD]):
                j = slot(index, ring, i)
                if tuples[KEY, j] == key and tuples[GROUP, j] == group:
                    most, least = max(most, tuples[VALUE, j]), min(least, tuples[VALUE, j])
            cells[SET_MOST, at], cells[SET_LEAST, at] = most, least


@compiled
def _answer_extremes(c: Contents, sets: Rings, answer: Rings, one: Ints, two: Ints, strides: Ints, early: Ints,
                     order: Ints, buckets: int, hashed: bool, owner: int) -> tuple[Rings, Ints, Ints]:
    """Def.

    4 for the answer: the owner's rows probe once more and count nothing; a group that has its extreme keeps it.
    """
    r = sets if early[owner] else c.tuples
    here = buckets if hashed else 1
    for ring in range(owner * here, (owner + 1) * here):
        for i in range(r.bounds[ring, HELD]):
            at = slot(r.bounds, ring, i)
            if early[owner]:
                key, group, most, least = r.cells[SET_KEY, at], r.cells[SET_GROUP, at], r.cells[SET_MOST,
                                                                                                at], r.cells[SET_LEAST,
                                                                                                             at]
            else:
                key, group, most, least = r.cells[KEY, at], r.cells[GROUP, at], r.cells[VALUE, at], r.cells[VALUE, at]
            for worth in (most, least):
                answer, one, two, _ = _probe(c, sets, answer, one, two, owner, key, group, worth, 0, strides, early,
                                             order, buckets, hashed, owner, True)
    return answer, one, two


@compiled
def _update_answer(answer: Rings, parts: Ints, count: int, sign: int, extremes: bool) -> tuple[Rings, bool]:
    """Def.

    4 for the answer, by joined combinations; its bucket is by the first stream's group. Whether a group has lost an
    extreme.
    """
    cells, index = answer.cells, answer.bounds
    lost = False
    rings_there = len(index) - 1
    for part in range(count):
        home = parts[PART_HOME, part]
        ring = home if home < rings_there else home % rings_there
        if not _changed(cells, index, ring, parts[PART_CODE, part], parts[PART_COUNT, part], parts[PART_SUM, part]):
            answer = grown(answer, ring)
            cells, index = answer.cells, answer.bounds
            _changed(cells, index, ring, parts[PART_CODE, part], parts[PART_COUNT, part], parts[PART_SUM, part])
        if extremes:
            lost = _extreme(cells, index, ring, parts[PART_CODE, part], parts[PART_MOST, part], parts[PART_LEAST, part],
                            sign) or lost
    return answer, lost


@compiled
def _changed(cells: Ints, index: Ints, ring: int, code: int, count: int, total: int) -> bool:
    """A group of the answer by what a combination brings; False if it is new and its bucket is full."""
    first = index[ring, START]
    for at in range(first, first + index[ring, HELD]):
        if cells[CODE, at] == code:
            cells[COUNT, at] += count
            cells[SUM, at] += total
            if cells[COUNT, at] == 0:
                replace_by_last(cells, index, ring, at)
            return True
    if full(index, ring):
        return False
    at = added(index, ring)
    cells[CODE, at], cells[COUNT, at], cells[SUM, at] = code, count, total
    if cells.shape[0] > MOST:
        cells[MOST, at], cells[LEAST, at] = LOWEST, HIGHEST
    return True


@compiled
def _extreme(cells: Ints, index: Ints, ring: int, code: int, most: int, least: int, sign: int) -> bool:
    """MAX and MIN of a group by a combination that comes.

    One that leaves takes them away if they are its own. Whether it did.
    """
    first = index[ring, START]
    for at in range(first, first + index[ring, HELD]):
        if cells[CODE, at] == code:
            if sign >= 0:
                cells[MOST, at], cells[LEAST, at] = max(cells[MOST, at], most), min(cells[LEAST, at], least)
            elif cells[MOST, at] == most or cells[LEAST, at] == least:
                cells[MOST, at], cells[LEAST, at] = LOWEST, HIGHEST
                return True
    return False


@compiled
def _probe(c: Contents, sets: Rings, answer: Rings, one: Ints, two: Ints, s: int, key: int, group: int, worth: int,
           sign: int, strides: Ints, early: Ints, order: Ints, buckets: int, hashed: bool, owner: int,
           extremes: bool) -> tuple[Rings, Ints, Ints, bool]:
    """One join after another, "a sequence of one-way joins", then the answer.

    A combination's sum is its count until the owner's tuple has joined.
    """
    one[PART_CODE, 0], one[PART_HOME, 0], one[PART_COUNT, 0] = group * strides[s], group if s == 0 else 0, sign
    one[PART_SUM, 0] = sign * worth if s == owner else sign
    one[PART_MOST, 0], one[PART_LEAST, 0] = worth, worth
    count = 1
    for j in order:
        if early[j]:
            ring = j * buckets + key % buckets if hashed else j
            two, count = _join_set(sets.cells, sets.bounds, ring, key, one, count, two, strides[j], j == 0, j == owner,
                                   extremes)
        else:
            ring = j * buckets + key % buckets if hashed else j
            two, count = _join_window(c.tuples.cells, c.tuples.bounds, ring, key, one, count, two, strides[j], j == 0,
                                      j == owner, extremes)
        one, two = two, one
    answer, lost = _update_answer(answer, one, count, sign, extremes)
    return answer, one, two, lost


@compiled
def _join_set(cells: Ints, index: Ints, ring: int, key: int, one: Ints, parts: int, two: Ints, stride: int, home: bool,
              owns: bool, extremes: bool) -> tuple[Ints, int]:
    """The AS join: a group of so many tuples coalesces, SUM(a) to a × count and COUNT to count (Def. 5)."""
    count, keys = 0, cells[SET_KEY]
    start, held = index[ring, START], index[ring, HELD]
    for part in range(parts):
        since = count
        while count + held > two.shape[1]:
            two = _doubled(two)
        count = _noted(keys, start, start + held, key, two[PART_CODE], count)
        for match in range(since, count):
            at = two[PART_CODE, match]
            two[PART_CODE, match] = one[PART_CODE, part] + cells[SET_GROUP, at] * stride
            two[PART_HOME, match] = cells[SET_GROUP, at] if home else one[PART_HOME, part]
            two[PART_COUNT, match] = one[PART_COUNT, part] * cells[SET_COUNT, at]
            two[PART_SUM, match] = one[PART_SUM, part] * cells[SET_SUM if owns else SET_COUNT, at]
            if extremes:
                two[PART_MOST, match] = cells[SET_MOST, at] if owns else one[PART_MOST, part]
                two[PART_LEAST, match] = cells[SET_LEAST, at] if owns else one[PART_LEAST, part]
    return two, count


@compiled
def _noted(keys: Ints, begun: int, ended: int, key: int, places: Ints, count: int) -> int:
    """Where the join value stands, in a loop that does nothing else: with the rest of the join in it each row that does
    not match costs ten times as much.
    """
    for at in range(begun, ended):
        if keys[at] == key:
            places[count] = at
            count += 1
    return count


@compiled
def _join_window(cells: Ints, index: Ints, ring: int, key: int, one: Ints, parts: int, two: Ints, stride: int,
                 home: bool, owns: bool, extremes: bool) -> tuple[Ints, int]:
    """The window join: each match is one tuple."""
    count, keys = 0, cells[KEY]
    start, held = index[ring, START], index[ring, HELD]
    first, straight = start + index[ring, HEAD], min(held, index[ring, ROOM] - index[ring, HEAD])
    for part in range(parts):
        since = count
        while count + held > two.shape[1]:
            two = _doubled(two)
        count = _noted(keys, first, first + straight, key, two[PART_CODE], count)
        count = _noted(keys, start, start + held - straight, key, two[PART_CODE], count)
        for match in range(since, count):
            at = two[PART_CODE, match]
            two[PART_CODE, match] = one[PART_CODE, part] + cells[GROUP, at] * stride
            two[PART_HOME, match] = cells[GROUP, at] if home else one[PART_HOME, part]
            two[PART_COUNT, match] = one[PART_COUNT, part]
            two[PART_SUM, match] = one[PART_SUM, part] * (cells[VALUE, at] if owns else 1)
            if extremes:
                two[PART_MOST, match] = cells[VALUE, at] if owns else one[PART_MOST, part]
                two[PART_LEAST, match] = cells[VALUE, at] if owns else one[PART_LEAST, part]
    return two, count


@compiled
def _doubled(parts: Ints) -> Ints:
    more = np.zeros((parts.shape[0], 2 * parts.shape[1]), np.int64)
    more[:, :parts.shape[1]] = parts
    return more
