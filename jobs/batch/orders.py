"""From a batch's works to orders: the program of each, with the files that its sources name.

Tables are looked up, no row is read.
"""
from __future__ import annotations

from dataclasses import replace

from jobs.batch import quiet
from jobs.batch.works import Context, QueryWork, state_folder
from jobs.engine import jvm
from jobs.engine.reach import Split, dealt, files_meeting, split
from jobs.engine.work import TaskOrder
from jobs.ledger.entries import Batch
from jobs.storage import places
from optimizer.plan.division import boundary_runs
from optimizer.plan.lowering import Lowering
from optimizer.plan.operators.operator import Run
from optimizer.plan.program import Source
from optimizer.plan.tree import program, program_of_run, state_columns
from optimizer.query.shape import shape

SMALLEST = 0.1         # weight of a boundary whose windows are empty: its statements, in full windows


def task_orders(context: Context, batch: Batch, work: QueryWork) -> list[TaskOrder]:
    """One for each task; what is the same for all is looked up once."""
    low = Lowering(shape(work.query), work.plan, parts=work.parts, complete=complete(context, work),
                   together=work.together, coded=work.coded)
    todo = points(context, work)
    runs = boundary_runs(_weights(context, work, todo), work.runs)
    if len(runs) > 1:
        return [replace(_order(context, batch, work, low, Run(boundaries, work.previous, share=share)), part=number,
                        parts=len(runs)) for number, (boundaries, share) in enumerate(runs)]
    run = run_of(context, work, todo)
    return [_order(context, batch, work, replace(low, part=part), run) for part in range(work.parts)]


def _order(context: Context, batch: Batch, work: QueryWork, low: Lowering, run: Run) -> TaskOrder:
    narrow, wide = (program_of_run(replace(low, narrow=is_narrow), run) for is_narrow in (True, False))
    sources = [source for source in narrow.sources if source.kind != "exchange"]
    sources += [fragment.source for fragment in narrow.before]
    splits = {source.name: located(context, batch, work, source, low.part) for source in sources}
    files = {name: to_read for name, (to_read, _) in splits.items()}
    certain = {name: unread_times for name, (_, unread_times) in splits.items()}
    return TaskOrder(work.label, low.part, work.parts, narrow, wide, files, _folders(context, work), f"b{batch.number}",
                     _rows_to(context, work), certain=certain)


def jvm_order(context: Context, batch: Batch, work: QueryWork) -> jvm.SparkOrder:
    floor = run_of(context, work, work.due).floor
    low = Lowering(shape(work.query), work.plan, "spark", narrow=False)
    statements = program(low, work.due, work.previous, floor)
    streams, files = {}, {}
    for source in statements.sources:
        if source.kind == "stream":
            table = context.table(f"streams/{source.of}")
            streams[source.name] = table.path, table.version
        else:
            files[source.name] = located(context, batch, work, source, 0)[0]
    return jvm.SparkOrder(work.label, statements, streams, files, _folders(context, work), f"b{batch.number}",
                          _rows_to(context, work).get(0))


def located(context: Context, batch: Batch, work: QueryWork, source: Source, part: int) -> Split:
    """The files behind a source, by the tables' statistics, and those whose times need not be read.

    A dealt source gives each task its share.
    """
    if source.kind == "relation":
        file = context.relation_file(source.of, batch.relation_versions[source.of])
        return (places.join(context.warehouse, "relations", source.of, file.path),), ()
    if source.kind == "state":
        path = state_folder(work, source.of)
        table = context.table(path).at(batch.state_versions[path])
        files = list(table.files())
    else:
        path = f"streams/{source.of}"
        stamp = next(i.event_time for i in work.query.inputs if i.source == source.of) or ""
        files = files_meeting(context.table(path).files(), stamp, source)
    files_of_part = dealt(files, work.parts)[part] if source.dealt else files
    return split(files_of_part, source, lambda file: places.join(context.warehouse, path, file.path))


def points(context: Context, work: QueryWork) -> tuple[int, ...]:
    """The boundaries that are computed; the others repeat one of them."""
    if len(work.due) <= 2:
        return work.due
    streams = {i.source for i in work.query.inputs if i.is_stream}
    files = {stream: context.table(f"streams/{stream}").files() for stream in streams}
    return quiet.points(work.query, work.due, files)


def _weights(context: Context, work: QueryWork, boundaries: tuple[int, ...]) -> dict[int, float]:
    """What each boundary's windows hold, as a share of full ones: at the beginning of history they fill up."""
    weights = dict.fromkeys(boundaries, SMALLEST)
    for i in work.query.inputs:
        if i.window is None or not i.window.range:
            continue
        files = context.table(f"streams/{i.source}").files()
        earliest = min((file.low.get(i.event_time or "", 0) for file in files), default=0)
        for t in boundaries:
            weights[t] += min(max(t - earliest, 0) / i.window.range, 1.0)
    return weights


def _folders(context: Context, work: QueryWork) -> dict[str, str]:
    names = state_columns(Lowering(shape(work.query), work.plan))
    return {name: places.join(context.warehouse, state_folder(work, name)) for name in names}


def _rows_to(context: Context, work: QueryWork) -> dict[int, str]:
    return {0: places.join(context.warehouse, work.query_state.address)} if work.query.returns_rows else {}


def run_of(context: Context, work: QueryWork, boundaries: tuple[int, ...]) -> Run:
    """These boundaries, by a task that computes them all."""
    return Run(boundaries, work.previous, _floor(context, work) if work.query.returns_rows else 0)


def _floor(context: Context, work: QueryWork) -> int:
    """No row that comes with this batch has an earlier event time."""
    times = []
    for i in work.query.inputs:
        if i.event_time:
            files = context.table(f"streams/{i.source}").files()
            times += [file.low.get(i.event_time, 0) for file in files
                      if file.high.get("_boundary", work.due[-1]) > work.previous]
    return min(times, default=0)


def complete(context: Context, work: QueryWork) -> frozenset[tuple[int, str]]:
    """Columns without NULL in all rows that there are, so in all that any set holds."""
    return frozenset((i, name) for i, x in enumerate(work.query.inputs) if x.is_stream
                     for name in context.table(f"streams/{x.source}").complete())
