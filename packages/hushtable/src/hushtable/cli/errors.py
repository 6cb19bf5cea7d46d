"""Escapes for control characters that would affect a terminal, whichever file they come from."""

import contextlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any, TextIO
from unicodedata import category

from hushtable.data.layout_file import READ, SWITCHES
from hushtable.errors import (
    NO_HIDDEN,
    NO_MAX_ROWS,
    HushTableError,
    UsageError,
    explain,
    without_secrets,
)


def escaped(text: str, kept: str = "\n\t") -> str:
    """Return a text in which escapes replace the characters that control a terminal.

    These are control characters, and marks that change the direction of the text. A file can bring
    them into any text: names, titles, reasons. Characters in ``kept`` stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in kept or category(c) == "Zs" else ascii(c)[1:-1] for c in text
    )


class _Escaping:
    """A stream of text on which no text from a file can control the terminal."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(escaped(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def escaping() -> contextlib.AbstractContextManager[Any]:
    """Escape terminal controls on standard output; tables keep their own style."""
    return contextlib.redirect_stdout(_Escaping(sys.stdout))


def plain_stream() -> TextIO:
    """Return standard output as it is, for code that escapes its own texts."""
    stream: Any = sys.stdout
    plain: TextIO = stream.stream if isinstance(stream, _Escaping) else stream
    return plain


_pressed = False


@contextlib.contextmanager
def noting_interrupts() -> Iterator[None]:
    """Note Ctrl-C while a command runs, and raise `KeyboardInterrupt` as usual."""
    global _pressed
    _pressed = False
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # as in the background
        yield
        return
    try:
        signal.signal(signal.SIGINT, _note)
    except ValueError:  # in a thread, which gets no signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def check_interrupt() -> None:
    """Raise `KeyboardInterrupt` if Ctrl-C was pressed, before a step that cannot be undone."""
    if _pressed:
        raise KeyboardInterrupt


def _note(_signal: int, _frame: FrameType | None) -> None:
    global _pressed
    _pressed = True
    raise KeyboardInterrupt


REFUSED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
#: Exit code of a command that did all it could; a person has to do the rest.
NEEDS_PERSON = 3

#: By command, or for all commands, options that were removed, and what to do instead.
_REMOVED = {
    **dict.fromkeys(
        (
            *("plan draw --secret", "round next --secret", "round next --layout"),
            *(f"round {name} --plan" for name in ("next", "show", "model", "ranges")),
        ),
        NO_HIDDEN,
    ),
    "--join": "join the tables in a query of DuckDB or PostgreSQL, and give it with --read "
    "query=... (the "
    "page on databases shows one)",
    **dict.fromkeys(
        [f"round book --{name}" for name in ("forecast", "data-set", "plot")],
        "hushtable round show ROUND --key SITE.key lists what further rounds would cost",
    ),
    "round open --max-rows": NO_MAX_ROWS,
    "report --round": "hushtable round verify RESULT SUBMISSION... --round ROUND checks them",
    **dict.fromkeys(
        ("round ranges --site", "round ranges --data"),
        "draw a plan from the ranges (-o ranges.toml, hushtable plan draw); under it, hushtable "
        "sketch counts the rows outside",
    ),
    "fit --keep-text": "--as COLUMN=category keeps the texts of a column",
    **dict.fromkeys(
        ("fit --table", "plan draft --table", "plan check --table"),
        "hushtable check DATA shows how each column is read",
    ),
    "--threads": "it uses all cores that the process may use (on Linux, taskset limits these)",
    **dict.fromkeys(
        ("plan draw --participations", "plan draw --apart"),
        "they are the second and the third number of --horizon T,K,A",
    ),
    "plan draw --relations": "hushtable fit --relations finds relations where the rows are",
    **dict.fromkeys(
        ("plan draw --ranges", "plan marginals --ranges"),
        "in Python, Plan.draw(release.ranges(), ...) draws from the narrower ranges",
    ),
    **dict.fromkeys(
        ("release --mechanism", "release --share"),
        "in Python, sketch.release(ReleaseTerms(...)) takes it",
    ),
    "score --threshold": "--contamination flags a share or a number of rows; the file has all "
    "scores",
    "watch --threshold": "hushtable fit --contamination sets the threshold of the model",
    "drift --model": "fit a model to the one set of rows (hushtable fit), and compare the other "
    "with it",
    "plan draft --force": "name another file, or remove the one that exists",
    "score --only-counted": "leave rows of new contexts out of the file",
    "score --marginals": "reasons compare values with what is usual among the rows that the model "
    "counted, or else among those that are scored",
    "watch --format": "the list is a CSV file; hushtable score --top writes other formats",
    "report --contamination": "hushtable score --contamination flags rows; the report shows the "
    "model's threshold (hushtable fit --contamination)",
    "score --count": "--contamination N flags the N rows with the lowest scores",
    "bench --attacks": "hushtable bench attacks is a case of its own",
    "bench --rows": "--max-rows limits the rows of each set",
    **dict.fromkeys(
        ("bench --budget", "bench --epsilons"), "it is fixed, so that results can be compared"
    ),
    "demo --report": "hushtable report writes the page of your own model and rows",
}

#: Files that the running command has completed; an interruption names them.
written: list[str] = []


def _failure(error: BaseException) -> tuple[str, str, int]:
    kind = type(error).__name__
    if isinstance(error, HushTableError):
        code = WRONG_USAGE if isinstance(error, UsageError) else REFUSED
        return str(error).rstrip(), kind, code
    if isinstance(error, KeyboardInterrupt) or kind == "Abort":
        done = f"{' and '.join(written)} had already been written." if written else ""
        return f"Interrupted: {done or 'nothing was written.'}", "Interrupted", INTERRUPTED
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return where + explain(error), kind, REFUSED
    if isinstance(error, MemoryError):
        message = "out of memory: use a machine with more memory, or fewer cores (taskset on Linux)"
        return message, kind, REFUSED
    if hasattr(error, "format_message"):  # raised by the command-line parser
        context = getattr(error, "ctx", None)
        called = "" if context is None else context.command_path.partition(" ")[2]
        name = getattr(error, "option_name", "")
        option = f"{called} {name}"
        entry = name.removeprefix("--").replace("-", "_")
        taken = [] if context is None else [parameter.name for parameter in context.command.params]
        if entry in READ and "read" in taken:
            value = "true" if entry in SWITCHES else "..."
            message = f"hushtable {option} is now an entry of --read: --read {entry}={value}"
            return message, "UsageError", WRONG_USAGE
        if instead := _REMOVED.get(option) or _REMOVED.get(name):
            return f"hushtable {option} was removed: {instead}", "UsageError", WRONG_USAGE
        hint = f"\nTry: {context.command_path} --help" if context is not None else ""
        return error.format_message() + hint, "UsageError", WRONG_USAGE
    message = (
        f"unexpected {kind}, which is a bug in hushtable: set HUSHTABLE_DEBUG=1 to see where it "
        "happened, and report it"
    )
    return message, kind, REFUSED


def report(error: BaseException, *, as_json: bool) -> int:
    """Print what went wrong to stderr (and, for machines, to stdout); return the exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else REFUSED
    if isinstance(error, BrokenPipeError):
        _abandon_stdout()  # the reader, such as head, closed the pipe: this is not an error
        return REFUSED
    words, kind, code = _failure(error)
    message = escaped(without_secrets(words))  # the system and the parser repeat what was typed
    if code == REFUSED and os.environ.get("HUSHTABLE_DEBUG"):
        traceback.print_exception(error)
    prefix = "" if code == INTERRUPTED else "hushtable: error: "
    with contextlib.suppress(OSError):
        print(prefix + message, file=sys.stderr, flush=True)
    try:
        if as_json:
            print(json.dumps({"error": message, "kind": kind}))
        sys.stdout.flush()
    except OSError:
        _abandon_stdout()
    return code


def _abandon_stdout() -> None:
    """Discard pending output, so that it cannot make the exit fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
