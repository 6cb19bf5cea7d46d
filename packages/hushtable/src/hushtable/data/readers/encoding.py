"""Text from a file's bytes: find the encoding, and convert to UTF-8 block by block."""

import codecs
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, AnyStr

import pyarrow as pa

from hushtable.errors import DataError, UsageError
from hushtable.language import ngettext

#: First bytes of compressed files, and their codecs, as Arrow names them.
_COMPRESSIONS = (
    (re.compile(rb"\x1f\x8b\x08"), "gzip"),
    (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), "bz2"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "zstd"),
)
#: UTF-32 begins like UTF-16, and is therefore tested first.
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_MARK = codecs.BOM_UTF8
_BLOCK = 1 << 20
#: Number of bytes of a file to check; more if they hold fewer than `_FEW` lines.
_SAMPLE, _LARGEST, _FEW = 1 << 16, 1 << 25, 4
#: Number of lines to check: each costs tens of microseconds.
_MOST = 500
_LINE_END = re.compile(rb"\r\n?|\n")
#: Signs of a line without values, besides the delimiter; the last marked the end of files.
_BLANKS = " \t\r\n\x1a"
#: Largest number of bytes in skipped lines at the end, which are held in memory.
_MOST_HELD = 1 << 26
#: Characters of western European text beyond ASCII. cp1252 reads nearly anything: other characters,
#: three such letters in a row, symbols within or before a word, and an opening quotation mark that
#: follows a letter (the é of cp850) are evidence against it.
_WESTERN = re.compile(
    "[\xa0-\xcf\xd1-\xdc\xdf-\xef\xf1-\xfc\xff\u0152\u0153\u20ac\u2013\u2014\u2018-\u201e\u2026]"
)
_NOT_WESTERN = re.compile(
    "[\xc0-\xff]{3}|[^\\W\\d_][\u201c-\u201e\xa1-\xb4\xb6-\xbf][^\\W\\d_]|[^\\W\\d_]\u201a"
    "|[\xa3-\xa6\xa8\xac\xaf\xb1-\xb4\xb6\xb8\xb9\xbc-\xbe][^\\W\\d_]|\u0153(?![uesdt])"
)
_CONTROL = re.compile("[\0-\x08\x0e-\x1f]")
#: Proposed in case of doubt, in addition to those that seem likely.
_USUAL = ("cp1252", "cp850", "mac_roman", "cp1250", "cp1251")


def _western(error: UnicodeError) -> tuple[str, int]:
    """Read bytes that are not UTF-8 as western European text, whatever the bytes around them."""
    assert isinstance(error, UnicodeDecodeError)
    found = error.object[error.start : error.end]
    return found.decode("cp1252", errors="replace"), error.end


#: Replacement for an unreadable byte if no person can be asked, by encoding.
codecs.register_error("hushtable-western", _western)
#: Characters that no text holds, and Arrow refuses, become the replacement character.
_SUBSTITUTE = b"\x1a"


def on_errors(encoding: str, *, asked: bool) -> str:
    """Return how bytes outside the encoding are read, as Python's codecs name it."""
    if asked:
        return "strict"
    return "hushtable-western" if encoding == "utf-8" else "replace"


def marked_encoding(sample: bytes) -> str | None:
    """Return the encoding of a file's byte order mark; None if there is no mark."""
    return next((name for mark, name in _MARKS.items() if sample.startswith(mark)), None)


def codec(name: str) -> str:
    """Return an encoding's name as Python spells it; raises `UsageError` if there is none."""
    try:
        found = codecs.lookup(name)
        "".encode(found.name)  # fails for codecs that do not encode text, such as hex
    except LookupError:
        raise UsageError(
            f"there is no encoding {name!r}: give one such as utf-8, cp1252, latin-1 or utf-16"
        ) from None
    return found.name


def compression(start: bytes) -> str | None:
    """Return the codec that compressed a file, by its first bytes; None if it is not compressed."""
    return next((name for begins, name in _COMPRESSIONS if begins.match(start)), None)


def decompressed(raw: pa.NativeFile) -> pa.NativeFile:
    """Return a stream of a file's content, decompressed if gzip, bzip2 or zstd compressed it."""
    found = compression(raw.read(16))
    raw.seek(0)
    return pa.input_stream(raw, compression=found)


def says_its_encoding(path: Path) -> bool:
    """Return whether a file begins with a byte order mark, or is entirely UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with pa.OSFile(str(path)) as raw, decompressed(raw) as plain:
        block = plain.read(_BLOCK)
        if any(block.startswith(mark) for mark in _MARKS):
            return True
        try:
            while block:
                if b"\0" in block:
                    return False
                decoder.decode(block)
                block = plain.read(_BLOCK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def find_encoding(sample: bytes, source: str) -> str:
    """Return the encoding of a file's first bytes; raises `DataError` if in doubt."""
    if marked := marked_encoding(sample):
        return marked
    if b"\0" in sample:
        # Latin letters leave every second byte empty.
        second, first = (sample[at::2].count(0) / len(sample) for at in (1, 0))
        likely = "utf-16-le" if second > first else "utf-16-be"
        text = sample.decode(likely, errors="replace")
        if max(first, second) > 0.2 > 4 * min(first, second) and not _CONTROL.search(text):
            return likely
        raise _nul(source, 1 + sample[: sample.index(b"\0")].count(b"\n"))
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return _other(sample, source)
    return "utf-8"


def _other(sample: bytes, source: str) -> str:
    """Return the encoding of text that is not UTF-8."""
    try:
        text = sample.decode("cp1252")
    except UnicodeDecodeError:
        text = ""
    far = [letter for letter in text if ord(letter) > 127]
    if far and all(map(_WESTERN.match, far)) and not _NOT_WESTERN.search(text):
        return "cp1252"
    from charset_normalizer import from_bytes  # loads slowly, and few files need it

    odd = b"\n".join(line for line in sample.splitlines() if not line.isascii())
    matches = list(from_bytes(odd))
    likely = [m.encoding for m in matches if m.chaos <= matches[0].chaos + 0.1]
    if len({odd.decode(name, errors="replace") for name in likely}) == 1:
        return codec(likely[0])
    word = next(word for word in re.split(rb"[\s,;|]", odd) if not word.isascii())[:30]
    readings = {
        word.decode(name, errors="replace"): name for name in (*likely[::-1], *_USUAL[::-1])
    }
    readings = {
        text: name for text, name in readings.items() if text.isprintable() and "\ufffd" not in text
    }
    if not readings:
        raise DataError(
            f"{source}: neither UTF-8 nor text in a common encoding: give its encoding with "
            "--read encoding=NAME, or export it as UTF-8"
        )
    words = ", ".join(f"{text!r} in {name}" for text, name in readings.items())
    raise DataError(
        f"{source}: not UTF-8, and its encoding is ambiguous: which reading is right? {words}. Add "
        f"the encoding of the right one, such as --read encoding={next(iter(readings.values()))}"
    )


def _nul(source: str, line: int) -> DataError:
    return DataError(
        f"{source}: line {line} holds a NUL byte, which does not occur in text: the file is "
        "damaged, or in a different encoding (--read encoding=utf-16): export it again"
    )


class Text(io.RawIOBase):
    """A file's text as UTF-8 bytes without a byte order mark, for Arrow to read from.

    Parameters
    ----------
    raw : pyarrow.NativeFile
        The file's bytes, already taken out of any archive.
    encoding : str
        Of the bytes.
    source : str
        For messages.
    counting : bool
        Whether to compute ``ends`` and ``quoted``, which costs a tenth of the reading time.
    asked : bool
        Whether to ask a person about bytes that are not text; otherwise they are replaced.
    footer : int
        Lines to leave out at the end; blank lines are not counted.
    delimiter : str
        If it is given, lines that hold nothing else are blank. If a person is asked, who reads
        their number, those at the end are left out; otherwise, no row depends on those below.
    """

    def __init__(
        self,
        raw: pa.NativeFile,
        encoding: str,
        source: str,
        counting: bool,
        *,
        asked: bool = True,
        footer: int = 0,
        delimiter: str = "",
    ) -> None:
        super().__init__()
        self._signs, self._strips = delimiter + _BLANKS, bool(delimiter) and asked
        #: Lines without values, so far, that are left out if no other follows; and whether the
        #: line before them goes on.
        self.blanks, self._open = b"", False
        self._footer, self._held, self._ready, self._ended = footer, b"", b"", False
        #: Number of bytes to hold before lines are counted again.
        self._enough = 0
        self._raw, self._encoding, self._source, self._asked = raw, encoding, source, asked
        plain = encoding in ("utf-8", "utf-8-sig") and asked
        errors = on_errors(encoding, asked=asked)
        self._decoder = None if plain else codecs.getincrementaldecoder(encoding)(errors)
        self._began, self._counting = False, counting
        #: The last bytes read, the number of line ends, and whether there were quotation marks.
        self.tail, self.ends, self.quoted = b"", 0, False

    def readable(self) -> bool:
        """Return True, because the stream can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes; none at the end."""
        block = b""
        while not block:
            # A byte becomes at most four.
            block, ended = self._some(size if self._decoder is None else max(1, size // 4))
            if not self._began and block:
                block, self._began = block.removeprefix(_MARK), True
            if ended:
                break
        if b"\xef" in block and _MARK in block:  # for concatenated files
            block = without_marks(block, self.tail[-1:])
        if b"\0" in block and not self._asked:
            block = block.replace(b"\0", _SUBSTITUTE)
        if b"\0" in block:
            raise _nul(self._source, 1 + self.ends + block[: block.index(b"\0")].count(b"\n"))
        if self._counting:
            self.quoted = self.quoted or b'"' in block
            self.ends += block.count(b"\n")
        self.tail = (self.tail + block[-65_536:])[-65_536:]
        return block

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, as readers of Python's library require."""
        block = self.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)

    def _some(self, size: int) -> tuple[bytes, bool]:
        """Return bytes that are not left out at the end, and whether they are the last."""
        if not self._footer and not self._strips:
            return self._next(size)
        while not self._ready and not self._ended:
            block, self._ended = self._next(max(size, _BLOCK) if self._footer else size)
            block = self._filled(block) if self._strips else block
            if not self._footer:
                self._ready = block
                continue
            self._held += block
            if len(self._held) < self._enough and not self._ended:
                continue
            lines = self._held.splitlines(keepends=True)
            cut = len(b"".join(lines[: footer_at(lines, self._footer, self._signs.encode())]))
            self._ready, self._held = self._held[:cut], self._held[cut:]
            self._enough = 2 * len(self._held)  # otherwise each line would be split again and again
            if len(self._held) > _MOST_HELD:
                raise DataError(
                    f"{self._source}: {self._footer:,} of its lines take more than "
                    f"{_MOST_HELD >> 20} MB: lower --read skip_footer=..."
                )
        block, self._ready = self._ready[:size], self._ready[size:]
        return block, self._ended and not self._ready

    def _filled(self, block: bytes) -> bytes:
        """Return the next bytes up to the last line that holds a value so far."""
        whole = self.blanks + block
        end = blanks_at(whole, self._signs.encode(), within=self._open)
        if end:
            self._open = not whole[:end].endswith((b"\n", b"\r"))
        self.blanks = whole[end:]
        if len(self.blanks) > _MOST_HELD:
            raise DataError(
                f"{self._source}: more than {_MOST_HELD >> 20} MB of lines without values: delete "
                "them"
            )
        return whole[:end]

    def _next(self, size: int) -> tuple[bytes, bool]:
        raw = self._raw.read(size)
        if self._decoder is None:
            return raw, not raw
        try:
            text = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError:
            raise DataError(
                f"{self._source}: after line {self.ends}, there are bytes that are not "
                f"{self._encoding}: give a different encoding, such as --read encoding="
                + ("cp850" if self._encoding == "cp1252" else "cp1252")
            ) from None
        return text.encode(errors="replace"), not raw

    def skip(self, size: int) -> None:
        """Read ``size`` bytes, or to the end."""
        while size and (block := self.read(min(size, 1 << 16))):
            size -= len(block)


def without_marks(block: bytes, before: bytes) -> bytes:
    """Return UTF-8 without byte order marks at line starts; ``before`` is the preceding byte."""
    block = block.replace(b"\n" + _MARK, b"\n")
    return block.removeprefix(_MARK) if before == b"\n" else block


def footer_begins(path: Path, encoding: str, n: int, delimiter: str) -> str:
    """Return the first of n skipped lines at the end of a file, if that is known."""
    with path.open("rb") as file:
        if compression(file.read(_BLOCK)) or encoding.startswith(("utf-16", "utf-32")):
            return ""
        file.seek(max(0, path.stat().st_size - _BLOCK))
        lines = file.read().splitlines()
    signs = f"{delimiter} \t".encode()
    at = footer_at(lines, n, signs)
    first = next((line for line in lines[at:] if not is_blank(line, signs)), b"") if at else b""
    return first.decode(encoding, errors="replace")


def is_blank(line: AnyStr, signs: AnyStr | None = None) -> bool:
    """Return whether a line is blank, or holds only these signs."""
    return not line.strip().strip(signs)


def footer_at(lines: Sequence[AnyStr], n: int, signs: AnyStr | None = None) -> int:
    """Return the number of the line at which the last n lines that are not blank begin."""
    at = len(lines)
    while n and at:
        at -= 1
        n -= not is_blank(lines[at], signs)
    while at and signs is not None and is_blank(lines[at - 1], signs):
        at -= 1  # lines without values above
    return at


def blanks_at(block: bytes, signs: bytes, *, within: bool) -> int:
    """Return where the lines at the end of a block that hold only these signs begin.

    ``within``: the block begins within a line that holds a value.
    """
    end = len(block.rstrip(signs))
    if not end and not within:
        return 0
    found = _LINE_END.search(block, end)
    if found is None:
        return len(block)
    # The line feed may follow in the next block.
    return found.start() if found[0] == b"\r" and found.end() == len(block) else found.end()


def blank_words(path: Path, encoding: str, delimiter: str) -> Iterator[str]:
    """Yield words on the lines at the end of a file that hold nothing but delimiters."""
    if n := n_blank_at_end(path, encoding, delimiter):
        yield ngettext(
            "%(n)s line without values at the end left out",
            "%(n)s lines without values at the end left out",
            n,
        )


def n_blank_at_end(path: Path, encoding: str, delimiter: str) -> int:
    """Return the number of lines at the end of a file that hold nothing but delimiters."""
    signs = (delimiter + _BLANKS).encode()
    with path.open("rb") as file:
        plain = compression(file.read(_BLOCK)) is None and "\n,".encode(encoding) == b"\n,"
        at, tail = file.seek(0, io.SEEK_END), b""
        while plain and at and not tail.rstrip(signs) and len(tail) <= _MOST_HELD:
            step = min(at, _BLOCK)
            at = file.seek(at - step)
            tail = file.read(step) + tail
        tail = tail[blanks_at(tail, signs, within=False) :]
    if not plain:
        with opened_text(path, encoding, delimiter=delimiter) as (_, text):
            while text.read(_BLOCK):
                pass
            tail = text.blanks
    return sum(delimiter.encode() in line for line in tail.splitlines())


@contextmanager
def opened_text(
    path: Path, encoding: str, *, counting: bool = False, **options: Any
) -> Iterator[tuple[pa.OSFile, Text]]:
    """Open a text file; return its raw stream, which tracks progress, and its text."""
    with pa.OSFile(str(path)) as raw, decompressed(raw) as plain:
        yield raw, Text(plain, encoding, str(path), counting, **options)


@contextmanager
def opened_lines(path: Path, encoding: str) -> Iterator[Iterator[str]]:
    """Open a file's lines, with their ends; bytes that cannot be read become U+FFFD."""
    with pa.OSFile(str(path)) as raw, decompressed(raw) as plain:
        name = "utf-8-sig" if encoding == "utf-8" else encoding
        yield io.TextIOWrapper(io.BufferedReader(plain), name, errors="replace", newline="")


def first_lines(
    path: Path, encoding: str | None, *, asked: bool, footer: int, given: str
) -> tuple[str, list[str]]:
    """Return the encoding and the first lines of a file, without ``footer`` lines at its end."""
    size = _SAMPLE
    while True:
        with pa.OSFile(str(path)) as raw, decompressed(raw) as plain:
            sample = plain.read(size + 1)
        whole = len(sample) <= size
        if asked:
            used = encoding or find_encoding(sample, str(path))
        else:
            used = encoding or marked_encoding(sample) or "utf-8"
        errors = on_errors(used, asked=asked)
        try:
            text = codecs.getincrementaldecoder(used)(errors).decode(sample, final=whole)
        except UnicodeDecodeError:
            raise DataError(
                f"{path}: its bytes are not {used}: give a different encoding, such as "
                "--read encoding=cp1252"
            ) from None
        text = text.removeprefix("\ufeff").replace("\n\ufeff", "\n")
        lines = list(io.StringIO(text, newline=""))
        if footer:
            with opened_text(path, used, asked=asked, footer=footer, delimiter=given) as (_, above):
                start = io.BufferedReader(above).read(size)
            whole = len(start) < size
            lines = list(io.StringIO(start.decode(errors="ignore"), newline=""))
        if whole or size >= _LARGEST:
            return used, lines[:_MOST]
        if len(lines) > _FEW:
            return used, lines[:-1][:_MOST]
        size *= 8
