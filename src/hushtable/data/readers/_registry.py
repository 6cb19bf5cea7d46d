"""Sources of rows: those in memory by a predicate, files by the ending of their names."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from hushtable.data.readers._reader import Reader

OpenFile: TypeAlias = Callable[[Path, frozenset[str]], Any]

#: By the ending of a file's name: what the format is called, and what opens such a file.
FORMATS: dict[str, tuple[str, OpenFile]] = {}
#: Predicates and openers of objects in memory; the first that takes an object opens it.
SOURCES: list[tuple[Callable[[Any], bool], Callable[[Any], Any]]] = []


def register_format(name: str, endings: Iterable[str], open_file: OpenFile) -> None:
    """Register a format of files; it can then be read wherever rows are taken.

    Parameters
    ----------
    name : str
        What the format is called, for messages.
    endings : iterable of str
        Endings of its files' names, in small letters with their dot, such as ``".jsonl"``.
    open_file : callable
        Takes the path, and the names of the columns to be read as text even where they look
        like numbers. Returns anything else that rows are read from, such as a pyarrow Table, or
        a Dataset if the rows should not be held in memory. A `ValueError` means that the file is
        not of this format.

    Examples
    --------
    >>> from pyarrow import json
    >>> from hushtable.data import register_format
    >>> register_format("JSON lines", [".jsonl"], lambda path, texts: json.read_json(path))
    """
    FORMATS.update(dict.fromkeys(endings, (name, open_file)))


def register_source(takes: Callable[[Any], bool], open_: Callable[[Any], Any]) -> None:
    """Register a kind of object that rows are read from; it is asked before the older ones.

    Parameters
    ----------
    takes : callable
        Whether an object is of this kind. It is called with every object that rows are read
        from: it must not fail, and should import nothing.
    open_ : callable
        Takes the object; returns anything else that rows are read from.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable.data import register_source
    >>> register_source(lambda data: isinstance(data, dict), pa.table)
    """
    SOURCES.insert(0, (takes, open_))


def opened(data: Any) -> Reader:
    """Open rows in memory by the first source that takes them."""
    while not isinstance(data, Reader):
        data = next(open_ for takes, open_ in SOURCES if takes(data))(data)
    return data
