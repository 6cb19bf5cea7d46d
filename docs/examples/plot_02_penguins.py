"""
Penguins that do not look like their kind
=========================================

You learn how to rank the rows of a file as it comes, and to read why each is odd. 344 penguins of
three species were measured near Palmer Station, Antarctica. The file has dates, categories,
comments and missing values.

*Data*: ``penguins-raw.csv`` of the package ``palmerpenguins``; collected by Kristen Gorman and the
Palmer Station LTER, published by Horst, Hill and Gorman (2020) under CC0. *How to*:
:doc:`/tables`, :doc:`/analyst`. *API*: :class:`hushtable.HushTable`.
"""

from importlib.metadata import distribution

import matplotlib.pyplot as plt
import pandas as pd

from hushtable import HushTable
from hushtable.data import read, understand

file = distribution("palmerpenguins").locate_file("palmerpenguins/data/penguins-raw.csv")

# %%
# What each column was taken for. Nothing had to be said: ``NA`` is missing, dates are dates.

for column in understand(file):
    print(f"{column.name:20} {column.kind:9} {column.evidence}")

# %%
# The body says more than the date and the blood sample, so we score the body. The other columns
# stay in the file; ``keep`` puts some of them beside the list.

body = ["Species", "Culmen Length (mm)", "Culmen Depth (mm)", "Flipper Length (mm)"]
body += ["Body Mass (g)", "Sex"]
detector = HushTable(random_state=0).fit(read(file, columns=body))
odd = detector.outliers(file, n=12, keep=["Individual ID", "Species", "Comments"]).to_pandas()
for row in odd.itertuples():
    print(f"{row.Species.split()[0]:9} {row.severity:5.1f}  {row.words}")

# %%
# In a plot of two of the columns, one Chinstrap has a bill far too long for its depth. The others
# lie between the kinds, where few penguins are.

table = pd.read_csv(file)
figure, ax = plt.subplots()
for marker, colour, (name, kind) in zip(
    "os^", ("C0", "C2", "C3"), table.groupby("Species"), strict=True
):
    look = {"s": 18, "marker": marker, "color": colour, "alpha": 0.6}
    ax.scatter(*kind[body[1:3]].to_numpy().T, **look, label=name.split()[0])
at = table.loc[odd["row"]].dropna(subset=body[1:3])
ax.scatter(*at[body[1:3]].to_numpy().T, s=130, facecolor="none", edgecolor="C1", linewidth=2)
ax.set(title="Bills of three species; rings mark the oddest", xlabel=body[1], ylabel=body[2])
ax.legend()

# %%
# What it got wrong: the two first were not measured, which does not make a strange penguin. Most
# of the others are Chinstraps, the smallest of three groups: who belongs to few is rare. A
# detector for each species answers the other question, who is odd for its kind. The comments of
# the list:

for row in odd.dropna(subset=["Comments"]).itertuples():
    print(f"row {row.row:3}: {row.Comments}")
