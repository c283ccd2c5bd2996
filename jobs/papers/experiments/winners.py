"""Paper A's Fig. 10: settings in which LAP, EAP10, EAP01 and EAP11 each are the best of four, by nested loop, as the
rate of S1 grows.

The settings of (a) and (b) are lost in our copy of the paper. They are chosen by its text: "LAP is the best when both
g1 and g2 are high", "EAP10 is the best when g1 is low and g2 is high", with the sizes that (c) has.
"""
from __future__ import annotations

from collections.abc import Mapping

from jobs.papers.experiments import Report, Tell, plans
from jobs.papers.experiments.aggregation import DIFFERENT, RANKS, fitted, unit
from jobs.papers.experiments.agreement import spearman
from jobs.papers.experiments.claims import Claim, Panel, claim, measured_and_model, report
from jobs.papers.experiments.plans import FigurePoint, StreamSymbols
from jobs.papers.experiments.points import finished, point, unfinished
from optimizer.papers.statistics import Constants

RATES = (100, 200, 300, 400, 500)
OTHER = 500
# panel: the plan that wins; w, g, 1/σ of both
SHOWCASES: Mapping[str, tuple[str, tuple[int, int, int], tuple[int, int, int]]] = {
    "a": ("LAP", (500, 1500, 100), (500, 1500, 100)), "b": ("EAP10", (500, 1, 100), (500, 1500, 100)),
    "c": ("EAP01", (500, 1500, 100), (500, 1, 100)), "d": ("EAP11", (2000, 150, 10), (2000, 150, 10))}


def figure_10(quick: bool, tell: Tell) -> Report:
    """Each showcase at the paper's rates and, unless quick, at a hundred times them."""
    points = unfinished("a-fig10", quick)
    rates = RATES[::2] if quick else RATES
    panels: list[Panel] = []
    claims: list[Claim] = []
    sums: Report = {}
    for scale in (1,) if quick else (1, 100):
        cases = {(letter, rate): _case(letter, rate) for letter in SHOWCASES for rate in rates}
        times = {}
        for (letter, rate), case in cases.items():
            times[letter, rate] = point(points, f"{scale} {letter} {rate}",
                                        lambda: plans.measured(case, scale, quick))["seconds"]
            tell(f"{letter} {rate} × {scale}: "
                 + ", ".join(f"{plan} {s:.3g} s" for plan, s in times[letter, rate].items()))
        constants = fitted([(case, times[at]) for at, case in cases.items()], scale)
        diagrams = [_panel(letter, rates, times, constants, scale) for letter in SHOWCASES]
        calibrated = Constants(**point(points, "constants", lambda: dict(vars(plans.calibrated()))))
        claims.append(_agreed(diagrams, scale, cases, calibrated))
        claims += [_best(panel, letter, scale) for panel, letter in zip(diagrams, SHOWCASES)]
        sums[str(scale)] = {"constants": {"tuned": vars(constants), "calibrated": vars(calibrated)}}
        panels += diagrams
    finished(points)
    details = ("(a) and (b) have lost their settings in our copy: chosen by the text's rule. λ2 = 500; seconds for "
               f"the tuples of one second. {DIFFERENT.format(times=plans.TIMES[2], w2='')}")
    return report("Paper A, Fig. 10: each plan is the best somewhere (nested loop join)", details, panels, claims, {
        "figure": 10,
        "scales": sums
    })


def _case(letter: str, rate: float) -> FigurePoint:
    _, first, second = SHOWCASES[letter]
    return FigurePoint((StreamSymbols(rate, *first), StreamSymbols(OTHER, *second)), False)


def _panel(letter: str, rates: tuple[int, ...], times: Mapping[tuple[str, int], Mapping[str, float]],
           constants: Constants, scale: int) -> Panel:
    model = [plans.model(_case(letter, rate), constants) for rate in rates]
    names = list(times[letter, rates[0]])
    title = f"({letter}) {SHOWCASES[letter][0]} is the best" + ("" if scale == 1 else f" rates × {scale}")
    measured, by_model = {}, {}
    for name in names:
        measured[name] = [times[letter, rate][name] for rate in rates]
        by_model[name] = [costs[name] * scale for costs in model]
    return Panel(title, "rate of S1, tuples a second", unit(scale), rates, measured, by_model)


def _best(panel: Panel, letter: str, scale: int) -> Claim:
    """At each rate, by measurement; the model's winner stands beside."""
    wanted = SHOWCASES[letter][0]

    def best(of: Mapping[str, list[float]], i: int) -> str:
        return min(of, key=lambda n: of[n][i])

    checks = [(best(panel.measured,
                    i) == wanted, f"λ1 = {x:g}: {best(panel.measured, i)}, by the model {best(panel.model, i)}")
              for i, x in enumerate(panel.x)]
    return claim(f"{panel.title}", checks)


def _agreed(panels: list[Panel], scale: int, cases: Mapping[tuple[str, int], FigurePoint],
            calibrated: Constants) -> Claim:
    measured, model = measured_and_model(panels)
    tuned = spearman(measured, model)
    once = [
        plans.model(cases[letter, int(x)], calibrated)[n]
        for p, letter in zip(panels, SHOWCASES)
        for n in p.measured
        for x in p.x
    ]
    other = spearman(measured, once)
    why = f"Spearman {tuned} with constants tuned to the figure, {other} calibrated once"
    return claim(f"model and prototype rank alike, rates × {scale}", [(tuned >= RANKS, why)])
