"""A YAML text as values that know where they stand; it reads what is there and refuses the rest by line, and knows nothing of pipelines."""
from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

import yaml

from optimizer.errors import ForebayError
from optimizer.names import NAME

UNITS = {"microsecond": 1, "millisecond": 1000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6, "day": 86400 * 10**6, "week": 7 * 86400 * 10**6}
_LONGEST = 1000 * 366 * UNITS["day"]
_LARGEST = 1_000_000                    # characters of a YAML file
_DEEPEST = 50                           # open brackets; PyYAML's time grows with their square


@dataclass(frozen=True)
class Entry:
    """A value and the way to it, such as `streams.views.wait`."""

    where: str
    node: yaml.Node

    @property
    def empty(self) -> bool:
        return bool(self.node.tag == "tag:yaml.org,2002:null")

    @property
    def mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)


def refused(entry: Entry, code: str, message: str, hint: str | None = None) -> ForebayError:
    mark = entry.node.start_mark
    return ForebayError(code, message, mark.line + 1, mark.column + 1, hint)


def document(text: str, title: str) -> Entry:
    """The one document of a text; `title` names it in errors."""
    if len(text) > _LARGEST:
        raise ForebayError("bad-yaml", f"{title} has more than {_LARGEST} characters", hint="split the pipeline")
    if max(accumulate((c in "[{") - (c in "]}") for c in text), default=0) > _DEEPEST:
        raise ForebayError("bad-yaml", f"{title} nests more than {_DEEPEST} brackets", hint="indent instead")
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise ForebayError("bad-yaml", f"{title} is not YAML: {error.problem}", mark.line + 1 if mark else None, mark.column + 1 if mark else None) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ForebayError("bad-yaml", f"{title} is not YAML: {str(error).splitlines()[0][:200]}") from error
    if node is None:
        raise ForebayError("bad-yaml", f"{title} is empty", hint="`forebay init DIR` writes one that runs")
    return Entry("", node)


def items(entry: Entry) -> dict[str, Entry]:
    """A mapping's entries by key; a key twice is refused."""
    if not isinstance(entry.node, yaml.MappingNode):
        raise refused(entry, "bad-config", f"{entry.where or 'the file'} is {_kind(entry.node)}, not keys with values", "write `key: value` lines")
    found: dict[str, Entry] = {}
    for key, value in entry.node.value:
        name = text(Entry(f"a key of {entry.where or 'the file'}", key))
        if name in found:
            raise refused(Entry("", key), "bad-config", f"{_path(entry, name)} stands twice", "keep one")
        found[name] = Entry(_path(entry, name), value)
    return found


def fields(entry: Entry, known: Iterable[str], required: Iterable[str] = ()) -> dict[str, Entry]:
    """A mapping that has these keys and no others; empty values count as not given."""
    known, found = tuple(known), items(entry)
    for name in found:
        if name not in known:
            raise refused(_key(entry, name), "unknown-key", f"{found[name].where} is not a key that is known here", suggest(name, known))
    given = {name: value for name, value in found.items() if not value.empty}
    for name in required:
        if name not in given:
            raise refused(entry, "missing-key", f"{_path(entry, name)} is missing", f"required here: {', '.join(required)}")
    return given


def suggest(name: str, known: Iterable[str]) -> str:
    """A did-you-mean, and what exists."""
    known = tuple(known)
    close = difflib.get_close_matches(name.lower(), known, 1, 0.6)
    return (f"did you mean {close[0]!r}? " if close else "") + f"known are {', '.join(known) or 'none'}"


def text(entry: Entry) -> str:
    if not isinstance(entry.node, yaml.ScalarNode) or entry.empty:
        raise refused(entry, "bad-config", f"{entry.where} is {_kind(entry.node)}, not a text", "write one value")
    return str(entry.node.value)


def name(entry: Entry, value: str) -> str:
    if not re.fullmatch(NAME, value):
        raise refused(entry, "bad-name", f"{value!r} is not a name", "a name is an ASCII letter or _, then up to 63 letters, digits and _")
    return value


def choice(entry: Entry, known: tuple[str, ...]) -> str:
    value = text(entry)
    if value not in known:
        raise refused(entry, "bad-config", f"{entry.where} is {value!r}", suggest(value, known))
    return value


def flag(entry: Entry) -> bool:
    if entry.node.tag != "tag:yaml.org,2002:bool":
        raise refused(entry, "bad-config", f"{entry.where} is {_kind(entry.node)}, not true or false", "write true or false")
    return text(entry).lower() in ("true", "yes", "on")


def duration(entry: Entry, least: int = 0) -> int:
    """`10 seconds` in microseconds."""
    value = text(entry).strip()
    match = re.fullmatch(r"(\d{1,15})\s*([a-z]+?)s?", value, re.I)
    length = 0 if value == "0" else int(match[1]) * UNITS[match[2].lower()] if match and match[2].lower() in UNITS else None
    if length is None or length > _LONGEST:
        hint = f"write a whole number and a unit, such as `10 seconds`; units are {', '.join(UNITS)}"
        raise refused(entry, "bad-duration", f"{entry.where} is {value!r}, not a duration", hint)
    if length < least:
        raise refused(entry, "bad-duration", f"{entry.where} is {value!r}, which is too short", "it must be longer than 0")
    return length


def _path(entry: Entry, key: str) -> str:
    return f"{entry.where}.{key}" if entry.where else key


def _key(entry: Entry, wanted: str) -> Entry:
    assert isinstance(entry.node, yaml.MappingNode)
    return next(Entry(_path(entry, wanted), key) for key, _ in entry.node.value if key.value == wanted)


def _kind(node: yaml.Node) -> str:
    return {"MappingNode": "a mapping", "SequenceNode": "a list"}.get(type(node).__name__, "empty" if node.tag.endswith(":null") else f"{node.value!r}")
