"""Great Expectations itself, and the only place that imports it: expectations of suites, core ones and the operator's
own classes, judged on rows.

Importing it takes seconds, so this is loaded only where it has to judge, or pages are asked for. It is given rows and
files; it knows no table and no ledger.
"""
from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from expectations.great import EXACT, GreatExpectation, with_zone
from optimizer.errors import ForebayError, first_line

os.environ["GX_ANALYTICS_ENABLED"] = "false"      # it is read when the package is imported

import great_expectations as gx  # noqa: E402
import great_expectations.expectations as gxe  # noqa: E402
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration  # noqa: E402

__all__ = ["frame", "gx", "gxe", "judged", "load", "object_of"]
NUMBER = "forebay"        # under this an expectation's meta has its number
BOUNDS = ("min_value", "max_value")
_loaded: dict[str, int] = {}      # files of custom classes, with the time of the content that was run


def load(files: Iterable[str]) -> None:
    """Runs the operator's files of custom classes, each once as it is: that makes their classes known."""
    for path in files:
        modified = os.stat(path).st_mtime_ns
        if _loaded.get(path) == modified:
            continue
        name = f"forebay_expectations_{os.path.splitext(os.path.basename(path))[0]}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:      # whatever the operator's code raises
            raise ForebayError("bad-suite", f"{path} cannot be run: {type(error).__name__}: {first_line(error)}",
                               hint="mend it: the suites beside it use its classes") from error
        _loaded[path] = modified


def frame(rows: pa.Table) -> Any:
    """Rows as pandas has them for its users: a whole number beside a NULL is a float, unless that would round it."""
    data = rows.to_pandas()
    for column in rows.schema:
        if pa.types.is_integer(column.type) and rows[column.name].null_count and _is_large(rows[column.name]):
            nullable = f"{column.type}".capitalize().replace("Uint", "UInt")
            data[column.name] = rows[column.name].to_pandas(integer_object_nulls=True).astype(nullable)
    return data


def _is_large(column: pa.ChunkedArray) -> bool:
    bounds = pc.min_max(column).as_py()
    return any(bound is not None and abs(bound) >= EXACT for bound in bounds.values())


def object_of(e: GreatExpectation, number: int = 0) -> Any:
    """The expectation as an object of Great Expectations'; a bound of a timestamp without a zone is UTC.

    `number` tells its result from others': they come in another order, and equal expectations would be one.
    """
    kwargs = dict(e.kwargs)
    column = kwargs.get("column")
    if isinstance(column, str) and column in e.types:
        kwargs |= {key: with_zone(kwargs[key], e.types[column]) for key in BOUNDS if key in kwargs}
    try:
        meta = {NUMBER: number}
        return ExpectationConfiguration(type=e.kind, kwargs=kwargs, severity=e.severity, meta=meta).to_domain_obj()
    except Exception as error:      # pydantic's, and many of its own
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reasons = "; ".join(lines[:3]) or type(error).__name__
        raise ForebayError("bad-suite", f"suite {e.suite}, expectations[{e.place}]: Great Expectations does not take "
                                        f"{e.kind} so: {reasons}", hint="write it as its documentation says") from error


def judged(expectations: Sequence[GreatExpectation], rows: pa.Table, hidden: bool) -> list[str | None]:
    """What is observed of each that does not hold; None: it holds. With `hidden` no value is told."""
    suite = gx.ExpectationSuite(name="boundary", expectations=[object_of(e, n) for n, e in enumerate(expectations)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = _batch(rows).validate(suite, result_format="BASIC")
    observed: list[str | None] = [None] * len(expectations)
    for result in report.results:
        number = result.expectation_config.meta[NUMBER]
        if not result.success:
            observed[number] = _observed(expectations[number], result, hidden)
    return observed


def _batch(rows: pa.Table) -> Any:
    context: Any = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_or_update_pandas("forebay").add_dataframe_asset("rows")
    definition = asset.add_batch_definition_whole_dataframe("boundary")
    return definition.get_batch(batch_parameters={"dataframe": frame(rows)})


def _observed(e: GreatExpectation, result: Any, hidden: bool) -> str:
    raised = _exception(result.exception_info or {})
    if raised:
        return "***, for it could not be judged" if hidden else f"it could not be judged: {raised}"
    figures: Mapping[str, Any] = result.result or {}
    if figures.get("unexpected_count") is not None:
        of = figures.get("element_count", 0) - (figures.get("missing_count") or 0)
        return f"{figures['unexpected_count']} of {of} rows fail"
    if hidden and e.shows_values:
        return "***"
    return str(figures.get("observed_value", "it does not hold"))[:200]


def _exception(info: Mapping[str, Any]) -> str | None:
    """Of one metric, or of several by their names."""
    if "exception_message" in info:
        return first_line(Exception(info["exception_message"])) if info.get("raised_exception") else None
    messages = [str(inner.get("exception_message")) for inner in info.values() if isinstance(inner, Mapping)]
    return next((message.splitlines()[0][:200] for message in messages if message), None)
