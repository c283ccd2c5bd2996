"""`forebay adapt`: statistics, then decisions; the same as the first two tasks of a pipeline's DAG `…__adapt`.

It holds no lock. Whatever ends it in the middle, nothing is lost: the next one does what is missing.
"""
from __future__ import annotations

from typing import Any

from jobs.adapt import looks
from jobs.adapt.choice import Chooser
from jobs.adapt.sharing import Sharer
from jobs.adapt.statistics import Statistics
from jobs.commands import optimize as deciding
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.results import figures


def adapt(pipe: OpenPipeline) -> dict[str, Any]:
    """What is known, looked at anew where that is due, and what was decided by it."""
    return {"statistics": statistics(pipe), "decisions": optimize(pipe)}


def statistics(pipe: OpenPipeline) -> dict[str, Any]:
    """What is known of each stream and query, after a look at the stream tables where that is due."""
    known = Statistics(pipe)
    return {**looks.look(known).document(), **figures.document(known)}


def optimize(pipe: OpenPipeline) -> list[dict[str, Any]]:
    """Decides on plans and query groups, and enters what is to change as requests."""
    return deciding.optimize(Chooser(pipe, Statistics(pipe)), Sharer(pipe))
