"""What a person sees first: every answer at once, a picture of one, a plan in words."""
from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from forebay import pictures
from jobs.results import series
from optimizer.errors import ForebayError
from tests.forebay.conftest import Cli

AT = [datetime(2025, 1, 1, 10, minute, tzinfo=timezone.utc) for minute in (0, 10, 20)]


def answer(**columns: list[object]) -> pa.Table:
    return pa.table({"boundary": pa.array(AT * (len(next(iter(columns.values()))) // 3), pa.timestamp("us", "UTC")),
                     **columns})


def test_a_line_for_each_group_and_a_panel_for_each_figure() -> None:
    drawn = series.plotted(answer(page=["a"] * 3 + ["b"] * 3, n=[1, 2, 3, 4, None, 6], x=[0.5] * 6), ["page"])
    assert list(drawn.series) == ["n", "x"] and drawn.omitted == 0
    assert drawn.series["n"] == {"a": list(zip(AT, [1.0, 2.0, 3.0])), "b": [(AT[0], 4.0), (AT[2], 6.0)]}


def test_the_groups_with_the_largest_last_values_are_drawn() -> None:
    pages = [f"p{k}" for k in range(20) for _ in range(3)]
    drawn = series.plotted(answer(page=pages, n=[k for k in range(20) for _ in range(3)]), ["page"])
    assert set(drawn.series["n"]) == {f"p{k}" for k in range(12, 20)} and drawn.omitted == 12


def test_without_figures_rows_are_counted() -> None:
    assert series.plotted(answer(page=["a"] * 6).select(["boundary"]), []).series == {"rows": {"": [
        (time, 2.0) for time in AT]}}


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ForebayError, match="is no picture's name"):
        pictures.check("answers.pdf")


@pytest.mark.slow
def test_every_query_s_last_answer(cli: Cli, shop: Path) -> None:
    at = ("--pipeline", str(shop))
    document = cli("result", "--json", *at).document
    assert [query["query"] for query in document["queries"]] == ["sections", "slow_pages", "totals"]
    for query in document["queries"]:
        assert query == cli("result", query["query"], "--json", *at).document
    shown = cli("result", *at)
    assert shown.code == 0 and all(f"{name}:" in shown.out for name in ("sections", "slow_pages", "totals"))
    assert cli("result", "--all", *at).code == 2


@pytest.mark.slow
def test_an_answer_is_drawn(cli: Cli, shop: Path, tmp_path: Path) -> None:
    for name in ("sections", "slow_pages", "totals"):
        file = tmp_path / f"{name}.png"
        drawn = cli("result", name, "--plot", str(file), "--pipeline", str(shop), "--json")
        assert drawn.code == 0 and drawn.document["file"] == str(file) and file.read_bytes()[:4] == b"\x89PNG"
    assert cli("result", "totals", "--plot", "x.gif", "--pipeline", str(shop)).code == 2


@pytest.mark.slow
def test_a_plan_is_explained_in_words_first(cli: Cli, shop: Path) -> None:
    at = ("--pipeline", str(shop))
    document = cli("explain", "sections", "--json", *at).document
    shown = cli("explain", "sections", *at).out
    assert shown.startswith(f"{document['chosen']}: {document['summary']}\n")
    assert "SELECT" not in shown and "`--sql` shows" in shown and "`--all` shows them" in shown
    assert "reads its windows anew at each boundary" in shown
    every = cli("explain", "sections", "--all", "--sql", *at).out
    assert "SELECT" in every and all(candidate["plan"] in every for candidate in document["candidates"])
