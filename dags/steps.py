"""The tasks: each calls one function of jobs.commands.scheduled, which it imports when it runs, since a file that is
parsed every minute must not load engines."""
from __future__ import annotations

from typing import Any

from airflow.sdk import Asset, AssetAlias, get_current_context, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from dags.outcomes import translated_errors


@task(show_return_value_in_logs=False)
def ingest(folder: str) -> dict[str, Any]:
    """New input into the stream tables, once."""
    from jobs.commands import scheduled

    with translated_errors():
        return scheduled.ingest(folder)


@task(show_return_value_in_logs=False)
def expectations(folder: str) -> dict[str, Any]:
    """What fails of the input that waits, and where the data docs are; a critical one stops its batch, not this."""
    from jobs.commands import scheduled

    with translated_errors():
        return scheduled.expectations(folder)


@task(show_return_value_in_logs=False)
def batches(folder: str) -> dict[str, Any]:
    """Every boundary that is complete, however many have come together."""
    from jobs.commands import scheduled

    context = get_current_context()
    given, run = context["params"], context["dag_run"]
    with translated_errors():
        return scheduled.batches(folder, given["to"], given["flush"], given["boundaries"],
                                 f"{getattr(run.run_type, 'value', run.run_type)} {run.run_id}")


@task(show_return_value_in_logs=False)
def publish(folder: str, results: Asset, tables: AssetAlias) -> dict[str, Any]:
    """Asset events that others' DAGs can follow: boundary, plan and Delta version of every query.

    None where no boundary came.
    """
    from jobs.commands import scheduled

    context = get_current_context()
    before = context["inlet_events"][results]
    last = str((before[-1].extra or {}).get("boundary", "")) if len(before) else ""
    with translated_errors():
        publication = scheduled.published(folder, last)
    if not publication:
        raise AirflowSkipException("no boundary was completed since the last event")
    context["outlet_events"][results].extra = publication
    for event in publication["queries"].values():
        context["outlet_events"][tables].add(Asset(event["uri"]), {k: v for k, v in event.items() if k != "uri"})
    return publication


@task(retries=0, trigger_rule="none_failed", show_return_value_in_logs=False)
def failures(folder: str) -> dict[str, Any]:
    """Red while a query is failed; the others' answers are published before."""
    from jobs.commands import scheduled

    with translated_errors():
        return scheduled.failures(folder)


@task(show_return_value_in_logs=False)
def release(folder: str) -> dict[str, Any]:
    """What the form says may pass, in the name of who has asked for it."""
    from jobs.commands import scheduled

    context = get_current_context()
    given, run = context["params"], context["dag_run"]
    with translated_errors():
        return scheduled.release(folder, given["boundary"], given["until"], given["expectation"], given["reason"],
                                 getattr(run, "triggering_user_name", None))


@task(show_return_value_in_logs=False)
def statistics(folder: str) -> dict[str, Any]:
    """What is known of each stream and join, looked at anew where that is due."""
    from jobs.commands import scheduled

    with translated_errors():
        return scheduled.statistics(folder)


@task(show_return_value_in_logs=False)
def optimize(folder: str) -> dict[str, Any]:
    """Every active query's plans priced by what is known now; what is decided is entered as requests."""
    from jobs.commands import scheduled

    with translated_errors():
        return scheduled.optimize(folder)


@task(show_return_value_in_logs=False)
def track(folder: str) -> dict[str, Any]:
    """The plans in force and the switches so far, also into MLflow."""
    from jobs.commands import scheduled

    with translated_errors():
        return scheduled.track(folder)


@task(show_return_value_in_logs=False)
def change(folder: str) -> dict[str, Any]:
    """What the form says about a query, from the boundary on that is answered."""
    from jobs.commands import scheduled

    given = get_current_context()["params"]
    with translated_errors():
        return scheduled.change(folder, given["action"], given["query"], given["sql"], given["plan"], given["replace"],
                                given["new_history"])


@task(show_return_value_in_logs=False)
def maintain(folder: str) -> dict[str, Any]:
    """The ledger tidied, rows that `keep` lets go taken out, files that nobody reads deleted."""
    from jobs.commands import scheduled

    with translated_errors():
        return scheduled.maintain(folder)


@task(show_return_value_in_logs=False)
def measure() -> dict[str, Any]:
    """Comparisons with other systems and the papers' figures, by name."""
    from jobs.papers import scheduled as comparisons

    given = get_current_context()["params"]
    with translated_errors():
        return comparisons.experiments(given["names"], given["quick"])


@task(show_return_value_in_logs=False)
def broken(reason: str) -> None:
    """Says why a pipeline folder has no DAGs."""
    raise AirflowFailException(reason)
