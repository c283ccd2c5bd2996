"""How an answer is reached at each boundary, for each way of keeping: statements over the views w{i} of optimizer.program; nothing is read or run here.

At boundary t, after p: came = members at t that were not at p, left = members at p that are not at t (DESIGN, M(t)). A change of a join of sets is
the telescoped sum Σ_i M_<i(one) ⋈ Δ_i ⋈ M_>i(other), so that each joined combination is made exactly once.
"""
from __future__ import annotations

from optimizer import dialect as d
from optimizer.join import failing, group_columns, joined, out_columns, out_type, residual_conditions, selected_rows, tables
from optimizer.program import BEGINNING, Program, Range, Source, Step, View, Write, divided, read_columns, sets, view, within
from optimizer.sets import Lowering, extremes, grouped, instants, known, merged, names, pivot, raw, working_type
from optimizer.windows import ALWAYS

Definition = tuple[str, str, bool]


def program(low: Lowering, boundaries: tuple[int, ...], previous: int, floor: int = -ALWAYS) -> Program:
    """All statements for these boundaries. `previous` is the boundary to which the state was brought, BEGINNING where it starts anew;
    `floor`, for row queries, an instant before which no row that comes now can meet an older one."""
    if low.shape.query.returns_rows:
        return _rows(low, boundaries, previous, floor)
    views = [view(low, i, boundaries, previous) for i in range(len(low.plan.digits))]
    before = (previous, *boundaries[:-1])
    make = {"recompute": _recompute, "running": _running, "retract": _retract, "expire": _expire}[low.plan.keeping]
    steps = tuple(make(low, views, n, p, t) for n, (p, t) in enumerate(zip(before, boundaries)))
    sources, setup = _kept_answer(low, previous) if low.plan.keeps_answer else ((), ())
    return Program(tuple(s for v in views for s in v.sources) + sources, tuple(x for v in views for x in v.setup) + setup, steps, _writes(low, boundaries, previous))


def _members(low: Lowering, views: list[View], i: int, t: int) -> str:
    """S_i(t): the rows, or the merged partials, that count at t."""
    where = "TRUE" if views[i].exact else f"_in <= {t} AND _out >= {t}"
    return f"({grouped(low, i, f'w{i}', where=where)})" if low.early(i) else f"(SELECT * FROM w{i} WHERE {where})"


def _answer(low: Lowering, t: int, sql: str) -> str:
    """An answer's partials at t, in the types that they are handed over in."""
    columns = ", ".join(f"CAST({n} AS {d.name(kind, low.dialect)}) AS {n}" for n, kind in out_columns(low))
    return f"SELECT CAST({t} AS BIGINT) AS _t, {columns} FROM ({sql}) AS q"


def _recompute(low: Lowering, views: list[View], n: int, p: int, t: int) -> Step:
    return Step(t, (), _answer(low, t, joined(low, {i: _members(low, views, i, t) for i in range(len(views))})))


def _running(low: Lowering, views: list[View], n: int, p: int, t: int) -> Step:
    """AS update (paper A, Def. 4) of each early set, by what came and what left; then the AS join (Def. 6) of all."""
    kept = [i for i in range(len(views)) if low.early(i) and low.window(i)]
    define = tuple((f"t{i}_{n}", _totals(low, i, f"t{i}_{n - 1}" if n else f"t{i}", p, t), True) for i in kept)
    sets = {i: _with_extremes(low, i, f"t{i}_{n}", t) if i in kept else _members(low, views, i, t) for i in range(len(views))}
    return Step(t, define, _answer(low, t, joined(low, sets)))


def _totals(low: Lowering, i: int, before: str, p: int, t: int) -> str:
    keys = [a.name for a in low.shape.attributes[i]]
    values = [n for n in names(low, i, extremes_too=False) if n not in keys]
    gone = ", ".join(keys + [f"-{v}" for v in values])
    listed = ", ".join(keys + values)
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


def _terms(low: Lowering, p: int) -> list[int]:
    """The inputs that can have changed; from nothing, one term makes every combination (see each user for which)."""
    return [i for i in range(len(low.plan.digits)) if low.window(i)] if p >= 0 else []


def _retract(low: Lowering, views: list[View], n: int, p: int, t: int) -> Step:
    """Counting algorithm (paper C's IC, equation 2): the answer changes by signed joins of deltas with sets."""
    last = len(views) - 1
    terms = []
    for i in _terms(low, p) or [last]:
        sources = {j: _delta(low, i, p, t) if j == i else _members(low, views, j, t if j < i else p) for j in range(len(views))}
        terms.append(joined(low, sources, signed=i))
    columns = ", ".join(name for name, _ in out_columns(low))
    before = f"SELECT {columns} FROM {f'o_{n - 1}' if n else 'o'}"
    define = ((f"o_{n}", _merged_answer(low, " UNION ALL ".join([before, *(f"SELECT {columns} FROM ({x}) AS q" for x in terms)]), "TRUE", _nonzero(low)), True),)
    return Step(t, define, _answer(low, t, f"SELECT * FROM o_{n}"))


def _nonzero(low: Lowering) -> str:
    """A task's share of a group is gone when nothing of it is left."""
    return " OR ".join(["sum(c) <> 0"] + [f"COALESCE(sum({m.name}), 0) <> 0" for m in low.shape.measures if m.additive])


def _merged_answer(low: Lowering, sql: str, where: str, having: str = "") -> str:
    values = ["CAST(sum(c) AS BIGINT) AS c"] + [f"{merged(m, m.name, low)} AS {m.name}" for m in low.shape.measures]
    values += ["CAST(sum(e) AS BIGINT) AS e"] if failing(low) else []
    groups = list(group_columns(low.shape))
    having = having or ("" if groups else "count(*) > 0")
    return f"SELECT {', '.join(groups + values)} FROM ({sql}) AS q WHERE {where}" + (f" GROUP BY {', '.join(groups)}" if groups else "") + (f" HAVING {having}" if having else "")


def _expire(low: Lowering, views: list[View], n: int, p: int, t: int) -> Step:
    """Paper C's TC generalised: a combination is made once, by the member that comes last, and carries e = min out; what ended is not read."""
    inputs = range(len(views))
    ends = "least(" + ", ".join(f"v{i}._out" for i in inputs) + ")" if len(views) > 1 else "v0._out"
    terms = []
    for i in _terms(low, p) or [0]:
        roles = {j: (f"_in <= {p}" if j < i else f"_in > {p} AND _in <= {t}" if j == i else f"_in <= {t}") for j in inputs}
        terms.append(joined(low, {j: f"(SELECT * FROM w{j} WHERE {roles[j]} AND _out >= {t})" for j in inputs}, extra=(("_e", ends),)))
    columns = ", ".join(name for name, _ in out_columns(low)) + ", _e"
    new = (f"d_{n}", " UNION ALL ".join(f"SELECT {columns} FROM ({x}) AS q" for x in terms), True)
    older = f"SELECT {columns} FROM {f'o_{n - 1}' if n else 'o'} WHERE _e >= {t}"
    kept = (f"o_{n}", f"{older} UNION ALL SELECT {columns} FROM d_{n}", False)
    return Step(t, (new, kept), _answer(low, t, _merged_answer(low, f"SELECT * FROM o_{n}", f"_e >= {t}")))


def _kept_answer(low: Lowering, previous: int) -> tuple[tuple[Source, ...], tuple[Definition, ...]]:
    """The answer as of the boundary before, under the name o; each task carries on its own share, which need not be whole groups."""
    columns = out_columns(low)
    extra = ["_e"] if low.plan.keeping == "expire" else []
    kinds = {m.name: working_type(m, low) if m.home is not None or m.additive else d.name(out_type(m), low.dialect) for m in low.shape.measures}
    if previous == BEGINNING:
        nothing = [f"CAST(NULL AS {kinds.get(n) or d.name(kind, low.dialect)}) AS {n}" for n, kind in columns] + [f"CAST(NULL AS BIGINT) AS {n}" for n in extra]
        return (), (("o", f"SELECT {', '.join(nothing)} WHERE FALSE", False),)
    source = Source("ko", "state", "answer", columns=sets(low)["answer"], dealt=True)
    cast = [f"CAST({n} AS {kinds[n]}) AS {n}" if n in kinds else n for n, _ in columns] + extra
    return (source,), (("o", f"SELECT {', '.join(cast)} FROM ko", False),)


def _writes(low: Lowering, boundaries: tuple[int, ...], previous: int) -> tuple[Write, ...]:
    """State as of the last boundary: what came is added, totals are replaced."""
    schemas, last, n = sets(low), boundaries[-1], len(boundaries) - 1
    found = []
    for name, columns in schemas.items():
        i = int(name.lstrip("abcdefghijklmnopqrstuvwxyz") or -1)
        source, append = {"panes": (f"n{i} WHERE _out >= {last}", True), "extremes": (f"n{i} WHERE _out >= {last}", True), "totals": (f"t{i}_{n}", False)}.get(
            name.rstrip("0123456789"), ("", low.plan.keeping == "expire"))
        if name == "answer":
            source = _new_answers(low, n, last) if low.plan.keeping == "expire" else f"o_{n}"
        found.append(Write(name, f"SELECT {', '.join(_kept(c, kind, last, low) for c, kind in columns)} FROM {source}", columns, append, i < 0 or divided(low, i)))
    return tuple(found)


def _kept(column: str, kind, last: int, low: Lowering) -> str:  # type: ignore[no-untyped-def]
    """A column as it is stored; an entry long since is all the same."""
    if column == "_in":
        return f"CASE WHEN _in <= {last} THEN CAST(0 AS BIGINT) ELSE _in END AS _in"
    return f"CAST({column} AS {d.name(kind, low.dialect)}) AS {column}"


def _new_answers(low: Lowering, n: int, last: int) -> str:
    union = " UNION ALL ".join(f"SELECT * FROM d_{k}" for k in range(n + 1))
    keys = [*group_columns(low.shape), "_e"]
    values = ["CAST(sum(c) AS BIGINT) AS c"] + [f"{merged(m, m.name, low)} AS {m.name}" for m in low.shape.measures] + (["CAST(sum(e) AS BIGINT) AS e"] if failing(low) else [])
    return f"(SELECT {', '.join(keys + values)} FROM ({union}) AS q WHERE _e >= {last} GROUP BY {', '.join(keys)}) AS q"


def _rows(low: Lowering, boundaries: tuple[int, ...], previous: int, floor: int) -> Program:
    """Joined combinations, each once: at the first boundary that knows all its rows, if at some instant all are in their windows together."""
    sources, setup = [], []
    for i, declared in enumerate(low.shape.query.inputs):
        window = declared.window
        columns = read_columns(low, i)
        lo, hi = instants(low, i)
        ranges = (Range(-ALWAYS, boundaries[-1], window.oldest(floor + 1)),) if window and previous >= 0 else (Range(-ALWAYS, boundaries[-1]),)
        sources.append(Source(f"s{i}", "stream" if window else "relation", declared.source, ranges if window else (), columns, i == pivot(low)))
        came = d.micros(known(low), low.dialect) if window else "CAST(0 AS BIGINT)"
        setup.append((f"w{i}", raw(low, i, f"(SELECT *, {lo} AS _lo, {hi} AS _hi, {came} AS _came FROM s{i}) AS q", interval=False,
                                   where=within(low, i, ranges) if window else "TRUE").replace("SELECT ", "SELECT _lo, _hi, _came, ", 1), True))
    before = (previous, *boundaries[:-1])
    return Program(tuple(sources), tuple(setup), tuple(Step(t, (), _combinations(low, p, t)) for p, t in zip(before, boundaries)))


def _combinations(low: Lowering, p: int, t: int) -> str:
    inputs = range(len(low.plan.digits))
    listed = lambda f, c: f"{f}({', '.join(f'v{i}.{c}' for i in inputs)})" if len(inputs) > 1 else f"v0.{c}"  # noqa: E731
    where = f"{listed('greatest', '_lo')} <= {listed('least', '_hi')}"
    parts = []
    for i in _terms(low, p) or [0]:
        roles = {j: (f"_came <= {p}" if j < i else f"_came > {p} AND _came <= {t}" if j == i else f"_came <= {t}") for j in inputs}
        sources = {j: f"(SELECT * FROM w{j} WHERE {roles[j]})" for j in inputs}
        parts.append(f"SELECT CAST({t} AS BIGINT) AS _t, {', '.join(selected_rows(low))} FROM {tables(low, sources)} WHERE {where}{residual_conditions(low)}")
    return " UNION ALL ".join(parts)
