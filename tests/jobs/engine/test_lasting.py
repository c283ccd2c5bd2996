"""Which Connect session processes share: the same name, code and half hour give the same one, and nothing else does."""
from __future__ import annotations

import re
import time

import pytest

from jobs.engine import spark

PLAIN = "sc://127.0.0.1:15002"


def test_the_same_name_is_the_same_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0)
    first = spark._address(PLAIN, "/shop")
    assert re.fullmatch(re.escape(PLAIN) + r"/;session_id=[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", first)
    assert spark._address(PLAIN + "/", "/shop") == first != spark._address(PLAIN, "/other")
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0 + spark.LASTS)
    assert spark._address(PLAIN, "/shop") != first
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0)
    monkeypatch.setattr(spark, "_newest_change", lambda: 0)
    assert spark._address(PLAIN, "/shop") != first


@pytest.mark.parametrize("master", ["sc://h:1/;token=x", "sc://h:1/;session_id=00000000-0000-4000-8000-000000000000"])
def test_an_address_that_says_more_is_left_as_it_is(master: str) -> None:
    assert spark._address(master, "/shop") == master


def test_without_a_name_every_process_has_its_own() -> None:
    assert spark._address(PLAIN, "") == PLAIN
