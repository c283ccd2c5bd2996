"""Instants and lengths, which every room writes and reads in the same way."""
from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from optimizer.time import EPOCH, instant, iso, micros, unit


def test_instants_and_microseconds_are_inverse_and_a_time_without_zone_is_utc() -> None:
    assert instant(0) == EPOCH and micros(instant(-1)) == -1
    assert micros(datetime(1970, 1, 1, 0, 0, 1)) == micros(datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc)) == 10**6
    assert micros(datetime(1970, 1, 1, 2, 0, 1, tzinfo=timezone(timedelta(hours=2)))) == 10**6


@pytest.mark.parametrize(("us", "text"), [(0, "1970-01-01T00:00:00Z"), (1_767_225_610_000_000, "2026-01-01T00:00:10Z"),
                                          (500_000, "1970-01-01T00:00:00.500000Z"), (-1, "1969-12-31T23:59:59.999999Z"),
                                          (-62_135_596_800_000_000, "0001-01-01T00:00:00Z")])
def test_an_instant_reads_as_iso_8601_with_microseconds_where_it_has_some(us: int, text: str) -> None:
    assert iso(us) == text and micros(datetime.fromisoformat(text)) == us


@pytest.mark.parametrize(("name", "length"), [("hour", 3_600 * 10 ** 6), ("Hours", 3_600 * 10 ** 6),
                                              ("WEEKS", 604_800 * 10 ** 6), ("month", None), ("", None), ("s", None),
                                              ("hourss", None)])
def test_a_unit_has_a_fixed_length_or_none(name: str, length: int | None) -> None:
    assert unit(name) == length
