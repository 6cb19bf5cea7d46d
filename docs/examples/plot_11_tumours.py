"""
Tumours unlike all benign ones
==============================

You learn how to detect novelties: fit a detector to rows that are known to be fine, and flag rows
that are unlike them. The rows are samples of 569 breast tumours, with 30 measures of their cell
nuclei.

- *Data*: ``load_breast_cancer`` of scikit-learn; W. Wolberg and others, Breast Cancer Wisconsin
  (Diagnostic), UCI Machine Learning Repository, CC BY 4.0.
- *How to*: :doc:`/how-to/export`.
- *API*: :class:`hushtable.HushTable`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from hushtable import HushTable

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
benign, malignant = X[y == 1], X[y == 0]
train, rest = train_test_split(benign, test_size=0.5, random_state=0)
judge, unseen = train_test_split(rest, test_size=0.5, random_state=0)

# %%
# The detector is fitted to half of the benign samples. Another quarter sets the threshold so that
# it flags one benign sample in twenty. The fitted rows would set the threshold too high, because
# the detector has seen them.

detector = HushTable(novelty=True, random_state=0).fit(train)
detector.set_threshold(judge, 0.05)
scores = {"benign": detector.score_samples(unseen), "malignant": detector.score_samples(malignant)}
for name, found in scores.items():
    print(f"{name}: {(found < detector.offset_).sum()} of {len(found)} below the threshold")
kind = np.repeat([0, 1], [len(found) for found in scores.values()])
print(f"ROC-AUC {roc_auc_score(kind, -np.concatenate(list(scores.values()))):.3f}")

# %%
# All samples in this figure are new to the detector. More than half of the malignant samples score
# below -5 bits, and hardly any benign sample does.

figure, ax = plt.subplots()
bins = np.linspace(*np.percentile(np.concatenate(list(scores.values())), [0, 100]), 40)
for name, found in scores.items():
    ax.hist(found, bins, alpha=0.75, label=f"{len(found)} {name} samples")
ax.axvline(detector.offset_, color="black", linestyle="--", label="threshold")
ax.set(title="Scores of tumours that the detector has not seen", ylabel="samples")
ax.set(xlabel="score, bits (low is odd)")
ax.legend()

# %%
# The figure shows the measures that matter most, by the mean size of their shares in the scores of
# the malignant samples.

sizes = detector.importances(malignant)
order = sizes.argsort()[-8:]
figure, ax = plt.subplots(figsize=(7, 3))
ax.barh(X.columns[order], sizes[order], color="C1")
ax.set(title="Measures that move the scores of malignant samples most", xlabel="bits")

# %%
# What it got wrong: it misses some malignant samples, and it flags more than one benign sample in
# twenty, because few samples set a threshold only roughly. It learned what is usual in one
# hospital. This is an example of a method, and not a diagnostic tool.
