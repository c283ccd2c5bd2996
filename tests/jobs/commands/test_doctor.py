"""Each fact is shown well and, where that can be arranged without harm, broken with a fix."""
from __future__ import annotations

from pathlib import Path

import pytest

from jobs.commands import doctor
from jobs.pipeline.config import Pipeline


def test_every_fact_has_a_line_and_the_installation_is_well(tmp_path: Path) -> None:
    found = {f.name: f for f in doctor.facts(Pipeline("p", str(tmp_path), str(tmp_path / "warehouse"), 1, {}, {}))}
    assert list(found) == [
        "python", "java", "jars", "archive", "versions", "memory", "time zone", "scratch", "disk", "locks"
    ]
    assert [str(f) for f in found.values() if not f.ok] == []


@pytest.mark.slow
def test_tables_are_asked_only_with_a_pipeline(tmp_path: Path) -> None:
    def tables(pipeline: Pipeline) -> list[doctor.Fact]:
        return [doctor.Fact("views", False, f"{pipeline.name} is damaged", "restore it")]

    assert doctor.facts(Pipeline("p", "/", str(tmp_path), 1, {}, {}), tables)[-1].value == "p is damaged"
    assert "views" not in {f.name for f in doctor.facts(None, tables)}


def test_a_remote_warehouse_is_not_taken_for_a_path() -> None:
    found = {f.name: f for f in doctor.facts(Pipeline("p", "/", "s3a://bucket/w", 1, {}, {}))}
    assert "disk" not in found and "locks" not in found and "s3a://bucket/w" in found["warehouse"].value


def test_missing_java_names_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    fact = doctor.java()
    assert not fact.ok and "install" in fact.fix and str(tmp_path) in fact.value


@pytest.mark.parametrize("banner,ok", [('openjdk version "21.0.2" 2024-01-16', True),
                                       ('openjdk version "11.0.2"', False), ('java version "1.8.0_391"', False),
                                       ("", False)])
def test_java_versions(banner: str, ok: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text(f"#!/bin/sh\necho '{banner}' >&2\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert doctor.java().ok is ok


def test_missing_jars_are_named(tmp_path: Path) -> None:
    (tmp_path / "a-1.jar").touch()
    (tmp_path
     / "digests").write_text(f"{'0' * 64}  spark/a-1.jar\n{'0' * 64}  spark/b-2.jar\n{'0' * 64}  kafka/c-3.jar\n")
    fact = doctor.jars(str(tmp_path), tmp_path / "digests")
    assert not fact.ok and "b-2.jar" in fact.value and "c-3.jar" not in fact.value


def test_a_version_off_the_lock_is_named(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.write_text("".join(f"{name}=={doctor.metadata.version(name)} \\\n" for name in doctor.CHECKED
                            if name != "duckdb") + "duckdb==0.1 \\\n")
    fact = doctor.versions(lock)
    assert not fact.ok and "duckdb" in fact.value and "locked 0.1" in fact.value and "pyarrow" not in fact.value


def test_looking_makes_nothing(tmp_path: Path) -> None:
    assert doctor.locks(str(tmp_path / "a" / "warehouse")).ok
    assert list(tmp_path.iterdir()) == []


def test_a_warehouse_where_nothing_can_be_written() -> None:
    fact = doctor.locks("/proc/warehouse")
    assert not fact.ok and fact.fix
