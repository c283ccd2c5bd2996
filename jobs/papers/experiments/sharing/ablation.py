"""Paper E's Fig. 21: how much dearer a boundary is when one part is left out. Parts that pipelines have are measured;
those that are a library here (join reordering, sharing of subqueries between arities: "query pipelining") are priced by
equation (2) on the same queries, and said to be."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from statistics import mean

from jobs.engine.tasks import Tasks
from jobs.papers.experiments import Report, Tell
from jobs.papers.experiments.claims import Claim, Panel, claim, report
from jobs.papers.experiments.points import finished, point, unfinished
from jobs.papers.experiments.sharing.queries import GeneratedQuery
from jobs.papers.experiments.sharing.run import (
    FASTER,
    GROUPED,
    NEVER,
    SHORT,
    StreamLoad,
    checked,
    create,
    named,
    running,
    steady,
    workload,
)
from jobs.pipeline.config import INLINE
from jobs.requests import requests
from optimizer.papers.reorder import GroupOf, Joins, Node, Orders, Price, Step, orders
from optimizer.papers.sharing import Side, cost

QUERIES = 30                             # of one form, as in Fig. 22
LATE = "LAP recompute"
SOURCES, PRICED, SEEDS = 5, 40, 3        # of the priced queries: streams of the pattern, queries, sets of them
SIMILARITIES, ARITIES = (0, 25, 50, 75, 100), (2, 3, 4, 5)
PASSED = 0.5                             # rows that a selection passes
ZERO = 1.0                               # per cent below which an impact is "zero"
SCALING = "scaling out, of two tasks"


def ablation(quick: bool, tell: Tell) -> Report:
    """A panel of measured parts, two of priced ones."""
    points = unfinished("sharing-ablation", quick)
    setting = SHORT if quick else StreamLoad(rate=8_000)
    queries = [replace(m, window=2) for m in workload(setting, 8 if quick else QUERIES, Fraction(1))]
    whole = point(points, "all", lambda: {"s": _timed(setting, queries)})["s"]
    apart = point(points, "apart", lambda: {"s": _timed(setting, queries, share_from=NEVER)})
    late = point(points, "late", lambda: {"s": _timed(setting, queries, share_from=NEVER, pin=LATE)})
    seconds = {"query-sets": apart["s"], "and early aggregation": late["s"]}
    if not quick:
        two, one = (point(points, f"{n} tasks", lambda: {"s": _timed(setting, queries, share_from=NEVER, tasks=n)})["s"]
                    for n in (2, 1))
        seconds[SCALING] = whole * one / two
    tell(f"with all {whole:.3g} s a batch; without: " + ", ".join(f"{name} {s:.3g}" for name, s in seconds.items()))
    finished(points)
    panels = [
        Panel("measured", "left out", "times the time with it", tuple(map(float, range(len(seconds)))),
              {"batch": [s / whole for s in seconds.values()]}, {}, labels=tuple(seconds),
              extrapolated={"batch": (list(seconds).index(SCALING),)} if SCALING in seconds else {},
              extrapolation="measured without query-sets, applied to the whole"),
        _panel("similarity, %", SIMILARITIES, lambda seed, x: _drawn(seed, Fraction(x, 100), None)),
        _panel("streams of the largest query", ARITIES[1:], lambda seed, n: _drawn(seed, Fraction(1, 2), n))
    ]
    details = (
        f"{len(queries)} queries of one form with their own selections, aggregates, {setting.rate:,} rows a second and "
        "stream, tasks in one process (scaling: "
        f"Spark's tasks); priced: {PRICED} queries over up to {SOURCES} streams, mean of {SEEDS} sets. Grouping by "
        "cost: docs/sharing.md"
    )
    return report("Paper E, Fig. 21: each part left out", details, panels, list(_judged(panels)), {})


def _timed(setting: StreamLoad, queries: Sequence[GeneratedQuery], share_from: int | None = None,
           pin: str | None = None, tasks: int = 0) -> float:
    """Seconds of a batch; with `tasks`, of Spark's."""
    at_work = Tasks("local[*]", {"forebay.tasks": str(tasks)}) if tasks else Tasks(INLINE)
    with running(setting, at_work, share_from=share_from) as loop:
        rt = loop.pipe
        create(rt, named(queries, GROUPED))
        for n in range(len(queries) if pin else 0):
            requests.change(rt, f"q{n}", "pin", pin)
        seconds = steady(loop, setting)
        checked(rt)
    return seconds


def _panel(axis: str, xs: Sequence[int], draw: Callable[[int, int], dict[str, GeneratedQuery]]) -> Panel:
    """Mean impacts at each x, of the queries that `draw` makes of a seed and an x."""
    reordering, pipelining = [], []
    for x in xs:
        impacts = [_impact(draw(seed, x)) for seed in range(SEEDS)]
        reordering.append(mean(impact for impact, _ in impacts))
        pipelining.append(mean(impact for _, impact in impacts))
    return Panel(f"by equation (2), by {axis}", axis, "% dearer without", tuple(map(float, xs)),
                 {"join reordering": reordering, "query pipelining": pipelining}, {}, how="priced, not run")


def _drawn(seed: int, similarity: Fraction, most: int | None) -> dict[str, GeneratedQuery]:
    return {
        f"q{n}": m for n, m in enumerate(workload(StreamLoad(streams=most or SOURCES), PRICED, similarity, seed=seed))
    }


def _impact(drawn: Mapping[str, GeneratedQuery]) -> tuple[float, float]:
    """How much dearer, in per cent, all joins are in FROM order, and where only queries of one arity share their
    subqueries.
    """
    queries: dict[str, Joins] = {}
    for q, query in drawn.items():
        names = _sources(query)
        queries[q] = Joins(frozenset(names), frozenset(frozenset(pair) for pair in zip(names, names[1:])))
    named_ = {q: f"{len(m.streams)}" for q, m in drawn.items()}

    def price(q: str, left: Node, right: Node) -> float:
        return _price(drawn[q], left, right)

    def group(q: str, sources: frozenset[str]) -> Hashable:
        return _form(drawn[q], sources)

    def by_arity(q: str, sources: frozenset[str]) -> Hashable:
        return _form(drawn[q], sources), named_[q]

    chosen = _whole(orders(queries, price, group), price, group)
    left_deep: dict[str, tuple[Step, ...]] = {}
    for q, query in drawn.items():
        names = _sources(query)
        left_deep[q] = tuple((frozenset(names[:k]), frozenset({names[k]})) for k in range(1, len(names)))
    as_written = _whole(left_deep, price, group)
    unshared = _whole(orders(queries, price, by_arity), price, by_arity)
    return 100 * (as_written / chosen - 1), 100 * (unshared / chosen - 1)


def _whole(steps_by_query: Orders, price: Price, group: GroupOf) -> float:
    """Each shared subquery once."""
    once: dict[Hashable, tuple[str, Step]] = {}
    for q, steps in steps_by_query.items():
        for left, right in steps:
            once[frozenset((left, right)), group(q, left | right)] = (q, (left, right))
    return sum(price(q, *step) for q, step in once.values())


def _sources(query: GeneratedQuery) -> list[str]:
    return [f"s{k}" for k in query.streams]


def _form(query: GeneratedQuery, sources: frozenset[str]) -> Hashable:
    """What queries that share these sources' join have in common: its attributes and the window."""
    first = min(int(s[1:]) for s in sources) - query.first
    return query.joins[first:first + len(sources) - 1], query.window


def _price(query: GeneratedQuery, left: Node, right: Node) -> float:
    """Equation (2): sources are indexed, what was joined is repartitioned; values uniform."""
    sides = [_rows(query, node) for node in (left, right)]
    keys = [min(float(StreamLoad.keys), rows) for rows in sides]
    return cost(Side(sides[0], keys[0]), Side(sides[1], keys[1]), _rows(query, left | right),
                len(left | right) == len(query.streams))


def _rows(query: GeneratedQuery, node: Node) -> float:
    return float((StreamLoad.rate * query.window * PASSED) ** len(node) / StreamLoad.keys ** (len(node) - 1))


def _judged(panels: Sequence[Panel]) -> Sequence[Claim]:
    measured, similar, arity = panels
    y = dict(zip(measured.labels, measured.measured["batch"]))
    parts = [(ratio > 1 / FASTER, f"without {name} {ratio:.2f} × the time") for name, ratio in y.items()]
    none = [(abs(v[0]) < ZERO, f"{name} {v[0]:.1f} %") for name, v in similar.measured.items()]
    rises = [(v[-1] > v[0], f"{name} {v[0]:.1f} to {v[-1]:.1f} %") for name, v in similar.measured.items()]
    deeper = [(v[-1] > v[0], f"{name} {v[0]:.1f} to {v[-1]:.1f} %") for name, v in arity.measured.items()]
    return [
        claim("each part brings something", parts),
        claim("as priced, reordering and pipelining have no impact where queries are dissimilar", none),
        claim("as priced, more the more similar they are", rises),
        claim("as priced, more the more streams are joined", deeper)
    ]
