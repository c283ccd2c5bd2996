"""How much memory the engine of one task may take: its executor's, divided among the tasks that run in it at once.

It measures nothing but the machine.
"""
from __future__ import annotations

import os
import re
from collections.abc import Mapping

SETTING = "forebay.task.memory"      # in `spark: {settings: …}`; FOREBAY_TASK_MEMORY goes before it
# of an executor's memory that engines get: Arrow's copies, Python and the JVM take the rest
SHARE = 0.5
OWN_SHARE = 0.25                     # of the machine's memory, for an engine in a command's own process
LEAST = 256 << 20                    # bytes
OVERHEAD = 0.1                       # of an executor's memory that Spark leaves beside its JVM, if nothing else is said
DRIVER_SETTING = "forebay.driver.partials"      # likewise; FOREBAY_DRIVER_PARTIALS goes before it, 0: none at all
# Of one batch's partials that the driver merges itself; beyond, tasks do. On two cores it is the faster of the two (by
# a seventh at a million groups, hardly at three), but its memory grows by five times as much.
DRIVER_PARTIALS = 64 << 20           # bytes
LEAST_PARTIALS = 256 << 10           # bytes of one answer of one task, however many there are: a file costs as much
MORE = ("give tasks more with `spark: {settings: {forebay.task.memory: 4GB}}` or FOREBAY_TASK_MEMORY=4GB, or shorten "
        "the windows")
UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def of_process() -> str:
    """Of an engine in a command's own process: merging what tasks hand over, reading answers, verifying."""
    return os.environ.get("FOREBAY_TASK_MEMORY") or f"{max(int(machine() * OWN_SHARE), LEAST) >> 20}MB"


def of_task(master: str, settings: Mapping[str, str], width: int) -> str:
    """As the engine takes it. Example: on a machine of 16 GiB, `of_task("local[2]", {}, 2)` is `"4096MB"`."""
    setting = os.environ.get("FOREBAY_TASK_MEMORY") or settings.get(SETTING)
    return setting or f"{max(int(_executor(master, settings, width) * SHARE), LEAST) >> 20}MB"


def partials_of_driver(settings: Mapping[str, str]) -> int:
    """Bytes of a batch's partials up to which the driver merges them."""
    setting = os.environ.get("FOREBAY_DRIVER_PARTIALS") or settings.get(DRIVER_SETTING)
    return size(setting) if setting else DRIVER_PARTIALS


def _executor(master: str, settings: Mapping[str, str], width: int) -> float:
    """Bytes that one task's share of its executor has for Python."""
    cores = max(int(settings.get("spark.executor.cores", "1") or 1), 1)
    python = settings.get("spark.executor.pyspark.memory")
    if python:
        return size(python) / cores
    if master == "inline" or master.startswith("local"):
        return machine() / max(width, 1)
    beside = settings.get("spark.executor.memoryOverhead")
    whole = size(settings.get("spark.executor.memory", "1g"))
    return max((size(beside) if beside else max(whole * OVERHEAD, 384 << 20)) / cores, 1 << 30)


def machine() -> int:
    """Bytes that processes of this machine, or of this container, can have."""
    limits = [int(text) for path in CGROUPS if (text := _read(path)).isdigit()]
    return min([*limits, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")])


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def size(text: str) -> int:
    """Spark's way to write sizes: `512m`, `2g`; a number alone is mebibytes there."""
    matched = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", text.lower())
    if matched is None:
        return 1 << 30
    number, unit = matched.groups()
    return int(float(number) * UNITS[unit or "m"])
