"""Why rows score low: columns for the output, and words for people."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushtable.cli._counts import read_counts
from hushtable.cli._output import shown
from hushtable.errors import FileError, PlanError

if TYPE_CHECKING:
    from hushtable.explain import Explained
    from hushtable.schema import Feature
    from hushtable.scorer import Scorer

__all__ = ["Reason", "Reasons", "sentence"]

#: Features named for each row.
TOP = 3
#: Share of a row's strongest reason from which another is put into words.
WORTH_A_WORD = 0.1
#: A number is called high or low if it is beyond this share of the numbers counted.
FAR_OUT = 0.9


@dataclass(frozen=True)
class Reason:
    """A feature that makes a row's score low."""

    feature: str
    share: float
    words: str

    def facts(self) -> dict[str, Any]:
        """Return the reason for machines."""
        return {"feature": self.feature, "share": self.share, "words": self.words}


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

    def __init__(self, scorer: "Scorer", marginals: Path | None) -> None:
        from hushtable.explain import Explainer

        self.explainer = Explainer(scorer)
        self._features = scorer.plan.schema.features
        self._top = min(TOP, len(self._features))
        self._names = _texts([feature.name for feature in self._features])
        self._marginals = None if marginals is None else _Marginals(marginals, self._features)

    @property
    def fields(self) -> list[tuple[str, Any]]:
        """Names and types of the columns."""
        import pyarrow as pa

        names = [(f"reason_{k}", f"share_{k}") for k in range(1, self._top + 1)]
        return [field for r, s in names for field in ((r, pa.string()), (s, pa.float64()))]

    def of(self, batch: "Explained") -> tuple[list[Any], Callable[[int], list[Reason]]]:
        """Return the columns of a batch of rows, and what gives the reasons of one of them."""
        import numpy as np

        left, every, top = batch.shares, np.arange(len(batch.shares)), []
        for _ in range(self._top):
            best = left.argmax(axis=1)
            top.append((best, left[every, best]))
            left[every, best] = -np.inf

        def reasons(i: int) -> list[Reason]:
            return [
                self._reason(int(best[i]), float(share[i]), batch.rows, i)
                for best, share in top
                if share[i] > 0.0
            ]

        return [column for best, share in top for column in self._columns(best, share)], reasons

    def _columns(self, best: Any, share: Any) -> tuple[Any, Any]:
        """Return a feature's name and its share for each row; null where nothing falls short."""
        import numpy as np
        import pyarrow as pa

        valid = pa.py_buffer(np.packbits(share > 0.0, bitorder="little"))

        def column(kind: Any, values: Any) -> Any:
            return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(values)])

        return self._names.take(column(pa.int64(), best)), column(pa.float64(), share)

    def _reason(self, j: int, share: float, rows: Any, i: int) -> Reason:
        from hushtable.columns import as_numbers, as_texts

        feature, one = self._features[j], rows.column(j).slice(i, 1)
        name = shown(feature.name)
        if feature.kind == "numeric":
            value = as_numbers(one, feature.name, i)[0]
            missing = math.isnan(value)
            what = one[0].as_py()
            what = f"{what:.6g}" if isinstance(what, float) else str(what)
            what = f"{what} {shown(feature.unit)}" if feature.unit else what
        else:
            value = as_texts(one, feature.name)[0].as_py()
            missing = value is None
            what = shown(str(value))
        words = f"{name} is missing" if missing else f"{name} {what}"
        if self._marginals is not None:
            words += self._marginals.words(j, None if missing else value)
        return Reason(feature.name, share, words)


def sentence(place: str, reasons: list[dict[str, Any]]) -> str:
    """Say why a row has its score; the reasons are those of `Reason.facts`."""
    found = [
        f"{reason['words']} ({reason['share']:.2f})"
        for reason in reasons
        if reason["share"] >= WORTH_A_WORD * reasons[0]["share"]
    ]
    return f"{place}: {'; '.join(found) or 'no feature stands out'}."


def _texts(texts: list[str]) -> Any:
    """Return an Arrow array of texts.

    Not by pa.array, which imports pandas where it is installed: a quarter of a second.
    """
    import numpy as np
    import pyarrow as pa

    data = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, data)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(data), pa.py_buffer(ends), pa.py_buffer(b"".join(data)))


class _Marginals:
    """Shares of the merged rows, feature by feature."""

    def __init__(self, path: Path, features: tuple["Feature", ...]) -> None:
        import numpy as np

        from hushtable.privacy.denoise import onto_simplex

        counts = read_counts(path)
        plan = counts.plan
        if plan.detector != "marginals":
            raise FileError(
                f"{path} holds counts of a {plan.detector!r} plan: --marginals takes a merged "
                "sketch or release under hushtable plan marginals"
            )
        kinds = [(f.name, f.kind) for f in plan.schema.features]
        if kinds != [(f.name, f.kind) for f in features]:
            raise PlanError(f"{path}: the marginals are not of the model's features, in its order")
        self._features = plan.schema.features
        offsets = plan.family.offsets
        n_rows = max(1.0, float(counts.counts.sum()) / len(features))
        self._shares = []
        for first, last in itertools.pairwise(offsets):
            cells = counts.counts[first:last].astype(np.float64)
            if counts.noise_sd > 0.0:
                cells = onto_simplex(cells, n_rows)
            self._shares.append(cells / max(1.0, cells.sum()))

    def words(self, j: int, value: Any) -> str:
        """Say where a value, a number or a category or None, lies among the merged rows."""
        feature, shares = self._features[j], self._shares[j]
        if value is None:
            return f", as in {_percent(shares[-1])} of the merged rows"
        if feature.kind == "categorical":
            if value not in feature.categories:
                return ", none of the plan's categories"
            same = shares[feature.categories.index(value)]
            return f", as in {_percent(same)} of the merged rows"
        numbers = shares[:-1]
        place = 0.0 if feature.constant else (value - feature.low) / (feature.high - feature.low)
        cell = min(max(math.floor(place * len(numbers)), 0), len(numbers) - 1)
        below, above = float(numbers[:cell].sum()), float(numbers[cell + 1 :].sum())
        if max(below, above) < FAR_OUT * numbers.sum():
            return ", not far out by itself"
        if below > above:
            return f" is above {_percent(below)} of the merged rows"
        return f" is below {_percent(above)} of the merged rows"


def _percent(share: float) -> str:
    """Return a share, rounded down, and never all: noise may have hidden the last rows."""
    return f"{min(999, math.floor(1000.0 * share + 1e-9)) / 10:g}%"
