"""Random texts of several SELECTs over two streams and a relation: derived tables, WITH, subqueries, joins of every
kind, set operations, window functions, LIMIT; as plain data, drawn by a seeded choice.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from random import Random

from tests.streams import SECOND, Case, Columns, Row

BATCH = 10 * SECOND
COLUMNS: Columns = {"ts": "timestamp", "k": "bigint", "s": "string", "x": "int", "d": "decimal(10,2)"}
RELATION: Columns = {"k": "bigint", "name": "string"}
WINDOWS = ("WINDOW 20 SECONDS", "WINDOW 30 SECONDS", "WINDOW 20 SECONDS TUMBLING", "WINDOW 40 SECONDS SLIDE 10 SECONDS",
           "WINDOW UNTIL NOW")
JOINS = ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
NUMBERS = ("bigint", "int", "decimal(10,2)")


@dataclass
class Text:
    """One query while it is drawn: `columns` of what is in FROM, by type."""

    choice: Random
    ctes: list[str] = field(default_factory=list)
    names: int = 0

    def name(self, start: str) -> str:
        self.names += 1
        return f"{start}{self.names}"

    # --- entries of FROM -------------------------------------------------------------------------------------------

    def item(self, depth: int) -> tuple[str, str, Columns]:
        """Its text, its alias, its columns."""
        alias, kind = self.name("t"), self.choice.random()
        if depth == 0 or kind < 0.55:
            stream, window = self.choice.choice("ab"), self.choice.choice(WINDOWS)
            return f"{stream} AS {alias} [{window}]", alias, dict(COLUMNS)
        if kind < 0.7:
            text, columns = self.rows(depth - 1)
        else:
            text, columns = self.grouped(depth - 1)
        if self.choice.random() < 0.3:
            name = self.name("w")
            self.ctes.append(f"{name} AS ({text})")
            return f"{name} AS {alias}", alias, columns
        return f"({text}) AS {alias}", alias, columns

    def source(self, depth: int) -> tuple[str, dict[str, str]]:
        """FROM, and what can be named above it with its type."""
        text, alias, columns = self.item(depth)
        scope = {f"{alias}.{name}": kind for name, kind in columns.items()}
        for _ in range(self.choice.choice([0, 0, 1, 1, 2])):
            if self.choice.random() < 0.15:
                other, more = f"r AS {self.name('r')}", dict(RELATION)
                second = other.rpartition(" ")[2]
            else:
                other, second, more = self.item(depth)
            pair = self.equality(scope, {f"{second}.{name}": kind for name, kind in more.items()})
            if pair is None:
                continue
            kind = self.choice.choice((*JOINS, "LEFT SEMI JOIN", "LEFT ANTI JOIN"))
            further = {f"{second}.{name}": kind for name, kind in more.items()}
            extra = f" AND {self.condition({**scope, **further})}" if self.choice.random() < 0.2 else ""
            text += f" {kind} {other} ON {pair}{extra}"
            scope |= {} if "SEMI" in kind or "ANTI" in kind else further
        return text, scope

    def equality(self, left: dict[str, str], right: dict[str, str]) -> str | None:
        pairs = [(one, other) for one, kind in left.items() for other, its in right.items()
                 if kind == its and kind in ("bigint", "string", "int")]
        return "{} = {}".format(*self.choice.choice(pairs)) if pairs else None

    # --- conditions and values -------------------------------------------------------------------------------------

    def of(self, scope: dict[str, str], *kinds: str) -> str | None:
        names = [name for name, kind in scope.items() if kind in kinds]
        return self.choice.choice(names) if names else None

    def condition(self, scope: dict[str, str]) -> str:
        number, text = self.of(scope, *NUMBERS), self.of(scope, "string")
        options = [f"{number} > {self.choice.choice([0, 1, 2])}", f"{number} <= 3",
                   f"{number} IS NOT NULL"] if number else []
        options += [f"{text} = 'x'", f"{text} IN ('x', 'y')", f"{text} IS NULL"] if text else []
        return self.choice.choice(options or ["TRUE"])

    def where(self, scope: dict[str, str], depth: int) -> str:
        terms = [self.condition(scope)] if self.choice.random() < 0.4 else []
        if depth and self.choice.random() < 0.5:
            term = self.subquery_condition(scope, depth)
            terms += [term] if term else []
        return f" WHERE {' AND '.join(terms)}" if terms else ""

    def subquery_condition(self, scope: dict[str, str], depth: int) -> str | None:
        kind = self.choice.choice(["in", "not in", "exists", "not exists", "scalar", "correlated scalar", "or"])
        stream, alias, window = self.choice.choice("ab"), self.name("q"), self.choice.choice(WINDOWS)
        source = f"{stream} AS {alias} [{window}]"
        inner = {f"{alias}.{name}": kind for name, kind in COLUMNS.items()}
        column = self.of(scope, "bigint", "string", "int")
        if column is None:
            return None
        same = self.of(inner, scope[column])
        more = f" AND {self.condition(inner)}" if self.choice.random() < 0.5 else ""
        if kind in ("in", "not in"):
            if self.choice.random() < 0.3:
                text, columns = self.grouped(0)
                first = next((name for name, its in columns.items() if its == scope[column]), None)
                if first:
                    return f"{column} {kind.upper()} (SELECT {first} FROM ({text}) AS {self.name('g')})"
            return f"{column} {kind.upper()} (SELECT {same} FROM {source} WHERE TRUE{more})"
        if kind in ("exists", "not exists"):
            return f"{kind.upper()} (SELECT 1 FROM {source} WHERE {same} = {column}{more})"
        if kind == "or":
            return f"({column} IN (SELECT {same} FROM {source}) OR {self.condition(scope)})"
        number = self.of(scope, "int", "bigint")
        if number is None:
            return None
        link = f" WHERE {same} = {column}" if kind == "correlated scalar" else ""
        return f"{number} >= (SELECT {self.choice.choice(['MIN', 'MAX'])}({alias}.x) FROM {source}{link})"

    # --- SELECTs -----------------------------------------------------------------------------------------------------

    def rows(self, depth: int) -> tuple[str, Columns]:
        source, scope = self.source(depth)
        names = self.choice.sample(sorted(scope), min(len(scope), self.choice.randint(1, 3)))
        columns = {self.name("c"): (name, scope[name]) for name in names}
        number = self.of(scope, "int", "bigint")
        if number and self.choice.random() < 0.3:
            columns[self.name("c")] = (f"COALESCE({number}, 0)", scope[number])
        shown = ", ".join(f"{name} AS {alias}" for alias, (name, _) in columns.items())
        return f"SELECT {shown} FROM {source}{self.where(scope, depth)}", {a: kind for a, (_, kind) in columns.items()}

    def grouped(self, depth: int) -> tuple[str, Columns]:
        source, scope = self.source(depth)
        keys = [name for name, kind in scope.items() if kind in ("bigint", "string", "int")]
        groups = self.choice.sample(keys, min(len(keys), self.choice.choice([0, 1, 1, 2])))
        columns: Columns = {}
        shown = []
        for group in groups:
            columns[self.name("g")] = scope[group]
            shown.append(f"{group} AS {list(columns)[-1]}")
        for _ in range(self.choice.randint(1, 2)):
            value, kind = self.aggregate(scope)
            columns[self.name("n")] = kind
            shown.append(f"{value} AS {list(columns)[-1]}")
        by = f" GROUP BY {self.grouping(groups)}" if groups else ""
        having = f" HAVING COUNT(*) > {self.choice.choice([0, 1])}" if groups and self.choice.random() < 0.3 else ""
        return f"SELECT {', '.join(shown)} FROM {source}{self.where(scope, depth)}{by}{having}", columns

    def grouping(self, groups: list[str]) -> str:
        """In one way mostly, else in several."""
        listed, kind = ", ".join(groups), self.choice.random()
        if kind > 0.15:
            return listed
        return self.choice.choice([f"ROLLUP({listed})", f"CUBE({listed})", f"GROUPING SETS (({listed}), ())",
                                   f"{groups[0]}, ROLLUP({groups[-1]})", f"{listed} WITH ROLLUP"])

    def aggregate(self, scope: dict[str, str]) -> tuple[str, str]:
        column = self.of(scope, *NUMBERS)
        options = [("COUNT(*)", "bigint")]
        if column:
            kind = scope[column]
            options += [(f"MIN({column})", kind), (f"MAX({column})", kind), (f"COUNT({column})", "bigint"),
                        (f"COUNT(DISTINCT {column})", "bigint"), (f"AVG({column})", "double")]
            options += [(f"SUM({column})", "sum")]
        return self.choice.choice(options)

    def over(self) -> str:
        """Window functions over groups; orders leave ties now and then, which INTERFACE breaks."""
        text, columns = self.grouped(1)
        names = list(columns)
        order = ", ".join(f"{name}{self.choice.choice(['', ' DESC', ' DESC NULLS FIRST'])}"
                          for name in self.choice.sample(names, self.choice.randint(1, len(names))))
        partition = f"PARTITION BY {self.choice.choice(names)} " if self.choice.random() < 0.4 else ""
        window = f"({partition}ORDER BY {order})"
        function = self.choice.choice(["ROW_NUMBER()", "RANK()", "DENSE_RANK()", f"LAG({names[-1]})", "COUNT(*)",
                                       f"LEAD({names[0]}, 2)", f"MAX({names[-1]})", "PERCENT_RANK()"])
        qualify = f" QUALIFY RANK() OVER {window} <= 3" if self.choice.random() < 0.4 else ""
        return f"SELECT *, {function} OVER {window} AS o FROM ({text}) AS u{qualify}"

    def set_operation(self) -> str:
        one, columns = self.grouped(0)
        kinds = list(columns.values())
        words = self.choice.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"])
        other = one
        for _ in range(20):
            text, more = self.grouped(0)
            if list(more.values()) == kinds:
                other = text
                break
        return f"{one} {words} {other}"

    def limited(self) -> str:
        text, columns = self.rows(1) if self.choice.random() < 0.5 else self.grouped(1)
        names = list(columns)
        by = ", ".join(f"{name}{self.choice.choice(['', ' DESC', ' NULLS LAST'])}"
                       for name in self.choice.sample(names, self.choice.randint(1, len(names))))
        offset = f" OFFSET {self.choice.choice([1, 2])}" if self.choice.random() < 0.2 else ""
        order = f" ORDER BY {by}" if self.choice.random() < 0.8 else ""
        return f"SELECT * FROM ({text}) AS l{order} LIMIT {self.choice.choice([1, 3, 5])}{offset}"

    def sessions(self) -> str:
        """By a bracket, or by session_window in GROUP BY; alone, or read by another SELECT."""
        keys, stream = self.choice.choice([["k"], ["s"], ["k", "s"], []]), self.choice.choice("ab")
        seconds, where = self.choice.choice([3, 10, 15]), self.choice.choice(["", " WHERE x > 0", " WHERE s = 'x'"])
        shown = [*keys, "COUNT(*) AS n", self.choice.choice(["SUM(x) AS m", "MAX(d) AS m", "MIN(ts) AS m"]),
                 "session_window.start AS since", "session_window.end AS upto"]
        by = f" BY {', '.join(keys)}" if keys else ""
        text = f"SELECT {', '.join(shown)} FROM {stream} [WINDOW SESSION {seconds} SECONDS{by}]{where}"
        text += f" GROUP BY {', '.join(keys)}" if keys else ""
        if self.choice.random() < 0.5:
            called = ", ".join([*keys, f"session_window(ts, '{seconds} seconds')"])
            text = f"SELECT {', '.join(shown)} FROM {stream}{where} GROUP BY {called}"
        having = self.choice.choice([" HAVING COUNT(*) > 1", " HAVING session_window.start IS NOT NULL", "", ""])
        return f"SELECT MAX(n) AS most, COUNT(*) AS n FROM ({text}{having}) AS s" if self.choice.random() < 0.3 \
            else text + having

    def query(self) -> str:
        kind = self.choice.choice(["grouped", "grouped", "grouped", "distinct", "over", "set", "limit", "sessions"])
        if kind == "grouped":
            text = self.grouped(2)[0]
        elif kind == "distinct":
            text = self.rows(1)[0].replace("SELECT ", "SELECT DISTINCT ", 1)
        else:
            text = {"over": self.over, "set": self.set_operation, "limit": self.limited,
                    "sessions": self.sessions}[kind]()
        return f"WITH {', '.join(self.ctes)} {text}" if self.ctes else text


def drawn(seed: int) -> Case:
    """A text and rows for it; some rows are late, keys are few, values are NULL now and then."""
    choice = Random(seed)
    start = 100 * BATCH

    def rows() -> list[Row]:
        made = []
        for _ in range(choice.choice([0, 8, 16, 30, 40])):
            ts = start + choice.randrange(8 * BATCH)
            boundary = ts // BATCH * BATCH + BATCH + (choice.choice([1, 2]) * BATCH if choice.random() < 0.15 else 0)
            made.append((ts, choice.choice([1, 1, 2, 3, None]), choice.choice(["x", "x", "y", "", None]),
                         choice.choice([0, 1, 1, 2, 5, -3, None]),
                         choice.choice([Decimal("0.25"), Decimal("1.00"), None, Decimal("-7.77")]), boundary))
        return made

    relation = [(key, choice.choice(["x", "y", None])) for key in (1, 2, 2, 4)]
    streams = {name: ("ts", dict(COLUMNS), rows()) for name in "ab"}
    boundaries = sorted(choice.sample([start + n * BATCH for n in range(1, 11)], 3))
    return Case(BATCH, streams, {"r": (dict(RELATION), [(0, relation)])}, Text(choice).query(), boundaries, False)
