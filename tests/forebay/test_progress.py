"""How far a run is, for people: lines where nobody sits before a terminal, and no more of them than are of use."""
from __future__ import annotations

import sys

import pytest

from forebay.text import run_progress as shown

AT = {"boundary": 60_000_000}


def test_a_short_run_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with shown.progress("shop") as run:
        run.ahead(shown.MANY)
        run.ran(AT)
    assert capsys.readouterr().err == ""


def test_a_long_run_says_what_is_ahead_and_how_far_it_is(capsys: pytest.CaptureFixture[str],
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(shown.time, "monotonic", lambda: clock[0])
    with shown.progress("shop") as run:
        for step in range(4):
            run.ahead(12_000 - step)
            clock[0] += 2
            run.ran(AT)
    assert capsys.readouterr().err == ("forebay: shop: 12,000 boundaries are ahead\n"
                                       "forebay: shop: 3 boundaries, the last 1970-01-01T00:01:00Z; 11,997 ahead\n")


def test_a_terminal_gets_a_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with shown.progress("shop") as run:
        run.ahead(10)
        for _ in range(10):
            run.ran(AT)
    assert "10 boundaries, the last 1970-01-01T00:01:00Z; 0 ahead" in capsys.readouterr().err
