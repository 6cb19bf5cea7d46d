"""Texts as people write them, as the numbers and dates that they say."""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable.data.texts import dates, numbers
from hushtable.data.texts.reading import ColumnReading, Reading
from hushtable.data.texts.words import words
from hushtable.errors import PlanError, UsageError


def said(text, decimal=".", **options):
    [value] = numbers.values(pa.array([text]), decimal, **options)
    return None if np.isnan(value) else value


@pytest.mark.parametrize(
    ("text", "point", "comma"),
    [
        ("12", 12, 12),
        (" 12 ", 12, 12),
        ("+1.5", 1.5, None),
        ("1,5", None, 1.5),
        ("1,234", 1234, 1.234),
        ("1.234", 1.234, 1234),
        ("1,234.5", 1234.5, None),
        ("1.234,5", None, 1234.5),
        ("1 234,5", None, 1234.5),
        ("1\u202f234,5", None, 1234.5),
        ("1'234.50", 1234.5, None),
        ("$4,081.98", 4081.98, None),
        ("-$5.00", -5, None),
        ("(12.00)", -12, None),
        ("12,50-", None, -12.5),
        ("\u22123", -3, -3),
        ("48.6%", 48.6, None),
        ("48,6\u00a0%", None, 48.6),
        ("12 EUR", 12, 12),
        ("5.3 mmol/l", 5.3, None),
        ("1,2345E+02", None, 123.45),
        ("0.999", 0.999, None),
        ("1,23,456", 123456, None),
        ("1,2,345", None, None),
        ("1,2,34", None, None),
        ("12.345.67", None, None),
        ("1.5.2026", None, None),
        ("3A", None, None),
        ("3.2A", 3.2, None),
        ("NHS123", None, None),
        ("E11.9", None, None),
        ("<0.5", None, None),
        ("1 234,50 руб.", None, 1234.5),
        ("\uffe51,200", 1200, 1.2),
        ("\u06f1\u06f2\u06f3\u06f4\u066b\u06f5", 1234.5, None),
        ("\uff11\uff12\uff13", 123, 123),
        ("\u20b912,34,567.50", 1234567.5, None),
        ("R$ -1.234,50", None, -1234.5),
        ("-1 234,5 Kč", None, -1234.5),
        ("1.2\u00d710^3", 1200, None),
        ("1,5\u00b710\u207b\u00b2", None, 0.015),
        ("kg 12.5", 12.5, None),
        ("%12", 12, 12),
        ("INR 12", 12, 12),
        ("5K", None, None),
        ("3B", None, None),
        ("17h30", None, None),
        ("12.3 ± 0.4", None, None),
        ("12\u201315", None, None),
        ("", None, None),
        ("-", None, None),
    ],
)
def test_numbers_as_people_write_them(text, point, comma):
    assert said(text, ".") == point
    assert said(text, ",") == comma


@pytest.mark.parametrize(
    ("text", "value"),
    [("<0.5", 0.5), (">= 100", 100), ("5.3 H", 5.3), ("5.3*", 5.3), ("0.7 LL", 0.7), ("9--", 9)],
)
def test_limits_and_flags_are_numbers_where_somebody_asks_for_it(text, value):
    assert said(text, unit="") is None
    assert said(text, lenient=True) == value
    assert said("ERR", lenient=True) is None


@pytest.mark.parametrize("text", ["12.5-", "12.5 -", "$12.50-", "-12.5"])
def test_a_minus_behind_a_number_is_a_sign_whoever_asks(text):
    assert said(text) == said(text, lenient=True) == -12.5


def test_numbers_beside_another_unit_are_none():
    assert said("12 EUR", unit="EUR") == said("12", unit="EUR") == 12
    assert said("12 USD", unit="EUR") is None


@given(st.integers(-(10**12), 10**12), st.integers(0, 6), st.sampled_from(["", ".", ",", " ", "'"]))
def test_a_number_comes_back_however_it_is_written(units, places, group):
    value = units / 10**places
    text = f"{value:,.{places}f}".replace(",", "g").replace(".", "d")
    decimal = "," if group == "." else "."
    assert said(text.replace("g", group).replace("d", decimal), decimal) == value


@pytest.mark.parametrize(
    ("text", "order", "date"),
    [
        ("2026-05-15", "dmy", "2026-05-15T00:00:00"),
        ("15.05.2026", "dmy", "2026-05-15T00:00:00"),
        ("5/15/2026", "mdy", "2026-05-15T00:00:00"),
        ("5/15/2026", "dmy", None),
        ("03/04/2026", "dmy", "2026-04-03T00:00:00"),
        ("03/04/2026", "mdy", "2026-03-04T00:00:00"),
        ("26-05-15", "ymd", "2026-05-15T00:00:00"),
        ("15.5.26 7:05", "dmy", "2026-05-15T07:05:00"),
        ("05/15/2026 3:15 PM", "mdy", "2026-05-15T15:15:00"),
        ("05/15/2026, 3:15:10 p.m.", "mdy", "2026-05-15T15:15:10"),
        ("12-MAY-2026", "mdy", "2026-05-12T00:00:00"),
        ("12. Mai 2026", "mdy", "2026-05-12T00:00:00"),
        ("3. Dezember 2025", "dmy", "2025-12-03T00:00:00"),
        ("2 févr. 2025", "dmy", "2025-02-02T00:00:00"),
        ("May 12, 2026", "dmy", "2026-05-12T00:00:00"),
        ("20260515", "dmy", "2026-05-15T00:00:00"),
        ("2026-05-15T10:00:00+02:00", "dmy", "2026-05-15T08:00:00"),
        ("15/mai/2026", "dmy", "2026-05-15T00:00:00"),
        ("15 Mayıs 2026", "mdy", "2026-05-15T00:00:00"),
        ("15 мая 2026 г.", "dmy", "2026-05-15T00:00:00"),
        ("15 maja 2026 r.", "dmy", "2026-05-15T00:00:00"),
        ("15 de mayo de 2026", "dmy", "2026-05-15T00:00:00"),
        ("15. toukokuuta 2026", "dmy", "2026-05-15T00:00:00"),
        ("2026. május 15.", "dmy", "2026-05-15T00:00:00"),
        ("May 15th, 2026", "dmy", "2026-05-15T00:00:00"),
        ("Fr, 15.05.2026", "dmy", "2026-05-15T00:00:00"),
        ("mar 12/05/2026", "dmy", "2026-05-12T00:00:00"),
        ("2026年5月15日", "dmy", "2026-05-15T00:00:00"),
        ("2026年5月15日(金) 14時30分", "dmy", "2026-05-15T14:30:00"),
        ("2026년 5월 15일", "dmy", "2026-05-15T00:00:00"),
        ("R8.5.15", "mdy", None),
        ("15/05/2026 5:30 p. m.", "dmy", "2026-05-15T17:30:00"),
        ("15/05/2026 오후 5:30", "dmy", "2026-05-15T17:30:00"),
        ("15.05.2026 17.30 Uhr", "dmy", "2026-05-15T17:30:00"),
        ("2026-W54", "dmy", None),
        ("05/2026", "dmy", "2026-05-01T00:00:00"),
        ("10 3/4", "ymd", None),
        ("31.12.9999", "dmy", "9999-12-31T00:00:00"),
        ("01.01.0001", "dmy", "0001-01-01T00:00:00"),
        ("15.05.2026 13:30 PM", "dmy", None),
        ("31.02.2026", "dmy", None),
        ("2026-06-31 10:35+02:00", "dmy", None),
        ("2026-13-01T10:35Z", "dmy", None),
        ("2026-06-30 24:35+02:00", "dmy", None),
        ("2026-06-30 10:35:60Z", "dmy", None),
        ("2026-06-30 10:35+99:00", "dmy", None),
        ("2026-06-30 10:35-0130", "dmy", "2026-06-30T12:05:00"),
        ("00.00.0000", "dmy", None),
        ("1.5", "dmy", None),
        ("2026", "dmy", None),
        # Letters that no month and no era has: the first five ended in an error of Python's own.
        ("1200m", "dmy", None),
        ("m1200", "dmy", None),
        ("12 m 1999", "dmy", None),
        ("1200-m", "ymd", None),
        ("2015m", "mdy", None),
        ("M 2015", "dmy", None),
        ("e12-05-03", "ymd", None),
        ("e 9-1-2", "dmy", None),
        ("ee9-1-2", "dmy", None),
        # As Arrow reads them in a column of ISO dates.
        ("2026-05-15T10", "dmy", "2026-05-15T10"),
        ("2026-05-15 10", "mdy", "2026-05-15T10"),
        ("15.05.2026 10", "dmy", None),
        ("0000-05-15", "dmy", "0000-05-15"),
    ],
)
def test_dates_as_people_write_them(text, order, date):
    [seconds] = dates.seconds(pa.array([text]), order)
    if date is None:
        assert np.isnan(seconds)
    else:
        assert np.datetime64(int(seconds), "s") == np.datetime64(date)


def test_a_date_reads_alike_whatever_stands_beside_it():
    texts = ["20260515T10:35:00", "15.05.2026 10:35", "north", "HIV positive", "12. Mai 2026", None]
    together = dates.seconds(pa.array(texts), "dmy")
    alone = [dates.seconds(pa.array([text], pa.string()), "dmy")[0] for text in texts]
    np.testing.assert_array_equal(together, alone)
    assert np.isfinite(together).tolist() == [True, True, False, False, True, False]


@given(
    st.dates() | st.sampled_from(["0000-05-15", "0000-00-00", "2026-02-29", "10000-01-01"]),
    st.from_regex(
        r"([ Tt]([01][0-9]|2[0-4])(:?[0-6]0(:?[0-6]0(\.[0-9]{1,7})?)?)?)?Z?", fullmatch=True
    ),
)
def test_an_iso_date_reads_alike_whatever_stands_beside_it(day, time):
    """One other text decided whether hours alone, and dates of the year 0, were read."""
    alone, beside = (
        dates.seconds(pa.array([f"{day}{time}", *rest]), "dmy") for rest in ([], ["n/k"])
    )
    assert beside[0] == pytest.approx(alone[0], abs=1e-6, nan_ok=True)


def test_texts_without_a_value_do_not_keep_later_ones_from_being_read():
    """From 500 shapes without a date on, it depended on one row whether the others were read."""
    odd = [f"{a * 'x'} 1 {b * 'y'} 1" for a in range(26) for b in range(26)]
    for read, text in (
        (partial(dates.seconds, order="dmy"), "15.05.2026"),
        (dates.of_day, "10:35"),
    ):
        assert np.isfinite(read(pa.array([*odd, text]))).tolist() == [False] * len(odd) + [True]


@given(st.datetimes(), st.sampled_from(["dmy", "mdy", "ymd"]))
def test_a_date_comes_back_in_each_order(moment, order):
    form = {"dmy": "{d:02}.{m:02}.{y:04}", "mdy": "{m}/{d}/{y:04}", "ymd": "{y:04}-{m:02}-{d:02}"}
    moment = moment.replace(microsecond=0)
    day = form[order].format(d=moment.day, m=moment.month, y=moment.year)
    [seconds] = dates.seconds(pa.array([f"{day} {moment:%H:%M:%S}"]), order)
    assert np.datetime64(int(seconds), "s") == np.datetime64(moment)


def test_times_of_day_are_seconds():
    texts = ["00:00", "10:35", "7:05:10", "12:10 AM", "1:05 p.m.", "24:61", "x", None]
    found = dates.of_day(pa.array(texts))
    np.testing.assert_array_equal(found, [0, 38100, 25510, 600, 47100, np.nan, np.nan, np.nan])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("17h30", 63000), ("5:30 p. m.", 63000), ("午後5:30", 63000), ("下午5:30", 63000),
        ("17.30 Uhr", 63000), ("klo 17.30", 63000), ("101:05:00", 363900), ("1:15:30.5", 4530.5),
        ("17 Uhr", 61200), ("2h 15m", None), ("90 min", None), ("PT2H15M", None), ("3A", None),
        ("120/80", None), ("17.30", None),
    ],
)  # fmt: skip
def test_clocks_and_durations_as_people_write_them(text, seconds):
    [found] = dates.of_day(pa.array([text]))
    assert np.isnan(found) if seconds is None else found == seconds


@pytest.mark.parametrize(
    ("years", "pivot"),
    [
        ([], 69), ([24, 25, 26], 69), ([40, 57, 94], 40), ([69, 80], 69), ([10, 40], 69),
        ([*range(30, 100), *range(26)], 30), (range(100), None),
    ],
)  # fmt: skip
def test_years_of_two_digits_follow_one_another(years, pivot):
    assert dates.pivot_of(years) == pivot


def test_points_in_time_that_name_their_zone():
    texts = pa.array(
        ["2026-05-15T10:00Z", "15.05.2026 10:00 +02:00", "15.05.2026 10:00", "x", None]
    )
    assert dates.say_zones(texts).tolist() == [True, True, False, False, False]
    np.testing.assert_array_equal(dates.seconds(texts, "dmy")[:3] / 3600 % 24, [10.0, 8.0, 10.0])


def test_years_of_two_digits_stand_first_or_last():
    texts = pa.array(["53-02-11", "11.02.94", "2026-05-15", "x"])
    assert dates.short_years(texts, "ymd") == {53, 11}
    assert dates.short_years(texts, "dmy") == {11, 94}


def test_names_of_months_are_read_in_the_language_of_their_column():
    polish, croatian = (pa.array([f"1 {word} 2026" for word in words]) for words in (
        ["lip", "sty"], ["lip", "sij"]
    ))  # fmt: skip
    month = [
        str(np.datetime64(int(dates.seconds(texts, "dmy", language)[0]), "s"))[5:7]
        for texts, language in ((polish, "pl"), (croatian, "hr"))
    ]
    assert month == ["07", "06"]


def test_a_reading_comes_back_from_json():
    reading = Reading(
        ("ERR",),
        ",",
        "dmy",
        {"a": "number"},
        ("id",),
        {"a": ColumnReading("number", ",", unit="kg")},
    )
    assert Reading.from_dict(reading.to_dict()) == reading
    assert Reading.from_dict(Reading().to_dict()) == Reading()


@pytest.mark.parametrize(
    "content",
    [
        {"missing": "ERR"},
        {"decimal": "x"},
        {"kinds": {"a": "colour"}},
        {"kinds": {"a": ["number"]}},
        {"columns": {"a": {"kind": "number"}}},
        {"columns": {"a": 3}},
        {"more": 1},
        {"layout": {"encoding": 3}},
        {"layout": {"query": "SELECT 1"}},
        [],
    ],
)
def test_what_is_no_reading_is_refused(content):
    with pytest.raises(PlanError):
        Reading.from_dict(content)


def test_what_was_said_again_decides_no_more_and_what_is_new_does():
    column = ColumnReading("number", ",")
    model = Reading(decimal=",", columns={"a": column, "b": ColumnReading("number", ".")})
    assert model.updated(Reading(decimal=",")).columns == model.columns
    assert model.updated(Reading(decimal=".")).columns["a"].decimal == "."
    assert model.updated(Reading(kinds={"a": "category"})).column("a").decimal == ","
    assert model.updated(Reading(missing=("x",))).missing == ("x",)


@pytest.mark.parametrize(
    "options", [{"decimal": ";"}, {"dates": "dym"}, {"kinds": {"a": "colour"}}]
)
def test_options_that_do_not_exist_are_refused(options):
    with pytest.raises(UsageError, match="needs"):
        Reading(**options)


def test_months_have_names_in_more_than_70_languages():
    assert len(words().months) > 70
    assert all(set(names.values()) == set(range(1, 13)) for names in words().months.values())
