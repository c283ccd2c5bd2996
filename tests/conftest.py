"""What all tests share: speeds, random seeds, golden files, one Spark session.

A test that cannot run fails and says what to install, it is never skipped.
"""
from __future__ import annotations

import gc
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests import seeds

SLOWER = ("spark", "slow", "kafka", "s3", "chaos", "long", "browser")
WHOLLY_SLOWER = re.compile(rf"^pytestmark = .*pytest\.mark\.({'|'.join(SLOWER)})\b", re.MULTILINE)
SHARE = Path(__file__).resolve().parent.parent / ".venv" / "share" / "forebay"
COMMON: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]
}

# prices are the same on every machine; tests of calibration name a file
os.environ.setdefault("FOREBAY_CALIBRATION", "none")

# The same cases each time, as `make check` is no lottery, and as drawn: shrinking one can take minutes, and `make test`
# does it.
settings.register_profile("fast", max_examples=10, derandomize=True, database=None,
                          phases=[Phase.explicit, Phase.generate], **COMMON)
settings.register_profile("full", max_examples=25, derandomize=False, **COMMON)
FULL = os.environ.get("FOREBAY_TESTS") == "full"
settings.load_profile("full" if FULL else "fast")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--goldens", action="store_true", help="rewrite golden files instead of comparing with them")


def pytest_configure(config: pytest.Config) -> None:
    """A full run draws anew unless FOREBAY_SEED or Hypothesis's --hypothesis-seed says otherwise.

    Xdist's workers inherit the environment and so the seed.
    """
    if FULL:
        given = config.getoption("--hypothesis-seed", default=None)
        seed = os.environ.setdefault("FOREBAY_SEED", str(given or random.SystemRandom().randrange(2**32)))
        if given is None:
            config.option.hypothesis_seed = seed


def pytest_report_header(config: pytest.Config) -> str:
    if FULL:
        return f"forebay: full tests, seed {os.environ['FOREBAY_SEED']} (FOREBAY_SEED repeats it)"
    return "forebay: fast tests, cases are always the same"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m fast` does not import modules that call themselves slower as a whole: of a short run, what they import would
    be a good part.
    """
    known = config.getoption("markexpr") == "fast" and collection_path.name.startswith("test_")
    return True if known and WHOLLY_SLOWER.search(collection_path.read_text(encoding="utf-8")) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What carries no slower marker is fast, and runs first."""
    for item in items:
        if not {m.name for m in item.iter_markers()}.intersection(SLOWER):
            item.add_marker(pytest.mark.fast)
    items.sort(key=lambda item: item.get_closest_marker("fast") is None)


def pytest_collection_finish() -> None:
    """What is imported by now stays.

    The collector looks at it no more, and less often at the rest: a tenth of a short run.
    """
    gc.freeze()
    gc.set_threshold(20_000)


def pytest_unconfigure() -> None:
    gc.unfreeze()      # or the engine's binding says at the end that it leaks


@pytest.fixture(scope="session")
def seed() -> int:
    """For tests that draw without Hypothesis."""
    return seeds.seed()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One local session for all tests, with Delta; what it makes lies in a temporary folder."""
    from jobs.engine.spark import kept, session
    found = session("local[2]", {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark-warehouse"))})
    with kept():      # there is one session a process: what others get and end is this one
        yield found
    found.stop()


@pytest.fixture(scope="session")
def kafka_jars() -> list[Path]:
    """The class path of a broker."""
    jars = sorted((SHARE / "kafka").glob("*.jar"))
    assert jars, "the broker's jars are not there: make install-kafka-broker"
    return jars


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """golden(path, text) compares with the file, or rewrites it under --goldens."""
    rewrite = request.config.getoption("--goldens")

    def compare(path: Path, text: str) -> None:
        if rewrite:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is not there: make goldens writes it, read it before you commit it"
        assert path.read_text(encoding="utf-8") == text, f"{path} differs; if the change is meant: make goldens"

    return compare
