"""A warm Spark Connect server with Delta: its command line, and `python -m infra.connect` that becomes it; the client's
address is sc://HOST:PORT.

Who can reach it runs code as its owner, unless SPARK_CONNECT_AUTHENTICATE_TOKEN is set: then it answers only to clients
that have the same.
"""
from __future__ import annotations

import argparse
import glob
import os
import sys
from pathlib import Path

from jobs.engine.spark import JARS, SETTINGS

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


def command(host: str, port: int, master: str = "local[2]", memory: str = "1g") -> tuple[str, ...]:
    jars = ",".join(sorted(glob.glob(os.path.join(JARS, "*.jar"))))
    settings = {**SETTINGS, "spark.connect.grpc.binding.address": host, "spark.connect.grpc.binding.port": str(port)}
    options = tuple(part for key, value in settings.items() if key != "spark.driver.memory"
                    for part in ("--conf", f"{key}={value}"))
    submit = str(Path(sys.executable).parent / "spark-submit")
    return (submit, "--master", master, "--driver-memory", memory, "--jars", jars, "--class", SERVER, *options,
            "spark-internal")


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--host", default="127.0.0.1")
    given.add_argument("--port", type=int, default=15002)
    given.add_argument("--master", default="local[*]")
    given.add_argument("--memory", default="2g")
    arguments = given.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    become = command(arguments.host, arguments.port, arguments.master, arguments.memory)
    os.execv(become[0], become)


if __name__ == "__main__":
    main()
