"""Exactly once: the process is killed at every named failpoint, twice in a row, also while it recovers, and in the end
nobody can tell.
"""
from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobs.storage import failpoints
from tests.chaos import scenario
from tests.seeds import seed

# data frames and topics, rows that leave, answers that move: tests/jobs/ingest/test_ingest_once.py, test_behind.py,
# test_keep.py, tests/test_older_warehouses.py
ELSEWHERE = {"ingest.after-stage", "ingest.before-depart", "ingest.after-depart", "keep.before", "keep.after",
             "address.after-move"}
FIRST = {"recover.before": "batch.after-intent", "recover.after": "batch.after-state",
         "ingest.before-recover": "ingest.after-stream", "ingest.after-recover": "ingest.after-quarantine"}
PASSES = ("first", "middle", "last")
SECOND = ("recover.before", "recover.after", "batch.before-table:3", "batch.after-results", "batch.after-commit",
          "ingest.before-recover", "ingest.after-stream", "batch.after-mark",
          "address.after-table:2", "address.after-results", "address.after-boundaries")
SAMPLE = 6
FURTHER = 8      # steps, more than a round, that the sample's lives go on; the others live to their end


class Twin(NamedTuple):
    """The same life without a kill: what it published, in which step it passed each failpoint, and its folder before
    each step.
    """

    published: dict[str, Any]
    passes: dict[str, list[int]]
    kept: Path

    def at(self, step: int) -> dict[str, Any]:
        """What was published before a step."""
        return self.published if step == len(scenario.steps()) else scenario.published(self.kept / str(step))

    def place(self, failpoint: str, nth: str) -> tuple[int, int]:
        """The step of the first, middle or last pass, and which of the step's passes it is."""
        steps = self.passes[failpoint]
        number = {"first": 1, "middle": (len(steps) + 1) // 2, "last": len(steps)}[nth]
        return steps[number - 1], steps[:number].count(steps[number - 1])


@pytest.fixture(scope="session")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Twin:
    root = tmp_path_factory.mktemp("twin")
    scenario.make(root / "shop")
    passes = scenario.watched(root / "shop", root / "kept")
    return Twin(scenario.published(root / "shop"), passes, root / "kept")


def kills() -> list[Any]:
    """All, and which of them `make test` runs."""
    rnd = random.Random(seed())
    names = sorted(failpoints.NAMES - ELSEWHERE)
    every = [(name, nth, rnd.choice((*SECOND, name)))
             for name in names
             for nth in (PASSES if name not in FIRST else PASSES[:1])]
    few = {
        *rnd.sample([k for k in every if k[0] not in FIRST], SAMPLE - 2),
        *rnd.sample([k for k in every if k[0] in FIRST], 2)
    }
    return [
        pytest.param(*kill, FURTHER if kill in few else None,
                     marks=[pytest.mark.chaos, *([pytest.mark.sample] if kill in few else [])], id="-".join(kill))
        for kill in every
    ]


@pytest.mark.parametrize(("name", "nth", "second", "further"), kills())
def test_a_kill_leaves_no_trace(name: str, nth: str, second: str, further: int | None, twin: Twin,
                                tmp_path: Path) -> None:
    """The life goes on from its twin's folder, from before the step in which it is to end."""
    first = FIRST.get(name, name)
    step, number = twin.place(first, nth)
    until = len(scenario.steps()) if further is None else min(step + further, len(scenario.steps()))
    folder = Path(shutil.copytree(twin.kept / str(step), tmp_path / "shop"))
    killed = scenario.process(folder, f"{first}:{number}", until)
    assert killed.returncode == -9, killed.stderr
    again = scenario.process(folder, name if name in FIRST else second, until)
    assert again.returncode in ((-9,) if name in FIRST else (-9, 0)), again.stderr
    ended = scenario.process(folder, until=until)
    assert ended.returncode == 0, ended.stderr
    said, expected = scenario.published(folder), twin.at(until)
    for part in said:
        assert said[part] == expected[part], part
    assert scenario.committed_twice(folder) == []
    differences = {n: q["differences"] for n, q in json.loads(ended.stdout.splitlines()[-1])["queries"].items()}
    assert not any(differences.values()), differences


def test_every_failpoint_has_a_place_and_every_place_a_name() -> None:
    texts = [path.read_text() for path in (scenario.ROOT / "jobs").rglob("*.py")]
    placed = {name for text in texts for name in re.findall(r'failpoints\.at\("([a-z.-]+)"\)', text)}
    assert placed == failpoints.NAMES
    assert len(placed) >= 20


@pytest.mark.slow
def test_an_unknown_failpoint_is_refused(tmp_path: Path) -> None:
    """A misspelt name would make every test above pass without a kill."""
    scenario.make(tmp_path / "shop")
    done = scenario.process(tmp_path / "shop", "batch.after-comit")
    assert done.returncode == 1 and "names are" in done.stderr
