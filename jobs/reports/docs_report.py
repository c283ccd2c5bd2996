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
from jobs.batch.works import parsed
from jobs.expectations import findings as expect_ledger
from jobs.expectations.gate import Gate
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.pipeline.declared import DeclaredExpectations
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
    released = expect_ledger.released(pipe) if findings else set()
    failing = [{"boundary": iso(finding.boundary), "subject": finding.subject, "expectation": finding.expectation,
                "observed": finding.observed, "severity": finding.severity, "released": finding.key in released}
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
        rows_by_subject[f"stream {name}"] = _rows(derived_expectations, declared.of_stream(name), "input")
    for query_state in requests.listed(pipe):
        if query_state.is_active:
            query = parsed(query_state.sql, pipe.catalog)
            expected = declared.of_query(query_state.name, dict(query.columns))
            rows_by_subject[f"query {query_state.name}"] = _rows(derived.of_query(query), expected, "answers")
    return rows_by_subject


def _rows(derived_expectations: Sequence[derived.Derived], declared: Sequence[Any], where: str) -> list[dict[str, str]]:
    rows = [{"expectation": f"{d.name}: {d.text}", "severity": d.severity, "held": d.held}
            for d in derived_expectations]
    for e in declared:
        held = "ingest" if e.severity == "row" else where
        rows.append({"expectation": str(e), "severity": e.severity, "held": held})
    return rows


def _stamp(pipe: OpenPipeline) -> dict[str, Any]:
    suites = hashlib.blake2b(json.dumps(listed(pipe)).encode(), digest_size=8).hexdigest()
    findings = expect_ledger.entered(pipe)
    return {
        "boundary": pipe.ledger.committed(),
        "suites": suites,
        "findings": len(findings),
        "stops": sum(row["severity"] == "critical" for row in findings),
        "releases": len(expect_ledger.releases(pipe))
    }


def _due(path: str, stamp: Mapping[str, Any]) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            before = json.load(file)
        old = time.time() - os.path.getmtime(path) > EVERY
    except (OSError, ValueError):
        return True
    return any(before.get(k) != stamp[k] for k in ("suites", "stops", "releases")) or old and before != stamp


def _build(pipe: OpenPipeline, folder: str, stamp: Mapping[str, Any]) -> None:
    """Whole in a folder beside, then in its place, so that a reader never sees half of it."""
    from jobs.reports import data_docs as expect_docs
    from jobs.reports import suites as expect_suites  # seconds that nothing else need pay

    draft = f"{folder}.{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    os.makedirs(draft)
    try:
        pages = expect_docs.validated(list(expect_suites.suites(pipe)), draft)
        for page in pages:
            path = os.path.join(draft, page.path)
            with open(path, encoding="utf-8") as file:
                html = file.read()
            _write(path, expect_pages.offline(html, page.name))
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
    findings, released = expect_ledger.entered(pipe)[-SHOWN:][::-1], expect_ledger.releases(pipe)[::-1]
    suites = [(expect_pages.link(page.path, page.name), expect_pages.verdict(page.passed, page.expected))
              for page in pages]
    in_force = []
    for subject, rows in listed(pipe).items():
        in_force += [(subject, row["expectation"], row["severity"], row["held"]) for row in rows]
    failed = []
    for f in findings:
        severity = f["severity"] + (", released" if f["released"] else "")
        failed.append((iso(f["boundary"]), f["subject"], f["expectation"], f["observed"], severity))
    passed = [(iso(r["boundary"]), r["subject"], r["expectation"], f"{r['by']}: {r['reason']}", iso(r["at"]))
              for r in released]
    return expect_pages.index(f"Expectations of {pipe.pipeline.name}, as of {iso(stamp['boundary'])}", (
        ("On a sample of the newest rows and answers", ("suite", "verdict"), suites),
        ("What failed", ("boundary", "subject", "expectation", "observed", "severity"), failed),
        ("What was let pass", ("boundary", "subject", "expectation", "by", "at"), passed),
        ("What is held", ("subject", "expectation", "severity", "where"), in_force)))
