"""Why rows score low: the features with the largest shares, and words for people."""

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.data.columns import as_numbers, as_texts
from hushtable.data.readers import Batch
from hushtable.data.schema import Feature
from hushtable.errors import FileError, PlanError
from hushtable.plans.draws import Purpose
from hushtable.privacy.denoise import onto_simplex
from hushtable.scores.explain import Explained, Explainer
from hushtable.scores.scorer import Scorer

__all__ = ["Lowest", "Marginals", "Reason", "Reasons", "Top"]

#: Features named for each row.
TOP = 3
#: Share of a row's strongest reason from which another is put into words.
WORTH_A_WORD = 0.1
#: A number is called high or low if it is beyond this share of the numbers counted.
FAR_OUT = 0.9

#: For each rank, the feature (n,) of each row that has it, and its share (n,), in bits.
Top = list[tuple[NDArray[np.int64], NDArray[np.float64]]]


@dataclass(frozen=True)
class Reason:
    """A feature that makes a row's score low.

    Attributes
    ----------
    feature : str
        Its name.
    share : float
        In bits, above zero.
    words : str
        The feature with its value; the name alone where values are kept out.
    """

    feature: str
    share: float
    words: str

    def facts(self) -> dict[str, Any]:
        """Return the reason for machines."""
        return {"feature": self.feature, "share": self.share, "words": self.words}


@dataclass(frozen=True)
class Lowest:
    """One of the rows with the lowest scores.

    Attributes
    ----------
    score : float
        In bits.
    row : int
        Its number.
    reasons : list of Reason
        The strongest first.
    """

    score: float
    row: int
    reasons: list[Reason]

    @property
    def telling(self) -> list[Reason]:
        """Its reasons that are worth a word beside the strongest."""
        return [r for r in self.reasons if r.share >= WORTH_A_WORD * self.reasons[0].share]


class Reasons:
    """Explains rows as they are scored, and keeps the reasons of the lowest ones.

    Parameters
    ----------
    scorer : Scorer
        Of the model.
    n_lowest : int, default=0
        Rows with the lowest scores whose reasons are kept.
    values : bool, default=True
        Whether the words hold the rows' values.
    marginals : Marginals, optional
        Says how far out a value lies.

    Attributes
    ----------
    explainer : Explainer
        What divides scores among features.
    typical : float
        A typical score, which the shares divide the distance from.

    Raises
    ------
    UsageError
        If the model's tables do not tell features apart.
    """

    def __init__(
        self,
        scorer: Scorer,
        n_lowest: int = 0,
        *,
        values: bool = True,
        marginals: "Marginals | None" = None,
    ) -> None:
        self.explainer = Explainer(scorer)
        self._features = scorer.plan.schema.features
        self._n_lowest, self._values, self._marginals = n_lowest, values, marginals
        self._lowest: list[tuple[float, int, list[Reason]]] = []
        self.typical = self.explainer.typical

    @property
    def n_top(self) -> int:
        """Features named for each row."""
        return min(TOP, len(self._features))

    @property
    def lowest(self) -> list[Lowest]:
        """The rows with the lowest scores so far, the lowest first."""
        return [Lowest(*found) for found in self._lowest]

    def batches(
        self, reader: Any, *, n_jobs: int | None = None
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64], Top]]:
        """Yield (scores, tally, top) of each batch of rows, in order; memory stays flat."""
        for batch, lowest in self.explainer.batches(reader, self._batch, n_jobs=n_jobs):
            # Scores and numbers of rows differ: the reasons are never compared.
            self._lowest = heapq.nsmallest(self._n_lowest, [*self._lowest, *lowest])
            yield batch

    def _batch(self, batch: Explained) -> tuple[tuple[Any, Any, Top], list[Any]]:
        """Reduce a batch to its largest shares, and to the reasons of its lowest rows."""
        top, reasons = self.of(batch)
        lowest = [
            (float(batch.scores[i]), batch.start + i, reasons(i))
            for i in np.argsort(batch.scores, kind="stable")[: self._n_lowest].tolist()
        ]
        return (batch.scores, batch.codes.tally, top), lowest

    def of(self, batch: Explained) -> tuple[Top, Callable[[int], list[Reason]]]:
        """Return the largest shares of a batch of rows, and what tells the reasons of one of them.

        It takes the batch's shares apart.
        """
        left, every, top = batch.shares, np.arange(len(batch.shares)), []
        for _ in range(self.n_top):
            best = left.argmax(axis=1)
            top.append((best, left[every, best]))
            left[every, best] = -np.inf

        def reasons(i: int) -> list[Reason]:
            return [
                self._reason(int(best[i]), float(share[i]), batch.rows, i)
                for best, share in top
                if share[i] > 0.0
            ]

        return top, reasons

    def _reason(self, j: int, share: float, rows: Batch, i: int) -> Reason:
        feature = self._features[j]
        words = self._words(j, rows, i) if self._values else feature.name
        return Reason(feature.name, share, words)

    def _words(self, j: int, rows: Any, i: int) -> str:
        """Say which value a row has in a feature."""
        feature = self._features[j]
        array = isinstance(rows, np.ndarray)
        one = pa.array(rows[i : i + 1, j]) if array else rows.column(j).slice(i, 1)
        if feature.kind == "numeric":
            value = as_numbers(one, feature.name, i)[0]
            missing = math.isnan(value)
            what = one[0].as_py()
            what = f"{what:.6g}" if isinstance(what, float) else str(what)
            what = f"{what} {feature.unit}" if feature.unit else what
        else:
            value = as_texts(one, feature.name)[0].as_py()
            missing = value is None
            what = str(value)
        words = f"{feature.name} is missing" if missing else f"{feature.name} {what}"
        if self._marginals is not None:
            words += self._marginals.words(j, None if missing else value)
        return words


class Marginals:
    """Shares of the merged rows, feature by feature.

    Parameters
    ----------
    counts : Sketch or Release
        Under `Plan.marginals`.
    name : str
        Of the counts, for messages.

    Attributes
    ----------
    features : tuple of Feature
        What was counted.
    shares : list of ndarray, float64
        For each feature, the share of the rows in each cell, with the noise smoothed out: of a
        range from low to high, or of the categories; the last cell is that of missing values.

    Raises
    ------
    FileError
        If the counts are no marginals.
    """

    def __init__(self, counts: Sketch | Release, name: str) -> None:
        plan = counts.plan
        if plan.purpose is not Purpose.MARGINALS:
            raise FileError(
                f"{name} holds counts of a {plan.detector!r} plan: --marginals takes a merged "
                "sketch or release under hushtable plan marginals"
            )
        self.features, self._name = plan.schema.features, name
        n_rows = max(1.0, float(counts.counts.sum()) / len(self.features))
        self.shares = []
        for first, last in itertools.pairwise(plan.family.offsets):
            cells = counts.counts[first:last].astype(np.float64)
            if counts.noise_sd > 0.0:
                cells = onto_simplex(cells, n_rows)
            self.shares.append(cells / max(1.0, cells.sum()))

    def check(self, features: Sequence[Feature]) -> None:
        """Raise `PlanError` unless these are the features that were counted."""
        if [(f.name, f.kind) for f in self.features] != [(f.name, f.kind) for f in features]:
            raise PlanError(
                f"{self._name}: the marginals are not of the model's features, in its order"
            )

    def words(self, j: int, value: Any) -> str:
        """Say where a value, a number or a category or None, lies among the merged rows."""
        feature, shares = self.features[j], self.shares[j]
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
