"""Single values of forebay.yml, such as a duration: what a text becomes, or why it is refused; their JSON Schema."""
from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Union

from pydantic import AfterValidator, BeforeValidator, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from jobs.pipeline.lines import Text, suggest
from jobs.pipeline.model import ENDLESS
from optimizer.errors import ForebayError
from optimizer.expression.types import ALIASES, NAMES, Type, parse_type
from optimizer.names import NAME
from optimizer.time import DAY, UNITS, unit

EXAMPLE = "such as `10 seconds`; units are " + ", ".join(UNITS)
_LONGEST = 1000 * 366 * DAY
_ENDLESS = ("for ever", "forever", "never")
_SEPARATOR = re.compile(r"[\x01-\x09\x0b\x0c\x0e-\x7f]")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_CRON = re.compile(r"([\d*/,A-Za-z#?L-]+\s+){4}[\d*/,A-Za-z#?L-]+")
_CRON_NAMES = ("@hourly", "@daily", "@weekly", "@monthly", "@yearly")
CHANGED_FILES = ("refuse", "add")
STORES = ("http", "https", "sqlite", "postgresql", "mysql", "mssql")
TRACKING = re.compile(rf"({'|'.join(STORES)})(\+\w+)?://\S+$")


def problem(code: str, says: str, hint: str | None = None, *, subject: str | None = None,
            of: tuple[str, ...] = (), on: str = "value") -> PydanticCustomError:
    """What is wrong with the value that is validated, or with what stands at `of` below it.

    `problem("bad-duration", "is '10', not a duration")` becomes the message "streams.views.wait is '10', not a
    duration" at that value's line; with `subject` that stands there instead of the way to it. `on` is the place that
    the line is of: the `value`, its `key`, or the `mapping` that lacks it.
    """
    context = {"says": says, "hint": hint, "subject": subject, "of": of, "on": on}
    return PydanticCustomError(code, "wrong", context)      # type: ignore[arg-type]


def _described(value: object) -> str:
    return {dict: "a mapping", list: "a list", type(None): "empty"}.get(type(value), repr(str(value)))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise problem("bad-config", f"is {_described(value)}, not a text", "write one value")
    return str(value)      # a plain one: others, as Airflow between its processes, know no kinds of text of ours


def _name(value: str) -> str:
    if not re.fullmatch(NAME, value):
        hint = "a name is an ASCII letter or _, then up to 63 letters, digits and _"
        raise problem("bad-name", "is not a name", hint, subject=repr(value))
    return value


def _column_name(value: str) -> str:
    if re.fullmatch(r"\d+ *\)", value):
        hint = 'within braces a comma ends a value: write the type before it in quotes, as "decimal(10,2)"'
        raise problem("bad-name", "is the rest of a type", hint, subject=value)
    if value.startswith("_"):
        hint = "such names are Forebay's own, as _boundary"
        raise problem("bad-name", "starts with _", hint, subject=f"column {value}")
    return _name(value)


def _type(value: object) -> Type:
    try:
        return parse_type(_text(value))
    except ForebayError as error:
        text = str(value)
        is_cut = "(" in text and ")" not in text
        hint = f'quote it: within braces a comma ends a value, so write "{text},…)"' if is_cut else error.hint
        raise problem(error.code, f": {error.message}", hint) from None


def _flag(value: object) -> bool:
    if not isinstance(value, Text) or not value.is_flag:
        raise problem("bad-config", f"is {_described(value)}, not true or false", "write true or false")
    return value.lower() in ("true", "yes", "on")


def _duration(value: object) -> int:
    """`10 seconds` in microseconds."""
    text = _text(value).strip()
    match = re.fullmatch(r"(\d{1,15})\s*([a-z]+)", text, re.I)
    unit_length = unit(match[2]) if match else None
    length = 0 if text == "0" else int(match[1]) * unit_length if match and unit_length else None
    if length is None or length > _LONGEST:
        raise problem("bad-duration", f"is {text!r}, not a duration", f"write a whole number and a unit, {EXAMPLE}")
    return length


def _positive(value: object) -> int:
    length = _duration(value)
    if length < 1:
        raise problem("bad-duration", f"is {_text(value).strip()!r}, which is too short", "it must be longer than 0")
    return length


def _limit(value: object) -> int | None:
    """A duration, or None for ever."""
    return None if _text(value).lower() in _ENDLESS else _positive(value)


def _reach(value: object) -> int:
    """A duration, or longer than any."""
    length = _limit(value)
    return ENDLESS if length is None else length


def _changed_files(value: object) -> str:
    text = _text(value)
    if text == "replace":
        hint = "`refuse` (the default) leaves such a file out and says so, `add` takes it in whole once more"
        raise problem("not-yet", "is 'replace', which Forebay does not know yet", hint)
    if text not in CHANGED_FILES:
        raise problem("bad-config", f"is {text!r}", suggest(text, CHANGED_FILES))
    return text


def _one_of(*words: str) -> BeforeValidator:
    def word(value: object) -> str:
        if _text(value) not in words:
            raise problem("bad-config", f"is {value!r}", suggest(_text(value), words))
        return _text(value)

    return BeforeValidator(word)


def _schedule(value: str) -> str:
    value = value.strip()
    if value != "continuous" and value not in _CRON_NAMES and not _CRON.fullmatch(value):
        hint = "write `continuous`, five cron fields as \"*/5 * * * *\", or {asset: TABLE}"
        raise problem("bad-config", f"is {value!r}", hint)
    return value


def _tracking(value: str) -> str:
    value = value.strip()
    if "://" in value and not TRACKING.match(value):
        schemes = ", ".join(f"{scheme}://" for scheme in STORES)
        raise problem("bad-config", f"is {value!r}", f"write a server or database as {schemes}…, a folder, or off")
    return value


def _topic(value: str) -> str:
    if not _TOPIC.fullmatch(value):
        raise problem("bad-name", "is not a topic", "a topic has letters, digits, ., _ and -", subject=repr(value))
    return value


def _separator(value: str) -> str:
    if not _SEPARATOR.fullmatch(value):
        raise problem("bad-config", f"is {value!r}", "it is one character of ASCII, and no line end")
    return value


def mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise problem("bad-config", f"is {_described(value)}, not keys with values", "write `key: value` lines")
    return value


def distinct(value: object) -> dict[str, Any]:
    """Named things; names differ in more than case, since file systems and Spark may not tell `A` from `a`."""
    names: set[str] = set()
    for key in mapping(value):
        if key.lower() in names:
            hint = "give one of them another name"
            raise problem("bad-name", "differs from another name only in case", hint, of=(key,))
        names.add(key.lower())
    return mapping(value)


def form(value: object) -> str:
    return "mapping form" if isinstance(value, dict) else "text form"


def _any_case(words: Iterable[str]) -> str:
    """A pattern that takes the words in any case: JSON Schema's patterns have no flag for it."""
    patterns = []
    for word in words:
        patterns.append("".join(f"[{c.upper()}{c}]" if c.isalpha() else c for c in word))
    return "|".join(patterns)


_LENGTH = rf"^\s*(0|\d{{1,15}}\s*({_any_case(UNITS)})[sS]?)\s*$"
_TYPE = rf"^\s*({_any_case((*NAMES, *ALIASES))})\s*(\(\s*\d+\s*(,\s*\d+\s*)?\))?\s*$"
_TYPES = ["decimal(10,2)" if name == "decimal" else name for name in NAMES]


def _pattern(pattern: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, **({"examples": list(examples)} if examples else {})})


# Plain: pydantic itself refuses texts with half a surrogate pair, which a path may have.
String = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string"})]
# Also YAML's numbers and flags, as they are written.
Scalar = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": ["string", "number", "boolean"]})]
Name = Annotated[String, AfterValidator(_name), _pattern(f"^{NAME}$")]
ColumnName = Annotated[String, AfterValidator(_column_name), _pattern("^[A-Za-z][A-Za-z0-9_]{0,63}$")]
ColumnType = Annotated[Type, PlainValidator(_type), _pattern(_TYPE, *_TYPES)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Length = Annotated[int, BeforeValidator(_duration), WithJsonSchema({
    "anyOf": [{"type": "string", "pattern": _LENGTH, "examples": ["10 seconds"]}, {"const": 0}]})]
PositiveLength = Annotated[int, BeforeValidator(_positive), _pattern(_LENGTH, "10 seconds")]
Limit = Annotated[Union[int, None], BeforeValidator(_limit),
                  _pattern(f"{_LENGTH}|^({_any_case(_ENDLESS)})$", "30 days", "for ever")]
Reach = Annotated[int, BeforeValidator(_reach),
                  _pattern(f"{_LENGTH}|^({_any_case(_ENDLESS)})$", "30 days", "for ever")]
ChangedFiles = Annotated[Literal["refuse", "add"], BeforeValidator(_changed_files)]
Policy = Annotated[Literal["quarantine", "drop"], _one_of("quarantine", "drop")]
Decide = Annotated[Literal["task", "batch"], _one_of("task", "batch")]
When = Annotated[Literal["auto", "always", "never"], _one_of("auto", "always", "never")]
CostModel = Annotated[Literal["measured", "paper"], _one_of("measured", "paper")]
Schedule = Annotated[String, AfterValidator(_schedule)]
Tracking = Annotated[Scalar, AfterValidator(_tracking)]
Topic = Annotated[String, AfterValidator(_topic)]
Separator = Annotated[Scalar, AfterValidator(_separator)]
Options = Annotated[dict[str, Scalar], BeforeValidator(mapping)]
DISTINCT = BeforeValidator(distinct)        # of names
