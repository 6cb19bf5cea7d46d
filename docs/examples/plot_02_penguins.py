"""
Penguins that do not look like their kind
=========================================

You learn how to rank the rows of a raw file, and how to read why a row is unusual. The file has 344
penguins of three species that were measured near Palmer Station, Antarctica. It contains dates,
categories, comments and missing values.

- *Data*: ``penguins-raw.csv`` of the package ``palmerpenguins``; collected by Kristen Gorman and
  the Palmer Station LTER, published by Horst, Hill and Gorman (2020) under CC0.
- *How to*: :doc:`/how-to/files`, :doc:`/tutorials/one-table`.
- *API*: :class:`hushtable.HushTable`.
"""

import textwrap
from importlib.metadata import distribution

import matplotlib.pyplot as plt
import pandas as pd

from hushtable import HushTable
from hushtable.data import understand

file = distribution("palmerpenguins").locate_file("palmerpenguins/data/penguins-raw.csv")

# %%
# The output states how each column was read. No options were needed to recognise ``NA`` as missing
# and dates as dates.

for column in understand(file):
    print(f"{column.name:20} {column.kind:9} {column.evidence}")

# %%
# Each species has its own detector, so that a Gentoo is compared with other Gentoos. The detector
# scores four measures of the body. The other columns stay in the table; ``keep`` adds some of them
# to the list.

table = pd.read_csv(file)
body = ["Culmen Length (mm)", "Culmen Depth (mm)", "Flipper Length (mm)", "Body Mass (g)"]
lists = {}
for name, kind in table.groupby("Species"):
    detector = HushTable(random_state=0).fit(kind[body])
    rows = kind[[*body, "Comments"]]
    lists[name.split()[0]] = detector.outliers(rows, n=6, keep=["Comments"])
for name, odd in lists.items():
    print(name)
    for row in odd.head(3).itertuples():
        print(textwrap.fill(row.words, 84, initial_indent="  - ", subsequent_indent="    "))

# %%
# Two pictures of the same rows mark the six most unusual penguins of each species. Some have an
# unusual bill, some an unusual weight, and some only an unusual combination of both.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2))
for ax, (x, y) in zip(axes, (body[:2], body[2:]), strict=True):
    for look, (name, kind) in zip(("oC0", "sC2", "^C3"), table.groupby("Species"), strict=True):
        ax.plot(kind[x], kind[y], look[0], color=look[1:], alpha=0.5, ms=4, label=name.split()[0])
    rings = table.loc[pd.concat(lists.values()).index]
    ax.scatter(rings[x], rings[y], s=110, facecolor="none", edgecolor="C1", linewidth=2)
    ax.set(xlabel=x, ylabel=y)
axes[0].legend()
figure.suptitle("Three kinds of penguins; rings mark the six oddest of each")

# %%
# What it got wrong: two penguins were not measured. This does not make a penguin unusual, but a
# missing value is rare, so these rows come first. The comments in the lists explain what happened:

for odd in lists.values():
    for row in odd.dropna(subset=["Comments"]).itertuples():
        print(f"severity {row.severity:.1f}: {row.Comments}")
