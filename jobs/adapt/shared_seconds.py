"""How long batches took whose queries shared, or ran apart although they could share, over what they were priced at.

Prices of sharing are corrected by that (optimizer.sharing.price.SharingPast); it is in the batch's entry in the ledger,
so the next process goes on with it.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping

from jobs.batch.batch import Answered
from jobs.ledger.entries import Batch, QueryGroupPrices
from optimizer.cost.measured import UnitCosts
from optimizer.sharing.price import SharingPast

# Of the seconds of all its tasks: where fewer were spent on queries of one kind, a batch tells little of what these
# take.
TELLING = 0.5
# Of a batch's seconds at most, which any batch takes whatever it answers: where tasks run in this process, it is less
# than unit costs say, since there is no Spark job.
OF_ANY = 0.5


def learnt(batch: Batch, queries_by_price: Mapping[str, Collection[str]], answered: Answered, seconds: float,
           unit_costs: UnitCosts) -> SharingPast:
    """The past with this batch, if it tells anything.

    `queries_by_price`: of forms that were priced and not made a group, their queries, by the name of the price. A batch
    of several boundaries is another work than was priced, as is one at which some groups of a family are not due; and
    one that tries a plan, makes state anew or falls back on running members apart does more.
    """
    past, number = batch.sharing_past, batch.number
    groups_as_priced = all(not s.apart and all(work.due for work in s.family.works) for s in answered.shared)
    others_as_usual = not any(answer.failed or answer.anew for answer in answered.answers)
    if len(batch.boundaries) > 1 or answered.tried or not groups_as_priced or not others_as_usual:
        return past
    seconds_of_groups = {s.family.name: s.seconds for s in answered.shared}
    seconds_of_lone = {answer.work.name: answer.seconds for answer in answered.answers if answer.work.due}
    all_seconds = sum(seconds_of_groups.values()) + sum(seconds_of_lone.values())
    of_any = min(unit_costs["batches"] + unit_costs["jobs"], OF_ANY * seconds)      # it is no part of any price
    beyond_any = seconds - of_any

    def ratio(of_tasks: float, price: float) -> float | None:
        if not all_seconds or of_tasks < TELLING * all_seconds or price <= 0:
            return None
        return beyond_any * of_tasks / all_seconds / price

    together = ratio(sum(seconds_of_groups.values()), _price_of_groups(batch, seconds_of_groups))
    priced = {name: names for name, names in queries_by_price.items() if all(n in seconds_of_lone for n in names)}
    lone = [n for names in priced.values() for n in names]
    apart = ratio(sum(seconds_of_lone[n] for n in lone),
                  sum(_price_apart(batch.query_group_prices[name]) for name in priced))
    return SharingPast(past.together if together is None else past.together.with_batch(number, together),
                       past.apart if apart is None else past.apart.with_batch(number, apart))


def _price_of_groups(batch: Batch, groups: Collection[str]) -> float:
    """As stated, without what batches before corrected; 0 where one group has no price.

    Very many queries of one form are several groups, each of which has the price of all.
    """
    price_by_form = dict[str, float]()
    for group in groups:
        prices = batch.query_group_prices.get(group, QueryGroupPrices())
        if prices.together_s is None:
            return 0.0
        price_by_form[group.rsplit("-", 1)[0]] = prices.together_s / (prices.together_off or 1.0)
    return sum(price_by_form.values())


def _price_apart(prices: QueryGroupPrices) -> float:
    return (prices.apart_s or 0.0) / (prices.apart_off or 1.0)
