"""The ledger: put-if-absent of intents and commits, requests on top of what they have seen, and tables that stay small.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.ledger import ledger
from jobs.ledger.entries import Batch, KeptState
from jobs.ledger.ledger import Ledger
from jobs.ledger.queries import QueryChange
from jobs.storage.tables import Conflict, Table
from optimizer.plan.model import Plan

S = 10**6
LATE = Plan((False,), "recompute", (0,))


def batch(number: int, boundary: int) -> Batch:
    return Batch(number, (boundary,), {"q": LATE}, {}, {}, {})


def entered(book: Ledger, number: int) -> None:
    book.intent(batch(number, number * S))
    book.commit(batch(number, number * S), {"q": KeptState(LATE, 0, number * S, {}, number)}, {}, 0.1, {})


def create(name: str) -> QueryChange:
    return QueryChange(name, "create", None, "SELECT 1", columns="[]")


def test_of_two_intents_one_stays(tmp_path: Path) -> None:
    one, other = Ledger(str(tmp_path)), Ledger(str(tmp_path))
    one.intent(batch(0, S))
    with pytest.raises(Conflict) as caught:
        other.intent(batch(0, 2 * S))
    assert caught.value.exit_code == 3
    found = other.last()
    assert found is not None and found.is_open and found.batch.boundaries == (S,)


def test_of_two_commits_one_stays(tmp_path: Path) -> None:
    one, other = Ledger(str(tmp_path)), Ledger(str(tmp_path))
    one.intent(batch(0, S))
    assert other.last() is not None
    other.commit(batch(0, S), {}, {}, 0.0, {})
    with pytest.raises(Conflict):
        one.commit(batch(0, S), {}, {}, 0.0, {})


def test_what_another_process_wrote_meanwhile_is_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit is followed by another process's intent before this one looks at the table again."""
    one, other, honest = Ledger(str(tmp_path)), Ledger(str(tmp_path)), Table.append
    one.intent(batch(0, S))

    def append(self: Table, *args: Any, **options: Any) -> int:
        version = honest(self, *args, **options)
        if options["transaction"] == ("batch", 1):
            assert other.last() is not None
            other.intent(batch(1, 2 * S))
            self.refresh()
        return version

    monkeypatch.setattr(Table, "append", append)
    one.commit(batch(0, S), {}, {}, 0.0, {})
    newest = one.last()
    assert newest is not None and newest.is_open and newest.batch.number == 1


def test_a_request_sees_the_mark_that_its_changes_come_with(tmp_path: Path) -> None:
    """A mark made while the request is made: it is made again, with the later boundary."""
    one, other = Ledger(str(tmp_path)), Ledger(str(tmp_path))
    seen: list[int | None] = []

    def make(begun: int | None, known: tuple[QueryChange, ...]) -> QueryChange:
        seen.append(begun)
        if len(seen) == 1:
            assert other.begin(5 * S, other.changes_version())
        return QueryChange("q", "create", (begun or 0) + S)

    assert one.request(make).effective == 6 * S
    assert seen == [None, 5 * S]


def test_a_mark_fails_when_something_was_asked_since(tmp_path: Path) -> None:
    one, other = Ledger(str(tmp_path)), Ledger(str(tmp_path))
    asked = one.changes_version()
    other.request(lambda begun, known: create("q"))
    assert not one.begin(S, asked)
    assert one.begin(S, one.changes_version()) and one.begun() == S


@pytest.mark.slow
def test_many_entries_become_one_file_and_say_the_same(tmp_path: Path) -> None:
    book = Ledger(str(tmp_path))
    for n in range(ledger.MANY + 5):
        book.request(lambda begun, known, n=n: create(f"q{n}"))
        entered(book, n)
    before, last = book.all_changes(), book.last()
    book.tidy()
    assert len(book.changes.files()) == len(book.batches.files()) == 1
    for found in (book, Ledger(str(tmp_path))):
        assert found.all_changes() == before and found.last() == last
        assert found.committed() == (ledger.MANY + 4) * S and found.first() == 0
    entered(book, ledger.MANY + 5)
    assert len(book.batches.files()) == 3
    assert list((tmp_path / "ledger/batches/_delta_log"
                 ).glob("*.checkpoint.parquet")), "a log without checkpoints is read from its beginning"


def test_what_was_let_go_is_forgotten_in_a_commit_and_in_an_open_intent(tmp_path: Path) -> None:
    book = Ledger(str(tmp_path))
    entered(book, 0)
    states = book.last().states      # type: ignore[union-attr]
    book.let_go("q")
    assert book.last().states == {}      # type: ignore[union-attr]
    book.intent(Batch(1, (S,), {}, {}, states, {"state/q/0/totals0": 3}))
    book.let_go("q")
    entry = book.last()
    assert entry is not None and entry.is_open and (entry.batch.states, entry.states) == ({}, {})
    assert Ledger(str(tmp_path)).last() == entry
