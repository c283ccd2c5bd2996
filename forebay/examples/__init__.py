"""Pipeline folders to start from: `forebay init` copies one.

What is copied runs at once and holds no secret and no absolute path.
"""
from __future__ import annotations

import os
import shlex
import shutil
from typing import Any

from jobs.storage import disk
from optimizer.errors import ForebayError

HERE = os.path.dirname(os.path.abspath(__file__))


def names() -> list[str]:
    return sorted(n for n in os.listdir(HERE) if os.path.isfile(os.path.join(HERE, n, "forebay.yml")))


def copy(example: str, folder: str) -> dict[str, Any]:
    """A new folder; one that holds anything already is refused."""
    if example not in names():
        raise ForebayError("unknown-example", f"there is no example {example!r}",
                           hint=f"there are {', '.join(names())}")
    if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise ForebayError("not-empty", f"{folder} is there already and not empty", hint="name a new folder")
    try:
        shutil.copytree(os.path.join(HERE, example), folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)      # half an example would be in the way of the next attempt
        if explanation := disk.explained(error, folder):
            raise explanation from None
        raise ForebayError("bad-file", f"{folder} cannot be made: {error.strerror}",
                           hint="name a folder where you may write") from None
    query = sorted(os.listdir(os.path.join(folder, "queries")))[0].removesuffix(".sql")
    then = [f"cd {shlex.quote(folder)}", "forebay ingest", "forebay run --flush", f"forebay result {query} --all",
            "forebay test"]
    message = f"{folder} is a pipeline that runs. Next:\n\n" + "".join(f"    {c}\n" for c in then)
    return {"folder": os.path.abspath(folder), "example": example, "then": then, "message": message}
