"""The kinds of files of rounds and of what is made from them; entry points name each of them.

Nothing is imported for a kind before a file of it is read.
"""

from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any

from hushtable.files import ROUND as OF_ROUND
from hushtable.files import SMALL, Kind


def _later(module: str, name: str) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        return attrgetter(name)(import_module(f"hushtable_federation.{module}"))(*given)

    return call


_inspect = _later("cli.show", "inspect_round")
HOME = Kind(
    "a home model of hushtable round model --site",
    reader=_later("home", "HomeModel.from_file"),
    inspect=_later("cli.model", "inspect_home"),
    commands={"score": _later("cli.model", "score_home")},
)
ROUND = Kind("a round of hushtable round open", True, OF_ROUND, inspect=_inspect)
SUBMISSION = Kind("a site's counts in a round", True, SMALL, inspect=_inspect)
MESSAGE = Kind("a message of a round that runs online", True, SMALL, inspect=_inspect)
