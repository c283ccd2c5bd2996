"""The two ways to split a group's work, and the orders of its joins, on rows in memory: processor seconds of one task.

Answers of both ways are compared.
"""
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import permutations
from random import Random
from typing import Any

import pyarrow as pa

from jobs.engine import kernel
from jobs.verify import recompute as oracle
from optimizer.errors import failed
from optimizer.expression.types import parse_type
from optimizer.plan import table
from optimizer.plan.model import SPLITS
from optimizer.plan.program import Definition, Program
from optimizer.query.model import Catalog
from optimizer.sharing.counted import numbered, tallied
from optimizer.sharing.group import Group, group
from optimizer.sharing.program import lowering, shared_program
from optimizer.sharing.ways import Way, planned, seconds
from optimizer.sql.parse import parse

WINDOW = 60_000_000
NOW = 1_000_000_000
VALUES = 500
TIMES = 3                # the least of so many times is a join's
COLUMNS = (("ts", "timestamp"), ("k", "bigint"), ("g", "bigint"), ("x", "bigint"), ("y", "bigint"))
Report = dict[str, Any]


@dataclass(frozen=True)
class WaysSetting:
    """Rows of each stream.

    Values of the key; queries, with a range of so many of the inputs, or one value of each (`point`).
    """

    rows: tuple[int, ...]
    keys: int
    queries: int
    selected: int = 2
    point: bool = False

    @property
    def name(self) -> str:
        what = ("one value of each input" if self.point else f"a range of {self.selected} "
                                                             f"input{'s' if self.selected > 1 else ''}")
        return f"{', '.join(f'{n:,}' for n in self.rows)} rows, {self.keys:,} keys, {self.queries} queries with {what}"


WAYS = (*(WaysSetting((100_000, 100_000), keys, count)
          for keys in (500, 2_000, 10_000, 100_000)
          for count in (20, 100)), WaysSetting((20_000, 20_000), 200, 400), WaysSetting(
              (20_000, 20_000), 20_000, 400), WaysSetting((100_000, 100_000), 10_000, 20,
                                                          point=True), WaysSetting((100_000, 100_000), 100_000, 100, 1))
ORDERS = (WaysSetting((50_000, 10_000, 2_000), 5_000, 20, 3), WaysSetting((2_000, 20_000, 20_000), 2_000, 20, 3))


def ways(quick: bool, tell: Callable[[str], None]) -> Report:
    """Each setting both ways, with what the price says of them; then the joins of three inputs in each order."""
    report: Report = {"ways": {}, "orders": {}}
    for setting in WAYS[::5] if quick else WAYS:
        report["ways"][setting.name] = _both(setting)
        tell(f"{setting.name}: {report['ways'][setting.name]}")
    for setting in ORDERS[:1] if quick else ORDERS:
        for split in SPLITS:
            report["orders"][f"{setting.name}, split {split}"] = _orders(setting, split)
            tell(f"{setting.name}, split {split}: {report['orders'][f'{setting.name}, split {split}']}")
    return report


def _both(setting: WaysSetting) -> Report:
    con, usual = _filled(setting), _group(setting)
    took, answers, priced = {}, list[pa.Table](), dict[str, float]()
    for split in SPLITS:
        by_way = replace(usual, chosen=planned(usual, Way(split)))
        program = shared_program(by_way, lowering(by_way), (NOW,), count=True)
        began = time.process_time()
        _define(con, (*program.setup, *program.steps[0].define))
        answers.append(kernel.table(con, program.steps[0].answer))
        took[split] = time.process_time() - began
        priced = priced or _priced(con, by_way, program, answers[0].num_rows)
    if oracle.compare(answers[0], answers[1]):
        raise failed("wrong-answer", f"the two ways differ: {setting.name}", "please report this")
    report: Report = {f"{split}_s": round(seconds_, 3) for split, seconds_ in took.items()}
    return report | {f"{split}_priced_s": round(priced[Way(split).name], 3) for split in SPLITS}


def _priced(con: kernel.Connection, query_group: Group, program: Program, rows: int) -> dict[str, float]:
    counts = kernel.table(con, next(step.answer for step in program.steps if step.number == numbered(0)))
    columns = [counts[name].to_pylist() for name in ("input", "what", "rows", "cells")]
    tally = tallied(lowering(query_group), [zip(*columns)])
    return dict(seconds(query_group, tally, rows / len(query_group.classes), 1))


def _orders(setting: WaysSetting, split: str) -> dict[str, float]:
    """Of the statement that joins, the others are the same whatever the order."""
    con, usual = _filled(setting), _group(setting)
    seconds_by_order: dict[str, float] = {}
    for order in permutations(range(len(setting.rows))):
        by_order = replace(usual, chosen=replace(usual.plan, split=split, order=order))
        program = shared_program(by_order, lowering(by_order), (NOW,))
        step = program.steps[0]
        joins = tuple(definition for definition in step.define if definition.name.startswith("met_at_"))
        if not seconds_by_order:
            _define(con, (*program.setup, *step.define))
        took = []
        for _ in range(TIMES):
            began = time.process_time()
            _define(con, joins) if joins else kernel.table(con, step.answer)
            took.append(time.process_time() - began)
        seconds_by_order[" ".join(str(i + 1) for i in order)] = round(min(took), 4)
    return seconds_by_order


def _define(con: kernel.Connection, definitions: tuple[Definition, ...]) -> None:
    for name, sql, _ in definitions:
        con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}").fetchall()


def _group(setting: WaysSetting) -> Group:
    names, choice = "abc"[:len(setting.rows)], Random(1)
    columns = tuple((column, parse_type(kind)) for column, kind in COLUMNS)
    catalog = Catalog(10_000_000, tuple((name, "ts", columns) for name in names), ())
    streams = ", ".join(f"{name} [WINDOW 60 SECONDS]" for name in names)
    joins = [f"{a}.k = {b}.k" for a, b in zip(names, names[1:])]

    def text() -> str:
        operator = "=" if setting.point else "<"
        selections = [f"{name}.x {operator} {choice.randrange(50, VALUES)}" for name in names[:setting.selected]]
        where = " AND ".join(joins + selections)
        return f"SELECT a.g AS g, COUNT(*) AS n, SUM(b.y) AS s FROM {streams} WHERE {where} GROUP BY a.g"
    return group({f"q{n}": parse(text(), catalog) for n in range(setting.queries)})


def _filled(setting: WaysSetting) -> kernel.Connection:
    con = kernel.connect(threads=1, memory="4GB")
    largest = {"k": setting.keys, "g": 10, "x": VALUES, "y": VALUES}
    values = ", ".join(f"floor(random() * {most})::BIGINT AS {name}" for name, most in largest.items())
    for number, rows in enumerate(setting.rows):
        con.execute(f"SELECT setseed({(number + 1) / 10})").fetchall()
        ts = f"CAST(make_timestamp({NOW - WINDOW} + (i * {WINDOW}) // {rows}) AS TIMESTAMPTZ) AS ts"
        boundary = f"CAST(make_timestamp({NOW}) AS TIMESTAMPTZ) AS _boundary"
        select = f"SELECT {ts}, {values}, {boundary} FROM range({rows}) AS r(i)"
        con.execute(f"CREATE TABLE {table.files(number)} AS {select}").fetchall()
    return con
