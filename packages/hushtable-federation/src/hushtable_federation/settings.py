"""The file of a site, ``north.toml``: its keys, its rows, and how to read them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from hushtable.data.layout_file import joined
from hushtable.errors import NO_HIDDEN, FileError, explain
from hushtable_federation.book.book import ALL_ROWS
from hushtable_federation.credentials import (
    BY_DEFAULT,
    FolderAddress,
    resolved,
    unfit_folder,
    unfit_login,
)
from hushtable_federation.toml_file import SWITCH, TEXT, Kind, TomlFile, is_texts

#: Marks settings that name no file. All others are paths, relative to the site's file, or URLs.
_NO_PATH = {"is_path": False}
_FROM_0: Kind = (lambda value: type(value) is int and value >= 0, "a number, 0 or more")
_LIST: Kind = (
    lambda value: is_texts(value) or isinstance(value, str),
    'a list, such as ["a", "b"]',
)
#: How rows are read: options of commands that name no file, and all of them.
_PLAIN_READS: dict[str, Kind] = {
    **dict.fromkeys(("columns", "drop", "missing"), _LIST),
    **dict.fromkeys(("no_header", "listed_units", "independent"), SWITCH),
    **dict.fromkeys(("skip_lines", "skip_footer"), _FROM_0),
    **dict.fromkeys(
        ("decimal", "dates", "encoding", "delimiter", "sheet", "member", "time", "zone"), TEXT
    ),
    **dict.fromkeys(("cdm", "by"), TEXT),
    "omop": (lambda value: value in ("person", "visit"), '"person" or "visit"'),
    "within": (lambda value: type(value) is int and value > 0, "a number of days, 1 or more"),
    "as": (
        lambda value: isinstance(value, dict) and is_texts(list(value.values())),
        'a table of columns and kinds, such as { tsh = "number" }',
    ),
}
_READS: dict[str, Kind] = _PLAIN_READS | {"concepts": TEXT, "query": TEXT}
#: All other entries.
_OTHERS: dict[str, Kind] = {
    **dict.fromkeys(
        (
            "key", "book", "policy", "rows", "approvals", "results", "folder", "host_key", "login",
            "log", "metrics", "data_set", "person",
        ),
        TEXT,
    ),
    "threads": (
        lambda value: type(value) is int and (value == -1 or value > 0),
        "1 or more, or -1 for every core",
    ),
}  # fmt: skip
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
    log : str
        Where visits are logged: ``"syslog"`` or a path; empty for no log.
    metrics : Path or None
        Text file of metrics for Prometheus.
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
    log: str = ""
    metrics: Path | None = None
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
        paths = [one.name for one in fields(self) if one.metadata.get("is_path", True)]
        named = {name: getattr(self, name) for name in paths}
        named |= {
            name: one for name, one in self.reads.items() if name not in (*_PLAIN_READS, "as_")
        }
        if not str(named.get("query", "")).endswith(".sql"):  # it is the text of the query
            named.pop("query", None)
        if self.log == "syslog":
            del named["log"]
        named["log of reasons"] = self.book.with_suffix(".log")
        return {name: str(one) for name, one in named.items() if one}

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
            reads["as_"] = reads.pop("as")
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
    error = file.error
    if "plan" in file.entries:
        raise error("plan", f"the entry plan cannot be used: {NO_HIDDEN}; then remove this entry")
    if "database" in file.entries:
        raise error("database", "the entry database was removed: name the rows (rows = ...)")
    given = file.check(_OTHERS | _READS)
    if "key" not in given:
        raise error("key", 'no entry key: name the keys, such as key = "north.key"')
    if words := unfit_folder(given.get("folder", "")):
        raise error("folder", words)
    if words := unfit_login(given.get("login", "agent")):
        raise error("login", words)
    for (one, other), remedy in _APART.items():
        if one in given and other in given:
            raise error(other, f"{one} and {other} exclude each other: {remedy}")
    for one, other in _WITH.items():
        if one in given and other not in given:
            raise error(one, f"{one} needs {other}{_EXAMPLES[other]}: add that entry")


def _value(file: TomlFile, name: str) -> Any:
    # An entry as the settings store it: paths are relative to the file's folder.
    value, folder = file.entries[name], file.path.parent
    if name == "login":
        return resolved(value, folder)
    if name in ("key", "book", "policy", "results", "metrics", "concepts"):
        return Path(value) if "://" in value else folder / value
    is_word = (
        (name == "log" and value == "syslog")
        or (name == "host_key" and value.startswith("SHA256:"))
        or (name == "query" and not value.endswith(".sql"))
    )
    if name in ("rows", "approvals", "folder", "log", "host_key", "query"):
        return value if is_word or "://" in value else str(folder / value)
    if name == "as":
        return [joined([f"{column}={kind}"]) for column, kind in value.items()]
    return joined(value) if isinstance(value, list) else value
