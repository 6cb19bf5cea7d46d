"""The file of a site, ``north.toml``: its keys, its rows, and how to read them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from hushtable.data.layout_file import OPTIONS, READ, as_option, unfit
from hushtable.errors import NO_HIDDEN, FileError, explain
from hushtable_federation.book.book import ALL_ROWS
from hushtable_federation.credentials import (
    BY_DEFAULT,
    FolderAddress,
    resolved,
    unfit_folder,
    unfit_login,
)
from hushtable_federation.toml_file import TEXT, Kind, TomlFile

#: Marks settings that name no file. All others are paths, relative to the site's file, or URLs.
_NO_PATH = {"is_path": False}


def _kind(name: str) -> Kind:
    return (lambda value: not unfit(name, value)), unfit(name, None)


#: How rows are read: entries as in layout files, except for histories, which no round counts.
_READS = {name: _kind(name) for name in (*OPTIONS, *READ) if name != "entity"}
#: All other entries.
_OTHERS: dict[str, Kind] = {
    **dict.fromkeys(
        (
            "key", "book", "policy", "rows", "approvals", "results", "folder", "host_key", "login",
            "data_set", "person",
        ),
        TEXT,
    ),
    "threads": (
        lambda value: type(value) is int and (value == -1 or value > 0),
        "1 or more, or -1 for every core",
    ),
}  # fmt: skip
#: Entries of earlier versions, and what to do.
_REMOVED = {
    "plan": f"the entry plan cannot be used: {NO_HIDDEN}; then remove this entry",
    "database": "the entry database was removed: name the rows (rows = ...)",
    **{
        name: f"the entry {name} was removed: remove it, and record what hushtable round sync "
        "--unattended --json prints"
        for name in ("log", "metrics")
    },
}
#: Entries that exclude each other, and what to do.
_APART = {
    ("columns", "drop"): "give only one of the two",
    ("omop", "sheet"): "OMOP tables are in a database: leave out the sheet",
    ("omop", "member"): "OMOP tables have fixed names: leave out the member",
    ("omop", "query"): "omop uses its own query: leave out the query",
}
#: Entries that need another one.
_WITH = {
    "concepts": "omop", "cdm": "omop", "by": "omop", "listed_units": "omop", "within": "omop",
    "host_key": "folder", "login": "folder",
}  # fmt: skip
_EXAMPLES = {"omop": ' = "person" or "visit"', "folder": ' = "sftp://..."'}
#: From here on, the template is about rows.
_OF_SITE = "# --- of a site alone ---\n\n"
_TEMPLATE = Path(__file__).with_name("site.toml")


@dataclass(frozen=True)
class SiteSettings:
    """The settings in a site's file; missing ones have defaults, such as files beside the keys.

    Attributes
    ----------
    key, book, policy : Path
        The site's keys, its book and its policy.
    rows : str or None
        A file, folder, pattern or URL, as for DATA in commands; None if none is named.
    approvals : str
        Pattern for the officer's approval files.
    results : Path
        Folder where results are written.
    address : FolderAddress
        The folder of rounds, and how to reach it: the entries ``folder``, ``host_key`` and
        ``login``.
    data_set : str
        Name of the rows; each name has its own budget.
    person : str or None
        Column that identifies persons.
    threads : int
        Threads to count with; -1 for every core.
    reads : mapping
        Reading options, named as on the command line.
    path : Path or None
        The file; None if only keys were given.

    Examples
    --------
    >>> from hushtable_federation import SiteSettings
    >>> SiteSettings.load("north.key").book.name
    'north.book'
    """

    key: Path
    book: Path
    policy: Path
    rows: str | None = None
    approvals: str = ""
    results: Path = Path()
    address: FolderAddress = field(default=BY_DEFAULT, metadata=_NO_PATH)
    data_set: str = field(default=ALL_ROWS, metadata=_NO_PATH)
    person: str | None = field(default=None, metadata=_NO_PATH)
    threads: int = field(default=-1, metadata=_NO_PATH)
    reads: Mapping[str, Any] = field(default_factory=dict, metadata=_NO_PATH)
    path: Path | None = None

    @property
    def query(self) -> str:
        """The text of the query that makes the rows; empty without one."""
        given = str(self.reads.get("query", "")).strip()
        if not given.endswith(".sql"):
            return given
        try:
            return Path(given).read_text(encoding="utf-8-sig").strip()
        except OSError as error:
            raise FileError(f"{given}: the query cannot be read: {explain(error)}") from None
        except UnicodeDecodeError:
            raise FileError(f"{given}: the query is not UTF-8: save the file as UTF-8") from None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "SiteSettings":
        """Read a site's file, or the files beside its keys.

        Parameters
        ----------
        path : path-like
            ``north.toml``, or ``north.key``: then ``north.toml`` beside it, if there is one.

        Raises
        ------
        FileError
            If the file cannot be read, or an entry is unknown, missing, of the wrong type, or
            contradicts another one; the message names its line.
        """
        given = Path(path)
        if given.suffix == ".toml":
            return cls._of_file(given)
        if not given.name:
            raise FileError(f"{given} is a folder: name the keys or the site's file")
        beside = given.with_suffix(".toml")
        if not beside.exists():
            return cls._of_key(given)
        made = cls._of_file(beside)
        if made.key.absolute() != given.absolute():
            raise FileError(
                f"{beside} is about the keys {made.key}, not {given}: name the file that you mean"
            )
        return made

    def files(self) -> dict[str, str]:
        """Return all paths, patterns and URLs of the settings by entry, except ``address``.

        What is not marked as something else counts as a path.
        """
        paths = [entry.name for entry in fields(self) if entry.metadata.get("is_path", True)]
        named = {name: getattr(self, name) for name in paths}
        no_paths = {*_READS, "as_"} - {"concepts", "query"}
        named |= {name: entry for name, entry in self.reads.items() if name not in no_paths}
        if not str(named.get("query", "")).endswith(".sql"):  # it is the text of the query
            named.pop("query", None)
        named["log of reasons"] = self.book.with_suffix(".log")
        return {name: str(entry) for name, entry in named.items() if entry}

    @classmethod
    def _of_file(cls, given: Path) -> "SiteSettings":
        remedy = (
            "name the site's file, which hushtable round keygen writes beside the keys, or the "
            "keys themselves"
        )
        file = TomlFile.read(given, remedy)
        _check(file)
        values = {name: _value(file, name) for name in file.entries}
        address = {name: values.pop(name, "") for name in ("folder", "host_key", "login")}
        reads = {name: values.pop(name) for name in [*values] if name in _READS}
        if "as" in reads:
            reads["as_"] = [reads.pop("as")]
        made = cls._of_key(values["key"])
        others = {"results": given.parent, **values, "address": FolderAddress(**address)}
        return replace(made, **others, reads=reads, path=given)

    @classmethod
    def _of_key(cls, key: Path) -> "SiteSettings":
        return cls(key, key.with_suffix(".book"), key.with_suffix(".policy.toml"))


def site_files(folder: Path) -> list[Path]:
    """Return the sites' files directly in a folder, sorted: those with their keys beside them."""
    return [path for path in sorted(folder.glob("*.toml")) if path.with_suffix(".key").exists()]


def write_settings(path: Path, name: str, *, site: bool = True) -> None:
    """Write a party's file with the usual entries as comments, for a person to fill in.

    A coordinator (``site=False``) has no rows.
    """
    text = _TEMPLATE.read_text(encoding="utf-8").replace("@NAME@", name)
    common, _, of_site = text.partition(_OF_SITE)
    path.write_text(f"{common}\n{of_site}" if site else common, encoding="utf-8")


def _check(file: TomlFile) -> None:
    for name, words in _REMOVED.items():
        if name in file.entries:
            raise file.error(name, words)
    given = file.check(_OTHERS | _READS)
    faults = [
        ("key", "" if "key" in given else 'no entry key: name the keys, such as key = "north.key"'),
        ("folder", unfit_folder(given.get("folder", ""))),
        ("login", unfit_login(given.get("login", "agent"))),
    ]
    faults += [
        (other, f"{entry} and {other} exclude each other: {remedy}")
        for (entry, other), remedy in _APART.items()
        if entry in given and other in given
    ]
    faults += [
        (entry, f"{entry} needs {other}{_EXAMPLES[other]}: add that entry")
        for entry, other in _WITH.items()
        if entry in given and other not in given
    ]
    for name, words in faults:
        if words:
            raise file.error(name, words)


def _value(file: TomlFile, name: str) -> Any:
    # An entry as the settings store it: paths are relative to the file's folder.
    value, folder = file.entries[name], file.path.parent
    if name in _READS:
        option = as_option(name, value, folder)
        return Path(option) if name == "concepts" else option
    if name == "login":
        return resolved(value, folder)
    if name in ("key", "book", "policy", "results"):
        return Path(value) if "://" in value else folder / value
    is_word = name == "host_key" and value.startswith("SHA256:")
    if name in ("rows", "approvals", "folder", "host_key"):
        return value if is_word or "://" in value else str(folder / value)
    return value
