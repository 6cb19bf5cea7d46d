"""Workers of an engine count by the counts of a model, and name infinities in their rows."""

import numpy as np
import pyarrow as pa
import pytest

import places
from hushtable import Feature, HushTable, Plan, Schema, files
from hushtable.counts.kinds import counts_from_file
from hushtable.counts.verdicts import LearnedModel
from hushtable.errors import DataError
from hushtable_connect.engines.work import count, counts_of


def test_the_counts_of_a_local_model_are_itself():
    path = places.GOLDEN / "protocol-1" / "rounds" / "local.hush"
    local = files.read(path).build(counts_from_file)
    assert counts_of(local) is local


def test_a_detector_that_learned_scores_by_its_verdicts():
    X = np.random.default_rng(0).normal(size=(300, 3))
    detector = HushTable(n_tables=20, random_state=0).fit(X)
    detector.learn(X[:4], [1, 1, 0, 0])
    assert isinstance(counts_of(detector), LearnedModel)


def test_an_infinity_is_named_by_its_row():
    plan = Plan.draw(Schema([Feature.numeric(name, low=0, high=9) for name in "ab"]))
    with pytest.raises(DataError, match=r"feature 'b' in row 0; needs"):
        count(plan, pa.table({"a": [0.0], "b": [-np.inf]}))
