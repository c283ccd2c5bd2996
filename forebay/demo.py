"""The demo: the shop of `forebay init`, fed step by step to its DAG, killed once inside a batch, verified.

Each figure it prints was measured in it.
"""
from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import forebay
from forebay import demo_data, examples, show, text
from forebay.demo_data import ROBOTS, SALE, STEPS, USERS, DemoSize
from forebay.pipeline import Pipeline
from forebay.scheduler import Killed, Scheduler
from jobs.ingest import register as intake
from jobs.reports import tracking_pages
from optimizer.errors import ForebayError, failed

MARK = ".forebay-demo"        # a folder that holds it is ours to remove
DAG = "forebay__shop"
CRASH = 2                     # the step, counted from 0, whose run is killed
EVENTS = {
    SALE.start: f"      a sale begins: {ROBOTS} resellers' robots come instead of {USERS:,} people, look at\n"
                "      four times as many pages and buy ten times as much",
    SALE.stop: "      the sale is over"
}
FAILPOINT = "batch.after-state"
SHOWN = "sections"
MLFLOW_PORT = 5000            # MLflow's own default


@dataclass(frozen=True)
class Stage:
    """Where the demo plays, where it tells, and how it shows that it goes on."""

    folder: str
    out: TextIO
    bar: Any

    def tell(self, message: str = "") -> None:
        self.show(lambda out: text.line(out, message))

    def show(self, write: text.Text) -> None:
        """The bar steps aside: it and the text may be on one terminal."""
        if self.bar is not None:
            self.bar.stop()
        write(self.out)
        self.out.flush()
        if self.bar is not None:
            self.bar.start()

    def advance(self, what: str) -> None:
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], advance=1, description=what)


def play(folder: str, out: TextIO, scale: DemoSize = DemoSize()) -> dict[str, Any]:
    started = time.perf_counter()
    prepare(folder)
    airflow = Scheduler(Path(folder, ".airflow").absolute(), Path(folder).absolute())
    with _bar(STEPS + 3) as bar:
        stage = Stage(folder, out, bar)
        stage.tell(OPENING.format(folder=folder, dag=DAG, steps=STEPS, rows=demo_data.rows(scale)))
        pipe = forebay.open(folder)
        try:
            airflow.start()
            figures = _played(stage, pipe, airflow, scale)
        finally:
            airflow.stop()
            pipe.close()
    seconds = time.perf_counter() - started
    stage.tell(closing(folder, seconds, figures["mlflow"]["experiment"] or ""))
    return {"folder": os.path.abspath(folder), "seconds": round(seconds, 1), **figures}


def prepare(folder: str) -> None:
    """A fresh copy of the shop without its few rows; only a folder of the demo's own is replaced."""
    if os.path.isdir(folder) and os.listdir(folder):
        if not os.path.exists(os.path.join(folder, MARK)):
            raise ForebayError("not-empty", f"{folder} is there already, and not from a demo",
                               hint="name another folder: `forebay demo DIR`")
        shutil.rmtree(folder)
    examples.copy("shop", folder)
    shutil.rmtree(os.path.join(folder, "landing"))
    open(os.path.join(folder, MARK), "w", encoding="utf-8").close()


def _played(stage: Stage, pipe: Pipeline, airflow: Scheduler, scale: DemoSize) -> dict[str, Any]:
    stage.tell(
        f"{'step':>4}  {'rows':>7}  {'late':>5}  {'quarantined':>11}  {'boundaries':>10}  {'seconds':>7}  answered up "
        "to"
    )
    ran, killed = 0, {}
    for step in range(STEPS):
        stage.advance(f"step {step + 1} of {STEPS}" + (": starting Airflow and Spark" if step == 0 else ""))
        if step in EVENTS:
            stage.tell(EVENTS[step])
        demo_data.write(stage.folder, step, scale)
        began = time.perf_counter()
        if step == CRASH:
            killed = crash(stage, pipe, airflow)
        report = airflow.run(DAG, {"flush": step == STEPS - 1})
        if step == CRASH:
            stage.tell(
                f"      the next run did boundary {report['batches']['ran'][0]['boundary']} again from that intent, "
                "once, and went on"
            )
        _row(stage, step, pipe, report["batches"], time.perf_counter() - began)
        if step == CRASH - 2:
            airflow.stand_by()
        ran += report["batches"]["boundaries"]
    stage.advance("the answers")
    stage.tell(f"\nAnswers are exact at every boundary. The last of {SHOWN!r}:\n")
    stage.show(text.result(pipe.table(SHOWN)))
    _decisions(stage, pipe)
    stage.advance("into MLflow, and verify: plain SQL over all rows, without plan or state")
    airflow.ask(f"{DAG}__adapt")
    verified = _verified(stage, pipe)
    tracked = airflow.answer(f"{DAG}__adapt")["track"]["mlflow"]
    last = pipe.runtime.ledger.committed()
    rows = sum(intake.counts(pipe.runtime.warehouse)[:2])
    return {
        "rows": rows,
        "boundaries": ran,
        "killed": killed,
        "last": show.iso(last or 0),
        "verify": verified,
        "mlflow": tracked
    }


def _row(stage: Stage, step: int, pipe: Pipeline, batches: Mapping[str, Any], seconds: float) -> None:
    rows, late, aside = intake.counts(pipe.runtime.warehouse, f"landing/%/{step + 1:02d}.%")
    last = batches["ran"][-1]["boundary"] if batches["ran"] else "–"
    stage.tell(
        f"{step + 1:>4}  {rows:>7,}  {late:>5,}  {aside:>11,}  {batches['boundaries']:>10}  {seconds:>7.1f}  {last}")


def crash(stage: Stage, pipe: Pipeline, airflow: Scheduler) -> dict[str, Any]:
    """A DAG run, and a real SIGKILL of the process that runs it, between the commit of a batch's state and that of its
    answers.
    """
    stage.advance("the process that runs the DAG is killed in the middle of a batch")
    try:
        airflow.run(DAG, FOREBAY_FAILPOINT=FAILPOINT)
    except Killed as end:
        if end.signal != signal.SIGKILL:
            raise failed("demo-failed", f"the process that was to be killed ended by signal {end.signal}") from None
    else:
        raise failed("demo-failed", "the process that was to be killed went on")
    last = pipe.runtime.ledger.last()
    boundary, phase = (show.iso(last.batch.boundaries[0]), last.phase) if last else (None, "none")
    stage.tell(
        f"      kill -9 ended the process that ran the DAG inside boundary {boundary}, after the commit of its state:")
    stage.tell(f"      the answers of that boundary are not there, the ledger's last word is its {phase}")
    return {"signal": "SIGKILL", "boundary": boundary, "ledger": phase}


def _decisions(stage: Stage, pipe: Pipeline) -> None:
    """Each query's first plan, and each change of it."""
    stage.tell("\nWhat was decided, and why:\n")
    decisions = [(d["query"], n) for d in pipe.queries() for n in pipe.plans(d["query"])["decisions"]]
    first = {name: n for name, n in reversed(decisions)}
    shown = [(name, show.iso(n["boundary"]), n["plan"], n["reason"])
             for name, n in decisions
             if n["switched_from"] or n is first[name]]
    stage.show(lambda out: text.table(out, ("query", "from", "plan", "why"), shown))


def _verified(stage: Stage, pipe: Pipeline) -> dict[str, Any]:
    document = show.verified(pipe.verify())
    stage.tell("\nverify recomputed every answer by plain SQL over all rows, without plan or state:\n")
    stage.show(text.verified(document))
    if any(q["differences"] for q in document["queries"].values()):
        raise failed("demo-failed", "verify found differences",
                     "this is a bug in Forebay: keep the folder and report it")
    return dict(document["queries"])


@contextmanager
def _bar(steps: int) -> Iterator[Any]:
    """A bar on a terminal, None where stderr is none."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(BarColumn(30), TimeElapsedColumn(), TextColumn("{task.description}"),
                  console=Console(file=sys.stderr), transient=True) as bar:
        bar.add_task("", total=steps, completed=-1)
        yield bar


OPENING = """A shop's web site in {folder}/: views (CSV) and purchases (JSON lines) arrive in {steps} steps of half an
hour, about {rows:,} rows, some late, some broken; pages.csv says which section a page belongs to.
Its Airflow DAG, {dag}, takes them in and answers three queries at the boundaries, every 10 minutes of event time; each
step below is one run of it.
"""
NEXT = """
The demo took {seconds:.0f} s. Where to look next:

    cd {folder}
    {forebay} result sections --all          # every answer; --format csv, json, parquet
    {forebay} explain sections               # the plan in use in words and as a tree, and what others would take; --sql
    {forebay} plans sections                 # which plan was in force at which boundary
    {forebay} verify                         # once more, by yourself
    {forebay} expectations --docs            # what was expected of rows and answers, and what held, as pages
    {mlflow} server --port {port} --backend-store-uri sqlite:///warehouse/mlflow/mlflow.db     # costs, as charts
    {forebay} init ~/my-pipeline             # your own folder; docs/tutorial.md goes on from there

Once MLflow's server is up, its charts of this demo are at
{charts}
"""


def closing(folder: str, seconds: float, experiment: str) -> str:
    """Commands that can be copied as they stand: by their name where that is on the PATH, else by their way from the
    demo's folder; `experiment` is the number of the demo's in MLflow.
    """
    port = _free_port()
    return NEXT.format(folder=folder, seconds=seconds, forebay=_command("forebay", folder),
                       mlflow=_command("mlflow", folder), port=port,
                       charts=tracking_pages.charts(f"http://127.0.0.1:{port}", experiment))


def _command(name: str, folder: str) -> str:
    installed = os.path.join(sys.prefix, "bin", name)
    named = shutil.which(name)
    return name if named is not None and os.path.realpath(named) == os.path.realpath(installed) else os.path.relpath(
        installed, folder)


def _free_port() -> int:
    """MLflow's own port, unless something listens there, as what `make up` has started does; then the next one."""
    for port in range(MLFLOW_PORT, MLFLOW_PORT + 100):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) != 0:
                return port
    return MLFLOW_PORT
