"""What each scheduled task does: it opens a pipeline folder, calls one function, closes, and says what was done as
JSON; what is due is decided there.

A pipeline that another runner holds is waited for. ForebayErrors are passed on as they are: exit code 3 means that the
other runner still holds it.
"""
from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from jobs.adapt import sharing
from jobs.adapt.choice import Chooser
from jobs.adapt.sharing import Sharer
from jobs.adapt.statistics import Statistics
from jobs.commands.upkeep import upkeep
from jobs.ledger.open_pipeline import OpenPipeline, open_pipeline
from jobs.pipeline.config import load
from jobs.pipeline.folders import pages, uri
from jobs.reports import docs_report as expect_report
from jobs.requests import requests
from jobs.results import answers, decisions
from jobs.results import figures as statistics_said
from jobs.run import Loop
from jobs.storage import tables
from jobs.storage.tables import Conflict
from optimizer.errors import ForebayError
from optimizer.time import iso, micros

PATIENCE = 600.0        # seconds that a task waits for another runner; FOREBAY_PATIENCE says otherwise
PAUSE = 1.0
MOST_SHOWN = 10         # candidates of a query in a task's answer
log = logging.getLogger("forebay")


def warm(folder: str) -> None:
    """Starts the session that a pipeline's tasks will use, and its Python workers."""
    with _opened(folder) as pipe:
        if not pipe.tasks.inline:
            pipe.tasks.map(_imported, range(pipe.tasks.width))


def _imported(number: int) -> int:
    """In a worker: what a task of a batch needs is imported with it."""
    from jobs.engine import work
    from jobs.ingest import land
    return number if land and work else -1


def ingest(folder: str) -> dict[str, Any]:
    """New input of every source, once."""
    return _waiting(folder, lambda loop: loop.take())


def expectations(folder: str) -> dict[str, Any]:
    """What fails of the input that waits, and where the data docs are.

    It stops nothing: a batch does that, at its boundary.
    """
    with _opened(folder) as pipe:
        said = expect_report.waiting(pipe)
        for one in said["failing"]:
            log.warning("%s at %s expects %s, observed: %s", one["subject"], one["boundary"], one["expectation"],
                        one["observed"])
        return {**said, "docs": _documented(pipe)}


def batches(folder: str, to: str | None = None, flush: bool = False, boundaries: int | None = None,
            asked_by: str = "") -> dict[str, Any]:
    """Every complete boundary, however many have come together.

    The ledger keeps `asked_by`: a kind of trigger and a DAG run.
    """
    until = _micros(to) if to else None
    said = _waiting(folder, lambda loop: _ran(loop, until, flush, boundaries), asked_by)
    ran = [{
        **entry, "boundary": iso(entry["boundary"]),
        "seconds": round(entry["seconds"], 6)
    } for entry in said["ran"]]
    return {
        "boundaries": len(ran),
        "ran": ran[-MOST_SHOWN:],
        "next": _iso(said["next"]),
        "waiting_for": said["waiting_for"]
    }


def published(folder: str, after: str = "") -> dict[str, Any]:
    """What a reader of the results can follow: boundary, plan and Delta version of each query's table.

    Nothing if no boundary came after `after`.
    """
    with _opened(folder) as pipe:
        last, told = pipe.ledger.committed(), pipe.ledger.committed_batches()
        if last is None or after and last <= _micros(after):
            return {}
        plans = {name: plan for entry in told for name, plan in entry.plan_names.items()}
        query_state = [(s, path)
                       for s in requests.listed(pipe)
                       if s.is_active and tables.exists(pipe.path(path := sharing.newest(pipe, s)))]
        found = {s.name: {"uri": uri(pipe.path(s.table), folder), "boundary": iso(last), "plan": plans.get(s.name),
                          "version": pipe.warehouse.latest(path).version} for s, path in query_state}
        return {"boundary": iso(last), "queries": found}


def change(folder: str, action: str, name: str, sql: str | None = None, plan: str | None = None,
           replace: bool = False) -> dict[str, Any]:
    """create (with a text), delete, pause, resume, pin (with a plan's name) or unpin.

    Never waits for a running batch.
    """
    with _opened(folder) as pipe:
        _check(action, name, sql, plan)
        if action == "create":
            query_state = requests.create(pipe, name, sql or "", replace)
        else:
            query_state = requests.change(pipe, name, action, plan if action == "pin" else None)
        said = requests.document(pipe, query_state, Sharer(pipe))
    return {**said, "effective": _iso(said["effective"])}


def statistics(folder: str) -> dict[str, Any]:
    """What is known of each stream and join."""
    with _opened(folder) as pipe:
        document = statistics_said.document(Statistics(pipe))
    return {
        part: {
            n: {
                **said, "from": _iso(said["from"])
            } for n, said in each.items()
        } for part, each in document.items()
    }


def plans(folder: str) -> dict[str, Any]:
    """Every active query's candidates priced by what is known now, cheapest first, and what its next boundary would
    choose.
    """
    with _opened(folder) as pipe:
        chooser = Chooser(pipe, Statistics(pipe))
        return {s.name: _priced(answers.explain(chooser, s.name)) for s in requests.listed(pipe) if s.is_active}


def chosen(folder: str) -> dict[str, Any]:
    """The plan in force of each active query, its switches so far, and its regret; and where MLflow shows them."""
    from jobs.reports import tracking  # the other tasks need nothing of it

    with _opened(folder) as pipe:
        said = {s.name: _decided(decisions.document(pipe, s.name)) for s in requests.listed(pipe) if s.is_active}
        tracked = tracking.track(pipe)
    log.info("charts of predicted and measured cost: %s", tracked["page"] or tracked["uri"])
    return {"queries": said, "mlflow": tracked}


def maintain(folder: str) -> dict[str, Any]:
    """A pipeline that is stopped is left as it is: whoever releases it has seen why."""
    said = _waiting(folder, upkeep)
    if said["stopped"]:
        log.warning("nothing is tidied while %s", said["stopped"])
    return said


def _documented(pipe: OpenPipeline) -> str | None:
    """Documents are for people: whatever keeps them from being made, the batches go on."""
    try:
        index = expect_report.docs(pipe)
    except Exception as error:
        log.warning("the data docs could not be made: %s: %s", type(error).__name__, error)
        return None
    if index is not None:
        log.info("data docs: %s", pages(pipe.pipeline.name).get("Data docs") or uri(index, pipe.pipeline.folder))
    return None if index is None else uri(index, pipe.pipeline.folder)


def _ran(loop: Loop, to: int | None, flush: bool, limit: int | None) -> dict[str, Any]:
    pipe = loop.pipe
    for notice in requests.synchronise(pipe):
        log.warning("%s", notice.message)
    for title, address in pages(pipe.pipeline.name).items():
        log.info("%s: %s", title, address)
    return loop.run(to, flush, limit, _logged)


def _logged(entry: Mapping[str, Any]) -> None:
    log.info("%s  %.3f s  rows %s  plans %s", iso(entry["boundary"]), entry["seconds"], dict(entry["rows"]),
             dict(entry["plans"]))
    for said in entry["unexpected"]:
        log.warning("%s: %s", iso(entry["boundary"]), said)
    for name, reason in entry["failed"].items():
        log.error("query %s failed at %s: %s", name, iso(entry["boundary"]), reason)


def _waiting(folder: str, work: Callable[[Loop], dict[str, Any]], asked_by: str = "") -> dict[str, Any]:
    deadline = time.monotonic() + float(os.environ.get("FOREBAY_PATIENCE", PATIENCE))
    with _opened(folder, asked_by) as pipe:
        loop = Loop(pipe)
        while True:
            try:
                return work(loop)
            except (ForebayError, Conflict) as error:
                held = _held(error)
                if held is None or time.monotonic() > deadline:
                    raise held or error
                log.info("%s; waiting", held.message)
                time.sleep(PAUSE)


def _held(error: ForebayError | Conflict) -> ForebayError | None:
    """The error, if it says that another runner is at work."""
    if isinstance(error, Conflict):
        return ForebayError("conflict", f"another runner committed to this pipeline meanwhile: {error}",
                            hint="nothing is lost or counted twice", exit_code=3)
    return error if error.exit_code == 3 else None


@contextmanager
def _opened(folder: str, asked_by: str = "") -> Iterator[OpenPipeline]:
    pipe = open_pipeline(load(folder), asked_by=asked_by, lasting=True)
    try:
        yield pipe
    finally:
        pipe.tasks.stop()


def _check(action: str, name: str, sql: str | None, plan: str | None) -> None:
    """What a form cannot check field by field."""
    for wanted, given, label in (("create", sql, "sql"), ("pin", plan, "plan")):
        if action == wanted and not (given or "").strip():
            raise ForebayError("missing-value", f"{action} of {name} needs `{label}`, which is empty",
                               hint=f"fill in {label}")
        if action != wanted and (given or "").strip():
            raise ForebayError("unused-value", f"{action} of {name} takes no `{label}`", hint=f"leave {label} empty")


def _priced(document: Mapping[str, Any]) -> dict[str, Any]:
    sound = sorted((c for c in document["candidates"] if c["refused"] is None), key=lambda c: c["predicted_s"])
    shown = [{k: c[k] for k in ("plan", "predicted_s", "paper_cost", "state_rows")} for c in sound[:MOST_SHOWN]]
    return {
        "chosen": document["chosen"],
        "why": document["why"],
        "candidates": shown,
        "priced": len(document["candidates"])
    }


def _decided(document: Mapping[str, Any]) -> dict[str, Any]:
    made = document["decisions"]
    switches = [{
        **{
            k: d[k] for k in ("plan", "switched_from", "reason")
        }, "boundary": iso(d["boundary"])
    } for d in made if d["switched_from"]]
    return {
        "plan": made[-1]["plan"] if made else None,
        "pinned": document["pinned"],
        "regret_s": document["regret_s"],
        "switches": switches[-MOST_SHOWN:]
    }


def _iso(us: int | None) -> str | None:
    return None if us is None else iso(us)


def _micros(text: str) -> int:
    """An instant that a form or an event gave; without a zone it is UTC."""
    try:
        return micros(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        raise ForebayError("bad-time", f"{text!r} is not a time", hint="write it as 2013-01-02T00:00:00Z") from None
