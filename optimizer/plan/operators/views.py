"""V_i: the members of input i that any step of a program asks for, under the name w{i}, from the rows that came and what state holds; no join here."""
from __future__ import annotations

from dataclasses import dataclass, replace

from optimizer.expression import dialect as d
from optimizer.expression.types import BIGINT, TIMESTAMP
from optimizer.plan.division import ahead, by_key, dealt, share
from optimizer.plan.lowering import Lowering, extremes
from optimizer.plan.membership import INTERVAL, Counting, Range, inside, within
from optimizer.plan.operators.levels import filled, kept_rows
from optimizer.plan.operators.sets import grouped, names, raw, stored_columns, working
from optimizer.plan.operators.state import extreme_columns
from optimizer.plan.program import BEGINNING, Columns, Definition, Fragment, Source
from optimizer.query.shape import raw_columns
from optimizer.query.windows import ALWAYS


@dataclass(frozen=True)
class View:
    """`exact` when w{i} is just W_i of the only boundary."""

    sources: tuple[Source, ...]
    setup: tuple[Definition, ...]
    exact: bool = False
    before: tuple[Fragment, ...] = ()


def read_columns(low: Lowering, i: int) -> Columns:
    """The stored columns that the SQL over input i names."""
    declared = low.shape.query.inputs[i]
    own = {c.name: c.type for c in raw_columns(low.shape, i)}
    return tuple({**own, **({declared.event_time or "": TIMESTAMP, "_boundary": TIMESTAMP} if declared.is_stream else {})}.items())


def view(low: Lowering, i: int, boundaries: tuple[int, ...], previous: int) -> View:
    declared, columns = low.shape.query.inputs[i], read_columns(low, i)
    if not declared.is_stream:
        rows = raw(low, i, f"s{i}")
        keyed = grouped(low, i, f"({rows}) AS q", ("_in", "_out")) if low.early(i) else rows
        return View((Source(f"s{i}", "relation", declared.source, columns=columns),), ((f"w{i}", keyed, True),))
    from_rows = not low.early(i) or _from_rows(low)
    exact = from_rows and len(boundaries) == 1 and low.plan.keeping == "recompute" and not low.shape.query.windows
    assert declared.window is not None
    ranges = (inside(declared.window, boundaries[0]),) if exact else _needed(low, i, boundaries, previous)
    source, rows, before = _rows(low, i, Source(f"s{i}", "stream", declared.source, ranges, columns, dealt(low, i)), interval=not exact)
    if from_rows:
        return View((source,), ((f"w{i}", rows, not exact),), exact, before)
    made = _totals(low, i, source, rows, previous) if low.plan.keeping == "running" else _panes(low, i, source, rows, boundaries, previous)
    if low.plan.levels:
        more, levels = filled(low, boundaries, previous, dealt(low, i))
        made = replace(made, sources=made.sources + more, setup=made.setup + levels)
    return replace(made, before=before)


def _rows(low: Lowering, i: int, stream: Source, interval: bool) -> tuple[Source, str, tuple[Fragment, ...]]:
    """Stream i's rows as partials of count 1; or, where they cross an exchange, as what the tasks sent: the same columns, merged."""
    stamp = low.shape.query.inputs[i].event_time
    if stamp not in {c.name for c in raw_columns(low.shape, i)}:
        window = low.window(i)
        stream = replace(stream, stamp=stamp, counting=Counting(window, low.shape.query.every) if interval and window else None)
    where = within(low, i, stream.ranges)
    if not ahead(low, i):
        return stream, raw(low, i, f"s{i}", interval=interval, where=where), ()
    times = (*INTERVAL, ("_known", BIGINT)) if interval else ()
    columns, whole = stored_columns(low, i) + times, replace(low, parts=1, part=0)
    rows = raw(whole, i, f"s{i}", interval=interval, where=where)
    sent = grouped(whole, i, f"({rows}) AS q", tuple(n for n, _ in times)) if low.early(i) else rows
    to = f", {d.part_of(_common(low, i), low.parts, low.dialect)} AS _part" if by_key(low) else ""
    listed = ", ".join(f"CAST({n} AS {d.name(kind, low.dialect)}) AS {n}" for n, kind in columns)
    fragment = Fragment(f"e{i}", replace(stream, dealt=True), f"SELECT {listed}{to} FROM ({sent}) AS q", columns, bool(to))
    received = ", ".join([*working(low, i), *(n for n, _ in times)])
    return Source(f"e{i}", "exchange", stream.of, columns=columns), f"SELECT {received} FROM e{i}", (fragment,)


def _common(low: Lowering, i: int) -> list[str]:
    common = low.shape.common_key()
    assert common is not None
    return [common[i].name]


def _from_rows(low: Lowering) -> bool:
    """Whether early aggregated sets are made from the window's rows each time."""
    return low.plan.keeping == "recompute" and low.plan.layout == "raw"


def _needed(low: Lowering, i: int, boundaries: tuple[int, ...], previous: int) -> tuple[Range, ...]:
    """Raw rows that the program reads of stream i: no more than what came or leaves where state holds the rest."""
    window, last, since = low.window(i), boundaries[-1], max(previous, 0)
    assert window is not None
    anew = previous == BEGINNING or low.plan.keeping in ("recompute", "expire")
    whole = Range(-ALWAYS, last, window.oldest(boundaries[0] if anew else since))
    if not low.early(i) or previous == BEGINNING or _from_rows(low):
        return (whole,)
    came = Range(previous, last)
    if low.plan.keeping != "running":
        return (came,)
    entering = (Range(-ALWAYS, last, since // window.slide * window.slide),) if window.kind == "hopping" else ()
    leaving = () if window.kind == "landmark" else (Range(-ALWAYS, last, window.oldest(since), window.oldest(last)),)
    return (came, *entering, *leaving)


def _panes(low: Lowering, i: int, stream: Source, rows: str, boundaries: tuple[int, ...], previous: int) -> View:
    """What came, early aggregated by interval (n{i}), and what state holds of older boundaries."""
    new = (f"n{i}", grouped(low, i, f"({rows}) AS q", ("_in", "_out"), where="_in <= _out"), True)
    columns = ", ".join([*names(low, i), "_in", "_out"])
    if previous == BEGINNING:
        return View((stream,), (new, (f"w{i}", f"SELECT {columns} FROM n{i}", False)))
    state = Source(f"k{i}", "state", f"panes{i}", columns=stored_columns(low, i) + INTERVAL, dealt=dealt(low, i))
    since = previous if low.plan.keeping == "retract" else boundaries[0]
    kept = kept_rows(low, None, since) if low.plan.levels else f"SELECT {', '.join(working(low, i))}, _in, _out FROM k{i} WHERE _out >= {since}{_own(low, i)}"
    return View((stream, state), (new, (f"w{i}", f"SELECT {columns} FROM n{i} UNION ALL {kept}", len(boundaries) > 1 or low.plan.keeps_answer)))


def _totals(low: Lowering, i: int, stream: Source, rows: str, previous: int) -> View:
    """Rows that came or left (w{i}), totals as of the boundary before (t{i}), and extremes by interval (x{i})."""
    changed = (f"w{i}", rows, True)
    if previous == BEGINNING:
        nothing = (f"t{i}", f"SELECT {', '.join(names(low, i, extremes_too=False))} FROM w{i} WHERE FALSE", False)
        return View((stream,), (changed, nothing, *_extremes(low, i, previous)))
    columns = stored_columns(low, i, extremes_too=False)
    kept = (f"t{i}", f"SELECT {', '.join(working(low, i, extremes_too=False))} FROM k{i} WHERE TRUE{_own(low, i)}", False)
    older = (Source(f"y{i}", "state", f"extremes{i}", columns=extreme_columns(low, i)),) if extremes(low, i) else ()
    return View((stream, Source(f"k{i}", "state", f"totals{i}", columns=columns), *older), (changed, kept, *_extremes(low, i, previous)))


def _extremes(low: Lowering, i: int, previous: int) -> tuple[Definition, ...]:
    """Those of what came (n{i}), and with them those that state holds (x{i})."""
    own = extremes(low, i)
    if not own:
        return ()
    keys = [*(a.name for a in low.shape.attributes[i]), "_in", "_out"]
    values = [f"{m.kind}({m.name}) AS {m.name}" for m in own]
    came = f"SELECT {', '.join(keys + values)} FROM w{i} WHERE _known > {previous} AND _in <= _out GROUP BY {', '.join(keys)}"
    columns = ", ".join(n for n, _ in extreme_columns(low, i))
    older = "" if previous == BEGINNING else f" UNION ALL SELECT {columns} FROM y{i} WHERE _out >= {previous}{_own(low, i)}"
    return (f"n{i}", came, True), (f"x{i}", f"SELECT {columns} FROM n{i}{older}", False)


def _own(low: Lowering, i: int) -> str:
    mine = share(low, i, [a.name for a in low.shape.attributes[i]])
    return f" AND {mine}" if mine else ""
