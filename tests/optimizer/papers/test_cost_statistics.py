"""Statistics are in range or refused by name.

Files of them read, in the papers' symbols, over what is known and the defaults.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from optimizer.errors import ForebayError
from optimizer.papers.document import read, written
from optimizer.papers.many_way import price
from optimizer.papers.statistics import Constants, PaperStream, Setting, timed
from optimizer.plan.model import candidates
from tests.optimizer.papers.costs import by_hand
from tests.optimizer.planning import query

STREAM = PaperStream("v", 300, 5000, 150, 0.1)


@pytest.mark.parametrize(
    "make,said",
    [(lambda: PaperStream("v", -1, 5), "rate of stream v is -1; expected tuples a second: a number at least 0"),
     (lambda: PaperStream("v", float("nan"), 5), "rate of stream v is nan"),
     (lambda: PaperStream("v", 1, float("inf")), "window of stream v is inf"),
     (lambda: PaperStream("v", 10 ** 400, 5), "rate of stream v is 1000"),
     (lambda: PaperStream("v", 1, 5, 0), "groups of stream v is 0; expected distinct values"),
     (lambda: PaperStream("v", 1, 5, 1, 1.5),
      "selectivity of stream v is 1.5; expected 1 / distinct join values: a number from 0 to 1"),
     (lambda: PaperStream("v", 1, 5, 1, 0), "selectivity of stream v is 0"),
     (lambda: timed("v", 1, -5), "seconds of stream v is -5"),
     (lambda: Constants(Ph=-0.1), "Ph of the constants is -0.1"),
     (lambda: Constants(Ug=True), "Ug of the constants is True"), (lambda: Setting(()), "without streams"),
     (lambda: Setting((STREAM,), "merge"), "method is 'merge'; expected hash or nested loop"),
     (lambda: Setting((STREAM,), buckets=0), "buckets of the hash tables is 0"),
     (lambda: Setting((STREAM,), hashed=1), "hashed is 1"),])
def test_what_is_out_of_range_is_refused_by_name(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ForebayError) as refused:
        make()
    assert refused.value.code == "bad-statistics" and said in str(refused.value)


def test_a_window_of_seconds_holds_rate_times_seconds() -> None:
    assert timed("v", 300, 60, 150, 0.1) == PaperStream("v", 300, 18000, 150, 0.1)


def test_a_file_reads_in_the_papers_symbols() -> None:
    """60 s and 40 s of 300 a second; c brings no grouping attribute and is named by its source."""
    given: dict[str, object] = {
        "streams": {
            "v": {
                "rate": 300,
                "groups": 20,
                "selectivity": 0.5
            },
            "clicks": {
                "rate": 100,
                "groups": 1,
                "selectivity": 0.25
            }
        },
        "method": "nested loop",
        "buckets": 7,
        "constants": {
            "Pn": 2.0
        }
    }
    found = read(given, query("two-streams"))
    assert found == Setting((PaperStream("v", 300, 18000, 20, 0.5), PaperStream("c", 100, 4000, 1, 0.25)),
                            "nested loop", 7, Constants(Pn=2.0))
    assert read(written(found), query("two-streams")) == found


def test_what_a_file_leaves_out_is_known_or_paper_as_default() -> None:
    asked = query("two-streams")
    assert read({}, asked).streams == (PaperStream("v", 300, 18000, 150, 0.1), PaperStream("c", 300, 12000, 1, 0.1))
    known = {"v": PaperStream("v", 7, 99, 3, 0.5)}
    assert read({}, asked, known).streams[0] == known["v"]
    assert read({"streams": {"v": {"rate": 10}}}, asked, known).streams[0] == PaperStream("v", 10, 600, 3, 0.5)
    assert read({"streams": {"v": {"window": 5}}}, asked, known).streams[0] == PaperStream("v", 7, 5, 3, 0.5)


def test_windows_without_a_range_and_relations() -> None:
    assert read({}, query("landmark")).streams[0] == PaperStream("v", 300, 5000, 150, 0.1, leaving=False)
    tumbling, relation = read({}, query("relation")).streams
    assert tumbling == PaperStream("v", 300, 18000, 1, 0.1, leaving=False) and relation == PaperStream(
        "p", 0, 5000, 150, 0.1)


@pytest.mark.parametrize("given,said",
                         [({
                             "stream": {}
                         }, "'stream' is not known of the statistics; did you mean streams?"),
                          ({
                              "streams": {
                                  "views2": {}
                              }
                          }, "'views2' is not known of streams; did you mean views? known are v, views, c, clicks"),
                          ({
                              "streams": {
                                  "v": {
                                      "rates": 3
                                  }
                              }
                          }, "'rates' is not known of stream v; did you mean rate?"),
                          ({
                              "streams": {
                                  "v": 3
                              }
                          }, "v is 3; expected names with values"),
                          ({
                              "streams": {
                                  "v": {
                                      "rate": "3"
                                  }
                              }
                          }, "rate of stream v is '3'; expected a number"),
                          ({
                              "streams": {
                                  "v": {
                                      "rate": None
                                  }
                              }
                          }, "rate of stream v is None"), ({
                              "streams": {
                                  "v": {
                                      "rate": -3
                                  }
                              }
                          }, "rate of stream v is -3"), ({
                              "constants": {
                                  "P": 3
                              }
                          }, "'P' is not known of the constants"), ({
                              "constants": []
                          }, "constants is []"), ({
                              "method": 3
                          }, "method is 3"), ({
                              "method": "loop"
                          }, "method is 'loop'; expected hash or nested loop"),
                          ({
                              "buckets": "many"
                          }, "buckets of the hash tables is 'many'"),])
def test_a_bad_file_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ForebayError) as refused:
        read(given, query("two-streams"))
    assert refused.value.code == "bad-statistics" and said in str(refused.value)


def test_a_file_prices_the_plans_of_a_query() -> None:
    """The setting worked by hand in test_cost_two_way, in a file; windows are given in tuples."""
    streams = {
        a: {
            "rate": s.rate,
            "window": s.window,
            "groups": s.groups,
            "selectivity": float(s.selectivity)
        } for a, s in zip("vc",
                          by_hand("hash").streams)
    }
    given: dict[str, object] = {
        "streams": streams,
        "buckets": 100,
        "constants": {
            "Pn": 1,
            "Ph": 2,
            "Un": 10,
            "Uh": 20,
            "Ug": 100
        }
    }
    asked = query("two-streams")
    found = {c.plan.name: price(c.plan, read(given, asked)).total for c in candidates(asked)}
    assert [found[f"{p} retract"] for p in ("LAP", "EAP10", "EAP01", "EAP11")] == pytest.approx(
        [5136, 4704, 5528, 5096])
