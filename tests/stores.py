"""A store with S3's interface in a process of its own, and how a pipeline reaches it."""
from __future__ import annotations

import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator

import pytest
from pyarrow import fs

from tests.servers import free_port


def serving(folders: pytest.TempPathFactory) -> Iterator[str]:
    """Not in this process: delta-rs holds the interpreter's lock while it waits for some answers."""
    port = free_port()
    with open(folders.mktemp("server") / "log", "wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p",
                                    str(port)], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert process.poll() is None and time.monotonic() < deadline, "the server does not start"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def new_bucket(server: str) -> str:
    name = f"test-{uuid.uuid4().hex[:12]}"
    arrow(server).create_dir(name)
    return name


def arrow(server: str) -> fs.S3FileSystem:
    return fs.S3FileSystem(access_key="reader", secret_key="secret", region="us-east-1", endpoint_override=server,
                           allow_bucket_creation=True)


def settings(server: str) -> dict[str, str]:
    return {
        "spark.hadoop.fs.s3a.endpoint": server,
        "spark.hadoop.fs.s3a.access.key": "writer",
        "spark.hadoop.fs.s3a.secret.key": "hidden-secret",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1"
    }
