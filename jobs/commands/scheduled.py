"""What each scheduled task does: it opens a pipeline folder, calls one function, closes, and says what was done as
JSON; what is due is decided there.

A pipeline that another runner holds is waited for. ForebayErrors are passed on as they are: exit code 3 means that the
other runner still holds it.
"""
from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from jobs.adapt.sharing import Sharer
from jobs.commands import adapt
from jobs.commands.upkeep import upkeep
from jobs.expectations import releases
from jobs.ledger import published as publications
from jobs.ledger.open_pipeline import OpenPipeline, open_pipeline
from jobs.ledger.queries import address_of
from jobs.pipeline.config import load
from jobs.pipeline.folders import pages, uri
from jobs.reports import docs_report as expect_report
from jobs.requests import requests
from jobs.results import decisions
from jobs.run import Loop
from jobs.storage.tables import Conflict
from optimizer.errors import ForebayError, failed
from optimizer.time import iso, micros

PATIENCE = 600.0        # seconds that a task waits for another runner; FOREBAY_PATIENCE says otherwise
PAUSE = 1.0
MOST_SHOWN = 10         # candidates of a query in a task's answer
log = logging.getLogger("forebay")


def warm(folder: str) -> None:
    """Starts the session that a pipeline's tasks will use, and its Python workers."""
    with _opened(folder) as pipe:
        if not pipe.tasks.inline:
            pipe.tasks.map(_import_modules, range(pipe.tasks.width))


def _import_modules(number: int) -> int:
    """In a worker: what a task of a batch needs is imported with it."""
    from jobs.engine import work
    from jobs.ingest import land
    return number if land and work else -1


def ingest(folder: str) -> dict[str, Any]:
    """New input of every source, once."""
    return _waiting(folder, lambda loop: loop.take())


def expectations(folder: str) -> dict[str, Any]:
    """The expectations that the waiting input does not meet, and where the data docs are.

    It stops nothing: a batch does that, at its boundary.
    """
    with _opened(folder) as pipe:
        report = expect_report.waiting(pipe)
        for finding in report["failing"]:
            log.warning("%s at %s expects %s, observed: %s", finding["subject"], finding["boundary"],
                        finding["expectation"], finding["observed"])
        return {**report, "docs": _documented(pipe)}


def batches(folder: str, to: str | None = None, flush: bool = False, boundaries: int | None = None,
            asked_by: str = "") -> dict[str, Any]:
    """Every complete boundary, however many have come together.

    The ledger keeps `asked_by`: a kind of trigger and a DAG run.
    """
    until = _micros(to) if to else None
    report = _waiting(folder, lambda loop: _ran(loop, until, flush, boundaries), asked_by)
    ran = [{**entry, "boundary": iso(entry["boundary"]), "seconds": round(entry["seconds"], 6)}
           for entry in report["ran"]]
    decided = {key: value if key == "mode" else _iso(value) for key, value in report["decided"].items()}
    if decided["mode"] == "task":
        log.info("plans as decided at %s, by statistics of boundary %s", decided["at"] or "no time yet",
                 decided["statistics_boundary"] or "none yet: as batches sampled them")
    return {"boundaries": len(ran), "ran": ran[-MOST_SHOWN:], "next": _iso(report["next"]),
            "failed": [{**failure, "boundary": iso(failure["boundary"])} for failure in report["failed"]],
            "waiting_for": report["waiting_for"], "decided": decided}


def published(folder: str, after: str = "") -> dict[str, Any]:
    """What a reader of the results can follow: address, last boundary, plan and Delta version of each query that has
    published one after `after`.

    Nothing if no boundary came after it.
    """
    since = _micros(after) if after else -1
    with _opened(folder) as pipe:
        upto = publications.upto(pipe.warehouse)
        if upto is None or upto <= since:
            return {}
        plans = {name: plan for batch in pipe.ledger.committed_batches() for name, plan in batch.plan_names.items()}
        queries = {}
        for name, boundary in sorted(publications.last_boundaries(pipe.warehouse).items()):
            if boundary > since:
                path = address_of(name)
                queries[name] = {"uri": uri(pipe.path(path), folder), "boundary": iso(boundary),
                                 "plan": plans.get(name), "version": pipe.warehouse.latest(path).version}
        return {"boundary": iso(upto), "queries": queries}


def failures(folder: str) -> dict[str, Any]:
    """Nothing while no query is failed; else the error that names them all."""
    with _opened(folder) as pipe:
        failing = requests.failing(pipe)
        for state in failing:
            log.error("query %s has failed: %s", state.name, state.error)
        if failing:
            names = ", ".join(state.name for state in failing)
            messages = "; ".join(f"{state.name}: {state.error}" for state in failing)
            raise failed("query-failed", f"{names} gave no answer, the others' are published: {messages}",
                         "mend what it says, then resume the query (the DAG …__queries, or `forebay query resume`); "
                         "or delete it")
    return {"failed": []}


def release(folder: str, boundary: str, until: str | None, expectation: str | None, reason: str,
            by: str | None) -> dict[str, Any]:
    """Lets a boundary, or a range of them, pass that critical expectations have stopped."""
    with _opened(folder) as pipe:
        last = _micros(until) if until else None
        document = releases.release(pipe, _micros(boundary), reason, by, last, expectation or None)
    return {**document, **{key: _iso(document[key]) for key in ("boundary", "until", "at")}}


def change(folder: str, action: str, name: str, sql: str | None = None, plan: str | None = None,
           replace: bool = False, new_history: bool = False) -> dict[str, Any]:
    """create (with a text), delete, pause, resume, pin (with a plan's name) or unpin.

    Never waits for a running batch.
    """
    with _opened(folder) as pipe:
        _check(action, name, sql, plan)
        if action == "create":
            query_state = requests.create(pipe, name, sql or "", replace, new_history=new_history)
        else:
            query_state = requests.change(pipe, name, action, plan if action == "pin" else None)
        document = requests.document(pipe, query_state, Sharer(pipe))
    return {**document, "effective": _iso(document["effective"])}


def statistics(folder: str) -> dict[str, Any]:
    """What is known of each stream and join, looked at anew where that is due."""
    with _opened(folder, lasting=False) as pipe:      # it holds no pipeline: a session that a batch uses is not its own
        document = adapt.statistics(pipe)
    log.info("statistics: %s", document["reason"])
    for figures_by_name in (document["streams"], document["queries"]):
        for figures in figures_by_name.values():
            figures["from"] = _iso(figures["from"])
    return {**document, "next": _iso(document["next"]), "since": _iso(document["since"])}


def optimize(folder: str) -> dict[str, Any]:
    """The plan of every active query, and which share, decided by what is known now; entered as requests."""
    with _opened(folder) as pipe:
        decisions = adapt.optimize(pipe)
    for entry in decisions:
        switch = f" from {_iso(entry['effective'])}, not {entry['switched_from']}" if entry["switched_from"] else ""
        log.info("%s: %s%s: %s", entry["query"], entry["plan"], switch, entry["reason"])
    return {"decisions": [{**entry, "effective": _iso(entry["effective"]),
                           "candidates": _cheapest(entry["candidates"])} for entry in decisions]}


def track(folder: str) -> dict[str, Any]:
    """The plan in force of each active query, its switches so far, and its regret; and where MLflow shows them."""
    from jobs.reports import tracking  # the other tasks need nothing of it

    with _opened(folder) as pipe:
        names = [query_state.name for query_state in requests.listed(pipe) if query_state.is_active]
        queries = {name: _summary_of_decisions(decisions.document(pipe, name)) for name in names}
        tracked = tracking.track(pipe)
    log.info("charts of predicted and measured cost: %s", tracked["page"] or tracked["uri"])
    return {"queries": queries, "mlflow": tracked}


def maintain(folder: str) -> dict[str, Any]:
    """Tidies the tables; those of a stopped pipeline stay as they are until somebody releases it."""
    report = _waiting(folder, upkeep)
    if report["stopped"]:
        log.warning("nothing is tidied while %s", report["stopped"])
    return report


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
    rows = ", ".join(f"{count:,} {stream}" for stream, count in entry["rows"].items()) or "no new rows"
    plans = ", ".join(f"{name} by {plan}" for name, plan in entry["plans"].items()) or "nothing due"
    log.info("%s | %7.3f s | %s | %s", iso(entry["boundary"]), entry["seconds"], rows, plans)
    for message in entry["unexpected"]:
        log.warning("%s: %s", iso(entry["boundary"]), message)
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
                held = _if_held(error)
                if held is None or time.monotonic() > deadline:
                    raise held or error
                log.info("%s; waiting", held.message)
                time.sleep(PAUSE)


def _if_held(error: ForebayError | Conflict) -> ForebayError | None:
    """The error, if it says that another runner is at work."""
    if isinstance(error, Conflict):
        return ForebayError("conflict", f"another runner committed to this pipeline meanwhile: {error}",
                            hint="nothing is lost or counted twice", exit_code=3)
    return error if error.exit_code == 3 else None


@contextmanager
def _opened(folder: str, asked_by: str = "", lasting: bool = True) -> Iterator[OpenPipeline]:
    pipe = open_pipeline(load(folder), asked_by=asked_by, lasting=lasting)
    try:
        yield pipe
    finally:
        pipe.tasks.stop()


def _check(action: str, name: str, sql: str | None, plan: str | None) -> None:
    """Refuses values that do not fit the action, which a form cannot check field by field."""
    for wanted, given, label in (("create", sql, "sql"), ("pin", plan, "plan")):
        if action == wanted and not (given or "").strip():
            raise ForebayError("missing-value", f"{action} of {name} needs `{label}`, which is empty",
                               hint=f"fill in {label}")
        if action != wanted and (given or "").strip():
            raise ForebayError("unused-value", f"{action} of {name} takes no `{label}`", hint=f"leave {label} empty")


def _cheapest(candidates: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    sound = [candidate for candidate in candidates if candidate["refused"] is None]
    shown = []
    for candidate in sorted(sound, key=lambda candidate: candidate["predicted_s"])[:MOST_SHOWN]:
        shown.append({key: candidate[key] for key in ("plan", "predicted_s", "paper_cost", "state_rows")})
    return shown


def _summary_of_decisions(document: Mapping[str, Any]) -> dict[str, Any]:
    entries = document["decisions"]
    switches = []
    for entry in entries:
        if entry["switched_from"]:
            switches.append({"plan": entry["plan"], "switched_from": entry["switched_from"], "reason": entry["reason"],
                             "boundary": iso(entry["boundary"])})
    return {"plan": entries[-1]["plan"] if entries else None, "pinned": document["pinned"],
            "regret_s": document["regret_s"], "switches": switches[-MOST_SHOWN:]}


def _iso(us: int | None) -> str | None:
    return None if us is None else iso(us)


def _micros(text: str) -> int:
    """An instant that a form or an event gave; without a zone it is UTC."""
    try:
        return micros(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        raise ForebayError("bad-time", f"{text!r} is not a time", hint="write it as 2013-01-02T00:00:00Z") from None
