"""Every refusal is one value: what was wrong, where, what would be right, what exists; nothing here prints or exits."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(eq=False)
class ForebayError(Exception):
    """A wrong use or a failed run: `ForebayError("unknown-column", "no column pagee", 3, 12, "did you mean page?")`.

    `code` is stable and lower-case-with-dashes, `message` says what and where, `hint` what to do.
    """

    code: str
    message: str
    line: int | None = None
    column: int | None = None
    hint: str | None = None
    exit_code: int = 2

    def __str__(self) -> str:
        place = f" (line {self.line}, column {self.column})" if self.line else ""
        return f"{self.message}{place}" + (f"; {self.hint}" if self.hint else "")

    def document(self) -> dict[str, object]:
        """The `error` object of INTERFACE's JSON."""
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "line": self.line,
                "column": self.column,
                "hint": self.hint
            }
        }


def failed(code: str, message: str, hint: str | None = None) -> ForebayError:
    """A run that cannot go on (exit code 1), as opposed to a refused input (exit code 2)."""
    return ForebayError(code, message, hint=hint, exit_code=1)


def closest(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant, as it is spelled there: `closest("Pagee", ["user", "page"])` is page."""
    spelled = {spelling.lower(): spelling for spelling in reversed(tuple(names))}
    return next((spelled[match] for match in get_close_matches(name.lower(), spelled, 1)), None)


def suggestion(name: str, names: Iterable[str]) -> str | None:
    """`did you mean page?`, None where nothing is near."""
    match = closest(name, names)
    return f"did you mean {match}?" if match else None


def first_line(error: BaseException) -> str:
    """The first line of an error's message, as people and the ledger get it; the error's type if it has no message."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
