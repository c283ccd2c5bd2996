"""Which plan answers from the next boundary on: a decision is a value that says what was chosen, why, and at which
prices; nothing is run or stored here.

Switch when the predicted saving over the horizon exceeds the cost of building the new plan's state (DESIGN,
"Adaptation"), with hysteresis; a switch that turns out worse than what it replaced is undone, and the plan's price is
corrected by what was measured.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median, median_high

from optimizer.plan.model import Candidate, Plan


@dataclass(frozen=True)
class Hysteresis:
    """When a better plan is worth a change."""

    ratio: float = 1.1           # the present plan must be this many times as dear
    floor: float = 0.004         # seconds a boundary that must be saved
    horizon: int = 60            # boundaries over which a saving counts
    rest: int = 10               # boundaries between two switches
    enough: int = 3              # measured boundaries after which a switch, or a plan that is tried, is judged
    worse: float = 1.25          # measured to be this many times as dear as the plan before it: undone
    memory: int = 200            # boundaries for which a correction is remembered
    # Standard deviations below its price that a plan nobody has measured may take: within so many, seven plans of ten
    # were measured to be (docs/model-error.md).
    doubt: float = 1.5
    promise: float = 1.2         # the plan in force must be measured this many times as dear, for another to be tried
    budget: float = 0.03         # share of a pipeline's seconds that trying plans may take


DEFAULT = Hysteresis()
BEYOND_MEASURE = 1e6    # times its price: what a plan counts as that does not fit into memory, or failed when tried


@dataclass(frozen=True)
class Priced:
    """A candidate with its price: `Priced(plan, 0.8, building=12.0, state_rows=4000)`.

    `seconds` are predicted for a boundary (corrected by what was measured of the plan), `deviation` is how sure they
    are, `building` the seconds to build its state, `paper` the paper's cost. Of a candidate that is far from the
    cheapest only `seconds` is worked out. A refused one has a reason instead of a price. `doubt` is the standard
    deviation of what it takes more or less than the plan in force, in which what both do alike cancels; None where that
    was measured, or is not asked. `haste` are the seconds that leaving the plan in force for it costs more now than a
    boundary later: above 0 only while windows still hold rows of a higher rate.
    """

    plan: Plan
    seconds: float
    deviation: float | None = None
    building: float = 0.0
    state_rows: float | None = None
    paper: float | None = None
    refused: str | None = None
    doubt: float | None = None
    haste: float = 0.0


@dataclass(frozen=True)
class Tried:
    """A plan that runs beside the one in force, and the seconds that both took of the same boundaries.

    `Tried(plan, measured=(0.2, 0.3), beside=(0.5, 0.4))` was measured twice. The batch that made its state says nothing
    and is not among them. `failed` says why it cannot go on.
    """

    plan: Plan
    measured: tuple[float, ...] = ()
    beside: tuple[float, ...] = ()
    failed: str = ""


@dataclass(frozen=True)
class Past:
    """What happened so far: the plan in force, the one before it, what was measured of both, and by how much prices
    were wrong.

    `Past(plan, since=3, before="LAP recompute", measured=(0.2, 0.3, 0.2), ratio_before=1.1)` is a switch that can be
    judged. `judged`: it was. `tried` runs beside the plan in force; `allowance` are the seconds that trying a plan may
    take by now. `works` says what was done at the newest of the measured boundaries: of another rate, or other windows,
    seconds compare with prices of now by what that work costs (`comparable`).
    """

    plan: Plan | None = None
    since: int = 0                                     # boundaries answered under it
    before: str | None = None                          # its name
    measured: tuple[float, ...] = ()                   # seconds of its boundaries, newest last
    # measured over predicted seconds of the plan before it, when it was left
    ratio_before: float | None = None
    # plan name → (factor, boundaries since)
    corrections: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    judged: bool = False
    tried: Tried | None = None
    allowance: float = 0.0
    works: tuple[Mapping[str, float], ...] = ()        # amounts by kind, newest last

    def can_be_judged(self, rules: Hysteresis) -> bool:
        """Whether the plan has answered enough measured boundaries since a switch that nobody has judged yet."""
        is_comparable = self.before is not None and self.ratio_before is not None
        return is_comparable and not self.judged and len(self.measured) >= rules.enough


@dataclass(frozen=True)
class Decision:
    """`candidates` in the order of their names; `predicted` of the chosen one, `best` of the cheapest.

    `tried` runs beside the chosen plan from the next boundary on, so that it is measured. Of a switch, `ratio_before`
    is what the plan that is left was measured at over its price of now, where that is known.
    """

    plan: Plan
    switched_from: Plan | None
    reason: str
    predicted: float | None
    candidates: tuple[Priced, ...] = ()
    corrections: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    tried: Plan | None = None
    ratio_before: float | None = None

    @property
    def best(self) -> float | None:
        return min((c.seconds for c in self.candidates if c.refused is None), default=None)


def priced(candidates: Iterable[Candidate], price: Callable[[Plan], Priced], past: Past = Past()) -> tuple[Priced, ...]:
    """Each candidate's price, times its correction; a refused one has none."""
    candidates_with_prices = []
    for candidate in candidates:
        if candidate.refused is not None:
            candidates_with_prices.append(Priced(candidate.plan, 0.0, refused=candidate.refused))
            continue
        predicted = price(candidate.plan)
        factor = past.corrections.get(candidate.plan.name, (1.0, 0))[0]
        deviation = None if predicted.deviation is None else predicted.deviation * factor
        doubt = None if candidate.plan.name in past.corrections else predicted.doubt      # it was measured
        candidates_with_prices.append(
            replace(predicted, seconds=predicted.seconds * factor, deviation=deviation, doubt=doubt))
    return tuple(candidates_with_prices)


def decide(candidates: tuple[Priced, ...], current: Priced | None, past: Past, rules: Hysteresis = DEFAULT) -> Decision:
    """Which of these candidates answers from the next boundary on; they are priced by the same statistics, and at least
    one is not refused.

    `current` is the plan in force as it is, if it can go on.
    """
    best = min((c for c in candidates if c.refused is None), key=lambda c: c.seconds)
    if past.plan is None:
        return Decision(best.plan, None, "the cheapest at its first boundary", best.seconds, candidates,
                        past.corrections)
    if current is None:
        return Decision(best.plan, past.plan, f"{past.plan.name} can no longer hold the query", best.seconds,
                        candidates, past.corrections)
    undoing = undone_switch(candidates, current, past, rules)
    if undoing is not None:
        return undoing
    why_not = _reason_to_stay(current, best, past, rules)
    if why_not is not None:
        return Decision(past.plan, None, why_not, current.seconds, candidates, past.corrections)
    saved = current.seconds - best.seconds
    reason = (f"{_name_beside(best.plan, past.plan)} saves {in_ms(saved)} of {in_ms(current.seconds)} a boundary: "
              f"{saved * rules.horizon:.2f} s in {rules.horizon} boundaries, for {best.building:.2f} s to build its "
              "state")
    return Decision(best.plan, past.plan, reason, best.seconds, candidates, past.corrections,
                    ratio_before=over_price(past, current.seconds))


def comparable(past: Past, price: float, price_of: Callable[[Mapping[str, float]], float]) -> Past:
    """The same with measured seconds as they would be at statistics of now, by which the plan in force has this price.

    A window that still held a million rows when a boundary was measured says nothing of one with a thousand, but by how
    much the plan was off its price then says so of now.
    """
    count = len(past.measured) - len(past.works)
    scaled = [seconds * price / max(price_of(work), 1e-9) for seconds, work in zip(past.measured[count:], past.works)]
    return replace(past, measured=(*past.measured[:count], *scaled), works=())


def over_price(past: Past, price: float) -> float | None:
    """How far the plan in force was off this price of it, as measured at comparable boundaries."""
    return median_high(past.measured) / price if past.measured and price > 0 else None


def _name_beside(plan: Plan, other: Plan) -> str:
    """A plan's name, with what differs where only its form does."""
    if plan.name != other.name:
        return plan.name
    form = ("exchange", "layout", "invalidation", "place", "parts", "order", "sharing", "levels", "hops")
    differ = [f"{k} {getattr(plan, k)}" for k in form if getattr(plan, k) != getattr(other, k)]
    return f"{plan.name} with {', '.join(differ)}"


def _reason_to_stay(current: Priced, best: Priced, past: Past, rules: Hysteresis) -> str | None:
    """Why nothing changes; None if the best plan is worth a switch."""
    if best.plan == current.plan or best.seconds >= current.seconds:
        return "the cheapest"
    saved, name = current.seconds - best.seconds, _name_beside(best.plan, current.plan)
    if saved < rules.floor or current.seconds < rules.ratio * best.seconds:
        return f"{name} would save {in_ms(saved)} of {in_ms(current.seconds)} a boundary: too little"
    if past.before is not None and past.since < rules.rest:
        return (f"{name} is cheaper, but the last switch is {past.since} boundaries ago: {rules.rest} are left between "
                "two")
    if best.haste > 0:
        return (f"{name} would save {in_ms(saved)} of {in_ms(current.seconds)} a boundary, but windows still hold rows "
                f"of a higher rate: a boundary later the switch costs {in_ms(best.haste)} less")
    if saved * rules.horizon <= best.building:
        return (f"{name} would save {saved * rules.horizon:.2f} s in {rules.horizon} boundaries, and its state costs "
                f"{best.building:.2f} s")
    return None


def undone_switch(candidates: tuple[Priced, ...], current: Priced, past: Past, rules: Hysteresis) -> Decision | None:
    """A switch whose plan is measured to be dearer than what the one before it would cost now is undone.

    The plan's price is then corrected by what was measured, so that it does not return at once. Rates may have changed
    since the switch: what the plan before cost then says nothing, so its price of now is taken, times how far it was
    off when it was last measured.
    """
    if past.ratio_before is None or not past.can_be_judged(rules):
        return None
    before = next((c for c in candidates if c.refused is None and c.plan.name == past.before), None)
    if before is None:
        return None
    measured, expected = median(past.measured), before.seconds * past.ratio_before
    if measured < max(rules.worse * expected, expected + rules.floor):
        return None
    factor = max(past.corrections.get(current.plan.name, (1.0, 0))[0] * measured / max(current.seconds, 1e-9), 1.0)
    corrected = {**past.corrections, current.plan.name: (factor, 0)}
    reason = (f"undone: {current.plan.name} is measured at {in_ms(measured)} a boundary, {past.before} would cost "
              f"{in_ms(expected)}")
    # its price is corrected, so that it is off by nothing more
    return Decision(before.plan, past.plan, reason, expected, candidates, corrected, ratio_before=1.0)


def in_ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
