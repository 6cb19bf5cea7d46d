"""The command line: one file a command; `main` runs one and turns failures into exit codes.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted.
"""

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
    try:
        # In here, so that Ctrl-C during the imports ends as quietly as later.
        from hushtable.cli._app import run

        return run(given or ["--help"])
    except BaseException as error:
        from hushtable.cli._errors import report

        return report(error, as_json="--json" in given)
