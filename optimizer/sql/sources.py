"""FROM as inputs: each entry's stream or relation, window and alias, and the conditions of JOIN … ON and USING.

What is asked is read elsewhere.
"""
from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from optimizer.errors import ForebayError, suggestion
from optimizer.query.model import Catalog, Input
from optimizer.query.windows import Window
from optimizer.sql.azure import envelope
from optimizer.sql.text import Lifted, Source, located
from optimizer.sql.tree import described, extras, offset
from optimizer.sql.windows import window

MOST_INPUTS = 32


@dataclass(frozen=True)
class From:
    """`conditions` are ON's, `using` (input number, column names) of JOIN … USING, `starts` where each input stands in
    the text.
    """

    inputs: tuple[Input, ...]
    conditions: tuple[exp.Expr, ...]
    using: tuple[tuple[int, tuple[exp.Expr, ...]], ...]
    starts: tuple[int, ...]


@dataclass(frozen=True)
class FromEntry:
    name: str
    alias: str
    start: int
    ends: tuple[int, ...]


def inputs(select: exp.Select, source: Source, catalog: Catalog) -> From:
    """The inputs in FROM order."""
    clause = select.args.get("from_")
    if clause is None:
        raise ForebayError("no-stream", "the query reads no stream", hint="write SELECT … FROM stream [WINDOW 1 HOUR]")
    joins = select.args.get("joins") or []
    if len(joins) >= MOST_INPUTS:
        raise source.error("too-many-inputs",
                           f"a query joins at most {MOST_INPUTS} inputs, this one has {len(joins) + 1}",
                           offset(joins[MOST_INPUTS - 1]))
    entries = [entry_of(node.this, source) for node in (clause, *joins)]
    _distinct(entries, source)
    windows = owners(entries, source, source.windows)
    stamps = owners(entries, source, source.stamps, "TIMESTAMP BY")
    all_inputs = tuple(declared_input(entry, windows[i], source, catalog) for i, entry in enumerate(entries))
    for i, stamp in stamps.items():
        _check_stamp(stamp, all_inputs[i], source)
    if not any(i.is_stream for i in all_inputs):
        raise source.error("no-stream", "the query reads no stream, only relations", entries[0].start,
                           f"streams are {', '.join(s[0] for s in catalog.streams)}")
    for join in joins:
        _check_join(join, source)
    conditions = tuple(j.args["on"] for j in joins if j.args.get("on"))
    using = tuple((i, tuple(j.args["using"])) for i, j in enumerate(joins, 1) if j.args.get("using"))
    return From(all_inputs, conditions, using, tuple(e.start for e in entries))


def entry_of(node: exp.Expr, source: Source) -> FromEntry:
    if not isinstance(node, exp.Table):
        what = "subqueries are" if isinstance(node, (exp.Subquery, exp.Select)) else f"{described(node)} is"
        raise source.error("not-supported", f"{what} not accepted in FROM", offset(node),
                           "FROM lists streams and relations")
    if node.args.get("db"):
        formats = ("parquet", "csv", "json", "orc", "text", "delta", "avro", "binaryfile")
        quoted = node.this.args.get("quoted") and node.text("db").lower() in formats
        what = "tables by path are" if quoted else f"the qualified name {node.text('db')}.{node.name} is"
        raise source.error("not-supported", f"{what} not accepted", offset(node),
                           "FROM lists streams and relations of the pipeline by their names")
    if not isinstance(node.this, exp.Identifier):
        raise source.error("not-supported", "table functions are not accepted in FROM", offset(node),
                           "FROM lists streams and relations")
    alias = node.args.get("alias")
    if more := extras(node, ("this", "alias")) or (extras(alias, ("this",)) if alias else []):
        raise source.error("not-supported", f"{', '.join(more).upper()} is not accepted after {node.name}",
                           offset(node))
    marks = [node.this, *([alias.this] if alias else [])]
    return FromEntry(node.name, alias.name if alias else node.name, int(node.this.meta["start"]),
                     tuple(int(m.meta["end"]) + 1 for m in marks))


def _distinct(entries: list[FromEntry], source: Source) -> None:
    aliases: set[str] = set()
    for entry in entries:
        if entry.alias.lower() in aliases:
            raise source.error("ambiguous-input", f"{entry.alias} stands twice in FROM", entry.start,
                               "give each an alias: stream AS a [WINDOW …], stream AS b [WINDOW …]")
        aliases.add(entry.alias.lower())


def _check_stamp(stamp: Lifted | None, declared: Input, source: Source) -> None:
    """TIMESTAMP BY names the stream's own event time: it is the pipeline's to say."""
    if stamp is None:
        return
    if declared.event_time is None:
        raise source.error("wrong-event-time", f"{declared.source} is no stream and has no event time", stamp.start,
                           "leave TIMESTAMP BY out")
    if stamp.content.strip("`").rpartition(".")[2].strip().lower() != declared.event_time.lower():
        event_time = declared.event_time
        raise source.error(
            "wrong-event-time", f"the event time of {declared.source} is {event_time}, not {stamp.content}",
            stamp.start, f"write TIMESTAMP BY {event_time}, or leave it out; forebay.yml says which column it is")


def owners(entries: list[FromEntry], source: Source, parts: tuple[Lifted, ...],
           what: str = "a window") -> dict[int, Lifted | None]:
    """Which entry each window (or TIMESTAMP BY) belongs to: the one whose name or alias it directly follows."""
    owners: dict[int, Lifted | None] = dict.fromkeys(range(len(entries)))
    for lifted in parts:
        before = [i for i, e in enumerate(entries) if e.start < lifted.start]
        owner = max(before, key=lambda i: entries[i].start, default=None)
        ends = [e for e in entries[owner].ends if e <= lifted.start] if owner is not None else []
        if owner is None or not ends or source.plain[max(ends):lifted.start].strip():
            raise source.error("bad-window", f"{what} stands directly after a stream or its alias in FROM",
                               lifted.start, "for instance FROM views AS v [WINDOW 1 HOUR]")
        if owners[owner] is not None:
            raise source.error("bad-window", f"{entries[owner].alias} has {what} twice", lifted.start,
                               "read the stream twice, under two aliases")
        owners[owner] = lifted
    return owners


def declared_input(entry: FromEntry, lifted: Lifted | None, source: Source, catalog: Catalog) -> Input:
    for name, event_time, columns in catalog.streams:
        if name.lower() == entry.name.lower():
            return Input(entry.alias, name, _window(entry, lifted, source, catalog.batch), event_time, columns)
    for name, columns in catalog.relations:
        if name.lower() == entry.name.lower():
            if lifted is not None:
                raise source.error("window-on-relation", f"{name} is a relation and takes no window", lifted.start,
                                   "leave the window out: all rows of a relation count")
            return Input(entry.alias, name, None, None, columns)
    names = [s[0] for s in catalog.streams] + [r[0] for r in catalog.relations]
    raise source.error("unknown-input", f"no stream or relation is called {entry.name}", entry.start,
                       suggestion(entry.name, names) or f"there are {', '.join(names) or 'none yet'}")


def _window(entry: FromEntry, lifted: Lifted | None, source: Source, batch: int) -> Window:
    if source.set:
        if lifted is not None:
            raise source.error("bad-window", f"{entry.name} has a window, and Windows(…) gives the query several",
                               lifted.start, "use one of the two forms")
        return envelope(source, batch)
    if lifted is None:
        raise source.error("no-window", f"stream {entry.name} needs a window", entry.start,
                           f"write {entry.name} [WINDOW 1 HOUR], or [WINDOW UNTIL NOW] for all history")
    try:
        return window(lifted.content, batch)
    except ForebayError as error:
        raise located(source.original, error, lifted.start) from None


def _check_join(join: exp.Expr, source: Source) -> None:
    """A comma or [INNER] JOIN with ON or USING.

    Others would need rows that have no partner, or have none to hang on.
    """
    start = int(join.this.this.meta["start"])
    comma = source.plain[:start].rstrip().endswith(",")
    kind = " ".join(str(join.args[k]).upper() for k in ("method", "side", "kind") if join.args.get(k))
    if more := extras(join, ("this", "on", "using", "method", "side", "kind")):
        raise source.error("not-supported", f"a join with {', '.join(more).upper()} is not accepted", start)
    if comma or kind in ("", "INNER"):
        return
    reasons = {
        "CROSS": "a cross product has no bound",
        "NATURAL": "a join by equal names changes when a column is added"
    }
    reason = reasons.get(
        kind,
        "its answer also depends on rows without a partner" if "INNER" not in kind else "its columns are not named")
    raise source.error("not-supported", f"{kind} JOIN is not accepted: {reason}", start, "use JOIN … ON")
