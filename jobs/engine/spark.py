"""Sessions: the only place that imports PySpark. Where Spark runs is configuration.

Nothing here uses a SparkContext's or the JVM's handles, so Connect works too.
"""
from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import shlex
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

JARS = os.path.join(sys.prefix, "share", "forebay", "jars")
S3_JARS = os.path.join(sys.prefix, "share", "forebay", "s3")                # by `make install-s3`
ARCHIVE = os.path.join(sys.prefix, "share", "forebay", "spark.jsa")       # class-data archive: halves a cold start
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.log.level": "ERROR",
}
# seconds that a session is taken again; a server forgets one after an hour without use, so none is asked for that it
# has forgotten
LASTS = 1800
ROOT = Path(__file__).resolve().parent.parent.parent
# what runs by `make up`, as infra/up.py writes it
UP = Path(os.environ.get("FOREBAY_UP", ROOT / ".forebay" / "up")) / "where.json"
# Spark's name: both sides take it from there; without TLS its client does so for `localhost` only
TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
PATIENCE = 0.2           # seconds that the server of `make up` has for taking a connection
ANSWERS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.parquet.outputTimestampType",
           "spark.sql.shuffle.partitions")
MICROSECONDS = r"yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX"      # of a timestamp in JSON, as a literal of SQL has it


class SparkFailure(Exception):
    """Spark, or a task of it, ended with an error of its own."""


def session(master: str = "local[*]", settings: Mapping[str, str] | None = None, lasting: str = "") -> Any:
    """A classic session (`local[*]`, `spark://…`) or a Connect one (`sc://…`); the Python of the workers is this one.

    A Connect session has Python workers of its own, which take seconds to start. Processes that say the same `lasting`
    name, one after the other, use one session of the server and find them warm; the server lets it go an hour after the
    last."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark import SparkContext  # a second of imports that `result` and `query` need not pay
    from pyspark.sql import SparkSession

    if master.startswith("sc://"):
        return _remote(SparkSession.builder, master, settings or {}, lasting)
    jars = sorted(glob.glob(os.path.join(JARS, "*.jar")))
    options = "-XX:+IgnoreUnrecognizedVMOptions -Xlog:disable -Xlog:all=error:stderr"
    if os.path.exists(ARCHIVE) and master.startswith("local["):
        options += f" -XX:SharedArchiveFile={ARCHIVE} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    named = {"spark.app.name": "forebay", "spark.master": master, "spark.jars": ",".join(jars)}
    all_settings = {
        **named,
        **SETTINGS, "spark.driver.extraJavaOptions": options,
        **_connector(settings or {}),
        **(settings or {})
    }
    with _quiet(), _hidden_from_other_users(all_settings):
        # starts the JVM; getOrCreate would put every setting on its command line
        SparkContext._ensure_initialized()
        return SparkSession.builder.config(map=all_settings).getOrCreate()


def _remote(builder: Any, master: str, settings: Mapping[str, str], lasting: str) -> Any:
    connected = builder.remote(_address(master, lasting)).getOrCreate()
    connected.release_session_on_close = not lasting
    try:
        return _configured(connected, settings)
    except Exception as error:
        # Somebody has closed the lasting session: a session for this process alone is slower, not wrong.
        if not lasting or "SESSION" not in str(error):
            raise
        connected.stop()
        return _remote(builder, master, settings, "")


def _address(master: str, lasting: str) -> str:
    """The same session for the same name, Python and code, but not for longer than the server remembers it.

    An address that says more is left as it is.
    """
    if not lasting or not re.fullmatch(r"sc://[^/;]+/?", master):
        return master
    key = f"{lasting} {sys.prefix} {_newest_change()} {int(time.time() // LASTS)}"
    session_id = uuid.UUID(bytes=hashlib.sha256(key.encode()).digest()[:16], version=4)
    return f"{master.rstrip('/')}/;session_id={session_id}"


def _newest_change() -> int:
    """When the newest of the modules changed that a worker keeps once it has loaded them."""
    modules = [*(ROOT / "jobs").rglob("*.py"), *(ROOT / "optimizer").rglob("*.py")]
    return max(module.stat().st_mtime_ns for module in modules)


@contextmanager
def _hidden_from_other_users(settings: Mapping[str, str]) -> Iterator[None]:
    """A JVM that starts in it has the settings from a file for this user only: all users see a command line, and
    settings have secrets.
    """
    before = os.environ.get("PYSPARK_SUBMIT_ARGS")
    number, path = tempfile.mkstemp(prefix="forebay-spark-", suffix=".conf")
    try:
        with open(number, "w", encoding="utf-8") as file:
            file.writelines(f"{_escaped(key)}={_escaped(str(value))}\n" for key, value in settings.items())
        arguments = f"--load-spark-defaults --properties-file {shlex.quote(path)}"
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"{arguments} {before or 'pyspark-shell'}"
        yield
    finally:
        os.unlink(path)
        if before is None:
            os.environ.pop("PYSPARK_SUBMIT_ARGS", None)
        else:
            os.environ["PYSPARK_SUBMIT_ARGS"] = before


def _escaped(text: str) -> str:
    """As java.util.Properties reads it."""
    escapes = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "=": "\\=", ":": "\\:", "#": "\\#", "!": "\\!",
               " ": "\\ "}
    return "".join(escapes.get(character, character) for character in text)


def warm_server() -> str | None:
    """The address of the server of `make up` on this machine, if it answers: `sc://localhost:15002`.

    Whoever uses it needs its token, which is in the environment from here on.
    """
    try:
        where = json.loads(UP.read_text(encoding="utf-8"))
        address, token = str(where["spark"]), str(where["token"])
        host, _, port = address.removeprefix("sc://").rstrip("/").partition(":")
        with socket.create_connection((host, int(port)), PATIENCE):
            os.environ.setdefault(TOKEN, token)
            return address
    except (OSError, ValueError, KeyError):
        return None


_KEPT: list[bool] = []


@contextmanager
def kept() -> Iterator[None]:
    """Within, a session outlives those who used it, so that the next finds it warm."""
    _KEPT.append(True)
    try:
        yield
    finally:
        _KEPT.pop()


def release(session: Any) -> None:
    if not _KEPT:
        session.stop()


def _connector(settings: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's connector where it is configured, by class path: `spark.jars` would copy its 660 MB at each start.

    A cluster's workers have their own.
    """
    wanted = os.path.isdir(S3_JARS) and any(key.startswith("spark.hadoop.fs.s3a.") for key in settings)
    return {"spark.driver.extraClassPath": os.path.join(S3_JARS, "*")} if wanted else {}


@contextmanager
def _quiet() -> Iterator[None]:
    """A JVM that starts in it writes its messages to a file, not to the stderr of the command.

    A JVM keeps the stdout and stderr that it is started with. With FOREBAY_DEBUG its messages are shown.
    """
    if os.environ.get("FOREBAY_DEBUG"):
        yield
        return
    path = os.path.join(tempfile.gettempdir(), f"forebay-spark-{os.getuid()}.log")
    copies, log = (os.dup(1), os.dup(2)), os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        yield
    finally:
        for number, copy in zip((1, 2), copies):
            os.dup2(copy, number)
            os.close(copy)
        os.close(log)


def _configured(connected: Any, settings: Mapping[str, str]) -> Any:
    """The session with those settings on which answers depend, whatever its server was started with."""
    of_answers = {key: SETTINGS[key] for key in ANSWERS}
    of_sql = {key: value for key, value in settings.items() if key.startswith("spark.sql.")}
    for key, value in (of_answers | of_sql).items():
        connected.conf.set(key, value)
    return connected


def run_tasks(spark: Any, work: Callable[[int], Iterable[bytes]], count: int) -> list[bytes]:
    """work(i) for i < count in Spark's Python tasks, one Spark job; the driver gets what they return."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for i in batch.column(0).to_pylist():
                yield pa.record_batch({"payload": pa.array(list(work(i)), pa.binary())})

    with guarded():
        return list(_numbers(spark, count).mapInArrow(run, _fields("payload")).toArrow().column(0).to_pylist())


def by_partition(frame: Any, work: Callable[[Iterator[pa.RecordBatch]], bytes]) -> list[bytes]:
    """work(rows) for each partition of a frame, in Spark's Python tasks; the driver gets what they return."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"payload": pa.array([work(batches)], pa.binary())})

    return list(frame.mapInArrow(run, _fields("payload")).toArrow().column(0).to_pylist())


@lru_cache(maxsize=8)
def _numbers(spark: Any, count: int) -> Any:
    """0, 1, … in as many partitions, described once: each call to the JVM costs a millisecond."""
    return spark.range(0, count, 1, count)


@lru_cache(maxsize=2)
def _fields(binary: str, integer: str | None = None) -> Any:
    """A schema as an object: as a text, the JVM would parse it for each job."""
    from pyspark.sql.types import BinaryType, LongType, StructField, StructType

    return StructType([*([StructField(integer, LongType())] if integer else []), StructField(binary, BinaryType())])


def run_exchange(spark: Any, send: Callable[[int], Iterable[tuple[int, bytes]]],
                 receive: Callable[[int, list[bytes]], Iterable[bytes]], senders: int, receivers: int) -> list[bytes]:
    """send(i) for i < senders gives (to, payload).

    Receive(k, payloads) for k < receivers; one Spark job, Spark's shuffle between its two stages.
    """

    def sending(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for i in batch.column(0).to_pylist():
                yield from (_message(to, payload) for to, payload in send(i))
            # a task to which nothing is sent has to run as well
            if batch.num_rows and 0 in batch.column(0).to_pylist():
                yield from (_message(to, b"") for to in range(receivers))

    def receiving(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        got: dict[int, list[bytes]] = {}
        for batch in batches:
            for to, payload in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist()):
                got.setdefault(to, []).append(payload)
        for to, payloads in got.items():
            results = list(receive(to, [payload for payload in payloads if payload]))
            yield pa.record_batch({"payload": pa.array(results, pa.binary())})

    with guarded():
        sent = _numbers(spark, senders).mapInArrow(sending, _fields("payload", "to"))
        placed = sent.repartitionById(receivers, sent["to"].cast("int"))
        return list(placed.mapInArrow(receiving, _fields("payload")).toArrow().column(0).to_pylist())


def _message(to: int, payload: bytes) -> pa.RecordBatch:
    return pa.record_batch({"to": pa.array([to], pa.int64()), "payload": pa.array([payload], pa.binary())})


def produce(spark: Any, rows: pa.Table, key: str, servers: str, topic: str, options: Mapping[str, str]) -> None:
    """Rows as JSON messages with all microseconds, in their order: one task sends them."""
    value = f"to_json(struct(*), map('timestampFormat', '{MICROSECONDS}')) AS value"
    with guarded():
        messages = spark.createDataFrame(rows).coalesce(1).selectExpr(f"CAST({key} AS STRING) AS key", value)
        kafka_options = {f"kafka.{name.removeprefix('kafka.')}": value for name, value in options.items()}
        to_topic = {"kafka.bootstrap.servers": servers, "topic": topic}
        messages.write.format("kafka").options(**kafka_options, **to_topic).save()


@contextmanager
def guarded() -> Iterator[None]:
    """Whatever is called in it, an error is Spark's."""
    try:
        yield
    except Exception as error:      # PySpark's, Py4J's and gRPC's have no common base
        raise SparkFailure(_reason(error)) from error


def _reason(error: Exception) -> str:
    """What a Python task died of is the last line of its traceback, among Java's.

    Of an error of Java's own the first line that names it.
    """
    if "UNAUTHENTICATED" in str(error):
        return ("the Connect server asks for its token: set SPARK_CONNECT_AUTHENTICATE_TOKEN, and name a server here "
                "sc://localhost:PORT")
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception): ", line)]
    return errors[0] if errors else (lines[0] if lines else type(error).__name__)


def default_parallelism(spark: Any) -> int:
    """Tasks that a session runs at once, as far as its configuration tells."""
    return at_once(spark.conf.get)


def at_once(setting: Callable[[str, str], str | None]) -> int:
    """Where a cluster gives executors as tasks wait for them, those of as many as it may give: the tasks asked for make
    them come.
    """
    master = str(setting("spark.master", "local[2]"))
    most = str(setting("spark.dynamicAllocation.maxExecutors", ""))
    is_dynamic = str(setting("spark.dynamicAllocation.enabled", "false")).lower() == "true"
    if not master.startswith("local") and is_dynamic and most.isdigit():
        return int(most) * int(setting("spark.executor.cores", "1") or 1)
    return cores(master, int(setting("spark.cores.max", "2") or 2))


def cores(master: str, otherwise: int = 2) -> int:
    """As far as a master's name tells."""
    inner = master.split("[")[1].rstrip("]") if "[" in master else ""
    if inner == "*":
        return os.cpu_count() or 2
    if "," in inner:
        workers, cores, *_ = (int(x) for x in inner.split(","))
        return workers * cores
    return int(inner) if inner.isdigit() else otherwise
