"""The plan: schema, drawn hash functions and score rule. Immutable, identified by its content."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Protocol, Self

import numpy as np
import rfc8785
from numpy.typing import NDArray

from hushtable import files
from hushtable.arguments import JsonObject, entries, generator
from hushtable.data.encoding import Codes
from hushtable.data.schema import Schema
from hushtable.data.texts.reading import Reading
from hushtable.errors import NO_HIDDEN, PlanError, PrivacyError, UsageError
from hushtable.plans.draws import DRAWS, Draw, Purpose, draw_of, purpose_of
from hushtable.plans.families import Contextual, EquiWidth, HashFamily, family_from_content
from hushtable.plans.families.histograms import GATE_BINS, PRIVATE_GATE_BINS, gate_histogram
from hushtable.plans.profile import MARGINAL_BINS, Marginals
from hushtable.plans.score_rule import ScoreRule
from hushtable.privacy.accounting import Horizon
from hushtable.privacy.budget import Spent
from hushtable.privacy.layout import Design


class PlanCounts(Protocol):
    """Counts of any kind under a plan; `hushtable.counts.base.Counts` describes them."""

    @property
    def plan(self) -> "Plan": ...  # noqa: D102
    @property
    def counts(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def noise_sd(self) -> float: ...  # noqa: D102
    @property
    def may_leave(self) -> bool: ...  # noqa: D102

    def spent(self) -> tuple[Spent, ...]:
        """Return the earlier releases on which a plan drawn from these counts depends."""


_NEEDED = {"detector": str, "data_dependent": bool, "schema": dict, "family": dict, "score": dict}
_OPTIONAL = {"behind": list, "design": dict, "gate_cell": int, "first_noise_sd": float}


@dataclass(frozen=True, eq=False)
class Plan:
    """The plan that all sites share: the hash functions, and how counts become scores.

    Make one with `Plan.draw` or `Plan.marginals`, and from counts with the functions of
    `hushtable.counts.rounds`. Two sketches add only if their plans have
    the same `plan_id`; such plans are equal.

    Attributes
    ----------
    schema : Schema
        The features, with their ranges and categories.
    family : HashFamily
        The drawn hash functions.
    score : ScoreRule
        How the count of a cell becomes a score.
    detector : str
        The detector whose draw this is, by its name in `draw`; ``"marginals"`` and
        ``"ranges"`` for the histograms of a first round, ``"gate"`` and ``"ranks"`` for those of
        scores.
    data_dependent : bool
        Whether ranges, cuts or weights were read off raw data, so that the plan itself discloses
        something about rows. False for a plan from a public schema, or from private releases.
    first_counts : ndarray of shape (n_cells,), int64, or None
        In a plan of the second pass: the merged counts of the first pass.
    gate_cell : int or None
        In a plan of the second pass: the cell of the gate's histogram from which on a row counts;
        None in a plan of version 0.1, which scores rows, but counts no more of them.
    first_noise_sd : float or None
        In a plan of the second pass that follows from releases: the standard deviation of the
        noise on ``first_counts``.
    behind : tuple of Spent
        Private releases from which the plan was drawn. Their cost counts in every release under
        the plan.
    design : Design or None
        The public numbers for which a private plan was laid out; it states the expected accuracy.

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

    schema: Schema
    family: HashFamily
    score: ScoreRule
    detector: str
    data_dependent: bool
    first_counts: NDArray[np.int64] | None = None
    gate_cell: int | None = None
    behind: tuple[Spent, ...] = ()
    design: Design | None = None
    first_noise_sd: float | None = None

    def __post_init__(self) -> None:
        purpose_of(self.detector, self.family)
        if not set(self.schema.paid) <= set(self.behind):
            raise PlanError("the plan leaves out releases from which its ranges were read")
        first, gate, noise = self.first_counts, self.gate_cell, self.first_noise_sd
        bins = GATE_BINS if noise is None else PRIVATE_GATE_BINS
        if gate is not None and (first is None or not 0 <= gate < bins):
            raise PlanError(
                f"gate_cell={gate!r}: needs counts of a first pass, and 0 to {bins - 1}"
            )
        if noise is not None and (gate is None or not 1e-6 <= noise < np.inf):
            raise PlanError(  # like ledgers' scales
                f"first_noise_sd={noise!r}: needs counts of a first pass, a gate, and a number "
                "of 1e-6 or more"
            )
        needed = {self.detector, Purpose.GATE.value}
        if noise is not None and not needed <= {spent.what for spent in self.behind}:
            raise PlanError("the plan leaves out the releases from which its second pass follows")
        if first is None:
            return
        fits = first.dtype == np.int64 and first.shape == (self.family.n_cells,)
        if not fits or (noise is None and first.min() < 0):
            raise PlanError("the first pass's counts do not fit the plan's tables")
        if self.first_rows == 0:
            raise PlanError("the first pass counted no rows: needs one or more")
        if noise is None and not self.data_dependent:
            raise PlanError(
                "the plan holds exact counts of a first pass, but states that it depends on no data"
            )
        first = first.copy()
        first.setflags(write=False)
        object.__setattr__(self, "first_counts", first)

    @property
    def purpose(self) -> Purpose:
        """The use of the counts: to score rows, or as marginals, ranges or ranks."""
        return purpose_of(self.detector)

    @property
    def share_of_budget(self) -> float | None:
        """Default share of the budget for a release; None means all that is left.

        A gate, and the first of two passes, share what the rounds before the tables leave.
        """
        twice = self.design is not None and self.design.passes == 2
        before = {purpose_of(spent.what) for spent in self.behind}
        return self.purpose.share(before, first_of_two=twice and self.first_counts is None)

    @property
    def expected_rows(self) -> int | None:
        """Public number of rows for which the plan was laid out; None if it was not."""
        return None if self.design is None else int(self.design.expected_rows)

    @property
    def horizon(self) -> Horizon | None:
        """The periods in which rows arrive, for releases by period; None for other plans."""
        return None if self.design is None else self.design.horizon

    @property
    def context(self) -> list[str]:
        """Names of the columns that define what a row is compared with; usually none."""
        if not isinstance(self.family, Contextual):
            return []
        return [self.schema.names[j] for j in self.family.context_features]

    @property
    def first_rows(self) -> int:
        """Rows that the first pass counted; for noisy counts an estimate of 1 or more."""
        if self.first_counts is None:
            return 0
        if self.first_noise_sd is None:
            return self.rows_counted(self.first_counts)
        total = float(self.first_counts.sum(dtype=np.float64))
        return max(1, round(total / self.family.n_histograms))

    def rows_counted(self, counts: NDArray[np.int64]) -> int:
        """Return how many rows a vector of counts holds (by its first table)."""
        return int(counts[: self.family.offsets[1]].sum())

    def __repr__(self) -> str:
        return (
            f"Plan({self.detector!r}, {len(self.schema)} features, {self.family.n_tables} tables, "
            f"{self.family.n_cells} cells, plan_id={self.plan_id[:12]!r})"
        )

    # --- drawing ----------------------------------------------------------------------------------

    @classmethod
    def draw(
        cls,
        schema: Schema,
        *,
        detector: str = "hushtable",
        marginals: PlanCounts | None = None,
        random_state: "int | np.random.Generator | None" = None,
        epsilon: float | None = None,
        delta: float = 1e-6,
        expected_rows: int | None = None,
        sites: int = 1,
        passes: int = 1,
        horizon: Horizon | int | None = None,
        **parameters: object,
    ) -> Self:
        """Draw the hash functions of a detector.

        Parameters
        ----------
        schema : Schema
            The features. With a public schema and no marginals, the plan does not depend on
            any data.
        detector : {"hushtable", "lsh_itables"} or the name of another package's draw
            Which detector's tables to draw. The package hushtable-bench adds ``"ace"``,
            ``"rs_hash"`` and ``"rotated_rs_hash"``.
        marginals : Sketch or Release, optional
            Merged counts under ``Plan.marginals(schema)``; they refine the cuts and weights of the
            features (``"hushtable"`` only). Counts may be released under a plan drawn from a
            `Release`, but not under one drawn from exact counts.
        random_state : int or numpy Generator, optional
            Seed of the hash functions (PCG64; its uniform doubles); None takes fresh entropy.
        epsilon, delta : float, optional
            Lay the tables out for counts that will be released at this total budget of one
            person, over all rounds (``"hushtable"`` only): depths and numbers of tables follow
            from it and from ``expected_rows``; ``plan.design.words()`` states the expected
            accuracy.
        expected_rows : int, optional
            Public guess of the number of rows of all sites together; needed with ``epsilon``. It
            is not read off the data.
        sites : int, default=1
            Releases that will be added, each with the full noise; 1 if the sites share the noise.
        passes : {1, 2}, default=1
            With ``epsilon``: 2 leaves budget for a gate and a second pass. The first pass then
            takes half of what the marginals leave (see `hushtable.counts.rounds`). Exact counts
            need no budget for them.
        horizon : Horizon or int, optional
            With ``epsilon``: the periods in which rows arrive, or their number, with one total
            budget for all (see `hushtable.Periods`). ``expected_rows`` then covers all periods.
        **parameters
            ``n_tables`` for all detectors; ``n_cells``, ``min_depth``, ``max_depth``, ``novelty``,
            ``tails`` and ``context`` for ``"hushtable"``; ``max_samples``, which sets the depths,
            for ``"lsh_itables"``. ``novelty=True`` draws deep tables for rows that are known to be
            clean, ``context=["ward"]`` pairs of context and behaviour (see `HushTable`);
            ``tails=False`` draws like version 0.1.

        Returns
        -------
        Plan

        Raises
        ------
        UsageError
            If the detector or a parameter is unknown or out of range.
        PlanError
            If the marginals were counted under another schema.
        PrivacyError
            If epsilon or delta give no protection, the marginals of a private plan are exact, or
            there would be too few rows for a private second pass to be worthwhile.
        """
        chosen = draw_of(detector)
        design = Design.given(epsilon, delta, expected_rows, sites, passes, horizon)
        parameters = chosen.laid_out(design, parameters)
        behind = {spent.release: spent for spent in schema.paid}
        if marginals is not None:
            parameters["marginals"] = cls._checked_marginals(chosen, schema, marginals, design)
            behind |= {spent.release: spent for spent in marginals.spent()}
        raw = marginals is not None and not marginals.may_leave
        return cls(
            schema,
            chosen.draw(schema, generator(random_state), **parameters),
            chosen.score_for(parameters),
            detector,
            data_dependent=not schema.public or raw,
            behind=tuple(behind.values()),
            design=design,
        )

    @classmethod
    def _checked_marginals(
        cls, chosen: Draw, schema: Schema, counts: PlanCounts, design: Design | None
    ) -> Marginals:
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
        cells: int | None = None,
    ) -> Self:
        """Make the plan of an optional first round, which refines the next: one histogram each.

        Parameters
        ----------
        schema : Schema
            The features.
        epsilon, delta, expected_rows, sites, passes
            The same numbers as in `draw`: the budget of all rounds together. `Sketch.release`
            gives a tenth of it to the marginals.
        cells : int, optional
            Cells of a number's histogram, a power of two up to 256, if you want the histograms for
            their own sake; the default is what the next plan needs: 64, or 32 under noise.

        Raises
        ------
        PrivacyError
            If there would be too few rows for private marginals, or for a private second pass, to
            be worthwhile: draw the plan in one round instead.
        """
        design = Design.given(epsilon, delta, expected_rows, sites, passes)
        bins = cells
        if bins is None:
            bins = MARGINAL_BINS if design is None else design.marginal_bins(len(schema))
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
    ) -> Self:
        """Make the plan of an optional round before all others, which narrows loose ranges.

        ``Sketch.from_data(plan, X).release(epsilon).ranges()`` is the schema with narrower
        ranges. The round takes a twentieth of the budget. It is worthwhile if public ranges are
        more than about four times as wide as the data and there are many rows.

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
        if design is None:
            raise UsageError("epsilon=None: ranges are found by a private release: give a budget")
        return cls._histograms(schema, design.range_bins(len(schema)), "ranges", design)

    @classmethod
    def _histograms(cls, schema: Schema, bins: int, name: str, design: Design | None) -> Self:
        return cls(
            schema, EquiWidth(schema, bins), DRAWS[name].score, name,
            data_dependent=not schema.public, behind=schema.paid, design=design,
        )  # fmt: skip

    # --- the second pass --------------------------------------------------------------------------

    def first_pass(self) -> Self:
        """Return the plan that counts all rows and precedes this second pass."""
        if self.first_counts is None:
            return self
        score = self.score if self.gate_cell is None else DRAWS[self.detector].score
        return replace(self, first_counts=None, first_noise_sd=None, gate_cell=None, score=score)

    def dense_rows(self) -> Callable[[Codes], NDArray[np.bool_]] | None:
        """Return a function from codes to the rows that this pass counts; None selects all rows."""
        first, cell = self.first_counts, self.gate_cell
        if first is None:
            return None
        if cell is None:
            raise PlanError(
                "this plan is from version 0.1, and counts rows by their mean density, which this "
                "version no longer does: score with its model as it is; to count more rows, fit "
                "again, or draw a new plan"
            )
        noise_sd = self.first_noise_sd or 0.0
        histogram = gate_histogram(self.family, self.score, first, noise_sd)
        return lambda codes: histogram.cells_of(codes) >= cell

    def cell_scores(self, counts: NDArray[np.int64], noise_sd: float = 0.0) -> NDArray[np.float64]:
        """Return the score of every cell, in bits, given the merged counts.

        Parameters
        ----------
        counts : ndarray of shape (n_cells,), int64
            Merged counts.
        noise_sd : float
            Standard deviation of the noise on each of them; 0 for exact counts.
        """
        first = self.first_counts
        if first is not None and self.first_noise_sd is not None:
            before = self.score.noisy_values(first, self.first_noise_sd)
            return before + self._values(counts, noise_sd)
        if first is not None and noise_sd == 0.0:
            return self.score.two_pass_values(first, counts, self.first_rows)
        return self._values(counts, noise_sd)

    def score_words(self, noise_sd: float = 0.0) -> str:
        """Describe in a sentence what a difference between two scores means."""
        first = self.first_counts is not None and (self.first_noise_sd is not None or not noise_sd)
        return self.score.words(two_passes=first)

    def _values(self, counts: NDArray[np.int64], noise_sd: float) -> NDArray[np.float64]:
        n_rows = self.rows_counted(counts)
        if noise_sd == 0.0 and n_rows == 0:
            raise UsageError("no rows were counted: add sketches of data before scoring")
        if isinstance(self.family, Contextual):
            return self.family.cell_scores(self.score, counts, noise_sd)
        if noise_sd > 0.0:
            return self.score.noisy_values(counts, noise_sd)
        return self.score.values(counts, n_rows)

    # --- content and files ------------------------------------------------------------------------

    def to_dict(self) -> JsonObject:
        """Return the plan without its arrays, in the form stored in JSON."""
        return {
            "detector": self.detector,
            "data_dependent": self.data_dependent,
            "schema": self.schema.to_dict(),
            "family": {"name": self.family.name, **self.family.parameters()},
            "score": self.score.to_dict(),
            **({} if self.gate_cell is None else {"gate_cell": self.gate_cell}),
            **({} if self.first_noise_sd is None else {"first_noise_sd": self.first_noise_sd}),
            **({"behind": [spent.to_dict() for spent in self.behind]} if self.behind else {}),
            **({} if self.design is None else {"design": self.design.to_dict()}),
        }

    def arrays(self) -> files.Arrays:
        """Return the drawn arrays, and the counts of the first pass if there are any."""
        first = {} if self.first_counts is None else {"first_counts": self.first_counts}
        return {**self.family.arrays(), **first}

    @classmethod
    def from_content(
        cls, content: object, arrays: files.Arrays, columns: Mapping[str, object] | None = None
    ) -> Self:
        """Build the plan from `to_dict` and `arrays`; raise `PlanError` if they are wrong.

        ``columns`` are what `Schema.read_as` takes.
        """
        plan = entries(content, "a plan", _NEEDED, _OPTIONAL)
        schema = Schema.from_dict(plan["schema"]).read_as(columns or {})
        family, arrays = dict(plan["family"]), {**arrays}
        first, noise = arrays.pop("first_counts", None), plan.get("first_noise_sd")
        return cls(
            schema,
            family_from_content(family.pop("name", None), family, arrays, schema),
            ScoreRule.from_dict(plan["score"]),
            plan["detector"],
            plan["data_dependent"],
            first,
            plan.get("gate_cell"),
            tuple(Spent.from_dict(spent) for spent in plan.get("behind", ())),
            Design.from_dict(plan["design"]) if "design" in plan else None,
            first_noise_sd=None if noise is None else float(noise),
        )

    def entries(self) -> files.Part:
        """Return the plan's part of a file of any kind: manifest entries and arrays."""
        arrays = {f"plan.{name}": array for name, array in self.arrays().items()}
        return {"plan_id": self.plan_id, "plan": self.to_dict()}, arrays

    @classmethod
    def from_file(cls, file: files.Content) -> Self:
        """Build the plan of a file of any kind; raise `PlanError` if its parts do not fit."""
        if file.manifest.get("hidden", False):
            raise PlanError(NO_HIDDEN)
        arrays = {name[5:]: a for name, a in file.arrays.items() if name.startswith("plan.")}
        plan = cls.from_content(file.manifest.get("plan"), arrays, Reading.from_file(file).columns)
        if plan.plan_id != file.manifest.get("plan_id"):
            raise PlanError("the plan's content does not have the plan id that the file states")
        return plan

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the plan to a .hush file, atomically: the whole file or nothing."""
        files.write(path, "plan", *self.entries())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.plan_id == other.plan_id

    def __hash__(self) -> int:
        return hash(self.plan_id)

    @cached_property
    def plan_id(self) -> str:
        """SHA-256 of the plan's canonical content (RFC 8785) with the digests of its arrays."""
        described = self.to_dict() | {"arrays": files.array_digests(self.arrays())}
        return hashlib.sha256(rfc8785.dumps(described)).hexdigest()

    def difference(self, other: "Plan") -> str:
        """Describe in words how two plans differ."""
        parts, theirs = [], other.to_dict()
        for key, mine in self.to_dict().items():
            if mine == theirs.get(key):
                continue
            if key == "schema":
                parts.append(self.schema.difference(other.schema))
            elif key == "gate_cell":  # its position depends on rows
                parts.append("another gate of the second pass")
            else:
                parts.append(f"{key} {mine!r} against {theirs.get(key)!r}")
        if not parts and self.plan_id != other.plan_id:
            parts.append("same schema and settings, but different hash functions were drawn")
        return "; ".join(parts) or "nothing"
