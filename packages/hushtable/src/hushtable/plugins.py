"""Plug-ins of other packages: commands, kinds of files, draws, readers, exports, extensions.

Each is an entry point of an installed package, in a group named below, and is imported when it is
used. The packages of this repository add theirs in the same way. May import errors alone; tested
by ``tests/test_plugins.py``.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from hushtable.errors import (
    NO_PRIVATE_RELATIONS,
    NO_SHARED_VERDICTS,
    HushTableError,
    PluginError,
)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint  # which takes a while to import

#: Tables of commands, as `hushtable.cli.app.COMMANDS`; homes are modules beside the table's.
COMMANDS = "hushtable.commands"
#: By the kind's name, a `hushtable.files.Kind`.
KINDS = "hushtable.kinds"
#: Modules that register draws and hash families when they are imported.
DRAWS = "hushtable.draws"
#: Functions without parameters, which call `hushtable.data.register_format` or `register_source`.
READERS = "hushtable.readers"
#: By the ending of its files, a `hushtable_connect.exports.Format`.
EXPORTS = "hushtable.exports"
#: By the name of an extension that the core asks for, a function; `extension` lists the names.
EXTENSIONS = "hushtable.extensions"
#: What this distribution's own packages are called; they have one version.
_OURS = "hushtable-"
#: Names of detectors, their classes and their hash families that hushtable-bench registers.
_OF_BENCH = frozenset({
    "ACE", "RSHash", "RandomProjection", "RotatedRSHash", "SimHash", "SubspaceGrid", "ace",
    "rotated_rs_hash", "rs_hash",
})  # fmt: skip

T = TypeVar("T")


@cache
def points(group: str) -> "dict[str, EntryPoint]":
    """Return the entry points of a group by name.

    Raises `PluginError` if two packages have one of the same name.
    """
    from importlib.metadata import entry_points

    by_name: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=group), key=lambda entry: (entry.name, _package(entry))):
        other = by_name.setdefault(point.name, point)
        if other.value != point.value:
            raise PluginError(
                f"two packages add {point.name!r} to {group}: {_package(other)} and "
                f"{_package(point)}: remove one of them (pip uninstall)"
            )
    return by_name


def find(group: str, name: str) -> Any | None:
    """Return the object that a package adds to a group under a name; None if none does.

    Raises `PluginError` if it does not load, or has a different version than this package.
    """
    point = points(group).get(name)
    return None if point is None else _loaded(point)


def each(group: str) -> "Iterator[tuple[EntryPoint, Any | PluginError]]":
    """Yield the entry points of a group, each with its object, or with the reason why it fails."""
    for point in points(group).values():
        try:
            yield point, _loaded(point)
        except PluginError as error:
            yield point, error


def registered(among: Mapping[str, T], name: object) -> T | None:
    """Return what is registered under a name, if necessary after packages have added draws.

    Raises `PluginError` if the draws of a package do not load.
    """
    if not isinstance(name, str):
        return None
    if name not in among:
        for _, module in each(DRAWS):  # importing a package's draws registers them
            if isinstance(module, PluginError):
                raise module
    return among.get(name)


#: By the name of a kind of plan or a family that was dropped, why it is refused.
_DROPPED = {
    "verdicts": NO_SHARED_VERDICTS, "Labelled": NO_SHARED_VERDICTS,
    "relations": NO_PRIVATE_RELATIONS,
}  # fmt: skip


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """Return the words for an error about a name that `registered` did not find."""
    if isinstance(name, str) and name in _DROPPED:
        return _DROPPED[name]
    if isinstance(name, str) and name in _OF_BENCH:
        return (
            f"{what} {name!r} needs the package {_OURS}bench, which is not installed: pip install "
            f"{_OURS}bench"
        )
    return (
        f"{what} {name!r} is unknown: needs one of {sorted(known)}, or a later version of hushtable"
    )


def extension(name: str, what: str, package: str) -> Any:
    """Return an extension of another package of this repository.

    ``name`` is one of `EXTENSIONS`: ``inspect_card``, ``omop``, ``registry_draft`` or
    ``seal``. Raises `PluginError` if the package, which messages name, is not
    installed.
    """
    made = find(EXTENSIONS, name)
    if made is None:
        raise missing(what, package)
    return made


def missing(what: str, package: str) -> PluginError:
    """Return the error for a missing package of this repository."""
    return PluginError(
        f"{what} needs the package {_OURS}{package}, which is not installed: "
        f"pip install 'hushtable[{package}]'"
    )


def _loaded(point: "EntryPoint") -> Any:
    from importlib.metadata import version

    dist = point.dist
    if dist is not None and dist.name.startswith(_OURS) and dist.version != version("hushtable"):
        raise PluginError(
            f"{dist.name} {dist.version} does not match hushtable {version('hushtable')}: install "
            f"the same version of both (pip install -U hushtable {dist.name})"
        )
    try:
        return point.load()
    except HushTableError:
        raise
    except Exception as error:  # it is another package's, and may fail in any way
        raise PluginError(
            f"the plug-in {point.name!r} of {_package(point)} ({point.value}) does not load: "
            f"{type(error).__name__}: {error}: repair that package, or remove it"
        ) from error


def _package(point: "EntryPoint") -> str:
    return point.value.partition(":")[0] if point.dist is None else point.dist.name
