"""Statistics ride with the batches: which are sampled, what is kept over a restart, and that answers do not depend on
any of it.
"""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forebay
from forebay.cli import main
from jobs.adapt import statistics, statistics_table
from jobs.adapt.statistics import EVERY, FIRST
from jobs.batch.works import parsed
from jobs.engine.sample import SampleOrder, take
from jobs.engine.small_tables import ask
from jobs.storage import tables
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import default
from optimizer.plan.sampling import sampling
from optimizer.query.shape import shape
from optimizer.statistics.model import QueryStatistics
from tests.jobs.pipelines import COUNT, SECOND, boundary, equal, opened, pipeline, ran, rows

pytestmark = pytest.mark.slow
JOIN = ("SELECT v.k, COUNT(*) AS n FROM views AS v [WINDOW 30 SECONDS], buys AS b [WINDOW 30 SECONDS] WHERE v.k = b.k "
        "GROUP BY v.k")
NAMES = "relations:\n  names: {columns: {k: bigint, name: string}, source: {files: \"names.csv\"}}\n"


def _pipe(folder: Path, **more: Any) -> forebay.Pipeline:
    return pipeline(folder, {"views": "lateness: 1 hour", "buys": ""}, **more)


def _come(pipe: forebay.Pipeline, first: int, last: int, views: int = 60, buys: int = 18) -> None:
    """So many rows for each of the boundaries `first` to `last` (from 1), of three keys, one file a stream."""
    for stream, count in (("views", views), ("buys", buys)):
        at = [boundary((n - 1) * 10 + 10 * r / count) for n in range(first, last + 1) for r in range(count)]
        keys = [r % 3 for _ in range(first, last + 1) for r in range(count)]
        stamps = pa.array(at, pa.int64()).cast(pa.timestamp("us", "UTC"))
        path = Path(pipe.runtime.pipeline.folder) / f"{stream}-{first}-{last}.parquet"
        pq.write_table(pa.table({"ts": stamps, "k": pa.array(keys, pa.int64()), "x": pa.array(keys, pa.int64())}), path)
        pipe.ingest(stream, str(path))


def _run(pipe: forebay.Pipeline, count: int) -> None:
    """Boundary by boundary."""
    for _ in range(count):
        pipe.run(flush=True, batches=1)


def _known(pipe: forebay.Pipeline, name: str = "q") -> QueryStatistics | None:
    rt = pipe.runtime
    return pipe.loop.statistics.observed(name, parsed(pipe.query(name)["sql"], rt.catalog))


def _sampled(pipe: forebay.Pipeline, name: str = "q") -> list[int]:
    """Numbers of the boundaries with a sample, as the ledger's table has them."""
    table = tables.open_table(f"{pipe.runtime.pipeline.warehouse}/{statistics_table.PATH}")
    found = ask(table, "statistics",
                f"SELECT DISTINCT epoch_us(boundary) FROM statistics WHERE query = '{name}' ORDER BY 1")
    return [(at - boundary(0)) // (10 * SECOND) for at, in found]


def test_what_is_known_of_a_join(tmp_path: Path) -> None:
    pipe = _pipe(tmp_path, queries={"q": JOIN})
    pipe.synchronise()
    assert _known(pipe) is None
    _come(pipe, 1, 4)      # what is there already of the next boundary does not count
    _run(pipe, 3)
    known = _known(pipe)
    assert known is not None
    assert [i.rate for i in known.inputs] == pytest.approx([6.0, 1.8]) and [i.rows for i in known.inputs
                                                                            ] == pytest.approx([180.0, 54.0])
    assert [round(i.combinations, 3)
            for i in known.inputs] == [3, 3] and known.classes[0].keys == pytest.approx(3, rel=1e-3)
    assert known.groups == 3 and known.fanout == pytest.approx(3 * 60 * 18, rel=0.03) and known.weight == 3 * 78
    assert equal(pipe)


def test_the_rhythm(tmp_path: Path) -> None:
    """The first batches, then every few; after a change the first ones again; none that nothing came to."""
    pipe = _pipe(tmp_path, queries={"q": JOIN})
    last = FIRST + 2 * EVERY
    _come(pipe, 1, last)
    _run(pipe, last)
    steady = [1, 2, 3, FIRST + EVERY, FIRST + 2 * EVERY]
    assert _sampled(pipe) == steady
    _come(pipe, last + 1, last + 4, views=300)
    _run(pipe, 4)
    assert _sampled(pipe) == [*steady, last + 1, last + 2, last + 3]
    pipe.run(to=boundary((last + 9) * 10), flush=True)
    rows(pipe, [(last + 9) * 10 + 5])
    pipe.run(flush=True)
    assert _sampled(pipe)[-1] == last + 10 and _sampled(pipe)[-2] == last + 3


def test_quiet_boundaries_are_not_sampled(tmp_path: Path) -> None:
    pipe = _pipe(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 2, 200])
    assert len(ran(pipe, to=boundary(20))) == 2
    before = _sampled(pipe)
    ran(pipe, to=boundary(100))
    assert before == _sampled(pipe) != []


def test_a_restart_goes_on_with_what_was_known(tmp_path: Path) -> None:
    pipe = _pipe(tmp_path, queries={"q": JOIN})
    _come(pipe, 1, FIRST + 2)
    _run(pipe, FIRST + 1)
    again = opened(tmp_path)
    assert _known(again) == _known(pipe) is not None
    _run(again, 1)
    assert len(_sampled(again)) == FIRST


def test_another_text_of_that_name_starts_anew(tmp_path: Path) -> None:
    pipe = _pipe(tmp_path, queries={"q": JOIN})
    _come(pipe, 1, 2)
    _run(pipe, 1)
    pipe.create("q", JOIN.replace("30 SECONDS] WHERE", "40 SECONDS] WHERE"), replace=True)
    assert _known(pipe) is None
    _run(pipe, 1)
    known = _known(pipe)
    assert known is not None and known.weight == 78 and _known(opened(tmp_path)) == known


def test_the_table_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics_table, "MANY", 3)
    monkeypatch.setattr(statistics_table, "STAYS", 12)
    monkeypatch.setattr(statistics, "EVERY", 1)
    pipe = _pipe(tmp_path, queries={"q": JOIN})
    _come(pipe, 1, 15)
    _run(pipe, 15)
    files = tables.open_table(f"{pipe.runtime.pipeline.warehouse}/{statistics_table.PATH}").files()
    assert len(files) <= 3 and 12 <= sum(f.rows for f in files) <= 12 + 2 * 3
    assert _known(opened(tmp_path)) == _known(pipe)


def test_a_relation_is_sampled_once_a_version(tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("k,name\n0,a\n1,b\n")
    sql = "SELECT n.name, COUNT(*) AS c FROM views AS v [WINDOW 30 SECONDS], names AS n WHERE v.k = n.k GROUP BY n.name"
    pipe = _pipe(tmp_path, queries={"q": sql}, top=NAMES)
    pipe.ingest()
    _come(pipe, 1, 1)
    _run(pipe, 1)
    first = pipe.loop.statistics.samples("q", parsed(sql, pipe.runtime.catalog))[0].inputs[1]
    _come(pipe, 2, 2)
    _run(pipe, 1)
    second = pipe.loop.statistics.samples("q", parsed(sql, pipe.runtime.catalog))[0].inputs[1]
    assert second.combinations is first.combinations and second.version == first.version
    (tmp_path / "names.csv").write_text("k,name\n0,a\n1,b\n2,c\n")
    pipe.ingest()
    _come(pipe, 3, 3)
    _run(pipe, 1)
    known = _known(pipe)
    assert known is not None and known.inputs[1].rows == 3 and known.inputs[1].rate == 0
    assert equal(pipe)


def test_running_totals_count_the_combinations(tmp_path: Path) -> None:
    pipe = _pipe(tmp_path, queries={"q": JOIN})
    pipe.synchronise()
    pipe.change("q", "pin", "EAP11 running")
    _come(pipe, 1, 4)
    _run(pipe, 4)
    newest = pipe.loop.statistics.samples("q", parsed(JOIN, pipe.runtime.catalog))[0]
    assert [i.held for i in newest.inputs] == [3, 3]


def test_late_rows_are_told(tmp_path: Path) -> None:
    pipe = _pipe(tmp_path, queries={"q": COUNT})
    _come(pipe, 1, 2)
    _run(pipe, 2)
    rows(pipe, [3] * 20)
    _come(pipe, 3, 3, views=30)
    _run(pipe, 1)
    known = _known(pipe)
    assert known is not None and known.inputs[0].late == pytest.approx(20 / 170, rel=0.1)


def test_a_sample_that_cannot_be_taken_is_none(tmp_path: Path) -> None:
    """A file that is gone, and one that is no Parquet."""
    pipe = _pipe(tmp_path, queries={"q": JOIN})
    query = parsed(JOIN, pipe.runtime.catalog)
    (tmp_path / "bad.parquet").write_text("no")
    for path in ("bad.parquet", "gone.parquet"):
        asked = SampleOrder("q", 0, sampling(Lowering(shape(query), default(query)), 0, 10 * SECOND, 0, 1),
                            (str(tmp_path / path),))
        assert take(asked).sample is None
    _come(pipe, 1, 1)
    _run(pipe, 1)
    assert equal(pipe)


def test_statistics_that_cannot_be_written_do_not_matter(tmp_path: Path) -> None:
    pipe = _pipe(tmp_path, queries={"q": JOIN})
    _come(pipe, 1, 1)
    _run(pipe, 1)
    log = Path(pipe.runtime.pipeline.warehouse) / statistics_table.PATH / "_delta_log"
    (log / f"{pipe.runtime.table(statistics_table.PATH).version + 1:020d}.json").write_text("{}\n")
    _come(pipe, 2, 2)
    _run(pipe, 1)
    assert equal(pipe) and _known(pipe) is not None


def test_statistics_that_cannot_be_read_are_made_anew(tmp_path: Path) -> None:
    pipe = _pipe(tmp_path, queries={"q": JOIN})
    _come(pipe, 1, 2)
    _run(pipe, 1)
    for path in (Path(pipe.runtime.pipeline.warehouse) / statistics_table.PATH).glob("*.parquet"):
        path.write_text("no")
    again = opened(tmp_path)
    assert _known(again) is None
    _run(again, 1)
    assert equal(again) and _known(again) is not None


def test_a_first_look_at_a_query_that_never_ran(tmp_path: Path) -> None:
    pipe = _pipe(tmp_path)
    query = parsed(JOIN, pipe.runtime.catalog)
    assert pipe.loop.statistics.first_look(query).weight == 0
    _come(pipe, 1, 3)
    known = pipe.loop.statistics.first_look(query)
    assert known.weight > 0 and known.inputs[0].combinations == pytest.approx(3, rel=0.01)
    assert known.inputs[0].rate == pytest.approx(6, rel=0.05) and pipe.loop.statistics.first_look(
        parsed(COUNT, pipe.runtime.catalog)).weight > 0


def test_stats_says_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pipe = _pipe(tmp_path, queries={"q": JOIN})
    assert main(["stats", "--pipeline", str(tmp_path)]) == 0
    assert "no batch was sampled yet" in capfd.readouterr().out
    _come(pipe, 1, FIRST + 1)
    _run(pipe, FIRST + 1)
    assert main(["stats", "--json", "--pipeline", str(tmp_path)]) == 0
    said = json.loads(capfd.readouterr().out)
    views = {
        "rows": 240,
        "rate": pytest.approx(6.0),
        "rows_a_batch": pytest.approx(60.0),
        "late": 0.0,
        "from": "2026-01-01T00:00:30Z",
        "age": 1
    }
    assert said["streams"]["views"] == views
    (join,) = said["queries"]["q"]["joins"]
    assert join["on"] == "v.k = b.k" and join["overlap"] == 1 and join["heaviest"] == pytest.approx(
        1 / 3) and join["selectivity"] == pytest.approx(1 / 3)
    assert main(["stats", "--pipeline", str(tmp_path)]) == 0
    assert "v.k = b.k" in capfd.readouterr().out
