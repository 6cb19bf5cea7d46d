"""Results in frames: of the caller's kind, or as `set_output` asks."""

from collections.abc import Sequence
from typing import Any, Self

import pyarrow as pa

from hushtable.errors import MissingExtraError, UsageError
from hushtable.scores.outliers import AMONG

#: As scikit-learn names them.
_OUTPUTS = ("default", "pandas", "polars")


class OutputFrames:
    """An estimator whose results are arrays, or frames and series with the rows' index."""

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set what scores, predictions and explanations come as.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            Arrays; pandas objects, with the index of the rows if they are in a pandas object; or
            polars objects, which have none. None leaves it as it is.

        Returns
        -------
        self

        Examples
        --------
        >>> import pandas as pd
        >>> from hushtable import HushTable
        >>> rows = pd.DataFrame({"pulse": [70, 71, 72, 180]}, index=["ann", "ben", "cem", "dan"])
        >>> detector = HushTable(random_state=0).fit(rows).set_output(transform="pandas")
        >>> detector.score_samples(rows).idxmin()
        'dan'
        """
        if transform is not None:
            if transform not in _OUTPUTS:
                raise UsageError(f"transform={transform!r}: needs one of {list(_OUTPUTS)}")
            # The name by which scikit-learn's clone copies it.
            self._sklearn_output_config = {"transform": transform}
        return self

    def _output(self, values: Any, X: Any, name: str, columns: Sequence[str] | None = None) -> Any:
        """Return values (n,) or (n, d) of rows as `set_output` says."""
        kind = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        if kind == "default":
            return values
        try:
            library = __import__(kind)
        except ImportError:
            raise MissingExtraError(f"set_output(transform={kind!r})", kind, kind) from None
        index = {"index": index_of(X)} if kind == "pandas" else {}
        if columns is None:
            series = {"data": values} if kind == "pandas" else {"values": values}
            return library.Series(name=name, **series, **index)
        names = {"columns": columns} if kind == "pandas" else {"schema": list(columns)}
        return library.DataFrame(values, **names, **index)


def index_of(X: Any) -> Any:
    """Return the index of rows in a pandas object, else None."""
    return X.index if _library(X) == "pandas" and hasattr(X, "iloc") else None


def frame_like(table: pa.Table, X: Any) -> Any:
    """Return a table of some rows of X, whose numbers are in its column ``row``, as X's kind.

    A pandas frame gets the index of the rows; what is neither of pandas nor of polars stays a
    pyarrow Table.
    """
    library = _library(X)
    if library == "polars":
        import polars

        return polars.from_arrow(table)
    if library != "pandas":
        return table
    frame = table.to_pandas()
    frame.index = X.index[table["row"].to_numpy()]
    frame.attrs["severity_among"] = (table.schema.metadata or {}).get(AMONG, b"").decode()
    return frame


def _library(X: Any) -> str:
    return type(X).__module__.partition(".")[0]
