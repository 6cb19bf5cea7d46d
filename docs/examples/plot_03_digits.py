"""
Digits that few people write this way
=====================================

You learn that a detector for tables also works on pictures if each pixel is a column. The pictures
are 1,797 handwritten digits of 13 people, with 8 by 8 pixels each.

- *Data*: ``load_digits`` of scikit-learn; E. Alpaydin and C. Kaynak, Optical Recognition of
  Handwritten Digits, UCI Machine Learning Repository, CC BY 4.0.
- *How to*: :doc:`/how-to/export`.
- *API*: :class:`hushtable.HushTable`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from hushtable import HushTable

X, digit = load_digits(return_X_y=True)

# %%
# Each digit has its own detector, so that a seven is compared with other sevens. The detector does
# not see the label.

scores = np.empty(len(X))
for value in range(10):
    same = X[digit == value]
    scores[digit == value] = HushTable(random_state=0).fit(same).score_samples(same)

# %%
# On the left are three pictures of each digit as most people write it (the highest scores). On the
# right are the seven pictures with the lowest scores, such as ones with a long upstroke, sevens
# with a bar, and nines that lean.

figure, axes = plt.subplots(10, 11, figsize=(7, 6.6))
for value, line in enumerate(axes):
    of_value = np.flatnonzero(digit == value)
    order = of_value[scores[of_value].argsort()]
    for ax, row in zip(line[:3], order[-3:], strict=True):
        ax.imshow(X[row].reshape(8, 8), cmap="Greys")
    for ax, row in zip(line[4:], order[:7], strict=True):
        ax.imshow(X[row].reshape(8, 8), cmap="Oranges")
for ax in axes.flat:
    ax.axis("off")
figure.suptitle("Usual digits (left, grey) and the oddest of each (right, orange)")

# %%
# What it got wrong: a style that many people share is not unusual, however different it looks. In
# addition, a column has no information about the pixels next to it, so the same digit scores lower
# if it is moved by one pixel:

first = X[digit == 0]
detector = HushTable(random_state=0).fit(first)
moved = np.roll(first.reshape(-1, 8, 8), 1, axis=2).reshape(-1, 64)
for name, rows in {"zeros as they are": first, "moved by one pixel": moved}.items():
    print(f"{name}: {np.median(detector.score_samples(rows)):.1f} bits")
