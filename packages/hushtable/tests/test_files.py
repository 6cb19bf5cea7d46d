"""The .hush file: what comes back, what is refused, what survives."""

import hashlib
import itertools
import json
import os
import struct
from dataclasses import replace

import jsonschema
import numpy as np
import pyarrow as pa
import pytest
import rfc8785
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import places
from hushtable import (
    Feature,
    HushTable,
    Increment,
    LSHiTables,
    Periods,
    Plan,
    Release,
    Schema,
    Sketch,
    Verdicts,
    decoded,
    files,
    load,
)
from hushtable.counts import rounds
from hushtable.counts.verdicts import LearnedModel
from hushtable.data import read
from hushtable.errors import FileError, PlanError
from hushtable.plans.draws import ESTIMATORS
from hushtable.privacy import Horizon
from places import DOCS

GOLDEN = places.GOLDEN
SCHEMA = Schema(
    (
        Feature.numeric("age", low=0, high=120, unit="year"),
        Feature.categorical("sex", ["f", "m", "é"]),
        Feature.numeric("pulse", low=20.5, high=250),
    ),
    labels=0,
)  # as it was before texts were folded
ROWS = [[30.0, "f", 60.0], [121.0, "m", np.nan], [np.nan, None, 0.1], [50.0, "x", 99.9]]


def table():
    import pyarrow as pa

    columns = zip(*ROWS, strict=True)
    kinds = [pa.float64(), pa.string(), pa.float64()]
    arrays = [pa.array(c, k, from_pandas=True) for c, k in zip(columns, kinds, strict=True)]
    return pa.table(arrays, names=SCHEMA.names)


def golden(name):
    return load(GOLDEN / f"protocol-{files.PROTOCOL}" / f"{name}.plan.hush")


def plans():
    """Return plans of all kinds: drawn today, or by rules of older versions and read from files."""
    marginals = Plan.marginals(SCHEMA)
    counts = Sketch.from_data(marginals, table())
    settings = {"marginals": counts, "n_tables": 3, "n_cells": 16, "random_state": 1}
    refined, tails = golden("hushtable"), golden("tails")
    first = Sketch.from_data(tails, table())
    gate = rounds.gate(first)
    return {
        "gaps": Plan.draw(SCHEMA, **settings),
        "gaps-novelty": Plan.draw(SCHEMA, novelty=True, **settings),
        "gaps-labels": Plan.draw(replace(SCHEMA, labels=1), n_tables=3, n_cells=16, random_state=1),
        "beyond": golden("beyond"),
        "tails": tails,
        "gate": gate,
        "gated": rounds.second_pass(first, Sketch.from_data(gate, table())),
        "labels": golden("labels"),
        "novelty": golden("novelty"),
        "marginals": marginals,
        "hushtable": refined,
        "lsh-itables": Plan.draw(SCHEMA, detector="lsh_itables", n_tables=3, random_state=1),
        "ranks": rounds.ranks(Sketch.from_data(refined, table())),
    }


def verdicts():
    """Return a model of one pass, and verdicts on some of its rows."""
    plan = plans()["tails"]
    rows = table()
    told = ([1, 0, 0] * len(rows))[: len(rows)]
    return Sketch.from_data(plan, rows), Verdicts.from_data(plan, rows, told)


def score_digest(model):
    """Return a digest of the scores of all cells."""
    return hashlib.sha256(np.rint(model.cell_scores() * 2**20).astype("<i8").tobytes()).hexdigest()


def releases():
    """Three rounds at one site, and the sum of two sites; the noise differs at every call."""
    terms = {"epsilon": 1.0, "expected_rows": 100_000}

    def release(plan, **more):
        return Sketch.from_data(plan, table()).release(1.0, **more)

    plan = Plan.ranges(SCHEMA, **terms)
    rows = np.zeros(plan.family.n_cells, np.int64)
    rows[plan.family.offsets[:-1] + 1] = 100_000  # enough to find ranges by
    ranges = Sketch(plan, rows, np.zeros((3, 2), np.int64)).release(1.0)
    narrowed = ranges.ranges()
    marginals = release(Plan.marginals(narrowed, **terms))
    layout = {"n_tables": 3, "n_cells": 16, "random_state": 1}
    refined = Plan.draw(narrowed, marginals=marginals, **terms, **layout)
    north = release(Plan.draw(SCHEMA, **terms, **layout), share=0.5)
    south = release(north.plan, after=release(Plan.marginals(SCHEMA)))
    return {
        "ranges": ranges,
        "marginals": marginals,
        "hushtable": release(refined),
        "merged": north + south,
        "laplace": release(plans()["lsh-itables"], mechanism="laplace-per-table"),
        "accounted": release(refined),  # near the least epsilon, as the plan's marginals: from 0.2
    }


def stream_plan():
    layout = {"n_tables": 3, "n_cells": 16, "random_state": 1}
    horizon = Horizon.of(6, participations=2, apart=2)
    return Plan.draw(SCHEMA, epsilon=1.0, expected_rows=100_000, horizon=horizon, **layout)


def stream():
    """The plan, two increments and the periods of a site that a stream has, and a decoded sum."""
    plan = stream_plan()
    site = Periods(plan, epsilon=1.0, rows_per_person=2)
    months = Sketch.from_data(plan, table()), Sketch.zero(plan)
    first, second = (site.release(month) for month in months)
    return {
        "stream.plan": plan,
        "first.increment": first,
        "second.increment": second,
        "some.periods": site,
        "window.release": decoded([first, second], window=1),
    }


@pytest.fixture
def sketch_file(tmp_path):
    path = tmp_path / "a.hush"
    Sketch.from_data(plans()["hushtable"], table()).save(path)
    return path


def rewrite(path, change=lambda manifest: None, arrays=None, *, honest=True):
    """Write a file again with another manifest; ``honest`` gives it digests that fit."""
    content = files.read(path)
    manifest = json.loads(json.dumps(content.manifest))
    change(manifest)
    arrays = content.arrays if arrays is None else arrays
    if honest:
        manifest["arrays"] = files.array_digests(arrays)
        manifest["digest"] = files.digest(manifest)
    text = rfc8785.dumps(manifest).decode()
    path.write_bytes(safetensors.numpy.save(arrays, metadata={"hushtable": text}))


# --- round trips -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", plans())
def test_plans_and_sketches_come_back(tmp_path, name):
    plan = plans()[name]
    plan.save(tmp_path / "p.hush")
    again = load(tmp_path / "p.hush")
    assert isinstance(again, Plan)
    assert again.plan_id == plan.plan_id
    assert again.schema == plan.schema
    sketch = Sketch.from_data(plan, table())
    sketch.save(tmp_path / "s.hush")
    assert load(tmp_path / "s.hush") == sketch
    assert load(tmp_path / "s.hush") + sketch == sketch + sketch
    assert Sketch.from_data(again, table()) == sketch


@pytest.mark.parametrize(
    "detector",
    [
        HushTable(n_tables=7, random_state=3, contamination=0.1),
        HushTable(n_tables=7, passes=2, random_state=3),
        HushTable(random_state=np.random.RandomState(0), n_jobs=2),
        LSHiTables(n_tables=np.int64(6), max_samples=100, random_state=3),
    ],
)
def test_detectors_come_back(tmp_path, detector, X):
    detector.fit(X)
    detector.save(tmp_path / "d.hush")
    again = load(tmp_path / "d.hush")
    assert type(again) is type(detector)
    assert (again.score_samples(X) == detector.score_samples(X)).all()
    assert (again.predict(X) == detector.predict(X)).all()
    assert again.n_features_in_ == 4
    for name in ("n_tables", "contamination", "n_jobs"):
        assert getattr(again, name) == getattr(detector, name)
    if getattr(detector, "passes", 1) == 1:
        again.partial_fit(X)
        assert again.sketch_.n_rows == 2 * detector.sketch_.n_rows


@pytest.mark.parametrize("high", [2.0**53, 1e18, np.nextafter(1e21, 0), -(2.0**53) - 2])
def test_large_whole_numbers_come_back(tmp_path, high, rng):
    """RFC 8785 writes whole numbers up to 1e21 with all their digits."""
    low, high = sorted([0.0, high])
    schema = Schema([Feature.numeric("weight", low=low, high=high)])
    Plan.draw(schema, n_tables=3, random_state=0).save(tmp_path / "p.hush")
    again = load(tmp_path / "p.hush")
    again.save(tmp_path / "q.hush")
    assert again.schema == schema
    assert (tmp_path / "q.hush").read_bytes() == (tmp_path / "p.hush").read_bytes()
    X = low + rng.random((100, 2)) * (high - low)
    detector = HushTable(n_tables=3, random_state=0).fit(X)  # its quantiles are as large
    detector.save(tmp_path / "d.hush")
    assert (load(tmp_path / "d.hush").score_samples(X) == detector.score_samples(X)).all()


def test_the_manifest_keeps_its_published_schema(tmp_path, X):
    path = DOCS / "hush-manifest-1.schema.json"
    validator = jsonschema.Draft202012Validator(json.loads(path.read_text()))
    validator.check_schema(validator.schema)
    for name, plan in plans().items():
        plan.save(tmp_path / f"{name}.hush")
        Sketch.from_data(plan, table()).save(tmp_path / f"{name}.sketch.hush")
    for name, release in releases().items():
        release.save(tmp_path / f"{name}.release.hush")
        if name in ("hushtable", "merged"):
            release.plan.save(tmp_path / f"{name}.private.hush")
            HushTable.from_counts(release).save(tmp_path / f"{name}.detector.hush")
    for name, thing in stream().items():
        thing.save(tmp_path / f"{name}.hush")
    weights = Sketch.from_data(plan, table(), sample_weight=[3, 1, 1, 1])
    weights.save(tmp_path / "w.hush")
    Sketch.from_data(plan, table(), max_samples=2).save(tmp_path / "fresh.hush")
    HushTable().fit(X).save(tmp_path / "d.hush")
    for name, draw in ESTIMATORS.items():
        draw.estimator_class()(n_tables=3).fit(X).save(tmp_path / f"{name}.hush")
    texts = pa.table({"a": ["1,5", "ERR", "2,5"], "b": ["5.11.2026"] * 3, "c": ["x"] * 3})
    said = {"missing": ["ERR"], "kinds": {"c": "id"}, "dates": "dmy", "decimal": ","}
    HushTable(n_tables=3).fit(read(texts, drop=["b"], **said)).save(tmp_path / "read.hush")
    reading = files.read(tmp_path / "read.hush").manifest["reading"]
    assert set(reading) == {"missing", "decimal", "dates", "kinds", "drop", "columns"}
    for file in tmp_path.glob("*.hush"):
        validator.validate(files.read(file).manifest)
    # ... and says something: it refuses what the reader refuses.
    manifest = files.read(tmp_path / "d.hush").manifest
    for key in ("protocol", "kind", "digest", "arrays", "plan", "plan_id", "offset"):
        broken = {k: v for k, v in manifest.items() if k != key}
        assert list(validator.iter_errors(broken)), key
    manifest = files.read(tmp_path / "merged.release.hush").manifest
    for key in manifest["ledger"].keys() - {"accounting"}:  # files from before 0.2 have none
        broken = {k: v for k, v in manifest["ledger"].items() if k != key}
        assert list(validator.iter_errors(manifest | {"ledger": broken})), key
    kept = files.read(tmp_path / "some.periods.hush").manifest
    for key in ("terms", "start", "ledger", "plan"):
        assert list(validator.iter_errors({k: v for k, v in kept.items() if k != key})), key
        if key in ("terms", "start"):
            assert list(validator.iter_errors(manifest | {key: kept[key]})), key
    mixed = files.read(tmp_path / "first.increment.hush").manifest
    for odd in ({"window": 1}, {"period": 0}, {"horizon": {"factor": []}}):
        assert list(validator.iter_errors(mixed | {"ledger": mixed["ledger"] | odd})), odd
    assert list(validator.iter_errors(manifest | {"sampled": False}))
    assert list(validator.iter_errors(manifest | {"fresh_samples": True}))
    assert list(validator.iter_errors(manifest | {"hidden": True}))


# --- golden files: read for ever ---------------------------------------------------------------


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("protocol-*/*.hush")), ids=lambda f: f.name)
def test_golden_files_are_read(file):
    expected = json.loads((file.parent / "expected.json").read_text())[file.name]
    loaded = load(file)
    plan = loaded if isinstance(loaded, Plan) else loaded.plan
    assert plan.plan_id == expected["plan_id"]
    if isinstance(loaded, Sketch):
        assert np.flatnonzero(loaded.counts).tolist() == expected["cells"]
        if plan.first_counts is None or plan.gate_cell is not None:
            assert loaded == Sketch.from_data(plan, table())
    if isinstance(loaded, Verdicts):
        model, judged = verdicts()
        assert loaded == judged
        assert score_digest(LearnedModel(model, loaded)) == expected["scores"]
    if isinstance(loaded, Periods):
        assert [one.sum() for one in loaded.counts] == expected["rows"]
        loaded = loaded.increment(len(loaded))
        assert loaded.period == expected["period"]
    if isinstance(loaded, Increment):
        assert loaded.counts.sum() == expected["sum"]
        assert loaded.ledger.epsilon == pytest.approx(expected["epsilon"], abs=1e-6)
    if isinstance(loaded, Release):
        assert loaded.release_id == expected["release_id"]
        assert loaded.counts.sum() == expected["sum"]
        assert loaded.ledger.epsilon == pytest.approx(expected["epsilon"], abs=1e-6)


@pytest.mark.parametrize("name", ["verdicts.plan", "verdicts.sketch", "learned"])
def test_plans_of_private_verdicts_are_refused_with_a_way_on(name):
    with pytest.raises(FileError, match=r"after version 1\.0\.0rc1: learn from the site's own"):
        load(GOLDEN / "protocol-1" / "dropped" / f"{name}.hush")


def test_a_plan_for_relations_is_refused_with_a_way_on():
    with pytest.raises(FileError, match=r"find relations where the rows are"):
        load(GOLDEN / "protocol-1" / "dropped" / "relations.plan.hush")


def test_golden_files_are_what_is_written_today(tmp_path):
    """The same seed draws the same functions, on every platform and version."""
    folder = GOLDEN / f"protocol-{files.PROTOCOL}"
    expected = json.loads((folder / "expected.json").read_text())
    for name, plan in (plans() | {"gaps-stream": stream_plan()}).items():
        assert plan.plan_id == expected[f"{name}.plan.hush"]["plan_id"], name


def test_a_model_of_the_first_gate_scores_and_counts_no_more_rows():
    """The gate of version 0.1 was the mean density of all rows."""
    loaded = load(GOLDEN / "protocol-1" / "second-pass.sketch.hush")
    first = loaded.plan.first_counts
    again = np.log2(loaded.counts + 1.0) + np.log2(first + 0.05 * loaded.plan.first_rows)
    np.testing.assert_allclose(loaded.cell_scores(), again, atol=1e-6)
    assert loaded + Sketch.zero(loaded.plan) == loaded
    with pytest.raises(PlanError, match=r"from version 0\.1.*fit again, or draw a new plan"):
        Sketch.from_data(loaded.plan, table())


def test_golden_increments_decode_to_the_golden_sum():
    folder = GOLDEN / f"protocol-{files.PROTOCOL}"
    increments = [load(folder / f"{name}.increment.hush") for name in ("first", "second")]
    np.testing.assert_array_equal(
        decoded(increments, window=1).counts, load(folder / "window.release.hush").counts
    )
    kept = load(folder / "some.periods.hush")
    for period, increment in enumerate(increments, 1):
        np.testing.assert_array_equal(kept.increment(period).counts, increment.counts)


def test_every_truncation_is_refused(sketch_file):
    whole = sketch_file.read_bytes()
    for length in [*range(0, 64), *range(64, len(whole), 97), len(whole) - 1]:
        sketch_file.write_bytes(whole[:length])
        with pytest.raises(FileError, match=r"a\.hush"):
            load(sketch_file)


# --- damage ----------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_no_flipped_bit_goes_unnoticed(sketch_file, position, bit):
    whole = sketch_file.read_bytes()
    original = load(sketch_file)
    at = int(position * len(whole))
    flipped = bytearray(whole)
    flipped[at] ^= 1 << bit
    try:
        sketch_file.write_bytes(flipped)
        same = load(sketch_file) == original
    except FileError:
        same = True
    finally:
        sketch_file.write_bytes(whole)
    # Padding of the JSON header, and who wrote the file, may change without a change of meaning.
    assert same


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=400))
def test_noise_is_refused(tmp_path, content):
    (tmp_path / "noise.hush").write_bytes(content)
    with pytest.raises(FileError):
        load(tmp_path / "noise.hush")


def test_other_safetensors_files_are_refused(tmp_path):
    path = tmp_path / "a.hush"
    safetensors.numpy.save_file({"x": np.zeros(3)}, path)
    with pytest.raises(FileError, match="not one of hushtable"):
        load(path)
    for text in ("", "[]", "3", "{", "[" * 100_000, '{"protocol": 1}', '{"protocol": "1"}'):
        head = json.dumps({"__metadata__": {"hushtable": text}}).encode()
        path.write_bytes(struct.pack("<Q", len(head)) + head)
        with pytest.raises(FileError):
            load(path)


def set_in(*keys, value):
    def change(manifest):
        target = manifest
        for key in keys[:-1]:
            target = target[key]
        target[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "honest", "message"),
    [
        (set_in("protocol", value=2), True, "protocol 2, but this version reads up to 1: upgrade"),
        (set_in("protocol", value=0), True, "does not name a protocol"),
        (set_in("protocol", value=True), True, "does not name a protocol"),
        (set_in("kind", value="model"), True, "'model' is not among"),
        (set_in("kind", value={}), True, "{} is not among"),
        (set_in("kind", value="release"), True, "holds no release"),
        (set_in("kind", value="detector"), True, "detector None is unknown"),
        (set_in("sampled", value=True), False, "edited"),
        (set_in("plan", "schema", "features", 0, "high", value=99.0), False, "edited"),
        # An edit that makes the digests fit still has another plan id.
        (set_in("plan", "schema", "features", 0, "high", value=99.0), True, "plan id"),
        (set_in("plan_id", value="0" * 64), True, "plan id"),
        (set_in("plan", value=None), True, "a plan needs"),
        (set_in("plan", "schema", "features", value=[]), True, "at least one"),
        (set_in("plan", "schema", "features", 0, value=3), True, "must be a table"),
        (set_in("plan", "family", "name", value="os.system"), True, "unknown"),
        (set_in("plan", "family", "max_cells", value="16"), True, "needs a whole number"),
        (set_in("plan", "family", "rows", value=16), True, "nothing else"),
        (set_in("plan", "score", "name", value="eval"), True, "'eval' is unknown"),
        (set_in("plan", "score", "smoothing", value=-1), True, "smoothing"),
        (set_in("sampled", value="yes"), True, "holds no counts"),
        (set_in("largest_weight", value=0), True, "largest_weight=0"),
        (set_in("largest_weight", value=True), True, "largest_weight=True"),
        (set_in("largest_weight", value=1.5), True, r"largest_weight=1\.5"),
    ],
)
def test_edited_manifests_are_refused(sketch_file, change, honest, message):
    rewrite(sketch_file, change, honest=honest)
    with pytest.raises(FileError, match=message) as refused:
        load(sketch_file)
    assert str(refused.value).startswith(f"{sketch_file}: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f'"x":1{"0" * 400}', "edited after"),
        ('"x":"\\ud800"', "damaged"),
        ('"x":"\\u00e9"', "damaged"),
    ],
)
def test_a_manifest_without_a_canonical_form_is_refused(tmp_path, text, words):
    """Such as one with a number that no float holds, or with an escape for a letter."""
    path = tmp_path / "a.hush"
    manifest = f'{{"protocol":1,"kind":"sketch","arrays":{{}},"digest":"",{text}}}'
    path.write_bytes(safetensors.numpy.save({}, metadata={"hushtable": manifest}))
    with pytest.raises(FileError, match=words):
        files.read(path)


def bounded(monkeypatch, kind, **bound):
    changed = replace(files.KINDS[kind], bound=replace(files.KINDS[kind].bound, **bound))
    monkeypatch.setitem(files.KINDS, kind, changed)


def test_a_manifest_that_is_too_large(sketch_file, monkeypatch):
    size = len(rfc8785.dumps(files.read(sketch_file).manifest))
    sketch = load(sketch_file)
    bounded(monkeypatch, "sketch", size=size)
    assert load(sketch_file) == sketch
    bounded(monkeypatch, "sketch", size=size - 1)
    with pytest.raises(FileError, match="the manifest of a sketch is larger, or"):
        load(sketch_file)
    with pytest.raises(FileError, match="the sketch is too large for a file"):
        sketch.save(sketch_file)
    assert files.Bound(size=800, values=0).allows(b"\xc4" * 100)


def test_a_manifest_of_too_many_values(sketch_file, monkeypatch):
    text = rfc8785.dumps(files.read(sketch_file).manifest)
    values = sum(text.count(mark) for mark in (b",", b"{", b"["))
    bounded(monkeypatch, "sketch", values=values)
    sketch = load(sketch_file)
    bounded(monkeypatch, "sketch", values=values - 1)
    with pytest.raises(FileError, match="has far more values"):
        load(sketch_file)
    with pytest.raises(FileError, match="the sketch is too large for a file"):
        sketch.save(sketch_file)


@pytest.mark.parametrize(
    "hidden", ['"k\\u0069nd":"message"', '"kind" :"message"', '"kind":"messag\\u0065"']
)
def test_no_file_hides_its_kind_from_the_bound(tmp_path, monkeypatch, hidden):
    """The bound of a kind holds before anything is parsed, so its kind has to stand there.

    Also where the package that registers the kind has not been loaded yet.
    """
    monkeypatch.delitem(files.KINDS, "message", raising=False)
    text = f'{{"arrays":{{}},"digest":"",{hidden},"plan":{{"kind":"plan"}},"protocol":1}}'
    path = tmp_path / "a.hush"
    path.write_bytes(safetensors.numpy.save({}, metadata={"hushtable": text}))
    with pytest.raises(FileError, match="the manifest is damaged"):
        files.read(path)


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace(b'"writer"', b'"later"'),
        lambda text: text.replace(b',"writer"', b',"plan":{"writer":{"hushtable":"1"}},"writer"'),
        lambda text: text.replace(b'"digest":', b'"digest":"0","digest":'),
        lambda text: text.replace(b'"protocol":1', b'"protocol":1,"sampled":true'),
        lambda text: text[:-1] + text[text.index(b',"writer"') :],
    ],
)
def test_what_stands_twice_or_elsewhere_is_no_canonical_text(sketch_file, edit):
    content = files.read(sketch_file)
    text = edit(rfc8785.dumps(content.manifest))
    metadata = {"hushtable": text.decode()}
    sketch_file.write_bytes(safetensors.numpy.save(content.arrays, metadata=metadata))
    try:
        same = files.read(sketch_file).digest == content.digest
    except FileError:
        return
    assert same
    covered = {key: files.read(sketch_file).manifest.get(key) for key in content.manifest}
    assert covered == content.manifest


def test_edited_arrays_are_refused(sketch_file):
    arrays = dict(files.read(sketch_file).arrays)
    whole = sketch_file.read_bytes()
    for name, array, honest, message in [
        ("counts", arrays["counts"] + 1, False, "not the ones"),
        ("counts", arrays["counts"] - 9, True, "negative"),
        ("counts", arrays["counts"][:-1], True, "counts is"),
        ("counts", arrays["counts"].astype(np.float64), True, "counts is float64"),
        ("counts", None, True, "holds no counts"),
        ("extra", arrays["counts"], False, "not the ones"),
        ("plan.depth", arrays["plan.depth"] + 1, True, r"shape \(50,\): needs \(53,\)"),
        ("plan.cut", arrays["plan.cut"][::-1].copy(), True, "cuts must be"),
        ("plan.extra", arrays["counts"], True, "nothing else"),
    ]:
        sketch_file.write_bytes(whole)
        changed = {**arrays, name: array}
        changed = {key: value for key, value in changed.items() if value is not None}
        rewrite(sketch_file, arrays=changed, honest=honest)
        with pytest.raises(FileError, match=message):
            load(sketch_file)


def test_a_failed_write_keeps_the_old_file(sketch_file, monkeypatch):
    before = sketch_file.read_bytes()
    plan = plans()["marginals"]

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    for place, error in itertools.product(
        [(os, "fsync"), (os, "fstat"), (os, "replace")], [full, interrupted]
    ):
        with monkeypatch.context() as patch:
            patch.setattr(*place, error)
            with pytest.raises((OSError, KeyboardInterrupt)):
                plan.save(sketch_file)
        assert sketch_file.read_bytes() == before
        assert os.listdir(sketch_file.parent) == ["a.hush"]


# --- writing ---------------------------------------------------------------------------------


def test_places_that_cannot_be_written_or_read(tmp_path):
    plan = plans()["marginals"]
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "none" / "a.hush", tmp_path / "file" / "a.hush", tmp_path):
        with pytest.raises(FileError) as error:
            plan.save(place)
        assert str(error.value).startswith(f"{place}: ")  # not the temporary file beside it
        with pytest.raises(OSError, match=r"."):
            load(place)
    assert sorted(os.listdir(tmp_path)) == ["file"]


def test_leftovers_of_killed_writers_go_after_a_day(tmp_path):
    (tmp_path / "in").mkdir()
    left = [tmp_path / f"{name}.part" for name in (".a.12345678", ".a.87654321", "in/.a.12345678")]
    for path, times in zip(left, (None, (0, 0), (0, 0)), strict=True):
        path.touch()
        os.utime(path, times)
    files.remove_leftovers(tmp_path, "a")
    assert [path.exists() for path in left] == [True, False, True]
    files.remove_leftovers(tmp_path, "a", below=True)
    assert [path.exists() for path in left] == [True, False, False]


@pytest.mark.parametrize(
    "name", ["é", "Größe", "体温", "体温🌡", "\x01\x1f", "\\u00e9", "a\\", '","digest":"']
)
def test_texts_come_back_whatever_their_characters(tmp_path, name):
    schema = Schema([Feature.numeric(name, low=0, high=1), Feature.categorical("c", [name, "b"])])
    plan = Plan.draw(schema, n_tables=3, random_state=0)
    plan.save(tmp_path / "p.hush")
    again = load(tmp_path / "p.hush")
    assert again.schema == schema
    assert again.plan_id == plan.plan_id
    # Another writer's order and spaces change no digest, as before.
    manifest = files.read(tmp_path / "p.hush").manifest
    text = json.dumps(dict(reversed(manifest.items())), ensure_ascii=False).replace(
        '"kind": "plan"', '"kind":"plan"'
    )
    arrays = files.read(tmp_path / "p.hush").arrays
    path = tmp_path / "other.hush"
    path.write_bytes(safetensors.numpy.save(arrays, metadata={"hushtable": text}))
    assert load(path).plan_id == plan.plan_id
