"""The demo: the shop of `forebay init`, fed step by step, killed once inside a batch, verified at the end; each figure it prints was measured in it."""
from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

import forebay
from forebay import demo_data, examples, show, text
from forebay.demo_data import STEPS, Scale
from forebay.pipeline import Pipeline
from optimizer.errors import ForebayError, failed

MARK = ".forebay-demo"        # a folder that holds it is ours to remove
CRASH = 4                     # the step, counted from 0, whose run is killed
FAILPOINT = "batch.after-state"
SHOWN = "sections"


@dataclass(frozen=True)
class Stage:
    """Where the demo plays, where it tells, and how it shows that it goes on."""

    folder: str
    out: TextIO
    bar: Any

    def tell(self, said: str = "") -> None:
        self.show(lambda out: text.line(out, said))

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


def play(folder: str, out: TextIO, scale: Scale = Scale()) -> dict[str, Any]:
    started = time.perf_counter()
    prepare(folder)
    with _bar(STEPS + 3) as bar:
        stage = Stage(folder, out, bar)
        stage.tell(OPENING.format(folder=folder, steps=STEPS, rows=scale.views + scale.purchases))
        pipe = forebay.open(folder)
        try:
            said = _played(stage, pipe, scale)
        finally:
            pipe.close()
    seconds = time.perf_counter() - started
    stage.tell(NEXT.format(folder=folder, seconds=seconds))
    return {"folder": os.path.abspath(folder), "seconds": round(seconds, 1), **said}


def prepare(folder: str) -> None:
    """A fresh copy of the shop without its few rows; only a folder of the demo's own is replaced."""
    if os.path.isdir(folder) and os.listdir(folder):
        if not os.path.exists(os.path.join(folder, MARK)):
            raise ForebayError("not-empty", f"{folder} is there already, and not from a demo", hint="name another folder: `forebay demo DIR`")
        shutil.rmtree(folder)
    examples.copy("shop", folder)
    shutil.rmtree(os.path.join(folder, "landing"))
    open(os.path.join(folder, MARK), "w", encoding="utf-8").close()


def _played(stage: Stage, pipe: Pipeline, scale: Scale) -> dict[str, Any]:
    stage.tell(f"{'step':>4}  {'rows':>7}  {'late':>5}  {'quarantined':>11}  {'boundaries':>10}  {'seconds':>7}  answered up to")
    rows, ran, killed = 0, 0, {}
    for step in range(STEPS):
        stage.advance(f"step {step + 1} of {STEPS}" + (": starting Spark" if step == 0 else ""))
        demo_data.write(stage.folder, step, scale)
        began = time.perf_counter()
        taken = pipe.ingest()["streams"]
        if step == CRASH:
            killed = crash(stage, pipe)
        entries = pipe.run(flush=step == STEPS - 1)["ran"]
        if step == CRASH:
            stage.tell(f"      the next run did boundary {show.iso(entries[0]['boundary'])} again from that intent, once, and went on")
        _row(stage, step, taken, entries, time.perf_counter() - began)
        rows, ran = rows + sum(t["rows"] for t in taken.values()), ran + len(entries)
    stage.advance("the answers")
    last = _answers(stage, pipe)
    stage.advance("verify: the same SQL over all raw rows, by another engine and without the planner")
    return {"rows": rows, "boundaries": ran, "killed": killed, "last": show.iso(last), "verify": _verified(stage, pipe)}


def _row(stage: Stage, step: int, taken: Mapping[str, Mapping[str, int]], entries: list[dict[str, Any]], seconds: float) -> None:
    rows, late, aside = (sum(t[k] for t in taken.values()) for k in ("rows", "late", "quarantined"))
    last = show.iso(entries[-1]["boundary"]) if entries else "–"
    stage.tell(f"{step + 1:>4}  {rows:>7,}  {late:>5,}  {aside:>11,}  {len(entries):>10}  {seconds:>7.1f}  {last}")


def crash(stage: Stage, pipe: Pipeline) -> dict[str, Any]:
    """A real process, a real SIGKILL, between the commit of a batch's state and that of its answers."""
    stage.advance("a process runs the next boundary and is killed in the middle of it")
    environment = {**os.environ, "FOREBAY_FAILPOINT": FAILPOINT}
    command = [sys.executable, "-m", "forebay.cli", "run", "--pipeline", stage.folder]
    child = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120)
    if child.returncode != -signal.SIGKILL:
        said = child.stderr.decode(errors="replace").strip()[-300:]
        raise failed("demo-failed", f"the process that was to be killed ended with {child.returncode}: {said}")
    phase, batch, _ = pipe.runtime.ledger.last() or ("none", None, {})
    boundary = show.iso(batch.boundaries[0]) if batch else None
    stage.tell(f"      kill -9 ended another process inside boundary {boundary}, after the commit of its state:")
    stage.tell(f"      the answers of that boundary are not there, the ledger's last word is its {phase}")
    return {"signal": "SIGKILL", "boundary": boundary, "ledger": phase}


def _answers(stage: Stage, pipe: Pipeline) -> int:
    found = pipe.table(SHOWN)
    stage.tell(f"\nAnswers are exact at every boundary. The last of {SHOWN!r}:\n")
    stage.show(text.result(found))
    stage.tell("\nThe plan in use:\n")
    latest = [pipe.plans(d["query"])["decisions"][-1] | {"query": d["query"]} for d in pipe.queries()]
    stage.show(lambda out: text.table(out, ("query", "plan", "reason"), [(d["query"], d["plan"], d["reason"]) for d in latest]))
    last_boundary = pipe.runtime.ledger.committed()
    assert last_boundary is not None
    return last_boundary


def _verified(stage: Stage, pipe: Pipeline) -> dict[str, Any]:
    document = show.verified(pipe.verify())
    stage.tell("\nverify recomputed every answer by plain SQL over all the rows, with another engine and without the planner:\n")
    stage.show(text.verified(document))
    if any(q["differences"] for q in document["queries"].values()):
        raise failed("demo-failed", "verify found differences", "this is a bug in Forebay: keep the folder and report it")
    return dict(document["queries"])


@contextmanager
def _bar(steps: int) -> Iterator[Any]:
    """A bar on a terminal, None where stderr is none."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(BarColumn(30), TimeElapsedColumn(), TextColumn("{task.description}"), console=Console(file=sys.stderr), transient=True) as bar:
        bar.add_task("", total=steps, completed=-1)
        yield bar


OPENING = """A shop's web site in {folder}/: views (CSV) and purchases (JSON lines) arrive in {steps} steps of half an hour,
about {rows:,} rows, some late, some broken; pages.csv says which section a page belongs to.
Three queries are answered at the boundaries, every 10 minutes of event time, as soon as the rows for one are there.
"""
NEXT = """
The demo took {seconds:.0f} s. Where to look next:

    cd {folder}
    forebay result sections --all          # every answer; --format csv, json, parquet
    forebay explain sections               # every plan, and the one in use as a tree and as SQL
    forebay plans sections                 # which plan was in force at which boundary
    forebay verify                         # once more, by yourself
    forebay init ~/my-pipeline             # your own folder; docs/tutorial.md goes on from there
"""
