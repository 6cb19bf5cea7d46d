"""
Merged counts equal pooled rows
===============================

Three sites with rows of their own take the same plan, count apart, and add up. The sum is, to the
bit, what they would have had with all rows in one place; and what is common at one site alone may
be odd for all.
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
# The clinic's own counts take its second group for common, since it is nearly half of its rows. The
# merged ones know better.

clinic = sites["clinic"]
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, (title, known) in zip(
    axes, {"by its own counts": counts["clinic"], "by all": merged}.items(), strict=True
):
    scores = HushTable.from_counts(known).score_samples(clinic)
    rank = scores.argsort().argsort()  # 0 is the oddest
    image = ax.scatter(clinic["a"], clinic["b"], c=rank, cmap="cividis", s=30)
    ax.set(title=f"the clinic's rows, {title}", xlim=(0, 10), ylim=(0, 10))
figure.colorbar(image, ax=axes, label="place in the ranking (0 is the oddest)")
