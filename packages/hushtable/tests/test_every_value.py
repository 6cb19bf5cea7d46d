"""Every value of a table is as its owner wrote it, or a line says what became of it.

Random tables, written as people of many countries write them, are read under random options.
"""

import csv
import io
import re
import unicodedata
from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv

from hushtable.data import read
from hushtable.data.columns import as_numbers
from hushtable.data.texts.numbers import values as numbers_of
from hushtable.data.typed import typed
from hushtable.data.understanding import understood
from hushtable.errors import DataError

PERSIAN = str.maketrans("0123456789.", "۰۱۲۳۴۵۶۷۸۹٫")
FULL = str.maketrans("0123456789", "０１２３４５６７８９")
MONTHS = {
    "en": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    "pt": ["jan", "fev", "mar", "abr", "mai", "jun", "jul", "ago", "set", "out", "nov", "dez"],
    "ru": ["января", "февраля", "марта", "апреля", "мая", "июня",
           "июля", "августа", "сентября", "октября", "ноября", "декабря"],
    "tr": ["Ocak", "Şubat", "Mart", "Nisan", "Mayıs", "Haziran",
           "Temmuz", "Ağustos", "Eylül", "Ekim", "Kasım", "Aralık"],
}  # fmt: skip
#: What stands in a cell without a value; the last is a limit, which is the number where asked.
NOTES = ["ERR", "n/a", "?", "-", "haemolysed", "see note", "<0.5"]
#: What programs write for a missing value: Arrow's list.
BLANK = frozenset(arrow_csv.ConvertOptions().null_values)
EPOCH = date(1970, 1, 1)


@dataclass
class Column:
    """A column: what its owner means, and what the owner types."""

    kind: str
    #: Numbers, seconds or texts; None where there is none.
    values: list
    texts: list[str]
    options: dict = field(default_factory=dict)


def grouped(value, places, decimal, group):
    text = f"{abs(value):,.{places}f}".replace(",", "g").replace(".", "d")
    return "-" * (value < 0) + text.replace("g", group).replace("d", decimal)


@st.composite
def number_columns(draw, n):
    places = draw(st.integers(0, 3))
    whole = draw(st.lists(st.integers(-(10**7), 10**7), min_size=n, max_size=n))
    values = [value / 10**places for value in whole]
    decimal = draw(st.sampled_from(".,"))
    group = draw(st.sampled_from(["", " ", "\u00a0", "'", "." if decimal == "," else ","]))
    before, after = draw(st.sampled_from(
        [("", "")] * 4 + [("$", ""), ("", " €"), ("", " kg"), ("", "%"), ("R$ ", ""), ("", " руб.")]
    ))  # fmt: skip
    script = draw(st.sampled_from([{}] * 4 + [PERSIAN, FULL]))
    if script == PERSIAN and (decimal == "," or group):
        script = {}
    texts = [before + grouped(v, places, decimal, group) + after for v in values]
    return Column(
        "number", values, [text.translate(script) for text in texts], {"decimal": decimal}
    )


@st.composite
def multiple_columns(draw, n):
    whole = draw(st.lists(st.integers(1, 10**6), min_size=n, max_size=n))
    texts, values = [], []
    for value in whole:
        power, sign = draw(st.sampled_from([(0, ""), (3, "K"), (6, "M")]))
        texts.append(f"{value / 100:.2f}{sign}")
        values.append(float(f"{value / 100:.2f}e{power}"))
    return Column("number", values, texts)


@st.composite
def date_columns(draw, n):
    days = draw(st.lists(st.integers(5_000, 25_000), min_size=n, max_size=n))
    dates = [EPOCH + timedelta(day) for day in days]
    order, form = draw(st.sampled_from([
        ("ymd", "{0.year}-{0.month:02}-{0.day:02}"), ("dmy", "{0.day:02}.{0.month:02}.{0.year}"),
        ("dmy", "{0.day}/{0.month}/{0.year}"), ("mdy", "{0.month:02}/{0.day:02}/{0.year}"),
        ("ymd", "{0.year}年{0.month}月{0.day}日"), ("dmy", "{0.day} {1} {0.year}"),
        ("dmy", "{1} {0.day}, {0.year}"),
    ]))  # fmt: skip
    names = MONTHS[draw(st.sampled_from(sorted(MONTHS)))]
    texts = [form.format(day, names[day.month - 1]) for day in dates]
    options = {} if "1}" in form else {"dates": order}
    return Column("date", [day * 86_400.0 for day in days], texts, options)


@st.composite
def time_columns(draw, n):
    minutes = draw(st.lists(st.integers(0, 24 * 60 - 1), min_size=n, max_size=n))
    form = draw(st.sampled_from(["{0:02}:{1:02}", "{0}h {1}m", "PT{0}H{1}M", "{0} Std. {1} Min."]))
    texts = [form.format(m // 60, m % 60) for m in minutes]
    return Column("time", [m * 60.0 for m in minutes], texts)


@st.composite
def label_columns(draw, n):
    letters = st.text(st.characters(codec="utf-8", categories=("L", "N")), min_size=1, max_size=8)
    labels = draw(st.lists(letters, min_size=1, max_size=6, unique=True))
    chosen = draw(st.lists(st.sampled_from(labels), min_size=n, max_size=n))
    return Column("category", list(chosen), list(chosen))


@st.composite
def tables(draw):
    n = draw(st.integers(5, 40))
    kinds = [number_columns(n), number_columns(n), multiple_columns(n), date_columns(n),
             time_columns(n), label_columns(n)]  # fmt: skip
    columns = {f"c{j}": draw(st.one_of(kinds)) for j in range(draw(st.integers(1, 4)))}
    for column in columns.values():
        for row in draw(st.lists(st.integers(0, n - 1), max_size=3, unique=True)):
            column.texts[row] = draw(st.sampled_from(["", *NOTES]))
            column.values[row] = None
    return columns


@st.composite
def said(draw, columns):
    """Options: what the owner knows, and texts that stand for a missing value."""
    options, kinds = {}, {}
    for name, column in columns.items():
        if draw(st.booleans()):
            options |= column.options
        if draw(st.integers(0, 3)) == 0:
            kinds[name] = "number" if column.kind == "time" else column.kind
    of = {"decimal": [], "dates": []}
    for column in columns.values():
        for option, value in column.options.items():
            of[option].append(value)
    # One option holds for all columns: typed only where all agree.
    options = {k: v for k, v in options.items() if len(set(of[k])) == 1}
    texts = [text for column in columns.values() for text in column.texts if text.strip()]
    named = draw(st.lists(st.sampled_from([*texts, "999", "-99", "0", *NOTES]), max_size=3))
    return {**options, "missing": named, "kinds": kinds}


def written(columns, delimiter):
    """Return a CSV file."""
    file = io.StringIO()
    lines = csv.writer(file, delimiter=delimiter)
    lines.writerow(columns)
    lines.writerows(zip(*(column.texts for column in columns.values()), strict=True))
    return file.getvalue()


def cells(reader, reading, names):
    """Return the values of each column: floats, or texts."""
    found = {name: [] for name in names}
    for batch in typed(reader, None, reading).read():
        for name, column in zip(names, batch.columns, strict=True):
            if pa.types.is_string(column.type):
                found[name] += column.to_pylist()
            else:
                numbers = as_numbers(column, name, 0).astype(float)
                found[name] += [None if np.isnan(value) else value for value in numbers]
    return found


def is_named(text, missing):
    """Whether an option names what a text says, with either decimal sign."""
    if text.strip() in [one.strip() for one in missing]:
        return True
    numbers = [
        {float(numbers_of(pa.array([one]), sign)[0]) for sign in ".,"} for one in (text, *missing)
    ]
    return any(numbers[0] & other for other in numbers[1:])


def same(value, got):
    if isinstance(value, str) or isinstance(got, str):
        return value == got
    return np.isclose(value, got, rtol=1e-12, atol=0.0)


def check(columns, options, delimiter, folder):
    path = folder / "rows.csv"
    path.write_text(written(columns, delimiter), encoding="utf-8", newline="")
    try:
        reader = read(str(path), **options)
        seen, reading, *_ = understood(reader)
    except DataError as error:  # of the layout, by line
        refused = str(error)
    else:
        return compare(columns, options, reader, seen, reading)
    assert re.search(r"line \d|column|delimiter", refused), refused
    return 0


def compare(columns, options, reader, seen, reading):
    n_right = 0
    assert all(one.question for one in seen if one.refused)
    taken = [one for one in seen if not one.refused]
    names = [one.name for one in taken]
    found = cells(reader.select(names), reading, names) if names else {}
    for one in taken:
        column = columns[one.name]
        lost = 0
        for value, text, got in zip(column.values, column.texts, found[one.name], strict=True):
            if isinstance(got, str):
                # As its owner wrote it, in the form of Unicode that labels have.
                assert got == unicodedata.normalize("NFC", text).strip()
            elif got is None:
                lost += text not in BLANK and not is_named(text, options["missing"])
            elif value is None:
                assert (text, got) == ("<0.5", 0.5)
            elif not same(value, got) and not (isinstance(value, str)):
                assert one.question, (one, text, value, got)
            else:
                n_right += 1
        if lost:
            gone = [t for t, got in zip(column.texts, found[one.name], strict=True) if got is None]
            assert f"as requested, {lost:,} value" in one.question, (gone, one, options)
    return n_right


def check_table(data, tmp_path_factory):
    columns = data.draw(tables())
    options = data.draw(said(columns))
    delimiter = data.draw(st.sampled_from(",;\t"))
    check(columns, options, delimiter, tmp_path_factory.mktemp("table"))


SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(**SETTINGS)
@given(data=st.data())
def test_every_value_is_as_written_or_a_line_says_so(data, tmp_path_factory):
    check_table(data, tmp_path_factory)
