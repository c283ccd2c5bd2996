"""GROUP BY ROLLUP, CUBE and GROUPING SETS as the lists of expressions that they stand for."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

from sqlglot import exp

from optimizer.errors import ForebayError

MOST_SETS = 64
Nodes = tuple[exp.Expr, ...]
SEVERAL = (exp.Rollup, exp.Cube, exp.GroupingSets)


def grouping_sets_of(select: exp.Expr) -> list[Nodes]:
    """The sets of expressions that a SELECT groups by, one after another; none where it groups in one way.

    `GROUP BY a, ROLLUP(b, c)` is (a, b, c), (a, b) and (a).
    """
    clause = select.args.get("group")
    if clause is None:
        return []
    trailing = [(part, node) for part in ("rollup", "cube", "grouping_sets") for node in clause.args.get(part) or []]
    if not trailing and not any(isinstance(node, SEVERAL) for node in clause.expressions):
        return []
    if trailing:      # GROUP BY a, b WITH ROLLUP; GROUP BY a, b GROUPING SETS (…)
        (_, node), = trailing
        own = [(expression,) for expression in clause.expressions]
        choices = [_sets(node) if node.expressions else _of_kind(node, own)]
    else:
        choices = [_sets(node) if isinstance(node, SEVERAL) else [_nodes(node)] for node in clause.expressions]
    sets = [tuple(node for nodes in chosen for node in nodes) for chosen in product(*choices)]
    if len(sets) > MOST_SETS:
        raise ForebayError("query-too-deep", f"GROUP BY has {len(sets)} grouping sets, at most {MOST_SETS} can be",
                           hint="name those that you need: GROUPING SETS ((a, b), (a))")
    return sets


def _sets(node: exp.Expr) -> list[Nodes]:
    if any(isinstance(inner, SEVERAL) for inner in node.expressions):
        raise ForebayError("not-supported", "grouping sets within grouping sets are not accepted",
                           hint="write them out: GROUPING SETS ((a, b), (a), ())")
    return _of_kind(node, [_nodes(inner) for inner in node.expressions])


def _of_kind(node: exp.Expr, parts: Sequence[Nodes]) -> list[Nodes]:
    if isinstance(node, exp.GroupingSets):
        return list(parts)
    if isinstance(node, exp.Rollup):
        chosen = [parts[:count] for count in range(len(parts), -1, -1)]
    else:
        chosen = [list(some) for count in range(len(parts), -1, -1) for some in combinations(parts, count)]
    return [tuple(expression for part in some for expression in part) for some in chosen]


def _nodes(node: exp.Expr) -> Nodes:
    """(a, b) is two expressions, (a) and a are one, () is none."""
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    return (node.this,) if isinstance(node, exp.Paren) else (node,)
