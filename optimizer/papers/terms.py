"""The cost terms of paper A's Table 1 with a nested loop or a hash join, for one tuple that arrives or leaves; nothing
is added up here.

"Each term in the cost models has a factor of two since the cost is measured for one tuple in the window increment and
one tuple in the window decrement" (section 7.1.1). Landmark and tumbling windows have no such decrement (Def. 2), their
factor is one.
"""
from __future__ import annotations

from optimizer.papers.derived import answer_buckets, answer_groups, join_buckets, set_rows, size
from optimizer.papers.statistics import PaperStream, Setting


def passes(arriving: PaperStream) -> int:
    """How often a tuple of this stream does its work: when it arrives, and when it leaves."""
    return 2 if arriving.leaving else 1


def window_update(setting: Setting) -> float:
    """Cuw(Wi) = U."""
    return setting.update


def probing(setting: Setting, stream: PaperStream, early: bool) -> float:
    """Cfmt(Wi) = wi·Pn, or (wi/Bi)·Ph by hash; Cfmt(ASi) with αi in place of wi."""
    scanned = size(stream, early)
    return (scanned / join_buckets(setting, stream) if setting.method == "hash" else scanned) * setting.probe


def set_update(setting: Setting, stream: PaperStream) -> float:
    """Ciau(ASi) = (αi/Bi)·Ug: aggregation sets are hashed on the join attribute, with either join method."""
    return set_rows(stream) / join_buckets(setting, stream) * setting.constants.Ug


def answer_update(setting: Setting) -> float:
    """Ciau(AS) = (α/Bg)·Ug, for one joined tuple."""
    return answer_groups(setting) / answer_buckets(setting) * setting.constants.Ug
