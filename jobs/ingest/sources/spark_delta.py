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
    paths: list[str] = []
    for number, (version, files) in enumerate(parts):
        here = places.join(folder, str(number))
        try:
            with spark.guarded():
                _write(session(tasks), path, version, files, here)
        except spark.SparkFailure as error:
            hint = ("see that its files are there: a version that was vacuumed is gone; start a new stream from the "
                    "table as it is")
            raise failed("delta-unread", f"version {version} of {path} cannot be read by Spark: {str(error)[:300]}",
                         hint) from error
        paths += sorted(places.join(here, name) for name in places.listed(here) if name.endswith(".parquet"))
    failpoints.at("ingest.after-stage")
    return paths


def _write(session: Any, path: str, version: int, files: frozenset[str] | None, folder: str) -> None:
    frame = session.read.format("delta").option("versionAsOf", version).load(str(path))
    if files is not None:
        uri_of = {}      # by file as the table's log calls it, decoded
        for row in frame.select("_metadata.file_path").distinct().collect():
            uri_of[unquote(row[0]).partition(path.rstrip("/") + "/")[2]] = row[0]
        names = {unquote(file) for file in files}
        _check_missing(path, version, names - uri_of.keys())
        frame = frame.filter(frame["_metadata.file_path"].isin([uri_of[name] for name in names if name in uri_of]))
    frame.coalesce(FILES).write.mode("overwrite").parquet(str(folder))


def _check_missing(path: str, version: int, missing: set[str]) -> None:
    """Checks that files of which Spark shows no row have none: anything else would be a loss."""
    for name in sorted(missing):
        with places.opened(places.join(path, name)) as file:
            if pq.read_metadata(file).num_rows:
                raise failed(
                    "delta-unread",
                    f"Spark does not show the rows of {os.path.basename(name)} in version {version} of {path}",
                    "start a new stream from the table as it is")
