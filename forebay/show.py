"""Documents as --json prints them: instants as ISO 8601 UTC, decimals and what JSON lacks as text.

No value of an answer is rounded, nothing is printed.
"""
from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import optimizer.time
from optimizer.errors import ForebayError

if TYPE_CHECKING:
    import pyarrow as pa

INSTANT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?\s*(Z|[+-]\d\d:?\d\d)?)?", re.I)
Document = dict[str, Any]


def iso(us: int | None) -> str | None:
    """2013-01-02T00:00:00Z; microseconds only when there are any."""
    return None if us is None else optimizer.time.iso(us)


def micros(text: str, option: str) -> int:
    """A time that a person wrote; without a zone it is UTC."""
    try:
        if not INSTANT.fullmatch(text.strip()):
            raise ValueError(text)
        return optimizer.time.micros(datetime.fromisoformat(text.strip().upper()))
    except (ValueError, OverflowError):
        raise ForebayError("bad-time", f"{option} is {text!r}, not a time",
                           hint="write it as 2013-01-02T00:00:00Z (ISO 8601; no zone means UTC)") from None


def value(raw: Any) -> Any:
    """A value of a result as JSON holds it."""
    if raw is None or isinstance(raw, (bool, int, str)):
        return raw
    if isinstance(raw, float):
        if math.isnan(raw):
            return "NaN"
        return raw if math.isfinite(raw) else "Infinity" if raw > 0 else "-Infinity"
    if isinstance(raw, Decimal):
        return f"{raw:f}"
    if isinstance(raw, datetime):
        return iso(optimizer.time.micros(raw))
    if isinstance(raw, (date, time)):
        return raw.isoformat()
    return base64.b64encode(raw).decode() if isinstance(raw, bytes) else str(raw)


def rows(answer: pa.Table | pa.RecordBatchReader) -> Iterator[list[Any]]:
    """Row by row, a batch in memory at a time."""
    import pyarrow as pa

    for batch in answer.to_batches() if isinstance(answer, pa.Table) else answer:
        yield from map(list, zip(*(column_values(column) for column in batch.columns)))


def column_values(column: pa.Array) -> list[Any]:
    """As `value` makes them. What a column repeats is made once; an instant with a zone as a Python value makes Arrow
    import pandas, so the zone, always UTC, goes first."""
    import pyarrow as pa

    plain = column.cast(pa.timestamp("us")) if pa.types.is_timestamp(column.type) else column
    if pa.types.is_integer(column.type) or pa.types.is_string(column.type) or pa.types.is_boolean(column.type):
        return list(plain.to_pylist())
    if pa.types.is_floating(column.type):
        return [value(v) for v in plain.to_pylist()]
    coded = plain.dictionary_encode()
    distinct = [value(v) for v in coded.dictionary.to_pylist()]
    return [None if k is None else distinct[k] for k in coded.indices.to_pylist()]


def run(document: Mapping[str, Any]) -> Document:
    ran = [{
        **entry, "boundary": iso(entry["boundary"]),
        "seconds": round(entry["seconds"], 6)
    } for entry in document["ran"]]
    failures = [{**failure, "boundary": iso(failure["boundary"])} for failure in document["failed"]]
    return {**document, "ran": ran, "failed": failures, "next": iso(document["next"]),
            "decided": decided(document["decided"])}


def status(document: Mapping[str, Any]) -> Document:
    streams = {}
    for name, stream in document["streams"].items():
        streams[name] = {**stream, "last_row": iso(stream["last_row"]), "arrived": iso(stream["arrived"])}
    queries = {name: {**query, "boundary": iso(query["boundary"])} for name, query in document["queries"].items()}
    instants = {key: iso(document[key]) for key in ("next", "committed", "published")}
    return {**document, **instants, "streams": streams, "queries": queries, "decided": decided(document["decided"])}


def decided(document: Mapping[str, Any]) -> Document:
    """How old the decisions are."""
    return {key: value if key == "mode" else iso(value) for key, value in document.items()}


def adapted(document: Mapping[str, Any]) -> Document:
    decisions = [{**entry, "effective": iso(entry["effective"])} for entry in document["decisions"]]
    return {"statistics": looked(document["statistics"]), "decisions": decisions}


def looked(document: Mapping[str, Any]) -> Document:
    """The `statistics` of `forebay adapt`."""
    known = stats({part: document[part] for part in ("streams", "queries")})
    return {**document, **known, "next": iso(document["next"]), "since": iso(document["since"])}


def query(document: Mapping[str, Any]) -> Document:
    return {**document, "effective": iso(document["effective"]), **_repeats(document)}


def _repeats(document: Mapping[str, Any]) -> Document:
    """What a join repeats; of a query that is only shown nobody has looked."""
    return {"repeats": [{**one, "at": iso(one["at"])} for one in document["repeats"]]} if "repeats" in document else {}


def folder(document: Mapping[str, Any]) -> Document:
    """Of `forebay plan` and `apply`."""
    changes = [{**change, "effective": iso(change["effective"]), **_repeats(change)}
               for change in document["changes"]]
    return {**document, "changes": changes}


def released(document: Mapping[str, Any]) -> Document:
    return {**document, **{key: iso(document[key]) for key in ("boundary", "until", "at")}}


def plans(document: Mapping[str, Any]) -> Document:
    return {
        **document, "decisions": [{
            **d, "boundary": iso(d["boundary"]),
            "text_since": iso(d["text_since"]),
            "measured_s": round(d["measured_s"], 6)
        } for d in document["decisions"]]
    }


def explained(document: Mapping[str, Any]) -> Document:
    statistics = {**document["statistics"], "seen_at": iso(document["statistics"].get("seen_at"))}
    return {**document, "statistics": statistics, **_repeats(document)}


def stats(document: Mapping[str, Any]) -> Document:
    shown: dict[str, Any] = {}
    for part, entries in document.items():
        shown[part] = {name: {**entry, "from": iso(entry["from"])} for name, entry in entries.items()}
    return shown


def verified(document: Mapping[str, Any]) -> Document:
    queries: dict[str, Any] = {}
    for name, query in document["queries"].items():
        differences = [{**entry, "boundary": iso(entry["boundary"])} for entry in query["differences"]]
        queries[name] = {**query, "differences": differences}
    return {"queries": queries}


def tested(document: Mapping[str, Any]) -> Document:
    tests = []
    for test in document["tests"]:
        differences = []
        for entry in test["differences"]:
            told = {kind: [{name: value(raw) for name, raw in row.items()} for row in entry[kind]]
                    for kind in ("missing", "too_many")}
            differences.append({**entry, **told, "boundary": iso(entry["boundary"])})
        tests.append({**test, "differences": differences, "seconds": round(test["seconds"], 3)})
    return {"tests": tests}
