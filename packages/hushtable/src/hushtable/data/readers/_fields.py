"""Fields of the first lines of a CSV file: between which delimiter, and what they look like."""

import contextlib
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hushtable.data.readers._unasked import Unasked
from hushtable.errors import DataError

#: What may stand between fields; the rare ones only if they are given.
_DELIMITERS, _RARE = ",;\t|", ":^~"
#: Lines of these hold no row; the last ended files once.
_RULE = frozenset(" \t-=_+|\x1a")
#: Numbers, dates and times of any country, roughly: names of columns are none of these.
_NUMBER = re.compile(
    r"""\s*(?:[<>≤≥~+(-]\s*)*(?:[$€£¥]|[A-Z]{3}\s)?\s*-?
    (?:\d[\d.,'\s\u00a0\u202f]*(?:[eE][+-]?\d+)?\s*(?:[%€$£)-]|[A-Z]{3})?
    |[.,]\d+|\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\.?(?:[T\s,]+\d{1,2}[:.]\d\d.*)?
    |\d{1,2}:\d\d(?::\d\d.*)?)\s*""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Record:
    """Fields between two ends of lines that are not quoted."""

    #: From 0, in the file: its first line, and the line after its last.
    first: int
    end: int
    fields: list[str]

    @property
    def filled(self) -> int:
        """Number of fields that hold something."""
        return sum(1 for field in self.fields if field.strip())

    @property
    def bare(self) -> list[str]:
        """Fields without an empty one after a last delimiter."""
        return self.fields if self.fields[-1].strip() else self.fields[:-1]


def is_rule(text: str) -> bool:
    """Return whether a line is one of dashes, or of blanks: it holds no row."""
    return _RULE.issuperset(text.strip())


def records(lines: Iterable[str], delimiter: str, first: int = 0) -> Iterator[Record]:
    """Split lines, of which the first is number ``first``, into records; blank ones left out."""
    reader = csv.reader(lines, delimiter=delimiter)
    begin = first
    for fields in reader:
        end = first + reader.line_num
        if fields:
            yield Record(begin, end, fields)
        begin = end


def rows_of(lines: Sequence[str], delimiter: str, first: int) -> list[Record]:
    """Return the records of the first lines; the last of them may be cut off."""
    found: list[Record] = []
    with contextlib.suppress(csv.Error):  # a field beyond the library's limit: what is above it
        found.extend(records(lines, delimiter, first))
    return [r for r in found if len(r.fields) > 1 or not is_rule("".join(r.fields) or " ")]


def width_of(rows: Sequence[Record]) -> tuple[int, int]:
    """Return the most frequent number of fields, and how many records have it."""
    counts = Counter(len(row.fields) for row in rows)
    width = max(counts, key=lambda w: (counts[w], w), default=1)
    return width, counts[width]


def find_delimiter(lines: Sequence[str], source: str) -> str:
    """Return the delimiter that gives most records the same number of fields."""
    ranks = {}
    for delimiter in _DELIMITERS + _RARE:
        rows = rows_of(lines, delimiter, 0)
        width, times = width_of(rows)
        if width > 1 and (delimiter in _DELIMITERS or times == len(rows) > 1):
            fields = [field for row in rows if len(row.fields) == width for field in row.fields]
            ranks[delimiter] = (times / len(rows), sum(map(is_number, fields)) / len(fields))
    if not ranks:
        fields = [row.fields[0] for row in rows_of(lines, ",", 0) if len(row.fields) == 1]
        for delimiter in _DELIMITERS:
            each = {field.count(delimiter) for field in fields}
            if len(fields) > 1 and len(each) == 1 and each != {0} and lines[0].startswith('"'):
                raise DataError(
                    f"{source}: whole lines are in quotation marks, each with {delimiter!r} "
                    f"{each.pop()} times: export without, or add --delimiter ; if it is one column"
                )
        blanks = {len(line.split()) for line in lines if line.strip()}
        if len(lines) > 1 and len(blanks) == 1 and blanks != {1}:
            raise DataError(
                f"{source}: blanks seem to be the delimiter: export with another one, or add "
                "--delimiter ' ' if it is one blank each, --delimiter , if each line is one field"
            )
        return ","
    best = sorted(ranks, key=ranks.__getitem__, reverse=True)
    if len(best) > 1 and ranks[best[0]] == ranks[best[1]]:
        raise DataError(
            f"{source}: the delimiter may be {best[0]!r} or {best[1]!r}: add --delimiter "
            f"'{best[0]}' or --delimiter '{best[1]}'"
        )
    if best[0] in _RARE:
        raise DataError(
            f"{source}: each line holds {best[0]!r} as often as the others: if it is the "
            f"delimiter, add --delimiter '{best[0]}'; if not, add the delimiter that is"
        )
    return best[0]


def delimiter_of_names(lines: Sequence[str], unasked: Unasked) -> str:
    """Return the delimiter by which the names of columns are found first; a comma if by none."""
    found = {}
    for delimiter in _DELIMITERS + _RARE:
        rows = rows_of(lines, delimiter, 0)
        at = next((row for row in rows if unasked.is_header(row.fields)), None)
        if at is not None:
            found[delimiter] = at.first, -len(at.fields)
    return min(found, key=found.__getitem__, default=",")


def is_number(field: str) -> bool:
    """Return whether a field looks like a number, a date or a time of whatever country."""
    return _NUMBER.fullmatch(field) is not None


def shape(field: str) -> str:
    """Return a field with one letter for letters, and one digit for digits."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", field))
