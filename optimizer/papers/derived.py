"""Sizes and matches that paper A derives from rates, windows, groups and selectivities (Eqs. 13–22, Appendix B):
uniform, independent attributes assumed.

Here a stream is one of `Setting.streams`, in FROM order; nothing here is in units of time.
"""
from __future__ import annotations

from math import prod

from optimizer.papers.statistics import PaperStream, Setting


def answer_groups(setting: Setting) -> float:
    """α = min(w1,g1)·min(w2,g2) (13): the rows of the answer, at most; the product goes over all inputs."""
    return prod(min(s.window, s.groups) for s in setting.streams)


def set_rows(stream: PaperStream) -> float:
    """αi = min(wi, gi·(1/σi)) (14, 15): the rows of an aggregation set, by group and join value."""
    return min(stream.window, stream.groups / stream.selectivity)


def matching_rows(stream: PaperStream) -> float:
    """mi = σi·wi (16, 17): tuples of the window that match one tuple of the other side."""
    return stream.selectivity * stream.window


def matching_groups(stream: PaperStream) -> float:
    """ni = min(wi·σi, gi) (18, 19): rows of the aggregation set that match one."""
    return min(matching_rows(stream), stream.groups)


def join_buckets(setting: Setting, stream: PaperStream) -> float:
    """Bi = min(1/σi, B) (20, 21)."""
    return min(1 / stream.selectivity, setting.buckets)


def answer_buckets(setting: Setting) -> float:
    """Bg = min(g1, B) (22): the answer is hashed on the grouping attributes of one input only, the first as printed
    (`Setting.hashed`).
    """
    return min(setting.streams[setting.hashed].groups, setting.buckets)


def size(stream: PaperStream, early: bool) -> float:
    """Xi: what is kept of an input, rows of its aggregation set or tuples of its window."""
    return set_rows(stream) if early else stream.window


def matches(stream: PaperStream, early: bool) -> float:
    """xi: how many of them match one tuple."""
    return matching_groups(stream) if early else matching_rows(stream)
