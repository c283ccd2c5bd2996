"""`forebay windows` without the command: what people write, what is refused and where, what is said."""
from __future__ import annotations

import json
from fractions import Fraction

import pytest

from optimizer.coverage.algebra import Window
from optimizer.coverage.spec import described, parse, rate
from optimizer.errors import ForebayError


def test_both_forms_are_read() -> None:
    assert parse("20, 30 ,40") == (Window(20, 20), Window(30, 30), Window(40, 40))
    assert parse("20/5,60 / 10,7/7") == (Window(20, 5), Window(60, 10), Window(7, 7))


@pytest.mark.parametrize(("text", "said", "column"), [("", "a window is missing", 1),
                                                      ("20,,30", "a window is missing", 4),
                                                      ("20,x", "not a whole number", 4),
                                                      ("20/,5", "a length is missing", 4),
                                                      ("20,1.5", "not a whole number", 4), ("0", "positive", 1),
                                                      ("20,-5", "positive", 4), ("20/0", "positive", 4),
                                                      ("5/6", "gaps", 1), ("20,30, 20", "twice", 8),
                                                      ("10,20/20,20", "twice", 10), ("1" + "0" * 40, "at most", 1),
                                                      ("20/5/5", "not a whole number", 4)])
def test_refusals_say_where(text: str, said: str, column: int) -> None:
    with pytest.raises(ForebayError, match=said) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (1, column) and caught.value.hint


def test_more_than_a_thousand_are_refused() -> None:
    assert len(parse(",".join(map(str, range(1, 1001))))) == 1000
    with pytest.raises(ForebayError, match="1,001 windows"):
        parse(",".join(map(str, range(1, 1002))))


@pytest.mark.parametrize("text", ("0", "-1", "", "x", "1e3", "0.0", "nan"))
def test_a_rate_is_positive(text: str) -> None:
    with pytest.raises(ForebayError, match="not a positive number"):
        rate(text)


def test_the_document_is_the_contract() -> None:
    said = json.loads(json.dumps(described(parse("20,30,40"), "sum", rate("1"))))
    assert {k: said[k] for k in ("R", "cost", "factors", "edges", "relation")} == {
        "R": 120, "cost": {"original": 360, "shared": 246, "factored": 150}, "factors": ["10"],
        "edges": [["10", "20"], ["10", "30"], ["20", "40"]], "relation": "partitioned by"}


def test_the_graphs_add_up() -> None:
    said = described(parse("20/5,60/10,45/15"), "MIN", Fraction(7, 2))
    for name, nodes in said["graphs"].items():
        assert sum(n["cost"] for n in nodes) == pytest.approx(said["cost"][name])
    assert said["relation"] == "covered by" and said["rate"] == 3.5


def test_costs_beyond_any_float_that_are_no_whole_numbers() -> None:
    """The slide of the last does not divide the period, which has more than 308 digits."""
    said = json.loads(
        json.dumps(described(parse(",".join(map(str, [*(10 ** 12 - k for k in range(1, 60, 2)), "1013/1009"]))))))
    assert said["R"] > 10**308 and isinstance(said["cost"]["original"], int) and said["cost"]["original"] > said["R"]


@pytest.mark.slow
def test_a_thousand_windows_are_answered() -> None:
    said = described(parse(",".join(map(str, range(1, 1001)))))
    assert said["cost"]["original"] > said["cost"]["shared"] >= said["cost"]["factored"]
