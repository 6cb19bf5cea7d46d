"""The kinds of files that belong to a round; entry points name each of them.

Nothing is imported for a kind before a file of it is read.
"""

from pathlib import Path
from typing import Any

from hushtable.files import ROUND as OF_ROUND
from hushtable.files import SMALL, Content, Kind


def _sealed(content: Content) -> Any:
    from hushtable_federation.layout import Sealed

    return Sealed.from_file(content)


def _inspect(file: Path, content: Content) -> Any:
    from hushtable_federation.cli.show import inspect_round

    return inspect_round(file, content)


LAYOUT = Kind("a layout of hushtable plan hide", travels=True, inspect=_inspect)
ROUND = Kind("a round of hushtable round open", True, OF_ROUND, inspect=_inspect)
SUBMISSION = Kind("a site's counts in a round", True, SMALL, inspect=_inspect)
SEALED = Kind("the result of a round", True, OF_ROUND, _sealed, _inspect)
SECRET = Kind("a secret of hushtable round secret", True, SMALL, inspect=_inspect)
MESSAGE = Kind("a message of a round that runs online", True, SMALL, inspect=_inspect)
