"""How long rows, results and refused rows stay: what no boundary to come can need and is older than `keep` leaves, in
whole files; answers do not change.

Runs between batches under the pipeline's lock, after a commit. A table loses its files in one Delta version, which says
under the name `keep` up to where rows may be gone, so a crash changes nothing and a reader can tell. The files leave
the disk later (see jobs.maintenance.compact.sweep).
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobs.batch.shared import table_of
from jobs.batch.works import parsed
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryState, queries_at
from jobs.maintenance import compact
from jobs.maintenance.compact import KEEP
from jobs.pipeline.model import Pipeline
from jobs.storage import failpoints, places, tables
from jobs.storage.tables import File
from optimizer.errors import ForebayError
from optimizer.query.model import Query
from optimizer.query.windows import ALWAYS, Window


def horizons(pipe: OpenPipeline) -> dict[str, int]:
    """By table: everything before this time need not stay.

    A row stays until the answers that counted it leave, so that these can be verified.
    """
    last = pipe.ledger.last()
    if last is None or last.is_open or all(s.keep is None for s in pipe.pipeline.streams.values()):
        return {}
    upto, told = last.last_boundary, pipe.ledger.all_changes()
    # `running` and `retract` subtract what was in their windows then
    base = min([upto, *(s.as_of for s in last.states.values())])
    queries = [
        parsed(s.sql, pipe.catalog) for when in (upto, None) for s in queries_at(told, when).values() if s.is_active
    ]
    kept = {n: s.keep for n, s in pipe.pipeline.streams.items() if s.keep is not None}
    streams = {
        f"streams/{n}": base - keep - max((reach(pipe.pipeline, q, n)
                                           for q in queries), default=0)
        for n, keep in kept.items()
    }
    results = {s.table: upto - keep for s in queries_at(told).values() if (keep := _longest(pipe, s)) is not None}
    together = {path: upto - keep for path, keep in _together(pipe, queries_at(told).values()).items()}
    return streams | {f"quarantine/{n}": pipe.clock() - keep for n, keep in kept.items()} | results | together


def _together(pipe: OpenPipeline, known: Iterable[QueryState]) -> dict[str, int]:
    """Shared tables: how long the rows of the query stay that keeps them longest.

    Those of which some stay for ever are not among them.
    """
    found: dict[str, list[int | None]] = {}
    for query_state in known:
        found.setdefault(table_of(query_state.columns), []).append(_longest(pipe, query_state))
    return {path: max(k for k in keeps if k is not None) for path, keeps in found.items() if None not in keeps}


def leave(pipe: OpenPipeline, until: Mapping[str, int]) -> None:
    """Takes out of the tables the files that need not stay."""
    for path, horizon in until.items():
        kind, _, name = path.partition("/")
        if horizon <= 0 or not tables.exists(places.join(pipe.pipeline.warehouse, path)):
            continue
        files = pipe.table(path).refresh().files()
        if kind == "results":
            gone = _older(files, horizon)
            _take_out(pipe, path, gone, 1 + max((f.high["boundary"] for f in gone), default=0))
        else:
            column = pipe.pipeline.streams[name].event_time if kind == "streams" else "_at"
            _take_out(pipe, path, [f for f in files if f.high.get(column, horizon) < horizon], horizon)


def reach(pipeline: Pipeline, query: Query, stream: str) -> int:
    """How far before a boundary a row of the stream can matter at it.

    To a row query also one that meets a late row, at an instant long past.
    """
    late = max(pipeline.streams[i.source].lateness for i in query.inputs if i.is_stream) if query.returns_rows else 0
    return max((_back(i.window) + late for i in query.inputs if i.source == stream and i.window is not None), default=0)


def _back(window: Window) -> int:
    return ALWAYS if window.kind == "landmark" else window.range + window.slide


def since(pipe: OpenPipeline, path: str) -> int | None:
    """Up to where rows may have left this table; None: all are there."""
    if not tables.exists(places.join(pipe.pipeline.warehouse, path)):
        return None
    number = pipe.table(path).refresh().transaction(KEEP)
    return None if number < 0 else number


def gone(pipe: OpenPipeline, query_state: QueryState) -> int | None:
    """Up to where answers of the query may have left, from its own table or from one it shared."""
    return max(
        (at for path in (query_state.table, table_of(query_state.columns)) if (at := since(pipe, path)) is not None),
        default=None)


def unsure(pipe: OpenPipeline, query: Query, boundaries: list[int]) -> int:
    """How many of the boundaries, from the first on, cannot be recomputed, since rows that they counted may have left.
    """
    gone = {i.source: since(pipe, f"streams/{i.source}") for i in query.inputs if i.is_stream}
    left = {stream: at for stream, at in gone.items() if at is not None}
    if not left or not boundaries:
        return 0
    # a row query's first answer holds all of history, a later one what is new since the one before
    begin = 1 if query.returns_rows else 0
    needed = [min(t - reach(pipe.pipeline, query, s) - at for s, at in left.items()) for t in boundaries]
    return next((k + begin for k, spare in enumerate(needed) if spare >= 0 and k + begin < len(boundaries)),
                len(boundaries))


def _longest(pipe: OpenPipeline, query_state: QueryState) -> int | None:
    """Results stay as long as the rows of the stream that keeps longest."""
    try:
        lengths = [
            pipe.pipeline.streams[i.source].keep for i in parsed(query_state.sql, pipe.catalog).inputs if i.is_stream
        ]
    except ForebayError:      # an ended query may read what forebay.yml does not declare any more
        return None
    return None if None in lengths else max(length for length in lengths if length is not None)


def _older(files: Iterable[File], horizon: int) -> list[File]:
    """The files of which no boundary is also in a file that stays: a boundary leaves whole."""
    stays = [f for f in files if f.high.get("boundary", horizon) >= horizon]
    lowest = min((f.low.get("boundary", 0) for f in stays), default=horizon)
    return [f for f in files
            if f.high.get("boundary", horizon) < horizon] if lowest >= horizon else _older(files, lowest)


def _take_out(pipe: OpenPipeline, path: str, gone: list[File], horizon: int) -> None:
    if gone:
        failpoints.at("keep.before")
        table = pipe.table(path)
        table.commit((), [f.path for f in gone], compact.gone_until(table, horizon), {"forebay.keep": str(len(gone))})
        failpoints.at("keep.after")
        compact.note(pipe, path, len(gone), 0)
