"""The kinds of files that belong to a round; entry points name each of them.

Nothing is imported for a kind before a file of it is read.
"""

from pathlib import Path
from typing import Any

from hushtable.files import ROUND as OF_ROUND
from hushtable.files import SMALL, Content, Kind


def _inspect(file: Path, content: Content) -> Any:
    from hushtable_federation.cli.show import inspect_round

    return inspect_round(file, content)


ROUND = Kind("a round of hushtable round open", True, OF_ROUND, inspect=_inspect)
SUBMISSION = Kind("a site's counts in a round", True, SMALL, inspect=_inspect)
MESSAGE = Kind("a message of a round that runs online", True, SMALL, inspect=_inspect)
