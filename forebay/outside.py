"""A command from outside: shared options, one document or text on stdout, everything else on stderr, the exit code.

What a command does is not known here.
"""
from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, TextIO

import typer

from jobs.storage import disk
from optimizer.errors import ForebayError, failed

INTERRUPTED = 130


class Engine(str, Enum):
    tasks = "tasks"
    jvm = "jvm"


@dataclass(frozen=True)
class CommonOptions:
    """The options that every command takes: `CommonOptions("traffic", json=True)`."""

    folder: str = "."
    json: bool = False
    engine: str | None = None


@dataclass(frozen=True)
class Reply:
    """What a command replies: a document for --json, and how to show it to people; `code` is the exit code.

    `streamed` writes a document that is too large to be one value.
    """

    document: dict[str, Any]
    text: Callable[[TextIO], object]
    code: int = 0
    streamed: Callable[[TextIO], object] | None = None


Folder = Annotated[str | None,
                   typer.Option("--pipeline", metavar="DIR",
                                help="The pipeline's folder; or FOREBAY_PIPELINE, or here.", show_default=False)]
Json = Annotated[bool | None, typer.Option("--json", help="One JSON document on stdout.", show_default=False)]
Where = Annotated[Engine | None, typer.Option("--engine", help="Force where the work runs.", show_default=False)]
SHARED: dict[str, Any] = {"pipeline": Folder, "as_json": Json, "engine": Where}


def shared(function: Callable[..., Reply | None], engine: bool = False) -> Callable[..., int | None]:
    """The command with the shared options after its own.

    They may as well stand before its name. A parameter `call` gets them all, `ctx` the command line's own context.
    """
    signature = inspect.signature(function, eval_str=True)
    added = [
        inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=a)
        for n, a in SHARED.items()
        if engine or n != "engine"
    ]

    @functools.wraps(function)
    def outer(ctx: typer.Context, **given: Any) -> int | None:
        options: dict[str, Any] = ctx.ensure_object(dict)
        options.update({n: v for n in SHARED if (v := given.pop(n, None))})
        if not engine and options.get("engine") and function.__name__ != "entry":
            raise ForebayError("bad-usage", f"{ctx.command_path} takes no --engine", hint="run, verify and explain do")
        if "call" in signature.parameters:
            given["call"] = call(options)
        if "ctx" in signature.parameters:
            given["ctx"] = ctx
        with contextlib.redirect_stdout(sys.stderr):
            result = function(**given)
        return None if result is None else _write(result, options)

    parameters = [p for p in signature.parameters.values() if p.name not in ("call", "ctx")]
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    every = [context, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters), *added]
    setattr(outer, "__signature__", inspect.Signature(every))
    return outer


def call(options: dict[str, Any]) -> CommonOptions:
    engine = options.get("engine")
    return CommonOptions(
        options.get("pipeline") or os.environ.get("FOREBAY_PIPELINE") or ".", bool(options.get("as_json")),
        engine.value if engine else None)


def _write(result: Reply, options: dict[str, Any]) -> int:
    out: TextIO = options["out"]
    with disk.writing("the answer"):
        if options.get("as_json") and result.streamed is not None:
            result.streamed(out)
        elif options.get("as_json"):
            out.write(json.dumps(result.document, ensure_ascii=False, allow_nan=False) + "\n")
        else:
            result.text(out)
        out.flush()
    return result.code


def perform(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Runs a command line; every way out is an exit code and, with --json, one document."""
    options: dict[str, Any] = {}
    as_json = "--json" in arguments
    with apart() as out:
        options["out"] = out
        try:
            code = app(list(arguments), prog_name="forebay", standalone_mode=False, obj=options)
            out.flush()
            return int(code or 0)
        except BrokenPipeError:
            # The reader had enough, as `head` does: no failure of ours.
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
            return 0
        except KeyboardInterrupt:
            return INTERRUPTED
        except Exception as error:
            return _report(_refusal(error, options), out if as_json else None)


def _report(error: ForebayError, out: TextIO | None) -> int:
    if out is not None:
        with contextlib.suppress(OSError):      # where the answer found no room, the exit code is left
            out.write(json.dumps(error.document(), ensure_ascii=False) + "\n")
            out.flush()
    else:
        place = f" (line {error.line}, column {error.column})" if error.line else ""
        print(f"forebay: {error.message}{place}" + (f"\n  {error.hint}" if error.hint else ""), file=sys.stderr)
    return error.exit_code


def _refusal(error: Exception, options: dict[str, Any]) -> ForebayError:
    """Any exception as one that tells what happened and what to do."""
    if isinstance(error, ForebayError):
        return error
    if isinstance(error, typer.BadParameter.__mro__[1]):
        return _usage(error)
    if type(error).__name__ == "Conflict":
        message = f"another runner committed to this pipeline meanwhile: {error}"
        return ForebayError("conflict", message, hint="nothing is lost or counted twice; run again", exit_code=3)
    folder = call(options).folder
    if explanation := disk.explained(error, next(iter(_ledger(folder)), "a file")):
        return explanation
    place = crash(error, folder)
    message = f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0][:300]}"
    return failed("unexpected-error", message, f"the traceback is {place}; `forebay doctor` checks the surroundings")


def _usage(error: Any) -> ForebayError:
    path = error.ctx.command_path if error.ctx is not None else "forebay"
    if type(error).__name__ == "NoArgsIsHelpError":
        return ForebayError("bad-usage", f"{path} needs a command", hint=f"`{path} --help` lists them")
    return ForebayError("bad-usage", error.format_message().rstrip("."), hint=f"`{path} --help` shows what it takes")


def crash(error: Exception, folder: str) -> str:
    """Where the traceback went: beside the ledger, or to a temporary file when there is none."""
    text = "".join(traceback.format_exception(error))
    if os.environ.get("FOREBAY_DEBUG"):
        print(text, file=sys.stderr)
        return "above"
    name = time.strftime("crash-%Y%m%dT%H%M%SZ-", time.gmtime()) + f"{os.getpid()}.log"
    for place in (*_ledger(folder), tempfile.gettempdir()):
        try:
            path = os.path.join(place, name)      # for this user only: it may quote rows and settings
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w",
                      encoding="utf-8") as file:
                file.write(text)
            return f"in {os.path.join(place, name)}"
        except OSError:
            continue
    return "lost, since no file could be written; FOREBAY_DEBUG=1 shows it"


def _ledger(folder: str) -> list[str]:
    """The ledger's folder if the pipeline's file still tells where it is."""
    from jobs.pipeline.config import load  # after a crash: the file itself may be the reason

    with contextlib.suppress(Exception):
        warehouse = load(folder).warehouse
        return [os.path.join(warehouse, "ledger")] if "://" not in warehouse else []
    return []


@contextlib.contextmanager
def apart() -> Iterator[TextIO]:
    """Keeps stdout for the answer: what libraries, the JVM and child processes write to descriptor 1 goes to stderr."""
    sys.stdout.flush()
    original, before = os.dup(1), sys.stdout
    os.dup2(2, 1)
    sys.stdout = out = os.fdopen(os.dup(original), "w", encoding="utf-8", errors="surrogateescape", newline="")
    try:
        yield out
    finally:
        sys.stdout = before
        with contextlib.suppress(OSError):      # the reader is gone, or there is no room: told already
            out.close()
        os.dup2(original, 1)
        os.close(original)
