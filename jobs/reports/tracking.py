"""MLflow's copy of the ledger, and the only place that imports mlflow: a run for each query, one below it for each plan
in force, a step for each batch.

Written from what is committed, never while a batch runs. Metrics carry the batch's number and its commit's time, and
artifacts and tags replace those before, so writing them twice changes nothing; the tag `forebay.logged` says what is
there, and is written last.
"""
from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jobs.adapt.choice import Chooser
from jobs.adapt.statistics import Statistics
from jobs.calibrate.machine import machine
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryState
from jobs.pipeline.model import Pipeline
from jobs.reports import tracking_text
from jobs.reports.tracking_chart import chart
from jobs.reports.tracking_pages import VARIABLE, charts, experiment
from jobs.reports.tracking_view import METRICS, TAG, picture, saved
from jobs.requests import requests
from jobs.results import answers
from jobs.results.candidates import COLUMNS, CandidateRow, compared
from jobs.results.history import BatchPoint, Span, spans, weighed
from jobs.storage.lock import held
from optimizer.choice import explain as renderer
from optimizer.choice.explain_windows import described
from optimizer.errors import ForebayError, failed
from optimizer.time import iso

if TYPE_CHECKING:
    from mlflow import MlflowClient

QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_LOGGING_LEVEL": "WARNING"
}
AT_ONCE = 1000            # metrics of one call: MLflow's limit
# no traces of language models are to be looked for
KIND = {"mlflow.experimentKind": "custom_model_development"}
UNTRACKED = "untracked"
PARTS = ("mlflow", "requests", "urllib3", "sqlalchemy", "alembic", "sqlite3")      # whose errors are the store's
LONGEST = 5000            # characters of a tag that every version of MLflow takes
TABLE = "candidates.json"
DIGITS = 6                # that pages show of a number, and the ledger has more
NOTE = "mlflow.note.content"      # what pages show as the description


@dataclass(frozen=True)
class Store:
    """Where MLflow keeps runs; `artifacts` None: where its server says."""

    uri: str
    artifacts: str | None


@dataclass(frozen=True)
class Log:
    """An experiment of a store; `cost_model` is the one by which its pipeline decides."""

    client: MlflowClient
    experiment: str
    cost_model: str = ""


def store(pipeline: Pipeline) -> Store | None:
    """MLFLOW_TRACKING_URI is stronger than forebay.yml.

    Without both it is a database beside the tables. None: it is switched off.
    """
    place = os.environ.get(VARIABLE) or pipeline.tracking
    if place == "":
        return None
    return _store(place or pipeline.beside("mlflow"))


def _store(place: str) -> Store:
    if "://" not in place:
        place = os.path.abspath(place)      # MLflow takes the first part of a relative one for a host
        return Store(f"sqlite:///{os.path.join(place, 'mlflow.db')}", f"file://{os.path.join(place, 'artifacts')}")
    database = place.removeprefix("sqlite:///") if place.startswith("sqlite:///") else None
    if not database:
        return Store(place, None)
    return Store(place, f"file://{os.path.join(os.path.dirname(os.path.abspath(database)), 'artifacts')}")


def record(name: str, params: Mapping[str, Any], metrics: Mapping[str, Sequence[float]], texts: Mapping[str, str],
           figures: Mapping[str, Any]) -> dict[str, Any] | None:
    """An experiment's report as a run of `forebay/experiments`, which belongs to no pipeline; says where. None:
    MLFLOW_TRACKING_URI is empty.

    A metric's numbers are its steps."""
    place = os.environ.get(VARIABLE, os.path.join(".forebay", "mlflow"))
    if not place:
        return None
    place_of_runs = _store(place)
    log = _log(place_of_runs, experiment("experiments"), KIND)
    run = log.client.create_run(log.experiment, run_name=name).info.run_id
    for key, value in params.items():
        log.client.log_param(run, key, value)
    _numbers(log, run, metrics)
    for file, text in texts.items():
        log.client.log_text(run, text, file)
    for file, figure in figures.items():
        log.client.log_figure(run, figure, file)
    log.client.set_terminated(run)
    return {"uri": _without_password(place_of_runs.uri), "experiment": log.experiment, "run": run}


def _numbers(log: Log, run: str, metrics: Mapping[str, Sequence[float]]) -> None:
    from mlflow.entities import Metric

    now = int(time.time() * 1000)
    numbers = []
    for key, values in metrics.items():
        numbers += [Metric(key, float(value), now, step) for step, value in enumerate(values)]
    for k in range(0, len(numbers), AT_ONCE):
        log.client.log_batch(run, metrics=numbers[k:k + AT_ONCE])


def _without_password(uri: str) -> str:
    return re.sub(r"//[^/@]*@", "//", uri)


def track(pipe: OpenPipeline) -> dict[str, Any]:
    """Logs every batch that is committed and not yet logged.

    Says where (without a password), and how many batches of which query were new.
    """
    place = store(pipe.pipeline)
    if place is None:
        return {"uri": None, "experiment": None, "page": None, "queries": {}}
    queries = {}
    with held(os.path.join(pipe.pipeline.warehouse, "mlflow"), patience=60.0), _explaining(place):
        tags = {"forebay.folder": pipe.pipeline.folder, **KIND}
        log = replace(_log(place, experiment(pipe.pipeline.name), tags), cost_model=pipe.pipeline.cost_model)
        _present(log, pipe.pipeline.name)
        for query_state in requests.listed(pipe) if pipe.ledger.committed_batches(1) else []:
            report = _query(pipe, log, query_state)
            if report is not None:
                queries[query_state.name] = report
    uri = _without_password(place.uri)
    page = charts(uri, log.experiment) if uri.startswith("http") else None
    return {"uri": uri, "experiment": log.experiment, "page": page, "queries": queries}


@contextmanager
def _explaining(place: Store) -> Iterator[None]:
    """Errors of MLflow's parts, and of a disk, become one that says that nothing is lost by it."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, OSError) and type(error).__module__.split(".")[0] not in PARTS:
            raise
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        message = _without_password(first[:300])
        raise failed(
            UNTRACKED, f"MLflow at {_without_password(place.uri)} did not take what the ledger has: {message}",
            "nothing is lost: the ledger keeps it, and the next `forebay track` (in Airflow: the next try) writes it"
        ) from error


def _log(place: Store, name: str, tags: dict[str, str]) -> Log:
    for key, value in QUIET.items():
        os.environ.setdefault(key, value)
    if place.uri.startswith("sqlite:///"):
        os.makedirs(os.path.dirname(place.uri.removeprefix("sqlite:///")), exist_ok=True)
    from mlflow import MlflowClient  # five seconds of imports that nothing else pays

    client = MlflowClient(tracking_uri=place.uri)
    existing = client.get_experiment_by_name(name)
    if existing is not None and existing.lifecycle_stage != "active":
        hint = "restore it there, or set `tracking` in forebay.yml"
        raise ForebayError("deleted-experiment", f"MLflow's experiment {name!r} at {place.uri} was deleted", hint=hint,
                           exit_code=1)
    number = existing.experiment_id if existing is not None else client.create_experiment(name, place.artifacts, tags)
    return Log(client, number)


def _present(log: Log, name: str) -> None:
    """An experiment's description and its saved view, where it has none: whoever changed them keeps what they wrote."""
    there = log.client.get_experiment(log.experiment).tags
    for key, value in ((NOTE, tracking_text.of_experiment(name)), (TAG, saved(int(time.time() * 1000)))):
        if key not in there:
            log.client.set_experiment_tag(log.experiment, key, value)


def _query(pipe: OpenPipeline, log: Log, query_state: QueryState) -> dict[str, Any] | None:
    """A query's run, brought up to the last batch that answered it."""
    query_spans = spans(pipe, query_state.name)
    if not query_spans:
        return None
    ledger = str(query_spans[0].first.at)      # of another ledger of the same name the batches are others
    tags = {"forebay.kind": "query", "forebay.query": query_state.name, "forebay.ledger": ledger}
    run = _run(log, tags, query_state.name, query_spans[0].first.at)
    logged = int(run.data.tags.get("forebay.logged", -1))
    query_spans = weighed(pipe, query_state.name, query_spans, logged)
    fresh = [point for span in query_spans for point in span.points if point.batch > logged]
    if fresh:
        for number, span in enumerate(query_spans):
            if span.last.batch >= logged:      # also the one that was in force then: it may have ended
                _span(log, run.info.run_id, query_state.name, query_spans, number, logged)
        _metrics(log, run.info.run_id, fresh)
        _artifacts(pipe, log, run.info.run_id, query_state, query_spans)
    _state(log, run, query_state, query_spans)
    return {"run": run.info.run_id, "batches": len(fresh)}


def _span(log: Log, parent: str, query: str, query_spans: Sequence[Span], number: int, logged: int) -> None:
    """The run of a plan in force: what it was expected to cost, what it did, and beside which others."""
    span = query_spans[number]
    following = query_spans[number + 1] if number + 1 < len(query_spans) else None
    first, last = span.first, span.last
    tags = {
        "forebay.kind": "plan",
        "forebay.query": query,
        "mlflow.parentRunId": parent,
        "forebay.since": str(first.batch)
    }
    run = _run(log, tags, f"{query}: {span.plan.name} since {iso(first.boundary)}", first.at)
    _metrics(log, run.info.run_id, [point for point in span.points if point.batch > logged])
    _params(log, run, span)
    if "forebay.logged" not in run.data.tags:
        _describe(log, run.info.run_id, span)
    rows = compared(span, span.price_lists[0] if span.price_lists else None, query_spans)
    _tags(log, run.info.run_id, {**_table(log, run.info.run_id, rows),
                                 NOTE: tracking_text.of_plan(query, span, following, rows),
                                 **_common(log, span), "forebay.boundary": iso(last.last),
                                 "forebay.switched_from": span.switched_from or "", **_asked_by(last),
                                 "forebay.logged": str(last.batch)})
    if following is not None and run.info.status == "RUNNING":
        log.client.set_terminated(run.info.run_id, "FINISHED", last.at // 1000)


def _common(log: Log, span: Span) -> dict[str, str]:
    """By what pages group runs, and why the plan is the one that it is."""
    here = machine()
    return {"forebay.plan": span.plan.name, "forebay.reason": span.reason, "forebay.cost_model": log.cost_model,
            "forebay.machine": f"{here['cpu']}, {here['cores']} cores, {here['memory_gib']} GiB"}


def _run(log: Log, tags: Mapping[str, str], name: str, at: int) -> Any:
    """The run that has these tags, made if there is none."""
    wanted = " and ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
    existing = log.client.search_runs([log.experiment], wanted, max_results=1)
    return existing[0] if existing else log.client.create_run(log.experiment, at // 1000, dict(tags), name)


def _metrics(log: Log, run: str, points: Sequence[BatchPoint]) -> None:
    from mlflow.entities import Metric

    numbers = [Metric(METRICS[key], round(value, DIGITS), point.at // 1000, point.batch)
               for point in points for key, value in point.metrics.items()]
    for k in range(0, len(numbers), AT_ONCE):
        log.client.log_batch(run, metrics=numbers[k:k + AT_ONCE])


def _params(log: Log, run: Any, span: Span) -> None:
    """What a comparison of runs shows beside their costs; a parameter never changes.

    The comparison's first picture draws the three that come first by their names, and differ: so the price's does.
    """
    from mlflow.entities import Param

    plan, query = span.plan, span.query
    early = [query.inputs[i].alias for i, digit in enumerate(plan.digits) if digit]
    values = {"plan": plan.name, "keeping": plan.keeping, "early": ", ".join(early) or "none",
              "order": " ⋈ ".join(query.inputs[i].alias for i in plan.order), "exchange": plan.exchange,
              "layout": plan.layout, "sharing": plan.sharing,
              "levels": ", ".join(map(described, plan.kept_windows)) or "none",
              "since": iso(span.first.boundary)}
    predicted = span.first.metrics.get("predicted_s")
    if predicted is not None:
        values["decision_predicted_s"] = f"{predicted:.4g}"
    fresh = [Param(key, value) for key, value in values.items() if key not in run.data.params]
    if fresh:
        log.client.log_batch(run.info.run_id, params=fresh)


def _table(log: Log, run: str, rows: Sequence[CandidateRow]) -> dict[str, str]:
    """The candidates as a table of MLflow's, and the tag by which its pages and load_table find it.

    MLflow's log_table would append to the table of the last time, so the file that it makes is replaced.
    """
    data = [[_rounded(getattr(row, column)) for column in COLUMNS] for row in rows]
    log.client.log_text(run, json.dumps({"columns": COLUMNS, "data": data}), TABLE)
    return {"mlflow.loggedArtifacts": json.dumps([{"path": TABLE, "type": "table"}])}


def _rounded(value: Any) -> Any:
    return round(value, DIGITS) if isinstance(value, float) else value


def _describe(log: Log, run: str, span: Span) -> None:
    """The plan as it is carried out, and the decision as it was made then."""
    log.client.log_text(run, renderer.tree(span.query, span.plan) + "\n", "plan.txt")
    log.client.log_text(run, ";\n\n".join(renderer.sql(span.query, span.plan)) + ";\n", "plan.sql")
    log.client.log_text(run, span.sql.strip() + "\n", "query.sql")
    if span.decision is not None:
        row = span.decision
        listed = sorted(json.loads(row["candidates"]), key=lambda c: c["predicted_s"])
        decision: dict[str, Any] = {"boundary": iso(row["boundary"])}
        decision |= {key: row[key] for key in ("plan", "reason", "predicted_s", "best_s", "rows_seen")}
        decision |= {"corrections": json.loads(row["corrections"]), "candidates": listed}
        log.client.log_dict(run, decision, "decision.json")


def _artifacts(pipe: OpenPipeline, log: Log, run: str, query_state: QueryState, query_spans: Sequence[Span]) -> None:
    """As of now: the picture, the candidates, the switches, and for a query in force what its next boundary would be
    decided by.
    """
    client, now = log.client, query_spans[-1]
    rows = compared(now, now.price_lists[-1] if now.price_lists else None, query_spans)
    _tags(log, run, {**_picture(log, run, query_state.name, query_spans), **_table(log, run, rows)})
    client.log_text(run, query_state.sql.strip() + "\n", "query.sql")
    client.log_dict(run, {"spans": [_span_document(span) for span in query_spans]}, "switches.json")
    if query_state.is_active:
        document = answers.explain(Chooser(pipe, Statistics(pipe)), query_state.name)
        client.log_dict(run, document["statistics"], "explain/statistics.json")
        client.log_dict(run, {"candidates": document["candidates"]}, "explain/candidates.json")
        client.log_text(run, f"{document['chosen']}: {document['why']}\n\n{document['tree']}\n", "explain/plan.txt")
        client.log_text(run, ";\n\n".join(document["sql"]) + ";\n", "explain/plan.sql")


def _picture(log: Log, run: str, query: str, query_spans: Sequence[Span]) -> dict[str, str]:
    """As a file, and under the name of an image that pages show among the charts; the tag says that there is one.

    MLflow's log_image would add an image each time.
    """
    figure = chart(query, query_spans)
    image = f"{picture(query).replace('/', '~')}+step+0+timestamp+0+{uuid.UUID(int=0)}"
    with tempfile.TemporaryDirectory(prefix="forebay-track-") as folder:
        os.mkdir(os.path.join(folder, "images"))
        figure.savefig(os.path.join(folder, "cost.png"))
        figure.savefig(os.path.join(folder, "images", f"{image}+compressed.webp"))
        shutil.copy(os.path.join(folder, "cost.png"), os.path.join(folder, "images", f"{image}.png"))
        log.client.log_artifacts(run, folder)
    return {"mlflow.loggedImages": "True"}


def _span_document(span: Span) -> dict[str, Any]:
    return {
        "plan": span.plan.name,
        "switched_from": span.switched_from,
        "reason": span.reason,
        "since": iso(span.first.boundary),
        "until": iso(span.points[-1].last),
        "batches": len(span.points),
        "measured_s": span.median("measured_s"),
        "predicted_s": span.median("predicted_s")
    }


def _state(log: Log, run: Any, query_state: QueryState, query_spans: Sequence[Span]) -> None:
    now = query_spans[-1]
    regret = sum(point.metrics.get("regret_s", 0.0) for span in query_spans for point in span.points)
    facts = {"boundary": iso(now.last.last), "state": query_state.status, "pinned": query_state.pin or "",
             "switches": str(len(query_spans) - 1), "regret_s": f"{regret:.3f}", "logged": str(now.last.batch)}
    note = tracking_text.of_query(query_state, query_spans, regret, run.info.run_id)
    _tags(log, run.info.run_id, {NOTE: note, **_common(log, now), **_asked_by(now.last),
                                 **{f"forebay.{name}": value for name, value in facts.items()}})
    wanted = {"deleted": "FINISHED", "failed": "FAILED"}.get(query_state.status, "RUNNING")
    if run.info.status != wanted:
        log.client.update_run(run.info.run_id, wanted)


def _asked_by(point: BatchPoint) -> dict[str, str]:
    """What made the last batch run."""
    trigger, run = point.asked_by
    return {"forebay.trigger": trigger, "forebay.dag_run": run}


def _tags(log: Log, run: str, tags: Mapping[str, str]) -> None:
    from mlflow.entities import RunTag

    log.client.log_batch(run, tags=[RunTag(key, value[:LONGEST]) for key, value in tags.items()])


__all__: Sequence[str] = ("VARIABLE", "Log", "Store", "record", "store", "track")
