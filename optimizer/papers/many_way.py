"""Paper A's model for any number of streams, and the price of a plan by it: what the paper has no equation for is
priced by the nearest one and says so.

    C = Σk λk·2[ U + bk(αk/Bk)Ug + Σj (Π{i before j} xi)·Xj·P + (Π{j≠k} xj)(α/Bg)Ug ],  j ≠ k in ascending xj

A tuple of stream k updates its window and, where bk = 1, its aggregation set; it probes the other inputs one after
another, each match of one probing the next ("a sequence of one-way joins"), the fewest matches first; every joined
tuple updates the answer. Xj = αj or wj (over Bj by hash) and xj = nj or mj, as bj says. With two streams these are
equations 5–12.
"""
from __future__ import annotations

from math import prod

from optimizer.errors import ForebayError
from optimizer.papers.contract import Price
from optimizer.papers.derived import matches
from optimizer.papers.statistics import Setting
from optimizer.papers.terms import answer_update, passes, probing, set_update, window_update
from optimizer.plan.model import Plan
from optimizer.query.model import Query
from optimizer.query.shape import shape

UNIT = "units of the constants a second"
# generic, nested loop, hash
TWO_WAY = {"LAP": (1, 5, 9), "EAP10": (2, 6, 10), "EAP01": (3, 7, 11), "EAP11": (4, 8, 12)}
KEEPING = {
    "recompute": "the equations change the answer by each tuple, recompute makes it anew from the windows",
    "running": "the equations change the answer by each tuple, running makes it anew from running sets like the "
               "paper's",
    "retract": "the equations keep sets as running totals, retract keeps them by pane",
    "expire": "the equations join what leaves once more and keep sets as running totals, expire keeps sets and answer "
              "by when they end",
}


def many_way(setting: Setting, digits: tuple[bool, ...], order: tuple[int, ...] | None = None) -> float:
    """C of a plan of any number of streams; `order` is the order of probes, ascending matches if None."""
    return sum(cost for _, cost in local_costs(setting, digits, order))


def local_costs(setting: Setting, digits: tuple[bool, ...],
                order: tuple[int, ...] | None = None) -> tuple[tuple[str, float], ...]:
    """The terms of C gathered by the nodes of the plan's tree, the answer first, as `explain` shows it."""
    _fitting(setting, digits, order)
    inputs = range(len(digits))
    work = [s.rate * passes(s) for s in setting.streams]
    answers = sum(work[k] * joined_rows(setting, digits, k) * answer_update(setting) for k in inputs)
    probes = sum(work[k] * probe_cost(setting, digits, k, order) for k in inputs)
    sets = [(f"AS {s.name}", work[k] * set_update(setting, s)) for k, s in enumerate(setting.streams) if digits[k]]
    windows = [(f"Scan {s.name}", work[k] * window_update(setting)) for k, s in enumerate(setting.streams)]
    return (("Late aggregation", answers), ("Join", probes), *sets, *windows)


def probe_order(setting: Setting, digits: tuple[bool, ...], k: int) -> tuple[int, ...]:
    """The inputs that a tuple of input k probes, fewest matches first; equal ones in FROM order."""
    others = [j for j in range(len(digits)) if j != k]
    return tuple(sorted(others, key=lambda j: matches(setting.streams[j], digits[j])))


def probe_cost(setting: Setting, digits: tuple[bool, ...], k: int, order: tuple[int, ...] | None = None) -> float:
    """Σj (Π{i before j} xi)·Xj·P for one tuple of input k."""
    chosen = probe_order(setting, digits, k) if order is None else tuple(j for j in order if j != k)
    cost: float = 0
    probing_rows: float = 1
    for j in chosen:
        cost += probing_rows * probing(setting, setting.streams[j], digits[j])
        probing_rows *= matches(setting.streams[j], digits[j])
    return cost


def joined_rows(setting: Setting, digits: tuple[bool, ...], k: int) -> float:
    """Π{j≠k} xj: what a tuple of input k becomes after all joins."""
    return prod(matches(s, digits[j]) for j, s in enumerate(setting.streams) if j != k)


def price(plan: Plan, setting: Setting, query: Query | None = None) -> Price:
    """Paper A's C of a plan.

    It is one for all ways of keeping, places and layouts; `outside` says how it differs from what the paper prices.
    """
    outside = _unlike_the_papers(plan, setting) + (_beyond_the_equations(query) if query else ())
    return Price(local_costs(setting, plan.digits), UNIT, equation(plan, setting), outside)


def equation(plan: Plan, setting: Setting) -> str:
    """Where the formula stands."""
    if len(plan.digits) != 2:
        return "paper A, equations 5–12 extended to any number of inputs"
    return f"paper A, Eq. {TWO_WAY[plan.name.split()[0]][2 if setting.method == 'hash' else 1]}"


def _unlike_the_papers(plan: Plan, setting: Setting) -> tuple[str, ...]:
    """How the plan differs from the paper's: windows, and an answer changed by what came and what left (LAP retract).
    """
    reasons = [] if plan.name == "LAP retract" else [KEEPING[plan.keeping]]
    if len(plan.digits) == 1:
        reasons.append("the paper joins at least two streams")
    once = [s.name for s in setting.streams if not s.leaving]
    if once:
        reasons.append(
            f"nothing leaves the window of {', '.join(once)} by itself: these terms count once, the printed factor 2 "
            "is for arriving and leaving"
        )
    return tuple(reasons)


def _beyond_the_equations(query: Query) -> tuple[str, ...]:
    """What of the query the equations do not see."""
    query_shape, reasons = shape(query), []
    if query.returns_rows:
        reasons.append("joined rows are published, the equations aggregate them")
    if query.semi:
        reasons.append("an input is asked only whether it has a row that joins, the equations join all of them")
    if query.blocks is not None:
        reasons.append("it is more than one SELECT of joined and grouped rows, which the equations do not know")
    elif query_shape.whole:
        reasons.append("an aggregate has no partial states, the equations update one for each joined tuple")
    has_extremes = any(measure.kind in ("min", "max") for measure in query_shape.measures)
    if has_extremes and any(i.window and i.window.kind != "landmark" for i in query.inputs):
        reasons.append("a MIN or MAX that leaves is evaluated anew from the window, which the equations leave out")
    if len(query.inputs) > 2 and query_shape.common_key() is None:
        reasons.append("the equations give an input one join attribute, here no one attribute joins all inputs")
    return tuple(reasons)


def _fitting(setting: Setting, digits: tuple[bool, ...], order: tuple[int, ...] | None) -> None:
    if len(digits) != len(setting.streams):
        raise ForebayError("bad-statistics",
                           f"statistics of {len(setting.streams)} streams for a plan of {len(digits)} inputs",
                           hint="expected one stream an input, in FROM order")
    if order is not None and sorted(order) != list(range(len(digits))):
        raise ForebayError("bad-statistics", f"order {order} of {len(digits)} inputs",
                           hint="expected each input's number once")
