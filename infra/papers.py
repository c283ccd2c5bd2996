"""docs/papers.md and the README's table of features, made of docs/papers.yml: what a row's state is stands in one
place.

Nothing else of the README changes.
"""
from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
DATA, PAGE, README = ROOT / "docs/papers.yml", ROOT / "docs/papers.md", ROOT / "README.md"
TABLE = re.compile(r"^\| row \| what \| state \|\n(?:\|.*\n)+", re.MULTILINE)
PAPERS = {
    "A": "Transformation-based optimization of continuous aggregation join queries",
    "B": "Analytical and experimental evaluation of stream-based join",
    "C": "Low-memory sliding-window join-aggregation: IC and TC",
    "D": "Factor windows",
    "E": "AJoin: ad-hoc stream joins at scale"
}
STATE = re.compile(r"done|planned|(part|library): .+")
KEYS = {"what", "state", "code", "test", "figure", "note"}


def rows() -> dict[str, dict[str, Any]]:
    """By row's id; a row that says too little or too much is refused."""
    rows_by_id: dict[str, dict[str, Any]] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    for name, row in rows_by_id.items():
        if not {"what", "state"} <= set(row) <= KEYS or not STATE.fullmatch(row["state"]):
            raise SystemExit(
                f"{DATA.name}: {name} has {sorted(row)}, state {row.get('state')!r}; expected "
                f"{', '.join(sorted(KEYS))}; done, planned, part: … or library: …"
            )
    return rows_by_id


def table(rows_by_id: Mapping[str, Mapping[str, Any]]) -> str:
    """The README's."""
    lines = [
        "| row | what | state |", "|---|---|---|",
        *(f"| {name} | {row['what']} | {row['state']} |" for name, row in rows_by_id.items())
    ]
    return "\n".join(lines) + "\n"


def page(rows_by_id: Mapping[str, Mapping[str, Any]]) -> str:
    """Where each row lives, by paper."""
    return "\n".join(_lines(rows_by_id)) + "\n"


def _lines(rows_by_id: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield "# The papers, row by row"
    yield ("\nMade of `docs/papers.yml` by `.venv/bin/python -m infra.papers`, like the README's table. *planned* is "
           "not there yet, *part* says what is, *library* works beside pipelines, which do not run it.")
    yield ("Figures are pages with model and measurement side by side and a verdict on each claim; what they amount "
           "to: [figures/index.md](figures/index.md).")
    for letter, title in PAPERS.items():
        yield f"\n## {letter}. {title}\n"
        yield "| row | what | code | tests | figures | state |"
        yield "|---|---|---|---|---|---|"
        for name, row in rows_by_id.items():
            if name[0] == letter:
                state = row["state"] + (f"; {row['note']}" if row.get("note") else "")
                figures = " ".join(map(_figure, row.get("figure", [])))
                code, tests = _files(row, "code"), _files(row, "test")
                yield f"| {name} | {row['what']} | {code} | {tests} | {figures} | {state} |"


def _files(row: Mapping[str, Any], key: str) -> str:
    return " ".join(f"`{file}`" for file in row.get(key, []))


def _figure(name: str) -> str:
    target = name.removeprefix("docs/") if name.endswith(".md") else f"figures/{name}.md"
    return f"[{Path(target).stem}]({target})"


def made(readme: str) -> dict[Path, str]:
    """Both documents as they should be."""
    rows_by_id = rows()
    return {PAGE: page(rows_by_id), README: TABLE.sub(lambda _: table(rows_by_id), readme, count=1)}


def main() -> int:
    """Rewrites what differs."""
    for file, text in made(README.read_text(encoding="utf-8")).items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(f"{file.relative_to(ROOT)} rewritten")
    return 0


if __name__ == "__main__":
    sys.exit(main())
