"""The kinds of files that belong to a round; entry points name each of them.

Nothing is imported for them before a file of theirs is read.
"""

from pathlib import Path
from typing import Any

from hushtable import files
from hushtable.files import Content, Kind


def _sealed(content: Content) -> Any:
    from hushtable_federation.sealed import Sealed

    return Sealed.from_file(content)


def _inspect(file: Path, content: Content, as_json: bool) -> None:
    from hushtable_federation.cli.inspect_ import inspect_round

    inspect_round(file, content, as_json)


LAYOUT = Kind("a layout of hushtable plan hide", travels=True, inspect=_inspect)
ROUND = Kind("a round of hushtable round open", True, files.ROUND, inspect=_inspect)
SUBMISSION = Kind("a submission of hushtable round submit", True, files.SMALL, inspect=_inspect)
SEALED = Kind("the result of hushtable round collect", True, files.ROUND, _sealed, _inspect)
SECRET = Kind("a secret of hushtable round secret", True, files.SMALL, inspect=_inspect)
MESSAGE = Kind("a message of a round that runs online", True, files.SMALL, inspect=_inspect)
