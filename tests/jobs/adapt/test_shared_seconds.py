"""What a batch tells of the prices of sharing, by its seconds and those of its tasks; and when it tells nothing."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jobs.adapt.shared_seconds import learnt
from jobs.batch.batch import Answered
from jobs.ledger.entries import Batch, QueryGroupPrices
from optimizer.cost.measured import prior
from optimizer.sharing.price import Ratios, SharingPast

BASE = prior()["batches"] + prior()["jobs"]
GROUP, APART = "shared:joins-0", "shared:others-0"
PRICES = {GROUP: QueryGroupPrices(together_s=0.4, apart_s=1.0, together_off=2.0),
          APART: QueryGroupPrices(together_s=0.3, apart_s=0.5, apart_off=2.0)}


def group(seconds: float, name: str = GROUP, due: bool = True, apart: frozenset[str] = frozenset()) -> Any:
    works = (SimpleNamespace(due=(60,) if due else ()),)
    return SimpleNamespace(family=SimpleNamespace(name=name, works=works), seconds=seconds, apart=apart)


def alone(name: str, seconds: float, anew: bool = False, due: bool = True) -> Any:
    work = SimpleNamespace(name=name, due=(60,) if due else ())
    return SimpleNamespace(work=work, seconds=seconds, anew=anew, failed=None)


def told(groups: list[Any], answers: list[Any], seconds: float = BASE + 1.0, boundaries: tuple[int, ...] = (60,),
         tried: tuple[Any, ...] = ()) -> SharingPast:
    batch = Batch(7, boundaries, {}, {}, {}, {}, query_group_prices=PRICES)
    answered = Answered(answers, groups, [], tried=list(tried))
    return learnt(batch, {APART: ("a", "b", "c")}, answered, seconds, prior())


THREE = [alone("a", 0.1), alone("b", 0.2), alone("c", 0.1)]


def test_a_batch_of_one_group_is_held_against_its_price_without_what_was_corrected_before() -> None:
    past = told([group(0.3)], [])
    assert past.together.values == (pytest.approx(1.0 / 0.2),) and past.together.batch == 7 and past.apart == Ratios()


def test_a_batch_shorter_than_any_should_be_is_a_group_s_by_half() -> None:
    assert told([group(0.03)], [], seconds=BASE / 2).together.values == (pytest.approx(BASE / 4 / 0.2),)


def test_queries_that_could_share_and_do_not_tell_what_running_apart_takes() -> None:
    past = told([], THREE)
    assert past.apart.values == (pytest.approx(1.0 / 0.25),) and past.together == Ratios()


def test_of_a_batch_that_does_other_things_too_the_share_of_its_tasks_is_taken() -> None:
    past = told([group(0.3)], [alone("other", 0.1)])
    assert past.together.values == (pytest.approx(0.75 / 0.2),)
    both = told([group(0.4)], THREE)
    assert both.together.values == (pytest.approx(0.5 / 0.2),) and both.apart.values == (pytest.approx(0.5 / 0.25),)
    little = told([group(0.1)], [alone("other", 0.4)])
    assert little == SharingPast(), "most of it was something else"


@pytest.mark.parametrize("past", [
    told([group(0.3)], [], boundaries=(60, 120)),
    told([group(0.3)], [], tried=(alone("q", 0.1),)),
    told([group(0.3, due=False)], []),
    told([group(0.3, apart=frozenset({"q1"}))], []),
    told([group(0.3, f"{GROUP} from 60")], []),
    told([], [alone("a", 0.1), alone("b", 0.1)]),
    told([], [*THREE[:2], alone("c", 0.1, due=False)]),
    told([], [*THREE[:2], alone("c", 0.1, anew=True)]),
    told([], [alone("other", 0.3)]),
], ids=["boundaries", "tried", "not due", "members apart", "newcomers", "one left", "one not due", "anew",
        "no price"])
def test_a_batch_that_was_another_work_than_was_priced_tells_nothing(past: SharingPast) -> None:
    assert past == SharingPast()
