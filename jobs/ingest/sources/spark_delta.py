"""Delta tables that the kernel may not read (deletion vectors, column mapping): Spark reads them by version and stages
the rows as Parquet.

Which files count is decided by who calls; here nothing is looked up in the ledger. A session is started only for these
and for Kafka.
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from jobs.engine import spark
from jobs.storage import failpoints, places
from optimizer.errors import failed

FILES = 64                             # at most so many staged files of a version: all of them land in one commit
# a version, and the files of it that are read, as its log calls them; None: all
Part = tuple[int, frozenset[str] | None]


def session(tasks: Any) -> Any:
    """Spark itself is needed even where tasks do without."""
    return spark.session("local[2]") if getattr(tasks, "inline", False) else tasks.session


def staged(tasks: Any, path: str, parts: Sequence[Part], folder: str) -> list[str]:
    """The staged files of all parts, in their order."""
    found: list[str] = []
    for number, (version, files) in enumerate(parts):
        here = places.join(folder, str(number))
        try:
            with spark.guarded():
                _write(session(tasks), path, version, files, here)
        except spark.SparkFailure as error:
            raise failed(
                "delta-unread", f"version {version} of {path} cannot be read by Spark: {str(error)[:300]}",
                "see that its files are there: a version that was vacuumed is gone; start a new stream from the table "
                "as it is"
            ) from error
        found += sorted(places.join(here, f) for f in places.listed(here) if f.endswith(".parquet"))
    failpoints.at("ingest.after-stage")
    return found


def _write(session: Any, path: str, version: int, files: frozenset[str] | None, folder: str) -> None:
    frame = session.read.format("delta").option("versionAsOf", version).load(str(path))
    if files is not None:
        there = {_relative(path, row[0]): row[0] for row in frame.select("_metadata.file_path").distinct().collect()}
        _check_missing(path, version, {unquote(f) for f in files} - there.keys())
        frame = frame.filter(frame["_metadata.file_path"].isin(
            [there[unquote(f)] for f in files if unquote(f) in there]))
    frame.coalesce(FILES).write.mode("overwrite").parquet(str(folder))


def _relative(path: str, file: str) -> str:
    """A file as the table's log calls it, decoded: Spark tells it as a URI."""
    return unquote(file).partition(path.rstrip("/") + "/")[2]


def _check_missing(path: str, version: int, missing: set[str]) -> None:
    """A file that Spark has no row of has none: anything else would be a loss."""
    for name in sorted(missing):
        with places.opened(places.join(path, name)) as file:
            if pq.read_metadata(file).num_rows:
                raise failed(
                    "delta-unread",
                    f"Spark does not show the rows of {os.path.basename(name)} in version {version} of {path}",
                    "start a new stream from the table as it is")
