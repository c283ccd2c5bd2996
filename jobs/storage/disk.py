"""What a file system refuses, as an error that says what to do: no space, no writing, no permission, no such place."""
from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from optimizer.errors import ForebayError, failed

NUMBERS = {errno.ENOSPC: "disk-full", errno.EDQUOT: "disk-full", errno.EROFS: "read-only",
           errno.EACCES: "no-permission", errno.EPERM: "no-permission"}
NOWHERE = (errno.ENOENT, errno.ENOTDIR)      # of a folder to be made: in /proc, or where a file is
SIGNS = {"disk-full": ("No space left", "Disk quota", "ENOSPC", "disk is full"),      # the last is SQLite's
         "read-only": ("Read-only file system", "readonly database"),
         "no-permission": ("Permission denied", "Operation not permitted")}
MESSAGES = {
    "disk-full": "{} cannot be written: its disk is full",
    "read-only": "{} cannot be written: its file system is read-only",
    "no-permission": "{} cannot be used: this user lacks the permission",
    "no-place": "{} cannot be made: there can be no folder",
}
HINTS = {
    "disk-full": "free space, then run again: nothing was published of what had begun; `forebay doctor` shows what "
                 "takes it",
    "read-only": "mount it for writing, or name another `warehouse` in forebay.yml",
    "no-permission": "give the user who runs Forebay the right to read and write there, or name another `warehouse` in "
                     "forebay.yml",
    "no-place": "name as `warehouse` in forebay.yml a folder, or where one can be made",
}


def code_of(error: BaseException) -> str | None:
    """By the system's number; of an engine's error by the system's words in it."""
    number = error.errno if isinstance(error, OSError) else None
    if number is None:
        in_text = re.search(r"(?:os error |Errno )(\d+)\b", str(error))
        number = int(in_text[1]) if in_text else None
    if number in NUMBERS:
        return NUMBERS[number]
    for code, signs in SIGNS.items():
        if any(sign in str(error) for sign in signs):
            return code
    return None


def explained(error: BaseException, path: str = "a file") -> ForebayError | None:
    """The error as a person needs it, None where the file system is not at fault; `path` where the error names none."""
    code = code_of(error)
    place = str(error.filename) if isinstance(error, OSError) and error.filename else path
    return None if code is None else failed(code, MESSAGES[code].format(place), HINTS[code])


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Around whatever writes to a path: where the file system is at fault, its error says what to do."""
    try:
        yield
    except ForebayError:
        raise
    except Exception as error:      # delta-rs's, DuckDB's and Arrow's have no common base
        code = code_of(error) or ("no-place" if isinstance(error, OSError) and error.errno in NOWHERE else None)
        if code is None:
            raise
        raise failed(code, MESSAGES[code].format(path), HINTS[code]) from error
