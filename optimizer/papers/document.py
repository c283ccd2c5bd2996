"""Statistics as `explain --statistics FILE` takes and shows them, in the papers' symbols.

What a file leaves out is as it was measured, else paper A's default.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields

from optimizer.errors import ForebayError, suggestion
from optimizer.expression.expr import inputs
from optimizer.papers.statistics import Constants, PaperStream, Setting
from optimizer.query.model import Query
from optimizer.query.windows import SECOND

DEFAULT = PaperStream("default", rate=300, window=5000, groups=150, selectivity=0.1)      # paper A, Figs. 6, 7
KEYS = ("streams", "method", "buckets", "constants")
STREAM_KEYS = ("rate", "window", "groups", "selectivity")


def read(document: Mapping[str, object], query: Query, measured: Mapping[str, PaperStream] | None = None) -> Setting:
    """The setting of a query. A stream is named by its alias or its source; `measured` is by alias."""
    _check_keys("the statistics", document, KEYS)
    by_name = _mapping("streams", document.get("streams", {}))
    _check_keys("streams", by_name, [name for i in query.inputs for name in (i.alias, i.source)])
    streams = tuple(_stream(query, n, by_name, (measured or {}).get(i.alias)) for n, i in enumerate(query.inputs))
    method = document.get("method", "hash")
    buckets = _number("the hash tables", "buckets", document.get("buckets", 1021))
    if not isinstance(method, str):
        raise ForebayError("bad-statistics", f"method is {method!r}", hint="expected hash or nested loop")
    constants = _mapping("constants", document.get("constants", {}))
    _check_keys("the constants", constants, [field.name for field in fields(Constants)])
    values = {key: _number("the constants", key, value) for key, value in constants.items()}
    return Setting(streams, method, buckets, Constants(**values))


def written(setting: Setting) -> dict[str, object]:
    """The document that reads as this setting again."""
    streams = {}
    for stream in setting.streams:
        streams[stream.name] = {key: getattr(stream, key) for key in STREAM_KEYS}
    return {
        "streams": streams,
        "method": setting.method,
        "buckets": setting.buckets,
        "constants": asdict(setting.constants)
    }


def _stream(query: Query, n: int, by_name: Mapping[str, object], measured: PaperStream | None) -> PaperStream:
    declared, usual = query.inputs[n], measured or _default(query, n)
    entry = {
        **_mapping(declared.source, by_name.get(declared.source, {})),
        **_mapping(declared.alias, by_name.get(declared.alias, {}))
    }
    owner = f"stream {declared.alias}"
    _check_keys(owner, entry, STREAM_KEYS)
    values = {key: _number(owner, key, entry.get(key, getattr(usual, key))) for key in STREAM_KEYS}
    if "window" not in entry and ("rate" in entry or measured is None):
        values["window"] = usual.window
        if declared.window and declared.window.range:      # w = λ·range; a relation and UNTIL NOW have none
            values["window"] = values["rate"] * declared.window.range / SECOND
    leaving = declared.window is None or declared.window.kind in ("sliding", "hopping")
    return PaperStream(declared.alias, **values, leaving=leaving)


def _default(query: Query, n: int) -> PaperStream:
    """Paper A's setting; a relation has rate 0, an input without grouping attributes one group."""
    declared = query.inputs[n]
    return PaperStream(
        declared.alias,
        rate=DEFAULT.rate if declared.is_stream else 0,
        window=DEFAULT.window,
        groups=DEFAULT.groups if any(n in inputs(expr) for expr in query.groups) else 1,
        selectivity=DEFAULT.selectivity,
    )


def _mapping(name: str, value: object) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        return value
    raise ForebayError("bad-statistics", f"{name} is {value!r}", hint="expected names with values, as {\"rate\": 300}")


def _number(owner: str, key: str, value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise ForebayError("bad-statistics", f"{key} of {owner} is {value!r}", hint="expected a number")


def _check_keys(owner: str, entry: Mapping[str, object], expected: list[str] | tuple[str, ...]) -> None:
    for key in entry:
        if key not in expected:
            names = f"known are {', '.join(dict.fromkeys(expected))}"
            hint = " ".join(filter(None, (suggestion(str(key), expected), names)))
            raise ForebayError("bad-statistics", f"{key!r} is not known of {owner}", hint=hint)
