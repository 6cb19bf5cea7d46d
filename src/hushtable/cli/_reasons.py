"""Why rows score low: columns for the output, and sentences."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable.cli._counts import read_counts
from hushtable.cli._output import shown
from hushtable.scores import reasons
from hushtable.scores.explain import Explained
from hushtable.scores.reasons import WORTH_A_WORD
from hushtable.scores.scorer import Scorer

__all__ = ["Reasons", "sentence"]


class Reasons:
    """Explains rows as they are scored.

    Parameters
    ----------
    scorer : Scorer
        Of the model.
    marginals : Path, optional
        Merged sketch or release under marginals of the same features: says how far out a value
        lies.
    """

    def __init__(self, scorer: Scorer, marginals: Path | None) -> None:

        features = scorer.plan.schema.features
        far_out = None
        if marginals is not None:
            far_out = reasons.Marginals(read_counts(marginals), str(marginals))
            far_out.check(features)
        self._reasons = reasons.Reasons(scorer, marginals=far_out)
        self._names = _texts([feature.name for feature in features])
        self.explainer = self._reasons.explainer

    @property
    def fields(self) -> list[tuple[str, Any]]:
        """Names and types of the columns."""
        names = [(f"reason_{k}", f"share_{k}") for k in range(1, self._reasons.n_top + 1)]
        return [field for r, s in names for field in ((r, pa.string()), (s, pa.float64()))]

    def of(self, batch: Explained) -> tuple[list[Any], Callable[[int], list[dict[str, Any]]]]:
        """Return the columns of a batch of rows, and what tells the reasons of one of them."""
        top, reasons = self._reasons.of(batch)
        columns = [column for best, share in top for column in self._columns(best, share)]
        return columns, lambda i: [reason.facts() for reason in reasons(i)]

    def _columns(self, best: Any, share: Any) -> tuple[Any, Any]:
        """Return a feature's name and its share for each row; null where nothing falls short."""
        valid = pa.py_buffer(np.packbits(share > 0.0, bitorder="little"))

        def column(kind: Any, values: Any) -> Any:
            return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(values)])

        return self._names.take(column(pa.int64(), best)), column(pa.float64(), share)


def sentence(place: str, reasons: list[dict[str, Any]]) -> str:
    """Say why a row has its score; the reasons are those of `Reason.facts`."""
    found = [
        f"{shown(reason['words'])} ({reason['share']:.2f})"
        for reason in reasons
        if reason["share"] >= WORTH_A_WORD * reasons[0]["share"]
    ]
    return f"{place}: {'; '.join(found) or 'no feature stands out'}."


def _texts(texts: list[str]) -> Any:
    """Return an Arrow array of texts.

    Not by pa.array, which imports pandas where it is installed: a quarter of a second.
    """
    data = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, data)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(data), pa.py_buffer(ends), pa.py_buffer(b"".join(data)))
