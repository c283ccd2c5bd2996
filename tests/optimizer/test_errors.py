"""What messages are made of: the name that was probably meant, an error's first line, SQL's names and texts."""
from __future__ import annotations

import pytest

from optimizer.errors import closest, first_line, suggestion
from optimizer.expression.dialect import identifier, string


@pytest.mark.parametrize(("name", "names", "meant"), [
    ("pagee", ["user", "page"], "page"), ("PAGE", ["user", "Page"], "Page"), ("wiat", ["idle", "wait"], "wait"),
    ("x", ["user", "page"], None), ("page", [], None), ("pag", ["Page", "PAGE"], "Page")])
def test_the_closest_name_is_given_as_it_is_spelled(name: str, names: list[str], meant: str | None) -> None:
    assert closest(name, names) == meant
    assert suggestion(name, names) == (f"did you mean {meant}?" if meant else None)


@pytest.mark.parametrize(("text", "line"), [
    ("one\ntwo", "one"), ("\n  one \ntwo", "one"), ("", "ValueError"), (" \n ", "ValueError")])
def test_an_error_has_a_first_line_even_if_it_says_nothing(text: str, line: str) -> None:
    assert first_line(ValueError(text)) == line


def test_names_and_texts_stay_one_token_in_both_dialects() -> None:
    assert [identifier('a"b'), identifier("a`b", "spark")] == ['"a""b"', "`a``b`"]
    assert [string("it's"), string("it's \\", "spark")] == ["'it''s'", "'it\\'s \\\\'"]
