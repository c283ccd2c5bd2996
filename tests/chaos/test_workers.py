"""Workers that have only a store in common: more of them have less to do each, and answers are the same."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.workers import measured, metered, table

pytestmark = [pytest.mark.spark, pytest.mark.s3, pytest.mark.long, pytest.mark.timeout(900)]


def test_more_workers_have_less_to_do_each(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    with metered(tmp_path_factory) as meter:
        loads = {workers: measured(tmp_path / str(workers), meter, workers, 500, 2) for workers in (1, 2)}
    print(table(loads))
    for kind, one in loads[1].items():
        two = loads[2][kind]
        assert (one.tasks, two.tasks) == (1, 2) and one.megabytes > 0
        assert one.rows_handed_over <= two.rows_handed_over
