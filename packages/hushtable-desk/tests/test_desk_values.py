"""Values stand on every page as they stand in the file."""

import re
from datetime import datetime, time, timedelta
from html import unescape

import numpy as np
import polars as pl
import pytest

from desk_helpers import DeskClient
from hushtable.language import speaking

NAMES = ("Alter", "Temp", "Betrag", "Datum", "Dauer", "Uhr")
#: The values of an odd row, as each kind of file has them.
TYPED = ("15", "37.5", "1234.5", "2025-10-28", "7:20:00", "10:35:00")
ODD = {
    "german.csv": ("15,0", "37,50", "1.234,5", "28.10.2025", "7:20:00", "10:35"),
    "us.csv": ("15.0", "37.50", "1,234.5", "10/28/2025", "7:20:00", "10:35"),
    "book.xlsx": TYPED, "typed.parquet": TYPED,
}  # fmt: skip


def save(path):
    """Write a file of a kind, in which row 7 is odd."""
    rows = [
        [40.0 + a % 40, 36.0 + a % 99 / 100, 2_000.5 + a % 900, datetime(2025, 1, 1 + a % 31),
         timedelta(hours=8 + a % 10, seconds=61), time(12 + a % 8, a % 60)]
        for a in np.random.default_rng(0).integers(0, 1_000_000, 300).tolist()
    ]  # fmt: skip
    lasts = timedelta(hours=7, minutes=20)
    rows[7] = [15.0, 37.5, 1_234.5, datetime(2025, 10, 28), lasts, time(10, 35)]
    signs, day = (".,", "%d.%m.%Y") if path.name == "german.csv" else (",.", "%m/%d/%Y")
    numbers = [f"{a:.1f}\t{b:.2f}\t{c:,.1f}".translate(str.maketrans(",.", signs))
               for a, b, c, *_ in rows]  # fmt: skip
    frame = pl.DataFrame(rows, NAMES, orient="row").with_columns(pl.col("Datum").cast(pl.Date))
    if path.suffix == ".csv":
        texts = (f"{n}\t{d:{day}}\t{s}\t{t:%H:%M}"
                 for n, (*_, d, s, t) in zip(numbers, rows, strict=True))  # fmt: skip
        path.write_text("\n".join(["\t".join(NAMES), *texts]))
    elif path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_excel(path, dtype_formats={pl.Duration: "[h]:mm:ss"})


def page_of(client, address):
    """Return the texts of a page."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", client.get(address).text)).split())


@pytest.mark.parametrize("name", ODD)
def test_values_stand_on_every_page_as_in_the_file(tmp_path, name):
    save(tmp_path / name)
    with DeskClient(tmp_path) as client:
        at = client.fit(name)
        judging = client.desk.table(at[3:]).judging
        for language, point in (("en", "."), ("de", ",")):
            client.write("/settings", language=language)
            odd = [*ODD[name][3:], *ODD[name][:3]]
            if ODD[name] is TYPED:  # numbers have no text
                odd[3:] = [one.replace(".", point) for one in odd[3:]]
            pages = [page_of(client, at + part) for part in ("", "/rows/7")]
            assert [one for page in pages for one in odd if f" {one} " not in page] == []
            with speaking(language):
                reasons = judging.review.of_row(7).reasons
            assert {one.phrase.text for one in reasons} <= {*odd}
            assert all(one.words in pages[1] for one in reasons)
            assert reasons[0].words in page_of(client, f"{at}/rows")
            for one in reasons if ODD[name] is not TYPED else ():  # bounds have the same form
                texts = one.phrase.text, *re.findall(r"[\d.,:/]*\d", one.phrase.usual)
                assert len({re.sub(r"\d+", "9", text) for text in texts}) == 1
