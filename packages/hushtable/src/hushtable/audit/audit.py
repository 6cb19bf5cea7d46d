"""Audits: attack a release as an adversary would, and bound its epsilon from below.

A bound above the claimed epsilon proves the claim wrong, with the stated confidence. A bound
below proves nothing: the promise rests on the proof (``docs/privacy.md``), an audit finds the
mistakes in carrying it out.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable.arguments import generator
from hushtable.audit.bounds import (
    Claim,
    Finding,
    Floats,
    Ints,
    area,
    canary_bound,
    exact_cells,
    judge_ratios,
    least_epsilon,
)
from hushtable.audit.neighbours import apart, audit_neighbours
from hushtable.audit.residuals import Residuals, p_of_release
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.data.encoding import Encoder
from hushtable.data.schema import Feature
from hushtable.data.typed import open_rows
from hushtable.plans.plan import Plan
from hushtable.privacy.mechanisms import named
from hushtable.privacy.noise import add_noise

__all__ = [
    "Finding", "apart", "audit_canaries", "audit_neighbours", "audit_noise", "audit_replay",
]  # fmt: skip

# --- the likelihood ratio of one row's cells ----------------------------------------------------


def audit_noise(
    noise: Callable[[Ints], Ints] | None = None,
    *,
    mechanism: str,
    scale: float,
    tables: int,
    draws: int = 30_000,
    **claim: float,
) -> Finding:
    """Detect a row by the likelihood ratio of its m cells, through the real sampler.

    The adversary knows all other rows, so that only the m cells of the row in question depend
    on it. The best test looks at the likelihood ratio (Neyman and Pearson); a second one
    counts cells that hold the exact count, in case noise is missing. The threshold is chosen on
    one half of the draws and judged on the other by Clopper-Pearson intervals: epsilon is at
    least ln((true positives - delta) / false positives) (Jagielski, Ullman and Oprea, 2020).
    Gaussian noise is also held to what its own trade-off of errors allows, which takes far
    fewer draws: noise of a third of the scale is found in more than 999 of 1,000 audits of
    1,000 draws, at an epsilon of 1 and 95% confidence. And all cells of all draws together show
    whether the noise is as large as stated, and each cell's its own: see
    `hushtable.audit.residuals`.

    ``noise`` is to be audited: it takes counts (draws, m), int64, and returns them with noise; by
    default it is the sampler of every release. ``mechanism`` and ``scale`` are those that the
    release claims; ``tables`` is m; ``draws`` are releases of the m cells, with the row and
    without it, each; ``claim`` is as `Claim` takes it: epsilon, delta, confidence.
    """
    if noise is None:

        def noise(counts: Ints) -> Ints:
            return add_noise(counts.ravel(), mechanism, scale).reshape(counts.shape)

    cases = [noise(np.full((draws, tables), present, np.int64)) for present in (0, 1)]
    residuals = Residuals()
    for present, x in enumerate(cases):
        residuals.add(x - present, mechanism, scale)
    one = np.ones(tables, np.int64)
    ratios = [named(mechanism).log_ratio(scale, x, one).sum(axis=1) for x in cases]
    exact = [exact_cells(x, one).sum(axis=1) for x in cases]
    finding = judge_ratios(
        "likelihood ratio of one row's cells",
        [(ratios[0], ratios[1]), (exact[0], exact[1])],
        mechanism,
        one,
        **claim,
    )
    return replace(finding, p_noise=residuals.p_value())


# --- canaries in one release --------------------------------------------------------------------


def audit_canaries(
    release: Callable[[Sketch], Release],
    plan: Plan,
    *,
    canaries: int = 1000,
    rng: int | np.random.Generator | None = None,
    random_state: int | np.random.Generator | None = None,
    **claim: float,
) -> Finding:
    """Guess, from one release, which of many canary rows are in it.

    Canary rows are drawn on the plan's ranges and categories; a coin decides for each whether
    it is counted. A canary's score is the mean over its cells of the released count, less what
    the other canaries there are expected to add. The highest third are guessed in, the lowest
    out; how many guesses are right bounds epsilon (Steinke, Nasr and Jagielski, *Privacy
    Auditing with One (1) Training Run*, 2023, theorem 5.2). The noise on all cells, whose counts
    are known here, is looked at, too: see `hushtable.audit.residuals`.

    Parameters
    ----------
    release : callable
        To audit: takes a sketch and returns its release.
    plan : Plan
        To count under; deep tables separate canaries best.
    canaries : int
        Their number.
    rng, random_state : int or numpy Generator, optional
        Seed of the canaries and coins (not of the noise). Give ``rng`` in new code, and one of
        them at most: ``random_state`` is the same under scikit-learn's name.
    **claim : float
        As `Claim` takes them: epsilon, delta, confidence.

    Examples
    --------
    >>> from hushtable import Feature, Plan, Schema
    >>> from hushtable.audit import audit_canaries
    >>> schema = Schema([Feature.numeric(name, low=0, high=1) for name in "abcdef"])
    >>> plan = Plan.draw(schema, n_tables=20, random_state=0)
    >>> claim = {"epsilon": 1.0, "delta": 1e-6, "canaries": 100}
    >>> audit_canaries(lambda sketch: sketch.release(epsilon=1.0), plan, **claim).rejects
    False
    """
    claimed = Claim(**claim)
    source = generator(random_state, rng)
    rows = pa.table({f.name: _random_values(f, canaries, source) for f in plan.schema.features})
    included = source.random(canaries) < 0.5
    sketch = Sketch.from_data(plan, rows.filter(pa.array(included)))
    released = release(sketch)
    crowd = Sketch.from_data(plan, rows).counts
    values = (released.counts - 0.5 * crowd) / np.maximum(np.abs(crowd), 1)
    encoder = Encoder(plan.schema)
    reader = open_rows(rows, plan.schema)
    scores = np.concatenate([plan.family.sum(encoder.encode(b), values) for b in reader.read()])
    order = np.argsort(scores, kind="stable")
    third = canaries // 3
    right = int(included[order[-third:]].sum() + (~included[order[:third]]).sum())
    bound = canary_bound(canaries, 2 * third, right, claimed.delta, claimed.error)
    auc = area(scores[~included], scores[included])
    p_noise = p_of_release(released, sketch.counts)
    return claimed.finding("canaries in one release", bound, canaries, auc=auc, p_noise=p_noise)


def _random_values(feature: Feature, n: int, rng: np.random.Generator) -> Any:
    if feature.kind == "numeric":
        return feature.low + rng.random(n) * (feature.high - feature.low)
    if not feature.categories:
        return pa.nulls(n, pa.string())
    return [feature.categories[i] for i in rng.integers(len(feature.categories), size=n)]


# --- replaying the whole way to a release -------------------------------------------------------


def audit_replay(
    publish: Callable[[Floats], Release],
    X: Floats,
    row: Sequence[float] | Floats,
    *,
    trials: int = 200,
    **claim: float,
) -> Finding:
    """Detect a row by doing what the site did, with it and without it, and comparing.

    It finds what no statistic of the noise does: a plan that depends on the data (the plan that
    came is the one that the row would have led to), and noise that can be drawn again.

    ``publish`` is to be audited: it takes rows (n, d) and returns the release that the site would
    send, its plan included. The adversary knows the rows ``X`` (n, d), and asks for ``row`` (d,).
    ``trials`` are releases with the row and without it, each; ``claim`` is as `Claim` takes it.
    """
    claimed = Claim(**claim)
    both = np.vstack([X, np.asarray(row, np.float64)])
    without, replay = publish(X), publish(both)

    def looks_present(release: Release) -> bool:
        if replay.plan.plan_id != without.plan.plan_id:
            return release.plan.plan_id == replay.plan.plan_id
        return np.array_equal(release.counts, replay.counts)

    false = sum(looks_present(publish(X)) for _ in range(trials))
    true = sum(looks_present(publish(both)) for _ in range(trials))
    delta, error = claimed.delta, claimed.error / 4.0
    cases = (false, true), (trials - true, trials - false)
    bound = max(0.0, *(float(least_epsilon(*case, trials, delta, error)) for case in cases))
    return claimed.finding("replay of the whole release", bound, 2 * trials)
