"""Sources of rows: those in memory by a predicate, files by the ending of their names.

Files are one, a folder of them, or a glob pattern; on standard input; or far away, by fsspec
(``s3://``, ``sftp://``, ``https://`` and the like).

"""

import glob
import shutil
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Any, TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa

from hushtable import far, plugins
from hushtable.data.readers.encoding import COMPRESSIONS, says_its_encoding
from hushtable.data.readers.reader import (
    Copy,
    FileLayout,
    Reader,
    named_errors,
    near_names,
    one_after_other,
)
from hushtable.errors import DataError, HushTableError, UsageError


def copies(url: str, is_rows: Callable[[PurePosixPath], bool]) -> list[Copy]:
    """Copy every file of rows that a URL, of a file, a folder or a pattern, names.

    ``is_rows`` says whether a file of a name holds rows.
    """
    shown = far.public(url)
    made = []
    with far.reaching(url, DataError):
        system, root = far.connect(url)
        if set("*[") & set(root):
            found = sorted(name for name in system.glob(root) if is_rows(_name(name)))
        elif is_rows(_name(root)):
            found = [root]
        else:
            found = sorted(name for name in system.find(root) if is_rows(_name(name)))
        for name in found:
            source = shown if name == root else far.public(system.unstrip_protocol(name))
            made.append(Copy.of(source, "".join(_name(name).suffixes[-2:])))
            system.get_file(name, str(made[-1].path))
    if not made:
        raise DataError(f"{shown}: no such file, and no file of rows in it: check the URL")
    return made


def _name(path: str) -> PurePosixPath:
    """Return the last part of a path, which with some backends is a URL with a query."""
    return PurePosixPath(PurePosixPath(path.partition("?")[0]).name)


NAME = "standard input"
#: First bytes of what has to lie in a file, and what it is.
_FILES = {
    b"PAR1": "Parquet", b"ARROW1": "Feather", b"PK\3\4": "a workbook or an archive",
    b"\xd0\xcf\x11\xe0": "a workbook", b"SQLite format": "a database",
    b"(\xb5/\xfd": "compressed by Zstandard", b"BZh": "compressed by bzip2",
}  # fmt: skip
#: What is read already: it cannot be read a second time.
_COPIES: WeakKeyDictionary[Any, Copy] = WeakKeyDictionary()


def standard_input(open_: Callable[[Path], Reader]) -> Reader:
    """Read CSV or JSON lines from standard input, which is copied to a temporary file first."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None or stream.closed:
        raise DataError(f"{NAME} is closed: give a file, or pipe rows into the command")
    if stream not in _COPIES:
        if stream.isatty():
            raise DataError(f"{NAME} is a terminal: pipe rows into the command, or give a file")
        _COPIES[stream] = _copied(stream)
    return _COPIES[stream].reader(open_)


def _copied(stream: IO[bytes]) -> Copy:
    start = stream.read(1 << 16)
    if not start:
        raise DataError(f"{NAME} is empty: did the command before it fail?")
    held = next((words for magic, words in _FILES.items() if start.startswith(magic)), None)
    if held:
        raise DataError(f"{NAME} holds {held}: save it to a file first, and give that file")
    zipped = start.startswith(b"\x1f\x8b")
    copy = Copy.of(NAME, _ending(start, zipped))
    with copy.path.open("wb") as file:
        file.write(start)
        shutil.copyfileobj(stream, file)
    if not zipped:  # which knows its end by itself
        with copy.path.open("rb") as file:
            file.seek(-min(2, copy.path.stat().st_size), 2)
            if not file.read().rstrip(b"\0").endswith((b"\n", b"\r")):
                raise DataError(
                    f"{NAME} stops in the middle of a line: did the command before it fail? If "
                    "its last line is whole, end it with a line break"
                )
    return copy


def _ending(start: bytes, zipped: bool) -> str:
    """Return the ending of the name of a file of such rows."""
    if zipped:
        start = zlib.decompressobj(wbits=31).decompress(start, 1 << 12)
    json = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
    return (".jsonl" if json else ".csv") + (".gz" if zipped else "")


OpenFile: TypeAlias = Callable[[Path, frozenset[str], FileLayout], Any]

Format: TypeAlias = tuple[str, OpenFile, tuple[str, ...]]

#: By the ending of a file's name: what the format is called, what opens such a file, and what of
#: a layout it has a use for.
FORMATS: dict[str, Format] = {}
#: Predicates and openers of objects in memory; the first that takes an object opens it.
SOURCES: list[tuple[Callable[[Any], bool], Callable[[Any], Any]]] = []
#: Predicates and openers of URLs, both of which take the layout, too.
URLS: list[tuple[Callable[[str, FileLayout], bool], Callable[[str, FileLayout], Reader]]] = []
#: Why readers of other packages do not load.
FAILED: list[str] = []
_plugins_loaded: list[str] = []


def register_format(
    name: str, endings: Iterable[str], open_file: Callable[[Path, frozenset[str]], Any]
) -> None:
    """Register a format of files; it can then be read wherever rows are taken.

    Parameters
    ----------
    name : str
        What the format is called, for messages.
    endings : iterable of str
        Endings of its files' names, in small letters with their dot, such as ``".jsonl"``.
    open_file : callable
        Takes the path, and the names of columns that should stay text even where they look like
        numbers: those of a model's categories. (The formats that come with hushtable read text
        as text.) Returns anything else that rows are read from, such as a pyarrow Table, or
        a Dataset if the rows should not be held in memory. A `ValueError` means that the file is
        not of this format.

    Examples
    --------
    >>> from pyarrow import json
    >>> from hushtable.data import register_format
    >>> register_format("JSON lines", [".jsonl"], lambda path, texts: json.read_json(path))
    """
    FORMATS.update(
        dict.fromkeys(endings, (name, lambda path, texts, _: open_file(path, texts), ()))
    )


def built_in(
    name: str,
    endings: Iterable[str],
    open_file: Callable[[Path, FileLayout], Any],
    uses: tuple[str, ...] = (),
) -> None:
    """Register a format whose opener takes the path and the layout, of which it ``uses`` some."""
    FORMATS.update(
        dict.fromkeys(endings, (name, lambda path, _, layout: open_file(path, layout), uses))
    )


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


def register_url(
    takes: Callable[[str, FileLayout], bool], open_: Callable[[str, FileLayout], Reader]
) -> None:
    """Register a kind of URL that rows are read from, such as that of a database.

    Parameters
    ----------
    takes : callable
        Whether a URL, under a layout, is of this kind. It must not fail, and should import
        nothing.
    open_ : callable
        Takes URL and layout; returns a reader.
    """
    URLS.append((takes, open_))


def opened(data: Any) -> Reader:
    """Open rows in memory by the first source that takes them."""
    while not isinstance(data, Reader):
        data = next(open_ for takes, open_ in SOURCES if takes(data))(data)
    return data


def load_plugins() -> bool:
    """Register the readers that other packages bring; whether there were any, and not yet."""
    if _plugins_loaded:
        return False
    _plugins_loaded.append(plugins.READERS)
    for point, register in plugins.each(plugins.READERS):
        try:
            if isinstance(register, HushTableError):
                raise register
            register()
        except HushTableError as error:
            FAILED.append(str(error))
        except Exception as error:  # it is another's, and the others go on
            FAILED.append(f"the reader {point.name!r} ({point.value}) failed: {error}")
    return len(plugins.points(plugins.READERS)) > 0


def why_none() -> str:
    """Return, for a message, which readers of other packages do not load; empty if all do."""
    return "".join(f" (and {words})" for words in FAILED)


def is_taken(data: Any) -> bool:
    """Whether a source takes an object."""
    return any(takes(data) for takes, _ in SOURCES)


def _format(path: PurePath) -> Format | None:
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return FORMATS.get(suffixes[-1]) if suffixes else None


def _is_rows(path: PurePath) -> bool:
    """Whether a file among others holds rows: hidden files do not, nor what Excel leaves."""
    hidden = any(part.startswith((".", "~$")) and part != ".." for part in path.parts)
    return not hidden and _format(path) is not None


def paths(pattern: str) -> list[Path]:
    """Return the files of rows that a path, a folder or a glob pattern names, sorted."""
    if far.is_url(pattern):
        raise UsageError(
            f"{far.without_user(pattern)}: this needs files on this machine: copy them here "
            "first; what comes from a database needs one file as -o (scores.csv)"
        )
    path = Path(pattern)
    try:
        if path.is_dir():
            inside = (p for p in path.rglob("*") if _is_rows(p.relative_to(path)))
            found = sorted(p for p in inside if p.is_file())
        elif path.exists():
            return [path]
        else:
            named = (Path(p) for p in glob.glob(pattern, recursive=True))
            found = sorted(p for p in named if p.is_file() and not p.name.startswith("~$"))
    except OSError as error:  # such as a name that is too long
        raise DataError(f"{pattern[:100]}: {error.strerror}: check the path") from None
    if not found:
        names = " or ".join(dict.fromkeys(name for name, *_ in FORMATS.values()))
        raise DataError(f"{pattern}: no such file, and no {names} file in it: check the path")
    return found


def files(
    pattern: str,
    text_columns: frozenset[str],
    layout: FileLayout,
    kept: Mapping[str, str | int | bool],
) -> Reader:
    """Read every file of rows that ``pattern`` names, one after the other.

    ``kept`` is what a model knows of the layout of files like these.
    """
    used: set[str] = set()

    def open_(path: Path) -> Reader:
        found = _format(path) or (_format(path) if load_plugins() else None)
        if found is None:
            raise DataError(
                f"{path}: needs a file name that ends in {', '.join(FORMATS)}{why_none()}"
            )
        used.update(found[2])
        known = kept
        if "encoding" in known and "encoding" in found[2] and says_its_encoding(path):
            known = {name: value for name, value in kept.items() if name != "encoding"}
        return _file(path, found, text_columns, layout.completed(known, found[2])).folded()

    if pattern == "-":
        rows = standard_input(open_)
        layout.check_used(used, rows.source)
        return rows
    if "://" in pattern:
        parts = [copy.reader(open_) for copy in copies(pattern, _is_rows)]
        pattern = far.public(pattern)
    else:
        parts = [open_(path) for path in paths(pattern)]
    layout.check_used(used, pattern)
    first = parts[0]
    for k, part in enumerate(parts[1:], 1):
        if part.names != first.names:
            parts[k] = _in_order(part, first)
    return one_after_other(parts, pattern)


def _in_order(part: Reader, first: Reader) -> Reader:
    """Return a file's columns in the order of the first file's."""
    ours, theirs = set(part.names or ()), set(first.names or ())
    if ours == theirs:
        return part.select(list(first.names or ()))
    raise DataError(
        f"{part.source} has other columns than {first.source}: only there {sorted(ours - theirs)}, "
        f"missing {sorted(theirs - ours)}{near_names(sorted(theirs - ours), sorted(ours - theirs))}"
    )


def _file(path: Path, found: Format, text_columns: frozenset[str], layout: FileLayout) -> Reader:
    name, open_file, _ = found
    size = path.stat().st_size
    if size == 0 and layout.unasked is None:  # JSON lines of no rows are an empty file
        raise DataError(f"{path}: the file is empty")

    def reader() -> Reader:
        return opened(open_file(path, text_columns, layout))

    try:
        rows = reader()
    except HushTableError:
        raise
    except (OSError, ValueError, pa.ArrowNotImplementedError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError(f"{path}: not a {name} file that can be read: {error}") from None
    if rows.source == str(path):
        return rows
    # Of a format that somebody registered; a stream is opened anew for each pass.
    again = reader if rows.one_shot else lambda: rows
    return replace(
        rows,
        read=lambda: named_errors(again().read(), str(path)),
        one_shot=False,
        source=str(path),
        n_bytes=size,
    )
