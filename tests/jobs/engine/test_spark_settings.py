"""What a JVM is started with: every setting, and none of them where other users can see it."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SECRET = "s3cr=t: #\\value\u00e9 with blanks"
PROGRAM = f"""
import os, pathlib, tempfile
from jobs.engine import spark
secret = {SECRET!r}
session = spark.session("local[1]", {{"spark.hadoop.fs.s3a.secret.key": secret, "spark.driver.memory": "600m"}})
print(session.sparkContext.getConf().get("spark.hadoop.fs.s3a.secret.key") == secret)
commands = [p.read_bytes() for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if os.stat(p).st_uid == os.getuid()]
ours = [c for c in commands if os.environ["MARK"].encode() in c]
print(len(ours) >= 1, not [c for c in commands if b"s3cr=t" in c], any(b"-Xmx600m" in c for c in ours))
print(session.range(3).count(), session.conf.get("spark.sql.session.timeZone"), os.environ.get("PYSPARK_SUBMIT_ARGS"))
names = os.listdir(tempfile.gettempdir())
print([name for name in names if name.startswith("forebay-spark-") and name.endswith(".conf")])
session.stop()
again = spark.session("local[1]", {{"spark.sql.shuffle.partitions": "7"}})
print(again.conf.get("spark.sql.shuffle.partitions"), again.range(2).count())
"""


@pytest.mark.spark
def test_secrets_stand_on_no_command_line(tmp_path: Path) -> None:
    environment = {
        **os.environ, "TMPDIR": str(tmp_path),
        "MARK": str(tmp_path),
        "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={tmp_path}",
        "PYSPARK_SUBMIT_ARGS": "--name given pyspark-shell"
    }
    done = subprocess.run([sys.executable, "-"], input=PROGRAM, cwd=ROOT, env=environment, capture_output=True,
                          text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "True", "True True True", "3 UTC --name given pyspark-shell", "[]", "7 2"]
