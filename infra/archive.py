"""A class-data archive of the classes that a Spark session with Delta loads: it halves a cold start. It is made from the session that jobs.spark makes, and is optional.

`python -m infra.archive` does nothing where the archive is of this Java, these jars and this lock. A JVM that cannot use the archive starts without it.
"""
from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jobs.spark import ARCHIVE, session

ROOT = Path(__file__).resolve().parent.parent
STAMP = Path(ARCHIVE).with_suffix(".stamp")
WAIT = 120          # seconds: the archive is written after Python's side of the session has ended
LEAST = 50_000_000  # bytes: the small JVM that launches Spark may write an archive of its own first


def identity() -> str:
    """What an archive is good for: one Java, one set of jars, the options that jobs.spark gives."""
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    files = (ROOT / name for name in ("requirements.lock", "infra/jars.sha256", "jobs/spark.py"))
    return hashlib.sha256(version.encode() + b"".join(f.read_bytes() for f in files)).hexdigest()


def record(path: str, folder: str) -> None:
    """Runs what a first batch runs: Python tasks, a Delta write and read, a join with aggregates."""
    spark = session("local[2]", {"spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -XX:ArchiveClassesAtExit={path} -Xlog:disable -Xlog:all=error:stderr"})
    table = os.path.join(folder, "table")
    spark.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id long").collect()
    spark.range(100).selectExpr("id", "id % 3 AS g", "timestamp_micros(id) AS t", "CAST(id AS decimal(18, 2)) AS d", "string(id) AS s").write.format("delta").save(table)
    spark.read.format("delta").load(table).createOrReplaceTempView("t")
    spark.sql("SELECT a.g, COUNT(*), SUM(b.d), MAX(b.s), STDDEV(b.id) FROM t AS a, t AS b WHERE a.g = b.g AND a.t < b.t GROUP BY a.g HAVING COUNT(*) > 1").toArrow()
    spark.stop()


def make() -> None:
    """Writes beside the final name and moves: a half-written archive is never used."""
    before = Path(f"{ARCHIVE}.new")
    before.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="forebay-archive-") as folder:
        subprocess.run([sys.executable, "-m", "infra.archive", "record", str(before), folder], cwd=ROOT, check=True)
        settled(before)
    os.replace(before, ARCHIVE)
    STAMP.write_text(identity())


def settled(path: Path) -> None:
    """Waits until the archive is there in full; the JVM writes it while it ends."""
    size, end = -1, time.monotonic() + WAIT
    while size < LEAST or path.stat().st_size != size:
        if time.monotonic() > end:
            raise SystemExit("forebay: the JVM wrote no archive")
        size = path.stat().st_size if path.exists() else -1
        time.sleep(0.5)


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        record(*sys.argv[2:4])
    elif not (os.path.exists(ARCHIVE) and STAMP.exists() and STAMP.read_text() == identity()):
        make()
