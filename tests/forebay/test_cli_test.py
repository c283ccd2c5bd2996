"""`forebay test` at the command line and in Python: document, text, exit codes; the examples' own tests; its pace."""
from __future__ import annotations

import io
import re
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

import forebay
from forebay import text
from tests.forebay.conftest import Cli

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ("minimal", "sensors", "shop")
ROWS: dict[str, Any] = {"message": "q at T: 12 rows missing, 1 row too many", "plan": "EAP1 running",
                        "missing": [{"k": None}], "missing_rows": 12, "too_many": [{"k": "\x1b"}], "too_many_rows": 1}


def test_differences_as_text() -> None:
    passed = {"file": "tests/a.yml", "test": "good", "passed": True, "seconds": 0.25, "differences": []}
    failed = {**passed, "test": "bad", "passed": False, "differences": [ROWS]}
    out = io.StringIO()
    text.tested({"tests": [passed, failed]})(out)
    shown = out.getvalue()
    assert "passed  tests/a.yml: good (0.2 s)\nFAILED  tests/a.yml: bad (0.2 s)\n" in shown
    assert "q at T: 12 rows missing, 1 row too many (under EAP1 running)\n" in shown
    assert "missing   {k: null}\n        missing   … and 11 more\n        too many  {k: \\x1b}\n" in shown
    assert shown.endswith("2 tests, 1 failed\n") and "\x1b" not in shown


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_a_new_pipeline_has_tests_that_pass(cli: Cli, tmp_path: Path, example: str) -> None:
    folder = tmp_path / example
    assert cli("init", str(folder), "--example", example).code == 0
    tested = cli("test", "--pipeline", str(folder), "--json")
    assert tested.code == 0, tested.out
    assert len(tested.document["tests"]) == 2 and all(test["passed"] for test in tested.document["tests"])
    assert not (folder / "warehouse").exists()


@pytest.mark.slow
def test_what_fails_exits_with_1_and_what_is_wrong_with_2(cli: Cli, tmp_path: Path,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "minimal"
    cli("init", str(folder), "--example", "minimal")
    file = folder / "tests" / "clicks.yml"
    written = file.read_text()
    file.write_text(written.replace("[{page: home, n: 1}]", "[{page: home, n: 9}]"))
    failed = cli("test", "--pipeline", str(folder), "--json")
    assert (failed.code, [test["passed"] for test in failed.document["tests"]]) == (1, [True, False])
    difference, = failed.document["tests"][1]["differences"]
    assert difference["boundary"] == "2025-01-01T09:01:00Z" and difference["query"] == "clicks_by_page"
    assert (difference["missing"], difference["too_many"]) == ([{"page": "home", "n": 9}], [{"page": "home", "n": 1}])
    monkeypatch.chdir(folder)
    shown = cli("test", "tests/clicks.yml")
    assert shown.code == 1 and "missing   {page: home, n: 9}\n" in shown.out and "2 tests, 1 failed" in shown.out
    file.write_text(written.replace("page: news", "pge: news", 1))
    wrong = cli("test", "--json")
    error = wrong.document["error"]
    assert (wrong.code, error["code"], error["line"]) == (2, "unknown-column", 8) and "page" in error["hint"]
    assert cli("test", "nowhere.yml").code == 2
    file.unlink()
    assert cli("test", "--json").document["error"]["code"] == "no-tests"


@pytest.mark.slow
def test_ten_tests_in_python_and_how_long_they_take(cli: Cli, tmp_path: Path) -> None:
    """The time is printed, not held: machines differ."""
    folder = tmp_path / "minimal"
    cli("init", str(folder), "--example", "minimal")
    file = folder / "tests" / "clicks.yml"
    file.write_text(file.read_text() * 5)
    pipe = forebay.open(str(folder))
    started = time.perf_counter()
    document = pipe.test([str(file)])
    print(f"ten tests took {time.perf_counter() - started:.2f} s")
    assert [test["passed"] for test in document["tests"]] == [True] * 10


@pytest.mark.slow
def test_the_example_of_the_documentation_passes(cli: Cli, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    example = re.search(r"    # tests/clicks\.yml\n(.*?)\n\n", page, re.S)
    assert example is not None
    folder, file = tmp_path / "minimal", tmp_path / "page.yml"
    cli("init", str(folder), "--example", "minimal")
    file.write_text(textwrap.dedent(example[1]))
    tested = cli("test", str(file), "--pipeline", str(folder))
    assert tested.code == 0 and "a click counts for five minutes" in tested.out, tested
