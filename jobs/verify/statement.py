"""The statement that recomputes one answer, for DuckDB and for Spark: the window's plain condition on event time around
the user's SQL.

It runs nothing.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping

from jobs.verify.sql import MARK, Plain, Source, Table, quoted, spark_text
from jobs.verify.types import kind_of

FOR_EVER = 2**62
MAGNITUDE = "_magnitude"      # Σ|x| of each output of a row, beside the expected answer
Window = tuple[str, int, int]


def bounds(window: Window, t: int) -> tuple[int, int]:
    """The window at t: event times from the first up to, and without, the second."""
    kind, length, slide = window
    if kind == "tumbling":
        return (t - 1) // length * length, t
    if kind == "hopping":
        return t // slide * slide - length, t // slide * slide
    return (t - length if kind == "sliding" else -FOR_EVER), t


def interval(window: Window, ts: str, divide: str) -> tuple[str, str]:
    """The first and the last instant, both included, at which a row of event time `ts` is in its window.

    SQL over whole microseconds.
    """
    kind, length, slide = window
    if kind == "tumbling":
        return f"({ts} + 1)", f"(({ts} {divide} {length} + 1) * {length})"
    if kind == "hopping":
        return f"(({ts} {divide} {slide} + 1) * {slide})", f"((({ts} + {length}) {divide} {slide} + 1) * {slide} - 1)"
    return f"({ts} + 1)", f"({ts} + {length})" if kind == "sliding" else f"CAST({FOR_EVER} AS BIGINT)"


def in_duckdb(query: Plain, tables: Mapping[str, Table], t: int, previous: int) -> str:
    """One step after the other, so that a value that cannot be computed fails the answer only where a joined row needs
    it.
    """
    sources = ", ".join(f"({_duckdb_source(query, i, tables[s.name], t)}) AS s{i}" for i, s in enumerate(query.sources))
    sure = [
        c.sql if not c.fallible else f"TRY(CASE WHEN {c.sql} THEN 1 ELSE 0 END) IS DISTINCT FROM 0"
        for c in query.conditions
    ]
    instant = _instant(query, previous, lambda what, i: f"_{what}{i}") if query.returns_rows else []
    unsure = [c.sql for c in query.conditions if c.fallible]
    steps = [_step("candidates", f"SELECT * FROM {sources}{_where(sure + instant)}", bool(unsure)),
             _step("joined", f"SELECT * FROM candidates{_where(unsure)}", query.fallible)]
    values = [(name, value.sql if value.kind.name == "NULL" else f"CAST({value.sql} AS {value.kind})")
              for name, value in query.outputs]
    outputs = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in values)
    if query.returns_rows:
        return f"WITH {', '.join(steps)} SELECT {outputs} FROM joined"
    steps += [
        _step("grouped", _grouped(query), True),
        _step("kept", f"SELECT * FROM grouped{_where([query.having.sql] if query.having else [])}", True)
    ]
    return f"WITH {', '.join(steps)} SELECT {outputs}, {MAGNITUDE} FROM kept"


def _step(name: str, sql: str, apart: bool) -> str:
    """`apart` keeps the engine from computing a later step's values before this one's joins and conditions.

    Joined rows are too many to store without need.
    """
    return f"{name} AS {'' if apart else 'NOT '}MATERIALIZED ({sql})"


def _grouped(query: Plain) -> str:
    values = [f"{v.sql} AS k{i}"
              for i, v in enumerate(query.keys)] + [f"{v.sql} AS a{i}" for i, v in enumerate(query.aggregates)]
    magnitudes = f"[{', '.join(query.magnitudes)}] AS {MAGNITUDE}"
    keys = f" GROUP BY {', '.join(v.sql for v in query.keys)}" if query.keys else ""
    return f"SELECT {', '.join([*values, magnitudes])} FROM joined{keys}"


def _where(conditions: list[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _instant(query: Plain, previous: int, column: Callable[[str, int], str]) -> list[str]:
    """Not published before, and at some instant all in their windows together.

    `column` names source i's `boundary`, `lo` or `hi`.
    """
    streams = [i for i, s in enumerate(query.sources) if s.window]

    def extreme(function: str, what: str) -> str:
        names = [column(what, i) for i in streams]
        return f"{function}({', '.join(names)})" if len(names) > 1 else names[0]

    return [
        f"{extreme('greatest', 'boundary')} > {previous}", f"{extreme('greatest', 'lo')} <= {extreme('least', 'hi')}"
    ]


def _duckdb_source(query: Plain, number: int, table: Table, t: int) -> str:
    """The rows of one FROM entry that may count at t, each column named "alias.column"."""
    source = query.sources[number]
    columns = [
        f"CAST({quoted(c)} AS {kind_of(table.columns[c])}) AS {quoted(f'{a}.{c}')}" for a, c in query.columns
        if a == source.alias
    ]
    conditions = []
    if source.window:
        ts, (low, high) = quoted(table.event_time or ""), interval(source.window,
                                                                   f"epoch_us({quoted(table.event_time or '')})", "//")
        columns += [f"_boundary AS _boundary{number}", f"{low} AS _lo{number}", f"{high} AS _hi{number}"
                    ] if query.returns_rows else []
        conditions = [f"_boundary <= {t}"
                      ] + ([] if query.returns_rows else _between(source.window, t, ts, "make_timestamptz"))
    return f"SELECT {', '.join(columns) or '1 AS one'} FROM {quoted(raw(source.name))}{_where(conditions)}"


def _between(window: Window, t: int, ts: str, instant: str) -> list[str]:
    first, end = bounds(window, t)
    return ([f"{ts} >= {instant}({first})"] if first > -FOR_EVER else []) + [f"{ts} < {instant}({end})"]


def in_spark(query: Plain, tables: Mapping[str, Table], t: int, previous: int) -> str:
    """The user's statement over temporary views, as nearly as it was written as Spark SQL allows."""
    replaced = {s.alias: _spark_source(s, query.returns_rows, tables[s.name], t) for s in query.sources}
    return spark_text(
        query, replaced,
        _instant(query, previous, lambda what, i: f"`{query.sources[i].alias}`._{what}") if query.returns_rows else [],
        lambda name: list(tables[MARK.sub(r"\2", name)].columns), lambda name: _ended(query, tables, name, t))


def _ended(query: Plain, tables: Mapping[str, Table], name: str, t: int) -> tuple[str, str] | None:
    """Of an entry of FROM with sessions: how Spark groups by them, and which of them have ended by t and had not at the
    due boundary before; of one that the text groups itself only the second.
    """
    source = next((source for source in query.sources if source.alias == name), None)
    if source is None or source.window is None or source.window[0] not in ("session", "landmark"):
        return None
    call = f"session_window(`{tables[source.name].event_time}`, '{source.window[1]} microseconds')"
    between = (f"session_window.end > timestamp_micros({t - query.every}) AND session_window.end <= "
               f"timestamp_micros({t})")
    return call if source.window[0] == "session" else "", between


def _spark_source(source: Source, rows: bool, table: Table, t: int) -> str:
    columns = [f"`{c}`" for c in table.columns]
    if source.window is None:
        return f"SELECT {', '.join(columns)} FROM {raw(source.name)}"
    ts, (low, high) = f"`{table.event_time}`", interval(source.window, f"unix_micros(`{table.event_time}`)", "DIV")
    columns += ["_boundary", f"{low} AS _lo", f"{high} AS _hi"] if rows else []
    conditions = [f"_boundary <= {t}"] + ([] if rows else _between(source.window, t, ts, "timestamp_micros"))
    return f"SELECT {', '.join(columns)} FROM {raw(source.name)}{_where(conditions)}"


def raw(name: str) -> str:
    """The view that holds a source's rows, `_boundary` in whole microseconds."""
    return f"raw_{name}"
