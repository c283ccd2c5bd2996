"""Whether the tables that people read are as Forebay left them: no commit is gone or torn, and nobody else changed
rows; it looks at logs and reads no row.

Three things tell: the ledger's newest entry names the version of each table that it rests on, each commit of ours
carries its own version, and the ledger of files knows the number of each stream's last ingest. State is looked at where
a batch takes it up (see jobs.run).
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jobs.ingest import register as intake
from jobs.ledger import published
from jobs.ledger.addresses import PRIVATE
from jobs.ledger.entries import Batch, KeptState
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import address_of, queries_at
from jobs.storage import delta_log, places, tables
from jobs.storage.tables import Table
from optimizer.errors import ForebayError, failed

KINDS = ("streams", "quarantine", "results", "latest", "shared", "relations", "ledger")


@dataclass(frozen=True)
class Damage:
    """What is wrong with a table. Example: `Damage("results/pages", "commit 7 of its log is empty")`."""

    path: str
    what: str
    outside: bool = False      # somebody else's commit, not a loss

    def error(self, warehouse: str, queries: Iterable[str] = ()) -> ForebayError:
        code = "changed-outside" if self.outside else "damaged-table"
        return failed(code, f"{places.join(warehouse, self.path)}: {self.what}", self.remedy(queries))

    def remedy(self, queries: Iterable[str] = ()) -> str:
        """What to do; `queries` are those whose answers are in the table."""
        if self.path.startswith("results/"):
            names = sorted(queries) or ["NAME"]
            commands = "; ".join(f"`forebay doctor --rebuild {name}`" for name in names[:3])
            return f"{commands} makes the answers anew from the stream tables"
        if self.outside:
            return ("rows come into a stream by `forebay ingest` alone: undo that commit (Delta's RESTORE to the "
                    "version before it does), then run again; "
                    "what changes no rows, such as OPTIMIZE, comments and properties, is accepted")
        return ("`forebay doctor` looks at every table; rows that are gone have to be restored from a copy of the "
                "warehouse")


def state_damage(table: Table, batch: int) -> str | None:
    """What is wrong with a table of a query's state, as `is not as batch 7 left it`.

    None if nothing has changed it since.
    """
    if table.foreign:
        return "has a commit that is not Forebay's"
    return None if table.transaction("batch") == batch else f"is not as batch {batch} left it"


def relied_versions(pipe: OpenPipeline) -> dict[str, int]:
    """By path: the versions of tables that batches, or published answers, rest on."""
    versions = published.relied(pipe.warehouse)
    for path, version in pipe.ledger.relied().items():
        versions[path] = max(version, versions.get(path, -1))
    return versions


def damage(pipe: OpenPipeline, path: str, relied_by_path: Mapping[str, int] | None = None) -> Damage | None:
    """What is wrong with one table, given by its path under the warehouse; None if it is sound, or was never made.

    `relied_by_path`: as `relied_versions` says, for who asks about many.
    """
    root = pipe.path(path)
    relied = (relied_by_path if relied_by_path is not None else relied_versions(pipe)).get(path, -1)
    if not tables.exists(root):
        return Damage(path, f"it is gone, and version {relied} of it was relied on") if relied >= 0 else None
    if not isinstance(root, places.Remote):
        # No commit since the ledger's newest entry: the usual case, for which no table is opened, and no log listed.
        if delta_log.ends_with(root, relied):
            return _lost_ingest(pipe, path)
        torn = [version for version in delta_log.torn(root) if version <= relied]
        if torn:
            return Damage(path, f"commit {torn[0]} of its log is empty or cut off, as a power cut leaves it")
    try:
        table = pipe.warehouse.latest(path)
    except ForebayError as error:
        return Damage(path, error.message.removeprefix(f"{root} "))
    last = pipe.ledger.last()
    if path.startswith("results/") and table.transaction("batch") > (last.batch.number if last else -1):
        return Damage("ledger/batches",
                      f"it does not know batch {table.transaction('batch')}, which {path} has: a commit of it is gone")
    if table.version < relied:
        return Damage(path, f"its log ends with version {table.version}, and version {relied} was relied on: "
                            "commits are gone")
    changed = changed_outside(path, table, relied)
    if changed is not None:
        return changed
    if path.startswith("relations/") and table.written_outside():
        return Damage(path, "somebody else has put other files in the place of Forebay's, which are one a version",
                      outside=True)
    return _lost_ingest(pipe, path)


def changed_outside(path: str, table: Table, relied: int = -1) -> Damage | None:
    """Somebody else's commit to a table that changes rows; one that a power cut has torn counts if it is relied on."""
    commit = table.changed_outside()
    if commit is None or commit.torn and commit.version > relied:
        return None
    return Damage(path, f"commit {commit.version} ({commit.operation}) is not Forebay's and changes rows",
                  outside=not commit.torn)


def _lost_ingest(pipe: OpenPipeline, path: str) -> Damage | None:
    """A stream whose last ingest is known to the ledger of files, but not to its table."""
    kind, _, name = path.partition("/")
    if kind != "streams" or name not in pipe.pipeline.streams:
        return None
    stream, files = pipe.warehouse.latest(path), intake.files_table(pipe.warehouse)
    last_in_ledger = files.transaction(intake.application(name))
    last_in_table = stream.transaction(intake.INGEST)
    if last_in_table >= last_in_ledger:
        return None
    return Damage(path, f"it knows {last_in_table + 1} ingests of the {last_in_ledger + 1} in ledger/files: "
                        "a commit of it is gone")


def check(pipe: OpenPipeline, paths: Iterable[str]) -> None:
    """Refuses to go on where one of these tables is not as Forebay left it."""
    relied, forgotten = relied_versions(pipe), _forgotten(pipe)
    if forgotten is not None:
        raise forgotten.error(pipe.pipeline.warehouse)
    for path in paths:
        wrong = damage(pipe, path, relied)
        if wrong is not None:
            raise wrong.error(pipe.pipeline.warehouse, queries_in(pipe, path))


def _forgotten(pipe: OpenPipeline) -> Damage | None:
    """Boundaries that are published, and of which the ledger of batches does not know that they were committed."""
    upto, last = published.upto(pipe.warehouse), pipe.ledger.last()
    if upto is None:
        return None
    if last is None or upto > last.last_boundary or last.is_open and upto >= last.batch.boundaries[0]:
        return Damage("ledger/batches", f"it does not know batch {published.last_batch(pipe.warehouse)}, of which "
                                        f"{published.PATH} has answers: a commit of it is gone")
    return None


def checked_paths(pipe: OpenPipeline) -> list[str]:
    """What a run rests on: streams, relations, and the answers of queries that were not deleted."""
    streams = [f"streams/{name}" for name in pipe.pipeline.streams]
    inputs = streams + [f"relations/{name}" for name in pipe.pipeline.relations]
    queries = [s for s in queries_at(pipe.ledger.all_changes()).values() if s.status != "deleted"]
    results = [query_state.address for query_state in queries]
    if isinstance(pipe.pipeline.warehouse, places.Remote):
        # In a store a look at a log means opening the table, a tenth of a second each: there those that are open are
        # looked at, the others when they are read.
        results = [path for path in results if pipe.warehouse.is_open(path)]
    return list(dict.fromkeys([*inputs, *results]))


def queries_in(pipe: OpenPipeline, path: str) -> list[str]:
    """The names of the queries whose answers a result table holds."""
    return sorted(name for name, s in queries_at(pipe.ledger.all_changes()).items()
                  if s.status != "deleted" and path == s.address)


def mend_ends(pipe: OpenPipeline) -> list[str]:
    """After a power cut: takes torn commits that nothing relies on off the ends of all logs; gives the tables' paths.

    Only a process that holds the pipeline may do this.
    """
    if isinstance(pipe.pipeline.warehouse, places.Remote):
        return []
    relied = relied_versions(pipe)
    public = [f"{kind}/{name}" for kind in KINDS for name in places.listed(pipe.path(kind))]
    state = [f"state/{query}" for query in places.listed(pipe.path("state"))]
    epochs = [f"{path}/{epoch}" for path in state for epoch in places.listed(pipe.path(path))]
    sets = [f"{path}/{state_set}" for path in epochs for state_set in places.listed(pipe.path(path))]
    mended = [path for path in (*public, *sets) if delta_log.mend_end(pipe.path(path), relied.get(path, -1))]
    if mended:
        pipe.warehouse.refresh()
    return mended


def state_paths(pipe: OpenPipeline, name: str, state: KeptState) -> list[str]:
    folder = pipe.path("state", name, str(state.epoch))
    return [f"state/{name}/{state.epoch}/{state_set}" for state_set in places.listed(folder)]


def sound_state(pipe: OpenPipeline, name: str, state: KeptState) -> dict[str, int]:
    """The versions of the tables of a query's state, by path; refused where one is not as the last batch left it."""
    return {path: _sound_version(pipe, path, name, state) for path in state_paths(pipe, name, state)}


def _sound_version(pipe: OpenPipeline, path: str, name: str, state: KeptState) -> int:
    """The version of a state table, if it is as the last batch left it."""
    table = pipe.table(path)
    damage = state_damage(table, state.batch)
    if damage:
        raise failed("damaged-state", f"the state of query {name!r} is damaged: {table.path} {damage}",
                     f"`forebay doctor --rebuild {name}` makes it anew from the stream tables")
    return table.version


def is_in_a_table(pipe: OpenPipeline, batch: Batch) -> bool:
    """Whether something of a batch that broke off was stored: state, or answers."""
    state = [f"state/{name}/{epoch}/{state_set}" for name in batch.plans
             for epoch in places.listed(pipe.path("state", name))
             for state_set in places.listed(pipe.path("state", name, epoch))]
    private = [f"{PRIVATE}/{name}" for name in places.listed(pipe.path(PRIVATE))]
    stored = [path for path in (*state, *private, *map(address_of, batch.plans)) if tables.exists(pipe.path(path))]
    return any(pipe.warehouse.latest(path).transaction("batch") >= batch.number for path in stored)
