r"""Functions of regular expressions, and ILIKE: patterns are constants that mean the same to Java and to RE2.

Java's `$` also stands before a line break at the end of the text. RE2 has only the end itself, so the break is matched
with the rest, outside the group that counts: `a$` is `(a)[\n…]?\z`, and `(a)(?:\r\n)?\z` where the text ends in \r\n,
between whose characters `$` never stands.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from optimizer.errors import ForebayError
from optimizer.expression.arguments import Args, want, whole_number
from optimizer.expression.casting import constant
from optimizer.expression.coercion import mismatch
from optimizer.expression.dialect import string
from optimizer.expression.expr import Call, Expr, Literal
from optimizer.expression.functions.row import Function, Name, Texts, Written
from optimizer.expression.functions.text import checked_like, refuse_nested_letters
from optimizer.expression.regex import RegexPattern, java
from optimizer.expression.types import BOOLEAN, INT, STRING, Type

_LAST_BREAK, _CR_LF = "[\\x{a}\\x{d}\\x{85}\\x{2028}\\x{2029}]?", "(?:\\r\\n)?"
_END = {"": "", _LAST_BREAK: f"{_LAST_BREAK}\\z", _CR_LF: f"{_CR_LF}\\z"}
_PAIRS = "[\\x{10000}-\\x{10FFFF}]"
MOST_GROUPS = 8      # \1 to \9 of a replacement, one of which holds the line break


def _pattern(function: str, arg: Expr) -> RegexPattern:
    if not isinstance(arg, Literal) or arg.type != STRING or arg.value is None:
        raise mismatch(f"{function}'s pattern must be a string constant", "for instance '^/shop/[0-9]+'")
    return java(str(arg.value))


def _searched(function: str, result: Type, args: Args) -> Expr:
    """Whether, what, how often: of a text and a pattern."""
    pattern = _pattern(function.upper(), args[1])
    if function == "regexp_count":
        _check_many(function, pattern)
    return Call(function, (want(args[0], function.upper(), STRING), args[1]), result)


def _check_many(function: str, pattern: RegexPattern) -> None:
    """Engines differ in where nothing is found next to something."""
    if pattern.nullable:
        raise ForebayError("bad-pattern", f"{function.upper()}'s pattern may match nothing",
                           hint="let it match at least one character: + instead of *")
    if pattern.at_end and pattern.breaks:
        raise ForebayError("bad-pattern", f"{function.upper()}'s pattern ends in $ and may match a line break itself",
                           hint="leave line breaks out of it: [ \\t]+$ instead of \\s+$")


def _extracted(args: Args) -> Expr:
    pattern = _pattern("REGEXP_EXTRACT", args[1])
    group = whole_number(args[2], "REGEXP_EXTRACT's group", 0, MOST_GROUPS) if len(args) > 2 else 1
    if group > pattern.groups:
        raise mismatch(f"the pattern has {pattern.groups} groups, not {group}",
                       "put ( ) around what is wanted, or take group 0, the whole match")
    if group and pattern.repeated:
        raise ForebayError("bad-pattern", "a group stands in a repetition", hint="write (?: ) there")
    text = want(args[0], "REGEXP_EXTRACT", STRING)
    return Call("regexp_extract", (text, args[1], Literal(group, INT)), STRING)


def _replaced(args: Args) -> Expr:
    pattern, replacement = _pattern("REGEXP_REPLACE", args[1]), args[2]
    _check_many("regexp_replace", pattern)
    if not isinstance(replacement, Literal) or replacement.type != STRING or replacement.value is None:
        raise mismatch("REGEXP_REPLACE's replacement must be a string constant")
    text = want(args[0], "REGEXP_REPLACE", STRING)
    if "\\" in _rewrite(str(replacement.value), pattern) and pattern.repeated:
        raise ForebayError("bad-pattern", "a group stands in a repetition", hint="write (?: ) there")
    return Call("regexp_replace", (text, args[1], replacement), STRING)


def _rewrite(replacement: str, pattern: RegexPattern) -> str:
    r"""Java's $1 as RE2's \1: as many digits as there are groups for."""
    text, at = "", 0
    while at < len(replacement):
        symbol = replacement[at]
        if symbol == "$":
            number = _group_number(replacement[at + 1:], pattern)
            text, at = f"{text}\\{int(number)}", at + 1 + len(number)
            continue
        if symbol == "\\":
            at += 1
            if at == len(replacement):
                raise ForebayError("bad-pattern", "the replacement ends in one \\", hint="write \\\\\\\\ for one \\")
        text, at = text + ("\\\\" if replacement[at] == "\\" else replacement[at]), at + 1
    return text


def _group_number(rest: str, pattern: RegexPattern) -> str:
    """The digits of the group that stands after a $."""
    digits = re.match("[0-9]*", rest)
    number = digits[0][:1] if digits else ""
    while digits and len(number) < len(digits[0]) and int(digits[0][:len(number) + 1]) <= pattern.groups:
        number = digits[0][:len(number) + 1]
    if not number or not (int(number) or not pattern.at_end) or int(number) > min(pattern.groups, MOST_GROUPS):
        raise ForebayError("bad-pattern", f"the replacement has ${number}, the pattern {pattern.groups} groups",
                           hint="$1 is the first of at most 8; \\\\$ in the text is the character itself")
    return number


def _insensitive(args: Args) -> Expr:
    """Both sides in lower case, as in Spark."""
    text, pattern = checked_like("ILIKE", args)
    refuse_nested_letters((text,))
    return Call("ilike", (text, pattern), BOOLEAN)


# Their SQL
def _java(call: Call) -> RegexPattern:
    return java(str(constant(call, 1)))


def _by_end(call: Call, text: str, write: Callable[[str], str]) -> str:
    """`write` of what follows the pattern, by how the text ends where that matters."""
    if not _java(call).at_end:
        return write("")
    return f"CASE WHEN ends_with({text}, chr(13) || chr(10)) THEN {write(_CR_LF)} ELSE {write(_LAST_BREAK)} END"


def _matches(call: Call, args: Texts) -> str:
    return _by_end(call, args[0], lambda end: f"regexp_matches({args[0]}, {string(_java(call).re2 + _END[end])})")


def _extract(group: int, call: Call, text: str) -> str:
    """Of a pattern that ends in $ the part before is a group of its own."""
    pattern = _java(call)
    if not pattern.at_end:
        return f"regexp_extract({text}, {string(pattern.re2)}, {group})"

    def write(end: str) -> str:
        return f"regexp_extract({text}, {string(f'({pattern.re2}){_END[end]}')}, {group + 1})"
    return _by_end(call, text, write)


def _extract_sql(call: Call, args: Texts) -> str:
    return _extract(int(str(constant(call, 2))), call, args[0])


def _first_sql(call: Call, args: Texts) -> str:
    return f"nullif({_extract(0, call, args[0])}, '')"


def _place_sql(call: Call, args: Texts) -> str:
    """What stands before the first match, counted as Java does: characters beyond U+FFFF are two."""
    def write(end: str) -> str:
        before = f"regexp_extract({args[0]}, {string(f'^((?s:.)*?)(?:{_java(call).re2}{_END[end]})')}, 1)"
        pairs = f"len(regexp_extract_all({before}, {string(_PAIRS)}))"
        matches = f"regexp_matches({args[0]}, {string(_java(call).re2 + _END[end])})"
        place = f"CASE WHEN {matches} THEN length({before}) + {pairs} + 1 WHEN ({args[0]}) IS NOT NULL THEN 0 END"
        return f"CAST({place} AS INTEGER)"
    return _by_end(call, args[0], write)


def _count_sql(call: Call, args: Texts) -> str:
    def write(end: str) -> str:
        return f"CAST(len(regexp_extract_all({args[0]}, {string(_java(call).re2 + _END[end])})) AS INTEGER)"
    return _by_end(call, args[0], write)


def _replace_sql(call: Call, args: Texts) -> str:
    """The line break that `$` let through is put back."""
    pattern = _java(call)
    rewritten = _rewrite(str(constant(call, 2)), pattern)
    if not pattern.at_end:
        return f"regexp_replace({args[0]}, {string(pattern.re2)}, {string(rewritten)}, 'g')"
    kept = string(f"{rewritten}\\{pattern.groups + 1}")

    def write(end: str) -> str:
        whole = f"(?:{pattern.re2})({end})\\z"
        return f"regexp_replace({args[0]}, {string(whole)}, {kept})"
    return _by_end(call, args[0], write)


ROWS: tuple[Written, ...] = (
    Function(partial(_searched, "rlike", BOOLEAN),
             (Name("RLIKE", 2, 2, "whether a regular expression (a constant) is found in a string; also `x RLIKE '…'`"),
              Name("REGEXP", 2, 2, "the same as RLIKE"), Name("REGEXP_LIKE", 2, 2, "the same as RLIKE")),
             operators=("RLIKE",), name="rlike", duckdb=_matches, spark="({0} RLIKE {1})"),
    Function(_extracted, (Name("REGEXP_EXTRACT", 2, 3, "what a group (a constant, default 1) of a regular expression "
                                                       "first matches; '' where nothing does"),),
             name="regexp_extract", duckdb=_extract_sql, spark="regexp_extract({0}, {1}, {2})"),
    Function(partial(_searched, "regexp_substr", STRING),
             (Name("REGEXP_SUBSTR", 2, 2, "what a regular expression first matches; NULL where nothing does"),),
             name="regexp_substr", duckdb=_first_sql, spark="regexp_substr({0}, {1})", quiet="TRUE"),
    Function(partial(_searched, "regexp_count", INT),
             (Name("REGEXP_COUNT", 2, 2, "how often a regular expression is found"),),
             name="regexp_count", duckdb=_count_sql, spark="regexp_count({0}, {1})"),
    Function(partial(_searched, "regexp_instr", INT),
             (Name("REGEXP_INSTR", 2, 2, "position of the first match, characters beyond U+FFFF counted twice; 0 where "
                                         "there is none"),),
             name="regexp_instr", duckdb=_place_sql, spark="regexp_instr({0}, {1})"),
    Function(_replaced, (Name("REGEXP_REPLACE", 3, 3, "every match of a regular expression by a constant, in which $1 "
                                                      "is the first group"),),
             name="regexp_replace", duckdb=_replace_sql, spark="regexp_replace({0}, {1}, {2})"),
    Function(_insensitive, operators=("ILIKE",), name="ilike",
             duckdb="(spark_lower({0}) LIKE spark_lower({1}) ESCAPE '\\')", spark="({0} ILIKE {1})"),
)
