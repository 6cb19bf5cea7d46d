"""Entries that state how rows are read: of the option ``--read``, and of layout files.

A layout file is in TOML. Its entries have the names and values that ``--read NAME=VALUE`` takes.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hushtable.errors import FileError, UsageError, explain

#: Entries that commands which analyse rows also take as options of their own.
OPTIONS = ("columns", "drop", "missing", "as", "decimal", "dates")
_LISTS = ("columns", "drop", "missing", "as")
SWITCHES = ("no_header", "independent", "listed_units")
#: Whole numbers, with the least that each takes.
_NUMBERS = {"skip_lines": 0, "skip_below": 0, "skip_footer": 0, "within": 1}
_TEXTS = (
    "encoding", "delimiter", "sheet", "query", "member", "time", "zone", "entity", "omop",
    "concepts", "cdm", "by",
)  # fmt: skip
#: Entries that ``--read`` takes.
READ = (*OPTIONS, *SWITCHES, *_NUMBERS, *_TEXTS)
#: Entries that have few values.
_CHOICES = {"omop": ("person", "visit"), "decimal": (",", "."), "dates": ("dmy", "mdy", "ymd")}


def read_entries(given: Iterable[str]) -> dict[str, Any]:
    """Return the entries of several ``--read``, each ``NAME=VALUE`` or the path of a layout file.

    Raises
    ------
    UsageError
        If an entry is unknown, is there twice, or has a value that it does not take.
    FileError
        If a file cannot be read.
    """
    entries: dict[str, Any] = {}
    for one in given:
        name, equals, text = one.partition("=")
        name = name.strip().replace("-", "_")
        new = {name: _parsed(name, text)} if equals and name in READ else _of_file(one)
        if twice := sorted(entries.keys() & new.keys()):
            raise UsageError(f"--read {one}: {twice[0]} is given twice: give it once")
        entries |= new
    return entries


def _parsed(name: str, text: str) -> Any:
    """Return the value of an entry that was typed."""
    value: Any = text
    if name in SWITCHES:
        value = {"true": True, "false": False}.get(text.lower(), text)
    elif name in _NUMBERS and text.strip().isdecimal():
        value = int(text)
    if words := unfit(name, value):
        raise UsageError(f"--read {name}={text}: needs {words}")
    return value


def _of_file(path: str) -> dict[str, object]:
    import tomllib

    try:
        content = tomllib.loads(Path(path).read_text("utf-8-sig"))
    except FileNotFoundError:
        raise UsageError(
            f"--read {path}: there is no such layout file, and no entry of that name: name a file, "
            f"or give NAME=VALUE, where NAME is one of {', '.join(sorted(READ))}"
        ) from None
    except OSError as error:
        raise FileError(f"{path}: {explain(error)}") from None
    except ValueError as error:  # it names the line
        raise FileError(f"{path}: this is not a TOML file in UTF-8: {error}") from None
    return {name: _checked(path, name, value) for name, value in content.items()}


def _checked(path: str, name: str, value: Any) -> Any:
    """Return the value of an entry of a file as the option of that name takes it."""
    if name not in READ:
        raise FileError(
            f"{path}: unknown entry {name!r}: known entries are {', '.join(sorted(READ))}"
        )
    if words := unfit(name, value):
        raise FileError(f"{path}: {name} = {value!r:.80}: needs {words}")
    return as_option(name, value, Path(path).parent)


def as_option(name: str, value: Any, folder: Path) -> Any:
    """Return the value of an entry as the option takes it; paths are relative to a folder."""
    if name == "as" and isinstance(value, Mapping):
        value = [f"{column}={kind}" for column, kind in value.items()]
    is_path = name == "concepts" or (name == "query" and value.endswith(".sql"))
    if is_path and "://" not in value:
        value = str(folder / value)
    return joined(value) if isinstance(value, list) else value


def unfit(name: str, value: object) -> str:
    """Return what an entry needs, in words; empty if it has a value that it takes."""
    if name in SWITCHES:
        return "" if isinstance(value, bool) else "true or false"
    if name in _NUMBERS:
        least = _NUMBERS[name]
        fits = type(value) is int and value >= least
        return "" if fits else f"a whole number, {least} or more"
    if name in _CHOICES:
        return "" if value in _CHOICES[name] else " or ".join(_CHOICES[name])
    if name == "as" and isinstance(value, Mapping):
        fits = all(isinstance(kind, str) for kind in value.values())
    elif name in _LISTS and isinstance(value, list):
        fits = all(isinstance(item, str) for item in value)
    else:
        fits = isinstance(value, str) and bool(value)
    return "" if fits else "a text" + ", or a list of texts" * (name in _LISTS)


def joined(names: Iterable[str]) -> str:
    """Return names as one text, in the form that options take."""
    text = io.StringIO()
    csv.writer(text).writerow(names)  # quotes what its line ends contain, too
    return text.getvalue().removesuffix("\r\n")


def entry(name: str, value: object) -> str:
    """Return the line of a layout file for an entry."""
    return f"{name} = {in_toml(value)}"


def in_toml(value: object) -> str:
    """Return a text, number, truth value, or list of them in TOML."""
    # As JSON, except for a character that TOML requires to be escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
