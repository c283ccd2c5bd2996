"""Merging a set's files changes no answer and leaves out what has ended."""
from __future__ import annotations

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
from tests.optimizer.planning import query


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


def test_extremes_that_can_never_be_one_again_are_left_out() -> None:
    """Of 200 panes of random values a handful stays; at every later boundary the extremes are those of all panes."""
    asked = query("extremes")
    low, rnd, con = Lowering(shape(asked), named(asked, "EAP11 running"), narrow=False), Random(5), kernel.shared()
    columns = next(s for s in state_sets(low) if s.name == "extremes0").columns
    assert [c for c, _ in columns] == ["a0_0", "a0_1", columns[2][0], "_in", "_out"]
    values = [(f"u{n % 2}", "p", rnd.choice([None, rnd.randrange(10 ** 6)]), 0 if n < 190 else 5 * n, 1000 + n)
              for n in range(200)]
    listed = ", ".join(f"('{u}', '{p}', {'NULL' if v is None else v}, {i}, {o})" for u, p, v, i, o in values)
    kept = con.execute(
        f"FROM ({merge_files(low, 'extremes0', f'(VALUES {listed}) AS q({chr(44).join(c for c, _ in columns)})', 900)})"
    ).fetchall()
    con.close()

    def most(rows: list[tuple[str, str, int | None, int, int]], user: str, t: int) -> int | None:
        return max((v for u, _, v, i, o in rows if u == user and v is not None and i <= t <= o), default=None)

    assert len(kept) < 60 and all(
        most(values, u, t) == most(kept, u, t) for u in ("u0", "u1") for t in range(900, 1210))
