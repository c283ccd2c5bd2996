"""The parser's tree: the only use of sqlglot's grammar, and where its nodes stand in the text; which nodes are allowed is decided by those who read it."""
from __future__ import annotations

import logging
import re
import sys

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser

from optimizer.errors import ForebayError
from optimizer.sql_text import Source

RECURSION = 20_000
SPARK = Spark()
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)


class _Parser(SparkParser):
    """Every function keeps the name it was written with, so that the allow-list is a list of names."""

    FUNCTIONS = {}
    FUNCTION_PARSERS = {name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")}
    NO_PAREN_FUNCTIONS = {}
    NO_PAREN_FUNCTION_PARSERS = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    STRICT_CAST = True


def tree(source: Source) -> exp.Select:
    """The one SELECT of the text."""
    if not re.match(r"\s*SELECT\b", source.plain, re.IGNORECASE):
        start = len(source.plain) - len(source.plain.lstrip())
        raise source.error("not-a-select", "a query is one SELECT statement" if source.plain.strip() else "the query is empty", start,
                           "write SELECT … FROM stream [WINDOW 1 HOUR]; other statements, WITH and VALUES are not accepted")
    _check_commas(source)
    _check_joins(source)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION))
    try:
        found = _Parser(error_level=ErrorLevel.IMMEDIATE, dialect=SPARK).parse(SPARK.tokenize(source.plain), source.plain)
    except ParseError as error:
        raise _syntax(source, error) from None
    except RecursionError:
        raise ForebayError("query-too-deep", "the query is nested too deeply", hint="use fewer nested expressions") from None
    except (SqlglotError, AttributeError, IndexError, KeyError, TypeError, ValueError):     # the parser's own slips on hostile text
        raise ForebayError("syntax", "the query cannot be read", hint="write plain Spark SQL: SELECT … FROM … WHERE … GROUP BY … HAVING …") from None
    finally:
        sys.setrecursionlimit(limit)
    if len(found) != 1 or not isinstance(found[0], exp.Select):
        second = re.search(r"\b(?:UNION|EXCEPT|MINUS|INTERSECT)\b", source.masked, re.IGNORECASE)
        raise source.error("not-a-select", "a query is one SELECT statement", second.start() if second else None,
                           "set operations, FROM first and several statements are not accepted")
    return found[0]


def _check_commas(source: Source) -> None:
    """The parser forgives a comma with nothing before or after it; Spark does not."""
    lone = re.search(r"(?:\b(?:SELECT|FROM|BY)|\(|,)\s*(,)|(,)\s*(?:\)|\b(?:FROM|WHERE|GROUP|HAVING)\b|\Z)", source.masked, re.IGNORECASE)
    if lone:
        raise source.error("syntax", "a comma stands alone", lone.start(1 if lone[1] else 2), "leave it out, or add what it separates")


def _check_joins(source: Source) -> None:
    """JOIN without a condition: refused here because the parser reads it as ON TRUE, and tries every nesting of several, which takes 2^n steps."""
    words = list(re.finditer(r"\b(?:(?:CROSS|NATURAL)\s+)?JOIN\b|\bON\b|\bUSING\b", source.masked, re.IGNORECASE))
    kinds = [w[0].upper() for w in words] + ["END"]
    for word, kind, following in zip(words, kinds, kinds[1:]):
        if kind == "JOIN" and following not in ("ON", "USING") or kind.endswith("JOIN") and following.endswith("JOIN"):
            raise source.error("no-condition", "JOIN needs a condition", word.start(), "write JOIN … ON a.x = b.y")


def _syntax(source: Source, error: ParseError) -> ForebayError:
    first = error.errors[0] if error.errors else {}
    word, line = str(first.get("highlight") or ""), first.get("line")
    column = int(first.get("col") or 0) - len(word) + 1
    said = f"the query cannot be read at {word!r}" if word.strip() else "the query ends too early or cannot be read"
    details = str(first.get("description") or "").rstrip(".")
    expected = f": {details[0].lower()}{details[1:]}" if details.startswith("Expecting") else ""
    return ForebayError("syntax", said + expected, line, max(column, 1) if line else None, "write plain Spark SQL: SELECT … FROM … WHERE … GROUP BY … HAVING …")


def offset(node: exp.Expr) -> int | None:
    """Where a node begins in the text, None where the parser does not say."""
    starts = [int(n.meta["start"]) for n in node.walk() if n._meta and "start" in n.meta]
    return min(starts, default=None)


def extras(node: exp.Expr, known: tuple[str, ...]) -> list[str]:
    """Parts of a node beyond those that are understood."""
    return [name for name, value in node.args.items() if value and name not in known]


def described(node: exp.Expr) -> str:
    """What a node is, for a message."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()
