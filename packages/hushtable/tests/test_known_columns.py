"""Well-known columns: the file is sound, and names match what they mean and nothing else."""

import re
from importlib import resources

import pytest

from hushtable import Feature
from hushtable.cli.schema import _content, _words, known_column, known_columns

COLUMNS = known_columns()
RANGES = [(column, one) for column in COLUMNS for one in column.ranges]


def joined(name):
    return "".join(_words(name))


def test_entries_are_complete_and_matched_by_their_names():
    for column in COLUMNS:
        assert column.what
        assert column.names
        assert column.ranges or column.texts or column.codes, column.what
        for name in column.names:
            assert len(joined(name)) > 1, "a name of one letter says too little"
            snake = name.replace(" ", "_")
            camel = "".join(word.capitalize() for word in name.split())
            for spelling in (name, snake, snake.upper(), camel, f"max_{snake}", f"{snake}_2"):
                assert known_column(spelling).what == column.what, spelling


def test_ranges_are_some_and_have_their_units():
    for column, one in RANGES:
        assert one.low < one.high, column.what
        assert one.unit
        Feature.numeric(column.names[0], low=one.low, high=one.high, unit=one.unit)
        spellings = _content()["units"].get(one.unit, [])
        assert spellings or not one.only_if_named
        for spelling in spellings:
            found = known_column(f"{column.names[0]} ({spelling})")
            assert one in found.ranges, spelling
            assert {other.unit for other in found.ranges} <= {
                unit
                for unit, all_spellings in _content()["units"].items()
                if joined(spelling) in map(joined, all_spellings)
            }


def test_no_name_is_claimed_twice():
    names = [joined(name) for column in COLUMNS for name in column.names]
    assert sorted(names) == sorted(set(names))
    words = [word for c in COLUMNS for word in (*c.first_words, *c.last_words)]
    assert sorted(words) == sorted(set(words))


def test_every_unit_is_used_and_spelled_once():
    units = _content()["units"]
    assert set(units) <= {one.unit for _, one in RANGES}
    for spellings in units.values():
        assert len({joined(spelling) for spelling in spellings}) == len(spellings)


def test_alternatives_in_one_unit_say_what_they_are():
    for column in COLUMNS:
        offered = [(one.unit, one.what) for one in column.ranges]
        assert len(set(offered)) == len(offered), column.what


def test_categories_are_not_listed_twice():
    for column in COLUMNS:
        for categories in (*column.texts, *column.codes):
            Feature.categorical(column.names[0], categories)


def test_the_ranges_of_two_units_are_the_same_quantity():
    """Where one unit is a fixed multiple of the other: a slip of the pen would stand out."""
    times = {
        ("kg", "lb"): 2.2046, ("kg", "g"): 1000, ("m", "cm"): 100, ("in", "cm"): 2.54,
        ("ft", "in"): 12, ("kPa", "mmHg"): 7.5006, ("kPa", "Pa"): 1000, ("hPa", "Pa"): 100,
        ("MPa", "kPa"): 1000, ("bar", "kPa"): 100, ("bar", "psi"): 14.504, ("inHg", "hPa"): 33.864,
        ("fraction", "%"): 100, ("g/dL", "g/L"): 10, ("mg/dL", "mg/L"): 10, ("ng/mL", "ng/L"): 1000,
        ("10^9/L", "per microlitre"): 1000, ("m/s", "km/h"): 3.6, ("m/s", "mph"): 2.2369,
        ("m/s", "knots"): 1.9438, ("years", "months"): 12, ("years", "days"): 365.25,
        ("weeks", "days"): 7, ("days", "hours"): 24, ("ft", "m"): 0.3048,
    }  # fmt: skip
    compared = 0
    for column in COLUMNS:
        for a in column.ranges:
            for b in column.ranges:
                if a.what == b.what and (factor := times.get((a.unit, b.unit))):
                    for one, other in ((a.low, b.low), (a.high, b.high)):
                        assert one * factor == pytest.approx(other, rel=0.08, abs=1.0), column
                    compared += 1
    assert compared > 40


@pytest.mark.parametrize(
    ("name", "what", "units"),
    [
        ("hr", "heart rate", ["beats per minute"]),
        ("HR_mean", "heart rate", ["beats per minute"]),
        ("HeartRate (bpm)", "heart rate", ["beats per minute"]),
        ("sys_bp", "systolic blood pressure", ["mmHg"]),
        ("mean_bp", "mean arterial pressure", ["mmHg"]),
        ("SpO2", "oxygen saturation", ["%", "fraction"]),
        ("SpO2 [%]", "oxygen saturation", ["%"]),
        ("temp_f", "temperature", ["degrees Fahrenheit"] * 2),
        ("body_temp_c", "body temperature", ["degrees Celsius"]),
        ("Air temperature [K]", "air temperature", ["kelvin"]),
        ("weight", "body weight", ["kg", "lb"]),
        ("weight_lb", "body weight", ["lb"]),
        ("weight_g", "body weight", ["g"]),
        ("glucose", "glucose", ["mg/dL", "mmol/L"]),
        ("glucose_mmol", "glucose", ["mmol/L"]),
        ("crea µmol/L", "creatinine", ["µmol/L"]),
        ("crea μmol/L", "creatinine", ["µmol/L"]),  # a Greek letter, not the sign
        ("crp_mg", "C-reactive protein", ["mg/L", "mg/dL"]),
        ("Na (mEq/L)", "sodium", ["mmol/L or mEq/L"]),
        ("WBC 10^3/uL", "white blood cells", ["10^9/L"]),
        ("oilPressurePsi", "pressure", ["psi"]),
        ("voltage_2", "voltage", ["V"]),
        ("is_weekend", "yes or no", []),
        ("consent_flag", "yes or no", []),
        ("gender", "sex", []),
    ],
)
def test_names_and_their_units(name, what, units):
    found = known_column(name)
    assert (found.what, [one.unit for one in found.ranges]) == (what, units)


@pytest.mark.parametrize(
    "name",
    [
        "", "_", "x", "storage", "message", "page", "stage", "hour_rate", "heart_rate_variability",
        "hr_std", "age_group", "temp_file", "glucose_bpm", "sodium_mg", "gender_kg", "weighted",
        "heights_of_fall", "sexton", "plate", "monthly", "later", "price_change_pct", "is", "hrs",
        "hr_2019", "current_user", "mean", "max_2", "größe",
    ],
)  # fmt: skip
def test_near_misses(name):
    assert known_column(name) is None


def test_the_file_says_how_to_add_to_it():
    keys = {key for entry in _content()["column"] for key in entry}
    text = (
        resources.files("hushtable.cli").joinpath("known_columns.toml").read_text(encoding="utf-8")
    )
    head = text[: text.index("\nqualifiers")]
    documented = re.findall(r"^# {3}(\w+)(?:, (\w+))?(?: |$)", head, re.M)
    assert keys == {key for pair in documented for key in pair if key}
