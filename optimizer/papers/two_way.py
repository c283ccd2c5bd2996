"""Paper A's equations 1–4 for two streams, term by term; with a nested loop's terms they are 5–8, with a hash join's
9–12; more inputs are refused.

Equation 6 (EAP10, nested loop) is misprinted. As printed, its λ1 part is

    λ1(2w2Pn + 2Un + 2(α1/Bg)Ug + 2m2(α/B2)Ug)        printed
    λ1(2w2Pn + 2Un + 2(α1/B1)Ug + 2m2(α/Bg)Ug)        used

AS1 is hashed on stream 1's join attribute (Eqs. 8 and 10 have α1/B1) and the answer AS on the grouping attribute (Eqs.
5, 7 to 12 have α/Bg; Table 2's Bg), and Eq. 2 has the same Ciau(AS1) and Ciau(AS) there as Eq. 4 and Eq. 1. So the
second form is used; `eap10_printed` is kept for comparison.
"""
from __future__ import annotations

from optimizer.errors import ForebayError
from optimizer.papers.derived import (
    answer_buckets,
    answer_groups,
    join_buckets,
    matching_groups,
    matching_rows,
    set_rows,
)
from optimizer.papers.statistics import PaperStream, Setting
from optimizer.papers.terms import answer_update, passes, probing, set_update, window_update


def two_way(setting: Setting, digits: tuple[bool, bool]) -> float:
    """C of LAP and EAP10, EAP01, EAP11 of two streams."""
    if len(setting.streams) != 2 or len(digits) != 2:
        raise ForebayError("bad-statistics", f"{len(setting.streams)} streams",
                           hint="equations 1–12 are for two; optimizer.papers.many_way takes any number")
    formula = {(False, False): late, (True, False): eap10, (False, True): eap01, (True, True): eap11}[digits]
    return formula(setting, *setting.streams)


def late(s: Setting, s1: PaperStream, s2: PaperStream) -> float:
    """λ1[Cuw(W1) + Cfmt(W2) + m2·Ciau(AS)] + λ2[Cuw(W2) + Cfmt(W1) + m1·Ciau(AS)] (1), by nested loop (5), by hash (9).
    """
    first = window_update(s) + probing(s, s2, False) + matching_rows(s2) * answer_update(s)
    second = window_update(s) + probing(s, s1, False) + matching_rows(s1) * answer_update(s)
    return s1.rate * passes(s1) * first + s2.rate * passes(s2) * second


def eap10(s: Setting, s1: PaperStream, s2: PaperStream) -> float:
    """λ1[Cuw(W1) + Cfmt(W2) + m2·Ciau(AS) + Ciau(AS1)] + λ2[Cuw(W2) + Cfmt(AS1) + n1·Ciau(AS)] (2), by nested loop (6),
    by hash (10).
    """
    first = window_update(s) + probing(s, s2, False) + matching_rows(s2) * answer_update(s) + set_update(s, s1)
    second = window_update(s) + probing(s, s1, True) + matching_groups(s1) * answer_update(s)
    return s1.rate * passes(s1) * first + s2.rate * passes(s2) * second


def eap01(s: Setting, s1: PaperStream, s2: PaperStream) -> float:
    """λ1[Cuw(W1) + Cfmt(AS2) + n2·Ciau(AS)] + λ2[Cuw(W2) + Cfmt(W1) + m1·Ciau(AS) + Ciau(AS2)] (3), by nested loop (7),
    by hash (11).
    """
    first = window_update(s) + probing(s, s2, True) + matching_groups(s2) * answer_update(s)
    second = window_update(s) + probing(s, s1, False) + matching_rows(s1) * answer_update(s) + set_update(s, s2)
    return s1.rate * passes(s1) * first + s2.rate * passes(s2) * second


def eap11(s: Setting, s1: PaperStream, s2: PaperStream) -> float:
    """λ1[Cuw(W1) + Cfmt(AS2) + n2·Ciau(AS) + Ciau(AS1)] + λ2[Cuw(W2) + Cfmt(AS1) + n1·Ciau(AS) + Ciau(AS2)] (4), by
    nested loop (8), by hash (12).
    """
    first = window_update(s) + probing(s, s2, True) + matching_groups(s2) * answer_update(s) + set_update(s, s1)
    second = window_update(s) + probing(s, s1, True) + matching_groups(s1) * answer_update(s) + set_update(s, s2)
    return s1.rate * passes(s1) * first + s2.rate * passes(s2) * second


def early_gain(setting: Setting, first: bool) -> float:
    """What aggregating one stream early saves, whatever the other does: by (1)–(4), for stream 1, λ2[Cfmt(W1) −
    Cfmt(AS1) + (m1 − n1)Ciau(AS)] − λ1·Ciau(AS1).

    So two streams decide apart: EAP11 is best iff both gain, LAP iff neither does (section 7.2.3, Fig. 10).
    """
    stream, other = setting.streams if first else setting.streams[::-1]
    probes = probing(setting, stream, False) - probing(setting, stream, True)
    answers = (matching_rows(stream) - matching_groups(stream)) * answer_update(setting)
    upkeep = stream.rate * passes(stream) * set_update(setting, stream)
    return other.rate * passes(other) * (probes + answers) - upkeep


def eap10_printed(s: Setting, s1: PaperStream, s2: PaperStream) -> float:
    """Equation 6 as printed: α1/Bg and m2·α/B2 (see above)."""
    group = s.constants.Ug
    odd = set_rows(s1) / answer_buckets(s) * group + matching_rows(s2) * answer_groups(s) / join_buckets(s, s2) * group
    usual = set_update(s, s1) + matching_rows(s2) * answer_update(s)
    return eap10(s, s1, s2) + s1.rate * passes(s1) * (odd - usual)
