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
    asked: tuple[SuiteExpectation, ...]
    hidden: bool = False


@dataclass(frozen=True)
class SuitePage:
    """A validated suite: `path` is its page's, relative to the folder."""

    name: str
    path: str
    passed: int
    asked: int


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
    made = context.suites.add_or_update(
        gx.ExpectationSuite(name=suite.name, expectations=[_expectation(a) for a in suite.asked]))
    definition = context.validation_definitions.add_or_update(
        gx.ValidationDefinition(name=suite.name, data=batch, suite=made))
    done = definition.run(batch_parameters={"dataframe": suite.rows.to_pandas()},
                          result_format="BOOLEAN_ONLY" if suite.hidden else "BASIC")
    return sum(bool(one.success) for one in done.results)


def _expectation(asked: SuiteExpectation) -> Any:
    """The class is named like the type: expect_x_y is ExpectXY."""
    name = "".join(part[:1].upper() + part[1:] for part in asked.kind.split("_"))
    severity = SEVERITIES.get(asked.severity, asked.severity)
    return getattr(gxe, name)(**asked.arguments, severity=severity, notes=asked.note)


def _page(site: str, folder: str, suite: Suite, passed: int) -> SuitePage:
    found = sorted(glob.glob(os.path.join(glob.escape(site), "validations", suite.name, "**", "*.html"),
                             recursive=True))
    path = f"{suite.name}.html"
    with disk.writing(folder):
        shutil.copyfile(found[-1], os.path.join(folder, path))
    return SuitePage(suite.name, path, passed, len(suite.asked))
