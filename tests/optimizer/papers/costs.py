"""Settings for tests of the cost models: exact random ones, the papers' defaults, and a small one to work by hand."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from optimizer.papers.contract import Price
from optimizer.papers.many_way import many_way
from optimizer.papers.statistics import METHODS, Constants, PaperStream, Setting
from optimizer.plan.model import Plan

# st.fractions takes ten times as long to draw
NUMBERS = st.builds(Fraction, st.integers(0, 1000), st.integers(1, 7))
# a quotient of two ints would be a float, and equalities not exact
WHOLE = st.integers(1, 1500).map(Fraction)
STREAMS = st.builds(PaperStream, st.just("s"), NUMBERS, NUMBERS, WHOLE,
                    st.integers(1, 2000).map(lambda d: Fraction(1, d)), st.booleans())
CONSTANTS = st.builds(Constants, *[st.builds(Fraction, st.integers(0, 9), st.integers(1, 5))] * 5)


def settings(least: int, most: int) -> st.SearchStrategy[Setting]:
    streams = st.lists(STREAMS, min_size=least, max_size=most).map(tuple)
    return st.builds(Setting, streams, st.sampled_from(METHODS), WHOLE, CONSTANTS)


def paper(method: str, *streams: tuple[float, float, float, float]) -> Setting:
    """(λ, w, g, σ) each; all constants 1, B = 1021."""
    return Setting(tuple(PaperStream(f"s{n}", *s) for n, s in enumerate(streams, 1)), method)


def digits(m: int) -> list[tuple[bool, ...]]:
    return list(product((False, True), repeat=m))


def costs(setting: Setting) -> dict[str, float]:
    """C of every plan by its digits, as "10"."""
    return {"".join("01"[d] for d in ds): many_way(setting, ds) for ds in digits(len(setting.streams))}


def by_hand(method: str, m: int = 2) -> Setting:
    """α = 3, Bg = 3; α1 = 6, α2 = 3, α3 = 4; m = 5, 2, 2; n = 3, 1, 1; B = 2, 3, 4."""
    streams = (PaperStream("s1", 2, 10, 3,
                           Fraction(1, 2)), PaperStream("s2", 4, 6, 1,
                                                        Fraction(1, 3)), PaperStream("s3", 1, 8, 1, Fraction(1, 4)))
    return Setting(streams[:m], method, 100, Constants(Pn=1, Ph=2, Un=10, Uh=20, Ug=100))


def ranked(model: Callable[[Plan], Price], plans: Iterable[Plan]) -> tuple[tuple[Plan, Price], ...]:
    """Cheapest first; plans of one price stay in the order given."""
    return tuple(sorted(((plan, model(plan)) for plan in plans), key=lambda pair: pair[1].total))
