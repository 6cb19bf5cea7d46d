"""The kinds of files of rounds and of what is made from them; entry points name each of them.

Nothing is imported for a kind before a file of it is read.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hushtable.files import ROUND as OF_ROUND
from hushtable.files import SMALL, Content, Kind


def _inspect(file: Path, content: Content) -> Any:
    from hushtable_federation.cli.show import inspect_round

    return inspect_round(file, content)


def _home(content: Content) -> Any:
    from hushtable_federation.home import HomeModel

    return HomeModel.from_file(content)


def _of_home(name: str) -> Callable[..., Any]:
    """Return a function of the commands of home models, which are imported when it is called."""

    def call(*given: Any) -> Any:
        from hushtable_federation.cli import home

        return getattr(home, name)(*given)

    return call


HOME = Kind(
    "a home model of hushtable round model --site",
    reader=_home,
    inspect=_of_home("inspect_home"),
    commands={name: _of_home(f"{name}_home") for name in ("score", "report", "learn")},
)
ROUND = Kind("a round of hushtable round open", True, OF_ROUND, inspect=_inspect)
SUBMISSION = Kind("a site's counts in a round", True, SMALL, inspect=_inspect)
MESSAGE = Kind("a message of a round that runs online", True, SMALL, inspect=_inspect)
