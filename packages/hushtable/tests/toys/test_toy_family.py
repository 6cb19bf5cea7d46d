"""A hash family that is added by one file, and all that follows without a change of ours."""

import hashlib
import json
import sys
from importlib.metadata import EntryPoint

import jsonschema
import numpy as np
import pytest
import rfc8785

import places
from hushtable import Feature, Plan, Release, Schema, Sketch, files, load, plugins
from hushtable.counts import rounds
from hushtable.errors import FileError, UsageError
from hushtable.plans.draws import DRAWS, detectors, draw_of
from hushtable.plans.draws import register as register_draw
from hushtable.plans.families import FAMILIES, register
from hushtable.scores.scorer import Ranks, Scorer
from manifest_schema import manifest_schema
from strategies import second_pass, tampered

SCHEMA = Schema(tuple(Feature.numeric(f"x{j}", low=-5, high=5) for j in range(3)), named=False)


@pytest.fixture(scope="module", autouse=True)
def toy():
    """Let a plan's unknown name find the family, as if its package were installed."""
    point = EntryPoint("toy", "toy_family", plugins.DRAWS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins, "points", lambda group: {"toy": point})
        assert draw_of("stripes").family.name == "Stripes"
    yield sys.modules["toy_family"]
    del FAMILIES["Stripes"], DRAWS["stripes"], sys.modules["toy_family"]


@pytest.fixture(scope="module")
def plan():
    return Plan.draw(SCHEMA, detector="stripes", n_tables=12, random_state=0)


@pytest.fixture
def X(rng):
    return rng.normal(size=(200, 3)) + np.where(np.arange(200) < 2, 4.0, 0.0)[:, np.newaxis]


def test_it_is_known_by_its_registration(toy):
    assert "stripes" in detectors()
    assert register(toy.Stripes) is toy.Stripes
    with pytest.raises(UsageError, match="takes no max_samples"):
        Plan.draw(SCHEMA, detector="stripes", max_samples=3)
    marginals = Sketch.from_data(Plan.marginals(SCHEMA), np.zeros((1, 3)))
    with pytest.raises(UsageError, match="takes no marginals"):
        Plan.draw(SCHEMA, detector="stripes", marginals=marginals)
    with pytest.raises(UsageError, match="registered already"):
        register(type("Other", (toy.Stripes,), {}))
    with pytest.raises(UsageError, match="registered already"):
        register_draw(DRAWS["hushtable"].__class__("stripes", toy.Stripes, toy.STRIPES.score))


def test_it_merges_and_scores(plan, X):
    whole = Sketch.from_data(plan, X)
    parts = [Sketch.from_data(plan, part) for part in np.array_split(X, 3)]
    assert sum(parts, start=Sketch.zero(plan)) == whole
    assert whole.n_rows == 200
    assert whole - parts[0] == parts[1] + parts[2]
    scores = Scorer(whole).score(X)
    assert scores[:2].max() < np.quantile(scores, 0.1)
    ranks = Sketch.from_data(rounds.ranks(whole), X)
    assert Ranks(ranks, Scorer(whole)).of(scores).max() == 1.0
    second = second_pass(whole, X)
    assert Sketch.from_data(second, X).counts.sum() < whole.counts.sum()


def test_its_files_are_valid_and_come_back(plan, X, tmp_path):
    path = places.DOCS / "hush-manifest-1.schema.json"
    published = json.loads(path.read_text())
    validator = jsonschema.Draft202012Validator(manifest_schema(published))
    sketch = Sketch.from_data(plan, X)
    release = sketch.release(1.0)
    for name, made in {"plan": plan, "sketch": sketch, "release": release}.items():
        made.save(tmp_path / name)
        manifest = files.read(tmp_path / name).manifest
        validator.validate(manifest)
        assert list(jsonschema.Draft202012Validator(published).iter_errors(manifest))
        manifest["plan"]["family"]["cells"] = 65
        assert list(validator.iter_errors(manifest))
    assert load(tmp_path / "plan").plan_id == plan.plan_id
    assert load(tmp_path / "sketch") == sketch
    again = load(tmp_path / "release")
    assert isinstance(again, Release)
    assert (again.counts == release.counts).all()
    assert again.ledger.epsilon <= 1.0
    assert np.isfinite(Scorer(again).score(X)).all()


def test_its_arrays_are_checked_before_any_use(toy, plan, X, tmp_path, monkeypatch):
    def used(*_):
        pytest.fail("the arrays of a tampered plan were used")

    for method in ("count", "count_pairs", "sum", "_cells"):
        monkeypatch.setattr(toy.Stripes, method, used)
    found = list(tampered(plan.family))
    assert len(found) == 7  # dtype, shape, too large; too low only where a bound says so
    for name, array in found:
        arrays = plan.arrays() | {name: array}
        content = plan.to_dict()
        described = content | {"arrays": files.array_digests(arrays)}
        entries = {"plan": content, "plan_id": hashlib.sha256(rfc8785.dumps(described)).hexdigest()}
        there = tmp_path / "a.hush"
        files.write(there, "plan", entries, {f"plan.{n}": a for n, a in arrays.items()})
        with pytest.raises(FileError, match=name):
            Sketch.from_data(load(there), X)


def test_it_is_fuzzed_with_the_others(monkeypatch, plan):
    folder = places.ROOT / "tests" / "hardening" / "fuzz"
    monkeypatch.syspath_prepend(folder)
    import seeds
    import targets

    seeds.registered.cache_clear()
    targets._hush_seeds.cache_clear()
    plans = [files.unpack(seed, "a seed").manifest["plan"] for seed in targets._hush_seeds()]
    mine = [n for n, one in enumerate(plans) if one["detector"] == "stripes"]
    assert len(mine) == 3  # a plan, a sketch and a release
    rng, refused = np.random.default_rng(0), 0
    for n in range(150):
        program = bytes([mine[n % 3]]) + rng.bytes(12)
        try:
            targets.TARGETS["hush-edited"].read(program)
        except targets.HushTableError:
            refused += 1
    assert 30 < refused < 150
    targets._hush_seeds.cache_clear()
    seeds.registered.cache_clear()
