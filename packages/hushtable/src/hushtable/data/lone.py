"""The only negative number, or the only zero, of a column: often an error that no score finds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hushtable.data.schema import number_words
from hushtable.language import _, numerals

#: Writes a number, with so many digits.
Write: TypeAlias = Callable[[float, int | None], str]
#: Least number of values of a column.
_LEAST_VALUES = 30
#: First values of a batch that show whether all are whole numbers.
_GLANCE = 64
#: Among whole numbers, a zero is as ordinary as the ones if these are fewer than this.
_MANY_ONES = 20


@dataclass(frozen=True)
class LoneNumber:
    """The only negative number, or the only zero, of a column."""

    column: str
    value: float
    #: Number of its row, from 0, and the file if there are several.
    row: int
    file: str = ""
    #: Writes the number as its column is written: see `Feature.written`.
    write: Write = field(default=number_words, repr=False, compare=False)

    @property
    def words(self) -> str:
        """Where it is, as a sentence."""
        row = numerals(f"{self.row:,}")
        said = {"name": self.column, "value": self.write(self.value, None), "row": row}
        if self.value:
            words = _("%(name)s has one negative value, %(value)s, in row %(row)s", **said)
        else:
            words = _("%(name)s has one zero, in row %(row)s", **said)
        return f"{words} ({self.file})." if self.file else f"{words}."

    @property
    def remark(self) -> str:
        """The number as a remark on its row."""
        if self.value:
            return _(
                "%(name)s %(value)s: the only negative value",
                name=self.column,
                value=self.write(self.value, None),
            )
        return _("%(name)s 0: the only zero", name=self.column)


class LoneNumbers:
    """Looks for them in the batches of a column."""

    def __init__(self, column: str, write: Write | None = None) -> None:
        self.column, self._write = column, write or number_words
        self._n_values = self._n_negative = self._n_zeros = self._n_ones = 0
        self._whole = True
        self._seen: list[LoneNumber] = []

    def add(self, values: NDArray[np.float64], start: int, file: str = "") -> None:
        """Process a batch (n,), whose first row has the number ``start`` in its file."""
        self._n_values += len(values) - int(np.isnan(values).sum())
        self._n_ones += int((values == 1.0).sum())
        glance = values[:_GLANCE]
        self._whole &= bool((np.isnan(glance) | (glance == np.round(glance))).all())
        if self._n_negative > 1 or not (at := np.flatnonzero(values <= 0.0)).size:
            return
        found = values[at]
        self._n_negative += int((found < 0.0).sum())
        self._n_zeros += int((found == 0.0).sum())
        for some in (found < 0.0, found == 0.0):
            for i in at[some][:1].tolist():
                self._seen.append(
                    LoneNumber(self.column, float(values[i]), start + i, file, self._write)
                )

    def found(self) -> list[LoneNumber]:
        """Return the only negative number, and the only zero unless several are negative."""
        if self._n_values < _LEAST_VALUES or self._n_negative > 1:
            return []
        counts_from_zero = self._whole and 0 < self._n_ones < _MANY_ONES
        zero = self._n_zeros == 1 and not counts_from_zero
        found = [one for one in self._seen if one.value or zero]
        return sorted(found, key=lambda one: (one.file, one.row))
