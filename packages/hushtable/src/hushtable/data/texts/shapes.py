"""Shapes of texts: digits as 9. Texts of one shape have their parts in the same places.

A shape is parsed once, in Python; NumPy then reads the numbers of all its texts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, scalar, text_bytes
from hushtable.data.texts.signs import ascii_signs

#: Places of a number in a text, in characters.
Span = tuple[int, int]
#: Longer texts are notes, not values.
LONGEST = 60
_ZERO, _NINE = b"09"
_T = TypeVar("_T")


@dataclass(frozen=True)
class Shaped:
    """Texts (n,) of one shape."""

    shape: str
    #: UTF-8, and where each text begins in it.
    data: NDArray[np.uint8]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    def number(self, span: Span) -> NDArray[np.float64]:
        """Return the numbers (n,) at one place: digits, with a point or comma between two."""
        start = len(self.shape[: span[0]].encode())  # other characters are the same in all texts
        total, places = np.zeros(len(self), np.int64), 0
        for k, sign in enumerate(self.shape[slice(*span)]):
            if sign == "9":
                total = 10 * total + self.data[self.starts + (start + k)] - _ZERO
                places += places > 0
            else:
                places = 1
        return total / 10.0 ** max(0, places - 1)


def by_shape(
    texts: pa.Array, understood: Callable[[str], _T | None]
) -> Iterator[tuple[_T, NDArray[np.int64], Shaped]]:
    """Yield the parsed shapes of texts (n,), with the rows and texts of each.

    ``understood`` takes a shape in small letters and ASCII; None means nothing. Null has no shape.
    """
    texts = ascii_signs(pc.utf8_trim_whitespace(texts))
    fits = pc.and_(
        pc.match_substring_regex(texts, r"\d"),
        pc.less_equal(pc.utf8_length(texts), scalar(LONGEST)),
    )
    places = np.asarray(np.from_dlpack(pc.indices_nonzero(fits)), np.int64)
    if not len(places):
        return
    texts = pc.utf8_lower(texts if len(places) == len(texts) else texts.take(as_column(places)))
    ends, data = text_bytes(texts)
    shapes, codes = _encoded(ends, np.where(_is_digit(data), np.uint8(_NINE), data))
    order = np.argsort(codes, kind="stable")
    limits = np.searchsorted(codes[order], np.arange(len(shapes) + 1))
    for k, shape in enumerate(shapes):
        one = understood(shape)
        if one is not None:
            mine = order[limits[k] : limits[k + 1]]
            yield one, places[mine], Shaped(shape, data, ends[mine].astype(np.int64))


def shapes_of(texts: pa.Array) -> tuple[list[str], NDArray[np.int32]]:
    """Return the different shapes (k,) of texts (n,), and the number (n,) of each text's shape.

    Here, letters keep their case, and a zero that begins a number stays a zero.
    """
    ends, data = text_bytes(texts)
    digit = _is_digit(data)
    after_digit = np.append(False, digit[:-1])
    after_digit[ends[ends < len(data)]] = False
    zero = (data == _ZERO) & ~after_digit
    return _encoded(ends, np.where(digit & ~zero, np.uint8(_NINE), data))


def _is_digit(data: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return (data >= _ZERO) & (data <= _NINE)


def _encoded(
    ends: NDArray[np.int32], masked: NDArray[np.uint8]
) -> tuple[list[str], NDArray[np.int32]]:
    buffers = pa.py_buffer(ends), pa.py_buffer(masked)
    coded = pa.StringArray.from_buffers(len(ends) - 1, *buffers).dictionary_encode()
    return coded.dictionary.to_pylist(), np.asarray(np.from_dlpack(coded.indices), np.int32)
