"""Where the pipelines of a schedule are: a setting names folders, each is read into a pipeline or into the reason why
it cannot be.

Nothing else is touched.
"""
from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from jobs.pipeline.config import FILE, load, located
from jobs.pipeline.model import Pipeline
from optimizer.errors import ForebayError

PAGES = "FOREBAY_PAGES"              # the address of infra.pages, as browsers reach it
SETTING = "FOREBAY_PIPELINES"       # folders, separated like those of PATH; each is a pipeline, or holds pipelines


@dataclass(frozen=True)
class PipelineFolder:
    """A folder with a forebay.yml; `pipeline` None: it is broken, and `reason` says why."""

    name: str
    folder: str
    pipeline: Pipeline | None
    reason: str = ""


def found(setting: str | None = None) -> list[PipelineFolder]:
    """Every pipeline that is named, in order; of two with one name the second is broken."""
    pipelines, folder_of = [], dict[str, str]()
    for folder in _folders(os.environ.get(SETTING, "") if setting is None else setting):
        pipeline = _read(folder)
        name = pipeline.name
        if name in folder_of:
            reason = f"{folder_of[name]} has the same name, {name!r}; give one of them another name in its {FILE}"
            number = 2
            while f"{name}.{number}" in folder_of:
                number += 1
            pipeline = replace(pipeline, name=f"{name}.{number}", pipeline=None, reason=reason)
        folder_of[pipeline.name] = pipeline.folder
        pipelines.append(pipeline)
    return pipelines


def uri(place: str, folder: str) -> str:
    """A table's place as schedulers name it: `file:///…`, or its URI."""
    path = located(place, folder)
    return path if "://" in path else f"file://{path}"


def pages(pipeline: str) -> dict[str, str]:
    """Titles and addresses of what infra.pages shows of a pipeline; none where its address is not configured."""
    base = os.environ.get(PAGES, "").rstrip("/")
    if not base:
        return {}
    return {"Pipeline": f"{base}/{pipeline}/", "Data docs": f"{base}/{pipeline}/docs/index.html",
            "Costs in MLflow": f"{base}/{pipeline}/mlflow"}


def _folders(setting: str) -> Iterator[str]:
    parts = [part for part in setting.split(os.pathsep) if part.strip()]
    for part in dict.fromkeys(os.path.abspath(os.path.expanduser(part)) for part in parts):
        if os.path.exists(os.path.join(part, FILE)):
            yield part
            continue
        inner = sorted(os.listdir(part)) if os.path.isdir(part) else []
        within = [os.path.join(part, name) for name in inner if os.path.exists(os.path.join(part, name, FILE))]
        # a folder that is not there, or empty, is said to have no forebay.yml
        yield from within if inner else [part]


def _read(folder: str) -> PipelineFolder:
    try:
        pipeline = load(folder)
        return PipelineFolder(pipeline.name, folder, pipeline)
    except ForebayError as error:
        place = f", line {error.line}" if error.line else ""
        hint = f"; {error.hint}" if error.hint else ""
        reason = f"{os.path.join(folder, FILE)}{place}: {error.message}{hint}"
        # The name of a broken pipeline cannot be read.
        name = re.sub(r"\W", "_", os.path.basename(folder), flags=re.ASCII)[:64] or "pipeline"
        return PipelineFolder(name, folder, None, reason)
