"""The paper's other systems behave like the core's detectors: contract, algebra, files."""

import itertools
import json
import subprocess
import sys

import jsonschema
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

import naive
import places
from bounds import run_checked
from cli_helpers import do
from estimator_checks import some_checks, standard_errors
from hushtable import Feature, Plan, Schema, Sketch, files, load, plugins
from hushtable.data.encoding import Encoder
from hushtable.errors import FileError, PluginError, UsageError
from hushtable.kernels import BLOCK
from hushtable.plans import draws
from hushtable.plans.families import FAMILIES
from hushtable.scores.scorer import Scorer
from hushtable_bench import ACE, RotatedRSHash, RSHash
from manifest_schema import manifest_schema
from strategies import as_table, numbers, schemas, schemas_and_rows, words

SYSTEMS = [RSHash, RotatedRSHash, ACE]
DRAWS = {
    "rs_hash": {"n_tables": 5},
    "rotated_rs_hash": {"n_tables": 5},
    "ace": {"n_tables": 5, "n_bits": 6},
}
GOLDEN = places.GOLDEN / "protocol-1" / "systems"
SCHEMA = Schema([Feature.numeric(name, low=-6, high=6) for name in "abcd"])
#: Each draw has its own.
few = settings(max_examples=25)


def drawn(name, schema, seed=0):
    return Plan.draw(schema, detector=name, random_state=seed, **DRAWS[name])


# --- the estimators' contract -----------------------------------------------------------------


@some_checks(ACE(), RSHash(), RotatedRSHash(max_samples=10, contamination=0.1))
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:contamination=")  # some checks fit rows that are alike
@parametrize_with_checks([
    ACE(n_bits=4, contamination=0.1), RSHash(max_samples=10, contamination=0.1), RotatedRSHash(),
])  # fmt: skip
def test_scikit_learns_checks_of_other_settings(estimator, check):
    check(estimator)


# --- counts and scores, against the naive oracle ----------------------------------------------


@pytest.mark.parametrize("name", DRAWS)
@few
@given(data=schemas_and_rows(), seed=st.integers(0, 99))
def test_counts_and_scores_equal_the_oracles(name, data, seed):
    schema, rows = data
    plan, table = drawn(name, schema, seed), as_table(schema, rows)
    sketch = Sketch.from_data(plan, table)
    assert sketch.counts.tolist() == naive.count(plan, rows)
    sampled = Sketch.from_data(plan, table, max_samples=1000, random_state=0)
    assert sampled.counts.tolist() == sketch.counts.tolist()  # by a kernel of its own

    def exact(count):
        score = count if name == "ace" else np.log2(max(count, 1))
        return np.rint(score * 2**20) / 2**20

    expected = naive.scores_with_margin(plan, sketch.counts.tolist(), rows, exact)
    assert Scorer(sketch).score(table).tolist() == expected


@pytest.mark.parametrize("name", DRAWS)
def test_blocks_of_any_length(rng, name):
    # Lengths around the block's and the batches' sizes, where loops have their ends.
    schema = Schema((Feature.numeric("x", low=0, high=1), Feature.numeric("y", low=0, high=1)))
    plan = drawn(name, schema, 1)
    X = rng.random((2 * BLOCK + 1, 2))
    expected, before = np.zeros(plan.family.n_cells, np.int64), 0
    for n in (1, 2, 3, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 1):
        counts = np.zeros(plan.family.n_cells, np.int64)
        plan.family.count(Encoder(schema).encode(X[:n]), counts)
        expected += naive.count(plan, X[before:n].tolist())
        np.testing.assert_array_equal(counts, expected, err_msg=str(n))
        before = n


@pytest.mark.slow
def test_no_kernel_reads_or_writes_outside_its_arrays(tmp_path):
    run_checked(tmp_path, [{"detector": name} for name in ("ace", "rotated_rs_hash", "rs_hash")])


# --- the algebra, other rounds, noise -----------------------------------------------------------


@st.composite
def rows_and_one_more(draw):
    schema = draw(schemas(max_features=3))
    columns = [
        numbers if f.kind == "numeric" else st.one_of(st.none(), words) for f in schema.features
    ]
    rows = draw(st.lists(st.tuples(*columns), min_size=1, max_size=8))
    return schema, rows, draw(st.tuples(*columns))


@pytest.mark.parametrize("name", DRAWS)
@few
@given(rows_and_one_more())
def test_one_row_changes_exactly_one_cell_of_each_histogram_by_one(name, case):
    """What the privacy of a release rests on."""
    schema, rows, row = case
    plan = drawn(name, schema)
    assert not plan.data_dependent
    without = Sketch.from_data(plan, as_table(schema, rows)).counts
    change = Sketch.from_data(plan, as_table(schema, [*rows, row])).counts - without
    for first, last in itertools.pairwise(plan.family.offsets):
        assert sorted(change[first:last])[-2:] == [0, 1]
        assert change[first:last].sum() == 1


@pytest.mark.parametrize("make", SYSTEMS)
def test_standard_errors_equal_the_oracles(make, X):
    detector = make(n_tables=7, random_state=0).fit(X[:300])
    errors = detector.standard_errors(X[:300])
    np.testing.assert_allclose(
        errors, standard_errors(Scorer(detector.sketch_), X[:300]), atol=2e-3
    )
    assert errors.min() > 0.0


# --- what these tables cannot do ------------------------------------------------------------------


@pytest.mark.parametrize("make", [ACE, RSHash])
def test_no_explanations_no_verdicts(make, X):
    detector = make(n_tables=5, random_state=0).fit(X)
    for method in (detector.explain, detector.importances):
        with pytest.raises(UsageError, match="need HushTable or LSHiTables"):
            method(X)
    with pytest.raises(UsageError, match="use HushTable or LSHiTables"):
        detector.learn(X[:2], [0, 1])
    with pytest.raises(UsageError, match="use HushTable or LSHiTables"):
        detector.review(X)


@pytest.mark.parametrize("make", [ACE, RSHash])
def test_a_list_follows_the_scores_and_has_no_reasons(make, X):
    detector = make(random_state=0).fit(X)
    scores = detector.score_samples(X)
    table = detector.outliers(X, n=30)
    assert table.column_names == ["row", "severity", "rank", "score", "error", "outside"]
    assert table["row"].to_pylist() == np.argsort(scores, kind="stable")[:30].tolist()
    rare = [(scores <= score).mean() for score in table["score"].to_pylist()]
    np.testing.assert_allclose(table["severity"], 100.0 * (1.0 - np.array(rare)), atol=1e-9)
    np.testing.assert_array_equal(table["error"], detector.standard_errors(X)[table["row"]])
    meaning = detector._lowest(X, 3).meaning
    assert ("mean number of rows" if make is ACE else "at most one bit") in meaning
    assert ("bit" in meaning) == (make is RSHash)


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "detector",
    [
        RSHash(n_tables=6, random_state=3),
        RotatedRSHash(n_tables=6, random_state=3),
        ACE(n_tables=6, n_bits=5, random_state=3),
    ],
)
def test_models_come_back(tmp_path, detector, X):
    detector.fit(X)
    detector.save(tmp_path / "d.hush")
    again = load(tmp_path / "d.hush")
    assert type(again) is type(detector)
    assert (again.score_samples(X) == detector.score_samples(X)).all()
    assert (again.predict(X) == detector.predict(X)).all()
    for name, value in again.get_params().items():
        if name not in ("max_samples", "random_state"):
            assert getattr(detector, name) == value
    again.partial_fit(X)
    assert again.sketch_.n_rows == 2 * detector.sketch_.n_rows


@pytest.mark.parametrize("name", ["ace", "rs-hash", "rotated-rs-hash"])
def test_old_files_are_read_and_mean_the_same(name, tmp_path):
    expected = json.loads((GOLDEN / "expected.json").read_text())
    plan, sketch = (load(GOLDEN / f"{name}.{kind}.hush") for kind in ("plan", "sketch"))
    facts = expected[f"{name}.sketch.hush"]
    assert plan.plan_id == sketch.plan.plan_id == facts["plan_id"]
    assert np.flatnonzero(sketch.counts).tolist() == facts["cells"]
    again = Plan.draw(
        plan.schema,
        detector=name.replace("-", "_"),
        n_tables=3,
        random_state=1,
        **({"n_bits": 4} if name == "ace" else {}),
    )
    assert again == plan
    for made, kind in ((again, "plan"), (sketch, "sketch")):
        made.save(tmp_path / kind)
        assert load(tmp_path / kind) == made


def test_plans_counts_scores_and_thresholds_have_the_bits_of_before():
    bits = places.script(places.GOLDEN / "bits.py")
    X, found = bits.rows(), {}
    for name in ("ace", "rotated_rs_hash", "rs_hash"):
        options = {"n_bits": 10} if name == "ace" else {}  # fewer cells are quicker
        found |= bits.of_draw(name, X, **options)
        assert bits.of_draw(name, X, n_jobs=3, **options).items() <= found.items()
    assert found == json.loads((GOLDEN / "bits.json").read_text())


@pytest.mark.parametrize("name", DRAWS)
def test_manifests_keep_their_published_schema(name, tmp_path, X):
    published = json.loads((places.DOCS / "hush-manifest-1.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(published)
    model = draws.DRAWS[name].estimator_class()(n_tables=3).fit(X)
    for kind, made in {"plan": model.plan_, "sketch": model.sketch_, "model": model}.items():
        made.save(tmp_path / kind)
        manifest = files.read(tmp_path / kind).manifest
        validator.validate(manifest)
        manifest["plan"]["family"]["n_tables"] = 3
        assert list(validator.iter_errors(manifest))


def test_the_published_schema_has_every_registered_family():
    published = json.loads((places.DOCS / "hush-manifest-1.schema.json").read_text())
    assert manifest_schema(published) == published
    del published["$defs"]["tables"]["oneOf"][0], published["$defs"]["plan"]["properties"]["family"]
    with pytest.raises(KeyError):  # it makes the branches, not the rest
        manifest_schema(published)


# --- where the package is not installed --------------------------------------------------------


@pytest.fixture
def uninstalled(monkeypatch):
    """Let the core know nothing of this package."""
    for registry in (FAMILIES, draws.DRAWS, draws.ESTIMATORS):
        for name in list(registry):
            home = registry[name] if registry is FAMILIES else registry[name].family
            if home.__module__.startswith("hushtable_bench"):
                monkeypatch.delitem(registry, name)
    monkeypatch.setattr(plugins, "points", lambda group: {})


def test_messages_name_the_package_to_install(uninstalled, tmp_path, X):
    install = "needs the package hushtable-bench, .*not installed: pip install hushtable-bench"
    for path in sorted(GOLDEN.glob("*.hush")):
        before = path.read_bytes()
        with pytest.raises(FileError, match=f"{path.name}: hash family '.*' {install}"):
            load(path)
        assert path.read_bytes() == before
    with pytest.raises(UsageError, match=f"detector 'ace' {install}"):
        Plan.draw(SCHEMA, detector="ace")
    detector = RSHash(n_tables=3)  # of a process that has the package
    with pytest.raises(UsageError, match=f"'rs_hash' {install}"):
        detector.fit(X)
    with pytest.raises(UsageError, match=r"'forest' is unknown: needs one of \['hushtable', "):
        Plan.draw(SCHEMA, detector="forest")


def test_a_model_names_the_package_to_install(tmp_path, X, request):
    ACE(n_tables=3).fit(X).save(tmp_path / "m.hush")
    request.getfixturevalue("uninstalled")
    with pytest.raises(FileError, match="'ACE' needs the package hushtable-bench"):
        load(tmp_path / "m.hush")


@pytest.mark.parametrize("name", ["ACE", "RSHash", "RotatedRSHash"])
def test_the_old_import_names_the_new_one(name):
    with pytest.raises(
        ImportError, match=f"install hushtable-bench, .*hushtable_bench import {name}"
    ):
        exec(f"from hushtable import {name}")


def modules_after(statement):
    code = f"{statement}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_the_core_does_without_this_package_and_this_package_with_the_core_alone():
    assert "hushtable_bench" not in modules_after("from hushtable import HushTable, Plan, load")
    fitted = "ACE(n_tables=2).fit([[0.0, 1.0], [2.0, 3.0], [1.0, 1.0]])"
    found = modules_after(f"from hushtable_bench.systems import ACE, audit_canaries; {fitted}")
    others = {"hushtable_connect", "hushtable_federation", "matplotlib", "pooch", "pyod"}
    assert "numba" in found
    assert not others & found


def test_draws_that_do_not_load_are_reported(monkeypatch):
    def broken(group):
        yield None, PluginError("the plug-in 'x' does not load")

    monkeypatch.setattr(plugins, "each", broken)
    with pytest.raises(PluginError, match="'x' does not load"):
        Plan.draw(SCHEMA, detector="another")
    monkeypatch.delitem(FAMILIES, "SimHash", raising=False)
    with pytest.raises(FileError, match=r"ace.plan.hush: the plug-in 'x' does not load"):
        load(GOLDEN / "ace.plan.hush")


# --- commands -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind", "parameters"),
    [
        (["--detector", "rs-hash"], RSHash, {"max_samples": 1000}),
        (["--detector", "rotated-rs-hash"], RotatedRSHash, {"max_samples": 1000}),
        (["--detector", "ace", "--contamination", 0.1], ACE, {"n_bits": 15}),
    ],
)
def test_models_are_fitted_and_score_by_commands(site, tmp_path, options, kind, parameters):
    model, scores = tmp_path / "m.hush", tmp_path / "s.csv"
    do("fit", site / "rows.csv", "--seed", 1, *options, "-o", model)
    detector = load(model)
    assert type(detector) is kind
    assert parameters.items() <= detector.get_params().items()
    do("score", site / "rows.csv", "--model", model, "-o", scores)
    expected = detector.score_samples(site / "rows.csv")
    np.testing.assert_array_equal(pd.read_csv(scores)["score"], expected)


def test_commands_refuse_what_these_tables_cannot_do(site, refused, tmp_path):
    ace, plan, out = tmp_path / "ace.hush", tmp_path / "plan.hush", tmp_path / "out"
    do("fit", site / "rows.csv", "--detector", "ace", "-o", ace)
    do("plan", "draw", site / "schema.toml", "--detector", "ace", "-o", plan)
    assert load(plan).detector == "ace"
    asked = "such as those of HushTable and LSHiTables"
    refused("score", site / "rows.csv", "--model", ace, "--explain", "-o", out, code=2, says=asked)
    learn = ("learn", ace, site / "verdicts.csv", "--rows", site / "rows.csv", "-o", out)
    refused(*learn, code=2, says="use HushTable or LSHiTables")
    novel = ("fit", site / "rows.csv", "--detector", "ace", "--novelty", "-o", out)
    refused(*novel, code=2, says="--novelty works only with --detector hushtable")
    unknown = ("fit", site / "rows.csv", "--detector", "forest", "-o", out)
    refused(*unknown, code=2, says="'forest' is unknown")


def test_benchmarks_name_the_extra_that_they_need(run, monkeypatch):
    for name in ("cases", "runner"):
        monkeypatch.delitem(sys.modules, f"hushtable_bench.{name}", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    asked = run("bench", "paper")
    needed = "hushtable-federation, which is not installed: pip install 'hushtable[bench]'"
    assert (asked.code, asked.out) == (1, "")
    assert asked.err == f"hushtable: error: hushtable bench needs {needed}\n"


def test_every_draw_is_covered():
    mine = [n for n, d in draws.DRAWS.items() if d.family.__module__.startswith("hushtable_bench")]
    assert sorted(mine) == sorted(DRAWS)


@pytest.mark.parametrize("name", DRAWS)
def test_releases_merge_and_score(name, rng, tmp_path):
    pytest.importorskip("opendp", reason="releases need opendp")
    plan = drawn(name, SCHEMA)
    a, b = (Sketch.from_data(plan, rng.normal(size=(300, 4))).release(8.0) for _ in range(2))
    (a + b).save(tmp_path / "r.hush")
    again = load(tmp_path / "r.hush")
    assert (again.counts == a.counts + b.counts).all()
    assert again.ledger.sensitivity.tables == plan.family.n_histograms
    assert np.isfinite(Scorer(again).score(rng.normal(size=(9, 4)))).all()
