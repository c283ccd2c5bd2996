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
    found = gate.waiting(group) if group else []
    released = expect_ledger.released(pipe) if found else set()
    said = [{
        "boundary": iso(f.boundary),
        "subject": f.subject,
        "expectation": f.expectation,
        "observed": f.observed,
        "severity": f.severity,
        "released": f.key in released
    } for f in found]
    return {"boundaries": len(group), "next": iso(group[0]) if group else None, "failing": said}


def docs(pipe: OpenPipeline, anew: bool = False) -> str | None:
    """The documents' index, made again where something changed.

    None before the first boundary is published, or where they are switched off.
    """
    if not anew and os.environ.get(SWITCH) == "off":
        return None
    folder, said = pipe.pipeline.beside("docs"), _stamp(pipe)
    if said["boundary"] is None:
        return None
    if anew or _due(os.path.join(folder, STAMP), said):
        _build(pipe, folder, said)
    return os.path.join(folder, "index.html")


def listed(pipe: OpenPipeline) -> dict[str, Any]:
    """Every expectation in force, by subject: derived ones and declared ones, and where they are held."""
    declared = DeclaredExpectations(pipe.pipeline)
    found: dict[str, list[dict[str, str]]] = {}
    for name, stream in pipe.pipeline.streams.items():
        own = derived.of_stream(stream.columns, stream.event_time)
        found[f"stream {name}"] = _rows(own, declared.of_stream(name), "input")
    for query_state in requests.listed(pipe):
        if query_state.is_active:
            query = parsed(query_state.sql, pipe.catalog)
            expected = declared.of_query(query_state.name, dict(query.columns))
            found[f"query {query_state.name}"] = _rows(derived.of_query(query), expected, "answers")
    return found


def _rows(own: Sequence[derived.Derived], declared: Sequence[Any], where: str) -> list[dict[str, str]]:
    return [
        *({
            "expectation": f"{d.name}: {d.text}",
            "severity": d.severity,
            "held": d.held
        } for d in own), *({
            "expectation": str(e),
            "severity": e.severity,
            "held": "ingest" if e.severity == "row" else where
        } for e in declared)
    ]


def _stamp(pipe: OpenPipeline) -> dict[str, Any]:
    suites = hashlib.blake2b(json.dumps(listed(pipe)).encode(), digest_size=8).hexdigest()
    found = expect_ledger.entered(pipe)
    return {
        "boundary": pipe.ledger.committed(),
        "suites": suites,
        "findings": len(found),
        "stops": sum(row["severity"] == "critical" for row in found),
        "releases": len(expect_ledger.releases(pipe))
    }


def _due(path: str, said: Mapping[str, Any]) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            before = json.load(file)
        old = time.time() - os.path.getmtime(path) > EVERY
    except (OSError, ValueError):
        return True
    return any(before.get(k) != said[k] for k in ("suites", "stops", "releases")) or old and before != said


def _build(pipe: OpenPipeline, folder: str, said: Mapping[str, Any]) -> None:
    """Whole in a folder beside, then in its place, so that a reader never sees half of it."""
    from jobs.reports import data_docs as expect_docs
    from jobs.reports import suites as expect_suites  # seconds that nothing else need pay

    made = f"{folder}.{os.getpid()}"
    shutil.rmtree(made, ignore_errors=True)
    os.makedirs(made)
    try:
        pages = expect_docs.validated(list(expect_suites.suites(pipe)), made)
        for page in pages:
            _rewrite(os.path.join(made, page.path), page.name)
        _write(os.path.join(made, "index.html"), _index(pipe, pages, said))
        _write(os.path.join(made, STAMP), json.dumps(said))
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _rewrite(path: str, title: str) -> None:
    with open(path, encoding="utf-8") as file:
        page = file.read()
    _write(path, expect_pages.offline(page, title))


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _index(pipe: OpenPipeline, pages: Sequence[Any], said: Mapping[str, Any]) -> str:
    findings, released = expect_ledger.entered(pipe)[-SHOWN:][::-1], expect_ledger.releases(pipe)[::-1]
    suites = [(expect_pages.link(p.path, p.name), expect_pages.verdict(p.passed, p.asked)) for p in pages]
    held = [(subject, row["expectation"], row["severity"], row["held"])
            for subject, rows in listed(pipe).items()
            for row in rows]
    failed = [(iso(f["boundary"]), f["subject"], f["expectation"], f["observed"], f["severity"] +
               (", released" if f["released"] else "")) for f in findings]
    let = [(iso(r["boundary"]), r["subject"], r["expectation"], f"{r['by']}: {r['reason']}", iso(r["at"]))
           for r in released]
    return expect_pages.index(f"Expectations of {pipe.pipeline.name}, as of {iso(said['boundary'])}", (
        ("On a sample of the newest rows and answers", ("suite", "verdict"), suites),
        ("What failed", ("boundary", "subject", "expectation", "observed", "severity"), failed),
        ("What was let pass", ("boundary", "subject", "expectation", "by", "at"), let),
        ("What is held", ("subject", "expectation", "severity", "where"), held)))
