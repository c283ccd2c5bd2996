"""What the ledger says of batches, as values; how they are written is known to jobs.ledger.codec alone."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from optimizer.choice.decide import Tried
from optimizer.plan.model import Plan
from optimizer.sharing.price import SharingPast

Phase = Literal["intent", "commit"]
# `top tried EAP1 running`: under this a batch notes the seconds of a plan that it tried for the query top.
TRIED = "tried"


@dataclass(frozen=True)
class KeptState:
    """How far a query's state has come.

    `KeptState(plan, epoch=60, as_of=120, relation_versions={"pages": 3}, batch=7)`: built at boundary 60 under `plan`,
    brought to boundary 120 by batch 7. The state's tables must name the same batch, else they are damaged.
    """

    plan: Plan
    epoch: int
    as_of: int
    relation_versions: Mapping[str, int] = field(default_factory=dict)
    batch: int = -1


@dataclass(frozen=True)
class QueryGroupPrices:
    """What the queries of a group cost a boundary, together and apart; None where it is not known.

    `QueryGroupPrices(together_s=0.4, apart_s=1.9)` is a group that saves 1.5 s. What its last batches counted is
    remembered while its queries run apart.
    """

    together_s: float | None = None
    apart_s: float | None = None
    rule_s: float | None = None                 # together, by the rule that needs no counts
    counted_times_rule: float | None = None     # what was counted, in seconds, over `rule_s`
    forms: float | None = None
    parts: int | None = None
    together_off: float | None = None           # by how many times batches were dearer than priced: in `together_s`
    apart_off: float | None = None              # the same of `apart_s`
    paper_together: float | None = None         # tuples by paper E's equation (2)
    paper_apart: float | None = None
    seconds_by_way: Mapping[str, float] = field(default_factory=dict)      # of each way to do the group's work

    @property
    def says_nothing(self) -> bool:
        return self == QueryGroupPrices()

    def counts(self) -> QueryGroupPrices:
        """Only what was counted, which holds for as long as the group's queries and rows are alike."""
        return replace(self, together_s=None, apart_s=None, rule_s=None, forms=None, parts=None, together_off=None,
                       apart_off=None)

    def updated(self, later: QueryGroupPrices) -> QueryGroupPrices:
        """These, with what `later` says in the place of what they say."""
        names = [price.name for price in fields(self) if price.name != "seconds_by_way"]
        news = {name: value for name in names if (value := getattr(later, name)) is not None}
        return replace(self, **news, seconds_by_way={**self.seconds_by_way, **later.seconds_by_way})


@dataclass(frozen=True)
class PricedPlan:
    """A plan that was considered, by name, with its predicted seconds a boundary.

    `PricedPlan("LAP recompute", 0.8)` is known by no more than that.
    """

    name: str
    seconds: float
    state_rows: float | None = None
    paper: float | None = None


@dataclass(frozen=True)
class PlanDecision:
    """A plan that was decided for a query outside of batches, and why.

    `PlanDecision(2, plan, "the cheapest")` is for the query as it was created, or resumed, for the second time: for a
    third one it is no decision. `group` is the query group with which it shares its work, by the group's plan; None: it
    answers alone.
    """

    creation: int
    plan: Plan
    reason: str
    seconds: float | None = None                # predicted for a boundary
    candidates: tuple[PricedPlan, ...] = ()
    rows_seen: float = 0.0                      # behind the statistics that priced them
    group: str | None = None
    group_prices: QueryGroupPrices = QueryGroupPrices()
    tried: Plan | None = None                   # runs beside `plan` until it is measured


@dataclass(frozen=True)
class TriedPlan:
    """A plan that runs beside a query's plan in force, so that it is measured; None: its state is still to be made.

    `TriedPlan(Tried(plan, (0.2,), (0.5,)), state)` was measured at one boundary, and what it keeps is as `state` says.
    """

    tried: Tried
    state: KeptState | None = None


@dataclass(frozen=True)
class TimeSpent:
    """Seconds of a pipeline's batches so far: `TimeSpent(120.0, 1.8)` spent 1.8 of them on trying plans."""

    seconds: float = 0.0
    trying: float = 0.0


@dataclass(frozen=True)
class Batch:
    """A batch as its intent fixes it, before anything is computed: enough to run it again and get the same rows.

    `Batch(7, (120,), plans={"top": plan}, relation_versions={"pages": 3}, states={}, state_versions={})` answers the
    query `top` at boundary 120 under `plan`, and builds its state from nothing.
    """

    number: int
    boundaries: tuple[int, ...]
    plans: Mapping[str, Plan]                       # by query; a member of a query group has the group's
    relation_versions: Mapping[str, int]
    states: Mapping[str, KeptState]                 # by query, as they are before the batch
    state_versions: Mapping[str, int]               # of the state tables that it reads, by path
    query_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)      # members, by the group's name
    query_group_prices: Mapping[str, QueryGroupPrices] = field(default_factory=dict)      # also of some not formed
    parts: int = 0                                  # tasks that share one query's work; 0: as many as run at once
    tried: Mapping[str, TriedPlan] = field(default_factory=dict)      # by query, as they are before the batch
    sharing_past: SharingPast = SharingPast()       # with this batch, once it is committed
    # spans of boundaries, first and last, that never run, so far: all are silent, and repeat the answers before them
    passed_over: tuple[tuple[int, int], ...] = ()

    def passed_over_before(self, batch: int) -> int:
        """How many boundaries were passed over just before this batch; `batch` is the length of one."""
        first, last = self.passed_over[-1] if self.passed_over else (0, 0)
        return (last - first) // batch + 1 if last == self.boundaries[0] - batch else 0

    def group_of(self, query: str) -> str | None:
        """The group with which the query shares its work."""
        return next((group for group, names in self.query_groups.items() if query in names), None)


@dataclass(frozen=True)
class LedgerEntry:
    """The newest entry: a batch that was begun, with the states before it, or committed, with the states after it.

    `LedgerEntry("commit", batch, {"top": state}, {"streams/views": 12})` rests on version 12 of the stream's table:
    where it has no such version, commits of it are gone. `tried` are the plans tried beside others, as `states` are.
    """

    phase: Phase
    batch: Batch
    states: Mapping[str, KeptState]
    table_versions: Mapping[str, int] = field(default_factory=dict)
    tried: Mapping[str, TriedPlan] = field(default_factory=dict)
    time_spent: TimeSpent = TimeSpent()

    @property
    def is_open(self) -> bool:
        """Whether the batch was begun and not committed, so that it has to be run again."""
        return self.phase == "intent"

    @property
    def last_boundary(self) -> int:
        return self.batch.boundaries[-1]


@dataclass(frozen=True)
class Runner:
    """Who ran a batch: `Runner("node1:4711", "scheduled", "run 2025-01-01")`; of a command `Runner("node1:4712")`."""

    process: str
    trigger: str = "cli"
    dag_run: str = ""


@dataclass(frozen=True)
class CommittedBatch:
    """A committed batch as its row tells it: what it ran and how long that took.

    `CommittedBatch(7, now, 120, 1, {"top": "EAP1 running"}, 0.4, {"top": 0.3}, Runner("node1:4711"))` ran one boundary.
    """

    number: int
    committed_at: int
    first_boundary: int
    boundary_count: int
    plan_names: Mapping[str, str]           # by query
    seconds: float
    task_seconds: Mapping[str, float]       # by query; of plans that were tried by `QUERY tried PLAN`
    runner: Runner

    def tried(self, query: str) -> tuple[str, float] | None:
        """The plan that ran beside the query's own, by name, and the seconds that it took."""
        begin = f"{query} {TRIED} "
        return next(((name.removeprefix(begin), seconds) for name, seconds in self.task_seconds.items()
                     if name.startswith(begin)), None)
