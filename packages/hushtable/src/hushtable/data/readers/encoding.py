"""Text from a file's bytes: find the encoding, and convert to UTF-8 block by block."""

import codecs
import io
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from hushtable.errors import UsageError
from hushtable.words.refusals import refused

#: First bytes of compressed files, by codec, as Arrow names them.
COMPRESSED = re.compile(
    rb"(?P<gzip>\x1f\x8b\x08)|(?P<bz2>BZh[1-9](?:1AY&SY|\x17rE8P\x90))|(?P<zstd>\x28\xb5\x2f\xfd)"
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
#: Number of bytes decoded at a time; and read at a time for lines, because few may be needed.
_BLOCK, _FEW_BYTES = 1 << 20, 1 << 13
#: Number of bytes of a file to check, at least `_FEW` lines; and of lines: each costs tens of
#: microseconds.
_SAMPLE, _FEW, _MOST = 1 << 16, 4, 200
_LINE_END = re.compile(rb"\r\n?|\n")
#: Signs of a line without values, besides the delimiter; the last marked the end of files.
_BLANKS = " \t\r\n\x1a"
#: Largest number of bytes that are held in memory because they may be left out at the end.
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
#: Western letters and signs as UTF-8 writes them: two characters that hardly meet in cp1252.
_IN_UTF8 = re.compile(rb"[\xc2\xc3][\x80-\xbf]")
_CONTROL = re.compile("[\0-\x08\x0e-\x1f]")
#: Proposed in case of doubt.
_CANDIDATES = (
    "cp1252", "cp850", "mac_roman", "cp1250", "cp1251", "cp1253", "cp1254", "iso-8859-2", "cp874",
    "cp932", "cp949", "gb18030", "big5",
)  # fmt: skip


def _western(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    unreadable = error.object[error.start : error.end]
    return unreadable.decode("cp1252", errors="replace"), error.end


#: Replacement for an unreadable byte if no person can be asked, by encoding.
codecs.register_error("hushtable-western", _western)
#: Characters that no text holds, and Arrow refuses, become the replacement character.
_SUBSTITUTE = b"\x1a"
#: Instead of an encoding, for bytes as they are.
RAW = "raw"


def codec(name: str) -> str:
    """Return an encoding's name as Python spells it; raises `UsageError` if there is none."""
    try:
        codec = codecs.lookup(name)
        "".encode(codec.name)  # fails for codecs that do not encode text, such as hex
    except LookupError:
        raise UsageError(
            f"there is no encoding {name!r}: give one such as utf-8, cp1252, latin-1 or utf-16"
        ) from None
    return codec.name


@contextmanager
def opened_bytes(path: Path) -> Iterator[tuple[pa.OSFile, pa.NativeFile]]:
    """Open a file; return its raw stream, which tracks progress, and its content.

    The content is decompressed if gzip, bzip2 or zstd compressed it.
    """
    with pa.OSFile(str(path)) as raw:
        packed = COMPRESSED.match(raw.read(16))
        raw.seek(0)
        with pa.input_stream(raw, compression=packed and packed.lastgroup) as plain:
            yield raw, plain


def says_its_encoding(path: Path) -> bool:
    """Return whether a file begins with a byte order mark, or is entirely UTF-8."""
    with opened_bytes(path) as (_, plain):
        file = io.BufferedReader(plain)
        if any(file.peek(4).startswith(mark) for mark in _MARKS):
            return True
        try:
            text = io.TextIOWrapper(file, "utf-8")
            return not any("\0" in block for block in iter(partial(text.read, _BLOCK), ""))
        except UnicodeDecodeError:
            return False


def find_encoding(sample: bytes, source: str, *, asked: bool = True) -> str:
    """Return the encoding of a file's first bytes; raises `DataError` if in doubt.

    If no person can be asked, only a byte order mark makes it another one than UTF-8.
    """
    for mark, name in _MARKS.items():
        if sample.startswith(mark):
            return name
    if not asked:
        return "utf-8"
    if b"\0" in sample:
        # Latin letters leave every second byte empty.
        second, first = (sample[at::2].count(0) / len(sample) for at in (1, 0))
        likely = "utf-16-le" if second > first else "utf-16-be"
        text = sample.decode(likely, errors="replace")
        if max(first, second) > 0.2 > 4 * min(first, second) and not _CONTROL.search(text):
            return likely
        raise refused("nul", source=source, line=1 + sample[: sample.index(b"\0")].count(b"\n"))
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError as error:
        if _IN_UTF8.search(sample):
            line = 1 + sample.count(b"\n", 0, error.start)
            raise refused("not_utf8", source=source, line=line) from None
        return _other(sample, source)
    return "utf-8"


def _other(sample: bytes, source: str) -> str:
    try:
        text = sample.decode("cp1252")
    except UnicodeDecodeError:
        text = ""
    far = re.findall("[^\0-\x7f]", text)
    if far and all(map(_WESTERN.match, far)) and not _NOT_WESTERN.search(text):
        return "cp1252"
    odd = next(line for line in sample.splitlines() if not line.isascii())
    word = next(word for word in re.split(rb"[\s,;|]", odd) if not word.isascii())[:30]
    readings: dict[str, str] = {}
    for name in _CANDIDATES:
        reading = word.decode(name, errors="replace")
        if reading.isprintable() and "\ufffd" not in reading:
            readings.setdefault(reading, name)
    if not readings:
        raise refused("no_encoding", source=source)
    words = [f"{text!r} in {name}" for text, name in readings.items()]
    raise refused(
        "encodings", source=source, readings=", ".join(words), first=next(iter(readings.values()))
    )


class Text(io.IOBase):
    """A file's text as UTF-8 bytes without byte order marks, for Arrow to read from, or as lines.

    ``raw`` holds the file's bytes, taken out of any archive. If no person is ``asked``, bytes that
    are not text are replaced. The last ``footer`` lines with values are left out, and a line
    ``again`` wherever it occurs again. If a person is asked, who reads their number, lines of
    nothing but the ``delimiter`` at the end are left out as well; otherwise, no row depends on
    those below.
    """

    def __init__(
        self,
        raw: pa.NativeFile,
        encoding: str,
        source: str,
        *,
        asked: bool = True,
        footer: int = 0,
        delimiter: str = "",
        again: bytes = b"",
    ) -> None:
        super().__init__()
        self._raw, self._encoding, self._source, self._asked = raw, encoding, source, asked
        plain = encoding == RAW or (asked and encoding in ("utf-8", "utf-8-sig"))
        unreadable = "hushtable-western" if encoding == "utf-8" else "replace"
        errors = "strict" if asked else unreadable
        self._decoder = None if plain else codecs.getincrementaldecoder(encoding)(errors)
        self._signs, self._footer = (delimiter + _BLANKS).encode(), footer
        self._strips = footer > 0 or (asked and bool(delimiter))
        self._again, self._seen, self._ended, self._ready = again, False, False, b""
        #: Bytes that are left out if no value follows.
        self.held = b""
        #: Number of line ends so far, and the numbers of the lines that were left out above.
        self.ends = 0
        self.repeated: list[int] = []

    def readable(self) -> bool:
        """Return True, because the stream can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes; none at the end."""
        size = _BLOCK if size < 0 else size
        while 2 * len(self._ready) <= size and not self._ended:
            self._read_lines(size - len(self._ready))
        block, self._ready = self._ready[:size], self._ready[size:]
        return block

    def lines(self) -> Iterator[str]:
        """Yield the lines, with their ends, from the bytes that `read` has not returned."""
        while self._ready or not self._ended:
            block, self._ready = self._ready, b""
            yield from io.StringIO(block.decode(errors="replace"), newline="")
            if not self._ended:
                self._read_lines(_FEW_BYTES)

    def _read_lines(self, size: int) -> None:
        # One name for each step, so that no earlier block stays in memory.
        block: bytes = self._raw.read(size if self._decoder is None else min(size, _BLOCK))
        self._ended = not block
        if self._decoder is not None:
            try:
                block = self._decoder.decode(block, final=not block).encode(errors="replace")
            except UnicodeDecodeError:
                raise refused(
                    "other_encoding_below", source=self._source, line=self.ends,
                    encoding=self._encoding,
                    other="cp850" if self._encoding == "cp1252" else "cp1252",
                ) from None  # fmt: skip
        block = self.held + block
        # The line feed of a carriage return may follow.
        whole = max(block.rfind(b"\n"), block.rfind(b"\r", 0, -1)) + 1
        end = len(block) if self._ended else whole
        if self._strips:
            end = end_of_table(block[:end], self._signs, self._footer)
        lines, self.held = block[:end], block[end:]
        if len(self.held) > _MOST_HELD:
            raise refused("long_lines", source=self._source, n=_MOST_HELD >> 20)
        if self._decoder is None and self._encoding != RAW and not lines.isascii():
            try:
                lines.decode()  # Arrow passes such lines to no handler of unusual lines
            except UnicodeDecodeError as error:
                line = 1 + self.ends + lines.count(b"\n", 0, error.start)
                raise refused("not_utf8", source=self._source, line=line) from None
        if b"\xef" in lines:  # also between concatenated files
            lines = lines.removeprefix(_MARK).replace(b"\n" + _MARK, b"\n")
        if b"\0" in lines:
            if self._asked:
                line = 1 + self.ends + lines[: lines.index(b"\0")].count(b"\n")
                raise refused("nul", source=self._source, line=line)
            lines = lines.replace(b"\0", _SUBSTITUTE)
        self._ready += self._without_again(lines) if self._again and self._again in lines else lines
        self.ends += int(np.count_nonzero(np.frombuffer(lines, np.uint8) == ord("\n")))

    def _without_again(self, lines: bytes) -> bytes:
        kept = []
        for number, line in enumerate(lines.splitlines(keepends=True), self.ends + 1):
            same = line.rstrip(b"\r\n") == self._again
            if same and self._seen:
                self.repeated.append(number)
            else:
                kept.append(line)
            self._seen = self._seen or same
        return b"".join(kept)


def end_of_table(lines: bytes, signs: bytes, footer: int) -> int:
    """Return where the last ``footer`` lines begin, and blank ones around them, of whole lines."""
    end = len(lines)
    for k in range(footer + 1):
        if k:
            end = max(lines.rfind(b"\n", 0, end), lines.rfind(b"\r", 0, end)) + 1
        kept = b""
        while end and not kept:
            start = max(0, end - 4096)
            kept = lines[start:end].rstrip(signs)
            end = start + len(kept)
    line_end = _LINE_END.search(lines, end) if end else None
    return line_end.end() if line_end else end and len(lines)


@contextmanager
def opened_lines(path: Path, encoding: str) -> Iterator[Iterator[str]]:
    """Open a file's lines, with their ends; bytes that cannot be read become U+FFFD."""
    with opened_bytes(path) as (_, plain):
        name = "utf-8-sig" if encoding == "utf-8" else encoding
        yield io.TextIOWrapper(io.BufferedReader(plain), name, errors="replace", newline="")


def first_lines(
    path: Path, encoding: str | None, *, asked: bool, footer: int, delimiter: str
) -> tuple[str, list[str]]:
    """Return the encoding and the first lines of a file, without ``footer`` lines at its end."""
    with opened_bytes(path) as (_, plain):
        sample = plain.read(_SAMPLE)
    encoding = encoding or find_encoding(sample, str(path), asked=asked)
    try:
        codecs.getincrementaldecoder(encoding)("strict" if asked else "ignore").decode(sample)
    except UnicodeDecodeError:
        raise refused("other_encoding", source=path, encoding=encoding) from None
    lines: list[str] = []
    size = 0
    with opened_bytes(path) as (_, plain):
        text = Text(plain, encoding, str(path), asked=asked, footer=footer, delimiter=delimiter)
        for line in itertools.islice(text.lines(), _MOST):
            lines.append(line)
            size += len(line)
            if size > _SAMPLE and len(lines) > _FEW:
                break
    return encoding, lines
