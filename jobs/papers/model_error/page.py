"""docs/model-error.md, written from what was measured: nothing in it is typed by hand but the words."""
from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jobs.papers.model_error.drawn import DRAWN_FROM, SEED
from jobs.papers.model_error.measuring import AGAIN, BEST_OF_KEEPING, CHEAPEST, CHEAPEST_LARGE, WARM, PlanPoint
from jobs.papers.model_error.pricing import PricedSetting, node_factors
from jobs.papers.model_error.trying import MOST, Tries, as_known, share_within, surprises, tries
from optimizer.cost.measured import UnitCosts

DOUBTFUL = 1.1        # chosen/best from which both are measured again
RIGHT = 1.2           # chosen/best up to which a choice is right
MATTERS = 1.2         # second best way of keeping/best from which a setting is won clearly
KEPT_WAYS = {"recompute": ("recompute",), "running": ("running",), "expire or retract": ("expire", "retract")}
HEAD = """# Model error

`forebay bench model-error` wrote this page. Each setting is a query over stream tables of generated rows; each of its
plans has a life of its own over the same tables, boundary by boundary, through Spark's tasks, with ledger, state and
results as users have them. A boundary builds the plan's state when windows are full, {warm} more are measured, and
the fastest counts, since other work of a machine only adds. Prices rest on the statistics that the pipeline itself
had by then, from samples of its batches. So a wrong choice here is one that a user would have met. Where the chosen
plan was measured to take more than {doubtful} times what the best took, both were measured again, in turns over {again}
boundaries: the best of many that were measured once is in part the luckiest.

Not every plan is run: of each setting the {cheapest} cheapest by the prices of before ({large} where windows hold
more than 10 million rows), and the best {keeping} of each way of keeping; what was expected to take hopelessly long
is left out. *Chosen* is the plan that a price takes of those that were run. *ρ* is Spearman's rank correlation of
prices with measurements over a setting's plans, *q* the median of max(predicted/measured, measured/predicted). Prices
of a family of settings come from unit costs that were fitted to all *other* families.
"""


@dataclass(frozen=True)
class Verdict:
    """How well prices choose in some settings: `Verdict(60, 0.97, 1.8, 0.02, 0.9, 1.1)`."""

    count: int
    right: float            # share of settings in which the chosen plan is within RIGHT of the best
    worst: float
    regret: float           # mean of chosen/best − 1
    correlation: float
    error: float

    def cells(self) -> str:
        return (f"{self.count} | {self.right:.0%} | {self.worst:.2f} | {self.regret:.3f} | {self.correlation:.2f} | "
                f"{self.error:.2f}")


def verdict(settings: Sequence[PricedSetting], costs_of: Callable[[PricedSetting], UnitCosts]) -> Verdict:
    ratios = [setting.regret(setting.chosen(costs_of(setting))) for setting in settings]
    return Verdict(len(settings), share_right(ratios), max(ratios), statistics.mean(ratios) - 1,
                   statistics.median(setting.rank_correlation(costs_of(setting)) for setting in settings),
                   statistics.median(setting.error(costs_of(setting)) for setting in settings))


def share_right(ratios: Sequence[float]) -> float:
    return sum(ratio <= RIGHT for ratio in ratios) / len(ratios)


def winners(settings: Sequence[PricedSetting]) -> Mapping[str, tuple[int, int]]:
    """By way of keeping: settings whose best plan keeps so, and those in which any other takes MATTERS times that."""
    counts = {}
    for way, keepings in KEPT_WAYS.items():
        won = [setting for setting in settings if setting.best.plan.keeping in keepings]
        clearly = [setting for setting in won if _others(setting, keepings) >= MATTERS * setting.best.seconds]
        counts[way] = len(won), len(clearly)
    return counts


def _others(setting: PricedSetting, keepings: Sequence[str]) -> float:
    others = [point.seconds for point in setting.record.points if point.plan.keeping not in keepings]
    return min(others, default=float("inf"))


def page(settings: Sequence[PricedSetting], drawn: Sequence[PricedSetting], without: Mapping[str, UnitCosts],
         before: UnitCosts, after: UnitCosts) -> str:
    """`without` are unit costs by the family that they have not seen, `before` those of the run, `after` the fit."""
    def unseen(setting: PricedSetting) -> UnitCosts:
        return without[setting.family]

    head = HEAD.format(warm=WARM, again=AGAIN, doubtful=DOUBTFUL, cheapest=CHEAPEST, large=CHEAPEST_LARGE,
                       keeping=BEST_OF_KEEPING)
    parts = [head,
             _summary(settings, drawn, unseen, before, after), _tries(settings, drawn, unseen, after),
             _who_wins(settings), _nodes(settings, drawn, after),
             _families(settings, unseen), "## Settings\n\n" + _table(settings, unseen)]
    if drawn:
        ranges = "\n".join(f"- {name}: {', '.join(map(str, values))}" for name, values in DRAWN_FROM.items())
        parts.append(f"## Drawn settings\n\nBy the seed {SEED}, from ranges that stood before anything was measured; "
                     "no unit cost was fitted to them, and no price changed for them. Each value comes from its list "
                     f"(one that stands twice is twice as likely):\n\n{ranges}\n\n"
                     + _table(drawn, lambda _: after))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _summary(settings: Sequence[PricedSetting], drawn: Sequence[PricedSetting],
             unseen: Callable[[PricedSetting], UnitCosts], before: UnitCosts, after: UnitCosts) -> str:
    rows = {"each family by prices fitted to the others": verdict(settings, unseen),
            "all by one fit": verdict(settings, lambda _: after),
            "all by the unit costs of before": verdict(settings, lambda _: before)}
    if drawn:
        rows["drawn by a seed, in no fit"] = verdict(drawn, lambda _: after)
    lines = [f"| {name} | {one.cells()} |" for name, one in rows.items()]
    papers = [setting.regret(setting.chosen_by_paper()) for setting in settings]
    lines.append(f"| all by the paper's costs | {len(papers)} | {share_right(papers):.0%} | {max(papers):.2f} | "
                 f"{statistics.mean(papers) - 1:.3f} | | |")
    plans = sum(len(setting.points) for setting in (*settings, *drawn))
    left_out = sum(setting.record.left_out for setting in (*settings, *drawn))
    return "\n".join([
        f"| prices | settings | chosen ≤ {RIGHT} × best | worst | mean regret | ρ, median | q, median |",
        "|---|---|---|---|---|---|---|", *lines, "",
        f"{plans} plans were run, {left_out} left out as hopeless or not finished."])


def _tries(settings: Sequence[PricedSetting], drawn: Sequence[PricedSetting],
           unseen: Callable[[PricedSetting], UnitCosts], after: UnitCosts) -> str:
    """Extrapolated, and said to be: no pipeline has tried a plan in these settings."""
    of_settings = [tries(setting, as_known(unseen(setting))) for setting in settings]
    of_drawn = [tries(setting, as_known(after)) for setting in drawn]
    found = [one for setting in settings for one in surprises(setting, as_known(unseen(setting)))]
    rows = [_tries_row("settings, prices fitted to the other families", of_settings)]
    rows += [_tries_row("drawn settings", of_drawn)] if of_drawn else []
    return "\n".join([
        "## What trying plans adds", "",
        "Extrapolated from the same measurements: the product's rule for trying plans (docs/adaptation.md), up to "
        f"{MOST} tries a setting, played with what each plan took when it ran alone. How sure a price is decides what "
        f"is tried: of {len(found)} plans beside the chosen one, what they took more or less than it was within one "
        f"standard deviation of its price for {share_within(found, 1.0):.0%}, within two for "
        f"{share_within(found, 2.0):.0%} (of a normal error 68% and 95%).", "",
        f"| settings | tries | kept | ≤ {RIGHT} × best before | after | worst before | after |",
        "|---|---|---|---|---|---|---|", *rows])


def _tries_row(name: str, all_tries: Sequence[Tries]) -> str:
    before, after = [one.before for one in all_tries], [one.after for one in all_tries]
    return (f"| {name} | {sum(one.count for one in all_tries)} | {sum(one.kept for one in all_tries)} | "
            f"{share_right(before):.0%} | {share_right(after):.0%} | {max(before):.2f} | {max(after):.2f} |")


def _who_wins(settings: Sequence[PricedSetting]) -> str:
    rows = [f"| {way} | {won} | {clearly} |" for way, (won, clearly) in winners(settings).items()]
    return "\n".join(["## Which way of keeping wins", "",
                      f"*Clearly*: the best plan that keeps in another way takes at least {MATTERS} times as long.", "",
                      "| way of keeping | wins | clearly |", "|---|---|---|", *rows])


def _nodes(settings: Sequence[PricedSetting], drawn: Sequence[PricedSetting], after: UnitCosts) -> str:
    factors = node_factors([*settings, *drawn], after)
    rows = [f"| {node} | {factor:.2f} |" for node, factor in factors.items()]
    return "\n".join(["## By how much each node is off", "",
                      "Nodes of a plan run in one statement, so no clock can tell them apart. The factor by which each "
                      "node's seconds would have to be multiplied to be nearest to what tasks took, all plans together "
                      "(least squares): 1.1 is stated a tenth too cheap.", "",
                      "| node | factor |", "|---|---|", *rows])


def _families(settings: Sequence[PricedSetting], unseen: Callable[[PricedSetting], UnitCosts]) -> str:
    rows = []
    for family in dict.fromkeys(setting.family for setting in settings):
        mine = [setting for setting in settings if setting.family == family]
        rows.append(f"| {family} | {verdict(mine, unseen).cells()} |")
    return "\n".join(["## By family, prices fitted to the others", "",
                      f"| family | settings | chosen ≤ {RIGHT} × best | worst | mean regret | ρ | q |",
                      "|---|---|---|---|---|---|---|", *rows])


def _table(settings: Sequence[PricedSetting], costs_of: Callable[[PricedSetting], UnitCosts]) -> str:
    head = ["| setting | plans | best | ms | of it in tasks | chosen | predicted ms | chosen/best | worst/best | "
            "paper's/best |", "|---|---|---|---|---|---|---|---|---|---|"]
    return "\n".join([*head, *(_line(setting, costs_of(setting)) for setting in settings)])


def _line(setting: PricedSetting, costs: UnitCosts) -> str:
    best, chosen = setting.best, setting.chosen(costs)
    predicted = next(priced.seconds(costs) for priced in setting.points if priced.point == chosen)
    worst = max(point.seconds for point in setting.record.points)
    return (f"| {setting.record.setting.name} | {len(setting.points)} | {_name(best)} | {1000 * best.seconds:.0f} | "
            f"{1000 * best.task_seconds:.0f} | {_name(chosen)} | {1000 * predicted:.0f} | "
            f"{setting.regret(chosen):.2f} | {worst / best.seconds:.1f} | "
            f"{setting.regret(setting.chosen_by_paper()):.2f} |")


def _name(point: PlanPoint) -> str:
    return f"{point.plan.name}{' (raw)' if point.plan.layout == 'raw' else ''}"
