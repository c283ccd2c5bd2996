"""Statements laid out for people to read: the same tokens, other line breaks.

What the parser does not know stays as it is.
"""
from __future__ import annotations

import sqlglot
from sqlglot.errors import ErrorLevel, SqlglotError


def pretty(text: str, dialect: str) -> str:
    """The statement in lines; `dialect` is the engine it was written for."""
    try:
        return sqlglot.transpile(text, read=dialect, write=dialect, pretty=True, max_text_width=120,
                                 unsupported_level=ErrorLevel.IGNORE)[0]
    except SqlglotError:
        return text
