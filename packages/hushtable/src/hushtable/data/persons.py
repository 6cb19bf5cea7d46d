"""A limited number of rows of each person, out of core.

For each person, the rows with the smallest keyed hash are taken. The hash covers the person and the
codes of the row, so that the choice is the same in any order, in batches of any size, from any
number of files and by any number of threads; rows of one person with the same hash count the same.

Whether a person's row is taken depends on that person's rows and on the key alone. So adding or
removing a person changes the counts only by that person's rows, up to the limit: for any choice of
this kind, even one that a person can foresee. This is why rows are distinguished by a fast hash.
Persons are distinguished by HMAC-SHA256, truncated to 128 bits, because mistaking two persons for
one would change more.

Persons who are ``known`` beforehand are not counted at all, for example because their budget is
spent. That also depends only on who they are, and on what was noted about them.

Rows are kept in runs of a temporary file that has no name, or is readable only by its owner, and is
removed with the process. A run holds its persons in order, so that those of one 256th of all
persons are read back together, from all runs.
"""

import hmac
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.arguments import whole
from hushtable.data.columns import as_column, as_numbers, as_texts, decoded, is_text
from hushtable.data.encoding import Codes
from hushtable.data.labels import fold
from hushtable.data.readers import BATCH_ROWS, Reader, Unasked
from hushtable.data.texts.reading import Reading, without_blanks
from hushtable.errors import DataError, DataTypeError, FileError, UsageError

#: Largest number of persons, or distinct rows, in a sample: those with the smallest digests.
SAMPLE = 1_024

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PersonsCounted:
    """Whose rows were counted: exact, for anyone who has the rows."""

    #: Number of rows that were read, and of those that were not counted.
    n_rows: int
    left_out: int
    #: Number of persons, and of those with rows left out.
    n_persons: int
    cut: int
    #: The smallest keyed digests, rising: of shape (k, 2), 128 bits each.
    sample: Words
    #: Largest number of rows counted per person.
    most: int
    #: Number of these persons who were known beforehand and left out; and of their rows.
    known: int = 0
    known_rows: int = 0
    #: First 64 bits of the digests of all counted persons, rising; if ``known`` was given.
    register: Words | None = None


class Known:
    """Persons who are left out, and how many of them occurred; not safe for several threads."""

    def __init__(self, digests: Words) -> None:
        self._digests = np.asarray(digests)
        if self._digests.dtype != np.uint64 or self._digests.ndim != 1:
            raise UsageError(
                "known: needs digests of persons as an array (n,) of uint64, as Reply.barred makes "
                "it"
            )
        if (self._digests[1:] < self._digests[:-1]).any():
            raise UsageError("known: the digests must be sorted")
        self._came = np.zeros(len(self._digests), bool)
        self._sample: Words = np.empty((0, 2), np.uint64)
        self._rows = 0

    def found(self, persons: Words, whose: Ints) -> NDArray[np.bool_]:
        """Return for each row whether its person is one of them."""
        known = among(self._digests, persons[:, 0])
        self._came[np.searchsorted(self._digests, persons[known, 0])] = True
        self._sample = _first(np.concatenate([self._sample, persons[known]]))
        rows: NDArray[np.bool_] = known[whose]
        self._rows += int(rows.sum())
        return rows

    def noted(self, counted: PersonsCounted, register: list[Words]) -> PersonsCounted:
        """Return the counts of all persons, including those who were left out."""
        known = int(self._came.sum())
        return replace(
            counted,
            n_persons=counted.n_persons + known,
            sample=_first(np.concatenate([counted.sample, self._sample])),
            known=known,
            known_rows=self._rows,
            register=np.concatenate([*register, np.empty(0, np.uint64)]),
        )


def among(digests: Words, some: Words) -> NDArray[np.bool_]:
    """Return which values are among the sorted digests."""
    if not len(digests):
        return np.zeros(len(some), bool)
    at = np.searchsorted(digests, some)
    return np.asarray(digests[np.minimum(at, len(digests) - 1)] == some)


def _first(persons: Words) -> Words:
    most = 2 * SAMPLE  # each occurs at most twice: in the sample, and in the batch
    if len(persons) > most:
        persons = persons[persons[:, 0] <= np.partition(persons[:, 0], most - 1)[most - 1]]
    return np.unique(persons, axis=0)[:SAMPLE]


#: Bytes of rows held in memory before they are written to the file as a run.
RUN_BYTES = 1 << 25
#: Number of parts of all persons that are read back one after the other.
_PARTS = 256
Records = np.ndarray


class PersonRows:
    """Takes encoded rows with their persons, and gives back at most ``most`` of each person.

    Parameters
    ----------
    column : str
        The column that identifies persons, for messages.
    most : int
        Largest number of rows per person.
    key : bytes or None
        Key for hashing persons: 16 bytes or more. None means ``plan_id``.
    known : ndarray of uint64, optional
        Persons to leave out: the first 64 bits of their digests, rising.
    """

    def __init__(
        self, column: str, most: int, key: bytes | None, plan_id: str, known: Words | None = None
    ) -> None:
        self.column, self.most = column, whole("rows_per_person", most)
        self._key = key = plan_id.encode() if key is None else key
        if not isinstance(key, bytes) or len(key) < 16:
            raise UsageError("key: needs 16 secret bytes or more, or None")
        self._known = None if known is None else Known(known)
        #: If no person can be asked: notes rows without an id, which are left out.
        self.unasked: Unasked | None = None
        #: Whether to ask a person if all rows belong to one person.
        self.doubts_one_person = True
        self._lock = threading.Lock()
        self._pending: list[Records] = []
        self._size = self._n_rows = self._missing = 0
        self._kinds: set[str] = set()
        self._open = ExitStack()
        self._file: Any = None
        #: For each run: where it begins, and its number of rows before each part of the persons.
        self._runs: list[tuple[int, Ints]] = []

    def __enter__(self) -> "PersonRows":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def add(self, codes: Codes, persons: pa.Array, start: int) -> None:
        """Add encoded rows and the column that identifies their persons; from any thread.

        ``start`` is the number of the first row, for messages.
        """
        kind, ids = ids_of(
            persons, self.column, lambda row: f"row {start + row}", asked=self.unasked is None
        )
        if self.unasked is not None and ids.null_count:
            with self._lock:
                self._n_rows += ids.null_count
            what = f"rows without an id in column {self.column!r}, left out"
            kept = np.flatnonzero(np.from_dlpack(ids.is_valid().cast(pa.uint8())) == 1)
            self.unasked.note(what, ids.null_count, f"the rows from {start} on".__str__)
            codes, ids = codes.take(kept), ids.drop_null()
        records = None if ids.null_count or not len(ids) else self._records(codes, ids)
        with self._lock:
            self._n_rows += len(ids)
            self._missing += ids.null_count
            if ids.null_count < len(ids):
                self._kinds.add(kind)
            if records is not None:  # otherwise none, or refused when all have been read
                self._pending.append(records)
                self._size += records.nbytes
                if self._size >= RUN_BYTES:
                    self._write(self._together())

    def _records(self, codes: Codes, ids: pa.Array) -> Records:
        d = len(codes.tally)
        flags = np.zeros((len(codes), d), np.uint8)
        flags[codes.outside.rows, codes.outside.features] = 1
        self._layout = _layout(d)
        records = np.empty(len(codes), self._layout)
        persons, whose = self._digests(ids)
        records["person"] = persons[whose]
        records["codes"] = codes.codes[:d].T
        records["outside"] = np.packbits(flags, axis=1)
        words = records["codes"].astype(np.uint64) | flags.astype(np.uint64) << np.uint64(16)
        order = records["person"][:, 0] ^ records["person"][:, 1]
        kernels.fold_words(words, np.arange(d), order)
        kernels.finish_hashes(order)
        records["order"] = order
        if self._known is not None:
            with self._lock:
                records = records[~self._known.found(persons, whose)]
        return records

    def _digests(self, ids: pa.Array) -> tuple[Words, Ints]:
        coded = ids.dictionary_encode()
        macs = [
            hmac.digest(self._key, text.encode(), "sha256")[:16]
            for text in coded.dictionary.to_pylist()
        ]
        words: Words = np.frombuffer(b"".join(macs), ">u8").astype(np.uint64).reshape(-1, 2)
        return words, np.from_dlpack(coded.indices).astype(np.int64)

    # --- runs -------------------------------------------------------------------------------

    def _together(self) -> Records:
        records = np.concatenate(self._pending)
        self._pending, self._size = [], 0
        return records

    def _write(self, records: Records) -> None:
        """Write a run, with one row more of each person than is taken, which tells of more."""
        records, _ = smallest(records, self.most + 1)
        firsts = np.arange(_PARTS, dtype=np.uint64) << np.uint64(56)
        before = np.searchsorted(records["person"][:, 0], firsts)
        try:
            if self._file is None:
                self._file = self._open.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            self._runs.append((self._file.seek(0, 2), np.append(before, len(records))))
            self._file.write(records)
        except OSError as error:
            raise FileError(
                f"rows cannot be kept in a temporary file in {tempfile.gettempdir()} "
                f"({error.strerror}): each row needs about {records.itemsize} bytes there; free "
                "some space, or set TMPDIR to a folder with enough space"
            ) from error

    def _parts(self) -> Iterator[Records]:
        """Yield all rows: rows of a person together, persons by rising digests."""
        if not self._runs:
            if self._pending:
                yield self._together()
            return
        if self._pending:
            self._write(self._together())
        for part in range(_PARTS):
            parts = []
            for begin, before in self._runs:
                first, last = before[part : part + 2].tolist()
                self._file.seek(begin + first * self._layout.itemsize)
                content = self._file.read((last - first) * self._layout.itemsize)
                parts.append(np.frombuffer(content, self._layout))
            yield np.concatenate(parts)

    # --- what is taken ----------------------------------------------------------------------

    def chosen(self) -> Iterator[Codes]:
        """Yield the selected rows, after all have been added.

        Raises `DataError`, at the latest at the end, if the column does not identify persons.
        """
        self._check_ids()
        n_persons = cut = taken = in_sample = 0
        sample: list[Words] = []
        register: list[Words] = []
        for part in self._parts():
            rows, rank = smallest(part, self.most + 1)
            firsts = rows["person"][rank == 0]
            n_persons, cut = n_persons + len(firsts), cut + int((rank == self.most).sum())
            sample.append(firsts[: SAMPLE - in_sample])
            in_sample += len(sample[-1])
            if self._known is not None:
                register.append(firsts[:, 0].copy())
            rows = rows[rank < self.most]
            taken += len(rows)
            for at in range(0, len(rows), BATCH_ROWS):
                yield _codes(rows[at : at + BATCH_ROWS])
        sampled = np.concatenate([*sample, np.empty((0, 2), np.uint64)])
        left_out = self._n_rows - taken
        about = self._n_rows, left_out, n_persons, cut, sampled
        self.counted = PersonsCounted(*about, self.most)
        if self._known is not None:
            self.counted = self._known.noted(self.counted, register)
        one = self.counted.n_persons == 1 == n_persons
        if one and self._n_rows > self.most and self.doubts_one_person:
            raise DataError(
                f"column {self.column!r} states that all {self._n_rows:,} rows belong to one "
                f"person, so only {self.most:,} would be counted: name the column that identifies "
                "persons"
            )

    def _check_ids(self) -> None:
        if self._missing:
            raise DataError(
                f"column {self.column!r} is empty in {self._missing:,} of {self._n_rows:,} rows, "
                "so their persons are unknown; give each row an id (a new one if the person has "
                "no other rows), or leave these rows out"
            )
        if len(self._kinds) > 1 and self.unasked is None:
            raise DataError(
                f"column {self.column!r} holds numbers in some rows and texts in others: 7 and "
                "'007' may be one person; store it as text everywhere"
            )


def smallest(records: Records, most: int) -> tuple[Records, Ints]:
    """Return for each person the rows with the smallest hashes, and their ranks.

    At most ``most`` of each person, numbered from 0. Applied to several parts of the rows and then
    to the results together, it gives the same as applied to all rows.
    """
    person = records["person"]
    records = records[np.lexsort((records["order"], person[:, 1], person[:, 0]))]
    first, person = np.ones(len(records), bool), records["person"]
    first[1:] = (person[1:] != person[:-1]).any(axis=1)
    place = np.arange(len(records))
    rank = place - np.maximum.accumulate(np.where(first, place, 0))
    return records[rank < most], rank[rank < most]


def _layout(d: int) -> np.dtype:
    return np.dtype([
        ("person", "<u8", (2,)), ("order", "<u8"), ("codes", "<u2", (d,)),
        ("outside", "u1", (-(-d // 8),)),
    ])  # fmt: skip


def _codes(rows: Records) -> Codes:
    """Return rows as they were encoded; only the tally knows which values were outside."""
    codes = np.ascontiguousarray(rows["codes"].T)
    missing = codes == kernels.MISSING_LOW
    outside = np.unpackbits(rows["outside"], axis=1, count=len(codes))
    tally = np.stack([missing.sum(axis=1), outside.sum(axis=0, dtype=np.int64)], axis=1)
    if missing.any():
        codes = np.concatenate([codes, np.where(missing, np.uint16(kernels.MISSING_HIGH), codes)])
    return Codes(codes, tally)


def ids_of(
    column: pa.Array, name: str, place: Callable[[int], str], *, asked: bool = True
) -> tuple[str, pa.Array]:
    """Return whether texts or numbers identify rows, and the ids as texts, null where missing.

    ``place`` returns where a row is, for messages. A number that is not an id is refused if a
    person is ``asked``, and otherwise missing.
    """
    column = decoded(as_column(column) if isinstance(column, np.ndarray) else column)
    kind = column.type
    if is_text(kind):
        return "text", without_blanks(column)
    if pa.types.is_null(kind):
        return "text", pa.nulls(len(column), pa.string())
    if pa.types.is_floating(kind):
        values = as_numbers(column, name)
        exact = 2.0 ** (np.finfo(values.dtype).nmant + 1)
        fits = (np.rint(values) == values) & (np.abs(values) < exact)
        if not asked:
            column, values = as_column(values, fits), values[:0]
        for row in np.flatnonzero(~fits[: len(values)] & ~np.isnan(values))[:1].tolist():
            raise DataError(
                f"column {name!r} holds the number {values[row]} in {place(row)}, which is not "
                "a whole number, or is too large to be distinguished from the next: an id "
                "needs texts or whole numbers; store it as text"
            )
    elif not pa.types.is_integer(kind):
        raise DataTypeError(f"column {name!r} has type {kind}: an id needs texts or whole numbers")
    return "number", as_texts(column, name)


#: Row numbers are stored in place of codes of features, 16 bits in each.
_WORDS = 4
#: The selection of rows is not secret, because the rows stay where the model does.
_PUBLIC = b"some rows of each person"


def some_of_each(reader: Reader, person: str, most: int) -> tuple[Reader, PersonsCounted]:
    """Return a reader of a limited number of rows per person, without the person column.

    A hash of the person and of the row number selects them: the same rows each time, without
    preference for any place in a file.

    Raises
    ------
    DataError, UsageError
        If there is no such column, or it does not identify persons.
    """
    person = fold(person)
    ids = reader.select([person])
    with PersonRows(person, most, _PUBLIC, "") as rows:
        start = 0
        for batch in ids.read():
            column = batch[:, 0] if isinstance(batch, np.ndarray) else batch.columns[0]
            # In place of codes, the number of each row.
            numbers = np.arange(start, start + len(batch), dtype="<u8")
            words = np.ascontiguousarray(numbers.view("<u2").reshape(-1, _WORDS).T)
            rows.add(Codes(words, np.zeros((_WORDS, 2), np.int64)), column, start)
            start += len(batch)
        parts = [codes.codes[:_WORDS].T for codes in rows.chosen()]
        together = np.concatenate([*parts, np.empty((0, _WORDS), np.uint16)])
        counted = rows.counted
    taken = np.sort(np.ascontiguousarray(together, "<u2").view("<u8")[:, 0].astype(np.int64))
    reading = reader.reading or Reading()
    others = [name for name in reader.names or () if name != person]
    chosen = reader.select(others).take(taken)
    drop = tuple(dict.fromkeys((*reading.drop, person)))
    return replace(chosen, reading=replace(reading, drop=drop)), counted
