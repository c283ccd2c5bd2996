"""Declared types as Arrow knows them, and the columns of the tables that ingest writes.

Names and types only, no data.
"""
from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from optimizer.expression.types import Type

INSTANT = pa.timestamp("us", "UTC")
ARROW = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": INSTANT
}
QUARANTINE = pa.schema([("_reason", pa.string()), ("_row", pa.string()), ("_source", pa.string()),
                        ("_ingest", pa.int64()), ("_at", INSTANT)])
FILES = pa.schema([("stream", pa.string()), ("kind", pa.string()), ("path", pa.string()), ("size", pa.int64()),
                   ("modified", pa.int64()), ("digest", pa.string()), ("rows", pa.int64()), ("late", pa.int64()),
                   ("quarantined", pa.int64()), ("ingest", pa.int64()), ("first_boundary", INSTANT),
                   ("last_boundary", INSTANT), ("first_event", INSTANT), ("last_event", INSTANT), ("at", INSTANT)])


def arrow(kind: Type) -> pa.DataType:
    return pa.decimal128(kind.precision, kind.scale) if kind.name == "decimal" else ARROW[kind.name]


def stream_schema(columns: Mapping[str, Type]) -> pa.Schema:
    """The declared columns, the boundary that first counts the row, and where it came from."""
    declared = [(name, arrow(kind)) for name, kind in columns.items()]
    return pa.schema([*declared, ("_boundary", INSTANT), ("_source", pa.string()), ("_ingest", pa.int64())])


def relation_schema(columns: Mapping[str, Type]) -> pa.Schema:
    return pa.schema([*((name, arrow(kind)) for name, kind in columns.items()), ("_version", pa.int64())])
