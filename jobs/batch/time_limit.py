"""How long a batch of several boundaries may take, and how many of them still fit when its time is up."""
from __future__ import annotations

from dataclasses import dataclass

# Shares of `latency`. A batch is priced for half of it (AIMED in optimizer/choice/backlog.py): one that takes half as
# long again is stopped, early enough to compute some of its boundaries once more; commits have the rest.
STOPPED, COMPUTED = 0.75, 0.9


@dataclass(frozen=True)
class TimeLimit:
    """`TimeLimit(began=1000.0, latency=10.0)`: tasks are stopped at 1007.5 (seconds since 1970), and what is computed
    once more in place of that is stopped at 1009.
    """

    began: float
    latency: float

    @property
    def stopped(self) -> float:
        return self.began + STOPPED * self.latency

    @property
    def computed(self) -> float:
        return self.began + COMPUTED * self.latency

    def boundaries_left(self, count: int, done: float, now: float) -> int:
        """Of `count` boundaries, of which this share was `done` by now, how many can be computed in what is left.

        At least one, which takes what it takes, and less than all: a task's clock may go ahead of this one.
        """
        passed = max(now - self.began, 1e-3)
        return max(min(int(count * done * (self.computed - now) / passed), count - 1), 1)
