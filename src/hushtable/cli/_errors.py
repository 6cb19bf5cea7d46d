"""What a failure says, and the exit code that it ends with."""

import contextlib
import errno
import json
import os
import sys
import traceback
from dataclasses import dataclass

from hushtable.errors import HushTableError, UsageError

__all__ = ["INTERRUPTED", "explain", "report", "written"]

REFUSED, WRONG_USAGE, INTERRUPTED = 1, 2, 130

#: Files that the running command has completed; an interruption names them.
written: list[str] = []

_ADVICE = {
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path",
    errno.EISDIR: "name a file, not a folder",
    errno.EACCES: "ask for the permission, or use another folder",
    errno.EPERM: "ask for the permission, or use another folder",
    errno.EROFS: "use another folder",
    errno.ENOSPC: "free some space, or use another disk",
    errno.EDQUOT: "free some space, or use another disk",
    errno.EFBIG: "free some space, or use another disk",
}


@dataclass(frozen=True)
class _Failure:
    message: str
    kind: str
    code: int = REFUSED


def explain(error: OSError) -> str:
    """Say in words what the system refused, and what to do about it."""
    what = (os.strerror(error.errno) if error.errno else "") or str(error)
    advice = _ADVICE.get(error.errno or 0)
    return what + (f": {advice}" if advice else "")


def _failure(error: BaseException) -> _Failure:
    kind = type(error).__name__
    if isinstance(error, HushTableError):
        code = WRONG_USAGE if isinstance(error, UsageError) else REFUSED
        return _Failure(str(error).rstrip(), kind, code)
    if isinstance(error, KeyboardInterrupt) or kind == "Abort":
        done = f"{' and '.join(written)} had been written." if written else ""
        return _Failure(
            f"Interrupted: {done or 'nothing was written.'}", "Interrupted", INTERRUPTED
        )
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return _Failure(where + explain(error), kind)
    if isinstance(error, MemoryError):
        return _Failure("out of memory: use a machine with more, or fewer --threads", kind)
    if hasattr(error, "format_message"):  # what the parser of the command line raises
        context = getattr(error, "ctx", None)
        hint = f"\nTry: {context.command_path} --help" if context is not None else ""
        return _Failure(error.format_message() + hint, "UsageError", WRONG_USAGE)
    return _Failure(
        f"unexpected {kind}, which is a bug in hushtable: set HUSHTABLE_DEBUG=1 to see where it "
        "happened, and please report it",
        kind,
    )


def report(error: BaseException, *, as_json: bool) -> int:
    """Print what went wrong to stderr (and, for machines, to stdout); return the exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else REFUSED
    if isinstance(error, BrokenPipeError):
        _abandon_stdout()  # the reader, such as head, has had enough: nothing to complain about
        return REFUSED
    failure = _failure(error)
    message = _printable(failure.message)
    if failure.code == REFUSED and os.environ.get("HUSHTABLE_DEBUG"):
        traceback.print_exception(error)
    prefix = "" if failure.code == INTERRUPTED else "hushtable: error: "
    with contextlib.suppress(OSError):
        print(prefix + message, file=sys.stderr, flush=True)
    try:
        if as_json:
            print(json.dumps({"error": message, "kind": failure.kind}))
        sys.stdout.flush()
    except OSError:
        _abandon_stdout()
    return failure.code


def _printable(message: str) -> str:
    """Escape what a damaged file may have put into a message and a terminal might obey."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in message)


def _abandon_stdout() -> None:
    """Send what is still to be printed nowhere, so that the exit does not fail over it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
