"""The second pass: from counts of all rows to the plan that counts the dense ones again."""

from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.plans.content import PlanContent
from hushtable.plans.counted import Counted
from hushtable.plans.draws import DRAWS, NOVELTY, Purpose
from hushtable.plans.families import ScoreHistogram
from hushtable.plans.gate import (
    SECOND_PASS,
    Gate,
    gate_by_cell,
    gate_by_mean,
    gate_histogram,
    noised_gate_histogram,
    noised_otsu_cell,
    otsu_cell,
)


class TwoPassPlan(PlanContent):
    """The passes of a plan; `hushtable.Plan` makes plans."""

    @classmethod
    def gate(cls, first: Counted) -> Self:
        """Make the plan of the round between two passes: a histogram of how dense rows lie.

        A row counts in the cell of its mean log2(C1 + 1) over half of the tables, C1 being the
        counts of the first pass; or, where they were released, in that of its score. The merged
        counts of all sites say which rows the second pass counts: see `second_pass`.

        Parameters
        ----------
        first : Sketch or Release
            Merged counts of all rows. Of a `Release`, what it cost counts in every release under
            the plan. Of a `Sketch`, nothing can be released under the plan.

        Raises
        ------
        UsageError, PlanError
            If no second pass can follow: the counts do not score, hold no rows, are of a second
            pass already, or of a plan for novelty detection.
        PrivacyError
            If they are a local model.
        """
        _check_first(first)
        plan = first.plan
        private = first.ledger is not None
        return cls(
            plan.schema,
            _histogram(plan, first.counts, first.noise_sd),
            DRAWS["gate"].score,
            "gate",
            data_dependent=plan.data_dependent or not private,
            behind=first.spent(),
            design=plan.design if private else None,
            hidden=plan.hidden,
        )

    def second_pass(self, first: Counted, gate: Counted | None = None) -> Self:
        """Return the plan that counts again, only the rows that lie dense.

        Rows that lie apart are left out of its counts, so that they do not hide each other; a row
        scores by the counts of both passes.

        Parameters
        ----------
        first : Sketch or Release
            Merged counts of all rows under this plan.
        gate : Sketch or Release, optional
            Merged counts under ``Plan.gate(first)``, exact if the first are, else released. Otsu's
            method splits them in two classes, of which the denser is counted. Without, rows are
            counted whose mean log2(C1 + 1) is at least the mean over all rows, as in version 0.1;
            the counts must be exact.

        Returns
        -------
        Plan
            With the same tables. Drawn from releases, it has them behind it: what they cost
            counts in every release under it.

        Raises
        ------
        PlanError
            If the first counts, or the gate's, are of another plan.
        UsageError, PrivacyError
            As `gate` does; or if only one of the two was released.
        """
        if first.plan.plan_id != self.plan_id:
            raise PlanError(f"the first pass has another plan: {self.difference(first.plan)}")
        _check_first(first)
        if gate is None:
            if first.ledger is not None:
                raise UsageError(
                    "a second pass without a gate needs exact counts of the first, not a release: "
                    "count and release under Plan.gate of it first"
                )
            return replace(self, first_counts=first.counts, data_dependent=True)
        needed = type(self).gate(first)
        if gate.plan.plan_id != needed.plan_id:
            raise PlanError(
                "the gate was counted under another plan than Plan.gate of these first counts: "
                + needed.difference(gate.plan)
            )
        if first.ledger is not None:
            return self._gated_by_releases(first, gate)
        if gate.ledger is not None:
            raise UsageError("the first counts are exact, the gate's have noise: give exact ones")
        if not gate.counts.any():
            raise UsageError("no rows were counted for the gate: add the sites' counts first")
        return self.gated(first, otsu_cell(gate.counts))

    def gated(self, first: Counted, cell: int) -> Self:
        """Return the plan of the second pass by a cell of the gate's histogram of exact counts."""
        score = SECOND_PASS if self.score.name == SECOND_PASS.name else self.score
        return replace(
            self, first_counts=first.counts, gate_cell=cell, score=score, data_dependent=True
        )

    def _gated_by_releases(self, first: Counted, gate: Counted) -> Self:
        if not gate.may_leave:
            raise PrivacyError(
                "the first counts are a release, and the gate's are exact, on which the second "
                "pass must not depend: release them too, sketch.release(epsilon=...)"
            )
        plan = replace(
            self,
            first_counts=first.counts,
            first_noise_sd=first.noise_sd,
            gate_cell=0,
            behind=tuple({one.release: one for one in gate.spent()}.values()),
        )
        return replace(plan, gate_cell=noised_otsu_cell(gate.counts, plan.first_rows))

    def first_pass(self) -> Self:
        """Return the plan of all rows, of which this one is the second pass."""
        if self.first_counts is None:
            return self
        score = self.score if self.gate_cell is None else DRAWS[self.detector].score
        return replace(self, first_counts=None, first_noise_sd=None, gate_cell=None, score=score)

    def dense_rows(self) -> Gate | None:
        """Return what says of each row of a batch whether this pass counts it; None is all."""
        if self.first_counts is None:
            return None
        if self.gate_cell is None:
            return gate_by_mean(self.family, self.first_counts, self.first_rows)
        histogram = _histogram(self, self.first_counts, self.first_noise_sd or 0.0)
        return gate_by_cell(histogram, self.gate_cell)

    def cell_scores(self, counts: NDArray[np.int64], noise_sd: float = 0.0) -> NDArray[np.float64]:
        """Return the score of every cell, in bits, given the merged counts.

        Parameters
        ----------
        counts : ndarray of shape (n_cells,), int64
            Merged counts.
        noise_sd : float
            Standard deviation of the noise on each of them; 0 for exact counts.
        """
        if self.purpose is Purpose.VERDICTS:
            raise UsageError(
                "counts of verdicts do not score rows: they change the scores of a model "
                "(detector.learn_from, hushtable learn)"
            )
        first = self.first_counts
        if first is not None and self.first_noise_sd is not None:
            return self.score.noisy_values(first, self.first_noise_sd) + self._values(
                counts, noise_sd
            )
        if first is not None and noise_sd == 0.0:
            return self.score.two_pass_values(first, counts, self.first_rows)
        return self._values(counts, noise_sd)

    def score_words(self, noise_sd: float = 0.0) -> str:
        """Say in a sentence what a difference between two scores stands for."""
        if self.score.unit == "rows":
            return "Low is unusual: it is the mean number of rows in the cells of the row."
        first = self.first_counts is not None and (self.first_noise_sd is not None or not noise_sd)
        most = "two bits: the model counts rows in two passes" if first else "one bit"
        return (
            "Low is unusual. If half as many rows were like a row, its score would be lower by at "
            f"most {most}."
        )

    def _values(self, counts: NDArray[np.int64], noise_sd: float) -> NDArray[np.float64]:
        """Return the score of every cell by one vector of counts."""
        if noise_sd > 0.0:
            return self.score.noisy_values(counts, noise_sd)
        n_rows = self.rows_counted(counts)
        if n_rows == 0:
            raise UsageError("no rows were counted: add sketches of data before scoring")
        return self.score.values(counts, n_rows)


def _histogram(plan: PlanContent, first: NDArray[np.int64], noise_sd: float) -> ScoreHistogram:
    """Return the histogram that the gate after these counts of all rows is found by."""
    if noise_sd == 0.0:
        return gate_histogram(plan.family, first)
    return noised_gate_histogram(plan.family, plan.score.noisy_values(first, noise_sd))


def _check_first(first: Counted) -> None:
    """Raise an error if no second pass can follow these counts."""
    plan = first.plan
    if first.ledger is not None and not first.may_leave:
        raise PrivacyError(
            "a local model holds exact counts of its site, on which no shared plan may depend: "
            "give the release that it was made from"
        )
    if plan.first_counts is not None:
        raise UsageError("this plan is of the second pass already: a third gains nothing")
    if plan.horizon is not None:
        raise UsageError(
            f"no second pass follows a plan for {plan.horizon.periods} periods: it would count the "
            "rows of all of them again, and their budget is spent"
        )
    if not plan.purpose.scores_rows:
        raise UsageError(f"counts of a {plan.detector!r} plan do not score rows: no second pass")
    if plan.score == NOVELTY:
        raise UsageError(
            "this plan is for novelty detection: its rows are clean, and a second pass would leave "
            "some of them out, which loses accuracy"
        )
    if first.ledger is None and plan.rows_counted(first.counts) == 0:
        raise PlanError("the first pass counted no rows: add the sites' counts first")
