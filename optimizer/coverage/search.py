"""The cheapest graph with any number of factor windows: exactly for small sets (branch and bound), else a heuristic
never worse than the paper's.

Choosing factor windows is a Steiner tree problem (paper D, §IV-C): NP-hard, and uncapacitated facility location where
factor windows do not read one another.
"""
from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

from optimizer.coverage.algebra import Window
from optimizer.coverage.candidates import candidates
from optimizer.coverage.factors import with_factors
from optimizer.coverage.graph import Graph, Number, Prices, cheapest
from optimizer.coverage.table import PriceTable, table

WORK = 8000                   # nodes of the search tree times windows that each prices: half a second
SMALL = 10                    # windows up to which the search is tried
FEW = 60                      # windows up to which candidates are tried one after the other
Chosen = frozenset[int]


@dataclass(frozen=True)
class BestGraph:
    """What a search came to; `exact`: no choice among `candidates(windows, relation)` is cheaper."""

    graph: Graph
    exact: bool


def best(windows: Collection[Window], model: Prices, nodes: int | None = None) -> BestGraph:
    """The cheapest graph known, never dearer than Algorithm 3's; looked for exactly as far as `nodes` reach."""
    start = with_factors(windows, model)
    possible = candidates(windows, model.relation.name) if len(windows) <= FEW else None
    if possible is None:
        return BestGraph(pruned(windows, start), False)
    if nodes is None:
        nodes = WORK // len(windows) if len(windows) <= SMALL else 0
    prices = table(windows, possible, model)
    chosen, exact = _branch_and_bound(prices, _grow(prices, frozenset()), nodes)
    graph = cheapest(windows, model, [prices.nodes[candidate] for candidate in chosen])
    return BestGraph(min(graph, pruned(windows, start), key=lambda g: g.cost), exact)


def pruned(windows: Collection[Window], graph: Graph) -> Graph:
    """Without the factor windows that cost more than they save, one at a time."""
    for factor in sorted(graph.factors):
        without = cheapest(windows, graph.prices, graph.factors - {factor})
        graph = min(graph, without, key=lambda g: g.cost)
    return graph


def _grow(prices: PriceTable, chosen: Chosen) -> Chosen:
    """Takes the candidate that saves most until none saves anything, then drops what no longer pays.

    Again, as long as that is cheaper.
    """
    grown = chosen
    while True:
        now = {n: prices.current(n, grown) for n in (*prices.windows, *grown)}
        gains = [(_gain(prices, now, grown, c), c) for c in prices.candidates if c not in grown]
        gain, candidate = max(gains, default=(0, -1))
        if gain > 0:
            grown |= {candidate}
            continue
        fewer = _drop(prices, grown)
        if prices.cost(fewer) >= prices.cost(chosen):
            return chosen
        grown = chosen = fewer


def _drop(prices: PriceTable, chosen: Chosen) -> Chosen:
    """Drops the candidate that pays least, as long as that is cheaper."""
    while chosen:
        fewer = min((chosen - {candidate} for candidate in chosen), key=prices.cost)
        if prices.cost(fewer) >= prices.cost(chosen):
            break
        chosen = fewer
    return chosen


def _gain(prices: PriceTable, now: dict[int, Number], chosen: Chosen, candidate: int) -> Number:
    """What one more candidate saves those that read it, less what it costs itself."""
    saved: Number = 0
    for price, n in prices.served(candidate):
        if price < now[n]:
            saved += now[n] - price
    for other in chosen:
        if (price := prices.pays(other, candidate)) < now[other]:
            saved += now[other] - price
    return saved - prices.current(candidate, chosen) if saved > 0 else 0


def _branch_and_bound(prices: PriceTable, best: Chosen, nodes: int) -> tuple[Chosen, bool]:
    """Branch and bound, depth first: with the candidate on which the bound leans most, then without it.

    False where `nodes` did not suffice.
    """
    least = prices.cost(best)
    stack: list[tuple[Chosen, Chosen]] = [(frozenset(), frozenset(prices.candidates))]
    while stack:
        if nodes == 0:
            return best, False
        nodes -= 1
        chosen, open_ = stack.pop()
        if (cost := prices.cost(chosen)) < least:
            best, least = chosen, cost
        open_ = _worthwhile(prices, chosen, open_)
        bound, leaning = _bound(prices, chosen, open_)
        if bound < least and leaning is not None:
            stack += [(chosen, open_ - {leaning}), (chosen | {leaning}, open_ - {leaning})]
    return best, True


def _worthwhile(prices: PriceTable, chosen: Chosen, open_: Chosen) -> Chosen:
    """Without candidates that cost more than all below them can save: what reads from one, at whatever remove, it
    covers itself.
    """
    while True:
        allowed = chosen | open_
        saving = {n: prices.current(n, chosen) - prices.least(n, allowed) for n in (*prices.windows, *chosen)}
        paying = frozenset(c for c in open_ if _most_saved(prices, saving, c) > prices.least(c, allowed))
        if paying == open_:
            return open_
        open_ = paying


def _most_saved(prices: PriceTable, saving: dict[int, Number], candidate: int) -> Number:
    """What all that the candidate covers can save together."""
    reads, fine = prices.model.relation.reads, prices.nodes[candidate]
    return sum(most for n, most in saving.items()
               if most and n != candidate and reads(prices.nodes[n], fine) is not None)


def _bound(prices: PriceTable, chosen: Chosen, open_: Chosen) -> tuple[Number, int | None]:
    """Below the cost of every choice from `chosen` to `chosen | open_`, by dual ascent (Erlenkotter 1978, for facility
    location): what each window pays is raised, beyond its reading towards the cost of the candidates that it reads,
    until these are paid for. One node at least reads the events: the least that any would pay for that, beyond what is
    counted, comes on top. And the candidate through which most is saved."""
    readers = {n: prices.current(n, chosen) for n in (*prices.windows, *chosen)}
    served: dict[int, list[tuple[Number, int]]] = {}
    pays: dict[int, Number] = {}
    for n, now in readers.items():
        served[n] = [(price, c) for price, c in prices.offers(n) if c in open_ and price < now]
        pays[n] = served[n][0][0] if served[n] else now
    offered = {c for _, c in chain.from_iterable(served.values())}
    costs = {c: prices.least(c, chosen | open_) for c in offered}
    unpaid = dict(costs)
    rising = [n for n in readers if served[n]]
    while rising:
        rising = [n for n in rising if _raise(n, pays, served[n], readers[n], unpaid)]
    counted = pays | {c: costs[c] - left for c, left in unpaid.items()}
    root = min(prices.model.rows(prices.nodes[n]) - counted.get(n, 0) for n in {*readers, *open_})
    saved: dict[int, Number] = {}
    for n, offers in served.items():
        for p, c in offers:
            saved[c] = saved.get(c, 0) + readers[n] - p
    return sum(pays.values()) + root, max(saved, key=lambda c: (unpaid[c] == 0, saved[c]), default=None)


def _raise(n: int, pays: dict[int, Number], offers: Sequence[tuple[Number, int]], most: Number,
           unpaid: dict[int, Number]) -> bool:
    """Raises what window n pays to the next price at which it reads one more candidate, or as far as those that it
    reads are unpaid.

    Returns whether it may rise on.
    """
    now = pays[n]
    read = [c for p, c in offers if p <= now]
    goal = next((p for p, _ in offers if p > now), most)
    step = min(goal - now, *(unpaid[c] for c in read))
    pays[n] = now + step
    for c in read:
        unpaid[c] -= step
    return step > 0 and pays[n] == goal and goal < most
