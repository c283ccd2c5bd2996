"""Merging a set's files changes no answer and leaves out what has ended."""
from __future__ import annotations

from contextlib import closing
from random import Random

import pytest

from jobs.engine import kernel
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import named
from optimizer.plan.program import BEGINNING
from optimizer.plan.tree import merge_files, state_sets
from optimizer.query.shape import shape
from tests import oracle
from tests.differential import differences, folder_of, query_of
from tests.engine import compact, together
from tests.optimizer.choice.test_explain import case
from tests.optimizer.planning import BATCH, SECOND, query


@pytest.mark.slow
@pytest.mark.parametrize("name,plan", [("two-streams", "EAP11 recompute"), ("two-streams", "EAP10 retract"),
                                       ("extremes", "EAP11 running"), ("extremes", "EAP01 expire")])
def test_answers_after_compaction_are_the_same(name: str, plan: str) -> None:
    asked = case(name)
    parsed, choice, previous, got, merged = query_of(asked), Random(plan), BEGINNING, {}, 0
    chosen, folder = named(parsed, plan), folder_of(asked, parsed, choice)
    for n, t in enumerate(asked.boundaries):
        got.update(together(parsed, chosen, folder, (t,), 1 + n % 2, previous))
        previous = t
        if choice.random() < 0.4:
            before = {s: len(files) for s, files in folder.state.items()}
            compact(parsed, chosen, folder, t)
            merged += sum(len(folder.state[s]) < count for s, count in before.items())
    folder.remove()
    assert merged and differences(oracle.answers(asked), got) == []


def test_what_is_replaced_by_each_batch_is_not_merged() -> None:
    asked = query("two-streams")
    with pytest.raises(ValueError, match="nothing to merge"):
        merge_files(Lowering(shape(asked), named(asked, "EAP11 running")), "totals0", "files", 10)


Extreme = tuple[str | None, int | None, int, int]      # user, value, _in, _out
AT = 100_000 * SECOND                                      # the boundary to which state was brought


def merged(window: str, rows: list[Extreme], since: int = BEGINNING) -> list[Extreme]:
    """MAX(v.ms) by user over this window: what a merge leaves of these rows."""
    asked = query(f"SELECT v.user, MAX(v.ms) AS high FROM views AS v [WINDOW {window}] GROUP BY v.user")
    low = Lowering(shape(asked), named(asked, "EAP1 running"), narrow=False)
    names = ", ".join(name for name, _ in next(s for s in state_sets(low) if s.name == "extremes0").columns)
    listed = ", ".join(f"({'NULL' if user is None else repr(user)}, {'NULL' if value is None else value}, {i}, {o})"
                       for user, value, i, o in rows)
    with closing(kernel.shared()) as con:
        return con.execute(f"FROM ({merge_files(low, 'extremes0', f'(VALUES {listed}) AS q({names})', AT, since)})"
                           ).fetchall()


def are_the_same(before: list[Extreme], after: list[Extreme]) -> bool:
    """Whether the extremes at every boundary from AT on are the same."""
    def most(rows: list[Extreme], user: str | None, t: int) -> int | None:
        return max((v for u, v, i, o in rows if u == user and v is not None and i <= t <= o), default=None)

    ends = sorted({t for _, _, i, o in before for t in (i, o) if t >= AT} | {AT})
    return all(most(before, user, t) == most(after, user, t) for user in {row[0] for row in before} for t in ends)


@pytest.mark.parametrize("window", ["2000 SECONDS", "2000 SECONDS SLIDE 100 SECONDS", "2005 SECONDS"])
def test_extremes_that_can_never_be_one_again_are_left_out(window: str) -> None:
    """Of 200 panes of random values a handful stays; at every later boundary the extremes are those of all panes."""
    rnd = Random(5)
    values: list[Extreme] = [
        (rnd.choice(["u0", "u1", None]), rnd.choice([None, rnd.randrange(10 ** 6)]),
         0 if n < 190 else AT + (n - 190) * BATCH, AT + n * BATCH) for n in range(200) for _ in range(3)]
    kept = merged(window, values)
    assert len(kept) < 80 and are_the_same(values, kept)


def test_what_was_merged_before_is_held_against_what_came_since() -> None:
    """Of files that were merged up to an end only later ends are looked through, and nothing is lost by it."""
    rnd = Random(6)
    values: list[Extreme] = [("u", rnd.randrange(10 ** 6), 0, AT + n * BATCH) for n in range(200)]
    whole = merged("2000 SECONDS", values)
    once = merged("2000 SECONDS", values[:192])
    twice = merged("2000 SECONDS", [*once, *values[192:]], since=AT + 191 * BATCH)
    assert are_the_same(values, once + values[192:]) and are_the_same(values, twice)
    assert len(twice) <= len(whole) + 8


def test_a_row_that_came_late_beats_none_that_stays_longer() -> None:
    values: list[Extreme] = [("u", 5, 0, AT + 150 * BATCH), ("u", 9, 0, AT + 20 * BATCH), ("u", 7, 0, AT + 20 * BATCH),
                             ("u", 1, 0, AT + 199 * BATCH)]
    kept = merged("2000 SECONDS", values)
    assert are_the_same(values, kept) and ("u", 9, 0, AT + 20 * BATCH) in kept
