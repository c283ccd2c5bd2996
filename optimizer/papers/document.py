"""Statistics as `explain --statistics FILE` takes and shows them, in the papers' symbols.

What they leave out is what is known, else paper A's default.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields

from optimizer.errors import ForebayError, suggestion
from optimizer.expression.expr import inputs
from optimizer.papers.statistics import Constants, PaperStream, Setting
from optimizer.query.model import Input, Query
from optimizer.query.windows import SECOND

DEFAULT = PaperStream("default", rate=300, window=5000, groups=150, selectivity=0.1)      # paper A, Figs. 6, 7
KEYS = ("streams", "method", "buckets", "constants")
STREAM_KEYS = ("rate", "window", "groups", "selectivity")


def read(document: Mapping[str, object], query: Query, known: Mapping[str, PaperStream] | None = None) -> Setting:
    """The setting of a query. A stream is named by its alias or its source; `known` has what was measured, by alias."""
    _only("the statistics", document, KEYS)
    given = _mapping("streams", document.get("streams", {}))
    _only("streams", given, [name for i in query.inputs for name in (i.alias, i.source)])
    streams = tuple(_stream(query, n, given, (known or {}).get(i.alias)) for n, i in enumerate(query.inputs))
    method, buckets = document.get("method", "hash"), _number("the hash tables", "buckets",
                                                              document.get("buckets", 1021))
    if not isinstance(method, str):
        raise ForebayError("bad-statistics", f"method is {method!r}", hint="expected hash or nested loop")
    return Setting(streams, method, buckets, _constants(_mapping("constants", document.get("constants", {}))))


def written(setting: Setting) -> dict[str, object]:
    """The document that reads as this setting again."""
    streams = {s.name: {key: getattr(s, key) for key in STREAM_KEYS} for s in setting.streams}
    return {
        "streams": streams,
        "method": setting.method,
        "buckets": setting.buckets,
        "constants": asdict(setting.constants)
    }


def _stream(query: Query, n: int, given: Mapping[str, object], known: PaperStream | None) -> PaperStream:
    declared, start = query.inputs[n], known or _default(query, n)
    texts = {
        **_mapping(declared.source, given.get(declared.source, {})),
        **_mapping(declared.alias, given.get(declared.alias, {}))
    }
    _only(f"stream {declared.alias}", texts, STREAM_KEYS)
    found = {key: _number(f"stream {declared.alias}", key, texts.get(key, getattr(start, key))) for key in STREAM_KEYS}
    if "window" not in texts and ("rate" in texts or known is None):
        found["window"] = _held(declared, found["rate"], start.window)
    leaving = declared.window is None or declared.window.kind in ("sliding", "hopping")
    return PaperStream(declared.alias, found["rate"], found["window"], found["groups"], found["selectivity"], leaving)


def _held(declared: Input, rate: float, otherwise: float) -> float:
    """w = λ·range; a relation and UNTIL NOW have no range."""
    return rate * declared.window.range / SECOND if declared.window and declared.window.range else otherwise


def _default(query: Query, n: int) -> PaperStream:
    """Paper A's setting; a relation has rate 0, an input without grouping attributes one group."""
    grouped = any(n in inputs(e) for e in query.groups)
    declared = query.inputs[n]
    return PaperStream(declared.alias, DEFAULT.rate if declared.is_stream else 0, DEFAULT.window,
                       DEFAULT.groups if grouped else 1, DEFAULT.selectivity)


def _constants(given: Mapping[str, object]) -> Constants:
    _only("the constants", given, [f.name for f in fields(Constants)])
    return Constants(**{key: _number("the constants", key, value) for key, value in given.items()})


def _mapping(name: str, value: object) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        return value
    raise ForebayError("bad-statistics", f"{name} is {value!r}", hint="expected names with values, as {\"rate\": 300}")


def _number(owner: str, key: str, value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise ForebayError("bad-statistics", f"{key} of {owner} is {value!r}", hint="expected a number")


def _only(owner: str, given: Mapping[str, object], known: list[str] | tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            names = f"known are {', '.join(dict.fromkeys(known))}"
            hint = " ".join(filter(None, (suggestion(str(key), known), names)))
            raise ForebayError("bad-statistics", f"{key!r} is not known of {owner}", hint=hint)
