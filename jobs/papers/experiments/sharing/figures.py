"""Paper E's Figs. 16 to 20 on one core: keys and selectivity, space, latency, its breakdown, arity, groups, similarity;
SELECT * as printed and aggregates.

The paper's curves are not in our copy, its text is: what it says of each is what is judged. Seconds of a cluster are
not compared.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from itertools import accumulate, chain, pairwise, product
from operator import truediv

from jobs.ledger.open_pipeline import OpenPipeline
from jobs.papers.experiments import Report, Tell
from jobs.papers.experiments.claims import Claim, Panel, claim, report
from jobs.papers.experiments.points import Points, finished, point, unfinished
from jobs.papers.experiments.sharing.queries import GeneratedQuery, sc1, sc2
from jobs.papers.experiments.sharing.run import (
    FASTER,
    FORMS,
    GROUPED,
    SHARE_FROM,
    SHORT,
    STAR,
    StreamLoad,
    checked,
    create,
    lived,
    measured,
    named,
    running,
    sql,
    steady,
    timed,
    workload,
)

KEYS, SELECTIVITIES = (50, 500, 5_000), (0.1, 0.5, 0.9)
COUNTS = (1, 5, 20)
ARITIES = (2, 3, 4, 5)
SIMILARITIES = (0, 50, 100)              # per cent
GROUP_COUNTS = (1, 3, 10)
SECONDS, SHORTLY = 12, 3                 # of a scenario, and when quick; two a second are twenty after ten
MOST = 20                                # queries at once that a scenario goes up to
MANY, FEW, QUICK = 10, 5, 3              # queries of a point: aggregates, SELECT *, either when quick
RATE = 4_000                             # rows a second and stream
THIN = 1_000                             # where few keys meet in SELECT *
# rows a second and stream where three and more are joined: their results grow with its power
NARROW = 400
STAGES = {
    "requests": "requests",
    "ingest": "source",
    "describe": "optimizer",
    "answer": "join and materialization",
    "commit": "commit",
    "statistics": "statistics",
    "compact": "clean-up"
}


def keys(quick: bool, tell: Tell) -> Report:
    """Fig. 17, and the space of Fig. 16."""
    points = unfinished("sharing-keys", quick)
    panels = []
    for form in _forms(quick):
        count, rate = _count(form, quick), RATE if form == GROUPED and not quick else THIN
        xs = SELECTIVITIES[::2] if quick else SELECTIVITIES
        rates: dict[str, list[float]] = {}
        for k, x in product(KEYS[::2] if quick else KEYS, xs):
            load, queries = _load(quick, keys=k, rate=rate), _selecting(k, x, count, form)
            rates.setdefault(f"{k} keys", []).append(_rate(points, form, f"{k} {x}", load, queries, tell))
        panels.append(
            Panel(f"Fig. 17, {form}, {count} queries", "selectivity of a selection", "query-rows a second", xs, rates,
                  {}, steep=True))
    counts = COUNTS[:2] if quick else COUNTS
    spaces = [point(points, f"space {n}", lambda: _space(_load(quick), n)) for n in counts]
    space = {"rows": [s["rows"] for s in spaces], "state": [s["state"] for s in spaces]}
    panels.append(
        Panel("Fig. 16, aggregates", "queries", "kB", tuple(map(float, counts)), space, {},
              extrapolated={"rows": tuple(range(len(counts)))},
              extrapolation="a window's share of all rows' bytes"))
    finished(points)
    return report("Paper E, Figs. 16, 17: distinct keys, selectivity, space",
                  _settings(f"{RATE:,} rows a second and stream for aggregates, {THIN:,} for SELECT *"),
                  panels, [*chain.from_iterable(map(_of_keys, panels[:-1])), _of_space(panels[-1])], {})


def _selecting(key_count: int, share: float, count: int, form: str) -> dict[str, str]:
    bound, queries = round(key_count * share), []
    for query in workload(StreamLoad(keys=key_count), count):
        queries.append(replace(query, selections=tuple((a, "<", bound) for a, _, _ in query.selections)))
    return named(queries, form)


def _load(quick: bool, **more: int) -> StreamLoad:
    return replace(SHORT if quick else StreamLoad(rate=RATE), **more)


def _rate(points: Points, form: str, what: str, setting: StreamLoad, queries: Mapping[str, str], tell: Tell) -> float:
    """Query-rows a second: what all queries together take in."""
    key = f"{form} {what}"
    seconds = point(points, key, lambda: {"seconds": measured(setting, queries, SHARE_FROM[form])})["seconds"]
    tell(f"{key}: {len(queries)} queries, {seconds:.3g} s a batch")
    return round(len(queries) * setting.rows / seconds, 1)


def _space(setting: StreamLoad, count: int) -> dict[str, float]:
    """What full windows take on disk: rows, as their share of all rows that are there, and what is kept of them."""
    with running(setting) as loop:
        create(loop.pipe, named(workload(setting, count), GROUPED))
        steady(loop, setting)
        checked(loop.pipe)
        return {"rows": _bytes(loop.pipe, "streams") * 3 / setting.batches, "state": _bytes(loop.pipe, "state")}


def _bytes(rt: OpenPipeline, folder: str) -> float:
    """Thousands, of data files."""
    return sum(
        os.path.getsize(os.path.join(place, f))
        for place, _, files in os.walk(os.path.join(rt.pipeline.warehouse, folder))
        for f in files
        if f.endswith(".parquet")) / 1000


def _of_keys(panel: Panel) -> list[Claim]:
    few, many = (list(panel.measured.values())[k] for k in (0, -1))
    names = list(panel.measured)
    fewer = [
        (b < a * FASTER, f"at {x:g} {names[0]} {a:,.0f}, {names[-1]} {b:,.0f}") for x, a, b in zip(panel.x, few, many)
    ]
    falls = [(y[-1] < y[0] * FASTER, f"{n}: {y[0]:,.0f} to {y[-1]:,.0f}") for n, y in panel.measured.items()]
    return [claim(f"throughput falls with more distinct keys, {panel.title}", fewer),
            claim(f"throughput falls as selections pass more rows, {panel.title}", falls)]


def _of_space(panel: Panel) -> Claim:
    total = [a + b for a, b in zip(*panel.measured.values())]
    more = panel.x[-1] / panel.x[0]
    grows = total[-1] / total[0]
    return claim("space grows with the queries, less than half as much as they do",
                 [(grows > 1, f"{grows:.2f} × for {more:g} ×: it does not grow"),
                  (grows < more / 2, f"{grows:.2f} × for {more:g} ×")])


def latency(quick: bool, tell: Tell) -> Report:
    """Fig. 18a: both scenarios, by number of joined streams."""
    points = unfinished("sharing-latency", quick)
    arities = ARITIES[:2] if quick else ARITIES
    seconds = SHORTLY if quick else SECONDS
    first, second = list(sc1(2, MOST, seconds)), list(sc2(2, MOST, seconds, 2))
    plans = {
        f"SC1, 2 a second up to {reached(first)}": first,
        f"SC2, 2 a second up to {reached(second)}, 2 deleted every 2 s": second
    }
    panels = []
    for form in _forms(quick):
        means, spread = {}, {}
        for name, changes in plans.items():
            lives = [_lived(points, f"{form} {name} {n}", form, n, changes, tell) for n in arities]
            means[name] = [life["latency"][0] for life in lives]
            spread[name] = [(life["latency"][1], life["latency"][2]) for life in lives]
        panels.append(
            Panel(f"Fig. 18a, {form}", "streams joined", "s from event time to answer", tuple(map(float, arities)),
                  means, {}, labels=tuple(f"{n}-way" for n in arities), spread=spread))
    finished(points)
    details = _settings(
        f"{NARROW} rows a second and stream; bars: the least and the most; a row waits for half a batch on average")
    return report("Paper E, Fig. 18a: latency from event time to answer while queries come and go", details, panels,
                  [c for p in panels for c in _of_latency(p)], {})


def reached(changes: Sequence[tuple[int, Mapping[str, int]]]) -> int:
    """The most queries at once in a scenario as long as it is carried out."""
    return max(accumulate(change["create"] - change["delete"] for _, change in changes))


def _lived(points: Points, key: str, form: str, joined: int, changes: Sequence[tuple[int, Mapping[str, int]]],
           tell: Tell) -> Report:
    setting = StreamLoad(joined, NARROW, batches=len(changes))
    queries = [sql(m, form) for m in workload(setting, sum(c["create"] for _, c in changes), joined=joined)]
    life = point(points, key, lambda: asdict(lived(setting, queries, changes)))
    tell(
        f"{key}: {life['latency'][0]:.2f} s, {life['latency'][1]:.2f} to {life['latency'][2]:.2f}; "
        f"{life['queries']:.1f} queries on average"
    )
    return life


def _of_latency(panel: Panel) -> list[Claim]:
    first, second = panel.measured.values()
    grows = [(_rises(y), f"{name}: {' to '.join(f'{s:.2f}' for s in y)} s") for name, y in panel.measured.items()]
    lower = [(b < a, f"{x}: {a:.2f} and {b:.2f} s") for x, a, b in zip(panel.labels, first, second)]
    widths = [[most - least for least, most in ends] for ends in panel.spread.values()]
    wider = [(b > a, f"{x}: over {a:.2f} and {b:.2f} s") for x, a, b in zip(panel.labels, *widths)]
    return [claim(f"latency grows with every further stream joined, {panel.title}", grows),
            claim(f"SC2's latency is lower than SC1's, {panel.title}", lower),
            claim(f"SC2's latency fluctuates more than SC1's, {panel.title}", wider)]


def _rises(y: Sequence[float]) -> bool:
    return all(a < b for a, b in pairwise(y))


def breakdown(quick: bool, tell: Tell) -> Report:
    """Fig. 19: stages of a batch under SC1."""
    points = unfinished("sharing-breakdown", quick)
    arities = ARITIES[:2] if quick else ARITIES
    changes = list(sc1(1, MOST, SHORTLY if quick else SECONDS))
    panels = []
    for form in _forms(quick):
        stages = [_lived(points, f"{form} {n}", form, n, changes, tell)["stages"] for n in arities]
        panels.append(
            Panel(f"Fig. 19, {form}", "streams joined", "ms a batch", tuple(map(float, arities)),
                  {title: [took.get(stage, 0.0) * 1000 for took in stages] for stage, title in STAGES.items()}, {},
                  labels=tuple(f"{n}-way" for n in arities)))
    finished(points)
    return report("Paper E, Fig. 19: what a batch's time consists of",
                  _settings(f"SC1, one query a second up to {reached(changes)}; {NARROW} rows a second and stream"),
                  panels,
                  [c for p in panels for c in _of_stages(p)], {})


def _of_stages(panel: Panel) -> list[Claim]:
    whole = list(map(sum, zip(*panel.measured.values())))
    shares = {name: list(map(truediv, y, whole)) for name, y in panel.measured.items()}
    source, join, optimizer = (shares[STAGES[k]] for k in ("ingest", "answer", "describe"))
    alike = [(0.5 < b / a < 2, f"{x}: source {a:.0%}, join and materialization {b:.0%}")
             for x, a, b in zip(panel.labels, source, join)]
    grows = [(optimizer[-1] > optimizer[0], f"{optimizer[0]:.1%} to {optimizer[-1]:.1%}")]
    return [claim(f"source and join with materialization take similar shares (within 2 ×), {panel.title}", alike),
            claim(f"the optimizer's share grows with the streams joined, {panel.title}", grows)]


def shape(quick: bool, tell: Tell) -> Report:
    """Fig. 20: arity (at once and ad hoc), groups, similarity."""
    points = unfinished("sharing-shape", quick)
    panels = [_arity(form, quick, points, tell) for form in _forms(quick)]
    panels += [
        _by(form, "groups", GROUP_COUNTS[::2] if quick else GROUP_COUNTS, _grouped, quick, points, tell)
        for form in _forms(quick)
    ]
    panels += [
        _by(form, "similarity, %", SIMILARITIES[::2] if quick else SIMILARITIES,
            lambda count, percent: workload(StreamLoad(), count, Fraction(percent, 100)), quick, points, tell)
        for form in _forms(quick)
    ]
    finished(points)
    details = _settings(
        f"{NARROW} rows a second and stream by arity, else {RATE:,}; {_count(STAR, quick)} queries of "
        f"SELECT *, {_count(GROUPED, quick)} of aggregates")
    return report("Paper E, Fig. 20: throughput by arity, groups, similarity", details, panels,
                  [c for p in panels for c in _of_shape(p)], {})


def _arity(form: str, quick: bool, points: Points, tell: Tell) -> Panel:
    arities = ARITIES[:2] if quick else ARITIES
    at_once, ad_hoc = [], []
    for n in arities:
        count = _count(STAR, quick)
        setting = _load(quick, streams=n, rate=NARROW, batches=_load(quick).batches + count)
        queries = workload(setting, count, joined=n)
        at_once.append(_rate(points, form, f"{n}-way", setting, named(queries, form), tell))
        measurement = point(points, f"{form} {n}-way ad hoc", lambda: {"seconds": _ad_hoc(setting, queries, form)})
        ad_hoc.append(round(count * setting.rows / measurement["seconds"], 1))
    return Panel(f"Fig. 20a, {form}", "streams joined", "query-rows a second", tuple(map(float, arities)), {
        "at once": at_once,
        "ad hoc": ad_hoc
    }, {}, steep=True)


def _ad_hoc(setting: StreamLoad, queries: Sequence[GeneratedQuery], form: str) -> float:
    """Seconds of the batches in which queries come, one each after the first, as if each had all of them."""
    with running(setting, share_from=SHARE_FROM[form]) as loop:
        rt = loop.pipe
        create(rt, named(queries[:1], form))
        steady(loop, setting)
        took = []
        for number, one in enumerate(queries[1:], 1):
            began = create(rt, named([one], form, number))
            took.append((began + timed(loop)) / (number + 1) * len(queries))
        checked(rt)
    return sum(took) / len(took)


def _grouped(count: int, groups: int) -> list[GeneratedQuery]:
    """Queries of so many forms: a pair of join attributes each, one window."""
    queries = workload(StreamLoad(), count, Fraction(1))
    return [replace(m, joins=((k % groups % 6, k % groups // 6),), window=2) for k, m in enumerate(queries)]


def _forms(quick: bool) -> Sequence[str]:
    return FORMS[1:] if quick else FORMS


def _count(form: str, quick: bool) -> int:
    return QUICK if quick else MANY if form == GROUPED else FEW


def _by(form: str, what: str, xs: Sequence[int], make: Callable[[int, int], list[GeneratedQuery]], quick: bool,
        points: Points, tell: Tell) -> Panel:
    rates = [
        _rate(points, form, f"{what} {x}", _load(quick), named(make(_count(form, quick), x), form), tell) for x in xs
    ]
    return Panel(f"Fig. 20{'c' if what == 'groups' else 'd'}, {form}", what, "query-rows a second",
                 tuple(map(float, xs)), {"all": rates}, {})


def _of_shape(panel: Panel) -> list[Claim]:
    """Of queries that share nothing the paper says nothing by groups or similarity."""
    first, *others = panel.measured.values()
    ends = f"{first[0]:,.0f} to {first[-1]:,.0f} query-rows a second"
    if STAR in panel.title and panel.axis != "streams joined":
        return []
    if panel.axis == "groups":
        return [claim(f"throughput falls with more groups, {panel.title}", [(first[-1] < first[0] * FASTER, ends)])]
    if panel.axis.startswith("similarity"):
        return [claim(f"throughput grows with similarity, {panel.title}", [(first[-1] > first[0] / FASTER, ends)])]
    more = [
        (b < a * FASTER, f"{x:g}-way {a:,.0f} at once, {b:,.0f} ad hoc") for x, a, b in zip(panel.x, first, others[0])
    ]
    return [
        claim(f"throughput falls with the streams joined, {panel.title}", [(first[-1] < first[0] * FASTER, ends)]),
        claim(f"queries given at once take less than ad hoc ones, {panel.title}", more)
    ]


def _settings(more: str) -> str:
    return (f"{more}; attributes uniform in 0 … 499 unless said, windows of 1 to 3 s, batches of 1 s, selections of a "
            "half; processor seconds of one process (the paper: 4 and 8 nodes); a tenth more or less is no difference")
