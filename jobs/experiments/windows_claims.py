"""What a table of window experiments says, in words that its rows bear out; each sentence is computed, none is written in advance."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from statistics import mean

from jobs.experiments import Report

LEAST = 0.95          # a chosen plan is never slower than this, as written being one of its candidates
REACHED = {"S-5-tumbling": 1.5, "S-20-tumbling": 4.0}      # wanted of means at a hundred events a unit
BUDGET_MS = 100.0     # of the optimizer
Row = Report


def said(rows: Sequence[Row]) -> list[str]:
    """Each claim with the numbers that it rests on."""
    both = {r["setup"][0] for r in rows} == {"R", "S"}
    generators = [_generators(rows)] if both else []
    return [_sharing(rows), *generators, *_published(rows), _least(rows), *_wanted(rows), _slicing(rows), _correlated(rows), _optimizer(rows)]


def _mean(rows: Sequence[Row], of: str, plan: str) -> float:
    return mean(r[of][plan][0] for r in rows)


def _sharing(rows: Sequence[Row]) -> str:
    more = sum(r["throughput"]["chosen"][0] > r["throughput"]["shared"][0] for r in rows)
    return (f"Factor windows beat sharing alone in {more} of {len(rows)} setups: means are {_mean(rows, 'throughput', 'chosen'):.2f} × (chosen by measured "
            f"prices) and {_mean(rows, 'throughput', 'shared'):.2f} × over all windows as written.")


def _generators(rows: Sequence[Row]) -> str:
    ours = [[_mean([r for r in rows if r["setup"].startswith(g)], "throughput", plan) for g in "RS"] for plan in ("shared", "chosen")]
    more = [s > r for r, s in ours]
    verdict = "as in the paper" if all(more) else "not as in the paper" if not any(more) else "as in the paper for one of the two only"
    return (f"Sequential sets gain {ours[0][1]:.2f} × by sharing alone and {ours[1][1]:.2f} × with factor windows, random ones {ours[0][0]:.2f} × and "
            f"{ours[1][0]:.2f} ×: {verdict}, where sequential ones gain more.")


def _published(rows: Sequence[Row]) -> list[str]:
    found = []
    for rate, kind in product(sorted({r["rate"] for r in rows}), ("tumbling", "hopping")):
        own = [r for r in rows if r["rate"] == rate and r["setup"].endswith(kind)]
        reached = [r["setup"] for r in own if r["throughput"]["chosen"][0] >= r["published"][2]]
        listed = f" ({', '.join(reached)})" if reached else ""
        if own:
            found.append(f"At {rate} a unit the paper's mean with factor windows is reached in {len(reached)} of {len(own)} {kind} setups{listed}.")
    return found


def _least(rows: Sequence[Row]) -> str:
    least = min(rows, key=lambda r: r["throughput"]["chosen"][2])
    held = "never less than" if least["throughput"]["chosen"][2] >= LEAST else "less than"
    return (f"The chosen plan is {held} {LEAST} × as written: {least['throughput']['chosen'][2]:.2f} × in its worst set "
            f"({least['setup']}, {least['rate']} a unit).")


def _wanted(rows: Sequence[Row]) -> list[str]:
    found = []
    for row in (r for r in rows if r["rate"] == 100 and r["setup"] in REACHED):
        mean_, wanted = row["throughput"]["chosen"][0], REACHED[row["setup"]]
        found.append(f"{row['setup']} at 100 a unit: {mean_:.2f} × of at most {row['bound']}; {wanted} × is {'reached' if mean_ >= wanted else 'not reached'}.")
    return found


def _slicing(rows: Sequence[Row]) -> str:
    ahead = sum(r["throughput"]["chosen"][0] >= r["throughput"]["slicing"][0] for r in rows)
    best = max(rows, key=lambda r: r["throughput"]["chosen"][0] / r["throughput"]["slicing"][0])
    ratio = best["throughput"]["chosen"][0] / best["throughput"]["slicing"][0]
    return (f"The chosen plan is at least as fast as stream slicing in {ahead} of {len(rows)} setups, at most {ratio:.1f} times ({best['setup']}, "
            f"{best['rate']} a unit); slicing alone gains {_mean(rows, 'throughput', 'slicing'):.2f} ×.")


def _correlated(rows: Sequence[Row]) -> str:
    known = [(r["correlation"], r) for r in rows if r["correlation"] is not None]
    if not known:
        return "Costs do not vary: no correlation."
    strong = sum(c >= 0.7 for c, _ in known)
    low = min(known, key=lambda pair: pair[0])
    return (f"Cost ratios by the paper's model and measured ratios correlate by {mean(c for c, _ in known):.2f} on average, 0.7 or more in {strong} of "
            f"{len(known)} setups, least in {low[1]['setup']} at {low[1]['rate']} a unit ({low[0]}).")


def _optimizer(rows: Sequence[Row]) -> str:
    slow = max(rows, key=lambda r: r["optimizer_ms"]["mean"])
    held = "below" if slow["optimizer_ms"]["mean"] < BUDGET_MS else "not below"
    mean_, most = slow["optimizer_ms"]["mean"], slow["optimizer_ms"]["most"]
    return f"The optimizer takes {mean_:.0f} ms on average in its slowest setup ({slow['setup']}), {most:.0f} ms at most: {held} {BUDGET_MS:.0f} ms."
