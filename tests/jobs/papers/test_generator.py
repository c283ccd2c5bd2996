"""The data generator gives what its settings say, the same for one seed, and refuses settings that cannot be."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.papers.generator import SECOND, Drift, GeneratedStream, generated, merged, windowed
from jobs.papers.generator_files import START, written
from optimizer.errors import ForebayError

pytestmark = pytest.mark.slow       # importing the compiler takes longer than the tests


@given(st.integers(1, 400), st.integers(1, 5), st.integers(1, 9), st.integers(1, 3), st.sampled_from((0.0, 1.2)),
       st.sampled_from(("regular", "random")))
def test_a_stream_is_as_its_setting_says(rate: int, seconds: int, distinct: int, attributes: int, skew: float,
                                         arriving: str) -> None:
    made = generated(GeneratedStream(rate, 1, distinct, skew, attributes=attributes, largest=7, arriving=arriving),
                     seconds, seed=3)
    assert len(made) == rate * seconds and made.values.shape == (attributes, len(made))
    assert (np.diff(made.time) >= 0).all() and 0 <= made.time[0] and made.time[-1] < seconds * SECOND
    assert 0 <= made.key.min() and made.key.max() < distinct and 0 <= made.values.min() and made.values.max() < 7


def test_one_seed_gives_one_stream() -> None:
    one, two, other = (generated(GeneratedStream(500, 20, 10, 1.1, 0.3, disorder=0.5), 2, seed) for seed in (1, 1, 2))
    assert all((getattr(one, c) == getattr(two, c)).all() for c in ("time", "key", "group", "values"))
    assert (one.key != other.key).any()


def test_zipf_shares() -> None:
    """Value k has a share that goes with (k + 1)^−s; four deviations of a count of so many."""
    shares = np.bincount(generated(GeneratedStream(100_000, distinct=50, skew=1.0), 2).key, minlength=50) / 200_000
    expected = (1 / np.arange(1, 51)) / (1 / np.arange(1, 51)).sum()
    assert (abs(shares - expected) < 4 * np.sqrt(expected / 200_000)).all()


def test_correlation_and_disorder() -> None:
    follows = generated(GeneratedStream(1000, 10, 100, correlation=1.0), 1)
    assert (follows.group == follows.key % 10).all()
    late = generated(GeneratedStream(1000, disorder=0.25, arriving="regular"), 4)
    behind = np.maximum.accumulate(late.time) - late.time
    assert 0 < behind.max() <= 0.25 * SECOND and sorted(late.time) == list(range(0, 4 * SECOND, 1000))
    assert (np.diff(merged([late]).time) >= 0).all()


def test_drift_changes_the_nature_at_its_point() -> None:
    made = generated(GeneratedStream(100, distinct=2), 10, drifts=[Drift(4, GeneratedStream(1000, distinct=50))])
    before = made.time < 4 * SECOND
    assert before.sum() == 400 and (
        ~before).sum() == 6000 and made.key[before].max() == 1 and made.key[~before].max() == 49


def test_merged_streams_are_in_order_of_time() -> None:
    both = merged([generated(GeneratedStream(100, 5), 3, 1), generated(GeneratedStream(300, 7), 3, 2)])
    assert len(both) == 1200 and (np.bincount(both.stream) == (300, 900)).all()
    assert windowed(GeneratedStream(300), 5000) == 16_666_667


@pytest.mark.parametrize(
    ("wrong", "said"),
    [(lambda: GeneratedStream(0), "rate is 0.*tuples a second"),
     (lambda: GeneratedStream(5, distinct=0), "distinct is 0"),
     (lambda: GeneratedStream(5, correlation=2), "correlation is 2"),
     (lambda: GeneratedStream(5, arriving="late"), "regular or random"),
     (lambda: generated(GeneratedStream(5, groups=50), 2), "50 groups of 10 tuples"),
     (lambda: generated(GeneratedStream(5), 0), "0 seconds"),
     (lambda: windowed(GeneratedStream(5), 0), "window of 0 tuples"),
     (lambda: generated(GeneratedStream(5), 9, drifts=[Drift(9, GeneratedStream(5))]), "drift points at 9 s of 9 s"),
     (lambda: generated(GeneratedStream(0.1), 2), "are no tuple"),
     (lambda: generated(GeneratedStream(9), 9, drifts=[Drift(2, GeneratedStream(9, attributes=2))]), "attributes")])
def test_impossible_settings_are_refused_by_name(wrong: object, said: str) -> None:
    with pytest.raises(ForebayError, match=said):
        wrong()  # type: ignore[operator]


def test_files_hold_the_stream_in_pieces(tmp_path: Path) -> None:
    """Rows, order of time across files, strings for groups and join values, integers for the attributes.

    The drift at its point.
    """
    files = list(
        written(GeneratedStream(1000, 5, 7, attributes=2), 6, str(tmp_path), 1,
                [Drift(4, GeneratedStream(500, 5, 70, attributes=2))], rows=1500))
    rows = pa.concat_tables(pq.read_table(tmp_path / f.path) for f in files)
    assert len(files) == 4 and sum(f.rows for f in files) == rows.num_rows == 5000
    assert rows.schema.names == [
        "ts", "g", "j", "a1", "a2"
    ] and rows.schema.field("j").type == pa.string() and rows.schema.field("a2").type == pa.int64()
    times = rows["ts"].cast(pa.int64()).to_numpy() - START
    assert (np.diff(times) >= 0).all() and (times[4000:] >= 4 * SECOND).all() and times[3999] < 4 * SECOND
    assert len(set(rows["j"].to_pylist()[:4000])) == 7 < len(set(rows["j"].to_pylist()[4000:]))
    with pytest.raises(ForebayError, match="drift points at 9 s of 6 s"):
        list(written(GeneratedStream(9), 6, str(tmp_path), drifts=[Drift(9, GeneratedStream(9))]))
