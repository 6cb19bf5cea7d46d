"""Features, schemas and their TOML."""

import math
import re

import numpy as np
import pytest

from hushtable import Feature, Schema
from hushtable.errors import PlanError

TOML = """
[[feature]]
name = "age"
kind = "numeric"
low = 0
high = 120
unit = "year"

[[feature]]
name = "sex"
kind = "categorical"
categories = ["f", "m", "x"]
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an empty file"),
        ("feature = 3", "needs one"),
        ("[[feature]]\nname = ", "not a TOML file"),
        ("\xff", "needs one|not a TOML"),
        ("title = 'x'\n" + TOML, "title"),
        (TOML.replace("low = 0\n", ""), "feature 'age': low not given: fill in the public range"),
        (TOML.replace("low = 0\nhigh = 120\n", ""), "low and high not given"),
        (TOML.replace("low = 0", "low = 'zero'"), "low 'zero' is not a number"),
        (TOML.replace("low = 0", "low = true"), "low True is not a number"),
        (TOML.replace("low = 0", "low = nan"), "finite"),
        (TOML.replace("low = 0", "low = -inf"), "finite"),
        (TOML.replace("low = 0", "low = 121"), "swap"),
        (TOML.replace("numeric", "number"), "kind 'number'"),
        (TOML.replace('"year"', "3"), "unit 3"),
        (TOML.replace('"age"', '"sex"'), "'sex' is listed twice"),
        (TOML.replace('"age"', '""'), "give it a name"),
        (TOML.replace('"m"', '"f"'), "'f' is listed twice"),
        (TOML.replace('"m"', "1"), "list of texts"),
        (TOML.replace('["f", "m", "x"]', '"fmx"'), "list of texts"),
        (TOML.replace("categories", "values"), "categories not given"),
        (TOML.replace("unit", "colour"), "unknown entries"),
    ],
)
def test_wrong_toml_is_refused(tmp_path, text, message):
    path = tmp_path / "schema.toml"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(PlanError, match=message):
        Schema.from_toml(path)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (math.nan, 1, "range [nan, 1.0]: needs two finite numbers"),
        (0, np.float64(math.inf), "range [0.0, inf]: needs two finite numbers"),
        ("a", 1, "range ['a', 1]: needs two finite numbers"),
        (
            np.float64(-1.7e308), np.float64(1.7e308),
            "range [-1.7e+308, 1.7e+308]: its width, high - low, is not finite: narrow the range",
        ),
        (2, 1, "low 2.0 is above high 1.0"),
    ],
)  # fmt: skip
def test_wrong_ranges_are_refused(low, high, said):
    with pytest.raises(PlanError, match=re.escape(f"feature 'x': {said}")):
        Feature.numeric("x", low=low, high=high)


def test_too_many_categories_are_refused():
    Feature.categorical("c", [str(i) for i in range(10_000)])
    with pytest.raises(PlanError, match="at most 10,000"):
        Feature.categorical("c", [str(i) for i in range(10_001)])


def test_empty_and_overlong_schemas_are_refused():
    with pytest.raises(PlanError, match="at least one"):
        Schema(())
    with pytest.raises(PlanError, match="at most 65,535"):
        Schema(tuple(Feature.categorical(str(i), ()) for i in range(65_536)))


def test_minus_zero_is_zero():
    assert Feature.numeric("x", low=-0.0, high=1).to_dict()["low"].hex() == "0x0.0p+0"
