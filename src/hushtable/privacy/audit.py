"""Audits: attack a release as an adversary would, and bound its epsilon from below.

A bound above the claimed epsilon proves the claim wrong, with the stated confidence. A bound
below proves nothing: the promise rests on the proof (``docs/privacy.md``), an audit finds the
mistakes in carrying it out.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable.arguments import generator
from hushtable.encoding import Encoder
from hushtable.errors import UsageError
from hushtable.plan import Plan
from hushtable.privacy.bounds import Finding, area, canary_bound, judge, least_epsilon
from hushtable.privacy.budget import Mechanism
from hushtable.privacy.mechanism import add_noise
from hushtable.privacy.release import Release
from hushtable.readers import as_reader
from hushtable.schema import Feature
from hushtable.sketch import Sketch

__all__ = ["Finding", "audit_canaries", "audit_neighbours", "audit_noise", "audit_replay"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# --- the likelihood ratio of one row's cells ----------------------------------------------------


def audit_noise(
    noise: Callable[[Ints], Ints] | None = None,
    *,
    mechanism: Mechanism,
    scale: float,
    tables: int,
    epsilon: float,
    delta: float,
    draws: int = 30_000,
    confidence: float = 0.95,
) -> Finding:
    """Tell a row's presence from its m cells, by the likelihood ratio, through the real sampler.

    The adversary knows all other rows, so that the m cells of the row in question are all that
    tells of it. The best test looks at the likelihood ratio (Neyman and Pearson); a second one
    counts cells that hold the exact count, in case noise is missing. The threshold is chosen on
    one half of the draws and judged on the other by Clopper-Pearson intervals: epsilon is at
    least ln((true positives - delta) / false positives) (Jagielski, Ullman and Oprea, 2020).

    Parameters
    ----------
    noise : callable, optional
        What is audited: takes counts (draws, m), int64, and returns them with noise. By
        default the sampler of every release.
    mechanism, scale
        The noise that the release claims to have.
    tables : int
        Number of tables, m.
    epsilon, delta : float
        The claim.
    draws : int
        Releases of the m cells, with the row and without it, each.
    confidence : float
        Of the bounds.
    """
    if noise is None:

        def noise(counts: Ints) -> Ints:
            return add_noise(counts.ravel(), mechanism, scale).reshape(counts.shape)

    absent = noise(np.zeros((draws, tables), np.int64))
    present = noise(np.ones((draws, tables), np.int64))

    statistics, one = (_ratio(mechanism), _exact), np.ones(tables, np.int64)
    return judge(
        "likelihood ratio of one row's cells",
        [(statistic(absent, one), statistic(present, one)) for statistic in statistics],
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        middle=tables / 2.0 if mechanism == "discrete-gaussian" else None,
    )


def _ratio(mechanism: Mechanism) -> Callable[[Ints, Ints], Floats]:
    """Return the logarithm of the likelihood ratio, up to scale and shift.

    It takes what the cells hold beyond the other rows, (trials, cells), and what the row adds
    to each of them.
    """

    def gaussian(x: Ints, added: Ints) -> Floats:
        return np.asarray(x @ added, np.float64)

    def laplace(x: Ints, added: Ints) -> Floats:
        return np.asarray((np.abs(x) - np.abs(x - added)).sum(axis=1), np.float64)

    return gaussian if mechanism == "discrete-gaussian" else laplace


def _exact(x: Ints, added: Ints) -> Floats:
    """Count cells that hold just what they do with the row, less those without it."""
    return np.asarray((x == added).sum(axis=1) - (x == 0).sum(axis=1), np.float64)


# --- the likelihood ratio of neighbouring data ---------------------------------------------------


def audit_neighbours(
    publish: Callable[[Floats], Release],
    X: Floats,
    row: Sequence[float] | Floats,
    *,
    epsilon: float,
    delta: float,
    trials: int = 1000,
    confidence: float = 0.95,
) -> Finding:
    """Tell a row's presence from releases of data with it and without it, end to end.

    As `audit_noise`, but through everything that a site runs: reading, hashing, counting,
    noise. The adversary knows all other rows, the plan and the noise; the likelihood ratio is
    taken over all cells.

    Parameters
    ----------
    publish : callable
        What is audited: takes rows (n, d) and returns a release, always under the same plan.
        (`audit_replay` attacks a plan that depends on the rows.)
    X : ndarray of shape (n, d)
        The rows that the adversary knows.
    row : array-like of shape (d,)
        The row in question.
    epsilon, delta : float
        The claim.
    trials : int
        Releases with the row and without it, each.
    confidence : float
        Of the bounds.
    """
    both = np.vstack([X, np.asarray(row, np.float64)])
    absent, present = ([publish(rows) for _ in range(trials)] for rows in (X, both))
    plan, mechanism = absent[0].plan, absent[0].ledger.mechanism
    if present[0].plan.plan_id != plan.plan_id:
        raise UsageError("the plan depends on the rows: attack it with audit_replay")
    without, with_row = (Sketch.from_data(plan, rows).counts for rows in (X, both))
    changed = np.flatnonzero(with_row != without)
    added = (with_row - without)[changed]
    no, yes = (
        np.array([r.counts[changed] for r in releases], np.int64) - without[changed]
        for releases in (absent, present)
    )
    return judge(
        "likelihood ratio on neighbouring data",
        [(s(no, added), s(yes, added)) for s in (_ratio(mechanism), _exact)],
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        middle=float(added @ added) / 2.0 if mechanism == "discrete-gaussian" else None,
    )


# --- canaries in one release --------------------------------------------------------------------


def audit_canaries(
    release: Callable[[Sketch], Release],
    plan: Plan,
    *,
    epsilon: float,
    delta: float,
    canaries: int = 1000,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = None,
) -> Finding:
    """Tell, from one release, which of many canary rows are in it.

    Canary rows are drawn on the plan's ranges and categories; a coin decides for each whether
    it is counted. A canary's score is the mean over its cells of the released count, less what
    the other canaries there are expected to add. The highest third are guessed in, the lowest
    out; how many guesses are right bounds epsilon (Steinke, Nasr and Jagielski, *Privacy
    Auditing with One (1) Training Run*, 2023, theorem 5.2).

    Parameters
    ----------
    release : callable
        What is audited: takes a sketch and returns its release.
    plan : Plan
        To count under; deep tables tell canaries apart best.
    epsilon, delta : float
        The claim.
    canaries : int
        Their number.
    confidence : float
        Of the bound.
    random_state : int or numpy Generator, optional
        Seed of the canaries and coins (not of the noise).
    """
    rng = generator(random_state)
    rows = pa.table({f.name: _random_values(f, canaries, rng) for f in plan.schema.features})
    included = rng.random(canaries) < 0.5
    released = release(Sketch.from_data(plan, rows.filter(pa.array(included))))
    crowd = Sketch.from_data(plan, rows).counts
    values = (released.counts - 0.5 * crowd) / np.maximum(crowd, 1)
    encoder = Encoder(plan.schema)
    reader = as_reader(rows, text_columns=plan.schema.categorical_names)
    scores = np.concatenate([plan.family.sum(encoder.encode(b), values) for b in reader.read()])
    order = np.argsort(scores, kind="stable")
    third = canaries // 3
    right = int(included[order[-third:]].sum() + (~included[order[:third]]).sum())
    bound = canary_bound(canaries, 2 * third, right, delta, 1.0 - confidence)
    auc = area(scores[~included], scores[included])
    return Finding("canaries in one release", epsilon, delta, bound, confidence, canaries, auc=auc)


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
    epsilon: float,
    delta: float,
    trials: int = 200,
    confidence: float = 0.95,
) -> Finding:
    """Tell a row's presence by doing what the site did, with it and without it, and comparing.

    It finds what no statistic of the noise does: a plan that depends on the data (the plan that
    came is the one that the row would have led to), and noise that can be drawn again.

    Parameters
    ----------
    publish : callable
        What is audited: takes rows (n, d) and returns the release that the site would send,
        its plan included.
    X : ndarray of shape (n, d)
        The rows that the adversary knows.
    row : array-like of shape (d,)
        The row in question.
    epsilon, delta : float
        The claim.
    trials : int
        Releases with the row and without it, each.
    confidence : float
        Of the bound.
    """
    both = np.vstack([X, np.asarray(row, np.float64)])
    replays = {False: publish(X), True: publish(both)}

    def looks_present(release: Release) -> bool:
        plans = {name: replay.plan.plan_id for name, replay in replays.items()}
        if plans[True] != plans[False]:
            return release.plan.plan_id == plans[True]
        return np.array_equal(release.counts, replays[True].counts)

    false = sum(looks_present(publish(X)) for _ in range(trials))
    true = sum(looks_present(publish(both)) for _ in range(trials))
    error = (1.0 - confidence) / 4.0
    bounds = (
        least_epsilon(false, true, trials, delta, error),
        least_epsilon(trials - true, trials - false, trials, delta, error),
    )
    bound = max(0.0, *(float(b) for b in bounds))
    return Finding("replay of the whole release", epsilon, delta, bound, confidence, 2 * trials)
