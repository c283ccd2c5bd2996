"""What to say of a run that broke off, and how state that is damaged is made anew.

Answers, ledger and rows are never changed here.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jobs.engine import kernel, memory, spark
from jobs.ledger.entries import KeptState
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.maintenance.integrity import state_damage
from jobs.storage import places, tables
from jobs.storage.lock import held
from jobs.storage.tables import Conflict
from optimizer.errors import ForebayError, failed, first_line

BROKEN = (kernel.Error, OSError, tables.Broken, spark.SparkFailure)


def explained(pipe: OpenPipeline, error: BaseException) -> ForebayError:
    """A broken disk, table, engine or cluster, as an error that says what to do.

    Whatever it was, the next run goes on from the last commit.
    """
    text = first_line(error)[:500]
    if _overtaken(pipe):
        return Conflict(f"another process has run this pipeline's batch in the meantime ({text})")
    error_of_place = places.explained(pipe.pipeline.warehouse, error)
    if error_of_place:
        return error_of_place
    if isinstance(error, kernel.EXHAUSTED):
        return failed("out-of-memory", f"a statement does not fit into the memory that an engine may take: {text}",
                      memory.MORE)
    is_about_files = any(sign in text for sign in ("parquet", "Parquet", "No files found"))
    if isinstance(error, spark.SparkFailure) and not is_about_files:
        return failed("spark-failed", f"Spark gave up: {text}",
                      "run again: the batch is repeated with the same rows; `forebay doctor` checks Spark")
    _, state, path_in_it = text.partition(places.join(pipe.pipeline.warehouse, "state", ""))
    if state:
        query = path_in_it.split("/")[0]
        return failed("damaged-state", f"the state of query {query!r} is damaged: {text}",
                      f"`forebay doctor --rebuild {query}` makes it anew from the stream tables")
    return failed("damaged-table", f"a table cannot be read or written: {text}",
                  "`forebay doctor` checks every table; rows, results and the ledger have to be restored from a copy")


@contextmanager
def explaining(pipe: OpenPipeline) -> Iterator[None]:
    """What breaks in here is explained."""
    try:
        yield
    except BROKEN as error:
        raise explained(pipe, error) from error


def rebuild(pipe: OpenPipeline, query: str) -> bool:
    """Lets go of the query's state: its next batch begins anew from the stream tables. False if it has none."""
    with held(pipe.pipeline.warehouse):
        last = pipe.ledger.last()
        if last is None or query not in last.states:
            return False
        pipe.ledger.let_go(query)
        return True


def damaged(pipe: OpenPipeline) -> list[tuple[str, str]]:
    """(query, what is wrong) of each query whose state cannot be read: what `rebuild` mends."""
    last = pipe.ledger.last()
    states = last.states if last else {}
    damage_by_query = [(query, _damage(pipe, query, state)) for query, state in states.items()]
    return [(query, damage) for query, damage in damage_by_query if damage]


def _damage(pipe: OpenPipeline, query: str, state: KeptState) -> str | None:
    folder = places.join(pipe.pipeline.warehouse, "state", query, str(state.epoch))
    for name in places.listed(folder):
        try:
            table = tables.open_table(places.join(folder, name))
            damage = state_damage(table, state.batch)
            if damage:
                return f"{table.path} {damage}"
            for file in table.files():
                tables.describe(table.path, file.path)
        except (ForebayError, *BROKEN) as error:
            return first_line(error)[:500]
    return None


def _overtaken(pipe: OpenPipeline) -> bool:
    """Whether another process entered something since this one's last entry."""
    try:
        before = pipe.ledger.position
        pipe.ledger.last()
        return pipe.ledger.position != before
    except (ForebayError, *BROKEN):
        return False
