"""Scenarios of paper E as they are carried out: which queries there are in each batch."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from jobs.papers.experiments.sharing import run
from jobs.papers.experiments.sharing.queries import sc2


def test_a_scenario_creates_every_query_that_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    laps = SimpleNamespace(lap=lambda stage, since: since, by_stage={})
    changes: list[tuple[str, str]] = []

    @contextmanager
    def running(*_: object, **__: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(pipe=None, laps=laps)

    monkeypatch.setattr(run, "running", running)
    for name in ("bring", "advanced", "checked"):
        monkeypatch.setattr(run, name, lambda *_: None)
    monkeypatch.setattr(run.requests, "create", lambda _, name, text: changes.append(("create", f"{name} {text}")))
    monkeypatch.setattr(run.requests, "change", lambda _, name, kind: changes.append((kind, name)))
    life = run.lived(run.StreamLoad(), ["a", "b", "c", "d", "e", "f"], sc2(2, 4, 4, 2))
    created = [("create", f"q{number} {text}") for number, text in enumerate("abcdef")]
    assert changes == [*created[:4], ("delete", "q0"), ("delete", "q1"), *created[4:]]
    assert life.queries == (2 + 4 + 4 + 4) / 4
