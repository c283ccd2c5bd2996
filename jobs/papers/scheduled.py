"""What the DAG of comparisons and figures does: each by its name."""
from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from jobs.papers import bench
from jobs.papers import experiments as papers
from optimizer.errors import ForebayError

log = logging.getLogger("forebay")


def experiments(names: list[str], quick: bool = True) -> dict[str, Any]:
    """Comparisons with other systems and the papers' figures, by name.

    `list` says what there is. All names are known before the first begins.
    """
    comparisons = {**bench.names(), **papers.names()}
    if names == ["list"]:
        return comparisons
    for name in names:
        if name not in comparisons:
            raise ForebayError("unknown-experiment", f"there is no experiment {name!r}",
                               hint=f"there are {', '.join(comparisons)}")
    return {
        name: _measured(
            bench.run(name, quick) if name in bench.names() else papers.document([name], quick)["experiments"][name])
        for name in names
    }


def _measured(report: Mapping[str, Any]) -> dict[str, Any]:
    """Of a figure of the papers its text and its run in MLflow: its rows may be thousands. A comparison is small."""
    shown = {k: v for k, v in report.items() if k in ("text", "logged")} if "text" in report else report
    log.info("%s", shown.get("text", shown))
    return dict(json.loads(json.dumps(shown, default=str)))
