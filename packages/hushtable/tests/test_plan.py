"""Plans: what they are named by, what they say of each other, what they depend on."""

import dataclasses

import numpy as np
import pytest

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.errors import PlanError, UsageError
from hushtable.plans.score_rule import ScoreRule
from strategies import second_pass

PUBLIC = Schema((Feature.numeric("x", low=0, high=1), Feature.categorical("c", ["a", "b"])))
ROWS = np.array([[0.1, "a"], [0.9, "b"], [None, "a"]], dtype=object)


def test_a_public_plan_depends_on_the_schema_and_the_seed_only():
    plan = Plan.draw(PUBLIC, random_state=1)
    assert not plan.data_dependent
    assert not Plan.marginals(PUBLIC).data_dependent
    Sketch.from_data(plan, ROWS)
    assert plan.plan_id == Plan.draw(PUBLIC, random_state=1).plan_id


def test_what_comes_from_data_says_so():
    inferred = dataclasses.replace(PUBLIC, public=False)
    assert Plan.draw(inferred, random_state=1).data_dependent
    assert Plan.marginals(inferred).data_dependent
    marginals = Sketch.from_data(Plan.marginals(PUBLIC), ROWS)
    refined = Plan.draw(PUBLIC, marginals=marginals, random_state=1)
    assert refined.data_dependent
    plan = Plan.draw(PUBLIC, random_state=1)
    assert second_pass(Sketch.from_data(plan, ROWS), ROWS).data_dependent


@pytest.mark.parametrize(
    "other",
    [
        Schema((Feature.numeric("y", low=0, high=1), PUBLIC.features[1])),
        Schema((Feature.numeric("x", low=0, high=1, unit="m"), PUBLIC.features[1])),
        Schema((PUBLIC.features[0], Feature.categorical("c", ["b", "a"]))),
        dataclasses.replace(PUBLIC, public=False),
        dataclasses.replace(PUBLIC, named=False),
    ],
)
def test_every_part_of_the_schema_is_in_the_id(other):
    mine, theirs = (Plan.draw(schema, random_state=1) for schema in (PUBLIC, other))
    assert mine.plan_id != theirs.plan_id
    assert mine.difference(theirs) != "nothing"
    assert mine.difference(mine) == "nothing"


def test_rounds_that_do_not_fit_are_refused():
    plan = Plan.draw(PUBLIC, random_state=1)
    counts = Sketch.from_data(plan, ROWS)
    with pytest.raises(PlanError, match=r"counted under another plan.*'marginals'"):
        Plan.draw(PUBLIC, marginals=counts)
    marginals = Sketch.from_data(Plan.marginals(PUBLIC), ROWS)
    with pytest.raises(UsageError, match="takes no marginals"):
        Plan.draw(PUBLIC, detector="lsh_itables", marginals=marginals)
    with pytest.raises(PlanError, match="counted no rows"):
        second_pass(Sketch.zero(plan), ROWS)
    second = second_pass(counts, ROWS)
    with pytest.raises(UsageError, match="a third gains nothing"):
        second_pass(Sketch.from_data(second, ROWS), ROWS)


def test_a_plan_says_what_it_is():
    plan = Plan.draw(PUBLIC, n_tables=3, random_state=1)
    assert repr(plan) == (
        "Plan('hushtable', 2 features, 3 tables, 768 cells, " + f"plan_id={plan.plan_id[:12]!r})"
    )


def test_a_rule_of_a_damaged_plan_that_is_no_text_is_refused():
    with pytest.raises(PlanError, match="is unknown: needs one of"):
        ScoreRule({"name": "log2"})


def test_plans_do_not_change():
    plan = Plan.draw(PUBLIC, random_state=1)
    second = second_pass(Sketch.from_data(plan, ROWS), ROWS)
    for array in (*plan.family.arrays().values(), second.first_counts):
        with pytest.raises(ValueError, match="read-only"):
            array[:1] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.detector = "other"
