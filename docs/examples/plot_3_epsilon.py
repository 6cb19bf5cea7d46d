"""
Accuracy against epsilon
========================

The same rows, released at several total epsilons. With enough rows, noise costs little or no
accuracy; with too few rows, everything.
"""

import textwrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from hushtable import Feature, HushTable, Plan, Schema, Sketch

schema = Schema([Feature.numeric(name, low=-6, high=6) for name in "abcdef"])


def made_up(n, rng):
    """Make rows of which one in fifty has one feature further out."""
    X = rng.normal(size=(n, 6))
    outlier = np.arange(n) % 50 == 0
    for row in np.flatnonzero(outlier):
        X[row, rng.integers(6)] = rng.choice([-1, 1]) * rng.uniform(2, 5)
    return pd.DataFrame(X, columns=list("abcdef")), outlier


def auc(X, outlier, epsilon, seed):
    """Release the rows' counts at this total epsilon, and score the rows by them."""
    plan = Plan.draw(schema, epsilon=epsilon, expected_rows=len(X), random_state=seed)
    release = Sketch.from_data(plan, X).release(epsilon=epsilon)
    return roc_auc_score(outlier, -HushTable.from_counts(release).score_samples(X))


# %%
# Dashed lines are without noise. (The noise has no seed: your figure will differ a little.)

epsilons = [0.03, 0.1, 0.3, 1]
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for n, colour in ((300, "tab:orange"), (3_000, "tab:blue"), (30_000, "tab:green")):
    X, outlier = made_up(n, np.random.default_rng(0))
    reached = [np.mean([auc(X, outlier, e, seed) for seed in range(2)]) for e in epsilons]
    ax.semilogx(epsilons, reached, "o-", color=colour, label=f"{n:,} rows")
    open_plan = Plan.draw(schema, random_state=0)
    without = HushTable.from_counts(Sketch.from_data(open_plan, X)).score_samples(X)
    ax.axhline(roc_auc_score(outlier, -without), color=colour, linestyle="--", linewidth=1)
ax.set(xlabel="total epsilon (delta 1e-6)", ylabel="ROC-AUC", ylim=(0.4, 1.02))
ax.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
ax.legend()

# %%
# The plan predicts the accuracy beforehand, from public numbers alone:

for n in (300, 3_000, 30_000):
    words = Plan.draw(schema, epsilon=1.0, expected_rows=n).design.words()
    print(textwrap.fill(words, 88), end="\n\n")
