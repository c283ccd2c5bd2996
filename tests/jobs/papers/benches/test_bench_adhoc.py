"""The scenarios of queries that come and go: who is asked for when, and that what is measured is answered right."""
from __future__ import annotations

import pytest

from jobs.papers.benches import adhoc
from jobs.papers.benches.adhoc import AdhocSetting


def test_sc1_creates_until_most_are_in_force() -> None:
    seconds = list(adhoc._schedule(AdhocSetting(10, 25)))
    assert seconds == [([], range(1, 11)), ([], range(11, 21)), ([], range(21, 25))]


def test_sc2_deletes_the_oldest_and_creates_as_many() -> None:
    after = list(adhoc._schedule(AdhocSetting(2, 5, deleting=3, rounds=2)))[2:]
    assert after == [([], range(0)), ([], range(0)), (["q1", "q2"], range(5, 7)),
                     ([], range(0)), ([], range(0)), (["q3", "q4"], range(7, 9))]


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("setting", [AdhocSetting(3, 7, rate=200, batch=2, window=10),
                                     AdhocSetting(3, 7, 2, 2, True, joined=3, rate=200, batch=2, window=10),
                                     AdhocSetting(3, 7, is_rows=True, rate=200, batch=2, window=10)])
def test_every_query_that_is_asked_for_is_answered(setting: AdhocSetting) -> None:
    (report,) = adhoc.ad_hoc((setting,)).values()
    assert report["answered"] == report["queries"] >= 6
