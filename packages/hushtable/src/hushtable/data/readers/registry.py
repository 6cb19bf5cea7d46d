"""Sources of rows: those in memory by a predicate, files by the ending of their names.

Files may be one file, a folder, or a glob pattern; standard input; or remote files, by fsspec
(``s3://``, ``sftp://``, ``https://`` and the like). If the name of a file has a different ending,
or none, its first bytes determine its kind.
"""

import glob
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, TypeAlias

import pyarrow as pa

from hushtable import far, plugins
from hushtable.data.readers.copies import chosen, copies_of, extracted, members, standard_input
from hushtable.data.readers.encoding import (
    COMPRESSED,
    find_encoding,
    opened_bytes,
    says_its_encoding,
)
from hushtable.data.readers.reader import (
    Batch,
    FileLayout,
    Reader,
    Source,
    near_names,
    one_after_other,
    unchanged,
)
from hushtable.errors import DataError, HushTableError, MissingExtraError, UsageError
from hushtable.language import _
from hushtable.words.refusals import REFUSED, refused

# --- kinds of files, by their first bytes ---------------------------------------------------------

#: How files of a kind begin, and the ending that their names should have.
_MATCHES = tuple((re.compile(begins), ending) for begins, ending in (
    (rb"PAR1", ".parquet"), (rb"ARROW1|FEA1", ".feather"),
    (rb"\xd0\xcf\x11\xe0", ".xls"), (rb"PK(\x03\x04|\x05\x06)", ".zip"),
    (rb"SQLite format 3\0", ".sqlite"), (rb"(?s).{8}DUCK", ".duckdb"),
    (rb"\$FL[23]", ".sav"), (rb"(?s).{0,250}SPSS PORT FILE", ".por"),
    (rb"<stata_dta>", ".dta"), (rb"HEADER RECORD\*{7}LIB", ".xpt"),
    (rb"(?s)\0{12}\xc2\xea\x81\x60\xb3\x14\x11\xcf", ".sas7bdat"),
    (rb"RD[AX][23]\n", ".rda"), (rb"X\n\0\0\0|A\n[23]\n", ".rds"),
    (rb"7z\xbc\xaf\x27\x1c", ".7z"), (rb"Rar!\x1a\x07", ".rar"), (rb"\xfd7zXZ\0", ".xz"),
    (rb"(?s).{257}ustar", ".tar"), (rb"%PDF-", ".pdf"),
    (rb"\0\x01\0\0Standard (Jet|ACE) DB", ".mdb"), (rb"\x89HDF\r\n", ".h5"),
    (rb"\x80[\x02-\x05][\x8c\x95c}\](]", ".pkl"), (rb"\x93NUMPY", ".npy"),
))  # fmt: skip
#: How texts of a kind begin, after blanks; comments and declarations may precede.
_MATCHES_TEXT = tuple(
    (re.compile(begins, re.IGNORECASE | re.DOTALL), ending)
    for begins, ending in (
        (r"(\[\s*)?\{\s*[\"}]", ".json"),
        (r"(<\?xml[^>]*>|<!--.*?-->|\s)*<(!doctype\s+html|html|head|body|table|div|meta|style)\b",
         ".html"),
        (r"(<!--.*?-->\s*)*<\?xml\b", ".xml"),
        # Without a declaration: an element that begins with another one.
        (r"(<!--.*?-->\s*)*<[a-z_][\w.:-]*(\s[^<>]*)?(?<!/)>\s*<[a-z_!]", ".xml"),
        (r"(%[^\n]*\n|\s)*@relation\s", ".arff"),
        (r"(\{1:[^\n]*\n|\s)*:20:.*?\n:(25|28C|60[FM]):", ".mt940"),
        (r"(from:[^\n]*\n|subject:[^\n]*\n)*mime-version:", ".mht"),
    )
)  # fmt: skip
#: Formats that hushtable-connect reads, by file name ending.
ELSEWHERE = {
    **dict.fromkeys((".sav", ".zsav", ".por"), "an SPSS file"), ".dta": "a Stata file",
    **dict.fromkeys((".xpt", ".sas7bdat"), "a SAS file"),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3", ".duckdb"), "a database"),
}  # fmt: skip
#: Endings of kinds that the first bytes identify: a file without these bytes is of no such kind.
BINARY = frozenset({ending for _, ending in _MATCHES}) | {
    ".pq", ".arrow", ".ipc", ".xlsx", ".xlsm", ".ods", ".zsav", ".rdata", ".db", ".sqlite3",
}  # fmt: skip
#: Endings of packed files.
PACKED = frozenset({".gz", ".bz2", ".zst"})
ARCHIVES = frozenset({".zip", ".tar", ".tgz", ".tbz2", ".txz", ".xz"})
#: Number of bytes to check.
_BEGINNING = 1 << 16
_CONTROL = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f]")


def content_of(path: Path) -> tuple[str | None, str | None]:
    """Return the codec that compressed a file, and its kind, by its first bytes when unpacked.

    The kind is the usual ending of names of its kind: ``.csv`` for other text, ``.gz`` for content
    that is compressed twice, None if it is not known.
    """
    with path.open("rb") as file:
        start = file.read(_BEGINNING)
    packed = COMPRESSED.match(start)
    codec = packed and packed.lastgroup
    if codec is not None:
        try:
            with opened_bytes(path) as (_, plain):
                start = bytes(plain.read(_BEGINNING))
        except (OSError, EOFError, zlib.error):
            start = b""  # reading it to the end raises the error
    if codec is not None and COMPRESSED.match(start):
        return codec, ".gz"
    ending = next((ending for begins, ending in _MATCHES if begins.match(start)), None)
    if ending == ".zip" and codec is None:
        ending = _of_zip(path)
    return codec, ending or _of_text(start)


def _of_zip(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "mimetype" in names and "content.xml" in names:
                kind = archive.read("mimetype")[:64]
                return ".ods" if b"spreadsheet" in kind else ".docx"
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, zlib.error):
        return ".zip"
    if "[Content_Types].xml" in names:
        return ".xlsx" if any(name.startswith("xl/") for name in names) else ".docx"
    return ".zip"


def _of_text(start: bytes) -> str | None:
    encoding = "latin-1"
    if b"\0" in start or start.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            encoding = find_encoding(start, "")
        except DataError:
            return None
    elif start.startswith(b"\xef\xbb\xbf"):
        encoding = "utf-8-sig"
    text = start.decode(encoding, errors="ignore")
    if _CONTROL.search(text.rstrip("\x1a")):
        return None
    text = text.lstrip("\ufeff \t\r\n")
    ending = next((ending for begins, ending in _MATCHES_TEXT if begins.match(text)), None)
    return ending or (".csv" if re.search(r"[\r\n]+\S", text) else None)


# --- formats and sources --------------------------------------------------------------------------

OpenFile: TypeAlias = Callable[[Path, frozenset[str], FileLayout], Any]


@dataclass(frozen=True)
class FileFormat:
    """Format of files."""

    #: Name of the format, for messages.
    name: str
    #: Opens a file, given the columns that should stay text and the layout.
    open: OpenFile
    #: Entries of a layout that it uses.
    uses: tuple[str, ...] = ()
    #: Whether it reads files compressed with gzip, bzip2 or Zstandard directly.
    streams: bool = False
    #: Whether the ending of the name is enough; otherwise the content decides.
    by_name: bool = False


#: Formats by file name ending.
FORMATS: dict[str, FileFormat] = {}
#: Predicates and openers of objects in memory; the first that accepts an object opens it.
SOURCES: list[tuple[Callable[[Any], bool], Callable[[Any], Any]]] = []
#: Predicates and openers of URLs; both also take the layout.
URLS: list[tuple[Callable[[str, FileLayout], bool], Callable[[str, FileLayout], Reader]]] = []
#: Reasons why readers of other packages do not load.
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
        Takes the path, and the names of columns that should stay text even if they look like
        numbers: those of a model's categories. (The formats that come with hushtable read text
        as text.) Returns any other source of rows, such as a pyarrow Table, or a Dataset if the
        rows should not be held in memory. A `ValueError` means that the file does not have this
        format.

    Examples
    --------
    >>> from pyarrow import json
    >>> from hushtable.data import register_format
    >>> register_format("JSON lines", [".jsonl"], lambda path, texts: json.read_json(path))
    """
    made = FileFormat(name, lambda path, texts, _: open_file(path, texts), by_name=True)
    FORMATS.update(dict.fromkeys(endings, made))


def built_in(
    name: str,
    endings: Iterable[str],
    open_file: Callable[[Path, FileLayout], Any],
    uses: tuple[str, ...] = (),
    *,
    streams: bool = False,
) -> None:
    """Register a format that `content_of` knows; its opener takes the path and the layout.

    It ``uses`` some entries of the layout, and ``streams`` if it reads compressed files.
    """
    made = FileFormat(name, lambda path, _, layout: open_file(path, layout), uses, streams)
    others = {ending for ending, form in FORMATS.items() if form.by_name}
    FORMATS.update({ending: made for ending in endings if ending not in others})


def register_source(takes: Callable[[Any], bool], open_: Callable[[Any], Any]) -> None:
    """Register a kind of object that rows are read from; it is tried before older ones.

    Parameters
    ----------
    takes : callable
        Returns whether an object is of this kind. It is called with every object that rows are read
        from, so it must not fail, and should import nothing.
    open_ : callable
        Takes the object; returns any other source of rows.

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

    Both functions take a URL and the layout: ``takes`` returns whether a URL is of this kind, must
    not fail, and should import nothing; ``open_`` returns a reader.
    """
    URLS.append((takes, open_))


def opened(data: Any) -> Reader:
    """Open rows in memory with the first source that accepts them."""
    while not isinstance(data, Reader):
        data = next(open_ for takes, open_ in SOURCES if takes(data))(data)
    return data


def load_plugins() -> bool:
    """Register the readers of other packages; return whether there were any new ones."""
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
        except Exception as error:  # it is another package's; the others continue
            FAILED.append(f"the reader {point.name!r} ({point.value}) failed: {error}")
    return len(plugins.points(plugins.READERS)) > 0


def why_none() -> str:
    """Return, for a message, which readers of other packages fail to load; empty if none."""
    return "".join(f" (and {words})" for words in FAILED)


def _suffix(path: PurePath) -> str:
    """Return the ending of a name, in small letters, without the ending of a compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if len(suffixes) > 1 and suffixes[-1] in PACKED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _format(ending: str) -> FileFormat | None:
    if ending not in FORMATS and ending:
        load_plugins()
    return FORMATS.get(ending)


#: Endings of files that may accompany a table: descriptions, or archives of it.
_BESIDE = frozenset({".html", ".htm", ".xml", ".json", ".db", *ARCHIVES, *PACKED})


def _rank(path: PurePath) -> int:
    """Return 2 for the name of a file of rows, 1 if it may accompany one, otherwise 0.

    Hidden files hold no rows, nor do temporary files of Excel.
    """
    if any(part.startswith((".", "~$")) and part != ".." for part in path.parts):
        return 0
    ending = _suffix(path)
    if ending in _BESIDE:
        return 1
    # An ARFF file holds rows: it is refused rather than skipped.
    return 2 * (ending in FORMATS or ending in ELSEWHERE or ending == ".arff")


def paths(pattern: str) -> list[Path]:
    """Return the files of rows that a path, a folder or a glob pattern names, sorted."""
    if far.is_url(pattern):
        raise UsageError(
            f"{far.without_user(pattern)}: this needs files on this machine: copy them here first; "
            "for rows of a database, give one file as -o (scores.csv)"
        )
    path = Path(pattern)
    try:
        if path.is_dir():
            inside = {p: _rank(p.relative_to(path)) for p in path.rglob("*") if p.is_file()}
            best = max(inside.values(), default=0)
            matches = sorted(p for p, rank in inside.items() if rank == best > 0)
        elif path.exists():
            return [path]
        else:
            named = (Path(p) for p in glob.glob(pattern, recursive=True))
            matches = sorted(p for p in named if p.is_file() and not p.name.startswith("~$"))
    except OSError as error:  # for example, a name that is too long
        raise DataError(f"{pattern[:100]}: {error.strerror}: check the path") from None
    if not matches:
        names = " or ".join(dict.fromkeys(form.name for form in FORMATS.values()))
        raise DataError(
            f"{pattern}: no such file, and no folder with {names} files: check the path"
        )
    return matches


def files(
    pattern: str,
    text_columns: frozenset[str],
    layout: FileLayout,
    kept: Mapping[str, str | int | bool],
) -> Reader:
    """Read every file of rows that ``pattern`` names, one after the other.

    ``kept`` is what a model knows about the layout of such files.
    """
    opening = _Opening(text_columns, layout, kept)
    if pattern == "-":
        rows = standard_input(opening.file)
        layout.check_used(opening.used, rows.source)
        return rows
    if "://" in pattern:
        parts = [copy.reader(opening.file) for copy in copies_of(pattern, _rank)]
        pattern = far.public(pattern)
    else:
        parts = [opening.file(path) for path in paths(pattern)]
    layout.check_used(opening.used, pattern)
    first = parts[0]
    for k, part in enumerate(parts):
        if part.names == first.names:
            continue
        names, others = set(first.names or ()), set(part.names or ())
        extra, missing = sorted(others - names), sorted(names - others)
        if extra or missing:
            raise DataError(
                f"{part.source} has different columns than {first.source}: extra {extra}, "
                f"missing {missing}{near_names(missing, extra)}"
            )
        parts[k] = part.select(list(first.names or ()))
    return one_after_other(parts, pattern) if len(parts) > 1 else replace(first, source=pattern)


@dataclass(frozen=True)
class _Opening:
    text_columns: frozenset[str]
    layout: FileLayout
    kept: Mapping[str, str | int | bool]
    #: Entries of the layout that some file used.
    used: set[str] = field(default_factory=set)

    def file(self, path: Path, name: PurePath | None = None) -> Reader:
        """Read a file; ``name`` is its name in the archive that it was unpacked from."""
        unpacked, name = name is not None, name or PurePath(path.name)
        named, asked = _format(_suffix(name)), self.layout.unasked is None
        if path.stat().st_size == 0 and asked:  # JSON lines without rows are an empty file
            raise refused("no_bytes", source=path)
        if named is not None and named.by_name:
            return self._table(path, named).folded()
        codec, ending = content_of(path)
        if ending == ".zip" and codec is None and not unpacked:
            return self._of_archive(path)
        if ending == ".zip":
            raise refused("archive_within", source=path)
        form, words = self._detected(path, name, named, ending)
        if codec is not None and (unpacked or not form.streams):
            raise refused("compressed", source=path, format=form.name, codec=codec)
        rows = self._table(path, form)
        if codec is not None and name.suffix.lower() not in PACKED:
            words = (_("decompressed (%(codec)s), by its content", codec=codec), *words)
        return replace(rows.folded(), found=(*words, *rows.found))

    def _detected(
        self, path: Path, name: PurePath, named: FileFormat | None, ending: str | None
    ) -> tuple[FileFormat, tuple[str, ...]]:
        by_no_row = self.layout.unasked is not None and ending not in BINARY
        if by_no_row and named is not None:
            return named, ()
        # A text without a sign of its own is what its name states.
        plain = ending in (None, ".csv") and _suffix(name) not in BINARY
        kind = _suffix(name) if by_no_row or plain else ending
        if kind in REFUSED:
            raise refused("is", source=path, what=_(REFUSED[kind]))
        if by_no_row:
            raise DataError(
                f"{path}: its name does not state its format, and rows must not decide it when no "
                f"person can be asked: rename it to end in {', '.join(FORMATS)}"
            )
        detected = None if ending is None else _format(ending)
        elsewhere = ELSEWHERE.get(_suffix(name) if ending is None else ending)
        if detected is None and elsewhere is not None and (named is None or ending is not None):
            raise MissingExtraError(f"{path}: {elsewhere}", "hushtable-connect", "files")
        if named is not None and (detected is None or detected.name == named.name or plain):
            return named, ()
        if detected is None:
            raise refused("unknown", source=path, endings=", ".join(FORMATS), why=why_none())
        return detected, (_("read as %(name)s, by its content", name=detected.name),)

    def _of_archive(self, path: Path) -> Reader:
        inside, wanted = members(path), self.layout.member
        names = {name for f in inside for name in (f.filename, PurePosixPath(f.filename).name)}
        if wanted is None and self.kept.get("member") in names:
            wanted = str(self.kept["member"])
        if wanted is not None:
            self.used.add("member")
        kept = {name: value for name, value in self.kept.items() if name != "member"}
        below = replace(self, layout=replace(self.layout, member=None), kept=kept)
        # A text may accompany a table.
        ranks = {f.filename: _rank(PurePath(f.filename)) for f in inside}
        ranks |= {name: min(n, 1) for name, n in ranks.items() if _suffix(PurePath(name)) == ".txt"}
        member, words = chosen(path, inside, wanted, ranks)
        copy, name = extracted(path, member), PurePath(member.filename)
        rows = copy.reader(lambda plain: below.file(plain, name))
        return replace(rows, found=(*words, *rows.found))

    def _table(self, path: Path, form: FileFormat) -> Reader:
        self.used.update(form.uses)
        given = self.layout
        more = {n: v for n, v in self.kept.items() if n in form.uses and getattr(given, n) is None}
        if "encoding" in more and says_its_encoding(path):
            del more["encoding"]
        layout = replace(given, **more)  # type: ignore[arg-type] # their reader checked them
        open_file = partial(form.open, path, self.text_columns, layout)
        try:
            rows = opened(open_file())
        except HushTableError:
            raise
        except (OSError, ValueError, pa.ArrowNotImplementedError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            message = f"{path}: not a readable {form.name} file: {error}"
            raise DataError(message) from None
        if rows.source == str(path):
            return rows
        # For a registered format; a stream is opened again for each pass.
        again = open_file if rows.one_shot else lambda: rows

        def read() -> Iterator[Batch]:
            with unchanged(path):
                yield from opened(again()).read()

        size = path.stat().st_size
        source = Source(read, rows.n_rows, name=str(path), n_bytes=size, place=rows.place)
        return replace(rows, sources=(source,), steps=(), source=source.name, one_shot=False)
