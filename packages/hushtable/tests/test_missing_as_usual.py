"""A missing value of a feature with a usual one falls in the cells of that one."""

import numpy as np
import pyarrow as pa
import pytest

from hushtable import Feature, Plan, Schema, Sketch, load
from hushtable.data.encoding import Encoder
from hushtable.errors import PlanError
from hushtable.plans.draws import detectors

SCHEMA = Schema([
    Feature.numeric("potassium", low=0, high=12, usual=4.1),
    Feature.numeric("creatinine", low=0.1, high=60, usual=1),
    Feature.categorical("sex", ["female", "male", "other"], usual="male"),
    Feature.categorical("day", ["mon", "tue", "wed", "thu"], cyclic=True, usual="thu"),
])  # fmt: skip
BY_FEATURES = ("hushtable", "lsh_itables")


def counted(plan, row):
    counts = np.zeros(plan.family.n_cells, np.int64)
    kinds = [pa.float64(), pa.float64(), pa.string(), pa.string()]
    columns = [pa.array([value], kind) for value, kind in zip(row, kinds, strict=True)]
    rows = pa.RecordBatch.from_arrays(columns, names=plan.schema.names)
    plan.family.count(Encoder(plan.schema).encode(rows), counts)
    return counts


@pytest.mark.parametrize("detector", BY_FEATURES)
@pytest.mark.parametrize("seed", range(5))
def test_a_missing_value_is_in_the_cells_of_the_usual_one(detector, seed):
    assert detector in detectors()
    plan = Plan.draw(SCHEMA, detector=detector, random_state=seed)
    usual = [one.usual for one in SCHEMA.features]
    whole = counted(plan, usual)
    for j in range(len(usual)):
        some = [None if k == j else value for k, value in enumerate(usual)]
        np.testing.assert_array_equal(counted(plan, some), whole)
    odd = counted(plan, [9.8, *usual[1:]])
    assert (odd != whole).any()


def test_a_usual_value_travels_with_the_schema(tmp_path):
    for one in SCHEMA.features:
        assert Feature.from_dict(one.to_dict()) == one
    assert Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    assert SCHEMA.features[0].to_dict()["usual"] == 4.1
    assert "usual" not in Feature.numeric("x", low=0, high=1).to_dict()
    assert Feature.categorical("s", [" a", "b"], usual=" a").usual == "a"
    path = tmp_path / "s.toml"
    path.write_text(
        '[[feature]]\nname = "x"\nkind = "numeric"\nlow = 0\nhigh = 1\nusual = 0.5\n'
        '[[feature]]\nname = "s"\nkind = "categorical"\ncategories = ["a", "b"]\nusual = "b"\n'
    )
    assert [one.usual for one in Schema.from_toml(path).features] == [0.5, "b"]
    plan = Plan.draw(SCHEMA, random_state=0)
    plan.save(tmp_path / "plan.hush")
    assert load(tmp_path / "plan.hush").schema == SCHEMA
    rows = np.array([[4.0, 1.0]])
    numbers = Schema(SCHEMA.features[:2])
    assert Sketch.from_data(Plan.draw(numbers, random_state=0), rows).n_rows == 1


@pytest.mark.parametrize("wrong", [12.1, -1, float("nan"), float("inf"), "4.1"])
def test_a_usual_number_outside_the_range_is_refused(wrong):
    with pytest.raises(PlanError, match="needs a number in its range"):
        Feature.numeric("potassium", low=0, high=12, usual=wrong)


def test_a_usual_category_that_is_not_listed_is_refused():
    with pytest.raises(PlanError, match="needs one of its categories"):
        Feature.categorical("sex", ["female", "male"], usual="other")
    with pytest.raises(PlanError, match="needs one of its categories"):
        Feature.from_dict({
            "name": "sex", "kind": "categorical", "categories": ["a"], "usual": 1,
        })  # fmt: skip
