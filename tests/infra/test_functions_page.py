"""docs/functions.md is what the table of functions says."""
from __future__ import annotations

from infra import functions
from optimizer.expression.functions.table import NAMES
from optimizer.sql.expressions import CASTS


def test_the_page_is_current() -> None:
    """When this fails: .venv/bin/python -m infra.functions"""
    assert functions.PAGE.read_text(encoding="utf-8") == functions.page(), (
        "the table of functions has changed; .venv/bin/python -m infra.functions makes the page anew")


def test_the_page_has_every_name_once() -> None:
    for name in (*NAMES, *CASTS):
        assert functions.page().count(f"| `{name}` |") == 1, name
