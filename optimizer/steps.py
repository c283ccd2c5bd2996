"""How an answer is reached at each boundary, for each way of keeping: statements over the views w{i} of optimizer.views; nothing is read or run here.

At boundary t, after p: came = members at t that were not at p, left = members at p that are not at t (DESIGN, M(t)). A change of a join of sets is
the telescoped sum Σ_i M_<i(one) ⋈ Δ_i ⋈ M_>i(other), so that each joined combination is made exactly once.
"""
from __future__ import annotations

from collections.abc import Callable

from optimizer import dialect as d
from optimizer.division import pivot
from optimizer.expr import Literal
from optimizer.join import group_columns, joined, merged_answer, out_columns
from optimizer.keep import kept_answer, writes
from optimizer.lowering import Lowering, extremes, merged, working_type
from optimizer.program import BEGINNING, Program, Step
from optimizer.query import WINDOW_NAME
from optimizer.rows import row_program
from optimizer.scalar import render
from optimizer.sets import grouped, names
from optimizer.types import STRING
from optimizer.views import View, view
from optimizer.windows import ALWAYS


def program(low: Lowering, boundaries: tuple[int, ...], previous: int, floor: int = -ALWAYS) -> Program:
    """All statements for these boundaries. `previous` is the boundary to which the state was brought, BEGINNING where it starts anew;
    `floor`, for row queries, an instant before which no row that comes now can meet an older one."""
    if low.shape.query.returns_rows:
        return row_program(low, boundaries, previous, floor)
    views = tuple(view(low, i, boundaries, previous) for i in low.inputs)
    before = (previous, *boundaries[:-1])
    make = STEPS[low.plan.keeping]
    steps = tuple(make(low, views, n, p, t) for n, (p, t) in enumerate(zip(before, boundaries)))
    sources, setup = kept_answer(low, previous) if low.plan.keeps_answer else ((), ())
    return Program(tuple(s for v in views for s in v.sources) + sources, tuple(x for v in views for x in v.setup) + setup, steps,
                   writes(low, boundaries, previous), tuple(f for v in views for f in v.before))


def _members(low: Lowering, views: tuple[View, ...], i: int, t: int, merge: bool = True, longer: int = 0) -> str:
    """S_i(t): the rows, or the merged partials, that count at t; of a window that is shorter than the input's by `longer`."""
    where = "TRUE" if views[i].exact else f"_in <= {t} AND _out >= {t + longer}"
    return f"({grouped(low, i, f'w{i}', where=where)})" if low.early(i) and merge else f"(SELECT * FROM w{i} WHERE {where})"


def _answer(low: Lowering, t: int, sql: str) -> str:
    """An answer's partials at t, in the types that they are handed over in."""
    columns = ", ".join(f"CAST({n} AS {d.name(kind, low.dialect)}) AS {n}" for n, kind in out_columns(low))
    return f"SELECT CAST({t} AS BIGINT) AS _t, {columns} FROM ({sql}) AS q"


def _answers(low: Lowering, t: int, one: Callable[[int], str]) -> str:
    """The answer at t; of several windows those that end at t, each by its name. `one` gives the partials of a window so much shorter than the longest.

    DESIGN, "Many windows, one state": what leaves the envelope at e counts in a window of length r at t iff e ≥ t + (longest − r).
    """
    query = low.shape.query
    if not query.windows:
        return _answer(low, t, one(0))
    if not query.shown(t):
        return _answer(low, t, f"SELECT * FROM ({one(0)}) AS q WHERE FALSE")
    group = f"g{query.groups.index(WINDOW_NAME)}"
    others = ", ".join(n for n, _ in out_columns(low) if n != group)
    return " UNION ALL ".join(_answer(low, t, f"SELECT {_quoted(low, w.name)} AS {group}, {others} FROM ({one(longer)}) AS q") for w, longer in query.shown(t))


def _quoted(low: Lowering, text: str) -> str:
    return render(Literal(text, STRING), low.dialect, lambda leaf: "")


def _recompute(low: Lowering, views: tuple[View, ...], n: int, p: int, t: int) -> Step:
    """The divided input is joined partial by partial: merging it first costs more than it saves, and the late aggregation merges it anyway."""
    def one(longer: int) -> str:
        return joined(low, {i: _members(low, views, i, t, merge=i != pivot(low), longer=longer) for i in low.inputs})

    return Step(t, (), _answers(low, t, one))


def _running(low: Lowering, views: tuple[View, ...], n: int, p: int, t: int) -> Step:
    """AS update (paper A, Def. 4) of each early set, by what came and what left; then the AS join (Def. 6) of all."""
    kept = [i for i in low.inputs if low.early(i) and low.window(i)]
    define = tuple((f"t{i}_{n}", _totals(low, i, f"t{i}_{n - 1}" if n else f"t{i}", p, t), True) for i in kept)
    members = {i: _with_extremes(low, i, f"t{i}_{n}", t) if i in kept else _members(low, views, i, t) for i in low.inputs}
    return Step(t, define, _answer(low, t, joined(low, members)))


def _totals(low: Lowering, i: int, before: str, p: int, t: int) -> str:
    keys = [a.name for a in low.shape.attributes[i]]
    values = names(low, i, extremes_too=False)[len(keys):]
    listed, gone = ", ".join(keys + values), ", ".join(keys + [f"-{v}" for v in values])
    changes = (f"SELECT {listed} FROM {before} UNION ALL SELECT {listed} FROM w{i} WHERE _in > {p} AND _in <= {t} AND _out >= {t} "
               f"UNION ALL SELECT {gone} FROM w{i} WHERE _in <= {p} AND _out >= {p} AND _out < {t}")
    kinds = {m.name: m for m in low.shape.own(i)}
    sums = [f"{merged(kinds[v], v, low) if v in kinds else f'CAST(sum({v}) AS BIGINT)'} AS {v}" for v in values]
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join(keys + sums)} FROM ({changes}) AS q{by} HAVING sum(c) <> 0"


def _with_extremes(low: Lowering, i: int, totals: str, t: int) -> str:
    if not extremes(low, i):
        return f"(SELECT * FROM {totals})"
    keys = [a.name for a in low.shape.attributes[i]]
    plain = names(low, i, extremes_too=False)[len(keys):]
    own = extremes(low, i)
    left = ", ".join(keys + plain + [f"CAST(NULL AS {working_type(m, low)}) AS {m.name}" for m in own])
    right = ", ".join(keys + [f"NULL AS {v}" for v in plain] + [m.name for m in own])
    both = f"(SELECT {left} FROM {totals} UNION ALL SELECT {right} FROM x{i} WHERE _in <= {t} AND _out >= {t}) AS q"
    return f"({grouped(low, i, both, having='sum(c) <> 0')})"


def _delta(low: Lowering, i: int, p: int, t: int) -> str:
    """Δ_i: what came (+1) and what left (−1)."""
    return (f"(SELECT *, CAST(1 AS BIGINT) AS _s FROM w{i} WHERE _in > {p} AND _in <= {t} AND _out >= {t} "
            f"UNION ALL SELECT *, CAST(-1 AS BIGINT) AS _s FROM w{i} WHERE _in <= {p} AND _out >= {p} AND _out < {t})")


def _changing(low: Lowering, p: int, first: int) -> list[int]:
    """The inputs that can have changed, a term each; from nothing, the one term of input `first` makes every combination."""
    return [first] if p == BEGINNING else [i for i in low.inputs if low.window(i)]


def _retract(low: Lowering, views: tuple[View, ...], n: int, p: int, t: int) -> Step:
    """Counting algorithm (paper C's IC, equation 2): the answer changes by signed joins of deltas with sets."""
    terms = []
    for i in _changing(low, p, low.inputs[-1]):
        sources = {j: _delta(low, i, p, t) if j == i else _members(low, views, j, t if j < i else p) for j in low.inputs}
        terms.append(joined(low, sources, signed=i))
    columns = ", ".join(name for name, _ in out_columns(low))
    before = f"SELECT {columns} FROM {f'o_{n - 1}' if n else 'o'}"
    changed = " UNION ALL ".join([before, *(f"SELECT {columns} FROM ({x}) AS q" for x in terms)])
    return Step(t, ((f"o_{n}", merged_answer(low, changed, having=_something(low)), True),), _answer(low, t, f"SELECT * FROM o_{n}"))


def _something(low: Lowering) -> str:
    """A task's share of a group is gone when nothing of it is left; a share, unlike a group, can have rows taken away that another share has."""
    counts = [name for name, _ in out_columns(low) if name in ("c", "e")]
    return " OR ".join([f"sum({c}) <> 0" for c in counts] + [f"COALESCE(sum({m.name}), 0) <> 0" for m in low.shape.measures if m.additive])


def _expire(low: Lowering, views: tuple[View, ...], n: int, p: int, t: int) -> Step:
    """Paper C's TC generalised: a combination is made once, by the member that comes last, and carries e = min out; what ended is not read."""
    ends = "least(" + ", ".join(f"v{i}._out" for i in low.inputs) + ")" if len(views) > 1 else "v0._out"
    terms = []
    for i in _changing(low, p, 0):
        roles = {j: (f"_in <= {p}" if j < i else f"_in > {p} AND _in <= {t}" if j == i else f"_in <= {t}") for j in low.inputs}
        terms.append(joined(low, {j: f"(SELECT * FROM w{j} WHERE {roles[j]} AND _out >= {t})" for j in low.inputs}, extra=(("_e", ends),)))
    columns = ", ".join([*(name for name, _ in out_columns(low)), "_e"])
    new = (f"d_{n}", " UNION ALL ".join(f"SELECT {columns} FROM ({x}) AS q" for x in terms), True)
    older = f"SELECT {columns} FROM {f'o_{n - 1}' if n else 'o'} WHERE _e >= {t}"
    kept = (f"o_{n}", f"{older} UNION ALL SELECT {columns} FROM d_{n}", False)
    having = "" if group_columns(low.shape) else "count(*) > 0"
    answer = _answers(low, t, lambda longer: merged_answer(low, f"SELECT * FROM o_{n}", where=f"_e >= {t + longer}", having=having))
    return Step(t, (new, kept), answer)


STEPS: dict[str, Callable[[Lowering, tuple[View, ...], int, int, int], Step]] = {
    "recompute": _recompute, "running": _running, "retract": _retract, "expire": _expire}
