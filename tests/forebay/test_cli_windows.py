"""`forebay windows` from outside: INTERFACE's document, the text, the picture, refusals; it needs no pipeline."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from forebay.coverage import tree
from tests.forebay.conftest import Cli


def test_the_document_of_the_contract(cli: Cli) -> None:
    said = cli("windows", "20,30,40", "--json")
    assert said.code == 0
    assert {k: said.document[k] for k in ("R", "cost", "factors", "edges", "relation")} == {
        "R": 120, "cost": {"original": 360, "shared": 246, "factored": 150}, "factors": ["10"],
        "edges": [["10", "20"], ["10", "30"], ["20", "40"]], "relation": "partitioned by"}


def test_function_and_rate(cli: Cli) -> None:
    said = cli("windows", "20/5,60/10", "--function", "MIN", "--rate", "100", "--json").document
    assert said["relation"] == "covered by" and said["cost"]["original"] == 24_000 and said["factors"] == ["5"]
    alone = cli("windows", "20,40", "--function", "median", "--json").document
    assert alone["relation"] == "each alone" and alone["edges"] == [] and len(set(alone["cost"].values())) == 1


def test_the_text_draws_the_graphs(cli: Cli) -> None:
    said = cli("windows", "20,30,40")
    assert said.code == 0
    assert all(text in said.out for text in ("└─ 10 (factor window): 120", "│  └─ 40: 6", "2.40"))


def test_costs_beyond_any_float_are_printed(cli: Cli) -> None:
    said = cli("windows", ",".join([*(str(10**12 - k) for k in range(1, 60, 2)), "1013/1009"]))
    assert said.code == 0 and "as written" in said.out and re.search(r" [0-9.]+e\+3[0-9][0-9]\b", said.out)


def test_a_tree_holds_every_window_once() -> None:
    nodes = [{
        "window": "10",
        "reads": None,
        "cost": 5,
        "factor": True
    }, {
        "window": "20",
        "reads": "10",
        "cost": 2,
        "factor": False
    }, {
        "window": "7",
        "reads": None,
        "cost": 1,
        "factor": False
    }]
    assert tree(nodes) == ["rows", "├─ 10 (factor window): 5", "│  └─ 20: 2", "└─ 7: 1"]


@pytest.mark.slow
def test_the_picture(cli: Cli, tmp_path: Path) -> None:
    for name, begins in (("w.svg", b"<?xml"), ("w.png", b"\x89PNG")):
        assert cli("windows", "20,30,40", "--picture", str(tmp_path / name)).code == 0
        assert (tmp_path / name).read_bytes().startswith(begins)
    assert cli("windows", "20", "--picture", str(tmp_path / "no" / "w.svg"),
               "--json").document["error"]["code"] == "bad-file"


@pytest.mark.parametrize(("arguments", "code"), [(("20,20",), "duplicate-window"), (("20,x",), "bad-window"),
                                                 (("0",), "bad-window"),
                                                 (("20", "--function", "FIRST"), "unknown-function"),
                                                 (("20", "--rate", "0"), "bad-rate"),
                                                 (("20", "--picture", "w.pdf"), "bad-usage"), ((), "bad-usage")])
def test_refusals(cli: Cli, arguments: tuple[str, ...], code: str) -> None:
    said = cli("windows", *arguments, "--json")
    assert (said.code, said.document["error"]["code"]) == (2, code)
