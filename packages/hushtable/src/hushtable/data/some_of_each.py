"""Some rows of each person: for models that stay where the rows are."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hushtable.data.encoding import Codes
from hushtable.data.known import PersonsCounted
from hushtable.data.persons import PersonRows
from hushtable.data.readers import Reader
from hushtable.data.texts.reading import Reading

#: Row numbers go where codes of features go, 16 bits in each.
_WORDS = 4
#: Which rows are taken is no secret: the rows stay where the model does.
_PUBLIC = b"some rows of each person"


def some_of_each(reader: Reader, person: str, most: int) -> tuple[Reader, PersonsCounted]:
    """Return a reader of at most so many rows of each person, without the column that tells them.

    A hash of the person and of the row's number chooses them: the same ones each time, and no
    place in a file is preferred.

    Raises
    ------
    DataError, UsageError
        If there is no such column, or it tells no persons.
    """
    ids = reader.select([person])
    with PersonRows(person, most, _PUBLIC, "") as rows:
        start = 0
        for batch in ids.read():
            column = batch[:, 0] if isinstance(batch, np.ndarray) else batch.columns[0]
            rows.add(_numbers(start, len(batch)), column, start)
            start += len(batch)
        taken = _numbered(rows.chosen())
        counted = rows.counted
    reading = reader.reading or Reading()
    others = [name for name in reader.names or () if name != person]
    some = reader.select(others).take(taken)
    drop = tuple(dict.fromkeys((*reading.drop, person)))
    return replace(some, reading=replace(reading, drop=drop)), counted


def _numbers(start: int, n_rows: int) -> Codes:
    numbers = np.arange(start, start + n_rows, dtype="<u8")
    words = numbers.view("<u2").reshape(-1, _WORDS).T
    return Codes(np.ascontiguousarray(words), np.zeros((_WORDS, 2), np.int64))


def _numbered(chosen: Iterable[Codes]) -> NDArray[np.int64]:
    words = [codes.codes[:_WORDS].T for codes in chosen]
    together = np.concatenate([*words, np.empty((0, _WORDS), np.uint16)])
    numbers = np.ascontiguousarray(together, "<u2").view("<u8")[:, 0].astype(np.int64)
    return np.sort(numbers)
