"""Shapes of texts: digits as 9. Texts of one shape say what they say at the same places.

A shape is understood once, in Python; the numbers of all its texts are then read by Arrow.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, scalar

#: Places of a number in a text, in characters.
Span = tuple[int, int]
#: Shapes of which one has to be understood for the others of a batch to be looked at: what are
#: identifiers or notes is known by then.
_FIRST = 500
#: Longer texts are notes, and no value.
_LONGEST = 60
_T = TypeVar("_T")


def by_shape(
    texts: Any, understood: Callable[[str], _T | None]
) -> Iterator[tuple[_T, NDArray[np.int64], pa.Array]]:
    """Yield what the shapes of texts (n,) are understood as, with the places and texts of each.

    ``understood`` takes a shape in small letters; None means nothing. Null has no shape.
    """
    texts = pc.utf8_lower(texts)
    fits = pc.and_(
        pc.match_substring_regex(texts, r"\d"),
        pc.less_equal(pc.utf8_length(texts), scalar(_LONGEST)),
    )
    places = np.asarray(np.from_dlpack(pc.indices_nonzero(fits)), np.int64)
    if not len(places):
        return
    texts = texts.take(as_column(places))
    coded = pc.replace_substring_regex(texts, r"\d", "9").dictionary_encode()
    shapes, codes = coded.dictionary.to_pylist(), np.from_dlpack(coded.indices)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(shapes) + 1))
    found = False
    for k, shape in enumerate(shapes):
        if k >= _FIRST and not found:
            return
        one = understood(shape)
        if one is not None:
            found = True
            mine = order[ends[k] : ends[k + 1]]
            yield one, places[mine], texts.take(as_column(mine.astype(np.int64)))


def number_at(texts: pa.Array, span: Span) -> NDArray[np.float64]:
    """Return the numbers (n,) at one place of texts of one shape."""
    digits = pc.utf8_slice_codeunits(texts, *span)
    digits = pc.replace_substring(digits, ",", ".")
    return np.asarray(np.from_dlpack(pc.cast(digits, pa.float64())), np.float64)
