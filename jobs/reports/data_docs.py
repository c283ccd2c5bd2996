"""Great Expectations' Data Docs of suites and samples, and the only place that imports it: real expectations, validated
in a context of their own.

Importing it takes seconds, so this is loaded only where documents are asked for. What it is given is all it knows: no
table, no ledger.
"""
from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from jobs.storage import disk

os.environ["GX_ANALYTICS_ENABLED"] = "false"      # it is read when the package is imported

import great_expectations as gx  # noqa: E402
import great_expectations.expectations as gxe  # noqa: E402

SEVERITIES = {"row": "critical"}


@dataclass(frozen=True)
class SuiteExpectation:
    """One expectation in Great Expectations' words."""

    kind: str
    arguments: Mapping[str, Any]
    severity: str
    note: str


@dataclass(frozen=True)
class Suite:
    """A subject's expectations and the rows they are shown on; `hidden`: only verdicts may be shown, no values."""

    name: str
    rows: pa.Table
    expectations: tuple[SuiteExpectation, ...]
    hidden: bool = False


@dataclass(frozen=True)
class SuitePage:
    """A validated suite: `path` is its page's, relative to the folder."""

    name: str
    path: str
    passed: int
    expected: int


def validated(suites: Sequence[Suite], folder: str) -> list[SuitePage]:
    """Validates every suite and leaves its pages, as Great Expectations renders them, in the folder."""
    with tempfile.TemporaryDirectory(prefix="forebay-docs-") as place:
        context: Any = gx.get_context(mode="file", project_root_dir=place)
        context.variables.progress_bars = {"globally": False}
        source = context.data_sources.add_or_update_pandas("forebay")
        verdicts = [(suite, _verdict(context, source, suite)) for suite in suites]
        context.build_data_docs()
        site = os.path.join(place, "gx", "uncommitted", "data_docs", "local_site")
        return [_page(site, folder, suite, passed) for suite, passed in verdicts]


def _verdict(context: Any, source: Any, suite: Suite) -> int:
    batch = source.add_dataframe_asset(suite.name).add_batch_definition_whole_dataframe("sample")
    expectations = []
    for expectation in suite.expectations:
        # the class of `expect_x_y` is ExpectXY
        class_name = "".join(part[:1].upper() + part[1:] for part in expectation.kind.split("_"))
        severity = SEVERITIES.get(expectation.severity, expectation.severity)
        kind = getattr(gxe, class_name)
        expectations.append(kind(**expectation.arguments, severity=severity, notes=expectation.note))
    of_context = context.suites.add_or_update(gx.ExpectationSuite(name=suite.name, expectations=expectations))
    definition = context.validation_definitions.add_or_update(
        gx.ValidationDefinition(name=suite.name, data=batch, suite=of_context))
    report = definition.run(batch_parameters={"dataframe": suite.rows.to_pandas()},
                            result_format="BOOLEAN_ONLY" if suite.hidden else "BASIC")
    return sum(bool(result.success) for result in report.results)


def _page(site: str, folder: str, suite: Suite, passed: int) -> SuitePage:
    pattern = os.path.join(glob.escape(site), "validations", suite.name, "**", "*.html")
    pages = sorted(glob.glob(pattern, recursive=True))
    path = f"{suite.name}.html"
    with disk.writing(folder):
        shutil.copyfile(pages[-1], os.path.join(folder, path))
    return SuitePage(suite.name, path, passed, len(suite.expectations))
