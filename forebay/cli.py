"""The command line: every command calls one function and says its document.

Exit codes are 0 done, 1 failed, 2 refused, 3 held by another runner.
"""
from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import forebay
from forebay import formats, pictures, show, text
from forebay.outside import CommonOptions, Reply, perform, shared
from optimizer.errors import ForebayError

if TYPE_CHECKING:
    from forebay.pipeline import Pipeline

PLAIN: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}
app = typer.Typer(help="Exact answers of windowed join queries over streams, at every boundary.", **PLAIN)
query = typer.Typer(help="Create, delete, pause, resume, list or show queries; never waits for a running batch.",
                    **PLAIN)
app.add_typer(query, name="query")
Name = Annotated[str, typer.Argument(metavar="NAME", help="A query's name.")]
ADOPT = "Write the file of a query that came from none; may be repeated."
NEW_HISTORY = "Keep the answers so far in a table of their own, so that columns may change their types."


class Format(str, Enum):
    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"


class Model(str, Enum):
    measured = "measured"
    paper = "paper"


def main(arguments: Sequence[str] | None = None) -> int:
    return perform(app, sys.argv[1:] if arguments is None else arguments)


def entry(ctx: typer.Context,
          version: Annotated[bool, typer.Option("--version", help="Which forebay this is.")] = False) -> Reply | None:
    """Takes the options that stand before a command; `--version` stands in its place."""
    command = ctx.invoked_subcommand
    if version and command is None:
        return _version()
    if version or command is None:
        what = f"--version and {command} exclude each other" if version else "forebay needs a command"
        raise ForebayError("bad-usage", what, hint="`forebay --help` lists the commands")
    return None


def _version() -> Reply:
    from importlib.metadata import version

    number = version("forebay")
    return Reply({"version": number}, lambda out: print(f"forebay {number}", file=out))


def of_queries() -> None:
    """Takes the options that stand before a command on queries."""


def opened(call: CommonOptions) -> Pipeline:
    return forebay.open(call.folder, call.engine, lambda where: print(f"forebay: {where}", file=sys.stderr))


def _synchronised(call: CommonOptions, strict: bool = True) -> Pipeline:
    """The pipeline, with new files of queries/ taken in.

    Not strict: a bad file there must not keep a person from, say, pausing a query.
    """
    pipe = opened(call)
    try:
        for message in pipe.synchronise():
            print(f"forebay: {message}", file=sys.stderr)
    except ForebayError as error:
        if strict:
            raise
        print(f"forebay: {error}", file=sys.stderr)
    return pipe


def ingest(call: CommonOptions, stream: Annotated[str | None, typer.Argument(metavar="STREAM")] = None,
           files: Annotated[list[str] | None, typer.Argument(metavar="FILES")] = None) -> Reply:
    """Take new input in, once: from every source, or files into a stream."""
    if stream and not files:
        raise ForebayError("bad-usage", f"no files are given for {stream}",
                           hint=f"`forebay ingest {stream} FILES…`, or `forebay ingest` for every source")
    only = None if stream is None else {stream: list(files or ())}
    document = opened(call).loop.take(only)
    return Reply(document, text.ingested(document), 1 if document["refused"] else 0)


def run(
    call: CommonOptions, to: Annotated[str | None,
                                       typer.Option("--to", metavar="T", help="Stop at this boundary.")] = None,
    flush: Annotated[bool, typer.Option("--flush", help="Treat the input as ended.")] = False,
    batches: Annotated[int | None,
                       typer.Option("--batches", min=1, metavar="N", help="At most N boundaries.")] = None
) -> Reply:
    """Run every boundary that is complete. Exit code 1 if a query failed: the others' answers are published."""
    until = show.micros(to, "--to") if to is not None else None
    pipe = _synchronised(call)
    with text.progress(pipe.runtime.pipeline.name) as progress:
        document = show.run(pipe.run(until, flush, batches, progress.ran, progress.ahead))
    return Reply(document, text.ran(document), 1 if document["failed"] else 0)


def create(call: CommonOptions, name: Name,
           sql: Annotated[str | None, typer.Argument(metavar="SQL", help="The query; or -f FILE.")] = None,
           file: Annotated[
               str | None,
               typer.Option("-f", "--file", metavar="FILE", help="Read the query from a file (- is stdin).")] = None,
           replace: Annotated[bool, typer.Option("--replace", help="Replace a query of that name.")] = False,
           new_history: Annotated[bool, typer.Option("--new-history", help=NEW_HISTORY)] = False) -> Reply:
    """Create a query; it answers from the boundary that is printed on, from the history that is there."""
    if (sql is None) == (file is None):
        raise ForebayError("bad-usage", "a query is given either as text or with -f FILE",
                           hint=f"forebay query create {name} \"SELECT …\"")
    statement = sql if sql is not None else _read(file or "-")
    document = show.query(opened(call).create(name, statement, replace, new_history))
    _synchronised(call, strict=False)
    return Reply(document, text.query(document))


def _read(path: str) -> str:
    try:
        with open(0 if path == "-" else path, encoding="utf-8", closefd=path != "-") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ForebayError("bad-file", f"{path} cannot be read: {reason}",
                           hint="name a text file with one query") from None


def _changed(call: CommonOptions, name: str, action: str, plan: str | None = None) -> Reply:
    document = show.query(_synchronised(call, strict=False).change(name, action, plan))
    return Reply(document, text.query(document))


def delete(call: CommonOptions, name: Name) -> Reply:
    """No answer from the printed boundary on; what was published stays readable."""
    return _changed(call, name, "delete")


def pause(call: CommonOptions, name: Name) -> Reply:
    """No answer from the printed boundary on, until `resume`."""
    return _changed(call, name, "pause")


def resume(call: CommonOptions, name: Name) -> Reply:
    """Answer again, from the printed boundary on."""
    return _changed(call, name, "resume")


def list_(call: CommonOptions) -> Reply:
    """Every query, also paused, failed and deleted ones."""
    documents = [show.query(d) for d in _synchronised(call).queries()]
    return Reply({"queries": documents}, text.queries(documents))


def show_(call: CommonOptions, name: Name) -> Reply:
    """One query: state, table, columns, text."""
    document = show.query(_synchronised(call, strict=False).query(name))
    return Reply(document, text.query(document))


def plan(call: CommonOptions) -> Reply:
    """What has to change so that the files of queries/ are in force; changes nothing."""
    document = show.folder(opened(call).plan())
    return Reply(document, text.planned(document))


def apply(
    call: CommonOptions,
    adopt: Annotated[list[str] | None, typer.Option("--adopt", metavar="NAME", help=ADOPT)] = None,
    delete_others: Annotated[bool, typer.Option("--delete-others", help="End queries that came from no file.")] = False
) -> Reply:
    """Make the files of queries/ those in force, by one request, all at one boundary."""
    document = show.folder(opened(call).apply(adopt or (), delete_others))
    return Reply(document, text.applied(document))


def check(call: CommonOptions) -> Reply:
    """Whether forebay.yml, queries/ and expectations/ are right; runs nothing."""
    document = opened(call).check()
    return Reply(document, text.checked(document))


def result(
    call: CommonOptions,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A query's name; default: every query.")] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="T", help="The answer at this boundary.")] = None,
    every: Annotated[bool, typer.Option("--all", help="The answers at every boundary.")] = False,
    form: Annotated[Format, typer.Option("--format", help="How it is printed.")] = Format.table,
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="FILE", help="Write to a file.")] = None,
    plot: Annotated[str | None, typer.Option("--plot", metavar="FILE", help="Draw them by time, .png or .svg.")] = None
) -> Reply:
    """The answer at the last boundary, at one, or at every; without a name every query's last one."""
    if at is not None and every:
        raise ForebayError("bad-usage", "--at and --all exclude each other", hint="give one of them")
    pipe, instant = opened(call), show.micros(at, "--at") if at is not None else None
    if name is None:
        if at is not None or every or output is not None or plot is not None or form is not Format.table:
            raise ForebayError("bad-usage", "without a name there are no --at, --all, --format, --plot and -o",
                               hint="name the query: forebay result NAME …")
        return _last_answers(pipe)
    if plot is not None:
        return _plotted(pipe, name, plot)
    write = formats.writer(name, pipe.reader(name, instant, every), form.value, output)
    if output is not None:
        write(sys.stderr)
    return Reply({}, write if output is None else lambda _: None,
                 streamed=lambda out: formats.as_json(name, pipe.reader(name, instant, every), out))


def _plotted(pipe: Pipeline, name: str, path: str) -> Reply:
    from forebay import plot
    from jobs.results import series

    pictures.check(path)
    answer = series.plotted(*pipe.newest(name, series.BOUNDARIES))
    plot.picture(name, answer, path)
    return Reply({"query": name, "file": path, "omitted": answer.omitted},
                 lambda out: text.line(out, f"{name} is drawn in {path}"))


def _last_answers(pipe: Pipeline) -> Reply:
    """Of every query that is not deleted; one without an answer says why."""
    documents: list[dict[str, Any]] = []
    for name in sorted(query["query"] for query in pipe.queries() if query["state"] != "deleted"):
        try:
            answer = pipe.table(name)
            documents.append({"query": name, "columns": answer.schema.names, "rows": list(show.rows(answer))})
        except ForebayError as error:
            documents.append({"query": name, "columns": [], "rows": [], "problem": str(error)})
    return Reply({"queries": documents}, text.answers(documents))


def explain(
    call: CommonOptions,
    query: Annotated[str, typer.Argument(metavar="NAME|SQL", help="A query's name, or a text.")],
    statistics: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Price with these instead of what was measured (JSON).")] = None,
    cost_model: Annotated[
        Model | None,
        typer.Option("--cost-model", help="The model that chooses; default: the pipeline's.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every plan, not only the five cheapest.")] = False,
    sql: Annotated[bool, typer.Option("--sql", help="Also what a task runs at a boundary.")] = False
) -> Reply:
    """The plan that is chosen, why, and what others would take; as a tree, with --sql as SQL."""
    document = show.explained(
        opened(call).explain(query.strip(), statistics=formats.document(statistics) if statistics else None,
                             cost_model=cost_model.value if cost_model else None))
    return Reply(document, text.explained(document, every, sql))


def plans(call: CommonOptions, name: Name) -> Reply:
    """The pin, and the plan in force at each boundary."""
    document = show.plans(opened(call).plans(name))
    return Reply(document, text.plans(document))


def pin(call: CommonOptions, name: Name,
        plan: Annotated[list[str],
                        typer.Argument(metavar="PLAN", help="A plan's name, such as EAP10 expire.")]) -> Reply:
    """Force a plan; `explain` lists the names."""
    return _changed(call, name, "pin", " ".join(plan))


def unpin(call: CommonOptions, name: Name) -> Reply:
    """Let the plan be chosen again."""
    return _changed(call, name, "unpin")


def windows(
    spec: Annotated[str,
                    typer.Argument(metavar="SPEC", help="Such as 20,30,40 (tumbling) or 20/5,60/10 (hopping).")],
    function: Annotated[str, typer.Option("--function", metavar="F", help="The aggregate function.")] = "SUM",
    rate: Annotated[str, typer.Option("--rate", metavar="η", help="Events a unit of time.")] = "1",
    picture: Annotated[str | None,
                       typer.Option("--picture", metavar="FILE", help="Draw the graphs, as .svg or .png.")] = None
) -> Reply:
    """Many windows over one stream: what sharing and factor windows save."""
    from forebay import coverage
    from optimizer.coverage import spec as sets

    if picture is not None:
        pictures.check(picture)
    document = sets.described(sets.parse(spec), function, sets.rate(rate))
    if picture is not None:
        coverage.picture(document, picture)
    return Reply(document, coverage.described(document))


def stats(call: CommonOptions) -> Reply:
    """What is known of each stream and join."""
    document = show.stats(opened(call).stats())
    return Reply(document, text.stats(document))


def adapt(call: CommonOptions) -> Reply:
    """Take statistics, where due; decide plans and groups. Waits for no run."""
    document = show.adapted(opened(call).adapt())
    return Reply(document, text.adapted(document))


def status(call: CommonOptions) -> Reply:
    """Whether it runs, waits, is stopped or has failed; how far streams and answers are."""
    # Not `opened`: what other commands import takes a third of the time in which this one answers.
    from jobs.commands.status import status as status_of
    from jobs.ledger.open_pipeline import open_pipeline
    from jobs.pipeline.config import load

    document = show.status(status_of(open_pipeline(load(call.folder))))
    return Reply(document, text.status(document), 1 if document["state"] in ("stopped", "failed") else 0)


def track(call: CommonOptions) -> Reply:
    """Write what the ledger says into MLflow, once."""
    document = opened(call).track()
    return Reply(document, text.tracked(document))


def verify(call: CommonOptions, name: Annotated[str | None, typer.Argument(metavar="NAME")] = None) -> Reply:
    """Recompute answers by plain SQL over all rows, without plan or state; compare."""
    document = show.verified(opened(call).verify(name, "jvm" if call.engine == "jvm" else "duckdb"))
    differs = any(query["differences"] for query in document["queries"].values())
    return Reply(document, text.verified(document), 1 if differs else 0)


def test(call: CommonOptions, files: Annotated[list[str] | None, typer.Argument(metavar="FILES")] = None) -> Reply:
    """Run the pipeline's tests (tests/*.yml, or these files): rows in, answers compared, without Spark."""
    from jobs.commands.cases.running import tested
    from jobs.pipeline.config import load

    document = show.tested(tested(load(call.folder), list(files or ())))
    return Reply(document, text.tested(document), 0 if all(t["passed"] for t in document["tests"]) else 1)


def release(call: CommonOptions, boundary: Annotated[str, typer.Argument(metavar="T")],
            reason: Annotated[str, typer.Option("--reason", help="Why; the ledger keeps it.")],
            until: Annotated[str | None,
                             typer.Option("--until", metavar="T", help="Also the boundaries up to this one.")] = None,
            expectation: Annotated[str | None,
                                   typer.Option("--expectation", metavar="NAME", help="Only this one.")] = None
            ) -> Reply:
    """Let a boundary pass that a critical expectation stopped, or a range of them."""
    at, last = show.micros(boundary, "T"), show.micros(until, "--until") if until is not None else None
    document = show.released(opened(call).release(at, reason, last, expectation))
    return Reply(document, text.released(document))


def expectations(
    call: CommonOptions,
    docs: Annotated[bool, typer.Option("--docs", help="Make the data docs, pages to read without a network.")] = False
) -> Reply:
    """What is expected of streams and answers, and where it is held."""
    document = opened(call).expectations(docs)
    return Reply(document, text.expectations(document))


def doctor(
    call: CommonOptions, rebuild: Annotated[
        str | None,
        typer.Option("--rebuild", metavar="NAME",
                     help="Make a query's state and damaged answers anew from the stream tables.")] = None
) -> Reply:
    """Java, jars, versions, disk, locks, tables: what is well."""
    from jobs.commands.doctor import facts
    from jobs.commands.doctor_tables import tables
    from jobs.pipeline.config import FILE, load

    if rebuild is not None:
        repaired = opened(call).rebuild(rebuild)
        document = {
            "query": rebuild,
            "rebuilt": repaired.anything,
            "state": repaired.state,
            "tables": list(repaired.tables),
            "boundaries": repaired.boundaries
        }
        return Reply(document, lambda out: text.line(out, text.rebuilt(document)))
    here = os.path.exists(os.path.join(call.folder, FILE)) or call.folder != "."
    surroundings = facts(load(call.folder) if here else None, tables)
    document = {"facts": [{"name": f.name, "ok": f.ok, "value": f.value, "fix": f.fix} for f in surroundings]}
    return Reply(document, text.facts(surroundings), 0 if all(f.ok for f in surroundings) else 1)


def init(
    folder: Annotated[str, typer.Argument(metavar="DIR")],
    example: Annotated[str,
                       typer.Option("--example", metavar="NAME", help="shop, minimal or sensors.")] = "shop") -> Reply:
    """A new pipeline folder that runs."""
    from forebay.examples import copy

    document = copy(example, folder)
    return Reply(document, lambda out: text.line(out, document["message"]))


def demo(call: CommonOptions,
         folder: Annotated[str, typer.Argument(metavar="DIR", help="Made anew each time.")] = "demo") -> Reply:
    """Two streams, exact answers, a crash survived, verify."""
    from forebay.demo import play

    return Reply(play(folder, sys.stderr) if call.json else {}, lambda out: play(folder, out))


def calibrate(
    call: CommonOptions,
    spark: Annotated[bool, typer.Option("--spark/--no-spark", help="Also what only Spark does: a minute more.")] = True
) -> Reply:
    """Measure what work costs on this machine, for the prices of plans."""
    from jobs.calibrate.machine import calibrate as measure
    from jobs.calibrate.machine import path
    from jobs.engine.tasks import Tasks

    tasks = Tasks(os.environ.get("FOREBAY_MASTER", "local[*]"))
    with_spark = spark and not tasks.inline
    calibration = measure(lambda message: print(message, file=sys.stderr), tasks if with_spark else None)
    tasks.stop()
    return Reply({
        **calibration.document(), "file": str(path())
    }, lambda out: text.line(out, f"{calibration.coefficients.measurements} batches measured; kept in {path()}"))


def bench(call: CommonOptions, names: Annotated[list[str] | None, typer.Argument(metavar="NAME…")] = None,
          quick: Annotated[bool, typer.Option("--quick", help="Smaller and fewer.")] = False,
          rows: Annotated[int | None, typer.Option("--rows", min=10_000, help="In a window, for `statistics`.")] = None,
          boundaries: Annotated[
              int | None, typer.Option("--boundaries", min=1, help="How many, for `statistics`.")] = None) -> Reply:
    """The comparisons with other systems; `list` shows them."""
    from jobs.papers import bench as benches  # type: ignore[attr-defined]

    document: dict[str, Any] = benches.document(list(names or ("list",)), quick, rows, boundaries)
    return Reply(document, lambda out: text.line(out, document["text"]))


def experiment(
    call: CommonOptions, names: Annotated[list[str] | None, typer.Argument(metavar="NAME…")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller and fewer.")] = False,
    events: Annotated[int | None,
                      typer.Option("--events", min=10_000, help="How many, where an experiment says.")] = None,
    pictures: Annotated[str | None,
                        typer.Option("--pictures", metavar="DIR", help="Write a page and an SVG of each there.")] = None
) -> Reply:
    """The papers' figures and tables.

    `list` shows them, `all` runs them. What is interrupted goes on at its last finished point.
    """
    from jobs.papers import experiments

    document = experiments.document(list(names or ("list",)), quick, pictures, events=events)
    return Reply(document, lambda out: text.line(out, document["text"]))


def _register() -> None:
    app.callback(invoke_without_command=True, no_args_is_help=True)(shared(entry, engine=True))
    query.callback()(shared(of_queries, engine=True))
    commands: tuple[Any, ...] = (init, ingest, run, status, result, explain, plans, pin, unpin, windows, stats, adapt,
                                 track, verify, test, release, expectations, check, plan, apply, doctor, calibrate,
                                 demo)
    for function in commands:
        app.command()(shared(function, engine=function in (run, verify, explain)))
    for function, name in ((create, "create"), (delete, "delete"), (pause, "pause"), (resume, "resume"),
                           (list_, "list"), (show_, "show")):
        query.command(name)(shared(function))
    if importlib.util.find_spec("jobs.papers.bench"):
        app.command()(shared(bench))
    if importlib.util.find_spec("jobs.papers.experiments"):
        app.command()(shared(experiment))


_register()

if __name__ == "__main__":
    sys.exit(main())
