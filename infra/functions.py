"""docs/functions.md, made of the table of functions, from which the parser, types and both engines' SQL come, too."""
from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from optimizer.expression.functions.row import Name
from optimizer.expression.functions.table import FAMILIES
from optimizer.sql.expressions import CASTS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/functions.md"
INTRODUCTION = r"""# Functions of a row

Made of the table of functions by `.venv/bin/python -m infra.functions`. Aggregates and operators are in
[queries](queries.md).

Each function gives Spark's value, in ANSI mode and in UTC, in both engines that a plan may run on; a test holds every
one to Spark, its type and its values, over corner values of every type. What cannot be so is refused, with what is
accepted. Arguments called constant are read when the query is created. The last digits of `EXP`, logarithms, powers,
roots and trigonometry are those of the machine's mathematics library. Positions and lengths count Unicode's characters.

Regular expressions are Java's as far as they mean the same to RE2, which runs them: characters, `.`, `[a-z]`, `[^a-z]`,
`\d \w \s \D \W \S`, `\p{Alpha}` and its like, groups `( )` and `(?: )`, alternatives, `* + ? {2,5}` and their lazy
forms, `^` at the beginning, `$` at the end, `(?i)` and `(?s)` in front. Look around, back references, `\b` and
repetitions of what may be empty are refused; where matches are counted or replaced, a pattern matches at least one
character.

Patterns of dates are Java's. `DATE_FORMAT` takes `y yyyy yy M MM MMM MMMM d dd D DDD E EEE EEEE H HH h hh m mm s ss`,
`S` to `SSSSSS` and `a X XXX xxx Z z`; what reads text takes `yyyy MM dd HH mm ss` and `S` to `SSSSSS`. Both take text
in quotes and what is no letter.
"""


def page() -> str:
    """The page as it should be."""
    return INTRODUCTION + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for family, rows in FAMILIES.items():
        names = sorted((name for row in rows for name in row.names), key=lambda name: name.text)
        casts = [Name(name, 1, 1, f"CAST(x AS {name})") for name in sorted(CASTS)] if family == "Types" else []
        yield f"\n## {family}\n"
        yield "| function | arguments | what it gives |"
        yield "|---|---|---|"
        for name in [*names, *casts]:
            yield f"| `{name.text}` | {_count(name)} | {name.about} |"


def _count(name: Name) -> str:
    if name.most >= 1000:
        return f"{name.least} and more"
    return f"{name.least}" if name.least == name.most else f"{name.least} to {name.most}"


def main() -> int:
    """Rewrites the page if it differs."""
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
        PAGE.write_text(page(), encoding="utf-8")
        print(f"{PAGE.relative_to(ROOT)} rewritten")
    return 0


if __name__ == "__main__":
    sys.exit(main())
