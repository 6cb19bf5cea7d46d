"""The command line: one file for each command; `_app` lists them, and loads a command when called.

`main` runs one command and turns its failure into an exit code. This package is above all others
and may import each of them; `_app`, `_errors`, `_interrupts` and this file import no command and
nothing heavy, so that --help answers at once. Other modules here are private. Tested by tests/cli.

Exit codes: 0 success, 1 refused or failed, 2 wrong usage, 3 success, but --fail-above was exceeded
(drift, watch), 130 interrupted.
"""

import gc
import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; raise no exception.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments after the program's name; by default, those from the shell.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:  # the process is ours, and imported modules never become garbage
        gc.set_threshold(100_000)
    code = _code(given)
    if arguments is None and code == 130:
        # Threads may be running compiled code, and Python aborts if it shuts down under them. All
        # files have been written or removed by now.
        os._exit(code)
    return code


def _code(given: list[str]) -> int:
    try:
        # Imported here, so that Ctrl-C during the imports ends as quietly as later.
        from hushtable.cli.errors import noting_interrupts
        from hushtable.errors import in_shell

        with in_shell(), noting_interrupts():
            from hushtable.cli.app import run

            return run(given or ["--help"])
    except BaseException as error:
        from hushtable.cli.errors import report
        from hushtable.errors import in_shell

        with in_shell():
            return report(error, as_json="--json" in given)
