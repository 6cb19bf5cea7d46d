"""A saved model is read for ever, and scores as on the day when it was saved."""

import json

import pytest

import places

models = places.script(places.GOLDEN / "make_models.py")
EXPECTED = json.loads(models.EXPECTED.read_text())

pytestmark = pytest.mark.usefixtures("each_build")


@pytest.mark.parametrize("file", sorted(models.FOLDER.glob("*.hush")), ids=lambda f: f.name)
def test_golden_models_score_as_they_did(file):
    assert models.facts(file) == EXPECTED[file.name]


def test_every_golden_model_is_there():
    assert {file.name for file in models.FOLDER.glob("*.hush")} == set(EXPECTED)
    assert len(EXPECTED) >= 3
