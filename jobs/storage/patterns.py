"""Which files a pattern names, on this machine or in a store, as glob does.

A folder stands for the files in it, and nothing is opened here.
"""
from __future__ import annotations

import glob
import os
from fnmatch import fnmatchcase

from jobs.storage import store
from jobs.storage.places import Remote


def matching(pattern: str, folder: str = "") -> list[str]:
    """`*`, `?` and `[…]` within one part of a path, `**` for any number of parts.

    In `folder`, with which it may begin, they are letters.
    """
    if isinstance(pattern, Remote):
        return sorted(_in_store(pattern))
    if os.path.isdir(pattern):
        paths = glob.glob(os.path.join(glob.escape(pattern), "*"))
    else:
        begin = len(folder) if folder and pattern.startswith(os.path.join(folder, "")) else 0
        paths = glob.glob(glob.escape(pattern[:begin]) + pattern[begin:], recursive=True)
    return sorted(path for path in paths if os.path.isfile(path))


def _in_store(pattern: Remote) -> list[str]:
    parts = pattern.key.split("/")
    fixed = 0      # parts before the first with a wildcard
    while fixed < len(parts) and not set("*?[").intersection(parts[fixed]):
        fixed += 1
    with store.reached(pattern):
        if fixed == len(parts) and store.filesystem(pattern.settings).get_file_info(pattern.key).is_file:
            return [pattern]
        wildcards = parts[fixed:] or ["*"]
        is_deep = len(wildcards) > 1 or "**" in wildcards
        entries = store.under(pattern.settings, "/".join(parts[:fixed]), deep=is_deep)
    scheme = pattern.split("://", 1)[0]
    fitting = [entry.path for entry in entries if entry.is_file and _fits(entry.path.split("/")[fixed:], wildcards)]
    return [Remote(f"{scheme}://{path}", pattern.settings) for path in fitting]


def _fits(names: list[str], parts: list[str]) -> bool:
    if not parts or not names:
        return not names and all(part == "**" for part in parts)
    if parts[0] == "**":
        return _fits(names, parts[1:]) or _fits(names[1:], parts)
    return fnmatchcase(names[0], parts[0]) and _fits(names[1:], parts[1:])
