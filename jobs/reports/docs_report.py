"""What expectations say between batches: of the input that waits, and as documents to read.

Nothing is begun, entered or stopped here.
"""
from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from typing import Any

from expectations import derived
from expectations.great import GreatExpectation
from jobs.batch.works import parsed
from jobs.expectations import by_great
from jobs.expectations import findings as expect_ledger
from jobs.expectations import releases
from jobs.expectations.gate import Gate
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.pipeline.declared import DeclaredExpectations
from jobs.pipeline.suites import custom_files
from jobs.reports import docs_pages as expect_pages
from jobs.requests import requests
from jobs.requests.boundaries import Arrivals
from optimizer.time import iso

EVERY = 600.0            # seconds between two makings of the documents; what is stopped or let pass is shown at once
SWITCH = "FOREBAY_DOCS"  # `off`: none are made but by hand
SHOWN = 200              # findings of the index
STAMP = "built.json"


def waiting(pipe: OpenPipeline) -> dict[str, Any]:
    """What fails of the complete boundaries that wait.

    What is critical and not released will stop the first of them.
    """
    arrivals = Arrivals(pipe)
    gate = Gate(pipe, DeclaredExpectations(pipe.pipeline), arrivals)
    gate.begin()
    requests.synchronise(pipe)
    gate.check()
    arrivals.look()
    group = arrivals.next_group()
    findings = gate.waiting(group) if group else []
    passed = releases.released(pipe) if findings else releases.Releases()
    failing = [{"boundary": iso(finding.boundary), "subject": finding.subject, "expectation": finding.expectation,
                "observed": finding.observed, "severity": finding.severity, "released": finding.key in passed}
               for finding in findings]
    return {"boundaries": len(group), "next": iso(group[0]) if group else None, "failing": failing}


def docs(pipe: OpenPipeline, anew: bool = False) -> str | None:
    """The path of the documents' index, which is made again where something changed.

    None before the first boundary is published, or where documents are switched off.
    """
    if not anew and os.environ.get(SWITCH) == "off":
        return None
    folder, stamp = pipe.pipeline.beside("docs"), _stamp(pipe)
    if stamp["boundary"] is None:
        return None
    if anew or _due(os.path.join(folder, STAMP), stamp):
        _build(pipe, folder, stamp)
    return os.path.join(folder, "index.html")


def listed(pipe: OpenPipeline) -> dict[str, Any]:
    """Every expectation in force, by subject: derived ones and declared ones, and where they are held."""
    declared = DeclaredExpectations(pipe.pipeline)
    rows_by_subject: dict[str, list[dict[str, str]]] = {}
    for name, stream in pipe.pipeline.streams.items():
        derived_expectations = derived.of_stream(stream.columns, stream.event_time)
        expected = (*declared.of_stream(name), *declared.suite_of_stream(name))
        rows_by_subject[f"stream {name}"] = _rows(derived_expectations, expected, "input")
    for query_state in requests.listed(pipe):
        if query_state.is_active:
            query = parsed(query_state.sql, pipe.catalog)
            columns = dict(query.columns)
            expected = (*declared.of_query(query_state.name, columns),
                        *declared.suite_of_query(query_state.name, columns))
            rows_by_subject[f"query {query_state.name}"] = _rows(derived.of_query(query), expected, "answers")
    return rows_by_subject


def _rows(derived_expectations: Sequence[derived.Derived], declared: Sequence[Any], where: str) -> list[dict[str, str]]:
    rows = [{"expectation": f"{d.name}: {d.text}", "severity": d.severity, "held": d.held}
            for d in derived_expectations]
    for e in declared:
        held = "ingest" if e.severity == "row" else where
        if isinstance(e, GreatExpectation):
            held += f", suite {e.suite}" + ("" if by_great.is_sql(e) else ", by Great Expectations")
        rows.append({"expectation": str(e), "severity": e.severity, "held": held})
    return rows


def _stamp(pipe: OpenPipeline) -> dict[str, Any]:
    suites = hashlib.blake2b(json.dumps(listed(pipe)).encode(), digest_size=8).hexdigest()
    findings = expect_ledger.entered(pipe)
    return {
        "state": _notice(pipe),
        "boundary": pipe.ledger.committed(),
        "suites": suites,
        "findings": len(findings),
        "stops": sum(row["severity"] == "critical" for row in findings),
        "releases": len(releases.entries(pipe))
    }


def _notice(pipe: OpenPipeline, suite: str | None = None) -> str:
    """How a page begins: RUNNING or STOPPED, of everything or of what one suite is about; a suite that is well says
    nothing.
    """
    about = [row for row in releases.standing(pipe, pipe.ledger.committed())
             if suite in (None, _suite_of(row["subject"]))]
    failures = [state for state in requests.failing(pipe) if suite in (None, _suite_of(f"query {state.name}"))]
    command = f"forebay --pipeline {pipe.pipeline.folder}"
    reasons = [f"{row['subject']} expects {row['expectation']}, observed: {row['observed']}" for row in about]
    if about:
        first = iso(about[0]["boundary"])
        reasons.append(f'Mend what brought it about, or let it pass: {command} release {first} --reason "…"')
    for state in failures:
        reasons.append(f"Query {state.name} has failed: {state.error}. The other queries go on; after a mend: "
                       f"{command} query resume {state.name}")
    if about:
        return str(expect_pages.heading(f"STOPPED AT {iso(about[0]['boundary'])} BECAUSE", reasons))
    if failures:
        return str(expect_pages.heading(f"RUNNING, BUT {len(failures)} FAILED", reasons))
    return "" if suite is not None else str(expect_pages.heading("RUNNING"))


def _suite_of(subject: str) -> str:
    """`query_pages` of `query pages`."""
    return subject.replace(" ", "_")


def _due(path: str, stamp: Mapping[str, Any]) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            before = json.load(file)
        old = time.time() - os.path.getmtime(path) > EVERY
    except (OSError, ValueError):
        return True
    return any(before.get(k) != stamp[k] for k in ("suites", "stops", "releases", "state")) or old and before != stamp


def _build(pipe: OpenPipeline, folder: str, stamp: Mapping[str, Any]) -> None:
    """Whole in a folder beside, then in its place, so that a reader never sees half of it."""
    from jobs.reports import data_docs as expect_docs
    from jobs.reports import suites as expect_suites  # seconds that nothing else need pay

    draft = f"{folder}.{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    os.makedirs(draft)
    try:
        declared = DeclaredExpectations(pipe.pipeline)
        by_great.load(custom_files(declared.folder))
        suites = list(expect_suites.suites(pipe, declared))
        pages = expect_docs.validated(suites, draft, os.path.dirname(folder))
        for page in pages:
            path = os.path.join(draft, page.path)
            with open(path, encoding="utf-8") as file:
                html = file.read()
            _write(path, expect_pages.offline(html, page.name, _notice(pipe, page.name)))
        _write(os.path.join(draft, "index.html"), _index(pipe, pages, stamp))
        _write(os.path.join(draft, STAMP), json.dumps(stamp))
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _index(pipe: OpenPipeline, pages: Sequence[Any], stamp: Mapping[str, Any]) -> str:
    findings, released = expect_ledger.entered(pipe)[-SHOWN:][::-1], releases.entries(pipe)[::-1]
    stopping = releases.standing(pipe, pipe.ledger.committed())
    suites = []
    for page in pages:
        failing = sum(_suite_of(row["subject"]) == page.name for row in stopping)
        suites.append((expect_pages.link(page.path, page.name),
                       expect_pages.verdict(page.passed, page.expected, failing)))
    in_force = []
    for subject, rows in listed(pipe).items():
        in_force += [(subject, row["expectation"], row["severity"], row["held"]) for row in rows]
    open_keys = {expect_ledger.key(row) for row in stopping}
    failed, stopped = list[tuple[str, ...]](), list[tuple[str, ...]]()
    for f in findings:
        severity = f["severity"] + (", released" if f["released"] else "")
        told = (iso(f["boundary"]), f["subject"], f["expectation"], f["observed"], severity)
        (stopped if expect_ledger.key(f) in open_keys and not f["released"] else failed).append(told)
    passed = [(iso(r["boundary"]), r["subject"], r["expectation"], f"{r['by']}: {r['reason']}", iso(r["at"]))
              for r in released]
    title = f"Expectations of {pipe.pipeline.name}, as of {iso(stamp['boundary'])}"
    columns = ("boundary", "subject", "expectation", "observed", "severity")
    return expect_pages.index(title, (
        ("What stops it now", columns, stopped),
        ("Great Expectations on the newest boundary with rows, and on the last answers", ("suite", "verdict"), suites),
        ("What failed and was let pass, or was a warning", columns, failed),
        ("What was let pass", ("boundary", "subject", "expectation", "by", "at"), passed),
        ("What is held", ("subject", "expectation", "severity", "where"), in_force)), stamp["state"])
