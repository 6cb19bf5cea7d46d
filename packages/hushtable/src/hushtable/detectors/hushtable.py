"""The detectors: HushTable, and the paper's LSH iTables."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hushtable.arguments import is_text, whole
from hushtable.counts.base import Counts
from hushtable.counts.sketch import Sketch, both_passes, count_here
from hushtable.data.calendar import without_parts
from hushtable.data.passes import Weights, numbered
from hushtable.data.readers import Reader
from hushtable.data.residuals import (
    FEW_ROWS,
    Rows,
    differences_in_groups,
    learned_differences,
    learned_relations,
    names_of_groups,
)
from hushtable.data.schema import MAX_CATEGORIES, Feature, Schema
from hushtable.data.texts.reading import Reading
from hushtable.data.understanding import Inferred
from hushtable.detectors.base import TableDetector
from hushtable.errors import DataError, UsageError
from hushtable.plans.draws import NOVELTY
from hushtable.plans.families import context_columns, only_one_value
from hushtable.plans.plan import Plan

#: Share of the width of a range by which both of its ends are moved outwards, for novelty.
WIDER = 0.25
#: Largest share of outliers that rows may have and still count as clean. From about 3% on, the
#: default detects better: see the docs.
_CLEAN = 0.1


class HushTable(TableDetector):
    """Outlier detector over refined, mergeable tables of counts.

    LSH iTables (Li and Pham) with all rows in every table, deep codes (8 to 24 hash functions)
    folded into 256 cells, features weighted by their kurtosis, cuts at quantiles and in tails,
    stratified draws, and two passes. The second pass counts only the rows in dense regions.
    With ``contamination="auto"`` it usually flags a few percent of the rows.

    Parameters
    ----------
    n_tables : int, default=100
        Number of tables (m in the paper). 400 is a little more accurate and four times the work.
    passes : {"auto", 1, 2}, default="auto"
        How often rows are counted. 2: first all rows, then those that are denser than a gate found
        by Otsu's method; usually more accurate. 1: all rows once; `partial_fit` can add more.
        "auto": 2 in `fit`, and 1 in `partial_fit` and for novelty detection. After a `fit` with two
        passes, `partial_fit` continues with the counts of the first pass only. This changes the
        scale of scores and `offset_`, and a warning reports it.
    novelty : bool, default=False
        Whether the rows of `fit` are known to be clean, so that any row unlike them is abnormal:
        ranges are widened by a quarter at both ends, tables are deeper (24 to 32 hash functions,
        1,024 cells), features have equal weights, and an empty cell scores far below a cell with
        one row. If 3% of the rows or more are outliers, the default detects better; a
        `contamination` above 0.1 is refused.
    context : str or sequence of str, optional
        Columns that define what a row is compared with, such as a ward or a month; the other
        columns are its behaviour. A row then scores low if its behaviour is unusual for its
        context, and half as low if it is unusual everywhere. Each table counts pairs of both (see
        `hushtable.plans.families.Contextual`), in one pass. Rows whose context has few counted
        rows are compared with all rows. With several columns, or numeric ones, each number of the
        behaviour is also compared with the prediction of a regression on the context; in groups of
        50 rows or fewer on average, each value with the median, or the usual category, of its
        group. One column of whole numbers counts as names of groups if these predict the behaviour
        better than neighbouring numbers do; a warning reports it. Columns of arrays are named by
        their numbers, as in ``plan_.schema.names``.
    time : str, optional
        Column of points in time. It is replaced by the features hour, weekday, day of the month
        and month: see `hushtable.data.read`, which also takes its time zone. They can be a
        ``context``.
    entity : str, optional
        With ``time``: the column that identifies whose reading a row is, such as a patient or a
        machine. Each column of numbers is then replaced by features that compare a reading with
        the earlier ones of its entity among the rows of one call: see `hushtable.history`. Parts
        of the time are features only if they are the ``context``.
    relations : bool, default=False
        Whether each column of numbers is replaced by what the other columns do not explain of it:
        the error of a ridge regression on them, fitted without the rows that do not fit. This
        finds rows that break the relations between columns, and explains them: "x 31.8, where by
        y and z it would be 3.2". Only linear relations are found; columns without any are used as
        they are. Not for releases, because the relations are read off the rows.
    max_rows : int, optional
        The largest number of rows that `fit` counts: if there are more, it divides them into that
        many equal parts and counts a random row of each. With 131,072, ROC-AUC is within a point
        of that with all rows on the three largest data sets of the tests, and `fit` of 10^6 rows
        takes a quarter of the time. Ranges, and a threshold set by ``contamination``, use all
        rows. The counts are then a sample (``sketch_.sampled``), and no rows can be added to them.
    [shared parameters]
    random_state : int, RandomState or Generator, optional
        Seed of the hash functions and of the choice of rows.

    Attributes
    ----------
    [attributes]

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import HushTable
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> X[0] = 8.0
    >>> detector = HushTable(random_state=0).fit(X)
    >>> int(detector.score_samples(X).argmin())
    0
    """

    _detector: ClassVar[str] = "hushtable"
    _reads_again: ClassVar[bool] = True

    def __init__(
        self,
        *,
        n_tables: int = 100,
        passes: str | int = "auto",
        novelty: bool = False,
        context: str | Sequence[str] | None = None,
        time: str | None = None,
        entity: str | None = None,
        relations: bool = False,
        max_rows: int | None = None,
        contamination: str | float = "auto",
        n_jobs: int | None = None,
        random_state: object = None,
    ) -> None:
        self.n_tables = n_tables
        self.passes = passes
        self.novelty = novelty
        self.context = context
        self.time = time
        self.entity = entity
        self.relations = relations
        self.max_rows = max_rows
        self.contamination = contamination
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        if self.passes not in ("auto", 1, 2):
            raise UsageError(f'passes={self.passes!r}: needs "auto", 1 or 2')
        if not isinstance(self.novelty, bool | np.bool_):
            raise UsageError(f"novelty={self.novelty!r}: needs True or False")
        super()._check_parameters()
        if not isinstance(self.relations, bool | np.bool_):
            raise UsageError(f"relations={self.relations!r}: needs True or False")
        if self.max_rows is not None:
            whole("max_rows", self.max_rows, 2)
        if self.time is not None and not is_text(self.time):
            raise UsageError(f"time={self.time!r}: needs the name of a column")
        if self.entity is not None and not is_text(self.entity):
            raise UsageError(f"entity={self.entity!r}: needs the name of a column")
        if self.context is not None and self.relations:
            raise UsageError(
                f"context={self.context!r} with relations=True: a row is compared with its "
                "context, or each column with the others: leave one of the two out"
            )
        if self.context is not None and (self.passes == 2 or self.novelty):
            other = "novelty=True" if self.novelty else "passes=2"
            raise UsageError(
                f"context={self.context!r} with {other}: rows are compared within their context in "
                "one pass over all rows: leave one of the two out"
            )
        if not self.novelty:
            return
        if self.passes == 2:
            raise UsageError(
                "passes=2 with novelty=True: all clean rows should be counted, and a second pass "
                'would leave some of them out, which loses accuracy: needs passes="auto" or 1'
            )
        if not isinstance(self.contamination, str) and self.contamination > _CLEAN:
            raise UsageError(
                f"contamination={self.contamination:g} with novelty=True, which is for clean rows: "
                "from 3% of outliers on, novelty=False detects better; to flag so many rows "
                f"anyway, call set_threshold(X, {self.contamination:g}) after fit"
            )

    def _partial_fit(self) -> Callable[..., Self]:
        needed = ""
        if self.passes == 2:
            needed = 'passes="auto" or 1: two passes need all rows'
        elif self.max_rows is not None:
            needed = "max_rows=None: it adds all rows"
        if needed:
            mine = type(self).__name__
            raise AttributeError(f"this {mine} has no partial_fit, which needs {needed}")
        return super().partial_fit

    # The method does not exist with two passes, so that scikit-learn's tools do not rely on it.
    partial_fit = property(_partial_fit, doc=TableDetector.partial_fit.__doc__)

    def _so_far(self) -> Counts:
        if self.sketch_.sampled:
            raise UsageError(
                "this detector counted a sample of its rows (max_rows=), to which no rows can be "
                "added: fit all rows again"
            )
        if (self.plan_.score == NOVELTY) != self.novelty:
            raise UsageError(
                f"this detector was fitted with novelty={not self.novelty}: add rows to its "
                "counts with the same setting, or call fit to draw a new plan"
            )
        return self.sketch_.first_pass() if isinstance(self.sketch_, Sketch) else self.sketch_

    def _to_fit(self, reader: Reader) -> Reader:
        if self.time is None and self.entity is None:
            return reader
        if reader.names is None:
            raise DataError(
                f"time={self.time!r}: {reader.source} has no column names: needs a frame, a "
                "table or a file"
            )
        reading = reader.reading or Reading()
        for name in ("time", "entity"):
            mine, stated = getattr(self, name), getattr(reading, name)
            if mine is not None and stated not in ("", mine):
                raise UsageError(
                    f"{name}={mine!r}, but the rows were read with {name}={stated!r}: use one"
                )
        time, entity = self.time or reading.time, self.entity or reading.entity
        return replace(reader, reading=replace(reading, time=time, entity=entity))

    @property
    def _contexts(self) -> list[str]:
        given = () if self.context is None else self.context
        return [given] if isinstance(given, str) else list(given)

    def _schema(self, inferred: Inferred) -> Schema:
        schema = inferred.schema
        if inferred.reading.entity:
            schema = without_parts(schema, self._contexts)
        return schema.widened(WIDER) if self.novelty else schema

    def _related(
        self, schema: Schema, reader: Reader, weights: Weights | None, n_rows: int
    ) -> Schema:
        def rows() -> Iterator[tuple[Any, Weights | None]]:
            return ((b, w) for part in numbered(reader, weights) for _, b, w in part)

        if self.context is not None:
            return _with_differences(schema, self._contexts, rows, n_rows)
        if not self.relations:
            return schema
        features = schema.features
        columns = [j for j, f in enumerate(features) if f.kind == "numeric" and not f.constant]
        if len(columns) < 2:
            raise DataError(
                f"relations=True: {reader.source} has {len(columns)} columns of numbers that are "
                "not constant; needs at least two: leave relations out"
            )
        ends = np.array([(features[j].low, features[j].high) for j in columns])
        scale = ends.mean(axis=1), (ends[:, 1] - ends[:, 0]) / 2.0
        wider = WIDER if self.novelty else 0.0
        relations = learned_relations(rows, columns, schema.names, scale, wider)
        return replace(schema, public=False, relations=relations)

    def _drawn_by(
        self, schema: Schema, reader: Reader, weights: Weights | None, n_rows: int
    ) -> dict[str, Any]:
        marginals = self._sketch(Plan.marginals(schema), reader, weights)
        drawn_by = {"marginals": marginals, "novelty": bool(self.novelty)}
        if self.context is None:
            return drawn_by
        _check_contexts(schema, self._contexts, n_rows, marginals)
        return drawn_by | {"context": self._contexts}

    def _chosen_rows(self, n_rows: int, weights: Weights | None) -> NDArray[np.int64] | None:
        most = self.max_rows
        if most is None or n_rows <= most:
            return None
        if weights is not None:
            raise UsageError(f"max_rows={most} counts whole rows: leave sample_weight out")
        ends = np.arange(most + 1) * n_rows // most
        return self._rng.spawn(1)[0].integers(ends[:-1], ends[1:])

    def _sketch(
        self, plan: Plan, reader: Reader, weights: Weights | None, *, all_rows: bool = False
    ) -> Sketch:
        if not all_rows or self.passes == 1 or self.novelty or self.context is not None:
            return super()._sketch(plan, reader, weights)
        return both_passes(plan, reader, weights, self.n_jobs)

    @classmethod
    def _parameters_of(cls, plan: Plan) -> dict[str, Any]:
        passes = 1 if plan.first_counts is None else 2
        context = plan.context or None
        return {
            **super()._parameters_of(plan),
            "passes": passes if context is None else "auto",
            "novelty": plan.score == NOVELTY,
            "context": context,
            "relations": plan.schema.relations is not None,
        }


#: Rows that each context needs on average for a comparison with it to be meaningful.
_ROWS_OF_CONTEXT = 2


def _with_differences(schema: Schema, names: Sequence[str], rows: Rows, n_rows: int) -> Schema:
    """Return the schema, with the differences from the context's predictions as features.

    A context of whole numbers that name groups becomes one of categories.
    """
    inside, features = context_columns(schema, names), schema.features
    context, others = np.flatnonzero(inside).tolist(), np.flatnonzero(~inside).tolist()
    varied = [j for j in others if not features[j].constant]
    numbers = [j for j in varied if features[j].kind == "numeric"]
    [first, *further] = context
    if numbers and not further and features[first].kind == "numeric" and not features[first].unit:
        groups = names_of_groups(rows, n_rows, first, numbers, features, MAX_CATEGORIES)
        if groups:
            name = features[first].name
            warnings.warn(
                f"context={name!r}: its {len(groups):,} whole numbers are used as names of groups, "
                "because rows with the same number are alike, and rows with neighbouring numbers "
                "are not: give it as a column of texts or categories to confirm this",
                UserWarning,
                stacklevel=6,
            )
            features = (
                *features[:first],
                Feature.categorical(name, groups),
                *features[first + 1 :],
            )
            schema = replace(schema, features=features)
    added, feature = None, features[first]
    if further or feature.kind == "numeric":
        added = learned_differences(rows, n_rows, context, numbers, features) if numbers else None
    elif n_rows <= FEW_ROWS * len(feature.categories) and not feature.cyclic:
        added = differences_in_groups(rows, n_rows, first, varied, features)
    return schema if added is None else schema.with_differences(added)


def _check_contexts(schema: Schema, names: Sequence[str], n_rows: int, counted: Sketch) -> None:
    for feature, missing in zip(schema.features, counted.tally[:, 0].tolist(), strict=True):
        n = len(feature.categories) if feature.name in names else 0
        if n == 1 and not missing:
            raise only_one_value([feature.name])
        if n * _ROWS_OF_CONTEXT > n_rows:
            raise UsageError(
                f"context={feature.name!r} has {n:,} different values in {n_rows:,} rows: a row is "
                "compared with the other rows of its context, and most would have none; name a "
                "column with fewer values"
            )


class SampledDetector(TableDetector):
    """A detector whose tables each count a random sample of the rows (paper, Algorithm 1)."""

    def __init__(
        self,
        *,
        n_tables: int = 100,
        max_samples: int = 1000,
        contamination: str | float = "auto",
        n_jobs: int | None = None,
        random_state: object = None,
    ) -> None:
        self.n_tables = n_tables
        self.max_samples = max_samples
        self.contamination = contamination
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(  # type: ignore[override] # takes no weights
        self,
        X: object,
        y: object = None,
        *,
        person: str | None = None,
        rows_per_person: int = 1,
        schema: Schema | None = None,
    ) -> Self:
        """Read ranges off the rows, draw the plan, count a sample in each table.

        Parameters
        ----------
        [rows to fit]
        [persons and schema]

        Raises
        ------
        DataError
            If there are fewer than 2 rows, or a column cannot be used; the message names it.
        """
        rows = self._of_persons(X, person, rows_per_person, None)
        return self._fit(rows, None, schema=schema)

    def _drawn_by(
        self, schema: Schema, reader: Reader, weights: Weights | None, n_rows: int
    ) -> dict[str, Any]:
        return {"max_samples": min(whole("max_samples", self.max_samples), n_rows)}

    def _sketch(
        self, plan: Plan, reader: Reader, weights: Weights | None, *, all_rows: bool = False
    ) -> Sketch:
        return count_here(
            plan,
            reader,
            max_samples=self.max_samples,
            # The seed of the plan's functions, which others see, must not draw the sample as well.
            random_state=None if self.random_state is None else self._rng,
            n_jobs=self.n_jobs,
        )


class LSHiTables(SampledDetector):
    """LSH iTables (Li and Pham): hash tables over random-feature LSH, faithful to the paper.

    Each of m tables concatenates l hash functions (Definition 3) and counts a random sample
    of s rows in 2**l cells (Algorithm 1); a row's score is the mean over the tables of
    log2(max(count, 1)) (Algorithm 2). Choices that the paper leaves open are made so that its
    results are reproduced: the range of a feature is its minimum and maximum over all rows, l is
    rounded to nearest, features are drawn with replacement, and there is no normalisation.

    Parameters
    ----------
    [sample]
        It also sets the depths: l ~ U(1 + 0.5 log_b(s), log_b(s)) with b = max(2, 1/f) and
        f ~ U(1/sqrt(s), 1 - 1/sqrt(s)) (section 3.3, Parameter settings).
    [shared parameters]
    random_state : int, RandomState or Generator, optional
        Seed of the hash functions and of the samples.

    Attributes
    ----------
    [attributes]

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import LSHiTables
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> X[0] = 8.0
    >>> detector = LSHiTables(random_state=0).fit(X)
    >>> int(detector.score_samples(X).argmin())
    0
    """

    _detector: ClassVar[str] = "lsh_itables"
