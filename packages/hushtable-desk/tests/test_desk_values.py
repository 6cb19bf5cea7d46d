"""Values stand on every page as they stand in the file."""

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from desk_helpers import DeskClient
from hushtable.data.texts.reading import ColumnReading

#: An odd row, and the ends of the usual ones, as each kind of file has them.
ODD = {
    "german.csv": ("15,0", "37,50", "1.234,5", "28.10.2025", "7:20:00", "10:35"),
    "us.csv": ("15.0", "37.50", "1,234.5", "10/28/2025", "7:20:00", "10:35"),
    "book.xlsx": ("15", "37.5", "1234.5", "2025-10-28", "7:20:00", "10:35:00"),
    "typed.parquet": ("15", "37.5", "1234.5", "2025-10-28", "7:20:00", "10:35:00"),
}
NAMES = ("Alter", "Temp", "Betrag", "Datum", "Dauer", "Uhr")


def table(n=300):
    rng = np.random.default_rng(0)
    hours = rng.integers(20 * 3600, 30 * 3600, n)
    rows = pd.DataFrame({
        "Alter": 40.0 + rng.integers(0, 40, n), "Temp": 36.0 + rng.integers(0, 99, n) / 100,
        "Betrag": 2_000.5 + rng.integers(0, 900, n),
        "Datum": datetime(2025, 1, 1) + pd.to_timedelta(rng.integers(0, 250, n), "D"),
        "Dauer": pd.to_timedelta(hours, "s"), "Uhr": rng.integers(12 * 60, 20 * 60, n) * 60,
    })  # fmt: skip
    rows.loc[7] = [15.0, 37.5, 1_234.5, datetime(2025, 10, 28), timedelta(hours=7.0 + 1 / 3), 38_100]
    return rows


def write(path, name, rows):
    clock = pd.to_datetime(rows["Uhr"], unit="s").dt.time
    if not name.endswith("csv"):
        rows = rows.assign(Uhr=clock)
        return rows.to_excel(path, index=False) if "xlsx" in name else rows.to_parquet(path)
    day = rows["Datum"].dt.strftime("%d.%m.%Y" if name == "german.csv" else "%m/%d/%Y")
    signs = str.maketrans(",.", ".," if name == "german.csv" else ",.")
    said = {n: rows[n].map(f"{{:,.{k}f}}".format) for n, k in zip(NAMES, (1, 2, 1), strict=False)}
    lasts = rows["Dauer"].dt.total_seconds().map(lambda s: f"{s // 3600:.0f}:{s // 60 % 60:02.0f}:{s % 60:02.0f}")
    texts = pd.DataFrame(said).apply(lambda column: column.str.translate(signs))
    texts = texts.assign(Datum=day, Dauer=lasts, Uhr=[f"{one:%H:%M}" for one in clock])
    texts.to_csv(path, sep=";" if name == "german.csv" else ",", index=False)


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("name", ODD)
def test_values_stand_as_in_the_file(tmp_path, name, language):
    write(tmp_path / name, name, table())
    with DeskClient(tmp_path) as client:
        client.headers["Accept-Language"] = language
        at = client.fit(name)
        ...
