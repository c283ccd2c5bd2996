"""A plan as the statements one task runs for a run of boundaries: sources to read, temporary relations, answers to hand over, state to write.

Everything is text and values; who runs them (a task's engine, Spark SQL, a unit test) only replaces the names of the sources by files.
Statements of a step see the relations of earlier steps, so several boundaries cost one pass over the sources.
"""
from __future__ import annotations

from dataclasses import dataclass, field

from optimizer import dialect as d
from optimizer.join import out_columns
from optimizer.sets import INTERVAL, Lowering, extremes, grouped, inside, known, names, pivot, quoted, raw, share, stored_columns, working
from optimizer.shape import raw_columns
from optimizer.types import BIGINT, TIMESTAMP, Type
from optimizer.windows import ALWAYS

BEGINNING = -1          # "the boundary before" of a state that does not exist yet


@dataclass(frozen=True)
class Range:
    """Rows with after < `_boundary` ≤ upto and since ≤ event time < until; microseconds."""

    after: int
    upto: int
    since: int = -ALWAYS
    until: int = ALWAYS


@dataclass(frozen=True)
class Source:
    """What a name in the SQL stands for: a stream's rows in any of the ranges, a relation's version, or a state set (`columns` is its schema).

    `dealt`: each task reads its own share of the files; else every task reads all of them.
    """

    name: str
    kind: str
    of: str
    ranges: tuple[Range, ...] = ()
    columns: tuple[tuple[str, Type], ...] = ()
    dealt: bool = False


@dataclass(frozen=True)
class Write:
    """A state set to write: `append` adds a file, else the new file replaces the set. Only task 0 writes sets that every task computes."""

    set: str
    sql: str
    columns: tuple[tuple[str, Type], ...]
    append: bool
    every_part: bool


@dataclass(frozen=True)
class Step:
    """One boundary: relations to define, then the answer's partials (or rows)."""

    boundary: int
    define: tuple[tuple[str, str, bool], ...]
    answer: str


@dataclass(frozen=True)
class Program:
    """`setup` and `Step.define` are (name, SQL, materialised): a view where one reader follows, else a temporary table."""

    sources: tuple[Source, ...]
    setup: tuple[tuple[str, str, bool], ...]
    steps: tuple[Step, ...]
    writes: tuple[Write, ...] = field(default=())


def sets(low: Lowering) -> dict[str, tuple[tuple[str, Type], ...]]:
    """State sets the plan keeps between boundaries, with their schemas."""
    found: dict[str, tuple[tuple[str, Type], ...]] = {}
    for i, stream in enumerate(low.shape.query.inputs):
        if not low.early(i) or not stream.is_stream:
            continue
        if low.plan.keeping == "running":
            found[f"totals{i}"] = stored_columns(low, i, extremes_too=False)
            if extremes(low, i):
                found[f"extremes{i}"] = extreme_columns(low, i)
        elif low.plan.keeping != "recompute" or low.plan.layout == "panes":
            found[f"panes{i}"] = stored_columns(low, i) + INTERVAL
    if low.plan.keeps_answer:
        found["answer"] = out_columns(low) + ((("_e", BIGINT),) if low.plan.keeping == "expire" else ())
    return found


def extreme_columns(low: Lowering, i: int) -> tuple[tuple[str, Type], ...]:
    return tuple((a.name, a.expr.type) for a in low.shape.attributes[i]) + tuple((m.name, m.type) for m in extremes(low, i)) + INTERVAL


def dealt(low: Lowering, i: int) -> bool:
    """Whether tasks share input i file by file: partials add up wherever they are, but what is subtracted has to meet its sum again (see sets.share)."""
    return low.plan.exchange == "slice" and i == pivot(low) and low.plan.keeping in ("recompute", "expire")


def divided(low: Lowering, i: int) -> bool:
    """Whether a task holds only its part of input i (else all of it, as every task does)."""
    return low.plan.exchange == "partition" or i == pivot(low)


def read_columns(low: Lowering, i: int) -> tuple[tuple[str, Type], ...]:
    """The stored columns that the SQL over input i names."""
    declared = low.shape.query.inputs[i]
    own = {c.name: c.type for c in raw_columns(low.shape, i)}
    return tuple({**own, **({declared.event_time or "": TIMESTAMP, "_boundary": TIMESTAMP} if declared.is_stream else {})}.items())


def needed(low: Lowering, i: int, boundaries: tuple[int, ...], previous: int) -> tuple[Range, ...]:
    """Raw rows that the program reads of stream i: no more than what came or leaves where state holds the rest."""
    window, last, since = low.window(i), boundaries[-1], max(previous, 0)
    assert window is not None
    anew = previous < 0 or low.plan.keeping in ("recompute", "expire")
    whole = Range(-ALWAYS, last, window.oldest(boundaries[0] if anew else since))
    if not low.early(i) or previous < 0 or (low.plan.keeping == "recompute" and low.plan.layout == "raw"):
        return (whole,)
    came = Range(previous, last)
    if low.plan.keeping != "running":
        return (came,)
    entering = (Range(-ALWAYS, last, since // window.slide * window.slide),) if window.kind == "hopping" else ()
    leaving = () if window.kind == "landmark" else (Range(-ALWAYS, last, window.oldest(since), window.oldest(last)),)
    return (came, *entering, *leaving)


def within(low: Lowering, i: int, ranges: tuple[Range, ...]) -> str:
    """The rows of the ranges, said to the engine as well: files hold more than what is needed of them."""
    stamp = quoted(low.shape.query.inputs[i].event_time or "", low.dialect)

    def one(r: Range) -> str:
        terms = [f"{known(low)} <= {d.instant(r.upto, low.dialect)}"] + ([f"{known(low)} > {d.instant(r.after, low.dialect)}"] if r.after > 0 else [])
        terms += [f"{stamp} >= {d.instant(r.since, low.dialect)}"] if r.since > 0 else []
        return " AND ".join(terms + ([f"{stamp} < {d.instant(r.until, low.dialect)}"] if r.until < ALWAYS else []))

    return "(" + " OR ".join(f"({one(r)})" for r in ranges) + ")"


@dataclass(frozen=True)
class View:
    """V_i: the members of input i that any step asks for, under the name w{i}; `exact` when it is just W_i of the only boundary."""

    sources: tuple[Source, ...]
    setup: tuple[tuple[str, str, bool], ...]
    exact: bool = False


def view(low: Lowering, i: int, boundaries: tuple[int, ...], previous: int) -> View:
    declared = low.shape.query.inputs[i]
    columns = read_columns(low, i)
    if not declared.is_stream:
        made = raw(low, i, f"s{i}")
        keyed = grouped(low, i, f"({made}) AS q", ("_in", "_out")) if low.early(i) else made
        return View((Source(f"s{i}", "relation", declared.source, columns=columns),), ((f"w{i}", keyed, True),))
    ranges = needed(low, i, boundaries, previous)
    stream = Source(f"s{i}", "stream", declared.source, ranges, columns, dealt(low, i))
    if not low.early(i) or (low.plan.layout == "raw" and low.plan.keeping == "recompute"):
        if len(boundaries) == 1 and low.plan.keeping == "recompute":
            return View((stream,), ((f"w{i}", raw(low, i, f"s{i}", interval=False, where=inside(low, i, boundaries[0])), False),), exact=True)
        return View((stream,), ((f"w{i}", raw(low, i, f"s{i}", where=within(low, i, ranges)), True),))
    rows = raw(low, i, f"s{i}", where=within(low, i, ranges))
    return _totals_view(low, i, stream, rows, previous) if low.plan.keeping == "running" else _panes_view(low, i, stream, rows, boundaries, previous)


def _panes_view(low: Lowering, i: int, stream: Source, rows: str, boundaries: tuple[int, ...], previous: int) -> View:
    """What came, early aggregated by interval (n{i}), and what state holds of older boundaries."""
    new = (f"n{i}", grouped(low, i, f"({rows}) AS q", ("_in", "_out"), where="_in <= _out"), True)
    columns = ", ".join([*names(low, i), "_in", "_out"])
    if previous < 0:
        return View((stream,), (new, (f"w{i}", f"SELECT {columns} FROM n{i}", False)))
    state = Source(f"k{i}", "state", f"panes{i}", columns=stored_columns(low, i) + INTERVAL, dealt=dealt(low, i))
    since = previous if low.plan.keeping == "retract" else boundaries[0]
    kept = f"SELECT {', '.join(working(low, i))}, _in, _out FROM k{i} WHERE _out >= {since}{_own(low, i)}"
    return View((stream, state), (new, (f"w{i}", f"SELECT {columns} FROM n{i} UNION ALL {kept}", len(boundaries) > 1 or low.plan.keeps_answer)))


def _totals_view(low: Lowering, i: int, stream: Source, rows: str, previous: int) -> View:
    """Rows that came or left (w{i}), totals as of the boundary before (t{i}), and extremes by interval (x{i})."""
    plain = names(low, i, extremes_too=False)
    setup = [(f"w{i}", rows, True)]
    kept = f"SELECT {', '.join(working(low, i, extremes_too=False))} FROM k{i} WHERE TRUE{_own(low, i)}" if previous >= 0 else f"SELECT {', '.join(plain)} FROM w{i} WHERE FALSE"
    setup.append((f"t{i}", kept, False))
    sources = [stream] + ([Source(f"k{i}", "state", f"totals{i}", columns=stored_columns(low, i, extremes_too=False))] if previous >= 0 else [])
    if extremes(low, i):
        columns = ", ".join(n for n, _ in extreme_columns(low, i))
        setup.append((f"n{i}", _new_extremes(low, i, previous), True))
        old = f" UNION ALL SELECT {columns} FROM y{i} WHERE _out >= {previous}{_own(low, i)}" if previous >= 0 else ""
        setup.append((f"x{i}", f"SELECT {columns} FROM n{i}{old}", False))
        sources += [Source(f"y{i}", "state", f"extremes{i}", columns=extreme_columns(low, i))] if previous >= 0 else []
    return View(tuple(sources), tuple(setup))


def _new_extremes(low: Lowering, i: int, previous: int) -> str:
    keys = [*(a.name for a in low.shape.attributes[i]), "_in", "_out"]
    values = [f"{m.kind}({m.name}) AS {m.name}" for m in extremes(low, i)]
    return f"SELECT {', '.join(keys + values)} FROM w{i} WHERE _known > {previous} AND _in <= _out GROUP BY {', '.join(keys)}"


def _own(low: Lowering, i: int) -> str:
    mine = share(low, i, [a.name for a in low.shape.attributes[i]])
    return f" AND {mine}" if mine else ""
