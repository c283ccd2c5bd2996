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
    descriptions = {**bench.names(), **papers.names()}
    if names == ["list"]:
        return descriptions
    for name in names:
        if name not in descriptions:
            raise ForebayError("unknown-experiment", f"there is no experiment {name!r}",
                               hint=f"there are {', '.join(descriptions)}")
    return {
        name: _measured(
            bench.run(name, quick) if name in bench.names() else papers.document([name], quick)["experiments"][name])
        for name in names
    }


def _measured(report: Mapping[str, Any]) -> dict[str, Any]:
    """Of a figure of the papers its text and its run in MLflow: its rows may be thousands. A comparison is small."""
    kept_keys = {k: v for k, v in report.items() if k in ("text", "logged")} if "text" in report else report
    log.info("%s", kept_keys.get("text", kept_keys))
    return dict(json.loads(json.dumps(kept_keys, default=str)))
