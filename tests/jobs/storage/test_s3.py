"""Warehouses on s3a://: a real server in a process of its own, the whole life of a pipeline, races, and what a store
that cannot be used is said to be.
"""
from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

import forebay
from jobs.maintenance import compact
from jobs.storage import places, tables
from jobs.storage.places import Remote
from jobs.storage.tables import Conflict
from optimizer.errors import ForebayError
from optimizer.time import instant
from tests.jobs.pipelines import COUNT, answers, equal, opened, pipeline, ran, rows
from tests.stores import arrow, new_bucket, serving, settings

BOTH = ("SELECT v.k, COUNT(*) AS n, SUM(v.x) AS s FROM views AS v [WINDOW 20 SECONDS], buys AS b [WINDOW 30 SECONDS] "
        "WHERE v.k = b.k GROUP BY v.k")
ROWS = "SELECT v.k, v.x, b.x AS y FROM views AS v [WINDOW 20 SECONDS], buys AS b [WINDOW 20 SECONDS] WHERE v.k = b.k"
CLI = [sys.executable, "-m", "forebay.cli"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from serving(tmp_path_factory)


@pytest.fixture
def bucket(server: str) -> str:
    return new_bucket(server)


def _pipeline(folder: Path, warehouse: str, settings: dict[str, str], streams: dict[str, str] | None = None,
              queries: dict[str, str] | None = None, master: str = "inline") -> forebay.Pipeline:
    """As `pipelines.pipeline`, on a store."""
    told = ", ".join(f'{k}: "{v}"' for k, v in settings.items())
    spark = f"{{master: '{master}', settings: {{{told}}}}}"
    return pipeline(folder, streams, queries=queries, top=f"warehouse: {warehouse}\n", spark=spark)


def _files(server: str, path: str) -> list[str]:
    return [f.path for f in arrow(server).get_file_info(fs.FileSelector(path, recursive=True)) if f.is_file]


def _lived(pipe: forebay.Pipeline, folder: Path, keeping: str) -> None:
    """Batches, the later ones by a runtime that begins anew; then all answers, and the plain SQL over the rows."""
    pipe.create("q", BOTH)
    pipe.change("q", "pin", f"EAP11 {keeping}")
    for step in range(3):
        rows(pipe, [step * 10 + 1, step * 10 + 6], k=step % 2, x=step)
        rows(pipe, [step * 10 + 3], "buys", k=step % 2)
        assert ran(pipe) == ([step * 10.0] if step else [])
        if step == 1:
            pipe = opened(folder)
    assert ran(pipe, flush=True) == [30]
    assert answers(pipe, "q") == [(10, 0, 2, 0), (20, 0, 2, 0), (20, 1, 2, 2), (30, 0, 4, 8), (30, 1, 2, 2)]
    assert equal(pipe)


@pytest.mark.s3
@pytest.mark.timeout(600)
@pytest.mark.parametrize("keeping",
                         ["running", *(pytest.param(k, marks=pytest.mark.long) for k in ("recompute", "expire"))])
def test_a_pipeline_lives_on_a_store(tmp_path: Path, server: str, bucket: str, keeping: str) -> None:
    pipe = _pipeline(tmp_path, f"s3a://{bucket}/deep/warehouse", settings(server), {
        "views": "",
        "buys": ""
    }, {"pairs": ROWS})
    _lived(pipe, tmp_path, keeping)
    assert not (tmp_path / "warehouse").exists()
    found = _files(server, f"{bucket}/deep/warehouse")
    assert (keeping == "recompute" or any("/state/q/" in f and f.endswith(".parquet")
                                          for f in found)) and any("/results/pairs/" in f for f in found)


@pytest.mark.s3
def test_relations_quarantine_and_data_frames(tmp_path: Path, server: str, bucket: str) -> None:
    (tmp_path / "pages.csv").write_text("k,section\n1,news\n2,sport\n")
    pipe = _pipeline(
        tmp_path, f"s3a://{bucket}/w", settings(server), queries={
            "q": "SELECT p.section, COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS], pages AS p WHERE v.k = p.k "
                 "GROUP BY p.section"
        })
    with open(tmp_path / "forebay.yml", "a", encoding="utf-8") as file:
        file.write("relations:\n  pages: {columns: {k: bigint, section: string}, source: {files: pages.csv}}\n")
    pipe = opened(tmp_path)
    pipe.ingest()
    stamp = pa.array([instant(1_767_225_600 * 10 ** 6 + s * 10 ** 6) for s in (1, 12, -(10 ** 10))],
                     pa.timestamp("us", "UTC"))
    frame = pa.table({"ts": stamp, "k": [1, 2, 1], "x": [1, 1, 1]})
    assert pipe.ingest("views", frame)["streams"]["views"] == {"files": 1, "rows": 2, "quarantined": 1, "late": 0}
    assert pipe.ingest("views", frame)["streams"]["views"]["rows"] == 0
    assert ran(pipe, flush=True) == [10, 20] and equal(pipe)
    assert answers(pipe, "q") == [(10, "news", 1), (20, "news", 1), (20, "sport", 1)]
    assert not [f for f in _files(server, f"{bucket}/w") if "/staging/" in f]


@pytest.mark.long
@pytest.mark.s3
@pytest.mark.timeout(600)
def test_compaction_and_sweeping(tmp_path: Path, server: str, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "STATE_FILES", 2)
    monkeypatch.setattr(compact, "SMALL_FILES", 3)
    monkeypatch.setattr(compact, "GRACE", -5.0)
    monkeypatch.setattr(compact, "SWEEP_EVERY", 0.0)
    pipe = _pipeline(tmp_path, f"s3a://{bucket}/w", settings(server), {"views": "", "buys": ""})
    pipe.create("q", BOTH)
    pipe.change("q", "pin", "EAP11 expire")
    for step in range(5):      # more files of state, and of a stream, than are left alone
        rows(pipe, [step * 10 + 1], k=1)
        rows(pipe, [step * 10 + 3], "buys", k=1)
        ran(pipe)
    before = pipe.runtime.ledger.last()
    assert before is not None and any(f.path.startswith("merged") for f in pipe.runtime.table("streams/views").files())
    arrow(server).copy_file(
        _files(server, f"{bucket}/w/streams/views")[-1], f"{bucket}/w/state/left/1/set/rows-1.parquet")
    pipe.change("q", "pin", "LAP recompute")
    assert ran(pipe, flush=True) == [50] and equal(pipe)
    ran(opened(tmp_path))      # recovery sweeps: state of the plan that was left, and of no query
    assert not [f for f in _files(server, f"{bucket}/w") if "/state/" in f]


@pytest.mark.s3
@pytest.mark.long
@pytest.mark.parametrize("failpoint", ["batch.after-intent", "batch.after-state", "batch.before-commit"])
def test_a_killed_batch_is_run_again(tmp_path: Path, server: str, bucket: str, failpoint: str) -> None:
    pipe = _pipeline(tmp_path, f"s3a://{bucket}/w", settings(server), {"views": "", "buys": ""}, {"pairs": ROWS})
    pipe.create("q", BOTH)
    pipe.change("q", "pin", "EAP11 running")
    for step in (0, 1):
        rows(pipe, [step * 10 + 1], k=1)
        rows(pipe, [step * 10 + 3], "buys", k=1)
    died = subprocess.run([*CLI, "run", "--pipeline", str(tmp_path)], env={
        **os.environ, "FOREBAY_FAILPOINT": failpoint,
        "PYTHONPATH": os.getcwd()
    }, capture_output=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    pipe = opened(tmp_path)
    assert ran(pipe, flush=True) == [10, 20] and equal(pipe)
    assert answers(pipe, "q") == [(10, 1, 1, 1), (20, 1, 4, 4)]


@pytest.mark.s3
def test_of_commits_at_one_version_one_wins(server: str, bucket: str) -> None:
    path = places.place(f"s3a://{bucket}/t", settings(server))
    tables.create(path, pa.schema([("x", pa.int64())]))
    for version in range(1, 6):
        handles = [tables.open_table(path) for _ in range(4)]

        def commit(handle: tables.Table) -> bool:
            try:
                return bool(handle.append(pa.table({"x": [version]})))
            except Conflict:
                return False

        with ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(commit, handles)) == [False, False, False, True]
        assert tables.open_table(path).version == version
    assert sum(f.rows for f in tables.open_table(path).files()) == 5


@pytest.mark.s3
def test_a_runner_on_another_machine_loses(tmp_path: Path, server: str, bucket: str) -> None:
    """Two runtimes that have read the same ledger: the lock of a machine does not stop the second, the store does."""
    pipe = _pipeline(tmp_path, f"s3a://{bucket}/w", settings(server), queries={"q": COUNT})
    rows(pipe, [1, 25])
    other = opened(tmp_path)
    before = other.runtime.ledger.last()
    assert before is None and ran(pipe) == [10, 20]
    with pytest.raises(Conflict):
        other.runtime.ledger.changes.commit(transaction=("forebay.begun", 1))
    assert ran(other, flush=True) == [30] and equal(other)


@pytest.mark.s3
def test_a_second_runner_of_this_machine_is_told_who_holds_it(tmp_path: Path, server: str, bucket: str) -> None:
    from jobs.storage.lock import held

    pipe = _pipeline(tmp_path, f"s3a://{bucket}/w", settings(server), queries={"q": COUNT})
    with held(pipe.runtime.pipeline.warehouse), pytest.raises(ForebayError) as refused:
        pipe.run()
    assert refused.value.exit_code == 3 and str(os.getpid()) in refused.value.message


@pytest.mark.s3
def test_environment_variables_reach_the_store(tmp_path: Path, server: str, bucket: str,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
            "AWS_ENDPOINT_URL": server,
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_REGION": "us-east-1"
    }.items():
        monkeypatch.setenv(name, value)
    pipe = _pipeline(tmp_path, f"s3a://{bucket}/w", {}, queries={"q": COUNT})
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name)      # as in a task elsewhere: what the driver saw is in the path
    rows(pipe, [1, 15])
    assert ran(pipe) == [10] and answers(pipe, "q") == [(10, 1)]


@pytest.mark.s3
def test_a_bucket_that_is_not_there(tmp_path: Path, server: str) -> None:
    with pytest.raises(ForebayError) as refused:
        _pipeline(tmp_path, "s3a://not-there-at-all/w", settings(server))
    assert (refused.value.code, refused.value.exit_code) == ("no-bucket",
                                                             2) and "s3a://not-there-at-all/w" in refused.value.message


@pytest.mark.s3
def test_credentials_that_the_store_refuses(tmp_path: Path) -> None:
    refusing = """import http.server
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"<Error><Code>InvalidAccessKeyId</Code><Message>unknown key</Message></Error>"
        self.send_response(403); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body if self.command != "HEAD" else b"")
    do_HEAD = do_PUT = do_POST = do_GET
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
print(server.server_port, flush=True)
server.serve_forever()"""
    with subprocess.Popen([sys.executable, "-c", refusing], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True) as process:
        assert process.stdout is not None
        try:
            with pytest.raises(ForebayError) as refused:
                _pipeline(tmp_path, "s3a://bucket/w", settings(f"http://127.0.0.1:{process.stdout.readline().strip()}"))
        finally:
            process.terminate()
    assert (refused.value.code, refused.value.exit_code) == ("no-access", 2) and "access.key" in (refused.value.hint
                                                                                                  or "")


@pytest.mark.s3
@pytest.mark.timeout(60)
def test_a_store_that_does_not_answer(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(ForebayError) as refused:
        _pipeline(tmp_path, "s3a://bucket/w", settings("http://127.0.0.1:1"))
    assert (refused.value.code, refused.value.exit_code) == ("no-store", 1) and "endpoint" in (refused.value.hint or "")
    assert time.monotonic() - started < 15


def test_a_remote_path_carries_its_settings_and_shows_no_secret() -> None:
    more = {"spark.hadoop.fs.s3a.bucket.bucket.endpoint": "http://y:2", "spark.executor.memory": "1g"}
    root = places.place("s3a://bucket/w/", {**settings("http://x:1"), **more})
    path = places.join(root, "streams", "views")
    again = pickle.loads(pickle.dumps(path))
    assert isinstance(again, Remote) and again == "s3a://bucket/w/streams/views" and again.settings == root.settings
    assert dict(again.settings)["endpoint"] == "http://y:2" and "executor.memory" not in str(again.settings)
    assert "hidden-secret" not in f"{again!r}{again}" and places.join("/a",
                                                                      "b") == "/a/b" and places.options("/a") is None


def test_what_is_no_bucket_on_s3_is_refused() -> None:
    for uri in ("hdfs://host/w", "s3a://", "gs://bucket/w"):
        with pytest.raises(ForebayError) as refused:
            places.place(uri, {})
        assert refused.value.code == "bad-config"


@pytest.mark.long
@pytest.mark.s3
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_through_spark_tasks(tmp_path: Path, server: str, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith("AWS_")]:
        monkeypatch.delenv(name)
    pipe = _pipeline(tmp_path, f"s3a://{bucket}/w", settings(server), {
        "views": "",
        "buys": ""
    }, {"pairs": ROWS}, master="local[2]")
    _lived(pipe, tmp_path, "running")
