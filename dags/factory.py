"""From pipeline folders to DAGs: which tasks in which order, when, with which forms; what a task does is in
jobs.commands.scheduled, and no engine is imported here."""
from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

from airflow.sdk import DAG, Asset, AssetAlias, Param

from dags import steps
from dags.links import linked
from jobs.pipeline.folders import PipelineFolder, found, pages, uri
from jobs.pipeline.model import Pipeline
from optimizer.names import NAME

# `on`: what holds a pipeline runs in a pool of its own, which must be there (docs/airflow.md)
POOLS = "FOREBAY_POOLS"
INSTANT = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?$"
COMMON: dict[str, Any] = {
    "start_date": datetime(2025, 1, 1, tzinfo=timezone.utc),
    "catchup": False,
    "max_active_runs": 1
}
CRASHES = {
    "retries": 4,
    "retry_delay": timedelta(seconds=5),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=5)
}


def every(setting: str | None = None) -> Iterator[DAG]:
    """All DAGs of all folders; a folder that cannot be read is one DAG that says so."""
    for one in found(setting):
        yield from (_broken(one),) if one.pipeline is None else _pipeline(one.pipeline)
    yield _experiments()


def _pipeline(pipeline: Pipeline) -> Iterator[DAG]:
    results = Asset(f"forebay__{pipeline.name}", uri=f"x-forebay://{pipeline.name}")
    yield _batches(pipeline, results)
    yield _adapt(pipeline, results)
    yield _queries(pipeline)
    yield _release(pipeline)
    yield _maintenance(pipeline)


def _batches(pipeline: Pipeline, results: Asset) -> DAG:
    tables = AssetAlias(f"forebay__{pipeline.name}__tables")
    description = ("Takes new input and looks at it, runs every boundary that is complete, tells who follows the "
                   "results.")
    arguments = {**CRASHES, **_pool(pipeline)}
    with _dag(pipeline, "", description, _schedule(pipeline), params=_run_form(), default_args=arguments) as dag:
        ingest, judge = steps.ingest(pipeline.folder), steps.expectations(pipeline.folder)
        run = steps.batches(pipeline.folder)
        publish = steps.publish.override(inlets=[results], outlets=[results, tables])(pipeline.folder, results, tables)
        ingest >> linked(judge, pipeline.name) >> linked(run, pipeline.name) >> publish
        publish >> steps.failures(pipeline.folder)
    return dag


def _adapt(pipeline: Pipeline, results: Asset) -> DAG:
    """Plans and query groups are decided after each run that published something; it holds no pipeline, so no pool."""
    description = "Takes statistics where they are due, decides plans and query groups; costs and switches into MLflow."
    with _dag(pipeline, "adapt", description, [results], default_args=CRASHES) as dag:
        statistics, optimize = steps.statistics(pipeline.folder), steps.optimize(pipeline.folder)
        statistics >> optimize >> linked(steps.track(pipeline.folder), pipeline.name)
    return dag


def _queries(pipeline: Pipeline) -> DAG:
    """A request never waits for a running batch, so these have no pool and may overlap."""
    with _dag(pipeline, "queries", "Creates, deletes, pauses, resumes, pins or unpins a query, from one boundary on.",
              None, params=_query_form(), default_args=CRASHES, max_active_runs=4) as dag:
        steps.change(pipeline.folder)
    return dag


def _release(pipeline: Pipeline) -> DAG:
    """It waits for nobody either."""
    description = "Lets a boundary, or a range of them, pass that a critical expectation has stopped."
    with _dag(pipeline, "release", description, None, params=_release_form(), default_args=CRASHES) as dag:
        steps.release(pipeline.folder)
    return dag


def _maintenance(pipeline: Pipeline) -> DAG:
    arguments = {**CRASHES, **_pool(pipeline)}
    with _dag(pipeline, "maintenance", "Tidies the tables of a pipeline.", "@daily", default_args=arguments) as dag:
        steps.maintain(pipeline.folder)
    return dag


def _experiments() -> DAG:
    items = {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,39}$"}
    names = Param(["list"], type="array", minItems=1, maxItems=20, items=items, title="Names",
                  description="Which comparisons and figures to run, one a line; `list` says what there is.")
    params = {"names": names, "quick": Param(True, type="boolean", title="Quick", description="Smaller and fewer.")}
    description = "Comparisons with other systems, and the papers' figures."
    with DAG("forebay__experiments", description=description, schedule=None, tags=["forebay"], params=params,
             **COMMON) as dag:
        steps.measure()
    return dag


def _broken(one: PipelineFolder) -> DAG:
    with DAG(
            f"forebay__{one.name}", description=f"broken: {one.reason}"[:1000], schedule="@hourly",
            tags=["forebay", "broken"],
            doc_md=f"This pipeline cannot be read:\n\n    {one.reason}\n\nIts DAGs are back as soon as that is mended.",
            **COMMON) as dag:
        steps.broken(one.reason)
    return dag


def _dag(pipeline: Pipeline, part: str, description: str, schedule: Any, **options: Any) -> DAG:
    name = f"forebay__{pipeline.name}" + (f"__{part}" if part else "")
    links = " · ".join(f"[{title}]({address})" for title, address in pages(pipeline.name).items())
    doc = f"{description}\n\n{links}\n\nFolder `{pipeline.folder}`, warehouse `{pipeline.warehouse}`."
    return DAG(name, description=description, doc_md=doc, schedule=schedule, tags=["forebay", pipeline.name],
               **{**COMMON, **options})


def _schedule(pipeline: Pipeline) -> Any:
    given = pipeline.schedule
    if given is None:
        return None
    if given.kind == "continuous":
        return "@continuous"
    return given.value if given.kind == "cron" else [Asset(uri(given.value, pipeline.folder))]


def _pool(pipeline: Pipeline) -> dict[str, Any]:
    return {"pool": f"forebay__{pipeline.name}"} if os.environ.get(POOLS) == "on" else {}


def _run_form() -> dict[str, Param]:
    return {
        "to": Param(None, type=["null", "string"], pattern=INSTANT, title="Up to",
                    description="Stop at this boundary, as 2025-01-01T10:00:00Z; empty: no limit."),
        "flush": Param(False, type="boolean", title="Flush",
                       description="Treat the input as ended: run up to the first boundary after the last row."),
        "boundaries": Param(None, type=["null", "integer"], minimum=1, title="Boundaries",
                            description="At most so many; empty: all that are complete.")
    }


def _release_form() -> dict[str, Param]:
    return {
        "boundary": Param("2025-01-01T10:00:00Z", type="string", pattern=INSTANT, title="Boundary",
                          description="The one that is stopped: the error and the data docs name it."),
        "until": Param(None, type=["null", "string"], pattern=INSTANT, title="Until",
                       description="Also whatever will stop a boundary up to this one; empty: only that one."),
        "expectation": Param(None, type=["null", "string"], maxLength=1000, title="Expectation",
                             description="Only this one, as `unique(order_id)` or `unique`; empty: all of them."),
        "reason": Param("because …", type="string", minLength=1, maxLength=1000, title="Reason",
                        description="Why it may pass; the ledger keeps it with your name.")
    }


def _query_form() -> dict[str, Param]:
    actions = ["create", "delete", "pause", "resume", "pin", "unpin"]
    return {
        "action": Param("create", type="string", enum=actions, title="Action"),
        "query": Param("my_query", type="string", pattern=f"^{NAME}$", title="Query",
                       description="Its name: a letter or _, then up to 63 letters, digits and _."),
        "sql": Param(None, type=["null", "string"], maxLength=100_000, format="multiline", title="SQL",
                     description="For create: SELECT … FROM stream AS s [WINDOW 1 HOUR] …"),
        "plan": Param(None, type=["null", "string"],
                      pattern=r"^(LAP|EAP[01]{1,16}) (recompute|running|retract|expire)$", title="Plan",
                      description="For pin: a plan's name, as EAP10 expire; `forebay explain` lists them."),
        "replace": Param(False, type="boolean", title="Replace",
                         description="For create: replace a query of that name."),
        "new_history": Param(False, type="boolean", title="New history",
                             description="For create with replace: answers so far move to results/NAME.before-TIME, "
                                         "so that columns may change their types.")
    }
