"""
Merged counts equal pooled rows
===============================

Three sites count their own rows under the same plan, and add up the counts. The sum equals, to the
bit, the counts of all rows in one place. Rows common at one site may be outliers among all.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from hushtable import Feature, HushTable, Plan, Schema, Sketch

rng = np.random.default_rng(0)
sites = {
    "north": np.vstack([rng.normal((3, 3), 0.7, (700, 2)), [(8, 8)]]),
    "south": rng.normal((3.5, 3), 0.7, (500, 2)),
    "clinic": np.vstack([rng.normal((3, 3.5), 0.7, (40, 2)), rng.normal((7.5, 3), 0.5, (30, 2))]),
}
sites = {name: pd.DataFrame(rows, columns=["a", "b"]) for name, rows in sites.items()}
schema = Schema([Feature.numeric("a", low=0, high=10), Feature.numeric("b", low=0, high=10)])
plan = Plan.draw(schema, random_state=0)  # before any row is seen

counts = {name: Sketch.from_data(plan, rows) for name, rows in sites.items()}
merged = sum(counts.values(), start=Sketch.zero(plan))
pooled = Sketch.from_data(plan, pd.concat(sites.values()))
print("equal, to the bit:", merged == pooled)

# %%
# By the clinic's own counts its second group is common, since it is nearly half of its rows. By the
# merged counts it is rare.

clinic = sites["clinic"]
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, (title, known) in zip(
    axes, {"by its own counts": counts["clinic"], "by all": merged}.items(), strict=True
):
    scores = HushTable.from_counts(known).score_samples(clinic)
    rank = scores.argsort().argsort()  # 0 is the lowest
    image = ax.scatter(clinic["a"], clinic["b"], c=rank, cmap="cividis", s=30)
    ax.set(title=f"the clinic's rows, {title}", xlim=(0, 10), ylim=(0, 10))
figure.colorbar(image, ax=axes, label="place in the ranking (0 is the lowest)")
