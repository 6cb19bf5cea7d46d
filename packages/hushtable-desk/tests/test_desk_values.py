"""Values stand on every page as they stand in the file."""

import re
from datetime import datetime, timedelta
from html import unescape

import numpy as np
import pandas as pd
import pytest

from desk_helpers import DeskClient
from hushtable.language import speaking

NAMES = ("Alter", "Temp", "Betrag", "Datum", "Dauer", "Uhr")
#: The values of an odd row, as each kind of file has them.
ODD = {
    "german.csv": ("15,0", "37,50", "1.234,5", "28.10.2025", "7:20:00", "10:35"),
    "us.csv": ("15.0", "37.50", "1,234.5", "10/28/2025", "7:20:00", "10:35"),
    "book.xlsx": ("15", "37.5", "1234.5", "2025-10-28", "7:20:00", "10:35:00"),
    "typed.parquet": ("15", "37.5", "1234.5", "2025-10-28", "7:20:00", "10:35:00"),
}


def save(path, n=300):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({
        "Alter": 40.0 + rng.integers(0, 40, n), "Temp": 36.0 + rng.integers(0, 99, n) / 100,
        "Betrag": 2_000.5 + rng.integers(0, 900, n),
        "Datum": datetime(2025, 1, 1) + pd.to_timedelta(rng.integers(0, 250, n), "D"),
        "Dauer": pd.to_timedelta(rng.integers(20, 30, n) * 3_600 + 61, "s"),
        "Uhr": datetime(2025, 1, 1, 12) + pd.to_timedelta(rng.integers(0, 480, n), "min"),
        "Patient": rng.choice(["A", "B"], n),
    })  # fmt: skip
    lasts, at = timedelta(seconds=26_400), datetime(2025, 1, 1, 10, 35)
    rows.loc[7] = [15.0, 37.5, 1_234.5, datetime(2025, 10, 28), lasts, at, "A"]
    if path.suffix == ".csv":
        german = path.name == "german.csv"
        for name, form in zip(NAMES, ("{:.1f}", "{:.2f}", "{:,.1f}"), strict=False):
            texts = rows[name].map(form.format)
            rows[name] = texts.str.translate(str.maketrans(",.", ".,")) if german else texts
        rows["Datum"] = rows["Datum"].dt.strftime("%d.%m.%Y" if german else "%m/%d/%Y")
        rows["Dauer"] = [f"{s // 3600:.0f}:{s // 60 % 60:02.0f}:{s % 60:02.0f}"
                         for s in rows["Dauer"].dt.total_seconds()]  # fmt: skip
        rows["Uhr"] = rows["Uhr"].dt.strftime("%H:%M")
        return rows.to_csv(path, sep=";" if german else ",", index=False)
    rows["Uhr"] = rows["Uhr"].dt.time
    if path.suffix == ".parquet":
        return rows.to_parquet(path)
    with pd.ExcelWriter(path, engine="xlsxwriter") as book:
        rows.to_excel(book, index=False)
        form = book.book.add_format({"num_format": "[h]:mm:ss"})
        for i, lasts in enumerate(rows["Dauer"]):
            book.sheets["Sheet1"].write_number(i + 1, 4, lasts / timedelta(1), form)


def page_of(client, address):
    """Return the texts of a page."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", client.get(address).text)).split())


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("name", ODD)
def test_values_stand_on_every_page_as_in_the_file(tmp_path, name, language):
    save(tmp_path / name)
    with DeskClient(tmp_path) as client:
        at = client.fit(name)
        client.write("/settings", language=language)
        typed = not name.endswith("csv") and language == "de"  # numbers have no text
        odd = [one.replace(".", ",") if typed else one for one in ODD[name][:3]] + [*ODD[name][3:]]
        pages = [page_of(client, at + part) for part in ("", "/rows/7")]
        assert [one for page in pages for one in odd if f" {one} " not in page] == []
        judging = client.desk.table(at[3:]).judging
        with speaking(language):
            reasons = judging.review.of_row(7).reasons
            line = next(one for one in judging.listing.lines if one.number == 7)
        assert {one.phrase.text for one in reasons} <= {*odd}
        for one in reasons:  # with bounds in the same form
            assert one.words in pages[1]
            ends = re.findall(r"[\d.,:/-]*\d", one.phrase.usual)
            forms = {re.sub(r"\d+", "9", text) for text in (one.phrase.text, *ends)}
            assert len(forms) == 1 or not name.endswith("csv")
        assert line.words == reasons[0].words
        assert line.words in page_of(client, f"{at}/rows")


def test_the_history_stands_as_in_the_file(tmp_path):
    save(tmp_path / "german.csv")
    with DeskClient(tmp_path) as client:
        at = f"/t/{client.key('german.csv')}"
        for name, value in (("time", "Datum"), ("entity", "Patient")):
            client.write(f"{at}/say", name=name, value=value)
        client.fit("german.csv")
        page = page_of(client, f"{at}/rows/7/history")
        assert [one for one in ODD["german.csv"] if f" {one} " not in page] == []
