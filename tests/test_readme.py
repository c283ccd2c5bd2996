"""What the documents name exists: make targets, commands, links, files, feature rows.

And they say nothing about one machine.
"""
from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ROWS = {"A": 8, "B": 3, "C": 4, "D": 5, "E": 9}


def spoken(document: Path, pattern: str) -> set[str]:
    """What stands in code: indented lines, fenced blocks and back-ticks, as `make test` or `forebay run`."""
    text = document.read_text(encoding="utf-8")
    code = (re.findall(r"^(?: {4}|\t)(.*)$", text,
                       re.MULTILINE), re.findall(r"```.*?\n(.*?)```", text,
                                                 re.DOTALL), re.findall(r"`([^`\n]+)`", text))
    return set(re.findall(pattern, "\n".join(chain(*code)), re.MULTILINE))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_targets_exist(document: Path) -> None:
    targets = spoken(document, r"(?:^|&& |; |… )make ([a-z][a-z0-9-]*)")
    assert {t for t in targets if not known(t)} == set()


@cache
def known(target: str) -> bool:
    return subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True).returncode == 0


def test_help_names_every_target() -> None:
    phony = set(re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split())
    said = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^  make (\S+)", said, re.MULTILINE)) == phony


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_links_resolve(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text(encoding="utf-8"))
    assert [t for t in targets if "://" not in t and not (document.parent / t).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_files_exist(document: Path) -> None:
    named = spoken(document,
                   r"(?:^|\s)((?:optimizer|expectations|jobs|dags|forebay|infra|tests|docs|\.ci)/[\w./*-]*[\w*])")
    examples = ROOT / "forebay" / "examples"      # tests/clicks.yml is a file of a pipeline
    assert {n for n in named if not any(ROOT.glob(n)) and not any(examples.glob(f"*/{n}"))} == set()


@pytest.mark.slow
def test_commands_exist() -> None:
    commands = {c for d in DOCUMENTS for c in spoken(d, r"^(?:\.venv/bin/)?forebay ([a-z]+)")}
    run = [sys.executable, "-c", "import sys; from forebay.cli import main; sys.exit(main())"]
    assert {c for c in commands if subprocess.run([*run, c, "--help"], cwd=ROOT, capture_output=True).returncode
            } == set()
    assert subprocess.run([*run, "no-such-command", "--help"], cwd=ROOT, capture_output=True).returncode == 2


def test_every_row_has_one_state() -> None:
    rows = re.findall(r"^\| ([A-E]\d) \| .+ \| (planned|part: .+|library: .+|done) \|$",
                      (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [r for r, _ in rows] == [f"{letter}{i}" for letter, count in ROWS.items() for i in range(1, count + 1)]


def test_no_index_address_is_committed() -> None:
    """Where packages and jars come from is a setting of the machine."""
    for name in ("requirements.in", "requirements.lock", "infra/ivy.xml", "infra/jars.sha256", "infra/install",
                 "infra/jars.py", "Makefile", ".ci/run"):
        assert re.findall(r"https?://\S+", (ROOT / name).read_text(encoding="utf-8")) == [], name
