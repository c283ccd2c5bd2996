"""Buttons on a task's page that lead to what its run made: data docs and MLflow's charts, by way of infra.pages.

Without FOREBAY_PAGES there are none.
"""
from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperatorLink

from jobs.pipeline.folders import pages


class Page(BaseOperatorLink):
    """The same address for every run: what is there is the newest."""

    def __init__(self, name: str, address: str) -> None:
        self._name, self._address = name, address

    @property
    def name(self) -> str:
        return self._name

    @property
    def xcom_key(self) -> str:
        return "_link_" + self._name.lower().replace(" ", "_")

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return self._address


def linked(task: Any, pipeline: str) -> Any:
    """The task with a button for each page."""
    task.operator.operator_extra_links = tuple(Page(name, address) for name, address in pages(pipeline).items())
    return task
