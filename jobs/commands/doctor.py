"""What Forebay needs, looked at one by one: each fact says what was found and, where it is not well, the command that
mends it.

Nothing is changed here.
"""
from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from importlib import metadata
from pathlib import Path

from jobs.engine.spark import ARCHIVE, JARS
from jobs.pipeline.config import Pipeline
from jobs.storage.disk import writing
from optimizer.errors import ForebayError

ROOT = Path(__file__).resolve().parent.parent.parent
GIB = 2**30
# P1 large takes up to 4 GiB in all; an environment is 2 GiB, Spark spills beside
LEAST_MEMORY, LEAST_DISK = 4 * GIB, 5 * GIB
CHECKED = ("pyspark", "delta-spark", "duckdb", "deltalake", "sqlglot", "pyarrow", "pandas", "apache-airflow", "mlflow",
           "great-expectations")


@dataclass(frozen=True)
class Fact:
    """`fix` is empty where there is nothing to mend."""

    name: str
    ok: bool
    value: str
    fix: str = ""

    def __str__(self) -> str:
        fix = f"; {self.fix}" if self.fix and not self.ok else ""
        return f"{'ok  ' if self.ok else 'FAIL'} {self.name:<10} {self.value}{fix}"


def facts(pipeline: Pipeline | None, tables: Callable[[Pipeline], Iterable[Fact]] | None = None) -> list[Fact]:
    """Of the machine and the installation.

    With a pipeline also of its warehouse, and of its tables as `tables` sees them.
    """
    scratch = disk(tempfile.gettempdir(), "scratch")
    of_machine = [python(), java(), jars(), archive(), versions(), memory(), zone(), scratch]
    if pipeline is None:
        return of_machine
    if "://" in pipeline.warehouse:
        message = f"{pipeline.warehouse} is not a local path; its disk and locks are the store's"
        of_warehouse = [Fact("warehouse", True, message)]
    else:
        of_warehouse = [disk(pipeline.warehouse, "disk"), locks(pipeline.warehouse)]
    return [*of_machine, *of_warehouse, *(tables(pipeline) if tables else ())]


def python() -> Fact:
    fits = (3, 11) <= sys.version_info[:2] <= (3, 12)
    return Fact("python", fits, f"{sys.version.split()[0]} in {sys.prefix}",
                "rm -rf .venv, then `make install` with Python 3.11 or 3.12")


def java() -> Fact:
    fix = ("install Java 17 or 21, for instance with: apt-get install -y openjdk-17-jre-headless; or set JAVA_HOME to "
           "one")
    command = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
    try:
        output = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=30).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        return Fact("java", False, f"{command}: {error}", fix)
    version = re.search(r'version "((\d+)[^"]*)"', output)
    return Fact("java", version is not None and version[2] in ("17", "21"),
                version[1] if version else output.strip() or f"{command} says no version", fix)


def jars(folder: str = JARS, digests: Path = ROOT / "infra" / "jars.sha256") -> Fact:
    """Names only: `make install` compared the digests when it put them there."""
    lines = digests.read_text().splitlines() if digests.exists() else []
    wanted = {line.split()[1].removeprefix("spark/") for line in lines if "  spark/" in line}
    there = {file.name for file in Path(folder).glob("*.jar")}
    absent = sorted(wanted - there)
    value = f"{folder} lacks {', '.join(absent)}" if absent else f"{len(there)} in {folder}"
    return Fact("jars", bool(there) and not absent, value, "rm -rf .venv/share/forebay; make install")


def archive(path: str = ARCHIVE) -> Fact:
    """Spark starts without it, more slowly: never a failure."""
    if not os.path.exists(path):
        return Fact("archive", True, "none: Spark starts some seconds slower; python -m infra.archive makes it")
    return Fact("archive", True, f"{os.path.getsize(path) // 2**20} MiB of loaded classes")


def versions(lock: Path = ROOT / "requirements.lock") -> Fact:
    if not lock.exists():
        return Fact("versions", True, "no lock beside the code: not compared")
    locked = dict(re.findall(r"^([a-z0-9._-]+)==([^ \\]+)", lock.read_text(), re.MULTILINE))
    installed = {name: _version(name) for name in CHECKED}
    wrong = [f"{name} {version} (locked {locked.get(name)})" for name, version in installed.items()
             if version != locked.get(name)]
    return Fact("versions", not wrong, f"{len(CHECKED)} packages as locked" if not wrong else ", ".join(wrong),
                "rm -f .venv/share/forebay/stamp; make install")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def memory() -> Fact:
    """What the machine has, or what its control group lets this process have."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and limit.read_text().strip().isdigit():
        total = min(total, int(limit.read_text()))
    fix = f"{LEAST_MEMORY // GIB} GiB are needed; lower FOREBAY_TASK_MEMORY and spark.driver.memory where there is less"
    return Fact("memory", total >= LEAST_MEMORY, f"{total / GIB:.1f} GiB", fix)


def disk(path: str, name: str) -> Fact:
    there = _existing(path)
    free = shutil.disk_usage(there).free
    fix = f"{LEAST_DISK // GIB} GiB should be free: remove old tables or choose another place"
    return Fact(name, free >= LEAST_DISK, f"{free / GIB:.1f} GiB free at {there}", fix)


def _existing(path: str) -> Path:
    """The folder itself, or the nearest one above that is there."""
    there = Path(path).absolute()
    while not there.is_dir() and there != there.parent:
        there = there.parent
    return there


def locks(warehouse: str) -> Fact:
    """Two handles on one file must exclude each other; on some network file systems they do not."""
    fix = "put the warehouse on a file system with working locks: a local disk, or NFS 4"
    try:
        with (writing(warehouse), tempfile.NamedTemporaryFile(dir=_existing(warehouse), prefix=".doctor-") as first,
              open(first.name, encoding="utf-8") as second):
            fcntl.flock(first.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                fcntl.flock(second.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return Fact("locks", True, f"flock works in {warehouse}")
        return Fact("locks", False, f"flock in {warehouse} excludes nobody", fix)
    except ForebayError as error:
        return Fact("locks", False, error.message, error.hint or fix)
    except OSError as error:
        return Fact("locks", False, f"{warehouse}: {error.strerror}", fix)


def zone() -> Fact:
    """Any zone will do, event times are UTC; the machine's own only decides how logs read."""
    here = datetime.now().astimezone()
    return Fact("time zone", True, f"{here.tzname()} (UTC{here:%z}); event times are UTC instants whatever it is")
