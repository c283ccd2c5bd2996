"""Relations by version: read wholly, checked, stored as one file a version.

A version is made when the content changed, and never changes.
"""
from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jobs.engine import kernel
from jobs.engine.kernel import Connection
from jobs.ingest.conversions import conversion
from jobs.ingest.reading import BYTES_A_SECOND, BrokenFile, IngestInput, open_input, refusal
from jobs.ingest.sources import clear, delta, files
from jobs.pipeline.model import Pipeline, Relation
from jobs.pipeline.schema import relation_schema
from jobs.pipeline.warehouse import Warehouse
from jobs.storage import disk, failpoints, places, tables
from jobs.storage.places import size_and_time
from jobs.storage.tables import File, Table
from optimizer.errors import ForebayError, failed
from optimizer.expression.casting import sql_type
from optimizer.expression.dialect import identifier, string

APPLICATION = "version"
METADATA = "forebay.relation"
SHOWN = 200                            # characters of a bad row in a message


class Refreshed(NamedTuple):
    """Each relation's newest version with its rows, and whether it is new; and what could not be taken: a relation
    keeps its last good version. `notes` name relations without a file.
    """

    relations: dict[str, dict[str, Any]]
    refused: list[dict[str, str]]
    notes: list[str]


@dataclass(frozen=True)
class RelationOrder:
    relation: Relation
    inputs: tuple[IngestInput, ...]
    root: str
    version: int
    digest: str
    states: list[list[Any]]


@dataclass(frozen=True)
class Stored:
    file: File | None = None
    refused: str | None = None


def refresh(pipeline: Pipeline, warehouse: Warehouse, tasks: Any) -> Refreshed:
    """Makes a new version of each relation whose content changed."""
    refused, notes = list[dict[str, str]](), list[str]()
    try:
        orders: list[RelationOrder] = []
        for relation in pipeline.relations.values():
            orders += _order_if_changed(pipeline, warehouse, relation, tasks, refused, notes)
        if orders:
            tasks.suit(sum(file.size for order in orders for file in order.inputs) / BYTES_A_SECOND)
        for order, stored in zip(orders, tasks.map(store, orders)):
            if stored.refused or stored.file is None:
                path = order.inputs[0].name if order.inputs else order.relation.source.path
                refused.append({"relation": order.relation.name, "path": path,
                                "reason": stored.refused or "nothing was stored"})
            else:
                _commit(warehouse, order, stored.file)
    finally:
        if any(relation.source.kind == "delta" for relation in pipeline.relations.values()):
            clear(pipeline)
    return Refreshed(_described(pipeline, warehouse, {order.relation.name for order in orders}), refused, notes)


def _described(pipeline: Pipeline, warehouse: Warehouse, changed: Collection[str]) -> dict[str, dict[str, Any]]:
    newest = versions(warehouse, pipeline.relations)
    described: dict[str, dict[str, Any]] = {}
    for name in pipeline.relations:
        version = newest.get(name)
        rows = None if version is None else version_file(warehouse, name, version).rows
        described[name] = {"version": version, "rows": rows, "changed": name in changed and version is not None}
    return described


def _order_if_changed(pipeline: Pipeline, warehouse: Warehouse, relation: Relation, tasks: Any,
                      refused: list[dict[str, str]], notes: list[str]) -> list[RelationOrder]:
    """None or one. A source that cannot be read is refused like a file, one without files noted, and the others go on.
    """
    try:
        if relation.source.kind == "delta":
            return _from_delta(pipeline, warehouse, relation, tasks)
        inputs = tuple(_inputs(pipeline, relation))
        if not inputs:
            notes.append(f"relation {relation.name}: no file matches {relation.source.path}")
            return []
        return _order_if_new(_table(warehouse, relation), relation, _states(inputs), lambda: inputs)
    except ForebayError as error:
        if error.exit_code != 1:
            raise
        refused.append({"relation": relation.name, "path": relation.source.path, "reason": str(error)})
        return []


def versions(warehouse: Warehouse, relations: Iterable[str]) -> dict[str, int]:
    """The newest version of each of these relations that has one."""
    stored = [name for name in relations if tables.exists(warehouse.path("relations", name))]
    newest = {name: warehouse.latest(f"relations/{name}").transaction(APPLICATION) for name in stored}
    return {name: version for name, version in newest.items() if version >= 0}


def version_file(warehouse: Warehouse, name: str, version: int) -> File:
    """The one file of a version."""
    for file in warehouse.latest(f"relations/{name}").files():
        if file.path.startswith(_prefix(version)):
            return file
    raise failed("no-version", f"relation {name} has no version {version}",
                 "it was removed; a boundary that used it cannot be recomputed")


def store(item: RelationOrder) -> Stored:
    """What a task does with a relation."""
    failpoints.at("relations.before-write")
    con = kernel.shared()
    try:
        for i, source in enumerate(item.inputs):
            _read_or_refuse(con, item.relation, source, i)
        if not item.inputs:
            nulls = [f"CAST(NULL AS {sql_type(kind, 'duckdb')}) AS {identifier(name)}"
                     for name, kind in item.relation.columns.items()]
            con.execute(f"CREATE TEMP TABLE part0 AS SELECT {', '.join(nulls)} WHERE FALSE")
        file = _write(con, item)
        if any(size_and_time(i.path) != (i.size, i.modified) for i in item.inputs):
            raise BrokenFile("it changed while it was read")
        return Stored(file)
    except (BrokenFile, OSError) as error:
        kernel.discard()
        error_of_disk = disk.explained(error)
        if error_of_disk:
            raise error_of_disk from error
        return Stored(refused=str(error))
    finally:
        con.close()


def _read_or_refuse(con: Connection, relation: Relation, source: IngestInput, index: int) -> None:
    """An error that refuses a file names it."""
    try:
        _read(con, relation, source, index)
    except (BrokenFile, OSError, kernel.Error) as error:
        if isinstance(error, kernel.EXHAUSTED) or disk.code_of(error) == "disk-full":
            raise
        raise BrokenFile(f"{source.name}: {refusal(error, source)}") from error


def _read(con: Connection, relation: Relation, source: IngestInput, index: int) -> None:
    rows = open_input(con, source, tuple(relation.columns), relation.sensitive)
    missing = [name for name in relation.columns if name not in rows.columns]
    if missing:
        raise BrokenFile(f"it has no column {missing[0]}; it has {', '.join(rows.columns)}")
    values = {}
    for name, kind in relation.columns.items():
        raw, raw_type = rows.columns[name]
        values[name] = conversion(raw_type, kind, raw)
    tests = "".join(f" WHEN {c.bad} THEN {string(f'bad type: column {name}')}" for name, c in values.items() if c.bad)
    reason = f"CASE WHEN ({rows.broken}) IS NOT NULL THEN {rows.broken}{tests} END"
    judged = f'SELECT {reason} AS reason, {rows.row} AS "row" FROM {rows.rows}'
    bad = con.execute(f'SELECT reason, "row" FROM ({judged}) WHERE reason IS NOT NULL LIMIT 1').fetchone()
    if bad is not None:
        raise BrokenFile(f"it has a bad row, {bad[0]}: {bad[1][:SHOWN]}")
    columns = ", ".join(f"{c.value} AS {identifier(name)}" for name, c in values.items())
    con.execute(f"CREATE TEMP TABLE part{index} AS SELECT {columns} FROM {rows.rows}")


def _write(con: Connection, item: RelationOrder) -> File:
    name = tables.unique(_prefix(item.version).rstrip("-"))
    select = f"SELECT *, CAST({item.version} AS BIGINT) AS _version FROM"
    rows = " UNION ALL ".join(f"{select} part{i}" for i in range(max(len(item.inputs), 1)))
    with disk.writing(item.root), places.draft(item.root) as here:
        con.execute(f"COPY ({rows}) TO {string(places.join(here, name))} (FORMAT parquet, COMPRESSION snappy)")
        return tables.describe(here, name)


def _prefix(version: int) -> str:
    return f"version-{version}-"


def _from_delta(pipeline: Pipeline, warehouse: Warehouse, relation: Relation, tasks: Any) -> list[RelationOrder]:
    """A table without rows is a version without rows.

    What Spark is to read is known by its version, so that it is read when there is a new one.
    """
    source = tables.open_table(relation.source.path)
    if delta.by_spark(source):
        states: list[list[Any]] = [[relation.source.path, source.version]]
        parts = [(source.version, None)]
        return _order_if_new(_table(warehouse, relation), relation, states,
                             lambda: tuple(delta.staged(pipeline, relation.name, tasks, source, parts)))
    inputs = tuple(delta.snapshot(pipeline, relation.source.path))
    return _order_if_new(_table(warehouse, relation), relation, _states(inputs), lambda: inputs)


def _order_if_new(table: Table, relation: Relation, states: list[list[Any]],
                  read_inputs: Callable[[], tuple[IngestInput, ...]]) -> list[RelationOrder]:
    """Nothing where the last version was made of inputs in these states, or of the same contents."""
    of_versions = [json.loads(str(entry[METADATA])) for entry in table.history(20) if METADATA in entry]
    of_last_version = of_versions[0] if of_versions else {}
    if of_last_version.get("states") == states:
        return []
    inputs = read_inputs()
    digest = _digest(inputs)
    if of_last_version.get("digest") == digest:
        return []
    return [RelationOrder(relation, inputs, table.path, table.transaction(APPLICATION) + 1, digest, states)]


def _states(inputs: Sequence[IngestInput]) -> list[list[Any]]:
    return [[i.name, i.size, i.modified] for i in inputs]


def _table(warehouse: Warehouse, relation: Relation) -> Table:
    declared = relation_schema(relation.columns)
    table = warehouse.latest(f"relations/{relation.name}", declared)
    if [(column.name, column.type) for column in table.schema] != [(column.name, column.type) for column in declared]:
        raise ForebayError("columns-changed", f"the columns of {relation.name} are not those of its table",
                           hint="declare them as they were, or give the relation with the new columns another name")
    return table


def _inputs(pipeline: Pipeline, relation: Relation) -> Sequence[IngestInput]:
    forced = relation.source.kind if relation.source.kind in ("json", "csv") else None
    paths, options = files.matching(relation.source.path, pipeline.folder), relation.source.options
    return [IngestInput("files", files.label(pipeline, path), path, forced or files.format_of(path),
                        *size_and_time(path), options=options)
            for path in paths]


def _digest(inputs: Sequence[IngestInput]) -> str:
    """Of the contents in their order; names and times do not count."""
    whole = hashlib.blake2b(digest_size=16)
    for source in inputs:
        with places.opened(source.path) as file:
            content = hashlib.file_digest(file, hashlib.blake2b).digest()
        whole.update(content + repr(sorted(source.constants.items())).encode())
    return whole.hexdigest()


def _commit(warehouse: Warehouse, item: RelationOrder, file: File) -> None:
    table = _table(warehouse, item.relation)
    metadata = json.dumps({"digest": item.digest, "states": item.states})
    failpoints.at("relations.before-commit")
    table.commit([file], (), (APPLICATION, item.version), {METADATA: metadata})
    failpoints.at("relations.after-commit")
