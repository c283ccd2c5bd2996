"""What INTERFACE promises of every command: exit codes, JSON shapes, formats.

That a refusal changes nothing; that stdout holds the answer and nothing else.
"""
from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
import time
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from forebay import show
from forebay.cli import main
from forebay.outside import Reply, perform, shared
from jobs.storage.lock import held
from jobs.storage.tables import Conflict
from optimizer.errors import ForebayError
from tests.forebay.conftest import Cli

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")
QUERY = "SELECT COUNT(*) AS n FROM views AS v [WINDOW 1 HOUR]"


def files(folder: Path) -> set[tuple[str, int]]:
    return {(str(p), p.stat().st_size) for p in folder.rglob("*") if p.is_file() and p.name != ".lock"}


@pytest.mark.slow
def test_ingest_and_run_say_what_they_did(cli: Cli, tmp_path: Path) -> None:
    folder = str(tmp_path / "new")
    assert cli("init", folder).code == 0
    taken = cli("ingest", "--json", "--pipeline", folder)
    counts = {
        "views": {
            "files": 2,
            "rows": 300,
            "quarantined": 1,
            "late": 0
        },
        "purchases": {
            "files": 2,
            "rows": 100,
            "quarantined": 0,
            "late": 0
        }
    }
    assert taken.code == 0 and taken.document["streams"] == counts
    again = cli("ingest", "--json", "--pipeline", folder).document["streams"]
    assert all(count == 0 for stream in again.values() for count in stream.values())
    first = cli("--json", "run", "--pipeline", folder, "--batches", "2").document
    assert [e["boundary"] for e in first["ran"]] == ["2025-01-01T09:10:00Z", "2025-01-01T09:20:00Z"
                                                     ] and first["next"] == "2025-01-01T09:30:00Z"
    entry = first["ran"][0]
    assert set(entry) >= {"boundary", "seconds", "rows", "plans"} and entry["rows"].keys() <= {"views", "purchases"}
    assert entry["plans"]["totals"] == "LAP recompute"
    assert cli("--json", "run", "--pipeline", folder, "--to",
               "2025-01-01T09:30:00Z").document["next"] == "2025-01-01T09:40:00Z"
    rest = cli("run", "--json", "--pipeline", folder).document
    assert rest["ran"][-1]["boundary"] == "2025-01-01T10:50:00Z" and rest["next"] == "2025-01-01T11:00:00Z" and rest[
        "waiting_for"] == ["purchases", "views"]


@pytest.mark.slow
def test_query_documents(cli: Cli, shop: Path) -> None:
    at = str(shop)
    created = cli("query", "--pipeline", at, "create", "mine", QUERY, "--json").document
    expected = {
        "query": "mine",
        "state": "active",
        "effective": "2025-01-01T11:10:00Z",
        "table": "results/mine",
        "sql": QUERY
    }
    assert {k: created[k] for k in expected} == expected
    assert cli("--pipeline", at, "query", "show", "mine", "--json").document == created
    assert [q["query"] for q in cli("--json", "query", "list", "--pipeline", at).document["queries"]
            ] == ["mine", "sections", "slow_pages", "totals"]
    assert cli("query", "pause", "mine", "--json", "--pipeline", at).document["state"] == "paused"
    assert cli("query", "resume", "mine", "--json", "--pipeline", at).document["state"] == "active"
    assert cli("pin", "sections", "LAP", "recompute", "--json", "--pipeline", at).document["pinned"] == "LAP recompute"
    assert cli("pin", "sections", "EAP110  recompute", "--json", "--pipeline",
               at).document["pinned"] == "EAP110 recompute"
    assert cli("unpin", "sections", "--json", "--pipeline", at).document["pinned"] is None
    assert cli("query", "delete", "mine", "--json", "--pipeline", at).document["state"] == "deleted"


@pytest.mark.slow
def test_a_file_in_queries_becomes_a_query_and_a_changed_one_is_told(cli: Cli, shop: Path) -> None:
    (shop / "queries" / "mine.sql").write_text(QUERY)
    (shop / "queries" / "totals.sql").write_text(QUERY)
    listed = cli("query", "list", "--json", "--pipeline", str(shop))
    assert "mine" in [q["query"] for q in listed.document["queries"]] and "queries/totals.sql differs" in listed.err
    created = cli("query", "create", "totals", "-f", str(shop / "queries" / "totals.sql"), "--replace", "--json",
                  "--pipeline", str(shop))
    assert created.document["sql"] == QUERY and "differs" not in created.err


@pytest.mark.slow
def test_a_bad_file_in_queries_stops_a_run_but_not_a_pause(cli: Cli, shop: Path) -> None:
    (shop / "queries" / "good.sql").write_text(QUERY)
    (shop / "queries" / "wrong.sql").write_text("SELECT v.nothing FROM views AS v [WINDOW 1 HOUR]")
    ran = cli("run", "--json", "--pipeline", str(shop))
    assert ran.code == 2 and "wrong.sql" in ran.document["error"]["message"] and ran.document["error"]["line"] == 1
    paused = cli("query", "pause", "totals", "--json", "--pipeline", str(shop))
    assert paused.code == 0 and "wrong.sql" in paused.err
    (shop / "queries" / "wrong.sql").unlink()
    assert {q["query"] for q in cli("query", "list", "--json", "--pipeline", str(shop)).document["queries"]
            } == {"good", "sections", "slow_pages", "totals"}


@pytest.mark.slow
def test_parquet_goes_through_a_pipe(ended: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["result", "sections", "--all", "--format", "parquet", "--pipeline", str(ended)]) == 0
    said = capfdbinary.readouterr()
    assert pq.read_table(io.BytesIO(said.out)).column_names == ["boundary", "section", "pairs", "dearest"
                                                                ] and said.err == b""


@pytest.mark.slow
def test_every_format_holds_the_same_answer(cli: Cli, ended: Path, tmp_path: Path) -> None:
    document = cli("result", "sections", "--all", "--json", "--pipeline", str(ended)).document
    assert document["query"] == "sections" and document["columns"] == ["boundary", "section", "pairs", "dearest"]
    assert all(
        INSTANT.fullmatch(t) and isinstance(n, int) and re.fullmatch(r"\d+\.\d\d", s)
        for t, _, n, s in document["rows"])
    assert cli("result", "sections", "--all", "--format", "json", "--pipeline", str(ended)).document == document
    lines = [document["columns"], *([t, s, str(n), a] for t, s, n, a in document["rows"])]
    text = cli("result", "sections", "--all", "--format", "csv", "--pipeline", str(ended)).out
    assert list(csv.reader(io.StringIO(text))) == lines
    assert cli("result", "sections", "--all", "--format", "parquet", "-o", str(tmp_path / "r.parquet"), "--pipeline",
               str(ended)).code == 0
    assert list(show.rows(pq.read_table(tmp_path / "r.parquet"))) == document["rows"]
    table = cli("result", "sections", "--all", "--pipeline", str(ended)).out.splitlines()
    assert [line.split() for line in table if line] == lines


@pytest.mark.slow
def test_result_at_one_boundary_and_at_the_last(cli: Cli, ended: Path) -> None:
    every = cli("result", "totals", "--all", "--json", "--pipeline", str(ended)).document["rows"]
    assert len(every) == 12 and cli("result", "totals", "--json", "--pipeline",
                                    str(ended)).document["rows"] == every[-1:]
    for said in ("2025-01-01T10:00Z", "2025-01-01T12:00:00+02:00"):
        found = cli("result", "totals", "--at", said, "--json", "--pipeline", str(ended)).document["rows"]
        assert len(found) == 1 and found == [r for r in every if r[0] == "2025-01-01T10:00:00Z"]


@pytest.mark.slow
def test_plans_and_verify_documents(cli: Cli, ended: Path) -> None:
    plans = cli("plans", "sections", "--json", "--pipeline", str(ended)).document
    assert plans["query"] == "sections" and plans["pinned"] is None and sum(d["boundaries"]
                                                                            for d in plans["decisions"]) == 12
    for d in plans["decisions"]:
        assert INSTANT.fullmatch(d["boundary"]) and d["plan"].startswith(
            ("EAP", "LAP")) and d["measured_s"] > 0 and d["reason"]
    verified = cli("verify", "--json", "--pipeline", str(ended))
    expected = {
        n: {
            "boundaries": b,
            "equal": b,
            "differences": [],
            "engine": "duckdb"
        } for n, b in (("sections", 12), ("slow_pages", 4), ("totals", 12))
    }
    assert verified.code == 0 and verified.document == {"queries": expected}


@pytest.mark.slow
def test_verify_finds_a_forged_answer(cli: Cli, shop: Path) -> None:
    folder = shop / "warehouse" / "results" / "totals"
    for file in folder.glob("*.parquet"):
        table = pq.read_table(file)
        forged = pa.array([v + Decimal("0.01") for v in table["revenue"].to_pylist()],
                          table.schema.field("revenue").type)
        pq.write_table(table.set_column(table.schema.get_field_index("revenue"), "revenue", forged), file)
    verified = cli("verify", "totals", "--json", "--pipeline", str(shop))
    differences = verified.document["queries"]["totals"]["differences"]
    assert verified.code == 1 and verified.document["queries"]["totals"]["equal"] == 0 and INSTANT.fullmatch(
        differences[0]["boundary"])
    assert cli("verify", "totals", "--pipeline", str(shop)).code == 1


BAD: tuple[tuple[tuple[str, ...], str], ...] = (
    (("nonsense",), "bad-usage"),
    ((), "bad-usage"),
    (("query",), "bad-usage"),
    (("run", "--bathces", "1"), "bad-usage"),
    (("run", "--batches", "0"), "bad-usage"),
    (("run", "--batches", "x"), "bad-usage"),
    (("run", "--to", "yesterday"), "bad-time"),
    (("run", "--to", "2025-13-01"), "bad-time"),
    (("run", "--to", "20250101"), "bad-time"),
    (("run", "--engine", "gpu"), "bad-usage"),
    (("result", "totals", "--engine", "jvm"), "bad-usage"),
    (("--engine", "jvm", "query", "list"), "bad-usage"),
    (("result", "--all"), "bad-usage"),
    (("result", "total"), "unknown-query"),
    (("result", "totals", "--format", "xml"), "bad-usage"),
    (("result", "totals", "--at", "2025-01-01T10:05:00Z"), "unknown-boundary"),
    (("result", "totals", "--at", "2031-01-01"), "unknown-boundary"),
    (("result", "totals", "--at", "2025-01-01T10:00:00Z", "--all"), "bad-usage"),
    (("result", "totals", "--format", "csv", "-o", "/nowhere/at/all.csv"), "bad-file"),
    (("query", "show", "nobody"), "unknown-query"),
    (("query", "pause", "nobody"), "unknown-query"),
    (("query", "resume", "totals"), "wrong-state"),
    (("query", "create", "x"), "bad-usage"),
    (("query", "create", "x", QUERY, "-f", "y.sql"), "bad-usage"),
    (("query", "create", "x", "-f", "/nowhere.sql"), "bad-file"),
    (("query", "create", "9lives", QUERY), "bad-name"),
    (("query", "create", "../x", QUERY), "bad-name"),
    (("query", "create", "é", QUERY), "bad-name"),
    (("query", "create", "totals", QUERY), "query-exists"),
    (("pin", "totals", "EAP1", "running"), "refused-plan"),
    (("pin", "totals", "FASTEST"), "unknown-plan"),
    (("pin", "nobody", "LAP", "recompute"), "unknown-query"),
    (("plans", "nobody"), "unknown-query"),
    (("verify", "nobody"), "unknown-query"),
    (("explain", "nobody"), "unknown-query"),
    (("ingest", "views"), "bad-usage"),
    (("ingest", "clicks", "x.csv"), "unknown-stream"),
    (("release", "2025-01-01T10:00:00Z", "--reason", "x"), "nothing-stopped"),
    (("release", "2025-01-01T10:00:00Z"), "bad-usage"),
    (("release", "soon", "--reason", "x"), "bad-time"),
    (("init", "."), "not-empty"),
    (("init", "other", "--example", "nobody"), "unknown-example"),
)


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "code"), BAD, ids=lambda v: " ".join(v)[:60] if isinstance(v, tuple) else v)
def test_wrong_use_is_refused_and_changes_nothing(cli: Cli, ended: Path, monkeypatch: pytest.MonkeyPatch,
                                                  arguments: tuple[str, ...], code: str) -> None:
    monkeypatch.chdir(ended)
    before = files(ended)
    ran = cli(*arguments, "--json")
    assert (ran.code, ran.document["error"]["code"]) == (2, code)
    assert set(ran.document["error"]) == {"code", "message", "line", "column", "hint"} and ran.document["error"]["hint"]
    assert files(ended) == before
    plain = cli(*arguments)
    assert plain.code == 2 and plain.out == "" and plain.err.startswith("forebay: ") and "Traceback" not in plain.err


HOSTILE = (
    "DROP TABLE views",
    "SELECT 1; DROP TABLE views",
    "ADD JAR '/tmp/x.jar'",
    "SELECT reflect('java.lang.System', 'exit', 0) AS x FROM views AS v [WINDOW 1 HOUR]",
    "SELECT java_method('java.lang.System', 'exit') AS x FROM views AS v [WINDOW 1 HOUR]",
    "SELECT COUNT(*) AS n FROM parquet.`/etc/passwd` AS v [WINDOW 1 HOUR]",
    "SELECT COUNT(*) AS n FROM read_csv('/etc/passwd') AS v",
    "SELECT TRANSFORM(v.page) USING 'sh' FROM views AS v [WINDOW 1 HOUR]",
    "SELECT rand() AS r FROM views AS v [WINDOW 1 HOUR]",
    "INSERT INTO views SELECT * FROM views",
    "COPY views TO '/tmp/x'",
    "ATTACH 'x' AS y",
    "SELECT " + "(" * 5000 + "1" + ")" * 5000 + " AS x FROM views AS v [WINDOW 1 HOUR]",
    "\0",
    "",
    "'",
    "SELECT",
    "💥",
    "SELECT (SELECT 1) AS x FROM views AS v [WINDOW 1 HOUR]",
    "SELECT COUNT(*) AS n FROM views AS v [WINDOW 1 HOUR] -- \u202e\n; SET x = 1",
    "WITH a AS (SELECT 1) SELECT * FROM a",
)


@pytest.mark.slow
@pytest.mark.parametrize("sql", HOSTILE, ids=lambda s: repr(s)[:40])
def test_hostile_sql_is_refused_and_changes_nothing(cli: Cli, ended: Path, sql: str) -> None:
    before = files(ended)
    for arguments in (("query", "create", "evil", sql), ("explain", sql)):
        ran = cli(*arguments, "--json", "--pipeline", str(ended))
        assert ran.code == 2 and ran.document["error"]["code"] not in ("bad-usage", "unexpected-error"), ran
    assert files(ended) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "code", "line"),
    [(None, "no-pipeline", None), ("", "bad-yaml", None), ("a: [", "bad-yaml", 1),
     ("name: x\nbatch: soon\nstreams: {s: {columns: {t: timestamp}, event_time: t}}", "bad-duration", 2),
     ("name: x\nbatch: 1 minute\nstreamz: {}", "unknown-key", 3)])
def test_a_wrong_folder_is_refused_by_every_command(cli: Cli, tmp_path: Path, text: str | None, code: str,
                                                    line: int | None) -> None:
    if text is not None:
        (tmp_path / "forebay.yml").write_text(text)
    for command in ("ingest", "run", "query list", "result x", "explain x", "plans x", "verify", "pin x LAP", "doctor"):
        ran = cli(*command.split(), "--json", "--pipeline", str(tmp_path))
        assert (ran.code, ran.document["error"]["code"]) == (2, code), command
        assert line is None or ran.document["error"]["line"] == line
    assert [p.name for p in tmp_path.iterdir()] == ([] if text is None else ["forebay.yml"])


@pytest.mark.slow
def test_a_held_pipeline_is_told_within_five_seconds_and_takes_requests(cli: Cli, shop: Path) -> None:
    with held(str(shop / "warehouse")):
        started = time.monotonic()
        ran = cli("run", "--json", "--pipeline", str(shop))
        assert ran.code == 3 and time.monotonic() - started < 5 and str(os.getpid()) in ran.document["error"]["message"]
        assert cli("query", "create", "mine", QUERY, "--pipeline", str(shop)).code == 0
        assert cli("pin", "mine", "LAP", "recompute", "--pipeline", str(shop)).code == 0
        assert cli("result", "totals", "--pipeline", str(shop)).code == 0


@pytest.mark.slow
def test_a_failed_query_is_told_and_the_others_go_on(cli: Cli, shop: Path) -> None:
    at = ("--json", "--pipeline", str(shop))
    assert cli("query", "create", "broken", "SELECT SUM(v.ms / (v.ms - v.ms)) AS x FROM views AS v [WINDOW UNTIL NOW]",
               *at).code == 0
    (shop / "landing" / "views" / "3.csv").write_text("ts,user,page,ms\n2025-01-01T11:12:00Z,u1,news,5\n")
    assert cli("ingest", *at).code == 0
    ran = cli("run", "--flush", *at)
    assert ran.code == 1 and ran.document["ran"][0]["failed"].keys() == {"broken"}
    (told,) = ran.document["failed"]
    assert (told["query"], told["boundary"]) == ("broken", ran.document["ran"][0]["boundary"])
    assert "fails on the row of views with ts = 2025-01-01T" in told["message"]
    again = cli("run", "--flush", *at)
    assert again.code == 0 and again.document["failed"] == []      # nothing fails in this run
    doctor = cli("doctor", *at)
    fact = next(fact for fact in doctor.document["facts"] if fact["name"] == "query")
    assert doctor.code == 1 and not fact["ok"] and "broken has failed" in fact["value"]
    assert "forebay query resume broken" in fact["fix"]
    failed = cli("result", "broken", *at)
    assert failed.code == 1 and failed.document["error"]["code"] == "query-failed"
    shown = cli("query", "show", "broken", *at).document
    assert shown["state"] == "failed" and shown["error"]
    assert cli("result", "totals", *at).document["rows"][0][0] == "2025-01-01T11:20:00Z"


@pytest.mark.slow
def test_a_broken_file_is_refused_by_name_and_the_rest_goes_on(cli: Cli, shop: Path) -> None:
    (shop / "landing" / "views" / "3.csv").write_bytes(b"\xff\xfe\x00nonsense")
    (shop / "landing" / "views" / "4.csv").write_text("ts,user,page,ms\n2025-01-01T11:12:00Z,u1,news,5\n")
    taken = cli("ingest", "--json", "--pipeline", str(shop))
    assert taken.code == 1 and [os.path.basename(r["path"]) for r in taken.document["refused"]] == ["3.csv"]
    assert taken.document["streams"]["views"]["rows"] == 1
    assert "3.csv" in cli("ingest", "--pipeline", str(shop)).out


@pytest.mark.slow
def test_the_environment_names_the_folder_and_an_option_is_stronger(cli: Cli, ended: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_PIPELINE", str(ended))
    assert cli("result", "totals").code == 0
    assert cli("--pipeline", "/nowhere", "result", "totals").code == 2 and cli("result", "totals", "--pipeline",
                                                                               "/nowhere").code == 2


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (Conflict("x"), 3),
                                             (ForebayError("c", "m", exit_code=1), 1), (ValueError("odd"), 1),
                                             (BrokenPipeError(), 0)], ids=repr)
def test_every_way_out_is_an_exit_code(capfd: pytest.CaptureFixture[str], tmp_path: Path,
                                       monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def out() -> Reply:
        raise error

    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(shared(out))
    assert perform(app, []) == code
    said = capfd.readouterr()
    assert said.out == "" and "Traceback" not in said.err
    if isinstance(error, ValueError):
        log = next(tmp_path.glob("crash-*.log"))
        assert log.stat().st_mode & 0o777 == 0o600, "it may quote rows and settings"
        assert "ValueError: odd" in log.read_text() and str(log) in said.err


def test_noise_on_stdout_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    def noisy() -> Reply:
        print("from Python")
        os.write(1, b"from the descriptor\n")
        subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
        return Reply({"a": 1}, lambda out: None)

    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(shared(noisy))
    assert perform(app, ["--json"]) == 0
    said = capfd.readouterr()
    assert said.out == '{"a": 1}\n' and all(s in said.err
                                            for s in ("from Python", "from the descriptor", "from a child"))


@pytest.mark.parametrize(("text", "us"), [("1970-01-01", 0), ("1970-01-01T00:00:01Z", 10 ** 6),
                                          ("1970-01-01 00:00:00.000001", 1), ("1970-01-01T02:00:00+02:00", 0),
                                          ("1969-12-31T23:59:59Z", -10 ** 6)])
def test_times_that_people_write(text: str, us: int) -> None:
    assert show.micros(text, "--at") == us and show.micros(str(show.iso(us)), "--at") == us


def test_values_as_json_holds_them() -> None:
    same = [None, True, 2**62, 0.5, "x"]
    assert [show.value(v) for v in same] == same
    assert [show.value(v) for v in (float("nan"), float("inf"), -float("inf"))] == ["NaN", "Infinity", "-Infinity"]
    assert [show.value(v) for v in (Decimal("1E+3"), Decimal("0.10"))] == ["1000", "0.10"]
    assert [show.value(v) for v in (date(2025, 1, 2), datetime(2025, 1, 2, tzinfo=timezone.utc))
            ] == ["2025-01-02", "2025-01-02T00:00:00Z"]


@pytest.mark.slow
def test_what_needs_no_spark_imports_none(ended: Path) -> None:
    commands = [["result", "totals"], ["query", "list"], ["plans", "totals"], ["query", "show", "totals"], ["doctor"]]
    program = f"""
import sys
from forebay.cli import main
main(["--help"])
assert not {{"duckdb", "sqlglot", "pyarrow", "deltalake"}} & sys.modules.keys()
for command in {commands}:
    assert main([*command, "--pipeline", {str(ended)!r}]) in (0, 1), command
assert not {{"pyspark", "pandas"}} & sys.modules.keys()
assert main(["verify", "--pipeline", {str(ended)!r}]) == 0
assert "pyspark" not in sys.modules
"""
    plain = {k: v for k, v in os.environ.items() if k != "FOREBAY_MASTER"}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=plain)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("example", ["minimal", "sensors"])
def test_every_example_runs_and_verifies(cli: Cli, tmp_path: Path, example: str) -> None:
    folder = str(tmp_path / example)
    for arguments in (["init", folder, "--example", example], ["ingest", "--pipeline",
                                                               folder], ["run", "--flush", "--pipeline", folder]):
        assert cli(*arguments).code == 0
    verified = cli("verify", "--json", "--pipeline", folder)
    assert verified.code == 0 and verified.document["queries"]
    for name in verified.document["queries"]:
        assert cli("result", name, "--all", "--json", "--pipeline", folder).document["rows"], name


@pytest.mark.slow
def test_what_is_not_there_is_noted_and_relations_are_told(cli: Cli, shop: Path) -> None:
    (shop / "pages.csv").rename(shop / "sites.csv")
    text = (shop / "forebay.yml").read_text()
    (shop / "forebay.yml").write_text(text.replace("streams:\n", "streams:\n  clicks: {columns: {ts: timestamp}, "
                                      "event_time: ts, source: {files: \"landing/click/*.csv\"}}\n", 1))
    told = cli("ingest", "--json", "--pipeline", str(shop))
    assert told.code == 0 and told.document["relations"]["pages"]["version"] == 0
    assert told.document["notes"] == ["stream clicks: no file matches " + str(shop / "landing/click/*.csv"),
                                      "relation pages: no file matches " + str(shop / "pages.csv")]
    shown = cli("ingest", "--pipeline", str(shop)).out
    assert "relation pages: " in shown and "no file matches" in shown
