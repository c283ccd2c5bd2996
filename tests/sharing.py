"""Groups of queries run over plain Parquet files as tasks run them, each answer by name."""
from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa

from jobs.batch import large
from jobs.batch.members import MembersMerge, finished
from jobs.batch.shared import groupings, summed
from jobs.batch.works import Context
from jobs.engine import kernel
from jobs.engine.partials import Handover
from jobs.engine.reach import Split, dealt, meets, split
from jobs.engine.tasks import Tasks
from jobs.engine.work import TaskOrder, TaskResult, perform
from optimizer.plan.operators.operator import Run
from optimizer.plan.program import Program, Source
from optimizer.query.model import Query
from optimizer.sharing.families.division import ONE_TASK, FamilyDivision, of_all
from optimizer.sharing.families.division import planned as division_plans
from optimizer.sharing.families.division import reading
from optimizer.sharing.families.family import Family, family_program
from optimizer.sharing.families.subjoin import candidates
from optimizer.sharing.group import Group, Template, forms, group
from optimizer.sharing.program import lowering, shared_program
from optimizer.sharing.rows import rows_program
from tests.engine import Failed, Folder, _floor, _together
from tests.streams import SECOND, SPECIAL, VALUES, Case, Columns, Row

Answers = dict[tuple[str, int], pa.Table]


def together(queries: Mapping[str, Query], folder: Folder, boundaries: tuple[int, ...], parts: int = 1,
             split: str = "before", divided: int | None = None, by_tasks: bool = False,
             joins: int | None = None) -> Answers:
    """The answer of every query at every boundary at which it is due.

    `divided`: the number, among its streams, of the one that a group divides by files. `by_tasks`: as if all had many
    groups. `joins`: of the joins that groups have in common, the number of the one that is made once first.
    """
    made = Family(_planned([group({n: queries[n] for n in names}) for names in forms(queries)[0]], split, divided,
                           joins))
    parts = 1 if len(made.groups) > 1 and made.division == ONE_TASK else parts
    place = _handover(made, folder) if by_tasks else None
    outcomes = [perform(replace(_order(made, folder, boundaries, parts, part), handover=place))
                for part in range(parts)]
    failure = next((o.failed for o in outcomes if o.failed), None)
    if failure:
        raise Failed(failure)
    answers: Answers = {}
    merged = _merged_by_tasks(made, folder, boundaries, parts, place, outcomes) if place else {}
    for number, one in enumerate(made.groups):
        due = [t for t in boundaries if t % one.common.every == 0]
        partials = [t for o in outcomes if (t := o.answer(number)) is not None]
        if ("group", number) in merged:
            found, apart = _read(one, folder, merged["group", number]), merged["group", number].apart
        else:
            found, apart = finished(one, pa.concat_tables(partials),
                                    [(t, t) for t in due]) if due else ([], frozenset())
        if apart:
            raise Failed(", ".join(sorted(apart)))
        answers.update({
            (name, t): _of(rows, name, t) for template, rows in found for name, _ in template.members for t in due
        })
    return answers


def _handover(made: Family, folder: Folder) -> Handover:
    return Handover(os.path.join(folder.root, "handover"), 0, groupings(made))


def _merged_by_tasks(made: Family, folder: Folder, boundaries: tuple[int, ...], parts: int, place: Handover,
                     outcomes: list[TaskResult]) -> dict[large.Number, large.LargeAnswer]:
    hows = []
    for number, one in enumerate(made.groups):
        due = tuple(t for t in boundaries if t % one.common.every == 0)
        folders = tuple(os.path.join(folder.root, "answers") for _ in one.templates)
        hows.append(MembersMerge(("group", number), folders, "b", due, tuple((t, t) for t in due), summed(one), one))
    context = Context(folder.root, None, Tasks("inline"), None, None)      # type: ignore[arg-type]
    return large.merged(context, parts, {"group": place}, hows, {"group": outcomes})


def _read(one: Group, folder: Folder, answer: large.LargeAnswer) -> list[tuple[Template, pa.Table]]:
    """Each template's rows; a template without any has none."""
    found = []
    for number, template in enumerate(one.templates):
        files = tuple(os.path.join(folder.root, "answers", f.path) for f in answer.of_template(number).files)
        sql = f"SELECT * FROM read_parquet({kernel.file_list(files)})"
        columns = {name: pa.nulls(0) for name, _ in template.query.columns}
        nothing = pa.table({"query": pa.nulls(0), "boundary": pa.nulls(0, pa.timestamp("us")), **columns})
        found.append((template, kernel.table(kernel.shared(), sql) if files else nothing))
    return found


def _planned(groups: list[Group], split: str, divided: int | None, joins: int | None) -> tuple[Group, ...]:
    """A group by the way that is asked for; of several, divided in one of the ways that are possible."""
    if len(groups) > 1:
        divisions = of_all(map(reading, groups)).divisions
        division = divisions[(divided or 0) % len(divisions)]
        plans = division_plans(groups, division)
        return _reading_joins([replace(one, chosen=plan) for one, plan in zip(groups, plans)], division, joins)
    (made,) = groups
    plan = replace(made.plan, split=split)
    if divided is not None:
        streams = [i for i, declared in enumerate(made.common.inputs) if declared.is_stream]
        plan = replace(plan, exchange="slice", divided=streams[divided % len(streams)])
    return (replace(made, chosen=plan),)


def _reading_joins(groups: list[Group], division: FamilyDivision, joins: int | None) -> tuple[Group, ...]:
    """The groups, with the joins that they have in common made once, beginning with one that `joins` counts to."""
    possible = [sub for sub in candidates(groups) if division.stream in (None, *(s.source for s in sub.key.sides))]
    if joins is None or not possible:
        return tuple(groups)
    for sub in (possible[joins % len(possible):] + possible)[:len(possible)]:
        for reader in sub.readers:
            if not groups[reader.number].plan.read_joined:
                plan = replace(groups[reader.number].plan, read_joined=reader.pair)
                groups[reader.number] = replace(groups[reader.number], chosen=plan)
    return tuple(groups)


def _of(rows: pa.Table, name: str, t: int) -> pa.Table:
    owners, times = rows.column("query").to_pylist(), rows.column("boundary").cast(pa.int64()).to_pylist()
    mine = [n for n, (owner, at) in enumerate(zip(owners, times)) if (owner, at) == (name, t)]
    return rows.take(pa.array(mine, pa.int64())).drop_columns(["query", "boundary"])


def _order(made: Family, folder: Folder, boundaries: tuple[int, ...], parts: int, part: int) -> TaskOrder:
    def program(narrow: bool) -> Program:
        at_once = _together(boundaries)
        lows = tuple(lowering(g, parts=parts, part=part, narrow=narrow, together=at_once) for g in made.groups)
        count = len(boundaries) != 2      # what equation (2) asks beside must disturb nothing
        return family_program(made, lows, boundaries, count) if len(lows) > 1 else shared_program(
            made.groups[0], lows[0], boundaries, count)

    narrow, wide = program(True), program(False)
    found = {s.name: _files(s, made, folder, parts, part) for s in narrow.sources}
    files, certain = {n: p[0] for n, p in found.items()}, {n: p[1] for n, p in found.items()}
    return TaskOrder("group", part, parts, narrow, wide, files, {}, "b", certain=certain)


def _files(source: Source, made: Family, folder: Folder, parts: int, part: int) -> Split:
    stamp = next((i.event_time for g in made.groups for i in g.common.inputs if i.source == source.of), None) or ""
    found = [
        f for f in folder.rows.get(source.of, [])
        if f.rows and (source.kind == "relation" or any(meets(f, stamp, r) for r in source.ranges))
    ]
    mine = dealt(found, parts)[part] if source.dealt else found
    return split(mine, source, lambda f: os.path.join(folder.root, source.of, f.path))


BATCH = 10 * SECOND
START = 100 * BATCH
COLUMNS: dict[str, Columns] = {
    "a": {
        "ts": "timestamp",
        "k": "bigint",
        "g": "int",
        "x": "bigint",
        "d": "decimal(10,2)",
        "f": "double",
        "s": "string"
    },
    "b": {
        "ts": "timestamp",
        "k": "bigint",
        "y": "bigint",
        "g": "int"
    },
    "c": {
        "ts": "timestamp",
        "k": "bigint",
        "u": "bigint"
    }
}
RELATION: Columns = {"k": "bigint", "z": "int"}
WINDOWS = ("[WINDOW 20 SECONDS]", "[WINDOW 30 SECONDS TUMBLING]", "[WINDOW UNTIL NOW]",
           "[WINDOW 30 SECONDS SLIDE 10 SECONDS]")
FROMS = {
    ("a",): "FROM a {w}",
    ("a", "b"): "FROM a {w}, b {v}",
    ("a", "r"): "FROM a {w}, r",
    ("a", "b", "r"): "FROM a {w}, b {v}, r"
}
JOINS = {("a",): "TRUE", ("a", "b"): "a.k = b.k", ("a", "r"): "a.k = r.k", ("a", "b", "r"): "a.k = b.k AND r.k = b.k"}
JOINED = [s for s in FROMS if "a" in s]
# Other keys on the same sources, and more of them: inputs by alias, the FROM clause, the join.
OTHER_KEYS = {
    ("a", "b", "by g"): ("FROM a {w}, b {v}", "a.g = b.g"),
    ("a", "b", "by x"): ("FROM a {w}, b {v}", "a.x = b.y AND a.g = b.g"),
    ("a", "b", "c", "in a row"): ("FROM a {w}, b {v}, c {w}", "a.k = b.k AND b.g = c.u"),
    ("b", "c"): ("FROM b {v}, c {w}", "b.y = c.u"),
    ("a", "b", "c", "r"): ("FROM a {w}, b {v}, c {v}, r", "a.k = b.k AND a.x = c.k AND r.k = c.u"),
    ("a", "d"): ("FROM a {w}, a AS d {v}", "a.k = d.x"),
    ("a", "b", "r", "by y"): ("FROM a {w}, b {v}, r", "a.k = b.k AND b.y = r.k"),
}
SELECTED = {
    "a": ("a.x < {n}", "a.x >= {n}", "a.x BETWEEN {n} AND {m}", "a.x = {n}", "a.g <= {n}", "a.s LIKE 'o%'",
          "a.s <> 'b'", "a.x IS NULL", "a.d > {n}.5", "a.x IN ({n}, 1)", "a.f < {n}",
          "a.ts >= TIMESTAMP '1970-01-01 00:17:00Z'"),
    "b": ("b.y < {n}", "b.y > {n}", "b.g = {n}", "COALESCE(b.y, 0) < {n}"),
    "r": ("r.z < {n}", "r.z <> {n}"),
    "c": ("c.u < {n}", "c.u >= {n}", "c.k = {n}"),
    "d": ("d.x < {n}", "d.g = {n}")
}
MEASURED = {"a": ("SUM(a.x)", "AVG(a.d)", "MAX(a.f)", "MIN(a.s)", "SUM(a.d)", "COUNT(a.g)", "SUM(a.f)", "STDDEV(a.x)"),
            "b": ("SUM(b.y)", "MIN(b.y)", "AVG(b.y)"), "r": ("SUM(r.z)",), "c": ("SUM(c.u)", "MAX(c.k)"),
            "d": ("SUM(d.x)",)}


GROUPS = {"a": ["", "a.g", "a.g % 3", "a.s"], "b": ["", "b.g", "b.y % 3"]}
SHOWN = {"a": ("a.*", "a.x", "a.x + 1 AS x1", "a.s AS text", "a.d AS d"), "b": ("b.*", "b.y AS y", "b.g AS bg"),
         "r": ("r.z AS z",)}
CONDITIONS = ("a.x <= b.y", "a.g <> b.g", "a.x + b.y > 3")


def row_texts(choice: Random, count: int) -> dict[str, str]:
    """Row queries of one form; selections and SELECT lists differ."""
    sources = choice.choice(list(FROMS))
    of = FROMS[sources].format(w=choice.choice(WINDOWS), v=choice.choice(WINDOWS))
    joins = JOINS[sources]
    if "b" in sources and choice.random() < 0.3:
        joins += f" AND {choice.choice(CONDITIONS)}"
    every = f" EVERY {choice.choice([10, 20])} SECONDS"
    listed = [_shown(sources, choice) for _ in range(choice.choice([1, 1, 3]))]
    found = {}
    for n in range(count):
        selections = [c for s in sources for c in SELECTED[s]]
        chosen = choice.sample(selections, min(len(selections), choice.choice([0, 1, 1, 2, 3])))
        where = " AND ".join([joins, *(_selected(c, choice) for c in chosen)])
        found[f"q{n}"] = f"SELECT {choice.choice(listed)} {of} WHERE {where}{every}"
    return found


def _shown(sources: tuple[str, ...], choice: Random) -> str:
    items = [choice.choice(SHOWN[s]) for s in sources]
    if "b" in sources and choice.random() < 0.5:
        items.append("a.x - b.y AS between")
    return ", ".join(items)


def rows_together(queries: Mapping[str, Query], folder: Folder, boundaries: tuple[int, ...], previous: int,
                  parts: int = 1) -> Answers:
    """The rows of every row query at every boundary, brought from `previous` on."""
    made = group(queries)
    run = Run(boundaries, previous, _floor(made.common, folder, previous))
    outcomes = [perform(_rows_order(made, folder, run, parts, part)) for part in range(parts)]
    failure = next((o.failed for o in outcomes if o.failed), None)
    if failure:
        raise Failed(failure)
    answers: Answers = {}
    for number, template in enumerate(made.templates):
        files = tuple(os.path.join(folder.root, "answers", f.path) for o in outcomes for f in o.rows[number])
        columns = {name: pa.nulls(0) for name, _ in template.query.columns}
        nothing = pa.table({"query": pa.nulls(0), "boundary": pa.nulls(0, pa.timestamp("us")), **columns})
        sql = f"SELECT * FROM read_parquet({kernel.file_list(files)})"
        rows = kernel.table(kernel.shared(), sql) if files else nothing
        answers.update({(name, t): _of(rows, name, t) for name, _ in template.members for t in boundaries})
    return answers


def _rows_order(made: Group, folder: Folder, run: Run, parts: int, part: int) -> TaskOrder:
    programs = [rows_program(made, lowering(made, parts=parts, part=part, narrow=narrow), run)
                for narrow in (True, False)]
    files = {s.name: _files(s, Family((made,)), folder, parts, part)[0] for s in programs[0].sources}
    to = {number: os.path.join(folder.root, "answers") for number in range(len(made.templates))}
    return TaskOrder("group", part, parts, *programs, files, {}, "b", rows_to=to, owner="query")


def value(kind: str, choice: Random) -> Any:
    if kind in ("bigint", "int"):
        return choice.choice([None, *range(-2, 9)])
    return choice.choice(VALUES[kind] + [None] + (SPECIAL if kind == "double" else []))


def case(choice: Random) -> Case:
    """Two streams and a relation, with NULLs everywhere; the text is any query's."""
    def made(columns: Columns) -> list[Row]:
        rows = []
        for _ in range(choice.choice([0, 5, 40])):
            ts = START + choice.randrange(5 * BATCH)
            values = [
                ts if n == "ts" else choice.choice([1, 1, 2, 3, None]) if n == "k" else value(t, choice)
                for n, t in columns.items()
            ]
            rows.append((*values, (ts // BATCH + 1 + choice.choice([0, 0, 0, 1])) * BATCH))
        return rows

    related = [(choice.choice([1, 2, 3, None]), value("int", choice)) for _ in range(4)]
    streams = {name: ("ts", columns, made(columns)) for name, columns in COLUMNS.items()}
    return Case(BATCH, streams, {"r": (RELATION, [(0, related)])}, "", [START + n * BATCH for n in range(1, 7)], False)


def relatives(choice: Random, count: int) -> dict[str, str]:
    """Queries of several forms on the streams in common: windows, sources, groupings and due boundaries differ as well.
    """
    joins = choice.sample([*JOINED, *OTHER_KEYS], choice.choice([1, 2, 3, 4]))
    found: dict[str, str] = {}
    while len(found) < count:
        more = texts(choice, choice.choice([1, 1, 3]), choice.random() < 0.3, choice.choice(joins))
        found |= {f"q{len(found) + n}": sql for n, sql in enumerate(more.values())}
    if ("b", "c") in joins:      # so that all hang together, whatever else was drawn
        (both,) = texts(choice, 1, among=("a", "b")).values()
        found[f"q{len(found)}"] = both
    return found


def joins_in_common(choice: Random, count: int) -> dict[str, str]:
    """Queries of several forms that join the same windows of two streams alike, alone and with further inputs."""
    windows, found = (choice.choice(WINDOWS), choice.choice(WINDOWS)), dict[str, str]()
    kinds = [("a", "b"), ("a", "b"), ("a", "b", "r"), ("a", "b", "c", "in a row"), ("a", "b", "r", "by y")]
    while len(found) < count:
        more = texts(choice, choice.choice([1, 1, 3]), among=choice.choice(kinds), windows=windows)
        found |= {f"q{len(found) + n}": sql for n, sql in enumerate(more.values())}
    return found


def texts(choice: Random, count: int, one_sided: bool = False, among: tuple[str, ...] = (),
          windows: tuple[str, str] | None = None) -> dict[str, str]:
    """Queries of one form; selections, aggregates, HAVING and the order of what they name differ."""
    named = among or choice.choice(list(FROMS))
    clause, join = OTHER_KEYS.get(named) or (FROMS[named], JOINS[named])
    sources = tuple(alias for alias in named if alias in SELECTED)
    w, v = windows or (choice.choice(WINDOWS), choice.choice(WINDOWS))
    of = clause.format(w=w, v=v)
    groups = choice.choice(GROUPS["a" if "a" in sources else "b"] + (["b.g", "a.g, b.g"] if {"a", "b"} <= {*sources}
                                                                     else []))
    aggregates = ["COUNT(*)", *(m for s in sources for m in MEASURED[s])]
    usual = [choice.choice(aggregates) for _ in range(choice.choice([1, 3]))]
    found = {}
    for n in range(count):
        every = [c for s in sources for c in SELECTED[s]] if not one_sided else [SELECTED[s][0] for s in sources]
        chosen = choice.sample(every, min(len(every), choice.choice([0, 1, 1, 2, 3])))
        where = " AND ".join([join, *(_selected(c, choice) for c in chosen)])
        asked = usual if choice.random() < 0.7 else [choice.choice(aggregates) for _ in range(2)]
        listed = [
            *(f"{g} AS g{k}" for k, g in enumerate(groups.split(", ")) if g),
            *(f"{m} AS m{k}" for k, m in enumerate(asked))
        ]
        having = f" HAVING COUNT(*) > {choice.choice([0, 2])}" if choice.random() < 0.2 else ""
        found[f"q{n}"] = f"SELECT {', '.join(listed)} {of} WHERE {where}" + (f" GROUP BY {groups}"
                                                                             if groups else "") + having
    return found


def _selected(template: str, choice: Random) -> str:
    n = choice.randrange(-2, 9)
    return template.format(n=n, m=n + choice.choice([-1, 0, 3]))
