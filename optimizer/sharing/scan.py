"""The one pass over an input's rows that notes for all queries what they select: SQL of marks; rows that nobody selects end here, nothing is merged yet.

An interval is looked up by value: each distinct value is classed once, by halving the cuts, and rows find theirs by a hash join, several times faster
than halving for each row.
"""
from __future__ import annotations

from functools import lru_cache

from optimizer.expr import Call, Column, Expr
from optimizer.lowering import Name, quoted
from optimizer.scalar import safe
from optimizer.sharing.marks import WORD, Marks, Scale
from optimizer.types import BOOLEAN

VALUE = "_value"


def noted(marks: Marks, dialect: str) -> tuple[str, ...]:
    """What a raw row carries for its marks: the values that scales compare, and the words."""
    return (*(f"{safe(s.expr, dialect, _stored(dialect))} AS _v{k}" for k, s in enumerate(marks.scales)), *_words(marks, dialect))


def dictionary(scale: Scale, since: int, until: int, rows: str, dialect: str) -> str:
    """Each distinct value among `rows` with its interval, of those from `since` up to `until`."""
    value = safe(scale.expr, dialect, _stored(dialect))
    return (f"SELECT * FROM (SELECT {VALUE}, {_interval(scale, dialect)} AS _r FROM (SELECT DISTINCT {value} AS {VALUE} FROM {rows}) AS d) AS c "
            f"WHERE _r >= {since} AND _r < {until}")


def marked(marks: Marks, rows: str, dictionaries: tuple[str, ...]) -> str:
    """Rows that carry what is noted, with their marks; those outside every choice's intervals are left out."""
    columns = "".join(f", d{k}._r AS _r{k}" for k in range(len(marks.scales)))
    joins = "".join(f" JOIN {name} AS d{k} ON q._v{k} IS NOT DISTINCT FROM d{k}.{VALUE}" for k, name in enumerate(dictionaries))
    return f"(SELECT q.*{columns} FROM ({rows}) AS q{joins}) AS marked"


def _stored(dialect: str) -> Name:
    """Leaves are stored columns."""
    def name(leaf: Expr) -> str:
        assert isinstance(leaf, Column)
        return quoted(leaf.name, dialect)
    return name


@lru_cache(maxsize=64)
def _words(marks: Marks, dialect: str) -> tuple[str, ...]:
    found = []
    for k in range(marks.words):
        bits = enumerate(marks.bits[k * WORD:(k + 1) * WORD])
        terms = [f"CASE WHEN {safe(bit, dialect, _stored(dialect))} THEN CAST({1 << n} AS BIGINT) ELSE 0 END" for n, bit in bits]
        found.append(f"{' + '.join(terms)} AS _w{k}")
    return tuple(found)


@lru_cache(maxsize=64)
def _interval(scale: Scale, dialect: str) -> str:
    """A value's interval by halving the cuts."""
    below = [safe(cut, dialect, _stored(dialect)) for cut in map(_of_value, scale.cuts)]

    def between(since: int, until: int) -> str:
        if since == until:
            return str(since)
        middle = (since + until) // 2
        return f"CASE WHEN {below[middle]} THEN {between(since, middle)} ELSE {between(middle + 1, until)} END"

    return f"CASE WHEN {VALUE} IS NULL THEN {len(scale.cuts) + 1} ELSE {between(0, len(scale.cuts))} END"


def _of_value(cut: Expr) -> Expr:
    """The same cut of the value itself."""
    assert isinstance(cut, Call)
    expr, constant = cut.args
    return Call(cut.function, (Column(0, VALUE, expr.type), constant), BOOLEAN)
