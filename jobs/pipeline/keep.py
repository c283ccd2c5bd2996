"""Whether a query's windows reach no further back than `keep` lets rows stay; nothing is taken out here."""
from __future__ import annotations

from jobs.pipeline.model import Pipeline
from optimizer.errors import ForebayError
from optimizer.query.model import Query


def check(pipeline: Pipeline, query: Query) -> None:
    """Refuses a query whose windows reach further back than the rows of their streams stay."""
    for i in query.inputs:
        keep = pipeline.streams[i.source].keep if i.window is not None else None
        if keep is None or i.window is None:
            continue
        if i.window.kind == "landmark":
            raise ForebayError("rows-leave",
                               f"[WINDOW UNTIL NOW] counts all rows of {i.source}, which stay only for its `keep`",
                               hint=f"take `keep` of {i.source} out of forebay.yml, or give a range")
        if i.window.range > keep:
            raise ForebayError("rows-leave", f"the window on {i.source} is longer than its rows stay",
                               hint=f"raise `keep` of {i.source} in forebay.yml, or shorten the range")
