"""Which joins a family makes once for several of its groups: the paper's join order over many queries (E, Fig. 7b),
steered by seconds of what was counted of each sub-join.

Pure.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from optimizer.papers.reorder import Joins, Node, orders
from optimizer.papers.sharing import cost
from optimizer.plan.model import Plan
from optimizer.query.shape import shape
from optimizer.sharing.counted import JOINED, MET, UNION, Tally, side
from optimizer.sharing.families.division import FamilyDivision
from optimizer.sharing.families.subjoin import (
    Pair,
    PairsInCommon,
    SubJoin,
    SubJoinKey,
    pairs,
    pairs_in_common,
    sub_join,
)
from optimizer.sharing.group import Group
from optimizer.sharing.price import HYSTERESIS, SharingCosts
from optimizer.sharing.ways import Way, share_of_classes, splitting_after, splitting_before

COUNTED = 8             # sub-joins of a family that are counted: each costs its join once more at that boundary
# By how many times what pairs take in a family is more than the ways of one group are priced at: cells carry what all
# groups need, and each group has tables of its own. As fitted to `forebay bench sharing-joins`.
ONCE_TIMES, EACH_TIMES = 1.6, 2.5
UNSHARED = 1e9          # seconds of a join that no other group has: what is shared comes before it
ONCE, EACH, TUPLES = "once", "each for itself", "tuples"


@dataclass(frozen=True)
class SubJoinPrice:
    """What a sub-join takes at a boundary, in seconds of the slowest task: made once for all its readers, and with each
    of them making it for itself; `tuples` by equation (2), of the first.
    """

    once: float
    each: float
    tuples: float = 0.0

    def pays(self, readers: int, of: int, is_standing: bool) -> bool:
        """Whether it should be made once for so many of those that it was counted for."""
        return self.once <= self.each * readers / of * (HYSTERESIS if is_standing else 1 / HYSTERESIS)


def countable(groups: Sequence[Group], division: FamilyDivision) -> tuple[SubJoin, ...]:
    """The sub-joins that tasks can make as they divide the family, those of most readers first."""
    return tuple(sub_join(groups, key, of_key) for key, of_key in _possible(groups, division).items())


def _possible(groups: Sequence[Group], division: FamilyDivision) -> PairsInCommon:
    possible = [(key, of_key) for key, of_key in pairs_in_common(groups).items()
                if division.stream is None or division.stream in [side.source for side in key.sides]]
    return dict(sorted(possible, key=lambda pair: (-len(pair[1]), pair[0].name))[:COUNTED])


def priced(sub: SubJoin, tally: Tally, parts: int, division: FamilyDivision, costs: SharingCosts) -> SubJoinPrice:
    """By what was counted of its cells."""
    sources = [declared.source for declared in sub.key.sides]
    divided = sources.index(division.stream) if division.stream is not None else None
    parts = 1 if division.by == "one" else parts
    rows = sum(tally.get((i, UNION), (0.0, 0.0))[0] / (1 if divided not in (None, i) else parts) for i in (0, 1))
    met = tally.get((JOINED, MET), (0.0, 0.0))[0] / parts
    if sub.group.splits_after:
        pairs_s = splitting_after(sub.group, tally, met * parts, parts, Way("after", divided), costs)
    else:
        pairs_s = splitting_before(sub.group, tally, parts, Way("before", divided), costs)
    each = 0.0
    for reader in sub.readers:
        alone = sub.of_reader(reader.number)
        pairs_s += costs.joined_pairs / ONCE_TIMES * met * min(share_of_classes(alone, tally) * len(alone.classes), 1.0)
        each += costs.joined_each + rows * costs.joined_cells
        each += EACH_TIMES * splitting_before(alone, tally, parts, Way("before", divided), costs)
    once = costs.joined_once + rows * costs.joined_cells + ONCE_TIMES * pairs_s
    return SubJoinPrice(once, each, cost(side(tally, 0, UNION), side(tally, 1, UNION)))


def as_seconds(name: str, price: SubJoinPrice) -> dict[str, float]:
    """A price as it is kept beside those of ways."""
    return {f"{name}, {ONCE}": price.once, f"{name}, {EACH}": price.each, f"{name}, {TUPLES}": price.tuples}


def from_seconds(name: str, seconds: Mapping[str, float]) -> SubJoinPrice | None:
    """The price that was kept; None for a sub-join that was not counted."""
    if f"{name}, {ONCE}" not in seconds:
        return None
    return SubJoinPrice(*(seconds.get(f"{name}, {what}", 0.0) for what in (ONCE, EACH, TUPLES)))


def steered(groups: Sequence[Group], division: FamilyDivision, seconds: Mapping[str, float],
            standing: Collection[str] = ()) -> tuple[Plan, ...]:
    """The plan of each group, with the inputs whose join it reads: which of its joins comes first is what the order
    over all groups says, and it is made once if that pays. `standing`: names of sub-joins that are made once now.
    """
    in_common = _possible(groups, division)
    possible = {key: price for key in in_common if (price := from_seconds(key.name, seconds)) is not None}
    while True:
        first = _first_joins(groups, {key: price.once for key, price in possible.items()})
        times = Counter(key for key, _ in first.values())
        dear = [key for key, count in times.items()
                if count > 1 and not possible[key].pays(count, len(in_common[key]), key.name in standing)]
        dear = dear or [key for key, count in times.items() if count < 2]      # who may have gone to a dear one
        if not dear:
            break
        possible = {key: price for key, price in possible.items() if key not in dear}
    return tuple(replace(group.plan, read_joined=first[number][1]) if number in first else group.plan
                 for number, group in enumerate(groups))


def with_joins_of(groups: Sequence[Group], division: FamilyDivision,
                  plans_before: Mapping[str, Plan]) -> tuple[Group, ...]:
    """The groups with the joins that their members' plans of before read, as far as these can be made once still."""
    possible = _possible(groups, division).values()
    before = []
    for number, group in enumerate(groups):
        plan = next((plans_before[name] for name in group.names if name in plans_before), None)
        can = [of_key[number] for of_key in possible if number in of_key]
        read_joined = plan.read_joined if plan is not None and plan.read_joined in can else ()
        before.append(replace(group, chosen=replace(group.plan, read_joined=read_joined)))
    return tuple(before)


def by_tuples(groups: Sequence[Group], division: FamilyDivision, seconds: Mapping[str, float]) -> tuple[str, ...]:
    """The names of the sub-joins that the same order takes first by equation (2), as the paper does."""
    possible = {key: price.tuples for key in _possible(groups, division)
                if (price := from_seconds(key.name, seconds)) is not None}
    times = Counter(key for key, _ in _first_joins(groups, possible).values())
    return tuple(sorted(key.name for key, count in times.items() if count > 1))


def _first_joins(groups: Sequence[Group],
                 price_by_key: Mapping[SubJoinKey, float]) -> dict[int, tuple[SubJoinKey, Pair]]:
    """Of each group whose first join is one of these, which it is, and of which inputs."""
    keys: dict[str, dict[Node, tuple[SubJoinKey, Pair]]] = {}
    queries: dict[str, Joins] = {}
    for number, group in enumerate(groups):
        labels = _labels(group)
        queries[str(number)] = Joins(frozenset(labels), frozenset(_edges(group, labels)))
        keys[str(number)] = {frozenset(labels[i] for i in pair): (key, pair) for key, pair in pairs(group).items()
                             if key in price_by_key}

    def price(query: str, left: Node, right: Node) -> float:
        joined = keys[query].get(left | right)
        return UNSHARED if joined is None else price_by_key[joined[0]]

    def shared_by(query: str, node: Node) -> object:
        joined = keys[query].get(node)
        return query if joined is None else joined[0].name

    first = {}
    for query, steps in orders({q: joins for q, joins in queries.items() if keys[q]}, price, shared_by).items():
        joined = keys[query].get(steps[0][0] | steps[0][1])
        if joined is not None:
            first[int(query)] = joined
    return first


def _labels(group: Group) -> list[str]:
    """A name for each input, equal for inputs of several groups that are the same."""
    labels: list[str] = []
    for declared in group.common.inputs:
        name = f"{declared.source} {declared.window!r}"
        labels.append(f"{name} {sum(label.startswith(name) for label in labels)}")
    return labels


def _edges(group: Group, labels: Sequence[str]) -> set[frozenset[str]]:
    """The pairs of inputs that an equality joins."""
    edges = set()
    for members in shape(group.common).keys:
        joined = sorted({i for i, _ in members})
        edges |= {frozenset((labels[a], labels[b])) for a in joined for b in joined if a < b}
    return edges
