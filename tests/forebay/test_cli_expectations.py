"""Expectations at the command line: a boundary stopped with exit code 1, released by name, run.

What is held, as a table and as JSON.
"""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.forebay.conftest import Cli

pytestmark = pytest.mark.slow

STOPPED = "2025-01-01T12:10:00Z"
NEVER = ("query: totals\nexpectations:\n- {type: expect_column_values_to_be_between, column: nobody, max_value: 0, "
         "severity: critical}\n")


def more(shop: Path) -> None:
    (shop / "landing" / "views"
     / "late.csv").write_text("ts,user,page,ms\n2025-01-01T12:05:00Z,u1,news,700\n2025-01-01T12:25:00Z,u1,news,-700\n")
    (shop / "landing" / "purchases" / "late.json").write_text(
        '{"ts": "2025-01-01T12:05:00Z", "user": "u1", "amount": "1.50"}\n'
        '{"ts": "2025-01-01T12:25:00Z", "user": "u1", "amount": "1.50"}\n')


def test_a_boundary_is_stopped_released_and_run(cli: Cli, shop: Path) -> None:
    at = str(shop)
    (shop / "expectations").mkdir()
    (shop / "expectations" / "views.yml").write_text(
        "stream: views\nexpectations:\n- {type: expect_column_values_to_be_between, column: ms, min_value: 0, "
        "severity: row}\n"
        "- {type: expect_table_row_count_to_be_between, max_value: 0, severity: critical}\n")
    more(shop)
    assert cli("ingest", "--json", "--pipeline", at).document["streams"]["views"] == {
        "files": 1,
        "rows": 1,
        "quarantined": 1,
        "late": 0
    }
    for _ in range(2):
        said = cli("run", "--flush", "--json", "--pipeline", at)
        error = said.document["error"]
        assert said.code == 1 and error["code"] == "expectation-failed" and STOPPED in error[
            "message"] and f"forebay --pipeline {at} release {STOPPED}" in error["hint"]
    assert cli("release", "2025-01-01T12:20:00Z", "--reason", "x", "--pipeline", at).code == 2
    released = cli("release", STOPPED, "--reason", "a sale", "--json", "--pipeline", at)
    assert released.code == 0 and released.document["boundary"] == STOPPED and released.document["reason"] == "a sale"
    assert [r["subject"] for r in released.document["released"]] == ["stream views"]
    again = cli("release", STOPPED, "--reason", "a sale", "--json", "--pipeline", at)
    assert again.code == 2 and "released already" in again.document["error"]["message"]
    assert STOPPED in [b["boundary"] for b in cli("run", "--flush", "--json", "--pipeline", at).document["ran"]]
    assert cli("verify", "--pipeline", at).code == 0


def test_what_is_held_is_listed(cli: Cli, shop: Path) -> None:
    document = cli("expectations", "--json", "--pipeline", str(shop)).document
    assert document["docs"] is None and {"stream views", "stream purchases", "query totals", "query sections"} <= set(
        document["subjects"])
    assert {"groups_unique", "boundary_monotone"
            } <= {row["expectation"].split(":")[0] for row in document["subjects"]["query sections"]}
    said = cli("expectations", "--pipeline", str(shop)).out
    assert "event_time_not_null" in said and "ingest" in said


def test_an_unknown_column_is_refused_with_what_exists(cli: Cli, shop: Path) -> None:
    (shop / "expectations").mkdir()
    (shop / "expectations" / "totals.yml").write_text(NEVER)
    said = cli("run", "--json", "--pipeline", str(shop))
    assert said.code == 2 and said.document["error"]["code"] == "unknown-column" and said.document["error"]["line"] == 3
    assert "revenue" in said.document["error"]["hint"] and "expectations/totals.yml" in said.document["error"][
        "message"]
    assert cli("query", "pause", "totals", "--pipeline", str(shop)).code == 0
