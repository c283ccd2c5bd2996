"""Draws the house as docs/pictures/house.svg: floors as import-linter holds them, each room with its sentence.

`.venv/bin/python -m infra.house` writes it anew; a test holds that it is current.
"""
from __future__ import annotations

import ast
from configparser import ConfigParser
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "house.svg"
WIDTH, ROW, MARGIN, GAP = 1200, 34, 20, 26      # pixels
COLORS = {"jobs": "#e3eefb", "optimizer": "#e6f4e6"}
STYLE = ("text { font: 14px system-ui, sans-serif; fill: #222 } .name { font-weight: 600 } .house { font-size: 18px; "
         "font-weight: 600 } .what { fill: #555 } rect { stroke: #9ab; rx: 4 }")


@dataclass(frozen=True)
class Room:
    """A package or module with the first sentence of its docstring: `Room("batch", "A fixed batch …")`."""

    name: str
    sentence: str


def floors(house: str) -> list[list[Room]]:
    """The rooms of `jobs` or `optimizer`, floor by floor from the top, as setup.cfg says them."""
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    layers = settings[f"importlinter:contract:{house}"]["layers"].split("\n")
    return [[_room(house, name.strip()) for name in layer.split("|")] for layer in layers if layer.strip()]


def drawing() -> str:
    """The picture, as SVG."""
    y, parts = MARGIN, list[str]()
    for house, title in (("jobs", "jobs: does"), ("optimizer", "optimizer: decides, pure")):
        y += GAP
        parts.append(f'<text class="house" x="{MARGIN}" y="{y - 8}">{title}</text>')
        for floor in floors(house):
            width = (WIDTH - 2 * MARGIN) / len(floor)
            for place, room in enumerate(floor):
                parts.append(_box(room, COLORS[house], MARGIN + place * width, y, width))
            y += ROW
        y += MARGIN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def _room(house: str, name: str) -> Room:
    place = ROOT / house / name
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return Room(name, text.split("\n")[0].rstrip("."))


def _box(room: Room, color: str, x: float, y: float, width: float) -> str:
    most = int(width / 8.2) - len(room.name) - 4
    sentence = room.sentence if len(room.sentence) <= most else room.sentence[:most].rsplit(" ", 1)[0] + " …"
    text = f'<tspan class="name">{room.name}</tspan>  <tspan class="what" dx="10">{escape(sentence)}</tspan>'
    box = f'<rect x="{x:g}" y="{y}" width="{width - 6:g}" height="{ROW - 6}" fill="{color}"/>'
    return f'{box}<text x="{x + 10:g}" y="{y + 19}">{text}</text>'


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
