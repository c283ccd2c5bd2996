"""Several windows in one query, as Azure Stream Analytics writes them: what it means, and where what is wrong."""
from __future__ import annotations

import pytest

from optimizer.errors import ForebayError
from optimizer.expression.types import parse_type
from optimizer.plan.merging import choices
from optimizer.plan.model import candidates, default
from optimizer.query.model import Catalog, NamedWindow, Query
from optimizer.query.windows import Window
from optimizer.sql.parse import parse
from optimizer.sql.windows import length

MINUTE = 60_000_000
COLUMNS = tuple((n, parse_type(k)) for n, k in {"EntryTime": "timestamp", "DeviceID": "string", "T": "double"}.items())
CATALOG = Catalog(MINUTE, (("Input", "EntryTime", COLUMNS), ("Other", "EntryTime", COLUMNS)),
                  (("Places", (("DeviceID", parse_type("string")),)),))
SET = "Windows(Window('20 min', TumblingWindow(minute, 20)), Window('30 min', HoppingWindow(minute, 30, 10)))"
AZURE = ("SELECT DeviceID, System.Window().Id, MIN(T) AS MinTemp FROM Input TIMESTAMP BY EntryTime GROUP BY DeviceID, "
         f"{SET}")


def query(text: str) -> Query:
    return parse(text, CATALOG)


def test_the_papers_query() -> None:
    """Fig. 1(a), its parentheses closed and its commas mended."""
    found = query("""SELECT DeviceID, System.Window().Id, Min(T) AS MinTemp
FROM Input TIMESTAMP BY EntryTime
GROUP BY DeviceID, Windows(
    Window(‘20 min’, TumblingWindow(minute, 20)),
    Window(‘30 min’, TumblingWindow(minute, 30)),
    Window(‘40 min’, TumblingWindow(minute, 40)))""")
    assert found.windows == tuple(NamedWindow(f"{n} min", n * MINUTE, n * MINUTE) for n in (20, 30, 40))
    assert [n for n, _ in found.columns] == ["DeviceID", "Id", "MinTemp"] and found.every == 10 * MINUTE
    assert found.inputs[0].window == Window("hopping", 40 * MINUTE, 10 * MINUTE)


def test_windows_that_end_at_a_boundary() -> None:
    """Each with what it is shorter than the longest."""
    found = query(AZURE)
    assert [[(w.name, longer) for w, longer in found.shown(t * MINUTE)] for t in (10, 20, 5)] == [
        [("30 min", 0)], [("20 min", 10 * MINUTE), ("30 min", 0)], []]


def test_joins_aliases_expressions() -> None:
    found = query(
        f"""SELECT UPPER(System . Window ( ) . Id) AS w, COUNT(*) AS n FROM Input i TIMESTAMP BY i.EntryTime JOIN Other
        o TIMESTAMP BY EntryTime
        ON i.DeviceID = o.DeviceID, Places p WHERE p.DeviceID = i.DeviceID GROUP BY {SET} HAVING System.Window().Id <>
        '20 min' AND COUNT(*) > 1"""
    )
    assert [i.window and i.window.range
            for i in found.inputs] == [30 * MINUTE, 30 * MINUTE, None] and found.columns[0][0] == "w"
    assert all(p.plan.keeping in ("recompute", "expire")
               for p in candidates(found)
               if p.refused is None) and default(found).keeping == "recompute"


def test_a_text_cannot_say_the_windows_name() -> None:
    found = query(f"SELECT 'System.Window().Id' AS x, COUNT(*) AS n FROM Input GROUP BY {SET}")
    assert found.outputs[0][1] != found.groups[0]


HOPPING = "HoppingWindow(minute, 30, 10)"


@pytest.mark.parametrize(("old", "new", "code", "at"), [
    ("TIMESTAMP BY EntryTime", "TIMESTAMP BY T", "wrong-event-time", "TIMESTAMP"),
    ("FROM Input ", "FROM Input [WINDOW 1 HOUR] ", "bad-window", "[WINDOW"),
    ("'30 min'", "'20 min'", "duplicate-window", "Window('20 min', Hopping"),
    (HOPPING, "TumblingWindow(minute, 20)", "duplicate-window", "Window('30"),
    ("minute, 30, 10", "minute, 30, 40", "bad-window", "minute, 30, 40"),
    ("minute, 20", "minute, 0", "bad-length", "minute, 0"),
    ("minute, 20", "minute, -20", "bad-length", "minute, -20"),
    ("minute, 20", "day, 999999999999999999", "bad-length", "day"),
    ("minute, 20", "month, 20", "bad-length", "month"),
    ("minute, 20", "minute, 1.5", "bad-length", "minute"),
    ("minute, 20", "second, 90", "bad-window", "Windows("),
    ("minute, 20", "week, 60000", "bad-window", "Windows("),
    (HOPPING, "SlidingWindow(minute, 30)", "not-supported", "SlidingWindow"),
    ("minute, 20", "minute, 20, 10", "bad-window", "Tumbling"),
    ("minute, 30, 10", "minute, 30", "bad-window", "HoppingWindow"),
    ("Window('30 min', ", "(", "bad-window", "(Hopping"),
    ("'30 min'", "''", "bad-window", "', Hop"),
    ("'30 min'", "thirty", "bad-window", "Window(thirty"),
    (SET, "TumblingWindow(minute, 20)", "bad-window", "System"),
    (f", {SET}", "", "bad-window", "System"),
    (SET, f"{SET}, {SET}", "bad-window", None),
    (SET, SET[:-1], "syntax", "(Window('20"),
    ("GROUP BY DeviceID, ", "WHERE ", "bad-window", "Windows("),
    ("GROUP BY", "WHERE System.Window().Id = 'x' GROUP BY", "not-supported", "System.Window().Id ="),
    (SET, f"{SET} EVERY 1 HOUR", "bad-every", "EVERY")])
def test_refused_where(old: str, new: str, code: str, at: str | None) -> None:
    text = AZURE.replace(old, new)
    with pytest.raises(ForebayError) as caught:
        query(text)
    assert caught.value.code == code and caught.value.hint, str(caught.value)
    assert at is None or caught.value.column == text.index(
        at) + 1, f"{caught.value}: {text[caught.value.column - 1:] if caught.value.column else ''}"


@pytest.mark.slow
def test_more_than_a_thousand_windows_are_refused() -> None:
    """Every window has a name, so the message says how many there are and what to do."""
    def listed(count: int) -> str:
        windows = ", ".join(f"Window('{n}', TumblingWindow(minute, {n}))" for n in range(1, count + 1))
        return f"Windows({windows})"

    assert len(query(AZURE.replace(SET, listed(1000))).windows) == 1000
    with pytest.raises(ForebayError) as caught:
        query(AZURE.replace(SET, listed(1001)))
    assert caught.value.code == "too-many-windows" and "1,001" in str(
        caught.value) and caught.value.hint == "make several queries"


def test_ranges_whose_least_common_multiple_has_hundreds_of_digits() -> None:
    """Prime numbers of minutes: costs are of whole numbers and fractions of any size, and levels are looked for
    nonetheless.
    """
    primes = [n for n in range(2, 400) if all(n % k for k in range(2, n))][:50]
    listed = ", ".join(f"Window('{n}', TumblingWindow(minute, {n}))" for n in primes)
    found = query(AZURE.replace(SET, f"Windows({listed})"))
    assert found.inputs[0].window == Window("hopping", primes[-1] * MINUTE, MINUTE)
    assert [levels for levels in choices(found) if all(level.tumbling for level in levels)] == [()]


@pytest.mark.parametrize(("count", "unit", "hint"), [("0", "hour", "positive"), ("-5", "minutes", "positive"),
                                                     ("999999999999999999", "day", "at most"),
                                                     ("9" * 40, "second", "at most"), ("1.5", "hour", "smaller unit")])
def test_a_length_that_cannot_be_says_which_can(count: str, unit: str, hint: str) -> None:
    with pytest.raises(ForebayError) as caught:
        length(count, unit)
    assert caught.value.code == "bad-length" and hint in str(caught.value.hint)
