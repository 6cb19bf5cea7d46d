"""The text of ``--join``: a table, the column that joins it, and features of its rows."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from hushtable.data.options import names_in
from hushtable.data.readers import FileLayout
from hushtable.errors import UsageError

#: Aggregates of a column's values. Those in the second line need numbers or dates.
AGGREGATES = (
    "count", "distinct", "first", "last",
    "mean", "median", "sum", "min", "max", "std",
)  # fmt: skip
#: Features that are 0, not missing, if a key has no row.
COUNTS = ("count", "distinct")

_EXAMPLE = "--join 'visits.csv on patient: count, mean of value, last date'"
_QUOTED = r'"(?:[^"]|"")*"'
_FILE = re.compile(
    rf"\s*(?P<file>{_QUOTED}|.+?)(?:\s*\((?P<layout>\"?\w+\s*=.*)\))?"
    rf"(?:\s+as\s+(?P<table>{_QUOTED}|\S+))?\s+(?=on\s)",
    re.DOTALL,
)
_NO_FILE = re.compile(r"\s*(?=on\s)")
_KEYS = re.compile(
    rf'on\s+(?P<here>{_QUOTED}|[^":=]+?)\s*(?:=\s*(?P<there>{_QUOTED}|[^":=]+?)\s*)?:'
)
_PIECES = re.compile(rf'(?:{_QUOTED}|[^",])+')
_SHARE = re.compile(rf'share\s+of\s+(?P<column>{_QUOTED}|[^"=]+?)\s*=\s*(?P<value>{_QUOTED}|[^"]+)')
_OTHER = re.compile(
    rf'(?P<how>\S+)\s+(?:of\s+)?(?P<column>{_QUOTED}|[^"]+?)(?:\s+by\s+(?P<by>{_QUOTED}|[^"]+))?'
)
#: Entries of a layout that are not texts.
_YES: Callable[[str], Any] = {"yes": True, "no": False}.__getitem__
_LAYOUT: dict[str, Callable[[str], Any]] = {"skip_lines": int, "header": _YES, "independent": _YES}


@dataclass(frozen=True)
class JoinFeature:
    """A feature of the rows with one key.

    Attributes
    ----------
    how : str
        One of `AGGREGATES`, or ``"share"``.
    column : str
        The column with the values; empty for the number of rows.
    by : str
        For the first or last value: the column that orders the rows.
    value : str or None
        For a share: the value that is counted.
    """

    how: str
    column: str = ""
    by: str = ""
    value: str | None = None

    @property
    def name(self) -> str:
        """The name of its column, which follows the table's name."""
        if not self.column:
            return self.how
        of = "" if self.value is None else f"={self.value}"
        return f"{self.how}_{self.column}{of}"

    @classmethod
    def parse(cls, text: str) -> "JoinFeature":
        """Parse a feature of ``--join``; raise `UsageError` if it is not a feature."""
        text = text.strip()
        if text.lower() == "count":
            return cls("count")
        if found := _SHARE.fullmatch(text):
            return cls("share", _plain(found["column"]), value=_plain(found["value"]))
        found = _OTHER.fullmatch(text)
        how = text.split(maxsplit=1)[0].lower() if text else ""
        if how not in AGGREGATES:
            near = get_close_matches(how, (*AGGREGATES, "share"), 1)
            said = f"; {near[0]!r} is near" if near else ""
            raise UsageError(
                f"--join: {text!r} is not a feature: needs count, share of COLUMN=VALUE, or one of "
                f"{', '.join(AGGREGATES)} with a column, such as mean of value{said}"
            )
        if found is None:
            raise UsageError(f"--join: {text!r}: {how} needs a column, such as {how} of value")
        if found["by"] and how not in ("first", "last"):
            raise UsageError(
                f"--join: {text!r}: by needs first or last; put a column whose name holds ' by ' "
                "in double quotes"
            )
        return cls(how, _plain(found["column"]), _plain(found["by"] or ""))


@dataclass(frozen=True)
class JoinRequest:
    """Features to make from a table, with one row for each of its keys.

    Attributes
    ----------
    key, key_there : str
        The column of the rows and the column of the table that hold the key.
    features : tuple of JoinFeature
        Features of the table's rows with the same key.
    file : str or None
        The file of the table; None if the rows themselves are the table.
    table : str
        The beginning of the features' names, or empty.
    layout : FileLayout
        What is known of the file's layout.
    """

    key: str
    key_there: str
    features: tuple[JoinFeature, ...]
    file: str | None = None
    table: str = ""
    layout: FileLayout = field(default_factory=FileLayout)

    def __post_init__(self) -> None:
        """Refuse features with the same name, and features of the key itself."""
        names = [one.name for one in self.features]
        if twice := [name for name in names if names.count(name) > 1]:
            raise UsageError(f"--join: two features have the name {twice[0]!r}: leave one out")
        if not names:
            raise UsageError(f"--join: needs one feature or more, such as {_EXAMPLE}")
        if self.key_there in self.columns:
            raise UsageError(
                f"--join: {self.key_there!r} is the key, which is the same in all rows of a key: "
                "use another column"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that the features need, without the key."""
        needed = [name for one in self.features for name in (one.column, one.by) if name]
        return tuple(dict.fromkeys(needed))

    def named(self, column: str) -> str:
        """Return the name of a column or feature of the table among those of other tables."""
        return f"{self.table}.{column}" if self.table else column

    @classmethod
    def parse(cls, text: str) -> "JoinRequest":
        """Parse the text of ``--join``.

        Raises
        ------
        UsageError
            If a part is not understood; the message names it.
        """
        head = _NO_FILE.match(text) or _FILE.match(text)
        if head is None:
            raise UsageError(
                f"--join {text!r}: there is no ' on ': needs FILE on KEY: FEATURE, ..., such as "
                f"{_EXAMPLE}"
            )
        keys = _KEYS.match(text, head.end())
        if keys is None:
            raise UsageError(
                f"--join: {text[head.end() :]!r}: needs on KEY: or on KEY=KEY_THERE:, and then the "
                f"features, such as {_EXAMPLE}"
            )
        here = _plain(keys["here"])
        there = here if keys["there"] is None else _plain(keys["there"])
        features = parse_features(_pieces(text[keys.end() :]))
        said: dict[str, Any] = head.groupdict()
        if not said:
            if there != here:
                raise UsageError(
                    f"--join: on {here}={there}: without FILE, there is one key: needs on {there}"
                )
            return cls(here, here, features)
        file, layout = _plain(said["file"]), _layout(said["layout"] or "")
        table = _plain(said["table"] or "") or table_name(file)
        return cls(here, there, features, file, table, layout)


def parse_features(texts: Sequence[str]) -> tuple[JoinFeature, ...]:
    """Parse features of ``--join``, one text each."""
    return tuple(JoinFeature.parse(text) for text in texts)


def table_name(file: str) -> str:
    """Return a name for a table: that of its file or folder, up to the first point.

    Raises `UsageError` if no name is left, for example from a pattern.
    """
    parts = [part for part in re.split(r"[/\\]", file.partition("?")[0]) if part]
    name = re.sub(r"\[.*?\]|[*?]", "", parts[-1].partition(".")[0]) if parts else ""
    name = name.strip("-_ ")
    if not name:
        raise UsageError(
            f"--join: {file!r} gives the features no name: add one, FILE as visits on KEY: ..."
        )
    return name


def _pieces(text: str) -> list[str]:
    """Return texts between commas; double quotes enclose a text that holds a comma."""
    if text.count('"') % 2:
        raise UsageError(f'--join: {text.strip()!r}: a double quote (") is not closed')
    found = _PIECES.findall(text)
    return [piece for piece in found if piece.strip()]


def _plain(name: str) -> str:
    """Return a name without the quotes around it."""
    name = name.strip()
    return name[1:-1].replace('""', '"') if name[:1] == '"' else name


def _layout(text: str) -> FileLayout:
    """Parse the layout of a file: ``sheet=Visits, skip_lines=2``."""
    known = [one.name for one in fields(FileLayout) if one.name != "unasked"]
    said: dict[str, Any] = {}
    for entry in names_in(text):
        name, _, value = entry.partition("=")
        try:
            if name.strip() not in known:
                raise ValueError(name)
            said[name.strip()] = _LAYOUT.get(name.strip(), str)(value.strip())
        except (ValueError, KeyError):
            raise UsageError(
                f"--join: ({entry}) is not an entry of a file's layout: needs entries such as "
                f"(sheet=Visits) or (header=no, skip_lines=2); there are {', '.join(known)}"
            ) from None
    return FileLayout(**said)
