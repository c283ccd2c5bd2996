"""Airflow's own executor for one machine, whose scheduler ends when one of its workers was killed; whoever keeps the
scheduler starts it anew.

A worker that waits for work holds the lock of the queue that all workers read: killed, it takes the lock with it, and
nothing would ever start again. A new scheduler has a new queue, and takes up what the old one left.
"""
from __future__ import annotations

import os

from airflow.executors.local_executor import LocalExecutor


class KeptExecutor(LocalExecutor):
    """To be run under a keeper only (infra.up, a container's restart policy)."""

    def _check_workers(self) -> None:
        if any(not worker.is_alive() and (worker.exitcode or 0) < 0 for worker in self.workers.values()):
            self.log.error("a worker was killed; the scheduler ends, to be started anew")
            os._exit(1)
        super()._check_workers()
