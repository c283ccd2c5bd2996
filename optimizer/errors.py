"""Every refusal is one value: what was wrong, where, what would be right; nothing here prints or exits."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class ForebayError(Exception):
    """A wrong use or a failed run. `code` is stable and lower-case-with-dashes, `message` says what and where, `hint` what to do."""

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
        return {"error": {"code": self.code, "message": self.message, "line": self.line, "column": self.column, "hint": self.hint}}


def failed(code: str, message: str, hint: str | None = None) -> ForebayError:
    """A run that cannot go on (exit code 1), as opposed to a refused input (exit code 2)."""
    return ForebayError(code, message, hint=hint, exit_code=1)
