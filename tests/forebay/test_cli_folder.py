"""`forebay plan`, `apply` and `check` at the command line: documents, texts, exit codes, what is left as it was."""
from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from forebay.text import applied, planned
from tests.forebay.conftest import Cli

QUERY = "SELECT COUNT(*) AS n FROM views AS v [WINDOW 1 HOUR]"
NEXT = "2025-01-01T11:10:00Z"      # of the example shop, run to its end
CHANGE = {"query": "q", "action": "replace", "effective": "2026-01-01T00:00:10Z", "predicted_s": 0.01234,
          "plan": "EAP1 running", "before": "paused"}
DOCUMENT: dict[str, Any] = {"changes": [CHANGE], "other": ["mine"], "adopted": ["own"]}
NOTHING: dict[str, list[Any]] = {"changes": [], "other": [], "adopted": []}


def files(folder: Path) -> set[tuple[str, int]]:
    return {(str(p), p.stat().st_size) for p in folder.rglob("*") if p.is_file() and p.name != ".lock"}


def shown(show: Any, **changes: Any) -> str:
    out = io.StringIO()
    show({**DOCUMENT, **changes})(out)
    return out.getvalue()


def test_changes_are_a_table_with_what_else_is_to_know_below() -> None:
    text = shown(planned)
    row = next(line for line in text.splitlines() if line.startswith("replace"))
    assert " ".join(row.split()) == "replace q 2026-01-01T00:00:10Z 0.0123 EAP1 running was paused, answers again"
    assert "1 change, all in force at one boundary, by `forebay apply`; nothing is changed yet\n" in text
    assert "own has the text of queries/own.sql" in text and "not from files: mine; `forebay apply --adopt" in text
    ended = {**CHANGE, "action": "delete", "predicted_s": None, "plan": None}
    text = shown(applied, changes=[CHANGE, ended])
    assert "2 changes, in force at one boundary\n" in text and "own belongs to queries/own.sql from now on\n" in text
    assert text.count("answers again") == 1, "a paused query that ends does not"


def test_nothing_to_do_is_said() -> None:
    assert shown(planned, **NOTHING) == shown(applied, **NOTHING)
    assert shown(applied, **NOTHING) == "nothing to do: the queries in force are those of queries/\n"


@pytest.mark.slow
def test_plan_then_apply(cli: Cli, shop: Path) -> None:
    at = ("--json", "--pipeline", str(shop))
    assert cli("plan", *at).document == cli("apply", *at).document == NOTHING
    assert "nothing to do" in cli("plan", "--pipeline", str(shop)).out
    (shop / "queries" / "mine.sql").write_text(QUERY)
    (shop / "queries" / "totals.sql").write_text(QUERY)
    (shop / "queries" / "sections.sql").unlink()
    before = files(shop)
    planned = cli("plan", *at)
    assert planned.code == 0 and files(shop) == before
    changes = {change["query"]: change for change in planned.document["changes"]}
    assert {name: change["action"] for name, change in changes.items()} == {
        "mine": "create", "totals": "replace", "sections": "delete"}
    assert {change["effective"] for change in changes.values()} == {NEXT}
    assert changes["mine"]["predicted_s"] > 0 and changes["sections"]["predicted_s"] is None
    applied = cli("apply", "--pipeline", str(shop))
    assert applied.code == 0 and "3 changes, in force at one boundary" in applied.out and NEXT in applied.out
    assert cli("plan", *at).document == NOTHING
    queries = cli("query", "list", *at)
    assert "differs" not in queries.err and {(q["query"], q["state"]) for q in queries.document["queries"]} == {
        ("mine", "active"), ("totals", "active"), ("sections", "deleted"), ("slow_pages", "active")}


@pytest.mark.slow
def test_a_wrong_file_is_exit_2_and_nothing_changes(cli: Cli, shop: Path) -> None:
    (shop / "queries" / "good.sql").write_text(QUERY)
    (shop / "queries" / "wrong.sql").write_text("SELECT v.nothing FROM views AS v [WINDOW 1 HOUR]")
    before = files(shop)
    for command in ("plan", "apply", "check"):
        refused = cli(command, "--json", "--pipeline", str(shop))
        error = refused.document["error"]
        assert (refused.code, error["code"], error["line"]) == (2, "unknown-column", 1)
        assert error["message"].startswith("queries/wrong.sql: ")
        plain = cli(command, "--pipeline", str(shop))
        assert plain.code == 2 and plain.out == "" and "queries/wrong.sql" in plain.err
    assert files(shop) == before


@pytest.mark.slow
def test_queries_from_no_file_are_adopted_or_ended_by_name(cli: Cli, shop: Path) -> None:
    at = ("--json", "--pipeline", str(shop))
    for name in ("mine", "yours"):
        assert cli("query", "create", name, QUERY, *at).code == 0
    assert cli("plan", *at).document["other"] == ["mine", "yours"]
    assert "not from files: mine, yours;" in cli("plan", "--pipeline", str(shop)).out
    adopted = cli("apply", "--adopt", "mine", "--delete-others", *at).document
    assert adopted["adopted"] == ["mine"] and adopted["other"] == []
    assert [(change["query"], change["action"]) for change in adopted["changes"]] == [("yours", "delete")]
    assert (shop / "queries" / "mine.sql").read_text() == f"{QUERY}\n"
    refused = cli("apply", "--adopt", "nobody", *at)
    assert (refused.code, refused.document["error"]["code"]) == (2, "unknown-query")


@pytest.mark.slow
def test_check_looks_at_all_of_the_folder(cli: Cli, shop: Path) -> None:
    at = ("--pipeline", str(shop))
    checked = cli("check", "--json", *at)
    assert checked.code == 0 and checked.document["queries"] == ["sections", "slow_pages", "totals"]
    assert checked.document["notes"] == []
    (shop / "pages.csv").unlink()
    told = cli("check", *at)
    assert told.code == 0 and told.out.startswith("nothing is wrong with shop (streams: 2, relations: 1, queries: 3,")
    assert f"relation pages: no file matches {shop}/pages.csv" in told.out
    (shop / "forebay.yml").write_text("name: shop\nbatch: 10 minutes\nstreams: {views: {}}\n")
    assert cli("check", *at).code == 2
