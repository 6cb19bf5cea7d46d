"""Rows in a sparse matrix of SciPy, made dense one batch at a time."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hushtable.data.readers._numpy import matrix
from hushtable.data.readers._reader import Batch, Reader, slices
from hushtable.errors import DataError

#: As many features as a schema takes.
_MAX_FEATURES = 65_535


def is_sparse(data: Any) -> bool:
    """Whether this is a sparse matrix or array."""
    return hasattr(data, "tocsr") and hasattr(data, "toarray")


def sparse(data: Any) -> Reader:
    """Read a sparse matrix or array; what it does not store is 0.0."""
    if data.ndim == 2 and data.shape[1] > _MAX_FEATURES:
        raise DataError(
            f"the sparse matrix has {data.shape[1]:,} columns: needs {_MAX_FEATURES:,} at most; "
            "choose columns, or reduce them first (for example by sklearn's TruncatedSVD)"
        )
    # The checks of dense data, on no rows.
    none = matrix(data.tocsr()[:0].toarray() if data.ndim == 2 else data.toarray())
    rows, (n, d) = data.tocsr(), data.shape

    def batches() -> Iterator[Batch]:
        for here in slices(n, d):
            yield from matrix(rows[here].toarray()).read()

    return replace(none, n_rows=n, read=batches)
