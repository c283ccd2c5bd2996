"""`import forebay`: the thin front in Python. It opens a pipeline folder and passes each wish to one function of `jobs`; it decides and computes nothing."""
from __future__ import annotations

from typing import Any

from forebay.pipeline import Pipeline
from optimizer.errors import ForebayError

__all__ = ["ForebayError", "Pipeline", "open"]


def open(folder: str = ".", engine: str | None = None, **spark: Any) -> Pipeline:      # noqa: A001 (the name users expect: forebay.open)
    """The pipeline in a folder with a forebay.yml. `engine` forces a lowering: `tasks` or `jvm`."""
    return Pipeline(folder, engine)
