"""
A score for each place of a plane
=================================

You learn what a score is, where its threshold lies, and how much each column lowers it. Rows in a
sparse region get a low score, whether they are outside all clusters or between two of them.

- *Data*: made up here, so that the correct answer is known.
- *How to*: :doc:`/tutorials/one-table`, :doc:`/explanation/score`.
- *API*: :class:`hushtable.HushTable`, :class:`hushtable.plots.ScoreDisplay`.
"""

import matplotlib.pyplot as plt
import numpy as np

from hushtable import HushTable
from hushtable.plots import ScoreDisplay

rng = np.random.default_rng(0)
crowds = rng.normal((2, 2), 0.5, (600, 2)), rng.normal((7, 6), 0.8, (400, 2))
odd = [(2, 9), (9, 1), (4.5, 4), (2.1, 6)]
X = np.vstack([*crowds, odd])
detector = HushTable(random_state=0).fit(X)
scores = detector.score_samples(X)

# %%
# The figure shows the score over the plane. The four outliers lie in dark regions.

side = np.linspace(0, 10, 150)
plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, ax = plt.subplots(figsize=(5.5, 4.5))
image = ax.contourf(side, side, detector.score_samples(plane).reshape(150, 150), 24, cmap="cividis")
ax.scatter(*np.vstack(crowds).T, s=4, color="white", alpha=0.6)
ax.scatter(*np.transpose(odd), s=50, facecolor="none", edgecolor="C1", linewidth=2)
ax.set_title("The score over the plane, 1,000 rows and four outliers")
figure.colorbar(image, label="score, bits (low is abnormal)")

# %%
# The figure shows the distribution of the scores and the default threshold, which needs only the
# counts and is generous. To flag a fraction of the rows instead, use ``set_threshold(X, 0.01)``.

display = ScoreDisplay.from_estimator(detector, X)
display.ax_.set_title("Scores of 1,004 rows, and the threshold", loc="left", pad=20)

# %%
# The figure ranks the lowest rows. The output lists how much each feature lowers the scores of the
# four outliers.

lowest = detector.outliers(X, n=8)
figure, ax = plt.subplots()
ax.errorbar(lowest["score"], range(8), xerr=1.96 * np.asarray(lowest["error"]), fmt="o")
ax.set_yticks(range(8), lowest["row"])
ax.invert_yaxis()
ax.set(xlabel="score, bits, with 1.96 standard errors", ylabel="row")
ax.set_title("The eight lowest scores; the first four are the outliers", loc="left")
for row, share in zip(odd, detector.explain(odd), strict=True):
    print(row, "loses", share.round(2), "bits")

# %%
# What it cannot know: four of the rows below the threshold were placed by hand, and the others
# belong to the clusters. A threshold is a choice of how many rows to check.

print("rows below the threshold:", (scores < detector.offset_).sum())
