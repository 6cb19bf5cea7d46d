"""A window that slides: rows come in by addition, and leave by subtraction, exactly."""

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.arguments import whole
from hushtable.counts.sketch import Sketch
from hushtable.plans.plan import Plan
from hushtable.scores.scorer import Scorer
from hushtable.streams._drift import Drift, drift


class SlidingWindow:
    """Scores rows against the newest panes of a stream.

    A pane holds the rows of one stretch of time, such as an hour; the window, the last
    ``n_panes`` of them. Its counts are at any time, to the bit, those of its rows counted
    afresh. Beginning a pane costs one subtraction of counts, however many rows and panes the
    window holds.

    Parameters
    ----------
    plan : Plan
        What rows are counted under; it stays as it is. `Plan.draw` makes one of a schema, and
        ``HushTable().fit(X).plan_`` one of rows.
    n_panes : int
        Panes of the window, the newest one included.
    n_jobs : int, optional
        Threads; None is one, -1 every core.

    Attributes
    ----------
    sketch : Sketch
        Counts of all rows in the window; `HushTable.from_counts` makes a detector of them.
    panes : list of Sketch
        Counts of each pane, oldest first.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import Feature, Plan, Schema, SlidingWindow
    >>> plan = Plan.draw(Schema([Feature.numeric("load", low=0, high=100)]), random_state=0)
    >>> window = SlidingWindow(plan, n_panes=24)
    >>> for hour in range(48):
    ...     rows = np.random.default_rng(hour).normal(50, 5, (200, 1))
    ...     window = window.roll().add(rows)
    >>> window.sketch.n_rows
    4800
    """

    def __init__(self, plan: Plan, n_panes: int, *, n_jobs: int | None = None) -> None:
        whole("n_panes", n_panes)
        self.plan, self.n_panes, self.n_jobs = plan, int(n_panes), n_jobs
        self.sketch = Sketch.zero(plan)
        self._panes: deque[Sketch] = deque([self.sketch])
        self._scorer: Scorer | None = None

    @property
    def panes(self) -> list[Sketch]:
        """Counts of each pane, oldest first."""
        return list(self._panes)

    def add(self, X: Any) -> "SlidingWindow":
        """Count rows into the newest pane.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, as `Sketch.from_data` takes them.

        Returns
        -------
        self
        """
        new = Sketch.from_data(self.plan, X, n_jobs=self.n_jobs)
        self._panes[-1] = self._panes[-1] + new
        self.sketch = self.sketch + new
        self._scorer = None
        return self

    def roll(self) -> "SlidingWindow":
        """Begin a new pane; where there are more than ``n_panes``, forget the oldest.

        Returns
        -------
        self
        """
        self._panes.append(Sketch.zero(self.plan))
        if len(self._panes) > self.n_panes:
            self.sketch = self.sketch - self._panes.popleft()
            self._scorer = None
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Score rows against the window, which they need not be in.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows.

        Returns
        -------
        ndarray of shape (n,), float64
            In the plan's unit (bits); low = abnormal.

        Raises
        ------
        UsageError
            If the window holds no row.
        """
        if self._scorer is None:
            self._scorer = Scorer(self.sketch)
        return self._scorer.score(X, n_jobs=self.n_jobs)

    def drift(self) -> Drift:
        """Compare the newest pane with all others in the window; see `hushtable.drift`."""
        newest = self._panes[-1]
        return drift(self.sketch - newest, newest)
