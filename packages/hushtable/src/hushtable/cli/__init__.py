"""The command line: a file a command, listed in the table of `_app`, loaded when it is called.

`main` runs one command and turns its failure into an exit code. Stands above all other rooms and
may import each of them; `_app`, `_errors`, `_interrupts` and this file import no command and
nothing heavy, so that --help answers at once. Other modules here are private. Tested by tests/cli.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 done and above --fail-above (drift,
watch), 130 interrupted.
"""

import gc
import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; no exception leaves.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the program's name; by default, what the shell gave.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:  # the process is ours, and what it imports is no garbage
        gc.set_threshold(100_000)
    code = _code(given)
    if arguments is None and code == 130:
        # Threads may be in the middle of compiled code, and Python aborts where it is taken apart
        # under them. All that is to be written or removed has been.
        os._exit(code)
    return code


def _code(given: list[str]) -> int:
    """Run one command; return its exit code."""
    try:
        # In here, so that Ctrl-C during the imports ends as quietly as later.
        from hushtable.cli.errors import noting_interrupts

        with noting_interrupts():
            from hushtable.cli.app import run

            return run(given or ["--help"])
    except BaseException as error:
        from hushtable.cli.errors import report

        return report(error, as_json="--json" in given)
