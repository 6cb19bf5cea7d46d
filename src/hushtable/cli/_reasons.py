"""Why rows score low: columns for the output, and sentences."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushtable.cli._counts import read_counts
from hushtable.cli._output import shown

if TYPE_CHECKING:
    from hushtable import reasons
    from hushtable.scorer import Scorer

__all__ = ["Reasons"]


class Reasons:
    """Explains rows as they are scored.

    Parameters
    ----------
    scorer : Scorer
        Of the model.
    marginals : Path, optional
        Merged sketch or release under marginals of the same features: says how far out a value
        lies.
    lowest : int
        Rows with the lowest scores whose reasons are kept.
    """

    def __init__(self, scorer: "Scorer", marginals: Path | None, lowest: int) -> None:
        from hushtable import reasons

        features = scorer.plan.schema.features
        far_out = None
        if marginals is not None:
            far_out = reasons.Marginals(read_counts(marginals), str(marginals))
            far_out.check(features)
        self._reasons = reasons.Reasons(scorer, lowest, marginals=far_out)
        self._names = _texts([feature.name for feature in features])

    @property
    def fields(self) -> list[tuple[str, Any]]:
        """Names and types of the columns."""
        import pyarrow as pa

        names = [(f"reason_{k}", f"share_{k}") for k in range(1, self._reasons.n_top + 1)]
        return [field for r, s in names for field in ((r, pa.string()), (s, pa.float64()))]

    def batches(self, reader: Any, *, n_jobs: int) -> Iterator[tuple[Any, ...]]:
        """Yield (scores, tally, column, column, ...) of each batch of rows, in order."""
        for scores, tally, top in self._reasons.batches(reader, n_jobs=n_jobs):
            columns = [column for best, share in top for column in self._columns(best, share)]
            yield scores, tally, *columns

    def of(self, row: int) -> "list[reasons.Reason]":
        """Return the reasons of one of the rows with the lowest scores."""
        return self._of(row).reasons

    def sentence(self, row: int) -> str:
        """Say why one of the rows with the lowest scores has it."""
        found = [f"{shown(reason.words)} ({reason.share:.2f})" for reason in self._of(row).telling]
        return f"Row {row:,}: {'; '.join(found) or 'no feature stands out'}."

    def _of(self, row: int) -> "reasons.Lowest":
        return next(lowest for lowest in self._reasons.lowest if lowest.row == row)

    def _columns(self, best: Any, share: Any) -> tuple[Any, Any]:
        """Return a feature's name and its share for each row; null where nothing falls short."""
        import numpy as np
        import pyarrow as pa

        valid = pa.py_buffer(np.packbits(share > 0.0, bitorder="little"))

        def column(kind: Any, values: Any) -> Any:
            return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(values)])

        return self._names.take(column(pa.int64(), best)), column(pa.float64(), share)


def _texts(texts: list[str]) -> Any:
    """Return an Arrow array of texts.

    Not by pa.array, which imports pandas where it is installed: a quarter of a second.
    """
    import numpy as np
    import pyarrow as pa

    data = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, data)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(data), pa.py_buffer(ends), pa.py_buffer(b"".join(data)))
