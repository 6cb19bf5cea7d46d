"""The plan: schema, drawn hash functions and score rule. Immutable, named by its content."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hushtable.arguments import generator, whole
from hushtable.data.schema import Schema
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.plans import histograms
from hushtable.plans.counted import Counted
from hushtable.plans.draws import DRAWS, Draw, Marginals, Purpose, draw_of
from hushtable.plans.families import EquiWidth, Labelled, labelled
from hushtable.plans.second import TwoPassPlan
from hushtable.plans.verdicts import check_enough, check_takes_verdicts
from hushtable.privacy.horizon import Horizon
from hushtable.privacy.layout import Design


@dataclass(frozen=True, eq=False)
class Plan(TwoPassPlan):
    """The plan that all sites share: their hash functions, and how counts become scores.

    Make one with `Plan.draw` or `Plan.marginals`. Two sketches add only if their plans have
    the same `plan_id`.

    Attributes
    ----------
    schema : Schema
        The features, with their ranges and categories.
    family : HashFamily
        The drawn hash functions.
    score : ScoreRule
        How the count of a cell becomes a score.
    detector : str
        Which detector's draw this is, as `draw` names them; ``"marginals"`` and
        ``"ranges"`` for the histograms of a first round, ``"gate"`` and ``"ranks"`` for those of
        scores.
    data_dependent : bool
        Whether ranges, cuts or weights were read off raw data, so that the plan itself discloses
        something about rows. A plan from a public schema, or from private releases, is not.
    first_counts : ndarray of shape (n_cells,), int64, or None
        In a plan of the second pass: the merged counts of the first.
    gate_cell : int or None
        In a plan of the second pass: the cell of the gate's histogram from which on a row counts;
        None for the mean, as version 0.1 had it.
    first_noise_sd : float or None
        In a plan of the second pass that follows from releases: the standard deviation of the
        noise on ``first_counts``.
    behind : tuple of Spent
        Private releases that the plan was drawn from: what they cost counts in every release
        under it.
    design : Design or None
        The public numbers that a private plan was laid out for; says what accuracy to expect.
    hidden : bool
        Whether only the sites may know the hash functions: whatever is saved with them, its
        owner alone may read. It is no part of the plan's id.

    Examples
    --------
    >>> from hushtable import Feature, Plan, Schema
    >>> schema = Schema([Feature.numeric("age", low=0, high=120)])
    >>> plan = Plan.draw(schema, n_tables=3, random_state=0)
    >>> plan
    Plan('hushtable', 1 features, 3 tables, 768 cells, plan_id='...')
    >>> plan.data_dependent
    False
    """

    @classmethod
    def draw(
        cls,
        schema: Schema,
        *,
        detector: str = "hushtable",
        marginals: Counted | None = None,
        rng: int | np.random.Generator | None = None,
        random_state: int | np.random.Generator | None = None,
        epsilon: float | None = None,
        delta: float = 1e-6,
        expected_rows: int | None = None,
        sites: int = 1,
        passes: int = 1,
        horizon: Horizon | int | None = None,
        **parameters: Any,
    ) -> "Plan":
        """Draw the hash functions of a detector.

        Parameters
        ----------
        schema : Schema
            The features. With a public schema and no marginals, the plan does not depend on
            any data.
        detector : {"ace", "hushtable", "lsh_itables", "rotated_rs_hash", "rs_hash"}
            Which detector's tables to draw.
        marginals : Sketch or Release, optional
            Merged counts under ``Plan.marginals(schema)``; refines the cuts and the weights
            of the features (``"hushtable"`` only). A plan drawn from a `Release` may be
            released under; one drawn from exact counts may not.
        rng, random_state : int or numpy Generator, optional
            Seed of the hash functions (PCG64; its uniform doubles); None takes fresh entropy. Give
            one: ``rng`` in new code, ``random_state`` is the same under scikit-learn's name.
        epsilon, delta : float, optional
            Lay the tables out for counts that will be released at this total budget of one
            person, all rounds together (``"hushtable"`` only): depths and numbers of tables
            follow from it and from ``expected_rows``; ``plan.design.words()`` says what
            accuracy to expect.
        expected_rows : int, optional
            Public guess of the rows of all sites together; needed with ``epsilon``. It is not
            read off the data.
        sites : int, default=1
            Releases that will be added, each with the whole noise; 1 where sites share the noise.
        passes : {1, 2}, default=1
            With ``epsilon``: 2 leaves budget for a gate and a second pass, in which the first
            takes half of what marginals leave (see `gate` and `second_pass`). Exact counts need
            nothing for them.
        horizon : Horizon or int, optional
            With ``epsilon``: the periods in which rows come, or how many there are, at one total
            budget for all (see `hushtable.Periods`). Then ``expected_rows`` are those of all.
        **parameters
            ``n_tables`` for all; ``n_bits`` for ``"ace"``; ``n_cells``, ``min_depth``,
            ``max_depth``, ``novelty`` and ``tails`` for ``"hushtable"``; ``max_samples``, which
            sets the depths, for the others. ``novelty=True`` draws deep tables for rows that are
            known to be clean (see `HushTable`); ``tails=False`` draws as version 0.1 did.

        Returns
        -------
        Plan

        Raises
        ------
        UsageError
            If the detector or a parameter is unknown or out of range, or both seeds are given.
        PlanError
            If the marginals were counted under another schema.
        PrivacyError
            If epsilon or delta do not protect, the marginals of a private plan are exact, or
            there would be too few rows for a private second pass to pay.
        """
        chosen = draw_of(detector)
        design = Design.given(epsilon, delta, expected_rows, sites, passes, horizon)
        if passes == 2 and parameters.get("novelty"):
            raise UsageError(
                "passes=2 with novelty=True: clean rows are all to be counted, and a second pass "
                "would leave some of them out, which loses accuracy: draw it with one pass"
            )
        laid_out = {} if design is None else design.parameters()
        if not set(laid_out) <= set(chosen.parameters):
            raise UsageError(f"detector {detector!r} has one layout: leave epsilon out")
        parameters, behind = laid_out | parameters, {spent.release: spent for spent in schema.paid}
        if marginals is not None:
            parameters["marginals"] = cls._checked_marginals(chosen, schema, marginals, design)
            behind |= {spent.release: spent for spent in marginals.spent()}
        raw = marginals is not None and not marginals.may_leave
        return cls(
            schema,
            chosen.draw(schema, generator(random_state, rng), **parameters),
            chosen.score_for(parameters),
            detector,
            data_dependent=not schema.public or raw,
            behind=tuple(behind.values()),
            design=design,
        )

    @classmethod
    def _checked_marginals(
        cls, chosen: Draw, schema: Schema, counts: Counted, design: Design | None
    ) -> Marginals:
        """Return the marginals for a draw; raises if it may not, or cannot, use these counts."""
        if "marginals" not in chosen.parameters:
            raise UsageError(f"detector {chosen.name!r} takes no marginals: leave them out")
        source = counts.plan
        if source.purpose is not Purpose.MARGINALS or source.schema != schema:
            raise PlanError(
                "the marginals were counted under another plan: "
                + cls.marginals(schema).difference(source)
            )
        if not counts.may_leave and design is not None:
            raise PrivacyError(
                "these marginals are exact counts, and a private plan must not depend on "
                "them: release them first, sketch.release(epsilon=...)"
            )
        return Marginals(counts.counts, source.family.offsets, counts.noise_sd)

    @classmethod
    def marginals(
        cls,
        schema: Schema,
        *,
        epsilon: float | None = None,
        delta: float = 1e-6,
        expected_rows: int | None = None,
        sites: int = 1,
        passes: int = 1,
    ) -> "Plan":
        """Make the plan of an optional first round, which refines the next: a histogram a feature.

        Parameters
        ----------
        schema : Schema
            The features.
        epsilon, delta, expected_rows, sites, passes
            As in `draw`, the same numbers: the budget of all rounds together, of which
            `Sketch.release` gives a tenth to the marginals.

        Raises
        ------
        PrivacyError
            If there would be too few rows for private marginals to pay: draw in one round. Or for
            a private second pass.
        """
        design = Design.given(epsilon, delta, expected_rows, sites, passes)
        bins = histograms.marginal_bins(schema, design)
        return cls._histograms(schema, bins, "marginals", design)

    @classmethod
    def ranges(
        cls,
        schema: Schema,
        *,
        epsilon: float,
        delta: float = 1e-6,
        expected_rows: int,
        sites: int = 1,
    ) -> "Plan":
        """Make the plan of an optional round before all others, which narrows loose ranges.

        ``Sketch.from_data(plan, X).release(epsilon).ranges()`` is the schema with narrower
        ranges. It takes a twentieth of the budget, and pays where public ranges are more than
        about four times as wide as the data, and rows are many.

        Parameters
        ----------
        schema : Schema
            The features, with ranges that are public but loose.
        epsilon, delta, expected_rows, sites
            As in `draw`.

        Raises
        ------
        PrivacyError
            If there would be too few rows to find a range under the noise.
        """
        design = Design.given(epsilon, delta, expected_rows, sites)
        return cls._histograms(schema, histograms.range_bins(schema, design), "ranges", design)

    @classmethod
    def ranks(cls, model: Counted) -> "Plan":
        """Make the plan of an optional last round, which gives rows ranks: a histogram of scores.

        A row counts in the cell of the score that the model gives it. By the sum over the sites,
        `hushtable.scores.ranks.Ranks` ranks a row among the rows of all sites.

        Parameters
        ----------
        model : Sketch or Release
            The merged counts that rows are scored by. Of a `Release`, what it cost counts in
            every release under the plan. Of a `Sketch`, the plan holds its exact scores: it is
            as private as the sketch is, and nothing can be released under it.

        Raises
        ------
        UsageError
            If the counts are of histograms that do not score.
        """
        return cls(
            model.plan.schema,
            histograms.score_histogram(model),
            DRAWS["ranks"].score,
            "ranks",
            data_dependent=model.plan.data_dependent or not model.may_leave,
            behind=model.spent(),
            hidden=model.plan.hidden,
        )

    @classmethod
    def verdicts(cls, model: Counted, expected: int) -> "Plan":
        """Make the plan of a round in which sites learn from each other's verdicts.

        Rows with a column ``"verdict"`` count by its sign; `learn_from` takes the release.

        Parameters
        ----------
        model : Sketch or Release
            Counts that rows are scored by. Of a `Release`, what it cost counts in every release
            under the plan.
        expected : int
            Public guess of the verdicts of all sites together; noise drowns fewer than 100.

        Raises
        ------
        UsageError, PrivacyError
            If verdicts cannot change these scores, or noise would drown so few of them.
        """
        check_enough(whole("expected", expected))
        tables = model.plan.first_pass()
        check_takes_verdicts(tables)
        schema = labelled(tables.schema)
        return cls(
            schema,
            Labelled(schema, tables.family),
            DRAWS["verdicts"].score,
            "verdicts",
            data_dependent=model.plan.data_dependent,
            behind=model.spent(),
            hidden=model.plan.hidden,
        )

    @classmethod
    def _histograms(cls, schema: Schema, bins: int, name: str, design: Design | None) -> "Plan":
        return cls(
            schema,
            EquiWidth(schema, bins),
            DRAWS[name].score,
            name,
            data_dependent=not schema.public,
            behind=schema.paid,
            design=design,
        )

    def __repr__(self) -> str:
        return (
            f"Plan({self.detector!r}, {len(self.schema)} features, {self.family.n_tables} tables, "
            f"{self.family.n_cells} cells, plan_id={self.plan_id[:12]!r})"
        )
