"""The parser's tree: the only use of sqlglot's grammar, and where its nodes stand in the text.

Which nodes are allowed is decided by those who read it.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from threading import Thread

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokens import Token, TokenType

from optimizer.errors import ForebayError
from optimizer.sql.text import Source

MOST_NESTED = 300      # operands within each other: more than any expression or its parentheses may have
# Operands on one thread's stack: each takes up to 30 calls, and Python allows a thread a thousand in all.
NESTED_A_STACK = 12
SPARK = Spark()


class Plus(exp.Unary):
    """+x, which the parser's own grammar forgets: Spark takes it of numbers only, and +7 is no constant to it."""


# Between the arguments of these functions words may stand, which become part of the name: "POSITION IN".
WORDS = {"EXTRACT": ("FROM",), "POSITION": ("IN",), "TRIM": ("FROM",), "SUBSTRING": ("FROM", "FOR"),
         "OVERLAY": ("PLACING", "FROM", "FOR")}
SIDES = ("BOTH", "LEADING", "TRAILING")


def _with_words(name: str, parser: _Parser) -> exp.Expr:
    """The arguments of such a call, its ( is read."""
    words = [name]
    if name == "TRIM" and parser._match_texts(SIDES):
        words.append(parser._prev.text.upper())
    args = parser._parse_csv(parser._parse_bitwise)
    while parser._match_texts(WORDS[name]):
        words.append(parser._prev.text.upper())
        args += parser._parse_csv(parser._parse_bitwise)
    return parser.expression(exp.Anonymous(this=" ".join(words), expressions=args))


class _Parser(SparkParser):
    """Every function keeps the name it was written with, so that the allow-list is a list of names; what binds how
    tightly is Spark's own grammar.

    There || is on one level with + and -, all comparisons are on one level, and after them stands at most one predicate
    (IS, IN, LIKE, BETWEEN); NOT is no operand."""

    FUNCTIONS = {}
    FUNCTION_PARSERS = {**{name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")},
                        **{name: partial(_with_words, name) for name in WORDS}}
    NO_PAREN_FUNCTIONS = {}
    NO_PAREN_FUNCTION_PARSERS = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    STRICT_CAST = True
    TERM = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}
    COMPARISON = {**SparkParser.COMPARISON, **SparkParser.EQUALITY}
    UNARY_PARSERS = {TokenType.DASH: SparkParser.UNARY_PARSERS[TokenType.DASH],
                     TokenType.TILDE: SparkParser.UNARY_PARSERS[TokenType.TILDE],
                     TokenType.PLUS: lambda self: self.expression(Plus(this=self._parse_unary()))}

    nested = 0      # operands that are being read
    BITS = ((TokenType.PIPE, exp.BitwiseOr), (TokenType.CARET, exp.BitwiseXor), (TokenType.AMP, exp.BitwiseAnd))

    def _parse_bitwise(self) -> exp.Expr | None:
        return self._parse_bits(0)

    def _parse_bits(self, level: int) -> exp.Expr | None:
        """| binds less than ^, ^ less than &, & less than +, as in Spark."""
        if level == len(self.BITS):
            return self._parse_term()
        sign, node = self.BITS[level]
        left = self._parse_bits(level + 1)
        while self._match(sign):
            left = self.expression(node(this=left, expression=self._parse_bits(level + 1)))
        return left

    def _parse_unary(self) -> exp.Expr | None:
        return self._within(super()._parse_unary)

    def _within(self, parse: Callable[[], exp.Expr | None]) -> exp.Expr | None:
        """Reads one operand within others.

        The recursion limit is the whole process's, so a deep text gets more stacks, not a higher limit.
        """
        self.nested += 1
        try:
            if self.nested > MOST_NESTED:
                raise ForebayError("query-too-deep", "the query is nested too deeply",
                                   hint="use fewer nested expressions")
            return parse() if self.nested % NESTED_A_STACK else _on_another_stack(parse)
        finally:
            self.nested -= 1

    def _warn_unsupported(self) -> None:
        """What is not understood is refused where it is read; nobody is to find it in a log."""

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
        """What AND and OR connect: NOT …, or a value and the predicate after it."""
        if self._match(TokenType.NOT):
            return self.expression(exp.Not(this=self._within(self._parse_equality)))
        value = self._parse_comparison()
        negated = self._match(TokenType.NOT)
        if not self._match_set(self.RANGE_PARSERS):
            if negated:
                self.raise_error("Expecting IN, LIKE or BETWEEN")
            return value
        predicate = self.RANGE_PARSERS[self._prev.token_type](self, value)
        return self._negate_range(predicate) if negated else predicate

    def _parse_comparison(self, this: exp.Expr | None = None) -> exp.Expr | None:
        left = this or self._parse_bitwise()
        while self._match_set(self.COMPARISON):
            left = self.expression(self.COMPARISON[self._prev.token_type](this=left, expression=self._parse_bitwise()))
        return left

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        negated = self._match(TokenType.NOT)
        if self._match_text_seq("DISTINCT", "FROM"):
            return self.expression(
                (exp.NullSafeEQ if negated else exp.NullSafeNEQ)(this=this, expression=self._parse_comparison()))
        predicate = self.expression(
            exp.Is(this=this, expression=self._parse_null() or self._parse_boolean() or self._parse_bitwise()))
        return self.expression(exp.Not(this=predicate)) if negated else predicate


def _on_another_stack(parse: Callable[[], exp.Expr | None]) -> exp.Expr | None:
    """What `parse` gives or raises, with a thread of its own for its calls."""
    results: list[exp.Expr | None] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(parse())
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=call)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


# After these a minus is a sign.
_BEFORE_SIGN = {
    TokenType.L_PAREN, TokenType.COMMA, TokenType.SELECT, TokenType.WHERE, TokenType.ON, TokenType.HAVING,
    TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.CASE, TokenType.WHEN,
    TokenType.THEN, TokenType.ELSE, TokenType.BETWEEN, TokenType.LIKE, TokenType.INTERVAL, TokenType.FROM,
    TokenType.DISTINCT, *_Parser.TERM, *_Parser.FACTOR, *_Parser.COMPARISON
}


def _tokens(source: Source) -> list[Token]:
    """The text's tokens, each number whole: with its suffix (7L), which sqlglot makes a cast of, and with its sign
    where it has one. To Spark -7 is a constant wherever no operand stands before it: -128Y is a TINYINT, -7::string is
    '-7'."""
    whole: list[Token] = []
    rest = SPARK.tokenize(source.plain)
    i = 0
    while i < len(rest):
        token = rest[i]
        suffixed = token.token_type == TokenType.NUMBER and i + 2 < len(rest) and rest[i + 1].start == token.start
        if suffixed:
            token = _number(source.plain[token.start:token.end + 1], token, token.start)
        if token.token_type == TokenType.NUMBER and _signed(whole):
            token = _number(f"-{token.text}", token, whole.pop().start)
        whole.append(token)
        i += 3 if suffixed else 1
    return whole


def _number(text: str, token: Token, start: int) -> Token:
    return Token(TokenType.NUMBER, text, token.line, token.col, start, token.end, token.comments)


def _signed(before: list[Token]) -> bool:
    """Whether the number after these tokens has a sign: a minus that does not subtract."""
    if not before or before[-1].token_type != TokenType.DASH:
        return False
    return len(before) == 1 or before[-2].token_type in _BEFORE_SIGN


def tree(source: Source) -> exp.Expr:
    """The text's SELECT, or SELECTs that WITH, parentheses or set operations put together."""
    if not re.match(r"[\s(]*(?:SELECT|WITH)\b", source.plain, re.IGNORECASE):
        start = len(source.plain) - len(source.plain.lstrip())
        raise source.error(
            "not-a-select", "a query is one SELECT statement" if source.plain.strip() else "the query is empty", start,
            "write SELECT … FROM stream [WINDOW 1 HOUR]; other statements and VALUES are not accepted")
    _check_commas(source)
    _check_joins(source)
    try:
        statements = _Parser(error_level=ErrorLevel.IMMEDIATE, dialect=SPARK).parse(_tokens(source), source.plain)
    except ParseError as error:
        raise _syntax(source, error) from None
    except RecursionError:
        raise ForebayError("query-too-deep", "the query is nested too deeply",
                           hint="use fewer nested expressions") from None
    # the parser's own slips on hostile text
    except (SqlglotError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise ForebayError("syntax", "the query cannot be read",
                           hint="write plain Spark SQL: SELECT … FROM … WHERE … GROUP BY … HAVING …") from None
    if len(statements) != 1 or not isinstance(statements[0], (exp.Select, exp.SetOperation, exp.Subquery)):
        raise source.error("not-a-select", "a query is one SELECT statement", None,
                           "FROM first and several statements are not accepted")
    return statements[0]


def _check_commas(source: Source) -> None:
    """The parser forgives a comma with nothing before or after it; Spark does not."""
    lone = re.search(r"(?:\b(?:SELECT|FROM|BY)|\(|,)\s*(,)|(,)\s*(?:\)|\b(?:FROM|WHERE|GROUP|HAVING)\b|\Z)",
                     source.masked, re.IGNORECASE)
    if lone:
        raise source.error("syntax", "a comma stands alone", lone.start(1 if lone[1] else 2),
                           "leave it out, or add what it separates")


def _check_joins(source: Source) -> None:
    """Refuses JOIN without a condition: the parser would read it as ON TRUE, and try every nesting of several, which
    takes 2^n steps.
    """
    for words in _by_parentheses(source):
        kinds = [w[0].upper() for w in words] + ["END"]
        for word, kind, following in zip(words, kinds, kinds[1:]):
            is_bare = kind == "JOIN" and following not in ("ON", "USING")
            if is_bare or kind.endswith("JOIN") and following.endswith("JOIN"):
                raise source.error("no-condition", "JOIN needs a condition", word.start(), "write JOIN … ON a.x = b.y")


def _by_parentheses(source: Source) -> list[list[re.Match[str]]]:
    """JOIN, ON, USING, and where a SELECT ends, of the text and of each pair of parentheses in it."""
    joins = r"\b(?:CROSS\s+|NATURAL\s+(?:(?:INNER|LEFT|RIGHT|FULL)\s+(?:OUTER\s+)?)?)?JOIN\b"
    pattern = joins + r"|\bON\b|\bUSING\b|\bSELECT\b|[()]"
    open_, closed = [list[re.Match[str]]()], list[list[re.Match[str]]]()
    for match in re.finditer(pattern, source.masked, re.IGNORECASE):
        if match[0] == "(":
            open_.append([])
        elif match[0] == ")":
            closed.append(open_.pop() if len(open_) > 1 else [])
        else:
            open_[-1].append(match)
    return [*closed, *open_]


def _syntax(source: Source, error: ParseError) -> ForebayError:
    first = error.errors[0] if error.errors else {}
    word, line = str(first.get("highlight") or ""), first.get("line")
    column = int(first.get("col") or 0) - len(word) + 1
    message = f"the query cannot be read at {word!r}" if word.strip() else "the query ends too early or cannot be read"
    details = str(first.get("description") or "").rstrip(".")
    expected = f": {details[0].lower()}{details[1:]}" if details.startswith("Expecting") else ""
    return ForebayError("syntax", message + expected, line,
                        max(column, 1) if line else None,
                        "write plain Spark SQL: SELECT … FROM … WHERE … GROUP BY … HAVING …")


def offset(node: exp.Expr) -> int | None:
    """Where a node begins in the text, None where the parser does not say."""
    starts = [int(n.meta["start"]) for n in node.walk() if n._meta and "start" in n.meta]
    return min(starts, default=None)


def extras(node: exp.Expr, understood: tuple[str, ...]) -> list[str]:
    """Parts of a node beyond those that are understood."""
    return [name for name, value in node.args.items() if value and name not in understood]


def described(node: exp.Expr) -> str:
    """What a node is, for a message."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()
