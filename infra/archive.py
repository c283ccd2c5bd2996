"""A class-data archive of what a Spark session with Delta loads: it halves a cold start. It is made from the session of
jobs.engine.spark, and is optional.

`python -m infra.archive` does nothing where the archive is of this Java, these jars and this lock. A JVM that cannot
use the archive starts without it.
"""
from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from jobs.engine.spark import ARCHIVE, session

ROOT = Path(__file__).resolve().parent.parent
STAMP = Path(ARCHIVE).with_suffix(".stamp")
WAIT = 600          # seconds, on a machine that is busy otherwise; about 30 where it is not
LEAST = 50_000_000  # bytes: the small JVM that launches Spark may write an archive of its own first


def identity() -> str:
    """What an archive is good for: one Java, one set of jars."""
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    files = (ROOT / name for name in ("requirements.lock", "infra/jars.sha256"))
    return hashlib.sha256(version.encode() + b"".join(f.read_bytes() for f in files)).hexdigest()


def record(path: str, folder: str) -> None:
    """Runs what a first batch runs: Python tasks, a Delta write and read, a join with aggregates."""
    options = f"-XX:+UseSerialGC -XX:ArchiveClassesAtExit={path} -Xlog:disable -Xlog:all=error:stderr"
    spark = session("local[2]", {"spark.driver.extraJavaOptions": options})
    table = os.path.join(folder, "table")
    spark.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id long").collect()
    columns = ("id", "id % 3 AS g", "timestamp_micros(id) AS t", "CAST(id AS decimal(18, 2)) AS d", "string(id) AS s")
    spark.range(100).selectExpr(*columns).write.format("delta").save(table)
    spark.read.format("delta").load(table).createOrReplaceTempView("t")
    aggregates = "a.g, COUNT(*), SUM(b.d), MAX(b.s), STDDEV(b.id)"
    spark.sql(f"SELECT {aggregates} FROM t AS a, t AS b WHERE a.g = b.g AND a.t < b.t GROUP BY a.g HAVING COUNT(*) > 1"
              ).toArrow()
    spark.stop()


def make() -> None:
    """Writes beside the final name and moves: a half-written archive is never used."""
    fresh = Path(f"{ARCHIVE}.new")
    fresh.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="forebay-archive-") as folder:
        # The JVM writes the archive while it ends, after Python's side has ended; it holds these pipes, so their end is
        # its end. FOREBAY_DEBUG: else the session would send the JVM's output to a file.
        command = [sys.executable, "-m", "infra.archive", "record", str(fresh), folder]
        environment = {**os.environ, "FOREBAY_DEBUG": "1"}
        recording = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT, env=environment)
    if recording.returncode or not fresh.exists() or fresh.stat().st_size < LEAST:
        last = "\n".join(recording.stderr.splitlines()[-10:])
        raise SystemExit(f"forebay: no archive was made; the last lines:\n{last}")
    os.replace(fresh, ARCHIVE)
    STAMP.write_text(identity())


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        record(*sys.argv[2:4])
    elif not (os.path.exists(ARCHIVE) and STAMP.exists() and STAMP.read_text() == identity()):
        make()
