"""The one pass over an input's rows that notes for all queries what they select: SQL of marks; rows that nobody selects
end here, nothing is merged yet.

An interval is looked up by value: each distinct value is classed once, and rows find theirs by a hash join, several
times faster than comparing each row.
"""
from __future__ import annotations

from functools import lru_cache

from optimizer.expression import dialect as d
from optimizer.expression.expr import Call, Column, Expr, Literal
from optimizer.expression.scalar import literal, safe
from optimizer.plan.lowering import Name
from optimizer.sharing.marks import WORD, Marks, Scale

VALUE = "_value"


def noted(marks: Marks, dialect: str) -> tuple[str, ...]:
    """What a raw row carries for its marks: the values that scales compare, and the words."""
    return (*(f"{safe(s.expr, dialect, _stored(dialect))} AS _v{k}" for k, s in enumerate(marks.scales)),
            *_words(marks, dialect))


def dictionary(scale: Scale, since: int, until: int, rows: str, dialect: str) -> str:
    """Each distinct value among `rows` with its interval, of those from `since` up to `until`."""
    value = safe(scale.expr, dialect, _stored(dialect))
    number = (f"CASE WHEN d.{VALUE} IS NULL THEN {len(scale.cuts) + 1} WHEN k.{VALUE} IS NULL THEN 0 WHEN d.{VALUE} = "
              f"k.{VALUE} THEN k.there ELSE k.beyond END")
    values = (f"(SELECT DISTINCT {value} AS {VALUE} FROM {rows}) AS d ASOF LEFT JOIN ({_steps(scale, dialect)}) AS k "
              f"ON d.{VALUE} >= k.{VALUE}")
    return f"SELECT * FROM (SELECT d.{VALUE}, {number} AS _r FROM {values}) AS c WHERE _r >= {since} AND _r < {until}"


def marked(marks: Marks, rows: str, dictionaries: tuple[str, ...]) -> str:
    """Rows that carry what is noted, with their marks; those outside every choice's intervals are left out."""
    columns = "".join(f", d{k}._r AS _r{k}" for k in range(len(marks.scales)))
    joins = "".join(
        f" JOIN {name} AS d{k} ON q._v{k} IS NOT DISTINCT FROM d{k}.{VALUE}" for k, name in enumerate(dictionaries))
    return f"(SELECT q.*{columns} FROM ({rows}) AS q{joins}) AS marked"


def _stored(dialect: str) -> Name:
    """Leaves are stored columns."""
    def name(leaf: Expr) -> str:
        assert isinstance(leaf, Column)
        return d.identifier(leaf.name, dialect)
    return name


@lru_cache(maxsize=64)
def _words(marks: Marks, dialect: str) -> tuple[str, ...]:
    words = []
    for k in range(marks.words):
        bits = enumerate(marks.bits[k * WORD:(k + 1) * WORD])
        terms = [
            f"CASE WHEN {safe(bit, dialect, _stored(dialect))} THEN CAST({1 << n} AS BIGINT) ELSE 0 END"
            for n, bit in bits
        ]
        words.append(f"{' + '.join(terms)} AS _w{k}")
    return tuple(words)


@lru_cache(maxsize=64)
def _steps(scale: Scale, dialect: str) -> str:
    """The constants of the cuts, each with the interval of a value that equals it, and of one beyond it: the cuts that
    it is not below.
    """
    places: dict[Literal, tuple[int, int]] = {}
    for number, cut in enumerate(scale.cuts, 1):
        assert isinstance(cut, Call) and isinstance(cut.args[1], Literal)
        there = number if cut.function == "lt" else places.get(cut.args[1], (number - 1, 0))[0]
        places[cut.args[1]] = (there, number)
    kind = d.name(scale.expr.type, dialect)
    rows = []
    for constant, (there, beyond) in places.items():
        rows.append(f"(CAST({literal(constant, dialect)} AS {kind}), {there}, {beyond})")
    return f"SELECT * FROM (VALUES {', '.join(rows)}) AS listed({VALUE}, there, beyond)"
