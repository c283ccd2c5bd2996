"""What a file system refuses is said by its kind and its place, whichever library met it."""
from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from jobs.engine import kernel
from jobs.storage import disk, places, tables
from jobs.storage.lock import held
from optimizer.errors import ForebayError

ERRORS = [
    (OSError(errno.ENOSPC, "No space left on device"), "disk-full"),
    (OSError(errno.EDQUOT, "Disk quota exceeded"), "disk-full"),
    (OSError(errno.EROFS, "Read-only file system"), "read-only"),
    (PermissionError(errno.EACCES, "Permission denied"), "no-permission"),
    (shutil.Error([("a", "b", "[Errno 28] No space left on device: 'a' -> 'b'")]), "disk-full"),
    (tables.Broken("Generic LocalFileSystem error: Unable to create dir /w: Read-only file system (os error 30)"),
     "read-only"),
    (kernel.Error('IO Error: Could not write all bytes to file "/w/a.parquet": No space left on device'), "disk-full"),
    (Exception("(sqlite3.OperationalError) database or disk is full"), "disk-full"),
    (Exception("(sqlite3.OperationalError) attempt to write a readonly database"), "read-only"),
    (OSError(errno.ENOENT, "No such file or directory"), None), (BrokenPipeError(errno.EPIPE, "Broken pipe"), None),
    (ValueError("errors 28 and 30 of 128"), None)
]


@pytest.mark.parametrize(("error", "code"), ERRORS, ids=[str(error)[:60] for error, _ in ERRORS])
def test_errors_are_told_apart(error: Exception, code: str | None) -> None:
    told = disk.explained(error, "/w")
    assert (told and (told.code, told.exit_code)) == (code and (code, 1))
    if told is not None:
        assert told.message.startswith("/w cannot be ") and told.hint and "rrno" not in str(told)
        with pytest.raises(ForebayError) as caught, disk.writing("/w"):
            raise error
        assert str(caught.value) == str(told)


def test_a_place_where_no_folder_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    place = str(tmp_path / "file" / "warehouse")
    for make in (lambda: places.make_folder(place), lambda: held(place).__enter__()):
        with pytest.raises(ForebayError) as caught:
            make()
        assert caught.value.code == "no-place" and place in caught.value.message


def test_a_refusal_inside_stays_what_it_is() -> None:
    with pytest.raises(ForebayError, match="first"), disk.writing("/w"):
        raise ForebayError("a", "first")
    with pytest.raises(FileNotFoundError), disk.writing("/w"):
        try:
            os.stat("/nowhere/at/all")
        except FileNotFoundError as error:
            raise FileNotFoundError("no number") from error
