"""Where work runs: Spark tasks of one session, or this process.

Either way a function over items, results in order. One call is one Spark job. A command by hand may leave it to the
size of its work: what takes less than Spark takes to start is done in this process.
"""
from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from jobs.engine import kernel, memory, spark
from jobs.storage import places
from optimizer.errors import ForebayError

HERE, SPARK = "here", "Spark"
LARGE = 16 << 20         # bytes of a result from which it is handed over by a file
# Seconds until a session of its own has done a first job, on two cores: JVM, session, Python workers (docs/install.md).
START = 7.0
BESIDE = "local[*]"      # where a pipeline without Spark has Spark itself asked, by --engine jvm

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass
class Tasks:
    """`master` as forebay.yml says it; the session starts with the first job, so that what needs none never pays for
    it. `lasting` as for spark.session; `handover` is a folder that tasks and driver both reach, for results too large
    for the JVM to pass on. With `tell` the place is left to the size of the work (`suit`), and told."""

    master: str = "local[*]"
    settings: dict[str, str] = field(default_factory=dict)
    lasting: str = ""
    handover: str = ""
    tell: Callable[[str], None] | None = None
    _session: Any = None
    _place: str | None = None      # here or Spark, as it was told
    _width: int | None = None
    jobs: int = 0

    @property
    def inline(self) -> bool:
        return self.master == "inline" or self._place == HERE and self._session is None

    @property
    def is_open(self) -> bool:
        """Whether the place of work is left to its size, and Spark has not started."""
        return self.tell is not None and self.master != "inline" and self._session is None

    def suit(self, seconds: float) -> None:
        """Chooses the place of work that takes one process so long, if that is left to its size: once Spark has started
        it stays.
        """
        if self.tell is None or not self.is_open:
            return
        place = HERE if seconds < START else SPARK
        if place == self._place:
            return
        self._place = place
        if place == HERE:
            self.tell(f"computed in this process: about {seconds:.2g} s of work, and Spark takes {START:g} s to start "
                      "(`spark: {when: always}` in forebay.yml to have it nonetheless)")
            return
        server = spark.warm_server() if self.master == BESIDE else None
        self.master = self.master if server is None else server
        where = "a session of its own" if server is None else f"the server of `make up`, {server}"
        self.tell(f"computed by Spark, {where}: about {seconds:.2g} s of work for one process")

    @property
    def session(self) -> Any:
        if self._session is None:
            with spark.guarded():
                self._session = spark.session(BESIDE if self.inline else self.master, self.settings, self.lasting)
        return self._session

    @property
    def width(self) -> int:
        """How many tasks run at once. Connect has no handle that tells; its clients say it in the settings."""
        if self.inline:
            return 1
        if self._width is None:
            with spark.guarded():
                self._width = int(self.settings.get("forebay.tasks") or spark.default_parallelism(self.session))
        return self._width

    @property
    def expected(self) -> int:
        """The same without a session, for what only prices."""
        if self._session is not None or self.inline:
            return self.width
        settings = {"spark.master": self.master, **self.settings}
        by_settings = self.settings.get("forebay.tasks")
        return int(by_settings or spark.at_once(lambda key, otherwise: str(settings.get(key, otherwise))))

    @property
    def memory(self) -> str:
        """What the engine of one task may take."""
        return memory.of_task(self.master, self.settings, self.width)

    def start(self) -> None:
        """Starts the session now, so that nobody takes its start for work."""
        if not self.inline:
            self._width = self.width

    def map(self, function: Callable[[Item], Result], items: Iterable[Item], width: int | None = None) -> list[Result]:
        """function(item) for each, divided over at most `width` tasks by position."""
        todo = list(items)
        if not todo:
            return []
        self.jobs += 1
        if self.inline:
            return [function(item) for item in todo]
        count = min(len(todo), width or max(self.width, 1))
        return _sorted(spark.run_tasks(self.session, _Share(function, todo, count, self.memory, self.handover), count))

    def exchange(self, send: Callable[[Item], list[tuple[int, bytes]]], items: Sequence[Item],
                 receive: Callable[[int, list[bytes]], Result], count: int) -> list[Result]:
        """receive(k, what the items sent to k) for k < count, in order.

        One Spark job with its shuffle in the middle.
        """
        if not count:
            return []
        self.jobs += 1
        if self.inline:
            payloads: list[list[bytes]] = [[] for _ in range(count)]
            for item in items:
                for to, payload in send(item):
                    payloads[to].append(payload)
            return [receive(k, payloads[k]) for k in range(count)]
        senders = min(len(items), max(self.width, 1))
        sending = _Sent(send, items, senders, self.memory)
        receiving = _Received(receive, self.memory, self.handover)
        return _sorted(spark.run_exchange(self.session, sending, receiving, senders, count))

    def stop(self) -> None:
        if self._session is not None:
            spark.release(self._session)
            self._session = None


@dataclass(frozen=True)
class _Share:
    """Task i's items. Pickled into the job, so that nothing but its number is read from Spark."""

    function: Callable[[Any], Any]
    items: Sequence[Any]
    count: int
    memory: str
    handover: str = ""

    def __call__(self, i: int) -> Iterable[bytes]:
        kernel.give(self.memory)
        numbers = range(i, len(self.items), self.count)
        return [_payload(k, _result_or_refusal(self.function, self.items[k]), self.handover) for k in numbers]


@dataclass(frozen=True)
class _Sent:
    """Task i's items on the sending side."""

    function: Callable[[Any], list[tuple[int, bytes]]]
    items: Sequence[Any]
    count: int
    memory: str

    def __call__(self, i: int) -> Iterable[tuple[int, bytes]]:
        kernel.give(self.memory)
        return [message for item in self.items[i::self.count] for message in self.function(item)]


@dataclass(frozen=True)
class _Received:
    """The receiving side's task."""

    function: Callable[[int, list[bytes]], Any]
    memory: str
    handover: str = ""

    def __call__(self, to: int, payloads: list[bytes]) -> Iterable[bytes]:
        kernel.give(self.memory)
        return [_payload(to, self.function(to, payloads), self.handover)]


@dataclass(frozen=True)
class _Elsewhere:
    """Where a result lies that is too large to be passed on by Spark: its driver would hold all of them in the JVM's
    memory at once.
    """

    path: str


def _payload(number: int, result: Any, handover: str) -> bytes:
    whole = pickle.dumps((number, result))
    if not handover or len(whole) <= LARGE:
        return whole
    name = f"{os.urandom(16).hex()}.result"
    with places.draft(handover) as here:
        with open(os.open(os.path.join(here, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(whole)
    return pickle.dumps((number, _Elsewhere(places.join(handover, name))))


def _opened(payload: bytes) -> tuple[int, Any]:
    number, result = pickle.loads(payload)
    if not isinstance(result, _Elsewhere):
        return number, result
    with places.opened(result.path) as file:
        number, result_there = pickle.load(file)
    places.delete(result.path)
    return number, result_there


def _result_or_refusal(function: Callable[[Any], Any], item: Any) -> Any:
    """The result, or the refusal as a value: Spark would hand over its text alone, among Java's."""
    try:
        return function(item)
    except ForebayError as error:
        return error


def _sorted(payloads: list[bytes]) -> list[Any]:
    """What our own tasks returned, in the order of the items; the first refusal is raised."""
    results = [result for _, result in sorted(map(_opened, payloads), key=lambda pair: pair[0])]
    for result in results:
        if isinstance(result, ForebayError):
            raise result
    return results
