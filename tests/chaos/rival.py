"""A runner without the lock, as one on another machine would be: `python -m tests.chaos.rival FOLDER TO [careless]`.

It prints how often it lost.
"""
from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any

from jobs import run as runner
from jobs.ledger.ledger import Ledger
from jobs.requests import boundaries
from jobs.storage.tables import Conflict, Table
from tests.jobs.pipelines import opened


def careless() -> None:
    """What a runner does that takes no notice of others: each commit goes on top of whatever is there."""
    honest = Table.commit

    def commit(self: Table, *args: Any, **options: Any) -> int:
        while True:
            try:
                return honest(self, *args, **options)
            except Conflict:
                self.refresh()

    Table.commit = commit
    Ledger.build_on = lambda self, entry: None


def compete(folder: str, to: int) -> int:
    """Runs boundary after boundary.

    After a lost one it begins again, as the next scheduled run would. The number of lost ones.
    """
    runner.held = lambda *_, **__: nullcontext()
    boundaries.GROUP_BOUNDARIES = 1
    lost, pipe = 0, opened(folder)
    while True:
        try:
            pipe.run(to=to)
            return lost
        except Conflict:
            lost += 1


if __name__ == "__main__":
    if sys.argv[3:] == ["careless"]:
        careless()
    print(compete(sys.argv[1], int(sys.argv[2])))
