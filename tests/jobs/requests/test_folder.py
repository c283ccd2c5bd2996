"""`plan` and `apply`: what is in queries/ comes into force, by one request at one boundary, and nothing else does."""
from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import forebay
from jobs.adapt.choice import Chooser
from jobs.storage import failpoints
from optimizer.errors import ForebayError
from tests.jobs.pipelines import COUNT, answers, boundary, equal, opened, pipeline, ran, rows

pytestmark = pytest.mark.slow

SUM = "SELECT COUNT(*) AS n, SUM(v.x) AS x FROM views AS v [WINDOW 20 SECONDS]"
FLOATS = "SELECT COUNT(*) * 0.5D AS n FROM views AS v [WINDOW 20 SECONDS]"
FAILS = "SELECT SUM(10 % v.x) AS n FROM views AS v [WINDOW 20 SECONDS]"
PAIRS = "SELECT a.x, b.k FROM views AS a [WINDOW 1 MINUTE], views AS b [WINDOW 1 MINUTE] WHERE a.k = b.k"
WRONG = "SELECT v.nothing FROM views AS v [WINDOW 20 SECONDS]"
NOTHING: dict[str, list[Any]] = {"changes": [], "other": [], "adopted": []}


def file(folder: Path, name: str) -> Path:
    return folder / "queries" / f"{name}.sql"


def version(pipe: forebay.Pipeline) -> int:
    """Of the ledger of requests: what was entered moves it."""
    return pipe.runtime.ledger.changes_version()


def actions(document: dict[str, Any]) -> dict[str, str]:
    return {change["query"]: change["action"] for change in document["changes"]}


def boundaries(document: dict[str, Any]) -> set[int | None]:
    return {change["effective"] for change in document["changes"]}


def states(pipe: forebay.Pipeline) -> dict[str, str]:
    return {query["query"]: query["state"] for query in pipe.queries()}


def broken_off(pipe: forebay.Pipeline, point: str, patch: pytest.MonkeyPatch, **options: Any) -> None:
    """An `apply` that ends at a failpoint."""
    with patch.context() as inner:
        inner.setattr(failpoints, "_passes", Counter())
        inner.setenv("FOREBAY_FAILPOINT", f"{point}:1:raise")
        with pytest.raises(failpoints.Reached):
            pipe.apply(**options)


def test_creations_replacements_and_deletions_are_one_request_at_one_boundary(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"same": COUNT, "other_text": COUNT, "gone": COUNT})
    rows(pipe, [1, 25])
    assert ran(pipe) == [10, 20]
    file(tmp_path, "other_text").write_text(SUM)
    file(tmp_path, "gone").unlink()
    file(tmp_path, "fresh").write_text(COUNT)
    before = version(pipe)
    planned = pipe.plan()
    assert actions(planned) == {"fresh": "create", "other_text": "replace", "gone": "delete"}
    assert (boundaries(planned), planned["other"], planned["adopted"]) == ({boundary(30)}, [], [])
    assert version(pipe) == before and "fresh" not in states(pipe)
    assert pipe.apply() == planned
    assert version(pipe) == before + 1, "one commit"
    assert pipe.plan() == pipe.apply() == NOTHING and version(pipe) == before + 1
    rows(pipe, [45])
    assert ran(pipe) == [30, 40]
    assert states(pipe) == {"same": "active", "other_text": "active", "gone": "deleted", "fresh": "active"}
    assert [t for t, _ in answers(pipe, "gone")] == [10, 20]
    assert answers(pipe, "fresh") == [(30, 1), (40, 1)]
    assert answers(pipe, "other_text") == [(10, 1, None), (20, 1, None), (30, 1, 1), (40, 1, 1)] and equal(pipe)


def test_before_the_first_row_nothing_is_known(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    (change,) = pipe.plan()["changes"]
    assert change == {"query": "q", "action": "create", "effective": None, "predicted_s": None, "plan": None,
                      "before": None}
    assert pipe.apply()["changes"] == [change] and pipe.plan() == NOTHING
    rows(pipe, [5, 25])
    assert ran(pipe) == [10, 20]


def test_the_price_is_what_explain_says(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, range(30))
    (change,) = pipe.plan()["changes"]
    explained = pipe.explain(COUNT)
    prices = {candidate["plan"]: candidate["predicted_s"] for candidate in explained["candidates"]}
    assert change["plan"] == explained["chosen"]
    assert change["predicted_s"] == pytest.approx(prices[explained["chosen"]]) and change["predicted_s"] > 0


def test_a_price_that_cannot_be_made_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def considered(*arguments: Any) -> None:
        raise ForebayError("damaged-table", "a file of views is gone", exit_code=1)

    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 25])
    monkeypatch.setattr(Chooser, "considered", considered)
    (change,) = pipe.apply()["changes"]
    assert change["predicted_s"] is None and states(pipe) == {"q": "active"}


def test_what_an_older_row_moves_is_still_one_boundary(tmp_path: Path) -> None:
    """A request for 610, then a row before it: 10 would be the first boundary, but `q` cannot change before 610."""
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [605])
    assert boundaries(pipe.apply()) == {boundary(610)}
    rows(pipe, [5])
    file(tmp_path, "fresh").write_text(COUNT)
    assert boundaries(pipe.apply()) == {boundary(10)}
    file(tmp_path, "q").write_text(SUM)
    file(tmp_path, "later").write_text(COUNT)
    assert boundaries(pipe.apply()) == {boundary(610)}
    ran(pipe, flush=True)
    assert [t for t, *_ in answers(pipe, "q")] == [t for t, *_ in answers(pipe, "later")] == [610] and equal(pipe)


def test_a_wrong_file_is_refused_by_name_and_nothing_changes(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"good": COUNT, "bad": WRONG, "worse": "SELECT"})
    before = version(pipe)
    for call in (pipe.plan, pipe.apply, pipe.check):
        with pytest.raises(ForebayError) as caught:
            call()
        error = caught.value
        assert (error.code, error.exit_code, error.line) == ("unknown-column", 2, 1)
        assert error.message.startswith("queries/bad.sql: ") and "(also wrong: queries/worse.sql)" in error.message
    file(tmp_path, "bad").unlink()
    file(tmp_path, "worse").rename(tmp_path / "queries" / "1st.sql")
    for call in (pipe.plan, pipe.apply, pipe.check):
        with pytest.raises(ForebayError, match="queries/1st.sql is called '1st', which is not a query's name"):
            call()
    assert version(pipe) == before and pipe.queries() == []


def test_columns_that_do_not_fit_are_refused_with_the_file(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 25])
    ran(pipe)
    file(tmp_path, "q").write_text(FLOATS)
    file(tmp_path, "fresh").write_text(COUNT)
    before = version(pipe)
    for call in (pipe.plan, pipe.apply, pipe.check):
        with pytest.raises(ForebayError) as caught:
            call()
        assert (caught.value.code, caught.value.exit_code) == ("columns-changed", 2)
        assert caught.value.message.startswith("queries/q.sql: ") and "n bigint becomes n double" in str(caught.value)
        assert "forebay query create q -f queries/q.sql --replace --new-history" in str(caught.value.hint)
    assert version(pipe) == before
    pipe.create("q", FLOATS, replace=True, new_history=True)
    document = pipe.apply()
    assert actions(document) == {"fresh": "create"} and document["adopted"] == ["q"], "its text is the file's"
    rows(pipe, [45])
    ran(pipe)
    assert answers(pipe, "q") == [(30, 0.5), (40, 0.5)] and equal(pipe)


def test_paused_and_failed_queries_stay_so_until_their_text_changes(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"paused": COUNT, "bad": FAILS})
    rows(pipe, [1, 11])
    rows(pipe, [25], x=0)
    rows(pipe, [35])
    ran(pipe)
    pipe.change("paused", "pause")
    assert states(pipe) == {"bad": "failed", "paused": "paused"} and pipe.plan() == NOTHING
    file(tmp_path, "paused").write_text(SUM)
    file(tmp_path, "bad").write_text(COUNT)
    changes = pipe.apply()["changes"]
    assert [(c["query"], c["action"], c["before"]) for c in changes] == [("bad", "replace", "failed"),
                                                                         ("paused", "replace", "paused")]
    assert states(pipe) == {"bad": "active", "paused": "active"}
    pipe.change("paused", "pause")
    for name in ("paused", "bad"):
        file(tmp_path, name).unlink()
    assert actions(pipe.apply()) == {"bad": "delete", "paused": "delete"}


def test_a_deleted_query_whose_file_is_there_is_created_again(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 25])
    ran(pipe)
    pipe.change("q", "delete")
    assert pipe.synchronise() == [] and states(pipe) == {"q": "deleted"}, "a run leaves it as it is"
    (change,) = pipe.apply()["changes"]
    assert (change["action"], change["before"], change["effective"]) == ("create", "deleted", boundary(30))
    rows(pipe, [45])
    ran(pipe)
    assert [t for t, _ in answers(pipe, "q")] == [10, 20, 30, 40] and equal(pipe)


def test_a_pin_stays_and_line_ends_are_no_change(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 25])
    ran(pipe)
    pipe.change("q", "pin", "EAP1 expire")
    file(tmp_path, "q").write_bytes(f"\r\n{COUNT}\r\n".encode())
    assert pipe.plan() == NOTHING
    file(tmp_path, "q").write_text(COUNT.replace("20 SECONDS", "30 SECONDS"))
    (change,) = pipe.apply()["changes"]
    assert change["plan"] == pipe.query("q")["pinned"] == "EAP1 expire"


def test_queries_from_no_file_stay_until_somebody_names_them(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 25])
    pipe.create("mine", SUM)
    pipe.create("yours", COUNT)
    ran(pipe)
    before = version(pipe)
    assert pipe.plan() == pipe.apply() == {**NOTHING, "other": ["mine", "yours"]} and version(pipe) == before
    assert pipe.apply(adopt="mine") == {**NOTHING, "other": ["yours"], "adopted": ["mine"]}
    assert file(tmp_path, "mine").read_text() == f"{SUM}\n" and version(pipe) == before + 1
    ended = pipe.apply(delete_others=True)
    assert (actions(ended), ended["other"]) == ({"yours": "delete"}, []) and file(tmp_path, "q").exists()
    assert pipe.plan() == NOTHING
    file(tmp_path, "mine").unlink()
    assert actions(pipe.plan()) == {"mine": "delete"}, "it belongs to its file since it was adopted"
    pipe.apply(adopt=["mine"])
    assert file(tmp_path, "mine").read_text() == f"{SUM}\n" and states(pipe)["mine"] == "active"


def test_adopting_changes_no_answer(tmp_path: Path) -> None:
    """A row query that began anew would publish all pairs once more."""
    pipe = pipeline(tmp_path, queries={"base": COUNT})
    rows(pipe, [1, 2, 15])
    assert ran(pipe) == [10]
    pipe.create("pairs", PAIRS)
    rows(pipe, [25])
    assert ran(pipe) == [20]
    shown = pipe.query("pairs")
    pipe.apply(adopt="pairs")
    assert pipe.query("pairs") == shown and shown["effective"] == boundary(20)
    rows(pipe, [35])
    assert ran(opened(tmp_path)) == [30]
    pipe = opened(tmp_path)
    assert [t for t, *_ in answers(pipe, "pairs")] == [20] * 9 + [30] * 7 and equal(pipe)


@pytest.mark.parametrize(("name", "code"), [("nobody", "unknown-query"), ("over", "wrong-state"),
                                            ("taken", "file-exists"), ("../up", "bad-name")])
def test_what_cannot_be_adopted_is_refused_before_anything_changes(tmp_path: Path, name: str, code: str) -> None:
    pipe = pipeline(tmp_path)
    for query in ("over", "taken", "mine"):
        pipe.create(query, COUNT)
    pipe.change("over", "delete")
    file(tmp_path, "taken").write_text(SUM)
    before = version(pipe)
    with pytest.raises(ForebayError) as caught:
        pipe.apply(adopt=["mine", name], delete_others=True)
    assert (caught.value.code, caught.value.exit_code) == (code, 2) and caught.value.hint
    assert version(pipe) == before and not file(tmp_path, "mine").exists()
    assert file(tmp_path, "taken").read_text() == SUM


def test_a_file_that_is_wrong_keeps_another_from_being_written(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    pipe.create("mine", COUNT)
    file(tmp_path, "bad").write_text(WRONG)
    with pytest.raises(ForebayError, match="queries/bad.sql"):
        pipe.apply(adopt="mine")
    assert not file(tmp_path, "mine").exists()


@pytest.mark.parametrize(("point", "is_entered"), [("request.before-commit", False), ("request.after-commit", True)])
def test_a_kill_leaves_all_of_it_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str,
                                            is_entered: bool) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT, "gone": COUNT})
    rows(pipe, [1, 25])
    pipe.create("mine", SUM)
    ran(pipe)
    file(tmp_path, "q").write_text(SUM)
    file(tmp_path, "gone").unlink()
    file(tmp_path, "fresh").write_text(COUNT)
    broken_off(pipe, point, monkeypatch, adopt="mine")
    assert file(tmp_path, "mine").exists()
    pipe = opened(tmp_path)
    left = {} if is_entered else {"fresh": "create", "q": "replace", "gone": "delete"}
    planned = pipe.plan()
    assert (actions(planned), planned["adopted"]) == (left, [] if is_entered else ["mine"])
    assert pipe.apply() == planned and pipe.plan() == NOTHING
    assert states(pipe) == {"q": "active", "gone": "deleted", "fresh": "active", "mine": "active"}
    file(tmp_path, "mine").unlink()
    assert actions(pipe.plan()) == {"mine": "delete"}
    rows(pipe, [45])
    ran(pipe)
    assert equal(pipe)


def test_what_somebody_else_requests_meanwhile_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison is made anew: with the query that came, and without the deletion of one that was ended already."""
    pipe = pipeline(tmp_path, queries={"q": COUNT, "gone": COUNT})
    pipe.apply()
    file(tmp_path, "gone").unlink()
    file(tmp_path, "fresh").write_text(COUNT)
    other, passes = opened(tmp_path), list[str]()

    def at(name: str) -> None:
        passes.append(name)
        if len(passes) == 1:
            other.create("later", COUNT)
            other.change("gone", "delete")

    monkeypatch.setattr(failpoints, "at", at)
    document = pipe.apply()
    assert (actions(document), document["other"]) == ({"fresh": "create"}, ["later"])


def test_a_folder_that_is_not_there_ends_nothing(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    pipe.apply()
    (tmp_path / "queries").rename(tmp_path / "elsewhere")
    before = version(pipe)
    for call in (pipe.plan, pipe.apply):
        with pytest.raises(ForebayError, match="has no folder queries/") as caught:
            call()
        assert (caught.value.code, caught.value.exit_code) == ("no-folder", 2)
    assert version(pipe) == before
    (tmp_path / "queries").mkdir()
    assert actions(pipe.apply()) == {"q": "delete"}


def test_a_run_tells_what_apply_would_do_and_takes_new_files_in(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT, "gone": COUNT})
    pipe.create("mine", COUNT)
    pipe.apply(adopt="mine")
    file(tmp_path, "q").write_text(SUM)
    for name in ("gone", "mine"):
        file(tmp_path, name).unlink()
    file(tmp_path, "fresh").write_text(COUNT)
    notices = pipe.synchronise()
    assert [notice.split()[0] for notice in notices] == ["queries/q.sql", "queries/gone.sql", "queries/mine.sql"]
    assert all("forebay apply" in notice for notice in notices)
    assert states(pipe) == {"q": "active", "gone": "active", "mine": "active", "fresh": "active"}
    assert actions(pipe.plan()) == {"q": "replace", "gone": "delete", "mine": "delete"}


@pytest.mark.parametrize("seed", range(4))
def test_after_each_apply_the_files_are_what_is_in_force(tmp_path: Path, seed: int) -> None:
    """Whatever people do to files and queries between two of them; what they made by hand is let alone."""
    choice, pipe = random.Random(seed), pipeline(tmp_path, queries={"q0": COUNT})
    texts, by_hand, clock = (COUNT, SUM, PAIRS), set[str](), 0
    for _ in range(8):
        for _ in range(3):
            _meddle(choice, pipe, tmp_path, texts, by_hand)
        clock += 10
        rows(pipe, [clock + 5])
        if choice.random() < 0.5:
            ran(pipe)
        planned = pipe.plan()
        assert pipe.apply() == planned and len(boundaries(planned)) <= 1
        assert pipe.plan() == {**NOTHING, "other": planned["other"]}
        in_files = {path.stem: path.read_text() for path in (tmp_path / "queries").glob("*.sql")}
        by_hand -= in_files.keys()
        living = {query["query"]: query["sql"] for query in pipe.queries() if query["state"] != "deleted"}
        assert {name: sql for name, sql in living.items() if name not in by_hand} == in_files
        assert set(planned["other"]) == living.keys() & by_hand
    ran(pipe, flush=True)
    assert equal(pipe)


def _meddle(choice: random.Random, pipe: forebay.Pipeline, folder: Path, texts: tuple[str, ...],
            by_hand: set[str]) -> None:
    """A file comes, changes or goes; or a person creates, pauses or deletes a query by hand."""
    name, kind = f"q{choice.randrange(4)}", choice.randrange(5)
    state = states(pipe).get(name)
    if kind < 2:
        file(folder, name).write_text(choice.choice(texts))
    elif kind == 2:
        file(folder, name).unlink(missing_ok=True)
    elif kind == 3:
        pipe.create(name, choice.choice(texts), replace=True)
        by_hand.add(name)
    elif state == "active":
        pipe.change(name, choice.choice(["pause", "delete"]))
