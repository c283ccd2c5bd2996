"""Great Expectations' Data Docs of suites and the rows of a boundary: real expectations, validated in a context that
stays, so that its users find suites and results there.

Great Expectations takes seconds to import, so this is loaded only where documents are asked for. What it is given is
all it knows: no table, no ledger.
"""
from __future__ import annotations

import glob
import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from expectations.great import GreatExpectation
from jobs.expectations import great
from jobs.expectations.great import gx, gxe
from jobs.storage import disk

SEVERITIES = {"row": "critical"}
SOURCE = "forebay"       # the data source of the rows that are shown
CONTEXT = "gx"           # the folder that Great Expectations makes of a project
RESULTS = 5              # of a suite that stay in the context, the newest ones


@dataclass(frozen=True)
class SuiteExpectation:
    """One expectation of ours in Great Expectations' words."""

    kind: str
    arguments: Mapping[str, Any]
    severity: str
    note: str


@dataclass(frozen=True)
class Suite:
    """A subject's expectations and the rows they are shown on; `hidden`: only verdicts may be shown, no values."""

    name: str
    rows: pa.Table
    expectations: tuple[SuiteExpectation | GreatExpectation, ...]
    hidden: bool = False


@dataclass(frozen=True)
class SuitePage:
    """A validated suite: `path` is its page's, relative to the folder; `failing` are the places of those that do not
    hold.
    """

    name: str
    path: str
    passed: int
    expected: int
    failing: tuple[int, ...] = ()


def validated(suites: Sequence[Suite], folder: str, place: str) -> list[SuitePage]:
    """Validates every suite in the context below `place`, and leaves its pages, as Great Expectations renders them, in
    the folder.
    """
    with disk.writing(place):
        os.makedirs(place, exist_ok=True)
    context: Any = gx.get_context(mode="file", project_root_dir=place)
    context.variables.progress_bars = {"globally": False}
    source = context.data_sources.add_or_update_pandas(SOURCE)
    _forget(context, {suite.name for suite in suites})
    failing = [(suite, _failing(context, source, suite)) for suite in suites]
    for suite in suites:
        _prune(os.path.join(place, CONTEXT, "uncommitted", "validations", suite.name))
    site = os.path.join(place, CONTEXT, "uncommitted", "data_docs", "local_site")
    shutil.rmtree(site, ignore_errors=True)
    context.build_data_docs()
    return [_page(site, folder, suite, places) for suite, places in failing]


def _forget(context: Any, names: set[str]) -> None:
    """Suites that were shown here and are no more; what somebody else has put into the context stays."""
    shown = {definition.name for definition in context.validation_definitions.all()
             if definition.data_source.name == SOURCE}
    for name in shown - names:
        context.validation_definitions.delete(name)
        context.suites.delete(name)


def _failing(context: Any, source: Any, suite: Suite) -> tuple[int, ...]:
    """The places of the expectations that do not hold."""
    batch = source.add_dataframe_asset(suite.name).add_batch_definition_whole_dataframe("boundary")
    expectations = [great.object_of(e, n) if isinstance(e, GreatExpectation) else _object(e, n)
                    for n, e in enumerate(suite.expectations)]
    of_context = context.suites.add_or_update(gx.ExpectationSuite(name=suite.name, expectations=expectations))
    definition = context.validation_definitions.add_or_update(
        gx.ValidationDefinition(name=suite.name, data=batch, suite=of_context))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = definition.run(batch_parameters={"dataframe": great.frame(suite.rows)},
                                result_format="BOOLEAN_ONLY" if suite.hidden else "BASIC")
    failed = [result.expectation_config.meta[great.NUMBER] for result in report.results if not result.success]
    return tuple(sorted(failed))


def _object(e: SuiteExpectation, number: int) -> Any:
    # the class of `expect_x_y` is ExpectXY
    class_name = "".join(part[:1].upper() + part[1:] for part in e.kind.split("_"))
    severity = SEVERITIES.get(e.severity, e.severity)
    return getattr(gxe, class_name)(**e.arguments, severity=severity, notes=e.note, meta={great.NUMBER: number})


def _prune(folder: str) -> None:
    """Results are files of runs, by the time of each; only the newest stay."""
    results = sorted(glob.glob(os.path.join(glob.escape(folder), "**", "*.json"), recursive=True), key=os.path.getmtime)
    for path in results[:-RESULTS]:
        os.unlink(path)


def _page(site: str, folder: str, suite: Suite, failing: tuple[int, ...]) -> SuitePage:
    pattern = os.path.join(glob.escape(site), "validations", glob.escape(suite.name), "**", "*.html")
    pages = sorted(glob.glob(pattern, recursive=True))
    path = f"{suite.name}.html"
    with disk.writing(folder):
        shutil.copyfile(pages[-1], os.path.join(folder, path))
    return SuitePage(suite.name, path, len(suite.expectations) - len(failing), len(suite.expectations), failing)
