"""Files of pictures: what they may be called, and that one which cannot be written says so."""
from __future__ import annotations

import os
from typing import Any

from optimizer.errors import ForebayError, failed

FORMATS = (".svg", ".png")


def check(path: str) -> None:
    """Refuses a picture's name before anything is computed."""
    if os.path.splitext(path)[1].lower() not in FORMATS:
        raise ForebayError("bad-usage", f"{path!r} is no picture's name", hint=f"end it with {' or '.join(FORMATS)}")


def save(figure: Any, path: str) -> None:
    """`figure` is matplotlib's."""
    try:
        figure.savefig(path)
    except OSError as error:
        raise failed("bad-file", f"{path} cannot be written: {error.strerror}",
                     "name a file in a folder that is there") from None
