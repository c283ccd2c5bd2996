"""A Kafka topic as a source, with a real broker that the test starts: each message once, new partitions found, offsets
moved only with the commit.
"""
from __future__ import annotations

import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.engine import spark
from jobs.papers.generator import SECOND, GeneratedStream
from jobs.papers.generator_files import START, pieces
from jobs.papers.generator_kafka import sent
from jobs.storage import failpoints
from tests.jobs.ingesting import counts, pipeline, reasons, rows, stored, take
from tests.servers import free_port

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]
LOGGING = sorted(
    glob.glob(os.path.join(sys.prefix, "lib", "python*", "site-packages", "pyspark", "jars", "s*f4j-*.jar")))


def java(jars: list[Path], *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", ":".join([*map(str, jars), *LOGGING]), *arguments],
        **options)


class Broker:
    """One KRaft node, broker and controller, in a folder that goes with it."""

    def __init__(self, folder: Path, jars: list[Path]) -> None:
        listen, control = free_port(), free_port()
        self.servers, self.log = f"127.0.0.1:{listen}", folder / "broker.log"
        settings = folder / "server.properties"
        settings.write_text("\n".join([
            "process.roles=broker,controller", "node.id=1", f"controller.quorum.voters=1@127.0.0.1:{control}",
            "controller.listener.names=CONTROLLER",
            f"listeners=PLAINTEXT://{self.servers},CONTROLLER://127.0.0.1:{control}", f"log.dirs={folder / 'logs'}",
            "offsets.topic.replication.factor=1", "transaction.state.log.replication.factor=1",
            "auto.create.topics.enable=false", "group.initial.rebalance.delay.ms=0", ""
        ]))
        assert java(jars, "kafka.tools.StorageTool", "format", "-t",
                    uuid.uuid4().hex[:22], "-c", str(settings), stdout=subprocess.DEVNULL).wait(120) == 0
        with open(self.log, "wb") as log:
            self.process = java(jars, "kafka.Kafka", str(settings), stdout=log, stderr=log)
        limit = time.monotonic() + 120
        while not self._answers():
            assert self.process.poll() is None and time.monotonic() < limit, self.log.read_text()[-2000:]
            time.sleep(0.2)

    def _answers(self) -> bool:
        host, number = self.servers.split(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(number))) == 0

    def topic(self, name: str, partitions: int) -> None:
        """Makes a topic, or gives it more partitions."""
        jvm = spark.session("local[2]")._jvm
        admin = jvm.org.apache.kafka.clients.admin
        settings = jvm.java.util.HashMap()
        settings.put("bootstrap.servers", self.servers)
        client = admin.Admin.create(settings)
        try:
            if name in client.listTopics().names().get():
                client.createPartitions({name: admin.NewPartitions.increaseTo(partitions)}).all().get()
            else:
                client.createTopics([admin.NewTopic(name, partitions, 1)]).all().get()
        finally:
            client.close()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def broker(kafka_jars: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    folder = tmp_path_factory.mktemp("broker")
    made = Broker(folder, kafka_jars)
    yield made
    made.stop()
    shutil.rmtree(folder / "logs", ignore_errors=True)


def send(broker: Broker, topic: str, *messages: tuple[int, Any]) -> None:
    """(partition, value); a text as it is, None as a message without value."""
    session = spark.session("local[2]")
    values = [(p, None if v is None else v if isinstance(v, str) else json.dumps(v)) for p, v in messages]
    frame = session.createDataFrame(values, "partition int, value string").coalesce(1)
    frame.write.format("kafka").option("kafka.bootstrap.servers", broker.servers).option("topic", topic).save()


def second(i: int) -> dict[str, Any]:
    return {"ts": f"1970-01-01T00:00:{i:02d}Z", "ms": i}


def test_topic_is_read_once(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.topic("clicks", 2)
    pipe = pipeline(tmp_path, source=f'{{kafka: {{servers: "{broker.servers}", topic: clicks}}}}')
    assert counts(pipe) == (0, 0, 0, 0), "nothing is there yet"
    send(broker, "clicks", (0, second(1)), (1, second(2)), (1, second(3)), (0, "{broken"), (1, None), (0, {
        **second(4), "z": 1
    }))
    assert counts(pipe)[1:] == (3, 3, 0)
    assert stored(pipe, "ms") == [(1,), (2,), (3,)]
    assert reasons(pipe) == ["event time is NULL", "not a JSON object", "unknown column z"]
    assert {s for s, in rows(pipe, "streams/views", "_source")} == {"kafka:clicks/0", "kafka:clicks/1"}
    assert counts(pipe) == (0, 0, 0, 0)
    send(broker, "clicks", (1, second(5)))
    monkeypatch.setenv("FOREBAY_FAILPOINT", "ingest.after-stream:1:raise")
    monkeypatch.setattr(failpoints, "_passes", type(failpoints._passes)())
    with pytest.raises(failpoints.Reached):
        take(pipe)
    monkeypatch.delenv("FOREBAY_FAILPOINT")
    assert counts(pipe) == (0, 0, 0, 0), "the crash came after the commit: the message was taken"
    broker.topic("clicks", 3)
    send(broker, "clicks", (2, second(6)), (0, second(7)))
    assert counts(pipe)[1:] == (2, 0, 0)
    assert stored(pipe, "ms") == [(1,), (2,), (3,), (5,), (6,), (7,)]
    offsets, = rows(pipe, "ledger/files", "arg_max(digest, ingest)")[0]
    assert json.loads(offsets) == {"clicks": {"0": 4, "1": 4, "2": 1}}


def test_no_broker_is_said(tmp_path: Path) -> None:
    options = "options: {default.api.timeout.ms: 3000, request.timeout.ms: 2000}"
    pipe = pipeline(tmp_path, source=f'{{kafka: {{servers: "127.0.0.1:{free_port()}", topic: clicks, {options}}}}}')
    refused, = take(pipe)["refused"]
    assert refused["stream"] == "views" and "clicks at 127.0.0.1" in refused["reason"]
    assert stored(pipe) == []


def test_a_generated_stream_arrives_as_the_generator_gives_it(broker: Broker, tmp_path: Path) -> None:
    """Every tuple of the seed, with its microseconds, in several sendings over two partitions."""
    broker.topic("generated", 2)
    stream = GeneratedStream(500, groups=5, distinct=7, attributes=2)
    assert list(sent(spark.session("local[2]"), stream, 3, broker.servers, "generated", seed=4,
                     rows=400)) == [375, 375, 375, 375]
    columns = "{ts: timestamp, g: string, j: string, a1: bigint, a2: bigint}"
    pipe = pipeline(tmp_path, columns=columns, source=f'{{kafka: {{servers: "{broker.servers}", topic: generated}}}}')
    assert counts(pipe, clock=START + 10 * SECOND)[1:] == (1500, 0, 0)
    expected = [tuple(row.values()) for piece in pieces(stream, 3, 4, rows=400) for row in piece.to_pylist()]
    assert stored(pipe, "ts, g, j, a1, a2") == sorted(expected)
