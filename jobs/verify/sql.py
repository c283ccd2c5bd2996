"""A user's query text taken apart for recomputation: windows, FROM, conditions, aggregates.

By its own rules, sharing nothing with the planner.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from jobs.verify import blocks
from jobs.verify.aggregates import AGGREGATES, aggregate
from jobs.verify.scalar import translate
from jobs.verify.text import parsed
from jobs.verify.types import Typed, kind_of, one_zero
from optimizer.errors import ForebayError

UNITS = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": 10 ** 6,
    "minute": 60 * 10 ** 6,
    "hour": 3600 * 10 ** 6,
    "day": 86400 * 10 ** 6,
    "week": 7 * 86400 * 10 ** 6
}
LENGTH = r"(\d+)\s+(microsecond|millisecond|second|minute|hour|day|week)s?"
NAME = r"(?<![\w`])(?!(?:from|join|as)\b)(?:\w+|`[^`]+`)"
TEXT = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
WINDOWED = re.compile(
    rf"{TEXT}|({NAME})(\s+(?:as\s+)?{NAME})?\s*\[\s*window\s+"
    rf"(?:(until\s+now)|{LENGTH}(?:\s+(tumbling)|\s+slide\s+{LENGTH})?|session\s+{LENGTH}(?:\s+by\s+[^\]]+)?)\s*\]",
    re.I)
CURLY = {"\u2018": "'", "\u201c": '"'}
INNER = r"(?:[^*/]|\*(?!/)|/(?!\*))*"
COMMENT = rf"--[^\n]*|/\*{INNER}(?:/\*{INNER}\*/{INNER})*\*/"
QUOTED = (r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|"""
          r"""\u2018(?:\\.|[^'\u2019\\])*['\u2019]|\u201c(?:\\.|[^"\u201d\\])*["\u201d]""")
PIECE = re.compile(rf"{COMMENT}|{QUOTED}|[\s\ufeff]+", re.S)
MARK = re.compile(r"w(\d+)__(.*)")
EVERY = re.compile(rf"\bevery\s+{LENGTH}\s*;?\s*$", re.I)


@dataclass(frozen=True)
class Table:
    """What a name in FROM means: columns by their Spark type; a relation has no event time."""

    columns: Mapping[str, str]
    event_time: str | None = None


@dataclass(frozen=True)
class Source:
    """One entry of FROM. `window` is (kind, range, slide) in microseconds; None for a relation."""

    alias: str
    name: str
    window: tuple[str, int, int] | None


@dataclass(frozen=True)
class Plain:
    """A query in parts, each DuckDB SQL: `columns` the joined rows carry, WHERE, GROUP BY keys, aggregates, HAVING over
    them, outputs by name.

    `magnitudes` has Σ|x| of the doubles behind each output, by which its error is judged. Spark SQL takes the text as
    written: of a query read for it only what the text itself says is there, no part that needs a rule (`as_written`).
    """

    sources: tuple[Source, ...]
    every: int
    returns_rows: bool
    columns: tuple[tuple[str, str], ...]
    conditions: tuple[Typed, ...]
    keys: tuple[Typed, ...]
    aggregates: tuple[Typed, ...]
    magnitudes: tuple[str, ...]
    having: Typed | None
    outputs: tuple[tuple[str, Typed], ...]
    selects: tuple[tuple[str, exp.Expr], ...]
    tree: exp.Expr

    @property
    def fallible(self) -> bool:
        """Whether something that is computed of a joined row may raise."""
        outputs = [value for _, value in self.outputs] if self.returns_rows else []
        return any(value.fallible for value in [*self.keys, *self.aggregates, *outputs])


@dataclass(frozen=True)
class _Read:
    """What a text says before any rule is asked for."""

    tree: exp.Select
    sources: tuple[Source, ...]
    every: int
    conditions: list[exp.Expr]
    scope: _Scope
    selects: list[tuple[str, exp.Expr]]
    groups: list[exp.Expr]

    @property
    def returns_rows(self) -> bool:
        having = self.tree.args.get("having")
        shown = [*self.tree.selects, *([having] if having else [])]
        return not self.groups and not any(e.find(*AGGREGATES, exp.AggFunc) for e in shown)


def _read(text: str, tables: Mapping[str, Table], batch: int) -> _Read:
    windows: list[tuple[str, int, int]] = []
    body, every = _lift(straight(text), windows)
    tree = parsed(body)
    if not isinstance(tree, exp.Select) or _is_nested(tree, windows):
        raise ForebayError("cannot-verify", "SELECTs within SELECTs and joins that are not inner have no rule here")
    sources, conditions = _from(tree, windows)
    using = [name for join in tree.args.get("joins") or [] for name in join.args.get("using") or []]
    scope = _Scope(sources, {s.alias: tables[s.name] for s in sources}, frozenset(name.name.lower() for name in using))
    selects = _selects(tree, scope)
    groups = _groups(tree, [e for _, e in selects], scope)
    return _Read(tree, sources, every or _default_every(sources, batch), conditions, scope, selects, groups)


def as_written(text: str, tables: Mapping[str, Table], batch: int) -> Plain:
    """The query for Spark SQL, which needs no rule."""
    windows: list[tuple[str, int, int]] = []
    body, every = _lift(straight(text), windows)
    tree = parsed(body)
    if _is_nested(tree, windows):
        marked = (replace(_source(table, windows), alias=table.name) for table in blocks.tables_of(tree))
        # A stream has no window of its own only where session_window groups it.
        sources = tuple(dict.fromkeys(
            replace(source, window=("landmark", 0, 0)) if source.window is None and tables[source.name].event_time
            else source for source in marked))
        return Plain(sources, every or _default_every(sources, batch), False, (), (), (), (), (), None, (), (), tree)
    read = _read(text, tables, batch)
    return Plain(read.sources, read.every, read.returns_rows, (), (), (), (), (), None, (), tuple(read.selects),
                 read.tree)


def plain(text: str, tables: Mapping[str, Table], batch: int) -> Plain:
    """The query's parts; `tables` are the streams and relations it may name.

    What has no rule here is refused (`cannot-verify`).
    """
    read = _read(text, tables, batch)
    tree, scope, selects, conditions = read.tree, read.scope, read.selects, list(read.conditions)
    above, having = _Above(scope, read.groups), tree.args.get("having")
    by_name = {name.lower(): expression for name, expression in selects}
    # A name is GROUP BY's expression if it is one, then a SELECT item, then a column.
    terms = [_inline(term, scope, by_name, above) for term in (_conjuncts(having.this.copy()) if having else [])]
    conditions += [t for t in terms if _of_rows(t, above)]
    of_groups = [t for t in terms if not _of_rows(t, above)]
    condition = translate(exp.and_(*of_groups, copy=False), above.leaf) if of_groups else None
    outputs, magnitudes = [], []
    for name, expression in selects:
        before = len(above.magnitudes)
        outputs.append((name, translate(expression, scope.leaf if read.returns_rows else above.leaf)))
        greatest = f"greatest({', '.join(above.magnitudes[before:])})"
        magnitudes.append(greatest if above.magnitudes[before:] else "CAST(NULL AS DOUBLE)")
    where = tuple(translate(c, scope.leaf) for c in conditions)
    return Plain(read.sources, read.every, read.returns_rows, tuple(scope.used), where, tuple(above.keys),
                 tuple(above.aggregates), tuple(magnitudes), condition, tuple(outputs), tuple(selects), tree)


def _is_nested(tree: exp.Expr, windows: Sequence[tuple[str, int, int]]) -> bool:
    return blocks.is_nested(tree) or any(kind == "session" for kind, _, _ in windows)


def _of_rows(term: exp.Expr, above: _Above) -> bool:
    """Spark evaluates a term of HAVING on grouping columns alone before it groups: what it drops is not computed."""
    return bool(above.keys) and not term.find(*AGGREGATES) and term.find(exp.Column) is not None


def straight(text: str) -> str:
    """Without comments and trailing semicolons, with plain quotes and blanks; what is quoted stays as it is."""
    def piece(match: re.Match[str]) -> str:
        text = match[0]
        if text[0] in CURLY:
            return CURLY[text[0]] + text[1:-1] + CURLY[text[0]]
        return text if text[0] in "'\"`" else " "

    return PIECE.sub(piece, text).rstrip("; ").lstrip()


def _micros(number: str, unit: str) -> int:
    return int(number) * UNITS[unit.lower()]


def _lift(text: str, windows: list[tuple[str, int, int]]) -> tuple[str, int]:
    """The text without windows: number i of `windows` is that of the source now called w<i>__name."""
    clause = EVERY.search(text)
    every = _micros(clause[1], clause[2]) if clause else 0

    def mark(match: re.Match[str]) -> str:
        name, alias, until, number, unit, tumbling, slide, slide_unit, gap, gap_unit = match.groups()
        if not name:      # a text, whatever is in it
            return match[0]
        if gap:
            windows.append(("session", _micros(gap, gap_unit), 0))
            return f"`w{len(windows) - 1}__{name.strip('`')}`{alias or ''}"
        kind = "landmark" if until else "tumbling" if tumbling else "hopping" if slide else "sliding"
        windows.append((kind, 0 if until else _micros(number, unit), _micros(slide, slide_unit) if slide else 0))
        return f"`w{len(windows) - 1}__{name.strip('`')}`{alias or ''}"

    return WINDOWED.sub(mark, text[:clause.start()] if clause else text), every


def _default_every(sources: tuple[Source, ...], batch: int) -> int:
    windows = [s.window for s in sources if s.window]
    slides = [w[1] if w[0] == "tumbling" else w[2] for w in windows if w[0] in ("tumbling", "hopping")]
    whole = bool(slides) and len(slides) == len(windows) and all(max(slides) % s == 0 for s in slides)
    return max(slides) if whole else batch


def _from(tree: exp.Select, windows: list[tuple[str, int, int]]) -> tuple[tuple[Source, ...], list[exp.Expr]]:
    joins = tree.args.get("joins") or []
    start = tree.args.get("from_") or tree.args["from"]
    sources, conditions = [_source(start.this, windows)], []
    for join in joins:
        sources.append(_source(join.this, windows))
        conditions += _conjuncts(join.args["on"]) if join.args.get("on") else []
        first, newest = sources[0].alias, sources[-1].alias
        for name in join.args.get("using") or []:      # all earlier ones are equal already
            conditions.append(exp.EQ(this=exp.column(name.name, table=first),
                                     expression=exp.column(name.name, table=newest)))
    where = tree.args.get("where")
    return tuple(sources), conditions + (_conjuncts(where.this) if where else [])


def _source(node: exp.Expr, windows: list[tuple[str, int, int]]) -> Source:
    marked = MARK.fullmatch(node.name)
    name = marked[2] if marked else node.name
    return Source(node.alias or name, name, windows[int(marked[1])] if marked else None)


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    return list(node.flatten()) if isinstance(node, exp.And) else [node]


class _Scope:
    """Names of the joined rows: finds a column's source and remembers which columns are used."""

    def __init__(self, sources: tuple[Source, ...], tables: Mapping[str, Table], shared: frozenset[str]) -> None:
        self.sources, self.tables, self.shared = sources, tables, shared
        self.used: dict[tuple[str, str], None] = {}

    def knows(self, name: str) -> bool:
        return any(c.lower() == name.lower() for t in self.tables.values() for c in t.columns)

    def find(self, node: exp.Column) -> tuple[str, str]:
        hits = [(s.alias, c) for s in self.sources for c in self.tables[s.alias].columns
                if c.lower() == node.name.lower() and node.table.lower() in ("", s.alias.lower())]
        if not hits or (len(hits) > 1 and node.name.lower() not in self.shared):
            raise ForebayError("unknown-column",
                               f"column {node.sql('spark')} is {'ambiguous' if hits else 'not known'}")
        return hits[0]

    def leaf(self, node: exp.Expr) -> Typed | None:
        if not isinstance(node, exp.Column):
            return None
        alias, name = self.find(node)
        self.used[(alias, name)] = None
        return Typed(quoted(f"{alias}.{name}"), kind_of(self.tables[alias].columns[name]))

    def same(self, node: exp.Expr) -> str:
        """A spelling in which equal expressions are equal."""
        return node.transform(lambda n: exp.Var(this=quoted(".".join(self.find(n))))
                              if isinstance(n, exp.Column) else n).sql("duckdb")


class _Above:
    """Names above the aggregation: grouping expressions k0, k1, … and aggregates a0, a1, …, collected as they are met.
    """

    def __init__(self, scope: _Scope, groups: list[exp.Expr]) -> None:
        self.scope, self.keys = scope, [one_zero(translate(g, scope.leaf)) for g in groups]
        self.names = {scope.same(g): Typed(f"k{i}", self.keys[i].kind) for i, g in enumerate(groups)}
        self.aggregates: list[Typed] = []
        self.magnitudes: list[str] = []

    def groups_by(self, node: exp.Expr) -> bool:
        try:
            return self.scope.same(node) in self.names
        except ForebayError:      # a name of SELECT's
            return False

    def leaf(self, node: exp.Expr) -> Typed | None:
        if isinstance(node, AGGREGATES):
            value, magnitude = aggregate(node, self.scope.leaf)
            self.aggregates.append(value)
            self.magnitudes += [magnitude] if magnitude else []
            return Typed(f"a{len(self.aggregates) - 1}", value.kind)
        return self.names.get(self.scope.same(node)) if not isinstance(node, (exp.Literal, exp.Var)) else None


def _selects(tree: exp.Select, scope: _Scope) -> list[tuple[str, exp.Expr]]:
    selects: list[tuple[str, exp.Expr]] = []
    for item in tree.selects:
        if isinstance(item, exp.Star) or isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            selects += list(_expanded(item, scope, {name.lower() for name, _ in selects}))
        else:
            selects.append((item.alias or _name(item, scope), item.unalias()))
    return selects


def _expanded(item: exp.Expr, scope: _Scope, names_before: set[str]) -> Iterator[tuple[str, exp.Expr]]:
    """All columns that a star stands for; one whose name is there already is called by its source as well."""
    names, only = set(names_before), item.table.lower() if isinstance(item, exp.Column) else ""
    for source in scope.sources:
        for name in scope.tables[source.alias].columns if only in ("", source.alias.lower()) else ():
            output = f"{source.alias}_{name}" if name.lower() in names else name
            yield output, exp.column(name, table=source.alias, quoted=True)
            names.add(name.lower())


def _name(item: exp.Expr, scope: _Scope) -> str:
    if isinstance(item, exp.Column):
        return scope.find(item)[1]
    call = item.this if isinstance(item, exp.Filter) else item
    word = _word(item)
    of_column = isinstance(call.this, exp.Column) and not isinstance(call.this.this, exp.Star)
    return f"{word}_{scope.find(call.this)[1]}" if of_column else word


def _word(item: exp.Expr) -> str:
    call = item.this if isinstance(item, exp.Filter) else item
    return re.split(r"\W", call.sql("spark").lower(), maxsplit=1)[0] or "expression"


def _groups(tree: exp.Select, selects: list[exp.Expr], scope: _Scope) -> list[exp.Expr]:
    """GROUP BY entries: an ordinal or alias of a SELECT item (a column of that name comes first), else the expression
    itself.
    """
    clause = tree.args.get("group")
    if clause and clause.args.get("all"):
        return [e for e in selects if not e.find(*AGGREGATES, exp.AggFunc)]
    aliases = {item.alias.lower(): item.unalias() for item in tree.selects if item.alias}
    groups = []
    for node in clause.expressions if clause else []:
        if isinstance(node, exp.Literal) and node.is_int:
            groups.append(selects[int(node.this) - 1])
        else:
            groups.append(_inline(node, scope, aliases) if isinstance(node, exp.Column) else node)
    return groups


def _inline(node: exp.Expr, scope: _Scope, named: Mapping[str, exp.Expr], above: _Above | None = None) -> exp.Expr:
    """SELECT aliases replaced by what they stand for: in GROUP BY where no column has that name, in HAVING where
    nothing is grouped by that expression.
    """
    if isinstance(node, AGGREGATES):
        return node
    if above and node.find(exp.Column) and not node.find(*AGGREGATES) and above.groups_by(node):
        return node
    is_alias = isinstance(node, exp.Column) and not node.table and node.name.lower() in named
    if is_alias and (above or not scope.knows(node.name)):
        return named[node.name.lower()].copy()
    for child in list(node.iter_expressions()):
        child.replace(_inline(child, scope, named, above))
    return node


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _nested_spark_text(query: Plain, replaced: Mapping[str, str], columns_of: Callable[[str], list[str]],
                       ended: Callable[[str], tuple[str, str] | None]) -> str:
    def rows_of(table: exp.Table) -> exp.Expr:
        return sqlglot.parse_one(replaced[table.name], read="databricks")

    tree = blocks.with_rows(query.tree, rows_of, columns_of, ended)
    if isinstance(tree, exp.Select) and not any(isinstance(item, exp.Star) or isinstance(item.this, exp.Star)
                                                for item in tree.selects):
        tree.set("expressions", [item if item.alias or isinstance(item, exp.Column) else
                                 exp.alias_(item, _word(item), quoted=True) for item in tree.selects])
    return tree.transform(_rows_counted).sql("spark")


def spark_text(query: Plain, replaced: Mapping[str, str], extra: list[str],
               columns_of: Callable[[str], list[str]] = lambda name: [],
               ended: Callable[[str], tuple[str, str] | None] = lambda name: None) -> str:
    """The user's own statement for Spark SQL: each FROM entry becomes the subquery `replaced[alias]`, `extra`
    conditions join WHERE.
    """
    if _is_nested(query.tree, [source.window for source in query.sources if source.window]):
        return _nested_spark_text(query, replaced, columns_of, ended)
    tree = query.tree.copy()
    entries = [tree.args.get("from_") or tree.args["from"], *(tree.args.get("joins") or [])]
    for entry, source in zip(entries, query.sources):
        rows = sqlglot.parse_one(replaced[source.alias], read="databricks")
        entry.this.replace(exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier(source.alias))))
    assert isinstance(tree, exp.Select)
    for condition in extra:
        tree = tree.where(sqlglot.parse_one(condition, read="databricks"))
    tree.set("expressions", [exp.alias_(e.copy(), name, quoted=True) for name, e in query.selects])
    return tree.transform(_rows_counted).sql("spark")


def _rows_counted(node: exp.Expr) -> exp.Expr:
    """COUNT(alias.*) counts rows; Spark's own would leave out those with a NULL."""
    stars = isinstance(node, exp.Count) and isinstance(node.this, exp.Column) and isinstance(node.this.this, exp.Star)
    return exp.Count(this=exp.Star()) if stars else node
