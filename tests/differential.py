"""One random case taken through plans, and its answers compared with the oracle's.

Plans, runs, parts, files and switches come from a seeded choice.
"""
from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random

import pyarrow as pa

from jobs.engine.work import TaskResult
from jobs.verify.recompute import Answer, compare
from optimizer.coverage.algebra import COVERED, Window
from optimizer.errors import ForebayError
from optimizer.expression.types import parse_type
from optimizer.plan.merging import SHARING, relation, step
from optimizer.plan.model import INVALIDATIONS, LAYOUTS, Plan, candidates, exchanges, refusal, with_levels
from optimizer.plan.program import BEGINNING
from optimizer.query.model import Catalog, Query
from optimizer.query.shape import shape
from optimizer.sql.parse import parse
from tests import oracle
from tests.engine import Ask, Failed, Folder, compact, orders, performed, taken
from tests.streams import Case, Columns

Got = dict[int, pa.Table | Failed]
Course = Generator[Ask, list[TaskResult], Got]


@dataclass(frozen=True)
class Stretch:
    """A run of boundaries by one plan; `anew` begins its state at the first of them."""

    plan: Plan
    boundaries: tuple[int, ...]
    anew: bool


def query_of(case: Case) -> Query:
    def typed(columns: Columns) -> tuple[tuple[str, object], ...]:
        return tuple((n, parse_type(k)) for n, k in columns.items())

    streams = tuple((n, e, typed(c)) for n, (e, c, _) in case.streams.items())
    return parse(case.sql, Catalog(case.batch_us, streams, tuple(
        (n, typed(c)) for n, (c, _) in case.relations.items())))  # type: ignore[arg-type]


@lru_cache(maxsize=4)
def plans(query: Query) -> tuple[Plan, ...]:
    return tuple(c.plan for c in candidates(query) if c.refused is None)


def varied(query: Query, plan: Plan, choice: Random) -> Plan:
    """The same plan by name, with the choices that no name tells: join order, exchange, layout, invalidation."""
    order = choice.choice([plan.order, tuple(choice.sample(plan.order, len(plan.order)))])
    exchange = choice.choice(exchanges(shape(query)))
    layout = choice.choice(LAYOUTS) if plan.keeping == "recompute" else plan.layout
    made = replace(plan, order=order, exchange=exchange, layout=layout, invalidation=choice.choice(INVALIDATIONS))
    return shared(query, made, choice) if query.windows else made


def shared(query: Query, plan: Plan, choice: Random) -> Plan:
    """With any sharing and levels that the query's windows allow, also ones that no price would choose."""
    known, may_overlap = step(query), relation(query) == COVERED and choice.random() < 0.7
    lengths = sorted({k * known for k in range(2, max(w.range for w in query.windows) // known + 1)})
    chosen = sorted(choice.sample(lengths, choice.randint(0, min(3, len(lengths)))))
    hops = [known * choice.randint(1, length // known) if may_overlap else length for length in chosen]
    levels = with_levels(replace(plan, sharing=choice.choice(tuple(SHARING))), tuple(map(Window, chosen, hops)))
    tried = (levels, replace(plan, sharing="together"), plan)
    return next(p for p in tried if refusal(shape(query), p) is None)


def versions(case: Case, query: Query) -> list[int]:
    """The boundaries from which on a relation of the query is another one."""
    return sorted({t for i in query.inputs if not i.is_stream for t, _ in case.relations[i.source][1] if t})


def schedule(case: Case, query: Query, first: Plan, choice: Random, boundaries: list[int]) -> Iterator[Stretch]:
    """Published boundaries in random runs, sometimes with another plan from one on.

    State that holds a relation's rows begins anew with its version.
    """
    changes, known, plan, at, anew = versions(case, query), plans(query), first, 0, True
    while at < len(boundaries):
        size = choice.choice([1, 2, 3, len(boundaries)])
        run = tuple(t for t in boundaries[at:at + size] if _version(changes, t) == _version(changes, boundaries[at]))
        yield Stretch(plan, run, anew)
        at += len(run)
        switched = choice.random() < 0.15
        plan = varied(query, choice.choice(known), choice) if switched else plan
        renewed = at < len(boundaries) and plan.keeps_answer and _version(changes, boundaries[at]) != _version(
            changes, run[-1])
        anew = (switched or renewed) and not query.returns_rows


def _version(changes: list[int], t: int) -> int:
    return sum(c <= t for c in changes)


def scatter(table: pa.Table, choice: Random) -> list[pa.Table]:
    """The rows in random files."""
    count = choice.choice([1, 2, 3])
    places = [choice.randrange(count) for _ in range(table.num_rows)]
    return [table.take(pa.array([n for n, p in enumerate(places) if p == k], pa.int64())) for k in range(count)]


def folder_of(case: Case, query: Query, choice: Random) -> Folder:
    folder = Folder()
    for name in dict.fromkeys(i.source for i in query.inputs if i.is_stream):
        for part in scatter(oracle.stream_table(case, name), choice):
            if part.num_rows:
                folder.add(name, part)
    return folder


def relations_at(case: Case, query: Query, folder: Folder, t: int) -> None:
    for name in dict.fromkeys(i.source for i in query.inputs if not i.is_stream):
        columns, known = case.relations[name]
        folder.replace(name, oracle.arrow(columns, next(rows for since, rows in reversed(known) if since <= t)))


def answers(case: Case, query: Query, plan: Plan, choice: Random, parts: int = 1, creation: int | None = None,
            by_tasks: bool = False) -> Got:
    """The answers by this plan (and those it switches to), computed in this process."""
    return alone(course(case, query, plan, choice, parts, creation, by_tasks))


def alone(running: Course) -> Got:
    outcomes: list[TaskResult] | None = None
    while True:
        try:
            asked = running.send(outcomes)      # type: ignore[arg-type]
        except StopIteration as end:
            return end.value      # type: ignore[no-any-return]
        outcomes = performed(orders(asked))


def course(case: Case, query: Query, plan: Plan, choice: Random, parts: int = 1, creation: int | None = None,
           by_tasks: bool = False) -> Course:
    """Asks for run after run, is told the outcomes, returns the answers until one fails.

    State is compacted now and then, each run may have fewer tasks. `by_tasks`: as if all answers had many groups.
    """
    folder, previous, found = folder_of(case, query, choice), BEGINNING, {}
    boundaries = [t for t in case.boundaries if t % query.every == 0 and (creation is None or t >= creation)]
    try:
        for stretch in schedule(case, query, plan, choice, boundaries):
            relations_at(case, query, folder, stretch.boundaries[0])
            if stretch.anew:
                folder.state, previous = {}, BEGINNING
            got = yield from _stretch(query, stretch, folder, choice.randint(1, parts), previous, by_tasks)
            found.update(got)
            if list(got) != list(stretch.boundaries) or isinstance(got[stretch.boundaries[-1]], Failed):
                break
            previous = stretch.boundaries[-1]
            if choice.random() < 0.3:
                compact(query, stretch.plan, folder, previous)
        return found
    finally:
        folder.remove()


def _stretch(query: Query, stretch: Stretch, folder: Folder, parts: int, previous: int, by_tasks: bool) -> Course:
    """All boundaries at once; a run that fails is taken apart, since the failing boundary is to be found."""
    asked = Ask(query, stretch.plan, folder, stretch.boundaries, parts, previous, by_tasks)
    outcomes = yield asked
    try:
        return dict(taken(asked, outcomes))
    except Failed as error:
        if len(stretch.boundaries) == 1:
            return {stretch.boundaries[0]: error}
    found: Got = {}
    for t in stretch.boundaries:
        found |= yield from _stretch(query, Stretch(stretch.plan, (t,), False), folder, parts, previous, by_tasks)
        if isinstance(found[t], Failed):
            break
        previous = t
    return found


def limited(query: Query, got: Got) -> bool:
    """docs/plans.md: a spread of whole numbers fails where the sum of their squares has more than 38 digits, which
    doubles would have rounded.
    """
    spread = any(
        a.function.startswith(("stddev", "var")) and a.argument is not None and a.argument.type.name == "bigint"
        for a in query.aggregates)
    # in the kernel, and in Spark
    said = ("Overflow", "out of range", "Could not cast", "ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")
    return spread and any(isinstance(a, Failed) and any(word in str(a) for word in said) for a in got.values())


def differences(expected: dict[int, Answer], got: Got) -> list[str]:
    if list(expected) != list(got):
        return [
            f"answers at {list(expected)} expected, got {list(got)}; last {expected and list(expected.values())[-1]} "
            f"and {got and list(got.values())[-1]}"
        ]
    found = []
    for t, right in expected.items():
        answer = got[t]
        if isinstance(right, ForebayError) or isinstance(answer, Failed):
            found += [] if isinstance(right, ForebayError) and isinstance(answer, Failed) else [
                f"{t}: {right!s:.300} expected, got {answer!s:.300}"
            ]
        else:
            found += [f"{t}: {d}" for d in compare(right, answer)]
    return found
