"""Models as JSON, and what is exported at all."""

import base64
import hashlib
import json
import os
import stat

import jsonschema
import numpy as np
import pyarrow as pa
import pytest
import rfc8785

import places
import scored
from hushtable import HushTable, Plan, Sketch, load
from hushtable.data import read
from hushtable.errors import FileError, UsageError
from hushtable.plans.families import FAMILIES, EquiWidth
from hushtable.plugins import registered
from hushtable_connect.exports import Model, export, formats, portable
from places import DOCS

# Some of the hostile categories are words for a missing value.
pytestmark = pytest.mark.filterwarnings("ignore:(?s).*mean that the value is missing")


SCHEMAS = {n: DOCS / f"hushtable-model-{n}.schema.json" for n in (1, 2)}
GOLDEN = places.GOLDEN / "protocol-1"


def array(packed):
    dtype = np.dtype(packed["dtype"]).newbyteorder("<")
    return np.frombuffer(base64.b64decode(packed["base64"]), dtype).reshape(packed["shape"])


def validator(protocol):
    found = jsonschema.Draft202012Validator(json.loads(SCHEMAS[protocol].read_text()))
    found.check_schema(found.schema)
    families = found.schema["properties"]["family"]["oneOf"]
    drawn = [registered(FAMILIES, name) for name in sorted(portable.FAMILIES)]  # some by bench
    assert families == [family.json_schema() for family in drawn]
    return found


def test_the_json_keeps_its_published_schema_and_all_bits():
    validators = {protocol: validator(protocol) for protocol in SCHEMAS}
    seen = set()
    for case in scored.everyday(1):
        model = Model.of(case.detector)
        written = portable.written(model)
        content = json.loads(written)
        assert content["protocol"] == 2
        validators[2].validate(content)
        assert written == rfc8785.dumps(content)
        covered = {k: v for k, v in content.items() if k not in ("digest", "writer")}
        assert content["digest"] == hashlib.sha256(rfc8785.dumps(covered)).hexdigest()
        np.testing.assert_array_equal(array(content["values"]), model.scorer.values, strict=True)
        family = model.plan.family
        np.testing.assert_array_equal(array(content["offsets"]), family.offsets)
        for name, drawn in family.arrays().items():
            np.testing.assert_array_equal(array(content["arrays"][name]), drawn, strict=True)
        ranges = [(f["low"], f["high"]) for f in content["features"] if f["kind"] == "numeric"]
        features = model.plan.schema.features
        assert ranges == [(f.low, f.high) for f in features if f.kind == "numeric"]
        assert content["threshold"] == case.detector.offset_
        assert content["exact_counts"]
        seen.add(family.name)
    assert seen == set(portable.FAMILIES)


def test_a_model_without_folded_texts_is_of_the_first_protocol(X):
    for model in (load(GOLDEN / "hushtable.sketch.hush"), HushTable(random_state=0).fit(X)):
        content = json.loads(portable.written(Model.of(model)))
        assert content["protocol"] == 1
        assert "labels" not in content
        validator(1).validate(content)


def test_a_detector_and_its_file_give_the_same_bytes_to_its_owner_alone(tmp_path, X):
    detector = HushTable(n_tables=4, random_state=0).fit(X)
    detector.save(tmp_path / "model.hush")
    os.umask(os.umask(0o022))
    export(detector, tmp_path / "a.json")
    export(tmp_path / "model.hush", tmp_path / "B.JSON")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "B.JSON").read_bytes()
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "name", ["hushtable.sketch", "hushtable.release", "rounds/local", "models/two-passes"]
)
def test_counts_and_their_files_are_models_alike(name):
    path = GOLDEN / f"{name}.hush"
    there, here = Model.of(path), Model.of(load(path))
    np.testing.assert_array_equal(there.scorer.values, here.scorer.values)
    assert there.threshold == here.threshold or np.isnan([there.threshold, here.threshold]).all()


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("marginals.sketch", "holds marginals, which do not score"),
        ("gate.sketch", "counts for a gate, which do not score"),
        ("ranks.sketch", "holds ranks, which do not score"),
        ("dropped/verdicts.sketch", "learn from the site's own verdicts"),
        ("hushtable.plan", "holds a plan: give a model"),
    ],
)
def test_files_that_do_not_score(name, words, tmp_path):
    with pytest.raises(FileError, match=words):
        export(GOLDEN / f"{name}.hush", tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("word", "other"), [("-9", "3"), ("n.b.", "north")])
def test_a_model_that_takes_values_for_missing(tmp_path, word, other):
    rows = tmp_path / "rows.csv"
    lines = (f"{i % 7},{word if i % 3 else i % 11},{other}" for i in range(90))
    rows.write_text("a,b,c\n" + "\n".join(lines))
    detector = HushTable(n_tables=4, random_state=0).fit(read(rows, missing=[word]))
    with pytest.raises(UsageError, match=f"reads '{word}' as missing values, which an export"):
        export(detector, tmp_path / "model.json")
    detector.save(tmp_path / "model.hush")
    with pytest.raises(UsageError, match=f"'{word}'"):
        export(tmp_path / "model.hush", tmp_path / "model.json")


def test_tables_that_the_format_does_not_describe(X):
    model = Model.of(HushTable(n_tables=4, random_state=0).fit(X))
    object.__setattr__(model.scorer.plan, "family", EquiWidth(model.plan.schema, 4))
    with pytest.raises(UsageError, match="of the family 'EquiWidth', which hushtable-model 2 does"):
        portable.written(model)


def test_wrong_usage(tmp_path, X):
    detector = HushTable(n_tables=4, random_state=0).fit(X)
    with pytest.raises(UsageError, match="colour is not an option: leave it out for ONNX"):
        export(detector, tmp_path / "model.onnx", colour="red")
    with pytest.raises(UsageError, match="a list: needs a fitted detector or counts"):
        export([1, 2], tmp_path / "model.json")
    with pytest.raises(UsageError, match="a HushTable: needs a fitted detector"):
        export(HushTable(), tmp_path / "model.json")
    with pytest.raises(UsageError, match="no rows were counted"):
        export(Sketch.zero(Plan.draw(detector.plan_.schema, n_tables=3)), tmp_path / "model.json")
    assert not list(tmp_path.iterdir())
    assert set(formats()) == {".onnx", ".sql", ".json"}


@pytest.mark.parametrize("ending", ["json", "onnx", "sql"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"context": "ward"}, "context"),
        ({"relations": True}, "relations"),
        ({"time": "at", "entity": "who"}, "history_columns"),
    ],
)
def test_what_needs_more_than_the_row_is_refused(options, words, ending, rng, tmp_path):
    n = 200
    rows = pa.table(
        {
            "ward": rng.choice(["a", "b"], n),
            "who": rng.choice(["ann", "bob"], n),
            "at": pa.array(np.arange(n) * 3600).cast(pa.timestamp("s")),
            "x": rng.normal(size=n),
            "y": rng.normal(size=n),
        }
    )
    model = HushTable(**options, n_tables=4, random_state=0).fit(rows)
    for source in (model, *([] if words == "history_columns" else [model.sketch_])):
        with pytest.raises(UsageError, match=words):
            export(source, tmp_path / f"model.{ending}")
    assert not list(tmp_path.iterdir())
