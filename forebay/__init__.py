"""`import forebay`: the thin front.

It opens a pipeline folder and passes each wish to one function of `jobs`; it decides and computes nothing.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optimizer.errors import ForebayError

if TYPE_CHECKING:
    from collections.abc import Callable

    from forebay.pipeline import Pipeline

__all__ = ["ForebayError", "Pipeline", "open"]


def open(folder: str = ".", engine: str | None = None,  # noqa: A001 (the name users expect: forebay.open)
         by_size: Callable[[str], None] | None = None) -> Pipeline:
    """The pipeline in a folder with a forebay.yml. `engine` forces a lowering: `tasks` or `jvm`.

    With `by_size=print` small work is done in this process, without Spark, and what is done where is printed.
    """
    from forebay.pipeline import Pipeline  # a second of imports that `forebay --help` and `init` need not pay

    return Pipeline(folder, engine, by_size)


def __getattr__(name: str) -> Any:
    if name == "Pipeline":
        from forebay.pipeline import Pipeline

        return Pipeline
    raise AttributeError(f"module 'forebay' has no attribute {name!r}")
