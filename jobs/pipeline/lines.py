"""A YAML text as values that know where they stand; it reads what is there, refuses by line, and knows no pipeline."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, count
from typing import Union

import yaml

from optimizer.errors import ForebayError, closest, first_line

_LARGEST = 1_000_000                    # characters of a YAML file
_DEEPEST = 50                           # open brackets; PyYAML's time grows with their square
_MOST = 100_000                         # values of a file: an alias of aliases can stand for any number


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


class Text(str):
    """A value as it is written: `off` stays off, `1.0` stays 1.0. `is_flag`: YAML reads it as true or false."""

    is_flag: bool

    def __new__(cls, text: str, is_flag: bool = False) -> Text:
        value = super().__new__(cls, text)
        value.is_flag = is_flag
        return value


Value = Union[dict[str, "Value"], list["Value"], Text, None]


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
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        raise ForebayError("bad-yaml", f"{title} is not YAML: {error.problem}", line, column) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ForebayError("bad-yaml", f"{title} is not YAML: {first_line(error)[:200]}") from error
    if node is None:
        raise ForebayError("bad-yaml", f"{title} is empty", hint="`forebay init DIR` writes one that runs")
    return Entry("", node)


def items(entry: Entry) -> dict[str, Entry]:
    """A mapping's entries by key; a key twice is refused."""
    if not isinstance(entry.node, yaml.MappingNode):
        message = f"{entry.where or 'the file'} is {_kind(entry.node)}, not keys with values"
        raise refused(entry, "bad-config", message, "write `key: value` lines")
    entries: dict[str, Entry] = {}
    for key, value in entry.node.value:
        name = text(Entry(f"a key of {entry.where or 'the file'}", key))
        if name in entries:
            raise refused(Entry("", key), "bad-config", f"{_path(entry, name)} stands twice", "keep one")
        entries[name] = Entry(_path(entry, name), value)
    return entries


def fields(entry: Entry, keys: Iterable[str], required: Iterable[str] = ()) -> dict[str, Entry]:
    """A mapping that has these keys and no others; empty values count as not given."""
    keys, entries = tuple(keys), items(entry)
    for name in entries:
        if name not in keys:
            message = f"{entries[name].where} is not a key that is known here"
            raise refused(key_of(entry, name), "unknown-key", message, suggest(name, keys))
    given = {name: value for name, value in entries.items() if not value.empty}
    for name in required:
        if name not in given:
            message = f"{_path(entry, name)} is missing"
            raise refused(entry, "missing-key", message, f"required here: {', '.join(required)}")
    return given


def values(entry: Entry) -> Value:
    """What stands below an entry as dicts, lists and texts; None where nothing is written."""
    numbers = count()

    def value(entry: Entry, depth: int) -> Value:
        if depth > _DEEPEST or next(numbers) > _MOST:
            message = f"the file has more than {_MOST} values, or nests more than {_DEEPEST}"
            raise refused(entry, "bad-yaml", message, "write out what aliases (*name) repeat")
        if entry.mapping:
            return {key: value(inner, depth + 1) for key, inner in items(entry).items()}
        if isinstance(entry.node, yaml.SequenceNode):
            return [value(Entry(f"{entry.where}[{k}]", node), depth + 1) for k, node in enumerate(entry.node.value)]
        return None if entry.empty else Text(entry.node.value, entry.node.tag == "tag:yaml.org,2002:bool")

    return value(entry, 0)


def at(entry: Entry, way: Iterable[str | int]) -> Entry:
    """What stands at the end of `way`, as `("streams", "views")`, or as far along it as there is something."""
    for key in way:
        if isinstance(key, str) and entry.mapping:
            entry = items(entry).get(key, entry)
        elif isinstance(key, int) and isinstance(entry.node, yaml.SequenceNode):
            entry = Entry(f"{entry.where}[{key}]", entry.node.value[key])
    return entry


def key_of(entry: Entry, wanted: str) -> Entry:
    """A key of a mapping, where it stands."""
    assert isinstance(entry.node, yaml.MappingNode)
    return next(Entry(_path(entry, wanted), key) for key, _ in entry.node.value if key.value == wanted)


def suggest(name: str, names: Iterable[str]) -> str:
    """A did-you-mean, and what exists."""
    names = tuple(names)
    match = closest(name, names)
    return (f"did you mean {match!r}? " if match else "") + f"known are {', '.join(names) or 'none'}"


def text(entry: Entry) -> str:
    if not isinstance(entry.node, yaml.ScalarNode) or entry.empty:
        raise refused(entry, "bad-config", f"{entry.where} is {_kind(entry.node)}, not a text", "write one value")
    return str(entry.node.value)


def _path(entry: Entry, key: str) -> str:
    return f"{entry.where}.{key}" if entry.where else key


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return "empty" if node.tag.endswith(":null") else f"{node.value!r}"
    return "a mapping" if isinstance(node, yaml.MappingNode) else "a list"
