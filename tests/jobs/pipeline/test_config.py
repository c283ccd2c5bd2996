"""forebay.yml: what it means, and that each mistake is refused with its line and a way out."""
from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.examples import copy
from jobs.pipeline.config import Pipeline, Schedule, Source, Spark, catalog, load
from jobs.pipeline.model import ENDLESS
from optimizer.errors import ForebayError
from optimizer.expression.types import BIGINT, STRING, TIMESTAMP, decimal
from optimizer.time import DAY, UNITS

GOOD = """\
name: traffic
warehouse: ./warehouse
batch: 10 seconds
streams:
  views:
    columns: {ts: timestamp, user: string, page: string, ms: bigint}
    event_time: ts
    wait: 10 seconds
    lateness: 1 hour
    source: {files: "landing/views/*.parquet"}
relations:
  pages: {columns: {page: string, section: string}, source: {files: "pages.csv"}}
"""


@pytest.fixture(autouse=True)
def _no_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOREBAY_MASTER", raising=False)


def read(folder: Path, text: str) -> Pipeline:
    (folder / "forebay.yml").write_text(text)
    return load(str(folder))


def refusal(folder: Path, text: str) -> ForebayError:
    with pytest.raises(ForebayError) as caught:
        read(folder, text)
    assert caught.value.exit_code == 2
    return caught.value


def test_interface_example(tmp_path: Path) -> None:
    pipe = read(tmp_path, GOOD)
    assert (pipe.name, pipe.batch, pipe.warehouse) == ("traffic", 10_000_000, str(tmp_path / "warehouse"))
    views = pipe.streams["views"]
    assert dict(views.columns) == {"ts": TIMESTAMP, "user": STRING, "page": STRING, "ms": BIGINT}
    assert (views.wait, views.lateness, views.idle, views.ahead, views.keep) == (10 ** 7, 3600 * 10 ** 6, None,
                                                                                 3600 * 10 ** 6, None)
    assert views.unknown_columns == "quarantine"
    assert views.source == Source("files", str(tmp_path / "landing/views/*.parquet"))
    assert pipe.relations["pages"].source == Source("files", str(tmp_path / "pages.csv"))
    assert pipe.spark == Spark() and pipe.schedule is None and pipe.latency is None


def test_all_that_is_understood(tmp_path: Path) -> None:
    pipe = read(
        tmp_path, """\
name: all
warehouse: s3a://bucket/warehouse
batch: 500 milliseconds
schedule: {asset: lake/orders}
latency: 1 minute
decide: batch
cost_model: paper
spark: {remote: "sc://127.0.0.1:15002", settings: {spark.sql.shuffle.partitions: 4}}
streams:
  a:
    columns: {ts: timestamp, mail: {type: string, sensitive: true}, price: "decimal(10,2)", plain: {type: integer}}
    event_time: ts
    idle: 30 seconds
    ahead: 0
    keep: 2 days
    unknown_columns: drop
    source: {csv: "in/*.txt", delimiter: ";", "null": NA}
  b: {columns: {ts: timestamp}, event_time: ts, idle: never, keep: for ever}
  c: {columns: {ts: timestamp}, event_time: ts, source: {kafka: {servers: "127.0.0.1:9092", topic: clicks,
      options: {security.protocol: PLAINTEXT}}}}
""")
    a = pipe.streams["a"]
    assert pipe.warehouse == "s3a://bucket/warehouse" and pipe.batch == 500_000 and pipe.latency == 60 * 10**6
    assert pipe.schedule == Schedule("asset", "lake/orders")
    assert (pipe.decide, pipe.cost_model) == ("batch", "paper")
    assert pipe.spark == Spark("local[*]", "sc://127.0.0.1:15002", {"spark.sql.shuffle.partitions": "4"})
    assert a.sensitive == {"mail"} and a.columns["price"] == decimal(10, 2) and str(a.columns["plain"]) == "int"
    assert (a.idle, a.ahead, a.keep, a.unknown_columns) == (30 * 10**6, 0, 2 * UNITS["day"], "drop")
    assert a.source == Source("csv", str(tmp_path / "in/*.txt"), {"delimiter": ";", "null": "NA"})
    assert pipe.streams["b"].source is None and pipe.streams["b"].keep is None
    assert pipe.streams["c"].source == Source("kafka", "clicks", {
        "kafka.bootstrap.servers": "127.0.0.1:9092",
        "kafka.security.protocol": "PLAINTEXT"
    })


def test_where_plans_are_decided_follows_the_schedule_where_it_is_not_said(tmp_path: Path) -> None:
    scheduled = GOOD.replace("relations:", "schedule: continuous\nrelations:")
    assert (read(tmp_path, GOOD).decide, read(tmp_path, GOOD).cost_model) == ("batch", "measured")
    assert read(tmp_path, scheduled).decide == "task"
    assert read(tmp_path, scheduled.replace("relations:", "decide: batch\nrelations:")).decide == "batch"


def test_behind_of_a_stream_is_stronger_than_the_pipelines(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD).streams["views"].behind is None
    everywhere = GOOD.replace("relations:", "behind: 2 days\nrelations:")
    assert read(tmp_path, everywhere).streams["views"].behind == 2 * DAY
    kept = everywhere.replace("    wait: 10 seconds", "    behind: for ever")
    assert read(tmp_path, kept).streams["views"].behind == ENDLESS


def test_what_becomes_of_changed_files(tmp_path: Path) -> None:
    source = read(tmp_path, GOOD).streams["views"].source
    assert source is not None and source.changed_files == "refuse"
    added = read(tmp_path, GOOD.replace('parquet"}', 'parquet", changed_files: add}')).streams["views"].source
    assert added is not None and added.changed_files == "add"


def test_catalog(tmp_path: Path) -> None:
    known = catalog(read(tmp_path, GOOD))
    assert known.batch == 10_000_000
    assert known.streams[0][:2] == ("views", "ts") and known.streams[0][2][3] == ("ms", BIGINT)
    assert known.relations == (("pages", (("page", STRING), ("section", STRING))),)


def test_master_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_MASTER", "inline")
    assert read(tmp_path, GOOD).spark.master == "inline"
    monkeypatch.setenv("FOREBAY_MASTER", "sc://h:1")
    assert read(tmp_path, GOOD).spark.remote == "sc://h:1"
    monkeypatch.setenv("FOREBAY_MASTER", "rm -rf")
    assert "FOREBAY_MASTER" in refusal(tmp_path, GOOD).message


def test_secrets_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = GOOD.replace('{files: "landing/views/*.parquet"}',
                        '{kafka: {servers: "h:1", topic: t, options: {sasl.jaas.config: $KAFKA_SECRET}}}')
    monkeypatch.setenv("KAFKA_SECRET", "s")
    source = read(tmp_path, text).streams["views"].source
    assert source is not None and source.options["kafka.sasl.jaas.config"] == "s"
    monkeypatch.delenv("KAFKA_SECRET")
    assert refusal(tmp_path, text).line == 10


MISTAKES: list[tuple[str, str, str, str, int]] = [
    # what is replaced, by what, the code, a part of what is said, the line
    ("wait: 10", "wiat: 10", "unknown-key", "did you mean 'wait'?", 8),
    ("relations:", "relation:", "unknown-key", "did you mean 'relations'?", 11),
    ("name: traffic\n", "", "missing-key", "name is missing", 1),
    ("name: traffic", "name: my pipeline", "bad-name", "'my pipeline' is not a name", 1),
    ("name: traffic", "name: 'a; DROP'", "bad-name", "is not a name", 1),
    ("name: traffic", "name: [a]", "bad-config", "name is a list", 1),
    ("name: traffic", "name: traffic\nname: twice", "bad-config", "stands twice", 2),
    ("batch: 10 seconds", "batch: 10", "bad-duration", "such as `10 seconds`", 3),
    ("batch: 10 seconds", "batch: 10 parsecs", "bad-duration", "units are", 3),
    ("batch: 10 seconds", "batch: 0 seconds", "bad-duration", "too short", 3),
    ("batch: 10 seconds", "batch: -1 seconds", "bad-duration", "not a duration", 3),
    ("batch: 10 seconds", "batch: 1.5 hours", "bad-duration", "not a duration", 3),
    ("batch: 10 seconds", "batch: 99999999999999 weeks", "bad-duration", "not a duration", 3),
    ("batch: 10 seconds", "batch:", "missing-key", "batch is missing", 1),
    ("  views:", "  1views:", "bad-name", "'1views' is not a name", 6),
    ("  pages:", "  views:", "bad-name", "names a stream and a relation", 12),
    ("  pages:", "  Views:", "bad-name", "names a stream and a relation", 12),
    ("event_time: ts", "event_time: at", "bad-config", "known are ts, user", 7),
    ("event_time: ts", "event_time: user", "bad-config", "which is string", 7),
    ("ms: bigint", "ms: number", "unknown-type", "'number'", 6),
    ("ms: bigint", "ms: 'decimal(99,2)'", "unknown-type", "precision is 1 to 38", 6),
    ("ms: bigint", "_ms: bigint", "bad-name", "starts with _", 6),
    ("ms: bigint", "USER: bigint", "bad-name", "only in case", 6),
    ("ms: bigint", "ms: {type: bigint, secret: true}", "unknown-key", "known are type, sensitive", 6),
    ("ms: bigint", "ms: {type: bigint, sensitive: maybe}", "bad-config", "not true or false", 6),
    ("ms: bigint", "ms: [bigint]", "bad-config", "a list, not a text", 6),
    ("columns: {page: string, section: string}", "columns: {}", "missing-key", "is empty", 12),
    ("lateness: 1 hour", "lateness: 1 hour\n    keep: 1 minute", "bad-config", "shorter than lateness", 10),
    ("wait: 10 seconds", "behind: long", "bad-duration", "not a duration", 8),
    ("parquet\"}", "parquet\", changed_files: replace}", "not-yet", "which Forebay does not know yet", 10),
    ("parquet\"}", "parquet\", changed_files: added}", "bad-config", "did you mean 'add'", 10),
    ('{files: "landing/views/*.parquet"}', "{delta: a, changed_files: add}", "unknown-key", "is for files only", 10),
    ('{files: "pages.csv"}', '{files: "pages.csv", changed_files: add}', "unknown-key", "known are files", 12),
    ("wait: 10 seconds", "unknown_columns: ignore", "bad-config", "known are quarantine, drop", 8),
    ("{files: \"landing", "{parquet: \"landing", "unknown-key", "known are files, json", 10),
    ('{files: "pages.csv"}', '{files: a, csv: b}', "bad-config", "names files and csv", 12),
    ('{files: "pages.csv"}', '{kafka: {servers: a, topic: b}}', "unknown-key", "known are files", 12),
    ('{files: "pages.csv"}', '{delimiter: ";"}', "bad-config", "no source", 12),
    ('{files: "pages.csv"}', '{json: a, delimiter: ";"}', "unknown-key", "for CSV files only", 12),
    ('{files: "pages.csv"}', '{csv: a, delimiter: ";;"}', "bad-config", "one character", 12),
    ('{files: "pages.csv"}', '{csv: a, delimiter: "§"}', "bad-config", "of ASCII", 12),
    ('{files: "pages.csv"}', '{csv: a, quote: ","}', "bad-config", "delimiter and as quote", 12),
    ('{files: "landing/views/*.parquet"}', '{kafka: {servers: a, topic: "a b"}}', "bad-name", "is not a topic", 10),
    ('{files: "landing/views/*.parquet"}', '{kafka: {servers: a}}', "missing-key", "topic is missing", 10),
    ("relations:", "schedule: sometimes\nrelations:", "bad-config", "five cron fields", 11),
    ("relations:", "decide: tasks\nrelations:", "bad-config", "did you mean 'task'", 11),
    ("relations:", "cost_model: papers\nrelations:", "bad-config", "known are measured, paper", 11),
    ("relations:", "tracking: ftp://x/y\nrelations:", "bad-config", "write a server or database", 11),
    ("relations:", "spark: {master: mesos}\nrelations:", "bad-config", "known are local[*]", 11),
    ("relations:", "spark: {remote: 'http://x'}\nrelations:", "bad-config", "sc://HOST:PORT", 11),
    ("relations:", "spark: {master: yarn, remote: 'sc://x:1'}\nrelations:", "bad-config", "keep one", 11),
    ("streams:", "streams: [", "bad-yaml", "not YAML", 6),
    ("name: traffic", "name: *x", "bad-yaml", "not YAML", 1),
]


@pytest.mark.parametrize(("old", "new", "code", "said", "line"), MISTAKES, ids=[f"{m[1][:40]!r}" for m in MISTAKES])
def test_mistakes(tmp_path: Path, old: str, new: str, code: str, said: str, line: int) -> None:
    assert old in GOOD
    error = refusal(tmp_path, GOOD.replace(old, new, 1))
    assert (error.code, error.line) == (code, line), str(error)
    assert said in str(error)


@pytest.mark.parametrize("text", [
    "a: &a [*a]", "name: &n {x: *n}",
    "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))])])
def test_aliases_that_never_end_are_refused(tmp_path: Path, text: str) -> None:
    error = refusal(tmp_path, f"{GOOD}{text}")
    assert error.code in ("bad-yaml", "bad-config") and error.line


def test_what_aliases_repeat_is_read(tmp_path: Path) -> None:
    pipe = read(
        tmp_path,
        GOOD.replace("columns: {ts:", "columns: &them {ts:") + "  others: {columns: *them, source: {files: a.csv}}\n")
    assert pipe.relations["others"].columns == pipe.streams["views"].columns


def test_of_several_mistakes_an_unknown_key_is_named_first(tmp_path: Path) -> None:
    assert refusal(tmp_path,
                   GOOD.replace("batch: 10 seconds", "batch: 10").replace("event_time", "evnet_time")).line == 7
    assert refusal(tmp_path, GOOD.replace("batch: 10 seconds", "batch: 10").replace("wait: 10", "wait: x")).line == 3


def test_no_folder_no_file(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ForebayError) as caught:
            load(str(folder))
        assert caught.value.code == "no-pipeline" and "forebay init" in str(caught.value)


@pytest.mark.parametrize("text", [
    "", "[" * 5000, "- a\n- b", "a", "!!python/object/apply:os.system ['true']", "a: &a [*a]", "\x00",
    "name: \ud800".encode("utf-8", "surrogatepass")
])
def test_hostile_texts(tmp_path: Path, text: str | bytes) -> None:
    (tmp_path / "forebay.yml").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ForebayError) as caught:
        load(str(tmp_path))
    assert caught.value.exit_code == 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any")


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
            st.sampled_from([
                "name", "batch", "streams", "columns", "event_time", "source", "files", "kafka", "views", "ts", "wait",
                "spark", "x"
            ]), inner, max_size=5), max_leaves=15))
def test_any_document_is_read_or_refused(folder: Path, value: Any) -> None:
    """Nothing but a ForebayError comes out of a YAML document."""
    import yaml
    (folder / "forebay.yml").write_text(
        yaml.safe_dump({
            "name": "n",
            "batch": "1 second",
            "streams": value
        } if not isinstance(value, dict) else value))
    try:
        assert isinstance(load(str(folder)), Pipeline)
    except ForebayError as error:
        assert error.exit_code == 2 and error.message


def texts(value: object) -> list[str]:
    """All that is a text in a value, however deep."""
    if isinstance(value, str):
        return [value]
    if dataclasses.is_dataclass(value):
        return texts([getattr(value, field.name) for field in dataclasses.fields(value)])
    if isinstance(value, Mapping):
        return texts([*value.keys(), *value.values()])
    return [text for inner in value for text in texts(inner)] if isinstance(value, Iterable) else []


@pytest.mark.parametrize("example", ["minimal", "sensors", "shop"])
def test_what_is_read_is_plain_text(tmp_path: Path, example: str) -> None:
    """Airflow sends names between its processes, and refuses texts of any other class."""
    copy(example, str(tmp_path / example))
    found = texts(load(str(tmp_path / example)))
    assert len(found) > 5 and {type(text) for text in found} == {str}


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "forebay.yml").write_text(
        "name: y y\nbatch: 10 second\nstreams:\n  v: {columns: {ts: timestamp, n: number}, event_time: ts, wait: x}\n")
    with pytest.raises(ForebayError) as refused:
        load(str(tmp_path))
    error = refused.value
    assert (error.line, "'y y' is not a name" in error.message) == (1, True)
    assert error.hint is not None and "also wrong (2):\n  line 4, column " in error.hint
    assert "'number' is not known" in error.hint and "v.wait" in error.hint


def test_a_type_with_a_comma_within_braces_is_to_be_quoted(tmp_path: Path) -> None:
    (tmp_path / "forebay.yml").write_text(
        "name: y\nbatch: 10 seconds\nstreams:\n  v: {columns: {ts: timestamp, n: decimal(10,2)}, event_time: ts}\n")
    with pytest.raises(ForebayError, match="within braces a comma ends a value") as refused:
        load(str(tmp_path))
    assert '"decimal(10,…)"' in str(refused.value)
