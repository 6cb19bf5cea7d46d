"""Persons who are known beforehand, and of whom no row is counted: by their keyed digests."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import UsageError

#: Persons, or distinct rows, of a sample at most: those with the smallest digests.
SAMPLE = 1_024

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PersonsCounted:
    """Whose rows were counted: exact, for whoever has the rows."""

    #: Rows that were read, and those of them that were not counted.
    n_rows: int
    left_out: int
    #: Persons, and those of them with rows left out.
    n_persons: int
    cut: int
    #: The smallest keyed digests, rising: of shape (k, 2), 128 bits each.
    sample: Words
    #: Rows of a person that are counted at most.
    most: int
    #: Of these persons, those who were known beforehand and left out; and their rows.
    known: int = 0
    known_rows: int = 0
    #: Of all who were counted, the first 64 bits of their digests, rising; if ``known`` was given.
    register: Words | None = None


class Known:
    """Persons who are left out, and how many of them came; not safe for several threads."""

    def __init__(self, digests: Words) -> None:
        self._digests = np.asarray(digests)
        if self._digests.dtype != np.uint64 or self._digests.ndim != 1:
            raise UsageError(
                "known: needs digests of persons as an array (n,) of uint64, as Reply.barred makes "
                "it"
            )
        if (self._digests[1:] < self._digests[:-1]).any():
            raise UsageError("known: the digests need to be sorted")
        self._came = np.zeros(len(self._digests), bool)
        self._sample: Words = np.empty((0, 2), np.uint64)
        self._rows = 0

    def found(self, persons: Words, whose: Ints) -> NDArray[np.bool_]:
        """Return, row by row, whether its person is one of them."""
        known = among(self._digests, persons[:, 0])
        self._came[np.searchsorted(self._digests, persons[known, 0])] = True
        self._sample = _first(np.concatenate([self._sample, persons[known]]))
        rows: NDArray[np.bool_] = known[whose]
        self._rows += int(rows.sum())
        return rows

    def noted(self, counted: PersonsCounted, register: list[Words]) -> PersonsCounted:
        """Return what was counted of all persons, with those who were left out."""
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
    """Return which of some are among the sorted digests."""
    if not len(digests):
        return np.zeros(len(some), bool)
    at = np.searchsorted(digests, some)
    return np.asarray(digests[np.minimum(at, len(digests) - 1)] == some)


def _first(persons: Words) -> Words:
    """Return those with the smallest digests, rising, each once: at most `SAMPLE`."""
    most = 2 * SAMPLE  # each is there twice at most: in the sample, and in the batch
    if len(persons) > most:
        persons = persons[persons[:, 0] <= np.partition(persons[:, 0], most - 1)[most - 1]]
    return np.unique(persons, axis=0)[:SAMPLE]
