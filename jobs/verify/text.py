"""A user's text as a tree for recomputation: sqlglot's Databricks parser, corrected where Spark binds and reads
constants otherwise, and which functions are read as more than a name.

Nothing of the planner.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.dialects import Databricks
from sqlglot.parsers.databricks import DatabricksParser
from sqlglot.tokens import Token, TokenType

# Functions that jobs.verify has rules for, with how many arguments; every other call stays as it is written, so nothing
# is guessed of it.
RULED = {
    **{name: (1,) for name in (
        "ABS", "ANY", "APPROX_COUNT_DISTINCT", "AVG", "BIT_AND", "BIT_OR", "BIT_XOR", "BOOL_AND", "BOOL_OR",
        "CEIL", "CEILING", "CHARACTER_LENGTH", "CHAR_LENGTH", "COUNT", "COUNT_IF", "DAY", "DAYOFMONTH",
        "DAYOFWEEK", "DAYOFYEAR", "EVERY", "EXP", "FLOOR", "HOUR", "LCASE", "LEN", "LENGTH", "LN", "LOG10",
        "LOWER", "LTRIM", "MAX", "MEAN", "MEDIAN", "MIN", "MINUTE", "MONTH", "PERCENTILE_CONT",
        "PERCENTILE_DISC", "QUARTER", "RTRIM", "SECOND", "SIGN", "SIGNUM", "SOME", "SQRT", "STD", "STDDEV",
        "STDDEV_POP", "STDDEV_SAMP", "SUM", "TO_DATE", "TRY_AVG", "TRY_SUM", "UCASE", "UNIX_MICROS",
        "UNIX_MILLIS", "UNIX_SECONDS", "UPPER", "VARIANCE", "VAR_POP", "VAR_SAMP", "YEAR")},
    **{name: (1, 2) for name in (
        "ROUND",)},
    **{name: tuple(range(1, 1001)) for name in (
        "COALESCE", "CONCAT", "GREATEST", "LEAST")},
    **{name: (2,) for name in (
        "CONTAINS", "CORR", "COVAR_POP", "COVAR_SAMP", "DATEDIFF", "DATE_ADD", "DATE_SUB", "DATE_TRUNC",
        "ENDSWITH", "IFNULL", "LEFT", "MOD", "NULLIF", "NVL", "PERCENTILE", "PMOD", "POW", "POWER",
        "REGR_AVGX", "REGR_AVGY", "REGR_COUNT", "REGR_INTERCEPT", "REGR_R2", "REGR_SLOPE", "REGR_SXX",
        "REGR_SXY", "REGR_SYY", "RIGHT", "STARTSWITH")},
    **{name: (2, 3) for name in (
        "APPROX_PERCENTILE", "PERCENTILE_APPROX", "SUBSTR", "SUBSTRING")},
    **{name: (3,) for name in (
        "REPLACE",)}}


# Of three arguments the first is a unit, not a column.
UNIT_FIRST = ("DATE_ADD", "DATEADD", "TIMESTAMPADD", "DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF")


def _as_ruled(name: str, build: Callable[..., exp.Expr]) -> Callable[..., exp.Expr]:
    """What reads a call of a name, if there is a rule for so many arguments."""
    def read(args: list[Any], **settings: Any) -> exp.Expr:
        return build(args, **settings) if len(args) in RULED[name] else exp.Anonymous(this=name, expressions=args)
    return read


_BUILDERS = {**DatabricksParser.FUNCTIONS, "MEAN": exp.Avg.from_arg_list, "STD": exp.Stddev.from_arg_list,
             "TRY_SUM": exp.Sum.from_arg_list, "TRY_AVG": exp.Avg.from_arg_list, "EVERY": exp.LogicalAnd.from_arg_list,
             "SOME": exp.LogicalOr.from_arg_list,
             "ANY": exp.LogicalOr.from_arg_list, "PERCENTILE_APPROX": exp.ApproxQuantile.from_arg_list,
             "APPROX_PERCENTILE": exp.ApproxQuantile.from_arg_list}


class _Dialect(Databricks):
    """CAST is strict in Databricks, as it is in ANSI Spark; a doubled quote is a quote."""

    class Tokenizer(Databricks.Tokenizer):
        STRING_ESCAPES = ["\\", "'", '"']

    class Parser(DatabricksParser):
        FUNCTIONS = {name: _as_ruled(name, build) for name, build in _BUILDERS.items() if name in RULED}
        NO_PAREN_FUNCTION_PARSERS = {"CASE": DatabricksParser.NO_PAREN_FUNCTION_PARSERS["CASE"],
                                     "IF": DatabricksParser.NO_PAREN_FUNCTION_PARSERS["IF"]}
        FUNCTION_PARSERS = {name: DatabricksParser.FUNCTION_PARSERS[name] for name in (
            "CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "TRIM", "CEIL", "FLOOR", "PERCENTILE")}
        TERM = {**DatabricksParser.TERM, TokenType.DPIPE: exp.DPipe}
        RELATIONS = {**DatabricksParser.EQUALITY, **DatabricksParser.COMPARISON}
        UNARY_PARSERS = {**{t: p for t, p in DatabricksParser.UNARY_PARSERS.items() if t != TokenType.NOT},
                         TokenType.PLUS: lambda self: exp.Anonymous(this="POSITIVE", expressions=[self._parse_unary()])}

        def _parse_conjunction(self) -> Any:
            term = self._term_of_and()
            while self._match(TokenType.AND):
                term = exp.And(this=term, expression=self._term_of_and())
            return term

        def _term_of_and(self) -> Any:
            if self._match(TokenType.NOT):
                return exp.Not(this=self._term_of_and())
            value = self._parse_equality()
            negated = self._match(TokenType.NOT)
            if self._curr and self._curr.token_type in self.RANGE_PARSERS:
                self._advance()
                value = self.RANGE_PARSERS[self._prev.token_type](self, value)
            return self._negate_range(value) if negated else value

        def _parse_equality(self, parse_is: bool = True) -> Any:
            """Every comparison is as strong as every other one."""
            value = self._parse_bitwise()
            while self._curr and self._curr.token_type in self.RELATIONS:
                self._advance()
                value = self.RELATIONS[self._prev.token_type](this=value, expression=self._parse_bitwise())
            return value

        def _parse_comparison(self, this: Any = None) -> Any:
            return self._parse_equality()


_DIALECT = _Dialect()
_OPERAND_ENDS = {
    TokenType.NUMBER, TokenType.STRING, TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET,
    TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.END
}
_BEFORE_VALUES = {
    "SELECT", "WHERE", "ON", "HAVING", "GROUP BY", "ORDER BY", "AND", "OR", "NOT", "CASE", "WHEN", "THEN", "ELSE",
    "BETWEEN", "LIKE", "INTERVAL", "FROM", "DISTINCT", "DIV", "IN"
}


def parsed(text: str) -> exp.Expr:
    """The one statement of a text."""
    statement, = _DIALECT.parser().parse(_constants(text), text)
    assert statement is not None
    for call in statement.find_all(exp.Anonymous):
        first = call.expressions[0] if len(call.expressions) == 3 else None
        if call.name.upper() in UNIT_FIRST and isinstance(first, exp.Column):
            first.replace(exp.Var(this=first.name))
    return statement


def _constants(text: str) -> list[Token]:
    """Tokens in which a number is one word, with its sign and the letter of its type: Spark reads -7L as a constant,
    not as -CAST(7 AS BIGINT).
    """
    words: list[Token] = []
    skip = 0
    tokens = _DIALECT.tokenize(text)
    for i, word in enumerate(tokens):
        if skip:
            skip -= 1
        elif word.token_type != TokenType.NUMBER:
            words.append(word)
        else:
            after = tokens[i + 1] if i + 1 < len(tokens) else None
            lettered = after is not None and after.token_type == TokenType.DCOLON and after.end == word.end
            skip = 2 if lettered else 0
            number = word.text + (tokens[i + 2].text if lettered else "")
            signed = len(words) > 1 and words[-1].token_type == TokenType.DASH and not _ends_operand(words[-2])
            if signed:
                words.pop()
            constant = f"-{number}" if signed else number
            words.append(Token(TokenType.NUMBER, constant, word.line, word.col, word.start, word.end))
    return words


def _ends_operand(word: Token) -> bool:
    """Whether a minus after it takes away.

    Words that are names as well are names here; those after which a value begins are listed by what they are not.
    """
    names = word.text.replace("_", "a").isalnum() and word.token_type not in DatabricksParser.RESERVED_TOKENS
    return word.token_type in _OPERAND_ENDS or names and word.text.upper() not in _BEFORE_VALUES
