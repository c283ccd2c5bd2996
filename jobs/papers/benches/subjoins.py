"""A join that forms of a family have in common, made once and by each form for itself, on rows in memory: processor
seconds of one task, with what its price says of both.

Answers of both are compared.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from jobs.engine import kernel
from jobs.verify import recompute as oracle
from optimizer.errors import failed
from optimizer.expression.types import parse_type
from optimizer.plan.program import Definition
from optimizer.query.model import Catalog
from optimizer.sharing.counted import tallied
from optimizer.sharing.families import joined
from optimizer.sharing.families.division import of_all, planned, reading
from optimizer.sharing.families.family import Family, counted_as, family_program
from optimizer.sharing.families.steering import SubJoinPrice, priced
from optimizer.sharing.group import Group, forms, group
from optimizer.sharing.price import STATED
from optimizer.sharing.program import lowering
from optimizer.sql.parse import parse

WINDOW = 60_000_000
NOW = 1_000_000_000
VALUES = 500
TIMES = 3               # the least of so many times counts
COLUMNS = ("k", "l", "g", "x", "y")
GROUPINGS = ("a.g", "b.g", "a.g, b.g", "a.g % 3", "b.g % 3")
PAIR = ("COUNT(*) AS n, SUM(b.y) AS s", "a b", "a.k = b.k")
THREE = ("COUNT(*) AS n, SUM(c.y) AS s", "a b c", "a.k = b.k AND b.l = c.l")
Report = dict[str, Any]


@dataclass(frozen=True)
class SubJoinSetting:
    """Rows of each stream and values of its keys; queries of a ⋈ b by so many groupings, and of a ⋈ b ⋈ c."""

    rows: int
    keys: int
    pairs: int
    groupings: int = 1
    three: int = 0
    selected: bool = True

    @property
    def name(self) -> str:
        selected = "" if self.selected else ", nothing selected"
        return (f"{self.rows:,} rows, {self.keys:,} keys, {self.pairs} queries of a ⋈ b by {self.groupings} groupings, "
                f"{self.three} of a ⋈ b ⋈ c{selected}")


SETTINGS = (SubJoinSetting(20_000, 2_000, 1, 1, 1), SubJoinSetting(20_000, 20_000, 1, 1, 1),
            SubJoinSetting(20_000, 2_000, 5, 1, 5), SubJoinSetting(20_000, 20_000, 5, 1, 5),
            SubJoinSetting(20_000, 20_000, 20, 1, 20), SubJoinSetting(100_000, 100_000, 3, 1, 3),
            SubJoinSetting(20_000, 2_000, 4, 4), SubJoinSetting(20_000, 20_000, 4, 4, selected=False),
            SubJoinSetting(20_000, 20_000, 20, 4), SubJoinSetting(100_000, 100_000, 12, 4),
            SubJoinSetting(100_000, 10_000, 2, 2), SubJoinSetting(1_000, 500, 8, 4))


def sub_joins(quick: bool, tell: Callable[[str], None]) -> Report:
    """Each setting both ways, with what the price says."""
    report: Report = {}
    for setting in SETTINGS[::4] if quick else SETTINGS:
        report[setting.name] = _both(setting)
        tell(f"{setting.name}: {report[setting.name]}")
    return report


def _both(setting: SubJoinSetting) -> Report:
    con, usual = _filled(setting), Family(_groups(setting))
    (sub_join,) = usual.countable
    reading = list(usual.groups)
    for reader in sub_join.readers:
        of_reader = reading[reader.number]
        reading[reader.number] = replace(of_reader, chosen=replace(of_reader.plan, read_joined=reader.pair))
    each_s, by_each = _run(con, usual)
    once_s, once = _run(con, Family(tuple(reading)))
    if any(oracle.compare(one, other) for one, other in zip(by_each, once)):
        raise failed("wrong-answer", f"the two ways differ: {setting.name}", "please report this")
    price = _price(con, usual)
    return {"once_s": round(once_s, 3), "each_s": round(each_s, 3), "saves_s": round(each_s - once_s, 3),
            "priced_saves_s": round(price.each - price.once, 3), "taken": price.pays(1, 1, is_standing=False)}


def _run(con: kernel.Connection, family: Family) -> tuple[float, list[Any]]:
    """Seconds of all statements at one boundary, and the answers of the groups."""
    program, took = family_program(family, tuple(map(lowering, family.groups)), (NOW,)), []
    for source in program.sources:
        con.execute(f"CREATE OR REPLACE TEMP VIEW {source.name} AS SELECT * FROM {source.of}").fetchall()
    for _ in range(TIMES):
        began, answers = time.process_time(), []
        _define(con, program.setup)
        for step in program.steps:
            _define(con, step.define)
            answers.append(kernel.table(con, step.answer))
        took.append(time.process_time() - began)
    return min(took), answers


def _price(con: kernel.Connection, family: Family) -> SubJoinPrice:
    lows = tuple(map(lowering, family.groups))
    program = family_program(family, lows, (NOW,), count=True)
    _define(con, program.setup)
    step = next(step for step in program.steps if step.number == counted_as(family, 0))
    _define(con, step.define)
    counts = kernel.table(con, step.answer)
    columns = [counts[name].to_pylist() for name in ("input", "what", "rows", "cells")]
    (sub_join,) = family.countable
    low = joined.lowered(sub_join, lows[sub_join.readers[0].number], family.division)
    return priced(sub_join, tallied(low, [zip(*columns)]), 1, family.division, STATED)


def _define(con: kernel.Connection, definitions: Sequence[Definition]) -> None:
    for name, sql, _ in definitions:
        con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}").fetchall()


def _groups(setting: SubJoinSetting) -> tuple[Group, ...]:
    kinds = (("ts", parse_type("timestamp")), *((column, parse_type("bigint")) for column in COLUMNS))
    catalog, choice = Catalog(10_000_000, tuple((name, "ts", kinds) for name in "abc"), ()), Random(1)

    def text(join: tuple[str, str, str], by: str) -> str:
        shown, streams, on = join
        selected = "".join(f" AND {s}.x < {choice.randrange(50, VALUES)}" for s in streams.split())
        sources = ", ".join(f"{stream} [WINDOW 60 SECONDS]" for stream in streams.split())
        listed = ", ".join(f"{expr} AS g{n}" for n, expr in enumerate(by.split(", ")))
        return f"SELECT {listed}, {shown} FROM {sources} WHERE {on}{selected if setting.selected else ''} GROUP BY {by}"

    texts = [text(PAIR, GROUPINGS[n % setting.groupings]) for n in range(setting.pairs)]
    texts += [text(THREE, GROUPINGS[0]) for _ in range(setting.three)]
    queries = {f"q{n}": parse(sql, catalog) for n, sql in enumerate(texts)}
    groups = [group({name: queries[name] for name in names}) for names in forms(queries)[0]]
    division = of_all(map(reading, groups)).divisions[-1]      # one task does all, whatever would divide it
    return tuple(replace(one, chosen=plan) for one, plan in zip(groups, planned(groups, division)))


def _filled(setting: SubJoinSetting) -> kernel.Connection:
    con = kernel.connect(threads=1, memory="4GB")
    largest = {"k": setting.keys, "l": setting.keys, "g": 10, "x": VALUES, "y": VALUES}
    values = ", ".join(f"floor(random() * {most})::BIGINT AS {name}" for name, most in largest.items())
    for number, stream in enumerate("abc"):
        con.execute(f"SELECT setseed({(number + 1) / 10})").fetchall()
        ts = f"CAST(make_timestamp({NOW - WINDOW} + (i * {WINDOW}) // {setting.rows}) AS TIMESTAMPTZ) AS ts"
        boundary = f"CAST(make_timestamp({NOW}) AS TIMESTAMPTZ) AS _boundary"
        con.execute(f"CREATE TABLE {stream} AS SELECT {ts}, {values}, {boundary} FROM range({setting.rows}) AS r(i)"
                    ).fetchall()
    return con
