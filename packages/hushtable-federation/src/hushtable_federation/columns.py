"""How the columns of a site's rows differ from those of others, of whom only counts are known.

Each column is compared in two ways:

Values: the largest difference between the two distribution functions (Kolmogorov and Smirnov), or
between the two shares of a category, of values outside the plan, or of missing values; computed
from histograms.

Similar rows: each hash function of a table answers yes or no about one column. Let a row's code in
a table be c1 if the answer of one function is set to yes, and c0 if it is set to no. Let n be the
counts of others. The mean over the site's rows of n(c1) - n(c0), divided by that of n(c1) + n(c0),
is the answer among the others' rows with the same other answers; the site's own counts, without the
row itself, give a different answer. Half the difference, averaged over five neighbouring cuts of a
column, is the share of rows on the other side of a cut. Sums of counts are linear in their noise.

A fault of a device, a unit or a code moves one column, in rows of all kinds. A different mix of
cases moves several columns. A column is therefore systematic if it has the largest difference,
beyond chance, and no other column's values differ by more than chance or a fifth as much. A mix
that moves only one column, such as the age in a children's hospital, looks the same in all counts.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Counts
from hushtable.data.encoding import Encoder
from hushtable.data.readers import Reader
from hushtable.data.schema import value_words
from hushtable.errors import UsageError
from hushtable.plans.families import RandomFeature
from hushtable.plans.plan import Plan
from hushtable.scores.typical import percent
from hushtable_federation.language import _, ngettext

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Differences that count: at least this many times the scale of chance, and this share. For the
#: largest difference of one column, chance exceeds 1.6 in one of a hundred cases (Kolmogorov).
#: Measured: see docs/benchmarks/accuracy.md.
_CHANCE, _LEAST = 1.6, 0.03
#: Differences of all other columns' values: how rarely chance has larger ones, or which part.
_RARELY, _PART = 0.001, 0.2
#: Cuts whose differences are averaged; rows that are compared with similar rows.
_CUTS, _ROWS = 5, 8_192
#: Least sum of others' counts in a pair of cells, as a part of the site's own counts: noise makes
#: some sums too small.
_FLOOR = 0.3


@dataclass(frozen=True)
class ColumnDifference:
    """A column of a site's rows, compared with the rows of others.

    Attributes
    ----------
    name : str
        The column.
    alike : float
        Share of rows, from 0 to 1, on the other side of a cut than otherwise similar rows.
    values : float
        Largest difference between the shares of the two in a range or a category.
    here, elsewhere : float
        These two shares.
    place : str
        Where these rows are, in words: ``"104 or more"``, ``"F"``, ``"missing"``.
    chance : float
        Approximate size that chance and noise give to either difference in one of 100 cases.
    """

    name: str
    alike: float
    values: float
    here: float
    elsewhere: float
    place: str
    chance: float

    @property
    def size(self) -> float:
        """The larger difference."""
        return max(self.alike, self.values)

    @property
    def words(self) -> str:
        """Both shares in words."""
        if self.values < self.chance:
            return _(
                "%(name)s differs from its values in otherwise similar rows elsewhere",
                name=self.name,
            )
        return _(
            "%(name)s is %(place)s in %(here)s of the rows here, in %(elsewhere)s elsewhere",
            name=self.name,
            place=self.place,
            here=percent(self.here),
            elsewhere=percent(self.elsewhere),
        )


@dataclass(frozen=True)
class ColumnDifferences:
    """The columns of a site's rows, compared with those of others.

    Attributes
    ----------
    columns : tuple of ColumnDifference
        The columns, the largest difference first.
    systematic : ColumnDifference or None
        The column that differs beyond chance in rows of all kinds, if no other column does.
    """

    columns: tuple[ColumnDifference, ...]
    systematic: ColumnDifference | None

    @property
    def differing(self) -> tuple[ColumnDifference, ...]:
        """Columns whose values differ beyond chance and by a relevant share."""
        return tuple(one for one in self.columns if one.values > max(one.chance, _LEAST))

    @property
    def words(self) -> str:
        """One or two sentences about systematic differences in the rows."""
        if self.systematic is not None:
            return _(
                "Systematic at this site: %(what)s, and no other column differs: a device, a unit, "
                "a coding habit, or a speciality?",
                what=self.systematic.words,
            )
        some = self.differing
        if not some:
            return _("The columns do not differ from those elsewhere by more than chance.")
        return ngettext(
            "One column differs from elsewhere, most of all: %(what)s. A different mix of cases "
            "looks like this, and a fault could not be distinguished from it.",
            "%(n)s of %(k)s columns differ from elsewhere, most of all: %(what)s. A different "
            "mix of cases looks like this, and a fault could not be distinguished from it.",
            len(some),
            k=len(self.columns),
            what=some[0].words,
        )


def column_differences(
    rows: Reader, n_rows: int, elsewhere: Counts, here: Counts, marginals: Counts
) -> ColumnDifferences:
    """Compare the columns of a site's rows with those of others.

    Parameters
    ----------
    rows : Reader
        The site's rows, which can be read repeatedly; of more than 8,192, evenly spaced ones are
        compared with similar rows.
    n_rows : int
        Number of rows.
    elsewhere : Counts
        The others' counts under a plan of `HushTable` or `LSHiTables`.
    here, marginals : Counts
        Histograms of the site's rows, and of the others', under one plan of `Plan.marginals`.

    Raises
    ------
    UsageError
        If the tables of the plan do not keep features separate.
    """
    plan = elsewhere.plan
    if not isinstance(plan.family, RandomFeature):
        raise UsageError(
            f"the tables of {plan.detector} do not separate the columns: needs a plan of HushTable "
            "or LSHiTables, without context"
        )
    size = min(n_rows, _ROWS)
    sample = np.unique(np.arange(size) * n_rows // max(1, size))
    alike = _by_rows_alike(plan, plan.family, elsewhere.counts, rows.take(sample))
    histograms = _Histograms(here, marginals)
    chance, of_sample = histograms.chance(n_rows), histograms.chance(size)
    columns = [
        ColumnDifference(
            feature.name, float(alike[j]), *histograms.largest(j), _CHANCE * float(chance[j])
        )
        for j, feature in enumerate(plan.schema.features)
    ]
    first = int(alike.argmax())
    found = columns[first]
    others = [j for j in range(len(columns)) if j != first]
    level = math.sqrt(-0.5 * math.log(_RARELY / (2 * max(1, len(others)))))
    beyond = found.size > max(_CHANCE * float(of_sample[first]), _LEAST)
    alone = all(columns[j].values < max(level * chance[j], _PART * found.size) for j in others)
    largest_first = tuple(sorted(columns, key=lambda column: -column.size))
    return ColumnDifferences(largest_first, found if beyond and alone else None)


def _by_rows_alike(plan: Plan, family: RandomFeature, others: Ints, rows: Reader) -> Floats:
    encoder = Encoder(plan.schema)
    answers = np.concatenate([family.answers(encoder.encode(b)) for b in rows.read()], axis=1)
    difference = np.zeros(len(family.feature))
    end = 0
    for t, depth in enumerate(family.depth.tolist()):
        begin, end = end, end + depth
        cells = others[family.offsets[t] : family.offsets[t + 1]]
        difference[begin:end] = _of_table(family, answers[begin:end], cells.astype(np.float64))
    largest = np.zeros(len(plan.schema))
    for j in range(len(largest)):
        mine = np.flatnonzero(family.feature == j)
        if len(mine):
            near = difference[mine[np.argsort(family.cut[mine], kind="stable")]]
            some = min(_CUTS, len(near))
            largest[j] = np.abs(np.convolve(near, np.full(some, 1.0 / some), "valid")).max()
    return largest


def _of_table(family: RandomFeature, answers: NDArray[np.bool_], others: Floats) -> Floats:
    # See the module's docstring.
    depth, n = answers.shape
    bits = 1 << np.arange(depth - 1, -1, -1, dtype=np.int64)
    codes = bits @ answers
    own = np.bincount(family.cells_of(codes, depth), minlength=len(others)) / n
    others = others / max(float(others.sum()), 1.0)
    found = np.zeros(depth)
    for h, bit in enumerate(bits):
        yes, no = (
            np.bincount(family.cells_of(code, depth), minlength=len(others)) / n
            for code in (codes | bit, codes & ~bit)
        )
        # Without each row itself, whose cell is that of one of the two codes.
        itself = (2.0 * answers[h].mean() - 1.0) / n
        mine, pair = (yes - no) @ own - itself, (yes + no) @ own - 1.0 / n
        theirs, their_pair = (yes - no) @ others, (yes + no) @ others
        least = _FLOOR * pair
        if pair > 0.0:
            found[h] = 0.5 * (mine / pair - theirs / max(their_pair, least))
    return found


class _Histograms:
    def __init__(self, here: Counts, elsewhere: Counts) -> None:
        self._features, self._offsets = here.plan.schema.features, here.plan.family.offsets
        self._counts = here.counts.astype(np.float64), elsewhere.counts.astype(np.float64)
        self._others = max(1.0, float(self._counts[1].sum()) / len(self._features))
        self._noise_sd = elsewhere.noise_sd

    def chance(self, n_rows: int) -> Floats:
        noise = np.diff(self._offsets) * (self._noise_sd / self._others) ** 2
        return np.sqrt(1.0 / max(1, n_rows) + 1.0 / self._others + noise)

    def largest(self, j: int) -> tuple[float, float, float, str]:
        feature, cells = self._features[j], slice(self._offsets[j], self._offsets[j + 1])
        here, elsewhere = (_shares(counts[cells]) for counts in self._counts)
        below = (here - elsewhere)[:-1]
        if feature.kind == "numeric":
            below = np.cumsum(below)[:-1]  # at each inner edge of a bin
        at = int(np.abs(below).argmax())
        difference, missing = abs(float(below[at])), abs(float(here[-1] - elsewhere[-1]))
        if missing > difference:
            return missing, float(here[-1]), _share(elsewhere[-1]), _("missing")
        if feature.kind == "categorical":
            names = (*feature.categories, _("none of the known categories"))
            return difference, float(here[at]), _share(elsewhere[at]), names[at]
        width = (feature.high - feature.low) / (len(here) - 1)
        end = value_words(feature, feature.low + (at + 1) * width)
        low, place = slice(0, at + 1), _("below %(end)s", end=end)
        if below[at] < 0.0:
            low, place = slice(at + 1, -1), _("%(end)s or more", end=end)
        return difference, float(here[low].sum()), _share(elsewhere[low].sum()), place


def _shares(counts: Floats) -> Floats:
    # The last is that of missing values.
    present, total = max(1.0, counts[:-1].sum()), max(1.0, counts.sum())
    return np.append(counts[:-1] / present, counts[-1] / total)


def _share(noisy: float) -> float:
    return min(max(float(noisy), 0.0), 1.0)
