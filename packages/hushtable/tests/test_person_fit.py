"""Models of some rows of each person: who comes often does not become usual by that alone."""

import numpy as np
import pandas as pd
import pytest

from hushtable import HushTable, LSHiTables
from hushtable.errors import DataError, UsageError


@pytest.fixture
def visits(rng):
    """Rows of 600 patients, one of whom has 400 rows that are unlike all others."""
    n = 3_000
    rows = pd.DataFrame({"patient": rng.integers(600, size=n).astype(str), "a": rng.normal(size=n)})
    rows["b"] = rng.normal(size=n)
    rows.loc[:399, "patient"] = "often"
    rows.loc[:399, ["a", "b"]] = 6.0
    return rows.sample(frac=1.0, random_state=1, ignore_index=True)


@pytest.mark.parametrize("most", [1, 3])
def test_at_most_so_many_rows_of_each_are_used(visits, most):
    model = HushTable(passes=1, random_state=0).fit(visits, person="patient", rows_per_person=most)
    expected = visits.groupby("patient").size().clip(upper=most).sum()
    assert model.sketch_.n_rows == expected
    seen = model.persons_
    assert (seen.n_rows, seen.left_out, seen.most) == (3_000, 3_000 - expected, most)
    assert seen.n_persons == visits["patient"].nunique()
    assert list(model.feature_names_in_) == ["a", "b"]
    assert HushTable(passes=1, random_state=0).fit(visits[["a", "b"]]).persons_ is None


def test_each_of_a_person_s_rows_may_be_the_one(visits):
    """No place in a file is preferred."""
    visits["a"] = np.arange(len(visits)) + 0.5
    ranges = []
    for shift in range(3):
        rows = visits.iloc[np.roll(np.arange(len(visits)), shift)]
        model = HushTable(passes=1, random_state=0).fit(
            rows[rows["patient"] != "often"], person="patient"
        )
        ranges.append(model.plan_.schema.features[0])
    assert len({(one.low, one.high) for one in ranges}) > 1


def test_no_column_of_persons(visits):
    for rows, person, says in (
        (visits, "nobody", "has no column"),
        (visits[["a", "b"]].to_numpy(), "patient", "has no column"),
        (visits.assign(patient="one"), "patient", "all 3,000 rows belong to one person"),
        (visits.assign(patient=visits["patient"].where(visits["a"] > 0)), "patient", "is empty in"),
    ):
        with pytest.raises(DataError, match=says):
            HushTable().fit(rows, person=person)
    with pytest.raises(UsageError, match="leave sample_weight"):
        HushTable().fit(visits, person="patient", sample_weight=np.ones(len(visits), int))
    for model in (HushTable(), LSHiTables()):
        with pytest.raises(UsageError, match="without person="):
            model.fit(visits[["a", "b"]], rows_per_person=2)
