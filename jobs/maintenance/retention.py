"""How long rows, results and refused rows stay: what no boundary to come can need and is older than `keep` leaves, in
whole files; answers do not change.

Runs between batches under the pipeline's lock, after a commit. A table loses its files in one Delta version, which says
under the name `keep` up to where rows may be gone, so a crash changes nothing and a reader can tell. The files leave
the disk later (see jobs.maintenance.compact.sweep).
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping

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
from optimizer.query.windows import ALWAYS


def horizons(pipe: OpenPipeline) -> dict[str, int]:
    """By table: everything before this time need not stay.

    A row stays until the answers that counted it leave, so that these can be verified.
    """
    last = pipe.ledger.last()
    keep_by_stream = {name: s.keep for name, s in pipe.pipeline.streams.items() if s.keep is not None}
    if last is None or last.is_open or not keep_by_stream:
        return {}
    upto, changes = last.last_boundary, pipe.ledger.all_changes()
    query_states = queries_at(changes).values()
    in_force = [s for s in (*queries_at(changes, upto).values(), *query_states) if s.is_active]
    queries = [parsed(query_state.sql, pipe.catalog) for query_state in in_force]
    # `running` and `retract` subtract what was in their windows then
    base = min([upto, *(state.as_of for state in last.states.values())])
    horizon_by_table = {}
    for stream, keep in keep_by_stream.items():
        longest_reach = max((reach(pipe.pipeline, query, stream) for query in queries), default=0)
        horizon_by_table[f"streams/{stream}"] = base - keep - longest_reach
    for stream, keep in keep_by_stream.items():
        horizon_by_table[f"quarantine/{stream}"] = pipe.clock() - keep
    for query_state in query_states:
        longest = _longest_keep(pipe, query_state)
        if longest is not None:
            horizon_by_table[query_state.address] = upto - longest
    return horizon_by_table


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
    windows = [i.window for i in query.inputs if i.source == stream and i.window is not None]
    reaches = [ALWAYS if window.kind == "landmark" else window.range + window.slide for window in windows]
    return max(reaches) + late if reaches else 0


def since(pipe: OpenPipeline, path: str) -> int | None:
    """Up to where rows may have left this table; None: all are there."""
    if not tables.exists(places.join(pipe.pipeline.warehouse, path)):
        return None
    number = pipe.table(path).refresh().transaction(KEEP)
    return None if number < 0 else number


def gone(pipe: OpenPipeline, query_state: QueryState) -> int | None:
    """Up to where answers of the query may have left; None: all are there."""
    return since(pipe, query_state.address)


def unsure(pipe: OpenPipeline, query: Query, boundaries: list[int]) -> int:
    """How many of the boundaries, from the first on, cannot be recomputed, since rows that they counted may have left.
    """
    streams = {i.source for i in query.inputs if i.is_stream}
    gone_by_stream = {stream: since(pipe, f"streams/{stream}") for stream in streams}
    first_sound = [at + reach(pipe.pipeline, query, stream) for stream, at in gone_by_stream.items() if at is not None]
    if not first_sound or not boundaries:
        return 0
    # a row query's first answer holds all of history, a later one what is new since the one before
    begin = 1 if query.returns_rows else 0
    for k, t in enumerate(boundaries[:len(boundaries) - begin]):
        if t >= max(first_sound):
            return k + begin
    return len(boundaries)


def _longest_keep(pipe: OpenPipeline, query_state: QueryState) -> int | None:
    """Results stay as long as the rows of the stream that keeps longest; None: for ever."""
    try:
        inputs = parsed(query_state.sql, pipe.catalog).inputs
        keeps = [pipe.pipeline.streams[i.source].keep for i in inputs if i.is_stream]
    except ForebayError:      # an ended query may read what forebay.yml does not declare any more
        return None
    return None if None in keeps else max(keep for keep in keeps if keep is not None)


def _older(files: Iterable[File], horizon: int) -> list[File]:
    """The files of which no boundary is also in a file that stays: a boundary leaves whole."""
    staying = [file for file in files if file.high.get("boundary", horizon) >= horizon]
    lowest = min((file.low.get("boundary", 0) for file in staying), default=horizon)
    if lowest < horizon:
        return _older(files, lowest)
    return [file for file in files if file.high.get("boundary", horizon) < horizon]


def _take_out(pipe: OpenPipeline, path: str, leaving: list[File], horizon: int) -> None:
    if leaving:
        failpoints.at("keep.before")
        table = pipe.table(path)
        names = [file.path for file in leaving]
        table.commit((), names, compact.gone_until(table, horizon), {"forebay.keep": str(len(names))},
                     changes_data=False)
        failpoints.at("keep.after")
        compact.note(pipe, path, len(names), 0)
