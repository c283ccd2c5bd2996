"""A plan run boundary by boundary in DuckDB, and how many rows and values each of its operators really handled.

Rows are counted where they can be seen: in files, in temporary tables, in state, and in the engine's profile of each
statement. Which operator a part of a statement belongs to is told by the tables below it.
"""
from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

from optimizer.expression import dialect
from optimizer.plan.lowering import Lowering
from optimizer.plan.membership import Range
from optimizer.plan.model import Plan
from optimizer.plan.program import BEGINNING, Source
from optimizer.plan.tree import merge_files, program, state_sets
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.statistics.cardinality import population
from optimizer.statistics.model import InputStatistics, KeyStatistics, QueryStatistics
from tests.optimizer.planning import BATCH, SECOND

Amounts = Counter[tuple[str, str]]      # values or rows, by node and kind of work
BEGIN = 1_000 * BATCH
AGGREGATES = ("HASH_GROUP_BY", "PERFECT_HASH_GROUP_BY", "UNGROUPED_AGGREGATE")
COLUMNS = {
    "views": ("ts", "user", "page", "ms", "score"),
    "clicks": ("ts", "user", "amount"),
    "pages": ("page", "section")
}


@dataclass(frozen=True)
class Setting:
    """Rows a boundary of views and clicks, how many users and pages there are, and how uneven users are (0: even)."""

    views: int
    clicks: int
    users: int
    pages: int
    skew: float = 0.0

    def rows(self, random: Random, stream: str, boundary: int) -> list[tuple[Any, ...]]:
        """What comes with a boundary, all in time."""
        if stream == "pages":
            return [(f"p{n}", f"s{n % 7}") for n in range(self.pages)]
        rows = []
        for _ in range(self.views if stream == "views" else self.clicks):
            stamp = boundary - random.randrange(1, BATCH)
            user = f"u{int(self.users * random.random() ** (1 + self.skew))}"
            if stream == "clicks":
                rows.append((stamp, user, random.randrange(10_000)))
            else:
                rows.append((stamp, user, f"p{random.randrange(self.pages)}", random.randrange(10**6), random.random()))
        return rows


@dataclass
class Life:
    """A query under a plan: its streams' files (one a boundary), its state's files, and what its operators handled."""

    query: Query
    plan: Plan
    setting: Setting
    random: Random
    con: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    files: dict[str, dict[int, str]] = field(default_factory=dict)              # of a stream, by boundary
    state: dict[str, list[str]] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)
    groups: list[int] = field(default_factory=list)                             # of each answer

    def __post_init__(self) -> None:
        self.ctx = Lowering(shape(self.query), self.plan)
        self.con.execute("SET threads = 1")
        # What the engine saves beyond the plan is its own gain: it filters one side of a join by the other's keys, and
        # aggregates below a join where it expects that to be cheaper.
        self.con.execute("SET disabled_optimizers = 'join_filter_pushdown, partial_aggregate_pushdown'")
        self.con.enable_profiling()
        self.con.execute("PRAGMA enable_profiling = 'no_output'")

    def arrive(self, boundary: int) -> None:
        for stream in dict.fromkeys(i.source for i in self.query.inputs):
            if stream == "pages" and self.files.get(stream):
                continue
            rows = self.setting.rows(self.random, stream, boundary)
            columns = {name: list(values) for name, values in zip(COLUMNS[stream], zip(*rows))}
            name = f"file_{stream}_{boundary}"
            self.con.register("raw_rows", pa.table(columns))
            self.con.execute(f"CREATE TABLE {name} AS SELECT * FROM ({_typed(stream, boundary)}) AS q")
            self.con.unregister("raw_rows")
            self.files.setdefault(stream, {})[boundary] = name

    def answer(self, boundary: int, previous: int) -> Amounts:
        """One boundary, after the state was brought to the one before; and what that took."""
        amounts: Amounts = Counter()
        statements = program(self.ctx, (boundary,), previous)
        for source in statements.sources:
            self._bind(source, amounts)
        relations = []
        for name, sql, is_table in (*statements.setup, *(made for step in statements.steps for made in step.define)):
            self.con.execute(f"CREATE TEMP {'TABLE' if is_table else 'VIEW'} {name} AS {sql}")
            relations.append((name, is_table))
            if is_table:
                node = self._node_of(name)
                self._add_profile(node, amounts)
                amounts[node, "keep"] += self._rows(name) * len(self._columns(name))
        for step in statements.steps:
            self.groups.append(len(self.con.execute(step.answer).fetchall()))
            self._add_profile("Late aggregation", amounts)
        for write in statements.writes:
            file = f"state_{write.set}_{next(self.numbers)}"
            self.con.execute(f"CREATE TABLE {file} AS {write.sql}")
            self._add_profile(self._node_of(file), amounts)
            amounts[self._node_of(file), "state_write"] += self._rows(file) * len(write.columns)
            self._put(write.set, file, write.append)
        for name, is_table in reversed(relations):
            self.con.execute(f"DROP {'TABLE' if is_table else 'VIEW'} {name}")
        for source in statements.sources:
            self.con.execute(f"DROP VIEW {source.name}")
        self._maintain(boundary)
        return amounts

    def _bind(self, source: Source, amounts: Amounts) -> None:
        node = self._node_of(source.name)
        if source.kind == "state":
            files = self.state.get(source.of, [])
            amounts[node, "state_read"] += sum(map(self._rows, files)) * len(source.columns)
        else:
            i = int(source.name.removeprefix("files_"))
            every = self.files[source.of]
            chosen = [
                file for at, file in every.items() if not source.ranges or any(_holds(r, at) for r in source.ranges)
            ]
            read = [name for name, _ in source.columns if name not in ("ts", "_boundary")]
            amounts[node, "scan"] += sum(map(self._rows, chosen)) * max(len(read), 1)
            files = [self._copy(file, i) for file in chosen or list(every.values())[:1]]
        columns = ", ".join(f'"{name}"' for name, _ in source.columns) or "*"
        union = " UNION ALL ".join(f"SELECT {columns} FROM {file}" for file in files)
        self.con.execute(f"CREATE TEMP VIEW {source.name} AS {union or _nothing(source)}")

    def _copy(self, file: str, i: int) -> str:
        """A name of its own for each input, by which the profile tells them apart."""
        name = f"{file}_of{i}"
        self.con.execute(f"CREATE TABLE IF NOT EXISTS {name} AS SELECT * FROM {file}")
        return name

    def _put(self, name: str, file: str, append: bool) -> None:
        self.state[name] = [*(self.state.get(name, []) if append else []), file]

    def _maintain(self, boundary: int) -> None:
        """Files of which nothing counts leave; many become one."""
        for kept in state_sets(self.ctx):
            if kept.ends is None:
                continue
            files = [
                f for f in self.state[kept.name] if (self._value(f"SELECT max({kept.ends}) FROM {f}") or -1) >= boundary
            ]
            if len(files) > kept.most_files:
                file = f"state_{kept.name}_{next(self.numbers)}"
                since = min(int(self._value(f"SELECT max({kept.ends}) FROM {each}")) for each in files)
                union = " UNION ALL ".join(f"SELECT * FROM {each}" for each in files)
                merging = merge_files(self.ctx, kept.name, f"({union})", boundary, since)
                self.con.execute(f"CREATE TABLE {file} AS {merging}")
                files = [file]
            self.state[kept.name] = files

    def _add_profile(self, node: str, amounts: Amounts) -> None:
        (root,) = json.loads(self.con.get_profiling_information())["operator"]
        self._walk(root, node, amounts, above=())

    def _walk(self, part: Mapping[str, Any], node: str, amounts: Amounts, above: tuple[str, ...]) -> None:
        kind, children = part["type"], part.get("children", [])
        rows = _rows_of(part)
        if kind in AGGREGATES:
            width = _length(part, "Groups") + _length(part, "Aggregates")
            owner = self._owner(part, node, above)
            from_join = "JOIN" in "".join(_kinds(children[0]))
            into = "pairs" if owner == "Late aggregation" and from_join else "group"
            amounts[owner, into] += _rows_of(children[0]) * width
            amounts[owner, "made"] += rows * width
            above = (*above, "aggregate")
        elif kind == "HASH_JOIN":
            probe, build = map(_rows_of, children)
            amounts["Join", "probe"] += probe
            amounts["Join", "build"] += build * self._built_width(children[1])
            amounts["Join", "between"] += rows if "join" in above else 0
            amounts["Join", "fanned"] += max(rows - max(probe, build), 0)
            above = (*above, "join")
        for child in children:
            self._walk(child, node, amounts, above)

    def _owner(self, part: Mapping[str, Any], node: str, above: tuple[str, ...]) -> str:
        """The late aggregation's, but for what merges one input's partials below the join, or below that of one input.
        """
        inputs = _inputs_below(part)
        if node != "Late aggregation":
            return node
        recomputed = self.plan.keeping in ("recompute", "running")
        below_late = "join" in above and above[-1] == "join" if len(
            self.ctx.inputs) > 1 else recomputed and "aggregate" in above
        if below_late and len(inputs) == 1:
            return self._set_node(inputs.pop())
        return node

    def _built_width(self, part: Mapping[str, Any]) -> int:
        return sum(self._width(i) for i in _inputs_below(part))

    def _width(self, i: int) -> int:
        return len(self.ctx.shape.attributes[i]) + 1 + len(self.ctx.shape.measures_of(i))

    def _node_of(self, name: str) -> str:
        """Of a source, a temporary table or a state file."""
        if "answer" in name or name.startswith(("added_", "slices_")):
            return "Late aggregation"
        i = int(re.sub(r"^[a-z_]+?(?:level\d+_)?(\d).*$", r"\1", name))
        is_scan = name.startswith(("files_", "changes_"))
        rows_as_they_are = name.startswith("input_") and not self.plan.digits[i]
        return f"Scan {self.query.inputs[i].alias}" if is_scan or rows_as_they_are else self._set_node(i)

    def _set_node(self, i: int) -> str:
        return f"AS {self.query.inputs[i].alias}"

    def _rows(self, table: str) -> int:
        return int(self._value(f"SELECT count(*) FROM {table}") or 0)

    def _columns(self, table: str) -> Sequence[Any]:
        return self.con.execute(f"DESCRIBE {table}").fetchall()

    def _value(self, sql: str) -> int | None:
        return self.con.execute(sql).fetchall()[0][0]      # type: ignore[no-any-return]


def counted(life: Life, warm_up: int, measured: int) -> tuple[Amounts, int]:
    """Amounts of an average boundary, after so many; and the last boundary."""
    previous, total = BEGINNING, Counter[tuple[str, str]]()
    every, begin = life.query.every, BEGIN // life.query.every * life.query.every
    for number in range(warm_up + measured):
        boundary = begin + number * every
        for arriving in range(boundary - every + BATCH, boundary + 1, BATCH):
            life.arrive(arriving)
        amounts = life.answer(boundary, previous)
        previous = boundary
        if number >= warm_up:
            total.update(amounts)
    return Counter({key: amount / measured for key, amount in total.items()}), previous      # type: ignore[misc]


def _typed(stream: str, boundary: int) -> str:
    """Rows in the types of the catalog, with the boundary that first counts them."""
    if stream == "pages":
        return "SELECT * FROM raw_rows"
    amount = "* REPLACE (CAST(amount / 100 AS DECIMAL(10,2)) AS amount, make_timestamp(ts) AS ts)"
    chosen = amount if stream == "clicks" else "* REPLACE (make_timestamp(ts) AS ts)"
    return f"SELECT {chosen}, make_timestamp({boundary}) AS _boundary FROM raw_rows"


def _holds(wanted: Range, boundary: int) -> bool:
    """Whether a boundary's file can have rows of the range: its rows' event times are of the batch before it."""
    return wanted.after < boundary <= wanted.upto and boundary > wanted.since and boundary - BATCH < wanted.until


def _nothing(source: Source) -> str:
    nulls = ", ".join(f"CAST(NULL AS {dialect.name(kind, 'duckdb')}) AS {column}" for column, kind in source.columns)
    return f"SELECT {nulls} WHERE FALSE"


def _rows_of(part: Mapping[str, Any]) -> int:
    """Rows that a part gives; the engine does not count those of a union."""
    if part["type"] == "UNION":
        return sum(_rows_of(child) for child in part["children"])
    return int(part["intermediate_rows"])


def _length(part: Mapping[str, Any], key: str) -> int:
    listed = part["extra_info"].get(key, [])
    return 1 if isinstance(listed, str) else len(listed)


def _kinds(part: Mapping[str, Any]) -> Iterator[str]:
    """Types of operators down to the next aggregate."""
    yield part["type"]
    if part["type"] not in AGGREGATES:
        for child in part.get("children", []):
            yield from _kinds(child)


# Names of tables that hold one input's rows or partials.
OF_INPUT = re.compile(r"^file_\w+_of(\d)$|^state_[a-z]+(\d)_\d+$|"
                      r"^(?:input_|changes_|totals_|extremes_|new_panes|new_extremes)(\d)")


def _inputs_below(part: Mapping[str, Any]) -> set[int]:
    inputs = set()
    table = str(part["extra_info"].get("Table", "")).split(".")[-1]
    if match := OF_INPUT.match(table):
        inputs.add(int(next(group for group in match.groups() if group)))
    for child in part.get("children", []):
        inputs |= _inputs_below(child)
    return inputs


def exact_statistics(life: Life, last: int) -> QueryStatistics:
    """What the inputs are, exactly: rates, rows and combinations in the window, each key's share of both.

    Of what stands between operators nothing; of the answer its number of groups, which the statistics task counts, too.
    """
    inputs, per_key = [], dict[tuple[int, int], dict[Any, tuple[int, int]]]()
    form = life.ctx.shape
    for i, declared in enumerate(life.query.inputs):
        every = life.files[declared.source]
        window = declared.window
        since = window.oldest(last) if window else None
        files = [f for at, f in every.items() if since is None or at > since]
        rows = " UNION ALL ".join(f"SELECT * FROM {file}" for file in files)
        names = [f'"{attribute.expr.name}"' for attribute in form.attributes[i]]      # type: ignore[attr-defined]
        total = life._value(f"SELECT count(*) FROM ({rows})") or 0
        distinct = life._value(
            f"SELECT count(*) FROM (SELECT DISTINCT {', '.join(names)} FROM ({rows}))") if names else 1
        combinations = population(float(total), float(distinct or 1))
        rate = 0.0 if window is None else total / len(files) / (BATCH / SECOND)
        inputs.append(InputStatistics(rate, float(total), 1.0, max(combinations, 1.0)))
        for c, members in enumerate(form.keys):
            for j, attribute in members:
                if j == i:
                    key = f'"{attribute.expr.name}"'      # type: ignore[attr-defined]
                    of_key = f"SELECT {key}, count(*), count(DISTINCT ({', '.join(names)})) FROM ({rows}) GROUP BY ALL"
                    per_key[c, i] = {k: (n, m) for k, n, m in life.con.execute(of_key).fetchall()}
    classes = tuple(_class(c, per_key) for c in range(len(form.keys)))
    return QueryStatistics(tuple(inputs), classes, BATCH / SECOND, float(life.groups[-1]))


def _class(c: int, per_key: Mapping[tuple[int, int], Mapping[Any, tuple[int, int]]]) -> KeyStatistics:
    members = [i for cls, i in per_key if cls == c]
    keys = sorted({key for i in members for key in per_key[c, i]})
    rows, combinations = {}, {}
    for i in members:
        of_input = per_key[c, i]
        all_rows, all_combinations = (sum(pair[n] for pair in of_input.values()) for n in (0, 1))
        rows[i] = tuple(of_input.get(key, (0, 0))[0] / all_rows for key in keys)
        combinations[i] = tuple(of_input.get(key, (0, 0))[1] / all_combinations for key in keys)
    return KeyStatistics(float(len(keys)), 1.0, rows, combinations)
