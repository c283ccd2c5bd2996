"""Windows merged from coarser panes: any levels give each window's own answer, also with late rows.

And rows are read once, panes no longer than needed.
"""
from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optimizer.choice.explain import tree
from optimizer.choice.search import every_form
from optimizer.cost.features import steady
from optimizer.cost.measured import SECONDS, prior, seconds
from optimizer.coverage.algebra import COVERED, PARTITIONED, Window
from optimizer.plan.lowering import Lowering
from optimizer.plan.membership import Range
from optimizer.plan.merging import SHARING, Levels, choices, instances, keeps, parent, relation, source, stride
from optimizer.plan.model import Plan, default, named, refusal, with_levels
from optimizer.plan.program import BEGINNING
from optimizer.plan.tree import program
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.statistics.model import InputStatistics, QueryStatistics
from tests import oracle
from tests.differential import answers, differences, query_of
from tests.engine import Folder, compact, together
from tests.streams import SECOND, Case, Row
from tests.test_differential_spark import Pair, one_by_one

BATCH = 10 * SECOND
FIRST, LAST = 100, 140
COLUMNS = {"ts": "timestamp", "k": "int", "v": "int", "d": "double"}
WINDOWS = ((2, 2), (4, 4), (6, 6), (8, 4), (12, 12), (12, 6), (18, 6), (24, 12), (24, 24), (36, 12))
OUTPUTS = ("COUNT(*) AS n, SUM(a.v) AS s, MIN(a.d) AS low, MAX(a.v) AS high, AVG(a.v) AS mean, STDDEV(a.v) AS spread, "
           "SUM(a.d) AS total")


def text(pairs: list[tuple[int, int]], outputs: str = OUTPUTS, source: str = "s0 a TIMESTAMP BY ts") -> str:
    listed = ", ".join(f"Window('w{r}/{s}', HoppingWindow(second, {10 * r}, {10 * s}))" for r, s in pairs)
    return f"SELECT a.k, System.Window().Id, {outputs} FROM {source} GROUP BY a.k, Windows({listed})"


def case_of(pairs: list[tuple[int, int]], rows: list[Row], **form: str) -> Case:
    return Case(BATCH, {
        "s0": ("ts", COLUMNS, rows),
        "s1": ("ts", COLUMNS, [])
    }, {}, text(pairs, **form), [t * BATCH for t in range(FIRST, LAST)], False)


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Half of them late, by up to forty batches: after instances of every level have ended."""
    made = []
    for number in draw(st.lists(st.integers(0, 2**40), max_size=40)):
        ts = FIRST * BATCH + number % 75 * BATCH // 2
        late = max(0, number // 75 % 80 - 40)
        made.append((ts, number // 6000 % 3, number // 18000 % 11 - 3, number // 198000 % 5 / 4,
                     (ts // BATCH + 1 + late) * BATCH))
    return made


@given(rows(), st.lists(st.sampled_from(WINDOWS), min_size=1, max_size=5, unique=True),
       st.randoms(use_true_random=False), st.sampled_from(list(SHARING)))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.slow
def test_any_levels_give_each_windows_own_answer(found: list[Row], pairs: list[tuple[int, int]], choice: Random,
                                                 sharing: str) -> None:
    case = case_of(pairs, found)
    query, expected = query_of(case), oracle.answers(case)
    plan = plan_with(query, levels_of(query, choice), sharing)
    wrong = differences(expected, answers(case, query, plan, choice, choice.choice((1, 3))))
    assert not wrong, f"{plan}: {case.sql}\n" + "\n".join(wrong[:5])


def levels_of(query: Query, choice: Random) -> Levels:
    """Up to three windows, hopping ones too where the functions bear it, of which those stay that something reads."""
    most = max(w.range for w in query.windows) // BATCH
    lengths = sorted(choice.sample(range(1, most + 1), min(3, most)))
    hops = [choice.randint(1, length) if relation(query) == COVERED and choice.random() < 0.7 else length
            for length in lengths]
    found = tuple(Window(length * BATCH, hop * BATCH) for length, hop in zip(lengths, hops))
    while found and refusal(shape(query), plan_with(query, found)):
        found = found[:-1] if choice.random() < 0.5 else found[1:]
    return found


def plan_with(query: Query, levels: Levels, sharing: str = "each") -> Plan:
    return with_levels(replace(named(query, "EAP1 recompute"), sharing=sharing), levels)


def end_to_end(*lengths: int) -> Levels:
    return tuple(Window(length, length) for length in lengths)


CHEAP_READING = {"state_read": 1e-10, "look": 1e-10}
EXTREMES = "MIN(a.d) AS low, MAX(a.v) AS high"


@given(rows(), st.lists(st.sampled_from(WINDOWS), min_size=1, max_size=5, unique=True),
       st.randoms(use_true_random=False), st.sampled_from(list(SHARING)))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.slow
def test_overlapping_instances_give_each_windows_own_extremes(found: list[Row], pairs: list[tuple[int, int]],
                                                              choice: Random, sharing: str) -> None:
    """Each window that covers another one of the set may be made of it, and by chance of others still."""
    case = case_of(pairs, found, outputs=EXTREMES)
    query, expected = query_of(case), oracle.answers(case)
    own = tuple(sorted({w.range: Window(w.range, w.slide) for w in query.windows}.values()))
    read = tuple(level for level in own if any(source((level,), w) and w.range > level.range for w in query.windows))
    levels = levels_of(query, choice) if not read or choice.random() < 0.5 else read
    plan = plan_with(query, levels, sharing)
    if refusal(shape(query), plan):
        return
    wrong = differences(expected, answers(case, query, plan, choice, choice.choice((1, 3))))
    assert not wrong, f"{plan}: {case.sql}\n" + "\n".join(wrong[:5])


@pytest.mark.slow
@pytest.mark.parametrize("kept", [
    ((8, 4), (12, 12)),          # a tumbling level of a hopping one, of which some instances lie across its ends
    ((5, 1), (12, 6)),           # 12 by three instances of 5, of which the last two overlap by 3
    ((6, 2), (8, 4), (16, 4)),   # one of another of another
])
def test_levels_of_levels_that_overlap(kept: tuple[tuple[int, int], ...]) -> None:
    """A row every half batch, some of them late, boundaries one by one and all together."""
    rows: list[Row] = [(FIRST * BATCH + n * BATCH // 2, n % 2, n * 7 % 11, n * 5 % 13 / 4,
                        (FIRST + n // 2 + 1 + n % 7 // 6 * 20) * BATCH) for n in range(80)]
    case = case_of([(24, 12), (36, 12), (12, 12), (1, 1)], rows, outputs=EXTREMES)
    query, expected = query_of(case), oracle.answers(case)
    levels = tuple(Window(length * BATCH, hop * BATCH) for length, hop in kept)
    for sharing in SHARING:
        plan = plan_with(query, levels, sharing)
        assert refusal(shape(query), plan) is None
        for number in range(4):
            wrong = differences(expected, answers(case, query, plan, Random(number), 2))
            assert not wrong, f"{plan} by {number}\n" + "\n".join(wrong[:5])


def test_a_hopping_level_is_read_where_fewer_of_its_instances_make_a_window() -> None:
    """24 every 12 is two instances of 12, every 6 or not, and three of 10 every 2: at 0, 10 and 14."""
    twelve, hopping = Window(12, 12), Window(12, 6)
    assert source((twelve,), Window(24, 12)) == twelve and instances(Window(24, 12), hopping, 1) == 2
    assert instances(Window(24, 12), Window(10, 2), 1) == 3 and stride(Window(10, 2)) == 10
    assert source((Window(10, 2), hopping), Window(24, 12)) == hopping
    assert source((Window(10, 3),), Window(24, 12)) is None
    assert parent((Window(8, 4), Window(16, 4)), Window(16, 4)) == Window(8, 4)


def test_only_extremes_are_merged_from_overlapping_instances() -> None:
    level = (Window(120 * SECOND, 60 * SECOND),)
    extremes, sums = (query_of(case_of([(12, 6), (24, 6)], [], outputs=outputs)) for outputs in (EXTREMES, OUTPUTS))
    assert refusal(shape(extremes), plan_with(extremes, level)) is None
    assert relation(extremes) == COVERED and relation(sums) == PARTITIONED
    assert "only MIN and MAX" in (refusal(shape(sums), plan_with(sums, level)) or "")
    assert any(not w.tumbling for levels in choices(extremes) for w in levels)
    assert all(w.tumbling for levels in choices(sums) for w in levels)
    with pytest.raises(ValueError, match="one for each"):
        replace(plan_with(extremes, level), hops=(60 * SECOND, 60 * SECOND))


def test_raw_rows_are_read_once_whatever_the_levels() -> None:
    query = query_of(case_of([(12, 6), (24, 12), (36, 12)], []))
    plan = plan_with(query, end_to_end(120 * SECOND), "together")
    made = program(Lowering(shape(query), plan), (108 * BATCH,), 102 * BATCH)
    assert [s.ranges for s in made.sources if s.kind == "stream"] == [(Range(102 * BATCH, 108 * BATCH),)]


@pytest.mark.slow
def test_panes_leave_state_when_their_last_reader_has_read_them() -> None:
    """Windows of 24 and 12, both from a level of 12 steps: panes are kept for 12 steps, the level for 24."""
    query = query_of(case_of([(12, 6), (24, 12), (24, 24)], []))
    assert keeps(query, ()) == {None: 24 * BATCH}
    (level,) = end_to_end(12 * BATCH)
    assert keeps(query, (level,)) == {None: 12 * BATCH, level: 24 * BATCH}
    rows: list[Row] = [(FIRST * BATCH + n * BATCH, n % 2, n, n / 4, (FIRST + n + 1) * BATCH) for n in range(40)]
    case = case_of([(12, 6), (24, 12), (24, 24)], rows)
    assert files_kept(case, plan_with(query, ())) == {"panes0": 4}
    assert files_kept(case, plan_with(query, (level,))) == {"panes0": 2, "level0_0": 2}


def files_kept(case: Case, plan: Plan) -> dict[str, int]:
    """After boundaries every 6 steps up to 132; and maintenance makes one file of them."""
    query, folder, previous = query_of(case), Folder(), BEGINNING
    folder.add("s0", oracle.stream_table(case, "s0"))
    for t in range(102, 138, 6):
        together(query, plan, folder, (t * BATCH,), 1, previous)
        previous = t * BATCH
    kept = {name: len(files) for name, files in folder.state.items()}
    compact(query, plan, folder, previous)
    assert {len(files) for files in folder.state.values()} == {1}
    folder.remove()
    return kept


@pytest.mark.parametrize(
    "pairs,expected",
    [
        ([(2, 2), (3, 3), (4, 4)], [()]),  # paper D, Example 6: W(10) is the panes themselves
        ([(4, 4), (6, 6), (8, 8), (9, 9)], [(40,)]),  # Algorithm 1: 80 from 40
    ])
def test_levels_that_are_tried_hold_those_of_algorithm_1(pairs: list[tuple[int, int]],
                                                         expected: list[tuple[int, ...]]) -> None:
    found = choices(query_of(case_of(pairs, [])))
    assert all(end_to_end(*(length * SECOND for length in levels)) in found for levels in expected)


@pytest.mark.parametrize("name,change,why", [
    ("EAP1 recompute", {"levels": (60 * SECOND,)}, "nothing reads a level of 60000000 µs"),
    ("EAP1 recompute", {"levels": (15 * SECOND,)}, "not made of panes of 20000000 µs"),
    ("EAP1 expire", {"levels": (40 * SECOND,)}, "merged from the panes of one stream"),
    ("LAP recompute", {"levels": (40 * SECOND,)}, "merged from the panes of one stream"),
    ("EAP1 recompute", {"levels": (40 * SECOND,), "layout": "raw"}, "merged from the panes of one stream")])
def test_levels_that_cannot_be(name: str, change: dict[str, object], why: str) -> None:
    query = query_of(case_of([(2, 2), (4, 4), (8, 8)], []))
    assert why in (refusal(shape(query), replace(named(query, name), **change)) or "")      # type: ignore[arg-type]


def test_one_window_and_holistic_functions_share_nothing() -> None:
    median = query_of(case_of([(2, 2), (4, 4)], [], outputs="MEDIAN(a.v) AS m"))
    assert "no exact partial states" in (refusal(shape(median),
                                                 replace(named(median, "LAP recompute"), sharing="together")) or "")
    one = query_of(
        Case(BATCH, {"s0": ("ts", COLUMNS, [])}, {}, "SELECT COUNT(*) AS n FROM s0 [WINDOW 1 MINUTE]", [], False))
    assert "one window" in (refusal(shape(one), replace(named(one, "EAP1 recompute"), sharing="together")) or "")
    with pytest.raises(ValueError, match="longer than the one before"):
        plan_with(one, end_to_end(2, 1))


@pytest.mark.slow
def test_a_thousand_windows_are_answered_at_once() -> None:
    """All end at the boundary.

    None is read by itself, whatever was measured so far. A row every second, until the last.
    """
    rows: list[Row] = [(FIRST * BATCH + n * SECOND, 1, n, n / 4, (FIRST + n // 10 + 1) * BATCH) for n in range(400)]
    case = case_of([(k, 1) for k in range(1, 1001)], rows, outputs="COUNT(*) AS n, MIN(a.v) AS low")
    query, folder = query_of(case), Folder()
    folder.add("s0", oracle.stream_table(case, "s0"))
    found = together(query, default(query), folder, (140 * BATCH,))[140 * BATCH].to_pydict()
    assert dict(zip(found["Id"], zip(found["n"], found["low"]))) == {
        f"w{k}/1": (min(10 * k, 400), max(400 - 10 * k, 0)) for k in range(1, 1001)
    }
    assert len(tree(query, default(query)).splitlines()) < 100
    folder.remove()


@pytest.mark.spark
@pytest.mark.parametrize("name,levels,outputs", [("EAP1 recompute", end_to_end(12 * BATCH), OUTPUTS),
                                                 ("EAP1 recompute", (Window(12 * BATCH, 6 * BATCH),), EXTREMES),
                                                 ("EAP1 expire", (), OUTPUTS), ("LAP recompute", (), OUTPUTS)])
def test_spark_sql_gives_each_windows_own_answer(spark: Any, name: str, levels: Levels, outputs: str) -> None:
    rows: list[Row] = [(FIRST * BATCH + n * BATCH, n % 2, n, n / 4, (FIRST + n + 1 + n % 5) * BATCH) for n in range(30)]
    case = replace(case_of([(12, 6), (24, 12), (24, 24)], rows, outputs=outputs),
                   boundaries=[t * BATCH for t in (120, 126, 132)])
    query, expected = query_of(case), oracle.answers(case)
    plan = with_levels(replace(named(query, name), place="jvm", sharing="together"), levels)
    wrong = differences(expected, one_by_one(spark, Pair(case, query, plan, 1, 1, expected)))
    assert not wrong, "\n".join(wrong[:5])


def test_the_graph_before_and_after_with_what_a_boundary_reads() -> None:
    """240 s every 120 s reads 24 panes at one boundary in twelve: 2, of instances of 120 s a sixth."""
    query = query_of(case_of([(1, 1), (12, 12), (24, 12)], []))
    shown = tree(query, plan_with(query, end_to_end(12 * BATCH), "together"))
    assert shown[shown.index("Windows as written"
                             ):] == """Windows as written: 4 panes and instances a boundary and group
panes of 10 s
├─ w1/1, 10 s every 10 s: 1
├─ w12/12, 2 min every 2 min: 1
└─ w24/12, 4 min every 2 min: 2

Windows as merged, those that end together in one pass: 2.167 panes and instances a boundary and group
panes of 10 s
├─ 2 min (kept instances of a window): 1
│  ├─ w12/12, 2 min every 2 min: 0.08333
│  └─ w24/12, 4 min every 2 min: 0.1667
└─ w1/1, 10 s every 10 s: 1"""
    assert "as merged" not in tree(query, plan_with(query, ()))


@pytest.mark.parametrize(
    "pairs,rate,groups,sharing,levels",
    [
        # few readers, many partials: an hour's are made once
        ([(60, 60), (360, 360), (8640, 8640), (8640, 360)], 1e5, 1e5, "each", (3600,)),
        # all end at every boundary, and only panes partition them
        ([(6 * k, 6) for k in range(2, 22)], 1e4, 1e4, "together", ()),
        # a level's commit is more than it saves
        ([(60, 60), (120, 120)], 1, 1, "each", ())
    ])
def test_sharing_is_chosen_by_price(pairs: list[tuple[int, int]], rate: float, groups: float, sharing: str,
                                    levels: tuple[int, ...]) -> None:
    query = query_of(case_of(pairs, []))
    stream = InputStatistics(rate, rate * 10 * max(r for r, _ in pairs), combinations=groups)
    observed = QueryStatistics((stream,), (), 10, groups)
    forms = [p for p in every_form(shape(query), named(query, "EAP1 recompute")) if p.layout == "panes"]
    best = min(forms, key=lambda p: seconds(steady(query, p, observed).total, prior()))
    assert (best.sharing, best.levels) == (sharing, tuple(f * SECOND for f in levels))


@pytest.mark.parametrize("pairs,unit_costs,levels", [
    ([(360, 1)], {}, ()),             # as many instances to look through as panes: merging the fewer of them saves less
    ([(360, 1)], CHEAP_READING, ((18, 1),)),                        # 20 instances of 18 panes, where it has 360 panes
    ([(20, 10), (40, 20)], CHEAP_READING, ())])                     # windows of two panes: nothing is saved
def test_overlapping_levels_are_chosen_by_price(pairs: list[tuple[int, int]], unit_costs: dict[str, float],
                                                levels: tuple[tuple[int, int], ...]) -> None:
    query, groups = query_of(case_of(pairs, [], outputs=EXTREMES)), 1e4
    stream = InputStatistics(groups, groups * 10 * max(r for r, _ in pairs), combinations=groups)
    observed = QueryStatistics((stream,), (), 10, groups)
    best = min(every_form(shape(query), named(query, "EAP1 recompute")),
               key=lambda p: seconds(steady(query, p, observed).total, prior({**SECONDS, **unit_costs})))
    assert best.layout == "panes"
    assert best.kept_windows == tuple(Window(length * BATCH, hop * BATCH) for length, hop in levels)


@given(st.lists(st.sampled_from(WINDOWS), min_size=1, max_size=5, unique=True), st.randoms(use_true_random=False),
       st.floats(1, 1e4), st.floats(1, 50))
def test_more_rows_are_never_less_work(pairs: list[tuple[int, int]], choice: Random, rate: float, times: float) -> None:
    query = query_of(case_of(pairs, []))
    plan = plan_with(query, levels_of(query, choice), choice.choice(list(SHARING)))
    longest = max(length for length, _ in pairs)

    def work(rows: float) -> dict[str, float]:
        stream = InputStatistics(rows, 10 * rows * longest, combinations=1e3)
        return steady(query, plan, QueryStatistics((stream,), (), 10, 100)).total

    less, more = work(rate), work(rate * times)
    assert all(more.get(kind, 0) >= amount * (1 - 1e-9) for kind, amount in less.items())
