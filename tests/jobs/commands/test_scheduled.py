"""What a schedule's tasks answer, where no test of DAGs says it: comparisons and figures by name."""
from __future__ import annotations

from typing import Any

import pytest

from jobs.papers import bench, experiments, scheduled
from optimizer.errors import ForebayError


def test_comparisons_and_figures_are_one_list() -> None:
    assert scheduled.experiments(["list"]) == {**bench.names(), **experiments.names()}


def test_an_unknown_name_is_refused_before_anything_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "run", lambda *_: pytest.fail("begun"))
    with pytest.raises(ForebayError, match="no experiment 'drifts'") as refused:
        scheduled.experiments(["drift", "drifts"])
    assert "a-fig6" in str(refused.value.hint) and "peers-join" in str(refused.value.hint)


def test_each_is_run_by_its_own_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure's rows stay where they are."""
    asked = list[tuple[str, bool]]()

    def figure(name: str, quick: bool, *_: Any) -> dict[str, Any]:
        asked.append((name, quick))
        return {"text": "a table", "rows": list(range(9)), "logged": {"run": "r"}}

    monkeypatch.setattr(bench, "run", lambda name, quick: asked.append((name, quick)) or {"seconds": 1.5})
    monkeypatch.setattr(experiments, "_run", figure)
    assert scheduled.experiments(["drift", "a-fig6"], False) == {
        "drift": {
            "seconds": 1.5
        },
        "a-fig6": {
            "text": "a table",
            "logged": {
                "run": "r"
            }
        }
    }
    assert asked == [("drift", False), ("a-fig6", False)]
