"""The installer names what is missing in one line, and does nothing when its stamp says that it is done.

Run for real, in a copy, with a PATH of our own.
"""
from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("requirements.lock", "setup.cfg", "infra/install", "infra/ivy.xml", "infra/jars.sha256", "infra/jars.py",
          "infra/archive.py", "jobs/commands/airflow_home.py")
TOOLS = ("bash", "env", "cat", "cut", "dirname", "sed", "sha256sum")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files that the installer reads, and a folder `bin` with the shell's tools only."""
    for name in NEEDED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or pytest.fail(f"{tool} is not here"))
    return tmp_path


def install(copy: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([copy / "infra" / "install"], env={
        "PATH": str(copy / "bin"),
        **environment
    }, capture_output=True, text=True)


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{shutil.which('bash')}\n{text}\n")
    path.chmod(0o755)


def test_missing_python_is_named(copy: Path) -> None:
    done = install(copy)
    assert done.returncode == 1 and done.stderr.startswith("forebay: Python 3.11 or 3.12") and done.stderr.count(
        "\n") == 1


def test_a_python_that_fails_is_passed_over(copy: Path) -> None:
    script(copy / "bin" / "python3.11", "exit 127")
    assert "Python 3.11 or 3.12" in install(copy).stderr
    assert "Java" in install(copy, PYTHON=sys.executable).stderr


@pytest.mark.parametrize("version", ["11.0.2", pytest.param("1.8.0_391", marks=pytest.mark.slow)])
def test_missing_and_old_java_are_named(copy: Path, version: str) -> None:
    script(copy / "jdk" / "bin" / "java", f"echo 'openjdk version \"{version}\" 2024-01-16' >&2")
    for home, found in (("nowhere", "none"), ("jdk", version.split(".")[0])):
        done = install(copy, PYTHON=sys.executable, JAVA_HOME=str(copy / home))
        assert done.returncode == 1 and f"Java 17 or 21 (found: {found})" in done.stderr and done.stderr.count(
            "\n") == 1
    assert not (copy / ".venv").exists()


def test_a_stamp_of_the_same_inputs_makes_it_do_nothing(copy: Path) -> None:
    stamp = copy / ".venv" / "share" / "forebay" / "stamp"
    stamp.parent.mkdir(parents=True)
    order = ("requirements.lock", "infra/ivy.xml", "infra/jars.sha256", "infra/install", "infra/jars.py",
             "infra/archive.py", "setup.cfg", "jobs/commands/airflow_home.py")
    stamp.write_text(hashlib.sha256(b"".join((copy / name).read_bytes() for name in order)).hexdigest())
    done = install(copy)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with open(copy / "requirements.lock", "a", encoding="utf-8") as lock:
        lock.write("\n")
    assert install(copy).returncode == 1


def test_jars_that_are_not_the_repositorys_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from infra import jars
    digests = tmp_path / "jars.sha256"
    monkeypatch.setattr(jars, "DIGESTS", digests)
    (tmp_path / "a-1.jar").write_bytes(b"a")
    jars.write("spark", [tmp_path / "a-1.jar"])
    jars.refuse_strangers("spark", [tmp_path / "a-1.jar"])
    (tmp_path / "a-1.jar").write_bytes(b"b")
    with pytest.raises(SystemExit, match="a-1.jar"):
        jars.refuse_strangers("spark", [tmp_path / "a-1.jar"])
    with pytest.raises(SystemExit, match="a-1.jar"):
        jars.refuse_strangers("spark", [])


@pytest.mark.parametrize("jar,name", [("jackson-core-2.19.0.jar", "jackson-core"),
                                      ("delta-spark_4.2_2.13-4.4.0.jar", "delta-spark_4.2_2.13"),
                                      ("wildfly-openssl-2.2.5.Final.jar", "wildfly-openssl"),
                                      ("zstd-jni-1.5.6-10.jar", "zstd-jni"), ("a-1.0-rc-2.jar", "a")])
def test_an_artifact_is_its_jar_without_the_version(jar: str, name: str) -> None:
    from infra import jars
    assert jars.artifact(jar) == name


def test_the_digests_hold_all_three_sets() -> None:
    from infra import jars
    assert all(jars.digests(chosen) for chosen in jars.FOLDERS)
