"""Exactly once: whatever mixture comes, whatever crash stops it, the tables are those of one undisturbed ingest."""
from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.pipeline.config import Pipeline
from jobs.storage import failpoints
from optimizer.errors import ForebayError
from tests.jobs.ingesting import SECOND, content, counts, lines, pipeline, process, reasons, stored, take

GOOD = {"user": "u", "ms": 1}
KINDS: dict[str, Any] = {
    "good": {
        "ts": "1970-01-01T00:01:45Z",
        **GOOD
    },
    "late": {
        "ts": "1970-01-01T00:01:10Z",
        **GOOD
    },
    "too late": {
        "ts": "1970-01-01T00:00:01Z",
        **GOOD
    },
    "null": {
        "user": "u"
    },
    "bad": {
        "ts": "1970-01-01T00:01:45Z",
        "ms": "x"
    },
    "unknown": {
        "ts": "1970-01-01T00:01:45Z",
        "z": 1
    },
    "early": {
        "ts": "1969-01-01T00:00:00Z"
    },
    "ahead": {
        "ts": "2500-01-01"
    },
    "broken": "{"
}
UNFINISHED = ("ingest.after-stream", "ingest.before-quarantine", "ingest.after-quarantine", "ingest.before-files")
POINTS = sorted(name for name in failpoints.NAMES
                if name.startswith("ingest.") and "recover" not in name and "depart" not in name
                and name != "ingest.after-stage")


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 4, deadline=None)
@given(st.lists(st.lists(st.sampled_from(sorted(KINDS)), max_size=12), max_size=4))
def test_counts_add_up(tmp_path_factory: pytest.TempPathFactory, files: list[list[str]]) -> None:
    pipe = pipeline(tmp_path_factory.mktemp("mixture"), stream="lateness: 1 minute")
    files = [f for f in files if not f or set(f) != {"broken"}]      # such a file is refused whole
    for i, kinds in enumerate(files):
        lines(pipe, f"{i}.jsonl", [KINDS[k] for k in kinds])
    every = [k for kinds in files for k in kinds]
    taken, good, aside, late = counts(pipe, last=100 * SECOND)
    assert (taken, good, late) == (len(files), every.count("good"), every.count("late"))
    assert good + late + aside == len(every)
    assert len(stored(pipe)) == good + late and len(reasons(pipe)) == aside
    before = content(pipe)
    assert counts(pipe, last=100 * SECOND) == (0, 0, 0, 0) and content(pipe) == before


def prepared(folder: Path) -> Pipeline:
    pipe = pipeline(folder, stream="lateness: 1 minute")
    lines(pipe, "a.jsonl", [KINDS["good"], KINDS["late"], KINDS["null"]])
    lines(pipe, "b.jsonl", [KINDS["good"], KINDS["bad"]])
    return pipe


@pytest.mark.slow
def test_raised_at_each_point_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in one process, where the crash is an exception that nothing catches."""
    calm = prepared(tmp_path / "calm")
    counts(calm, last=100 * SECOND)
    for point in POINTS:
        shaken = prepared(tmp_path / point)
        for again in (point, "ingest.before-recover", "ingest.after-recover"):
            monkeypatch.setattr(failpoints, "_passes", Counter())
            monkeypatch.setenv("FOREBAY_FAILPOINT", f"{again}:1:raise")
            try:
                take(shaken, last=100 * SECOND)
                assert again != point
            except failpoints.Reached as reached:
                assert str(reached) == again
        monkeypatch.delenv("FOREBAY_FAILPOINT")
        take(shaken, last=100 * SECOND)
        assert content(shaken) == content(calm), point


@pytest.mark.chaos
@pytest.mark.parametrize(
    "point", [pytest.param(p, marks=[pytest.mark.sample] if p == "ingest.after-stream" else []) for p in POINTS])
def test_killed_and_again(tmp_path: Path, point: str) -> None:
    """A kill at each failpoint, then two in the recovery if there is one, then an ingest to the end."""
    calm, shaken = prepared(tmp_path / "calm"), prepared(tmp_path / "shaken")
    assert counts(calm, last=100 * SECOND) == (2, 2, 2, 1)
    assert process(shaken, f"{point}:2" if "land" in point else point, 100 * SECOND) == -9
    if point in UNFINISHED:
        assert [process(shaken, p, 100 * SECOND) for p in ("ingest.before-recover", "ingest.after-recover")] == [-9, -9]
    take(shaken, last=100 * SECOND)
    assert content(shaken) == content(calm)
    assert counts(shaken, last=100 * SECOND) == (0, 0, 0, 0)


@pytest.mark.chaos
def test_only_bad_rows_survive_a_kill_too(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    lines(pipe, "a.jsonl", [KINDS["null"], KINDS["bad"]])
    assert process(pipe, "ingest.after-stream") == -9
    assert reasons(pipe) == []
    take(pipe)
    assert reasons(pipe) == ["bad type: column ms", "event time is NULL"] and counts(pipe) == (0, 0, 0, 0)


def test_failpoint_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failpoints, "_passes", failpoints._passes.__class__())
    monkeypatch.setenv("FOREBAY_FAILPOINT", "ingest.before-files:2:raise")
    failpoints.at("ingest.before-files")
    failpoints.at("ingest.after-files")
    with pytest.raises(failpoints.Reached):
        failpoints.at("ingest.before-files")
    failpoints.at("ingest.before-files")
    for wrong in ("ingest.nowhere", "ingest.before-files:0", "ingest.before-files:1:burn",
                  "ingest.before-files:1:kill:more"):
        monkeypatch.setenv("FOREBAY_FAILPOINT", wrong)
        with pytest.raises(ForebayError):
            failpoints.at("ingest.before-files")
    with pytest.raises(ValueError, match="not registered"):
        failpoints.at("ingest.nowhere")
