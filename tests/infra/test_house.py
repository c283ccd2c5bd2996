"""The picture of the house is drawn from what import-linter holds, and is current."""
from __future__ import annotations

from infra import house


def test_the_picture_is_current() -> None:
    """When this fails: .venv/bin/python -m infra.house"""
    assert house.PICTURE.read_text(encoding="utf-8") == house.drawing(), "the house has changed since it was drawn"


def test_each_room_has_a_sentence() -> None:
    rooms = [room for name in ("jobs", "optimizer") for floor in house.floors(name) for room in floor]
    assert len(rooms) > 20 and [room.name for room in rooms if len(room.sentence) < 20] == []
