"""Answers with many groups: their partials are merged and written by tasks, each a share of the groups; the driver
learns of files, counts and sums, and holds no row.

Which answers these are their own tasks say, by the bytes that they would have to hand over (jobs.engine.partials). The
rows are the same either way, so a batch that is repeated may be merged in another way than it was.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jobs.batch.figures import Figures, Told, figures, together
from jobs.batch.works import Context
from jobs.engine import kernel, memory
from jobs.engine.partials import DividedPartials, Handover, delete, divided, read, shares
from jobs.engine.sums import Sums, added
from jobs.engine.work import TaskResult, write_file
from jobs.ledger.open_pipeline import HANDOVER
from jobs.storage import places
from jobs.storage.tables import File
from optimizer.errors import first_line

SHARE = 64 << 20         # bytes of partials that a task merges at once; it needs a few times as much
Number = tuple[str, int]      # a query, or a family of them, and which of the answers of its tasks


@dataclass(frozen=True)
class WrittenRows:
    """Published rows in files: of one query, or of the members of a template that share a work.

    `template` is its number among the templates of a query group, 0 for a query alone.
    """

    template: int
    files: tuple[File, ...]
    figures: Figures


@dataclass(frozen=True)
class Merged:
    """What a task says of a share of an answer: the rows that it wrote, or why it could not.

    `groups` are those at the last boundary, before HAVING. `apart` names queries whose rows could not be made, though
    others' could. `handed_over`: what the partials summed to, where they came from no other task.
    """

    of: Number
    rows: tuple[WrittenRows, ...] = ()
    groups: int = 0
    failed: str | None = None
    exhausted: str | None = None
    apart: frozenset[str] = frozenset()
    handed_over: Sums = field(default_factory=dict)


@dataclass(frozen=True)
class Merge:
    """How partials become rows; each kind of answer has its own `write`.

    `folders` are where the tables are, by template, `label` begins the names of their files. `summed` are the columns
    of the partials of which sums are taken, the last of them the count of joined rows.
    """

    of: Number
    folders: tuple[str, ...]
    label: str
    due: tuple[int, ...]
    repeats: tuple[tuple[int, int], ...]
    summed: tuple[str, ...]

    def write(self, con: kernel.Connection) -> Merged:
        """From the relation `computed`, which holds all partials of some groups."""
        raise NotImplementedError

    def without(self, queries: frozenset[str]) -> Merge:
        """The same, these queries left out."""
        raise NotImplementedError

    def written(self, con: kernel.Connection, template: int, sql: str, told: Told) -> tuple[WrittenRows, ...]:
        rows, folder = [], self.folders[template]
        for file in write_file(con, sql, folder, self.label):
            rows.append(WrittenRows(template, (file,), figures(con, places.join(folder, file.path), told)))
        return tuple(rows)

    def __call__(self, file: DividedPartials) -> tuple[Merged, ...]:
        """In the task that made them, where it has whole groups."""
        parts = [merge(ShareOrder(self, (file,), buckets)) for buckets in shares([file], 1, SHARE)]
        return (replace(parts[0], handed_over=file.sums), *parts[1:])


@dataclass(frozen=True)
class ShareOrder:
    """A share of an answer for one task: these buckets of all files."""

    how: Merge
    files: tuple[DividedPartials, ...]
    buckets: range


@dataclass(frozen=True)
class LargeAnswer:
    """An answer of which no row came to the driver: its rows in files, and what tells of them.

    `handed_over` is what its partials sum to, of the columns `summed`.
    """

    rows: tuple[WrittenRows, ...]
    handed_over: Sums
    summed: tuple[str, ...]
    groups: int
    failed: str | None = None
    exhausted: str | None = None
    apart: frozenset[str] = frozenset()

    @property
    def files(self) -> tuple[File, ...]:
        return tuple(file for rows in self.rows for file in rows.files)

    @property
    def figures(self) -> Figures:
        return together(rows.figures for rows in self.rows)

    def of_template(self, number: int) -> LargeAnswer:
        return replace(self, rows=tuple(rows for rows in self.rows if rows.template == number))


def merge(order: ShareOrder) -> Merged:
    """In a task: its share of the rows, written."""
    con = kernel.shared()
    try:
        con.register("computed", read(order.files, order.buckets))
        return order.how.write(con)
    except kernel.EXHAUSTED as error:
        return Merged(order.how.of, exhausted=first_line(error))
    except kernel.Error as error:
        if not kernel.about_data(error):
            kernel.discard()
            raise
        return Merged(order.how.of, failed=first_line(error))
    finally:
        con.close()


def handover(context: Context, answer_count: int) -> Handover:
    """Where tasks leave what is too much for the driver, and how many bytes that is of each of so many answers."""
    most = memory.partials_of_driver(context.tasks.settings)
    each = max(most // max(answer_count, 1), memory.LEAST_PARTIALS) if most else 0
    return Handover(context.tasks.handover or places.join(context.warehouse, HANDOVER), each, {})


def merged(context: Context, parts: int, places_of: Mapping[str, Handover], hows: Iterable[Merge],
           results: Mapping[str, Sequence[TaskResult]]) -> dict[Number, LargeAnswer]:
    """The answers that some task found too large to hand over; what the tasks have left is gone afterwards.

    One Spark job; one more where queries that share have to be left out, and are.
    """
    todo = {how.of: how for how in hows if _is_large(how.of, results[how.of[0]])}
    files: dict[Number, tuple[DividedPartials, ...]] = {}
    answers: dict[Number, LargeAnswer] = {}
    try:
        for number in todo:
            files[number] = _files(places_of[number[0]], number[1], results[number[0]])
        while todo:
            computed = _in_one_job(context, parts, todo, files)
            again = {number: how for number, how in todo.items() if computed[number].apart}
            for number, how in todo.items():
                answers[number] = _with_earlier(computed[number], answers.get(number), results[number[0]])
                if number in again or answers[number].failed or answers[number].exhausted:
                    discard(how, answers[number])
            todo = {number: how.without(computed[number].apart) for number, how in again.items()}
        return answers
    finally:
        delete(file for of_answer in files.values() for file in of_answer)
        abandon(result for of_query in results.values() for result in of_query)


def abandon(results: Iterable[TaskResult]) -> None:
    """What tasks have left in files goes."""
    for result in results:
        delete(file for files in result.divided.values() for file in files)


def discard(how: Merge, answer: LargeAnswer) -> None:
    """Files of rows that nobody will publish."""
    for rows in answer.rows:
        for file in rows.files:
            places.delete(places.join(how.folders[rows.template], file.path))


def _is_large(number: Number, results: Iterable[TaskResult]) -> bool:
    """Of a query that failed in some task nothing is merged."""
    results = tuple(results)
    if any(result.failed or result.exhausted for result in results):
        return False
    return any(number[1] in result.divided or result.merged for result in results)


def _files(place: Handover, number: int, results: Iterable[TaskResult]) -> tuple[DividedPartials, ...]:
    """What tasks have left; of those that had few a file each as well."""
    files: list[DividedPartials] = []
    for result in results:
        rows = result.answer(number)
        files += result.divided.get(number, ())
        if rows is not None and rows.num_rows:
            files.append(divided(rows, place, number))
    return tuple(files)


def _in_one_job(context: Context, parts: int, hows: Mapping[Number, Merge],
                files: Mapping[Number, tuple[DividedPartials, ...]]) -> dict[Number, LargeAnswer]:
    width = parts or context.tasks.width
    orders = [ShareOrder(how, files[number], buckets) for number, how in hows.items() if files[number]
              for buckets in shares(files[number], width, SHARE)]
    merged_parts: dict[Number, list[Merged]] = {number: [] for number in hows}
    for order, part in zip(orders, context.tasks.map(merge, orders, parts or None)):
        merged_parts[order.how.of].append(part)
    return {number: _answer(hows[number].summed, of_answer, (file.sums for file in files[number]))
            for number, of_answer in merged_parts.items()}


def _answer(summed: tuple[str, ...], parts: Sequence[Merged], handed_over: Iterable[Sums]) -> LargeAnswer:
    return LargeAnswer(
        rows=tuple(rows for part in parts for rows in part.rows),
        handed_over=added([*handed_over, *(part.handed_over for part in parts)]),
        summed=summed,
        groups=sum(part.groups for part in parts),
        failed=next((part.failed for part in parts if part.failed), None),
        exhausted=next((part.exhausted for part in parts if part.exhausted), None),
        apart=frozenset[str]().union(*(part.apart for part in parts)),
    )


def _with_earlier(answer: LargeAnswer, before: LargeAnswer | None, results: Iterable[TaskResult]) -> LargeAnswer:
    """With what tasks of whole groups have merged themselves, and with those that were left out before."""
    if before is not None:
        return replace(answer, apart=answer.apart | before.apart)
    parts = [part for result in results for part in result.merged]
    if not parts:
        return answer
    there = _answer(answer.summed, parts, ())
    return replace(there, rows=(*answer.rows, *there.rows), handed_over=added([answer.handed_over, there.handed_over]),
                   groups=answer.groups + there.groups, failed=answer.failed or there.failed,
                   exhausted=answer.exhausted or there.exhausted)
