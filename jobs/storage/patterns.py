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
        return sorted(p for p in glob.glob(os.path.join(glob.escape(pattern), "*")) if os.path.isfile(p))
    begin = len(folder) if folder and pattern.startswith(os.path.join(folder, "")) else 0
    return sorted(
        p for p in glob.glob(glob.escape(pattern[:begin]) + pattern[begin:], recursive=True) if os.path.isfile(p))


def _in_store(pattern: Remote) -> list[str]:
    parts = pattern.key.split("/")
    fixed = next((n for n, part in enumerate(parts) if any(c in part for c in "*?[")), len(parts))
    with store.reached(pattern):
        if fixed == len(parts) and store.filesystem(pattern.settings).get_file_info(pattern.key).is_file:
            return [pattern]
        wanted = parts[fixed:] or ["*"]
        found = store.under(pattern.settings, "/".join(parts[:fixed]), deep=len(wanted) > 1 or "**" in wanted)
    scheme = pattern.split("://", 1)[0]
    return [
        Remote(f"{scheme}://{f.path}", pattern.settings)
        for f in found
        if f.is_file and _fits(f.path.split("/")[fixed:], wanted)
    ]


def _fits(names: list[str], parts: list[str]) -> bool:
    if not parts or not names:
        return not names and all(p == "**" for p in parts)
    if parts[0] == "**":
        return _fits(names, parts[1:]) or _fits(names[1:], parts)
    return fnmatchcase(names[0], parts[0]) and _fits(names[1:], parts[1:])
