"""The one place that imports numba: `compiled` turns a function into machine code and keeps it for the next process.

It may not change what it gives.
"""
from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def _folder() -> str:
    """Kept code is of all sources here together: numba asks only whether a function's own file changed, not those of
    the functions it calls.
    """
    sources = [file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py"))]
    digest = hashlib.sha256(b"".join(sources)).hexdigest()[:16]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "forebay", "operators", digest)


setattr(numba.config, "CACHE_DIR", os.environ.get("NUMBA_CACHE_DIR") or _folder())


def compiled(function: Function) -> Function:
    """Compiled when it is first called, for the types it is called with."""
    return cast(Function, numba.njit(cache=True, nogil=True)(function))
