"""A site's own rows next to the counts of all others: unusual here, and unusual elsewhere.

A result that all sites share answers whether a row is unusual among all rows. A site can answer two
further questions locally, at no cost in epsilon: whether a row is unusual among the site's own
rows, which are available without noise; and whether it is unusual among the rows of all others,
whose counts are the result without the site's own part. Each pair of answers has its own meaning.
"""

import math
import os
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable import files
from hushtable.arguments import whole
from hushtable.counts.base import Counts
from hushtable.counts.kinds import counts_from_file
from hushtable.data.columns import texts_column
from hushtable.data.readers import Reader
from hushtable.data.typed import open_rows
from hushtable.detectors.hushtable import HushTable
from hushtable.errors import DataError, PlanError
from hushtable.language import N_
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan
from hushtable.privacy.layout import FADING, HALF_ROWS
from hushtable.scores.usual import ELSEWHERE, Frequencies, Usual
from hushtable_federation.language import _
from hushtable_federation.refusals import raise_first

Floats = NDArray[np.float64]

#: The kinds of rows, by both answers, and the words for each.
ORDINARY, VISITOR, SYSTEMATIC, OUTLIER = (
    N_("ordinary"), N_("visitor"), N_("systematic"), N_("outlier"),
)  # fmt: skip
WORDS = {
    ORDINARY: N_("usual here and elsewhere"),
    VISITOR: N_("rare here, usual elsewhere"),
    SYSTEMATIC: N_("common here, rare elsewhere"),
    OUTLIER: N_("rare here and elsewhere"),
}
#: Arrays kept about the own rows.
_KEPT = ("scales", "means", "beyond")
#: Standard deviations of a normal distribution in its median absolute deviation.
_NORMAL = 1.4826
_KINDS = (ORDINARY, VISITOR, SYSTEMATIC, OUTLIER)
#: Own rows that the site's own model needs at least.
LEAST_ROWS = 10
#: How rare a row is elsewhere: from a typical score (0) to the threshold (1). About exp(-2.75b)
#: of the others' rows are at b or beyond: a seventh at .7, a fifteenth at 1. All numbers here
#: were measured: see docs/benchmarks/accuracy.md.
_SLOPE, _PLACE = 2.75, 0.7
#: Among rows at that place that are not among the rarest three tenths here: the share up to which
#: the others get no weight of their own, and the share from which on they get full weight.
_RAREST, _FEWEST, _MANY = 0.3, 0.03, 0.08
#: The factor by which own rows must outnumber others' rows that are about as rare elsewhere for
#: these to be systematic, how many there must be at least, and how near the others have to be.
_EXCESS, _FEW, _NEAR = 3.0, 5, 0.25
#: If noise leaves no threshold: its distance from a typical score, in robust standard deviations
#: of the own rows' scores elsewhere, and how precise these must be (see `_precision`).
_WIDTH, _PRECISE = 2.0, 0.3
#: Number of quantiles kept of each measure of the own rows.
_QUANTILES = 2_001


@dataclass(frozen=True)
class HomeScores:
    """Scores of rows by a site's own model, and by the counts of all others.

    Attributes
    ----------
    here, elsewhere : ndarray of shape (n,), float64
        Scores in bits, each on its own scale; low is abnormal.
    beyond : ndarray of shape (n,), float64
        How rare a row is elsewhere, on the way from a typical score (0) to the threshold (1), or
        to its substitute: see `OwnRows`. Under noise, one standard error is subtracted; 0 if the
        noise drowns the scores.
    score : ndarray of shape (n,), float64
        A single ranking by both; low is abnormal.
    rare_here : ndarray of shape (n,), bool
        Whether a row is below the threshold of the site's own model.
    systematic : ndarray of shape (n,), bool
        Whether a row is rare elsewhere while many more of the own rows than of the others' rows
        are equally rare elsewhere.
    share_here : ndarray of shape (n,), float64
        Share of the site's own rows that are as rare here.
    """

    here: Floats
    elsewhere: Floats
    beyond: Floats
    score: Floats
    rare_here: NDArray[np.bool_]
    systematic: NDArray[np.bool_]
    share_here: Floats

    @cached_property
    def kinds(self) -> list[str]:
        """Kind of each row: ordinary, visitor, systematic or outlier."""
        rare = np.where(self.beyond < _PLACE, 1, 3)
        places = np.where(self.systematic, 2, np.where(self.rare_here, rare, 0))
        return [_KINDS[place] for place in places.tolist()]

    def table(self) -> pa.Table:
        """Return ``score``, ``here``, ``elsewhere`` and ``kind`` of each row."""
        columns = {"score": self.score, "here": self.here, "elsewhere": self.elsewhere}
        return pa.table({**columns, "kind": texts_column(self.kinds)})


class OthersScale(NamedTuple):
    """A typical score among the others' rows, and their threshold; NaN if noise hides it."""

    typical: float
    threshold: float

    def beyond(self, scores: Floats, errors: Floats, width: float) -> Floats:
        """Return how far scores are from the typical one to the threshold: see `HomeScores`."""
        if width <= 0.0:
            return np.zeros(len(scores))
        return np.asarray((self.typical - scores - errors) / width, np.float64)


@dataclass(frozen=True)
class OwnRows:
    """Scales, weights and quantiles of a site's own rows, for ranking by both scores.

    Attributes
    ----------
    scales : ndarray of shape (2, 2), float64
        Median and robust standard deviation of the scores here and of those elsewhere.
    part : float
        Share of the others' scores, from 0 to 1, in the mean of both: above 0 if there are few
        own rows, and limited by how precise the noise leaves the others' scores.
    weight : float
        Weight, from 0 to 1, of rows that are rare only elsewhere: above 0 if more of the own rows
        are rare elsewhere, but not here, than expected by chance.
    width : float
        Bits from a typical score elsewhere to the threshold. If noise leaves no threshold, two
        robust standard deviations of the own rows' scores, or 0 if noise drowns these.
    means : ndarray of shape (k,), float64
        Quantiles of the mean of both scores, rising from usual to rare.
    beyond : ndarray of shape (k,), float64
        Quantiles of how rare the rows are elsewhere, rising: see `HomeScores`.
    """

    scales: Floats
    part: float
    weight: float
    width: float
    means: Floats
    beyond: Floats

    @classmethod
    def of(
        cls, here: Floats, share: Floats, elsewhere: Floats, errors: Floats, known: OthersScale
    ) -> Self:
        """Measure the own rows: both scores, and the share of them that are as rare here."""
        n, scales = len(here), np.array([_scale(here), _scale(elsewhere)])
        precise = _precision(elsewhere, errors)
        fading = (FADING[1] - n) / (FADING[1] - FADING[0])
        part = precise * min(max(fading, 0.0), 1.0) * HALF_ROWS / (HALF_ROWS + n)
        width = known.typical - known.threshold
        if not width > 0.0:  # or NaN, under noise
            width = _WIDTH * float(scales[1, 1]) if precise >= _PRECISE else 0.0
        beyond = known.beyond(elsewhere, errors, width)
        rare = float(np.mean((beyond >= _PLACE) & (share > _RAREST)))
        weight = min(max((rare - _FEWEST) / (_MANY - _FEWEST), 0.0), 1.0)
        steps = np.linspace(0.0, 1.0, min(n, _QUANTILES))
        kept = cls(scales, part, weight, width, np.zeros(1), np.quantile(beyond, steps))
        return replace(kept, means=np.quantile(kept.mean(here, elsewhere), steps))

    def mean(self, here: Floats, elsewhere: Floats) -> Floats:
        """Return the mean of both scores, each in its robust units; high is rare."""
        (center, scale), (center_elsewhere, scale_elsewhere) = self.scales
        rare = (center - here) * ((1.0 - self.part) / scale)
        if self.part > 0.0:
            rare += (center_elsewhere - elsewhere) * (self.part / scale_elsewhere)
        return np.asarray(rare, np.float64)

    def score(self, here: Floats, elsewhere: Floats, beyond: Floats) -> Floats:
        """Return the single ranking by both scores; low is abnormal."""
        mean = self.mean(here, elsewhere)
        if self.part == 1.0:  # by verdicts on an earlier version's model; no quantiles are kept
            return -mean
        rare = _rarity(self.means, mean)
        return -(np.maximum(rare, _SLOPE * self.weight * beyond) if self.weight > 0.0 else rare)


class HomeModel:
    """A site's own model together with the counts of all other sites; it never leaves the site.

    Make one with `HomeModel.fit`.

    Attributes
    ----------
    here : HushTable
        Fitted to the site's own rows.
    elsewhere : Counts
        The others' counts, under the plan of the round.
    marginals : Counts or None
        Histograms of the others' columns, which show what is usual elsewhere.
    own : OwnRows
        What is kept of the site's own rows.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import Feature, Plan, Schema, Sketch
    >>> from hushtable_federation import HomeModel
    >>> rng = np.random.default_rng(0)
    >>> mine, theirs = rng.normal(37, 0.4, (400, 1)), rng.normal(37, 0.4, (4000, 1))
    >>> mine[:120] = mine[:120] * 1.8 + 32  # Fahrenheit
    >>> schema = Schema([Feature.numeric("temperature", low=30, high=110)])
    >>> others = Sketch.from_data(Plan.draw(schema, random_state=0), theirs)
    >>> home = HomeModel.fit(mine, others, random_state=0)
    >>> home.scores(mine).kinds[:120].count("systematic") > 90
    True
    """

    def __init__(
        self, here: HushTable, elsewhere: Counts, marginals: Counts | None, own: OwnRows | None
    ) -> None:
        self.here, self.elsewhere, self.marginals, self._own = here, elsewhere, marginals, own
        self._others = HushTable.from_counts(elsewhere)
        scorer = self._others._scorer
        self._known = OthersScale(float(scorer.histogram_means().mean()), scorer.auto_offset())

    @classmethod
    def fit(
        cls,
        X: Any,
        elsewhere: Counts,
        *,
        marginals: Counts | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> Self:
        """Fit the site's own model to its rows, and choose the weight of the others' counts.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            The site's own rows, with the columns of the plan.
        elsewhere : Sketch, LocalModel or Release
            Counts of all others under the plan of the round. For exact counts, this is
            ``result - own``; for a release, `LocalModel.of` with zeros for the site's own counts.
        marginals : Sketch, LocalModel or Release, optional
            Counts of all others under a plan of `Plan.marginals`, made in the same way: reasons
            then state what is usual elsewhere.
        random_state, n_jobs
            As in `HushTable`.

        Raises
        ------
        DataError
            If there are fewer than 10 rows, or a column is missing.
        PlanError
            If the marginals belong to other columns, or the plan counts a second pass.
        UsageError
            If the counts contain no rows.
        """
        plan = elsewhere.plan
        _check_marginals(plan, marginals)
        reader = open_rows(X, plan.schema).repeatable()
        options: dict[str, Any] = {"context": plan.context or None}
        options |= {"relations": plan.schema.relations is not None}
        here = HushTable(random_state=random_state, n_jobs=n_jobs, **options).fit(reader)
        model = cls(here, elsewhere, marginals, None)
        if model.n_rows < LEAST_ROWS:
            raise DataError(
                f"{reader.source} has {model.n_rows} rows; the site's own model needs at "
                f"least {LEAST_ROWS}: score with the result alone"
            )
        scores = here._scores(reader)
        share = model._share_here(scores)
        model._own = OwnRows.of(scores, share, *model._elsewhere(reader), model._known)
        return model

    @property
    def n_rows(self) -> int:
        """Number of the site's own rows."""
        plan = self.here.plan_
        return self.here.sketch_.n_rows if plan.first_counts is None else plan.first_rows

    @property
    def own(self) -> OwnRows:
        """The data kept about the site's own rows."""
        assert self._own is not None
        return self._own

    @property
    def weight(self) -> float:
        """Weight, from 0 to 1, in the single ranking, of rows that are rare only elsewhere."""
        return self.own.weight

    def _rows(self, X: Any) -> Reader:
        return open_rows(X, self.elsewhere.plan.schema, self.here.reading_).repeatable()

    def _share_here(self, scores: Floats) -> Floats:
        usual = self.here._usual_values()
        assert usual is not None
        return np.maximum(usual.as_rare(scores), 0.5 / max(1, self.n_rows))

    def _elsewhere(self, reader: Reader) -> tuple[Floats, Floats]:
        scorer, n_jobs = self._others._scorer, self.here.n_jobs
        if scorer.row_noise > 0.0:
            return scorer.score_with_errors(reader, n_jobs=n_jobs)
        return scorer.score(reader, n_jobs=n_jobs), np.zeros(())

    def scores(self, X: Any) -> HomeScores:
        """Score rows by both models: see `HomeScores`.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns of the plan.
        """
        reader = self._rows(X)
        here = self.here._scores(reader)
        elsewhere, errors = self._elsewhere(reader)
        beyond = self._known.beyond(elsewhere, errors, self.own.width)
        systematic = beyond >= 1.0
        far = beyond[systematic]
        own, others = (
            share_of(far - _NEAR) - share_of(far + _NEAR)
            for share_of in (partial(_share_from, self.own.beyond), _share_of_others)
        )
        systematic[systematic] = (own >= _EXCESS * others) & (own * self.n_rows >= _FEW)
        return HomeScores(
            here=here,
            elsewhere=elsewhere,
            beyond=beyond,
            score=self.own.score(here, elsewhere, beyond),
            rare_here=here < self.here.offset_,
            systematic=systematic,
            share_here=self._share_here(here),
        )

    def outliers(self, X: Any, n: int = 10, scores: HomeScores | None = None) -> pa.Table:
        """List the rows with the lowest scores, with their kinds and reasons.

        The reasons come from the model that makes the row unusual: the site's own model or, for
        systematic rows, the others' counts.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns of the plan.
        n : int, default=10
            The largest number of rows to list.
        scores : HomeScores, optional
            Scores of these rows, if you have them already.

        Returns
        -------
        pyarrow.Table
            ``row`` (from 0), ``score``, ``here``, ``elsewhere``, ``kind``, the standard errors
            ``here_error`` and ``elsewhere_error``, and ``words``. ``severity_here`` and
            ``severity_elsewhere`` are 100 times one minus the share of rows that are as rare: among
            the rows that the site's model sampled, and approximately among the others' rows.
        """
        whole("n", n, 1)
        reader = self._rows(X)
        scored = scores or self.scores(reader)
        lowest = np.argsort(scored.score, kind="stable")[:n]
        rows = np.sort(lowest)
        self._others._usual = self._usual_elsewhere()
        words = []
        for model in (self.here, self._others):
            reasons = model._lowest(reader.take(rows), len(rows)).table()
            order = pa.array(np.argsort(reasons["row"].to_numpy()))
            words.append([str(text) for text in reasons["words"].take(order).to_pylist()])
        kinds = [scored.kinds[row] for row in lowest.tolist()]
        lines = []
        for row, kind in zip(lowest.tolist(), kinds, strict=True):
            reasons = words[kind == SYSTEMATIC][int(np.searchsorted(rows, row))]
            lines.append(f"{_(WORDS[kind])}: {reasons}" if reasons else _(WORDS[kind]))
        table = scored.table().take(pa.array(lowest))
        table = table.add_column(0, "row", pa.array(lowest))
        at = np.searchsorted(rows, lowest)
        for name, model in (("here", self.here), ("elsewhere", self._others)):
            errors = model._scorer.score_with_errors(reader.take(rows))[1]
            table = table.append_column(f"{name}_error", pa.array(errors[at]))
        shares = {"here": scored.share_here, "elsewhere": _share_of_others(scored.beyond)}
        for name, share in shares.items():
            severity = 100.0 * (1.0 - share[lowest])
            table = table.append_column(f"severity_{name}", pa.array(severity))
        return table.append_column("words", texts_column(lines))

    def _usual_elsewhere(self) -> Usual | None:
        own = self.here._usual_values()
        if own is not None:
            # Differences within groups, which only exact fits have, follow the plan's columns.
            shared = own.values[: len(self._others.plan_.schema)]
            own = replace(own.without_scores(), values=shared)
        if self.marginals is None:
            return own
        return replace(Frequencies(self.marginals, "the histograms").beside(own), among=ELSEWHERE)

    def __repr__(self) -> str:
        return (
            f"HomeModel({self.n_rows:,} rows here, about "
            f"{self.elsewhere.n_rows:,} elsewhere, weight={self.weight:.2f})"
        )

    # --- files --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a .hush file, atomically; like the rows, it is for this site only."""
        here, arrays = self.here._entries()
        entries: dict[str, Any] = {"here": here}
        content = {f"here.{name}": array for name, array in arrays.items()}
        for part, counted in (("elsewhere", self.elsewhere), ("marginals", self.marginals)):
            if counted is not None:
                counts, others = counted.entries()
                entries[part] = {"kind": counted.kind, **counts}
                content |= {f"{part}.{name}": array for name, array in others.items()}
        entries["own_rows"] = {
            name: getattr(self.own, name) for name in ("part", "weight", "width")
        }
        content |= {f"own_rows.{name}": getattr(self.own, name) for name in _KEPT}
        files.write(path, "home", entries, content)

    @classmethod
    def from_file(cls, content: files.Content) -> Self:
        """Build the model of a file; raise `PlanError` if the parts do not fit."""
        needed = {"here": dict, "elsewhere": dict, "own_rows": dict}
        stated = content.said("home model", needed, {"marginals": dict})
        own = _own_rows(content)
        here = HushTable.from_file(content.part("here", "detector"))
        elsewhere, marginals = (
            _counts(content, stated, name) for name in ("elsewhere", "marginals")
        )
        assert elsewhere is not None
        _check_marginals(elsewhere.plan, marginals)
        return cls(here, elsewhere, marginals, own)


def _own_rows(content: files.Content) -> OwnRows:
    part = content.part("own_rows", "own rows")
    numbers = part.said("own rows", {"part": float, "weight": float, "width": float})
    arrays = {name: part.array(name) for name in _KEPT}
    for name, array in arrays.items():
        right = array.dtype == np.float64 and array.size > 0 and bool(np.isfinite(array).all())
        if not right or (name == "scales") != (array.shape == (2, 2)):
            raise PlanError(f"home model: {name} of the own rows needs finite float64 numbers")
        if name != "scales" and (array.ndim != 1 or (np.diff(array) < 0.0).any()):
            raise PlanError(f"home model: {name} of the own rows needs rising numbers")
    if not (arrays["scales"][:, 1] > 0.0).all():
        raise PlanError("home model: scales of the own rows need to be above 0")
    for name, most in (("part", 1.0), ("weight", 1.0), ("width", math.inf)):
        if not 0.0 <= numbers[name] <= most:
            raise PlanError(f"home model: {name}={numbers[name]!r}: needs 0 to {most:g}")
    scales, means, beyond = arrays.values()
    return OwnRows(scales, numbers["part"], numbers["weight"], numbers["width"], means, beyond)


def _counts(content: files.Content, stated: dict[str, Any], name: str) -> Counts | None:
    if name not in stated:
        return None
    kind = stated[name].get("kind")
    if kind not in ("sketch", "local", "release"):
        raise PlanError(f"home model: {name} needs counts of others, not {kind!r}")
    return counts_from_file(content.part(name, kind))


def _check_marginals(plan: Plan, marginals: Counts | None) -> None:
    if marginals is None:
        return
    names, columns = marginals.plan.schema.names, plan.schema.names
    faults = {
        f"these are counts of {marginals.plan.detector}, not histograms: needs the others' counts "
        "under Plan.marginals from the round before the plan was drawn": (
            marginals.plan.purpose is not Purpose.MARGINALS
        ),
        "a second pass counts only dense rows, which cannot be compared with histograms: leave "
        "these (--marginals) out": plan.first_counts is not None,
        f"the histograms belong to the columns {', '.join(names)}; the plan has "
        f"{', '.join(columns)}: needs those of the round before this plan was drawn": (
            names != columns
        ),
    }
    raise_first(PlanError, faults)


def _precision(scores: Floats, errors: Floats) -> float:
    variance = float(scores.var())
    return max(0.0, 1.0 - float(np.mean(errors**2)) / variance) if variance > 0.0 else 0.0


def _scale(scores: Floats) -> tuple[float, float]:
    center = float(np.median(scores))
    spread = _NORMAL * float(np.median(np.abs(scores - center)))
    return center, spread or float(scores.std()) or 1.0


def _share_from(quantiles: Floats, values: Floats) -> Floats:
    below = np.searchsorted(quantiles, values, side="left")
    return np.asarray(1.0 - below / len(quantiles), np.float64)


def _rarity(quantiles: Floats, values: Floats) -> Floats:
    # It is interpolated between quantiles and keeps rising beyond the last, so it creates no ties.
    k = len(quantiles)
    distinct, first, times = np.unique(quantiles, return_index=True, return_counts=True)
    # A value that many rows have is as rare as the first of them; one just above it, as the last.
    knots = np.stack([distinct, np.nextafter(distinct, np.inf)], axis=1).ravel()
    places = np.stack([first, first + times - 1], axis=1).ravel()
    rare = -np.log1p(-np.interp(values, knots, places) / k)
    return np.asarray(rare + np.maximum(values - quantiles[-1], 0.0), np.float64)


def _share_of_others(beyond: Floats) -> Floats:
    return np.asarray(np.exp(-_SLOPE * np.maximum(beyond, 0.0)), np.float64)
