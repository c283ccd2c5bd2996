"""`forebay plan`, `apply` and `check`: what follows from a pipeline's folder and what it is expected to take, entering
it, and whether all in the folder can be meant.

Only `apply` changes anything, and none of them runs a boundary.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from expectations.great import GreatExpectation
from jobs.adapt.choice import Chooser
from jobs.adapt.statistics import Statistics
from jobs.batch.works import parsed
from jobs.expectations import by_great
from jobs.ingest.sources import files
from jobs.ledger.addresses import columns_in
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import created, queries_at
from jobs.maintenance import repair
from jobs.pipeline import declared
from jobs.pipeline.model import Pipeline, Source
from jobs.pipeline.suites import custom_files
from jobs.requests import folder, requests
from jobs.requests.folder import FolderChange, FolderPlan
from jobs.results import repeats
from jobs.results.repeats import Repeated
from jobs.storage import tables
from optimizer.choice.decide import Past
from optimizer.errors import ForebayError
from optimizer.expression.types import Type


def plan(chooser: Chooser) -> dict[str, Any]:
    """What `apply` would do now, in INTERFACE's shape; instants in microseconds."""
    with repair.explaining(chooser.pipe):
        return _document(chooser, folder.plan(chooser.pipe))


def apply(chooser: Chooser, adopt: Collection[str] = (), delete_others: bool = False) -> dict[str, Any]:
    """Makes the queries of the files those in force, by one request."""
    with repair.explaining(chooser.pipe):
        return _document(chooser, folder.apply(chooser.pipe, adopt, delete_others))


def check(pipe: OpenPipeline) -> dict[str, Any]:
    """Refuses what cannot be meant in forebay.yml, queries/ and expectations/, as `run` or `apply` would; says what was
    looked at, and notes on sources where nothing is.
    """
    with repair.explaining(pipe):
        planned = folder.plan(pipe)
        return {
            "pipeline": pipe.pipeline.name,
            "streams": sorted(pipe.pipeline.streams),
            "relations": sorted(pipe.pipeline.relations),
            "queries": sorted(requests.query_files(pipe.pipeline.folder)),
            "expectations": _check_expectations(pipe, planned),
            "notes": _notes(pipe.pipeline) + _repeats_in_words(pipe, planned)
        }


def _document(chooser: Chooser, planned: FolderPlan) -> dict[str, Any]:
    changes = []
    for change in planned.changes:
        plan_name, seconds = _price(chooser, change)
        repeated = _repeats(chooser.statistics, change)
        changes.append({
            "query": change.request.query,
            "action": change.action,
            "effective": change.request.effective,
            "predicted_s": seconds,
            "plan": plan_name,
            "before": change.before,
            **({"repeats": [one.document() for one in repeated]} if repeated else {})
        })
    return {"changes": changes, "other": list(planned.other), "adopted": list(planned.adopted)}


def _price(chooser: Chooser, change: FolderChange) -> tuple[str | None, float | None]:
    """The plan that `forebay explain` would say of the text, and its seconds at a boundary; None while nothing is known
    of its streams. A price only informs: what keeps it from being made keeps nobody from applying.
    """
    if change.action == "delete":
        return None, None
    query_state = created(change.request)
    try:
        query = parsed(query_state.sql, chooser.pipe.catalog)
        decision, observed = chooser.considered(query, query_state, None, None, Past())
    except (ForebayError, *repair.BROKEN):
        return None, None
    return (decision.plan.name, decision.predicted) if observed.weight > 0 else (None, None)


def _repeats(statistics: Statistics, change: FolderChange) -> list[Repeated]:
    """Where the text's join counts rows several times. It only informs, as a price does."""
    if change.action == "delete":
        return []
    try:
        return repeats.repeated(statistics, parsed(created(change.request).sql, statistics.pipe.catalog))
    except (ForebayError, *repair.BROKEN):
        return []


def _repeats_in_words(pipe: OpenPipeline, planned: FolderPlan) -> list[str]:
    statistics = Statistics(pipe)
    return [f"query {change.request.query}: {one.message}" for change in planned.changes
            for one in _repeats(statistics, change)]


def _check_expectations(pipe: OpenPipeline, planned: FolderPlan) -> int:
    """Of every file; those of queries are held against the columns that these have once the files are applied."""
    states = queries_at(pipe.ledger.all_changes())
    columns_by_query: dict[str, Mapping[str, Type]] = {
        name: dict(columns_in(state.columns)) for name, state in states.items() if state.status != "deleted"}
    for change in planned.changes:
        if change.action == "delete":
            columns_by_query.pop(change.request.query, None)
        else:
            columns_by_query[change.request.query] = dict(columns_in(change.request.columns))
    count = 0
    expectations = declared.DeclaredExpectations(pipe.pipeline)
    for given in expectations.given:
        count += len(given.entries)
        if given.subject == declared.QUERY and given.name in columns_by_query:
            declared.checked(given, columns_by_query[given.name])
        elif given.subject == declared.QUERY and given.name not in states:      # of one that ended nothing is judged
            raise declared.unknown(given, columns_by_query)
    return count + _check_suites(expectations, columns_by_query, states.keys())


def _check_suites(expectations: declared.DeclaredExpectations, columns_by_query: Mapping[str, Mapping[str, Type]],
                  ever: Collection[str]) -> int:
    """Suites of Great Expectations; what itself has to judge is shown to it, which takes seconds."""
    count, of_all = 0, list[GreatExpectation]()
    for suite in expectations.suites:
        count += len(suite.entries)
        if suite.subject == declared.STREAM:
            of_all += expectations.suite_of_stream(suite.of)
        elif suite.of in columns_by_query:
            of_all += expectations.suite_of_query(suite.of, columns_by_query[suite.of])
        elif suite.of not in ever:
            raise declared.unknown_of_suite(suite, columns_by_query)
    by_great.check(of_all, custom_files(expectations.folder))
    return count


def _notes(pipeline: Pipeline) -> list[str]:
    """The streams and relations whose source matches nothing, or cannot be reached."""
    sources: dict[str, Source | None] = {f"stream {name}": one.source for name, one in pipeline.streams.items()}
    sources.update({f"relation {name}": one.source for name, one in pipeline.relations.items()})
    notes = []
    for subject, source in sources.items():
        try:
            lacking = _lacking(pipeline, source) if source is not None else None
        except ForebayError as error:
            lacking = str(error)
        if lacking is not None:
            notes.append(f"{subject}: {lacking}")
    return notes


def _lacking(pipeline: Pipeline, source: Source) -> str | None:
    """What is not there; of a topic nobody is asked."""
    if source.kind == "kafka":
        return None
    if source.kind == "delta":
        return None if tables.exists(source.path) else f"there is no table {source.path}"
    return None if files.matching(source.path, pipeline.folder) else f"no file matches {source.path}"
