"""Every row of the papers has one state in docs/papers.yml.

The README's table and docs/papers.md are made of it; what it names exists.
"""
from __future__ import annotations

import pytest

from infra import papers
from jobs.papers.experiments import EXPERIMENTS

KNOWN = papers.rows()
ROWS = {"A": 8, "B": 3, "C": 4, "D": 5, "E": 9}


def test_every_row_stands_once() -> None:
    assert list(KNOWN) == [f"{letter}{i}" for letter, count in ROWS.items() for i in range(1, count + 1)]


def test_documents_are_made_of_it() -> None:
    """When this fails: .venv/bin/python -m infra.papers"""
    for file, text in papers.made(papers.README.read_text(encoding="utf-8")).items():
        assert file.read_text(
            encoding="utf-8"
        ) == text, f"{file.name} is not what docs/papers.yml says; .venv/bin/python -m infra.papers makes it anew"
    assert papers.table(KNOWN) in papers.README.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", KNOWN)
def test_what_a_row_names_exists(name: str) -> None:
    """What is done, even in part, has code and tests; a figure is a page or an experiment."""
    row = KNOWN[name]
    assert [f for key in ("code", "test") for f in row.get(key, []) if not (papers.ROOT / f).exists()] == []
    assert row["state"] == "planned" or row["code"] and row["test"]
    assert [f for f in row.get("figure", []) if f not in EXPERIMENTS and not (papers.ROOT / f).exists()] == []
