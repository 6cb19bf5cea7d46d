"""Home models: a site's own rows beside the counts of all others."""

import stat

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from hushtable import Feature, Plan, Schema, Sketch, load
from hushtable.cli import main
from hushtable.counts import rounds
from hushtable.errors import DataError, FileError, PlanError, UsageError
from hushtable_federation import HomeModel

SCHEMA = Schema([
    Feature.numeric("temperature", low=30, high=110, unit="C"),
    Feature.numeric("pulse", low=20, high=220),
    Feature.categorical("ward", ["medical", "surgical", "renal"]),
])  # fmt: skip


def patients(n, seed, wards=("medical", "surgical")):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "temperature": rng.normal(37.0, 0.5, n).round(1),
        "pulse": rng.normal(75, 12, n).round(),
        "ward": rng.choice(list(wards), n),
    })  # fmt: skip


@pytest.fixture(scope="module")
def others():
    plan = Plan.draw(
        SCHEMA, random_state=0, marginals=Sketch.from_data(Plan.marginals(SCHEMA), patients(500, 9))
    )
    return Sketch.from_data(plan, patients(6000, 1))


@pytest.fixture(scope="module")
def marginals():
    return Sketch.from_data(Plan.marginals(SCHEMA), patients(6000, 1))


@pytest.fixture(scope="module")
def fahrenheit():
    """A site of which three devices in five report Fahrenheit."""
    rows = patients(600, 2)
    rows.loc[:359, "temperature"] = (rows.loc[:359, "temperature"] * 1.8 + 32).round(1)
    return rows


@pytest.fixture(scope="module")
def home(fahrenheit, others, marginals):
    return HomeModel.fit(fahrenheit, others, marginals=marginals, random_state=0)


def test_what_is_systematic_here_is_seen_by_the_others_alone(home, fahrenheit):
    found = home.scores(fahrenheit)
    kinds = np.array(found.kinds)
    assert (kinds[:360] == "systematic").mean() > 0.9
    assert (kinds[360:] == "systematic").mean() < 0.05
    assert home.weight == 1.0
    low = -found.score
    planted = np.arange(600) < 360
    assert roc_auc_score(planted, low) > 0.95
    assert roc_auc_score(planted, -found.here) < 0.6
    words = home.outliers(fahrenheit, n=20).to_pylist()
    assert all(one["row"] < 360 for one in words)
    assert words[0]["words"].startswith("common here, rare elsewhere: temperature")


def test_reasons_of_what_is_systematic_are_beside_the_other_sites(home, fahrenheit, others):
    """Usual is what the other sites' histograms say; without these, what the own rows say."""
    found = home.outliers(fahrenheit, n=60)
    systematic = [w for w, k in zip(found["words"].to_pylist(), found["kind"].to_pylist(),
                                    strict=True) if k == "systematic"]  # fmt: skip
    assert systematic
    assert not any("in a range of" in words for words in systematic)
    values = home._usual_elsewhere().values
    low, _, high = values[home.here.plan_.schema.names.index("temperature")].middle
    assert any(f"usually {low:.4g} to {high:.4g}" in words for words in systematic)
    bare = HomeModel.fit(fahrenheit, others, random_state=0)
    assert not any(
        "in a range of" in words for words in bare.outliers(fahrenheit, n=60)["words"].to_pylist()
    )


def test_histograms_have_to_belong_to_the_plan(others, marginals, fahrenheit):
    with pytest.raises(PlanError, match="not histograms"):
        HomeModel.fit(fahrenheit, others, marginals=others)
    of_others = Sketch.from_data(Plan.marginals(Schema(SCHEMA.features[:2])), np.zeros((20, 2)))
    with pytest.raises(PlanError, match="histograms belong to the columns temperature, pulse;"):
        HomeModel.fit(fahrenheit, others, marginals=of_others)
    first = others
    gate = Sketch.from_data(rounds.gate(first), patients(6000, 1))
    second = Sketch.from_data(rounds.second_pass(first, gate), patients(6000, 1))
    with pytest.raises(PlanError, match="second pass counts only dense rows"):
        HomeModel.fit(fahrenheit, second, marginals=marginals)
    assert np.isfinite(HomeModel.fit(fahrenheit, second).scores(fahrenheit).score).all()


def test_rows_of_other_kinds(others):
    rows = patients(600, 3, wards=["medical"])
    rows.loc[0] = 37.0, 75, "surgical"  # nothing else here, and half of the others
    rows.loc[1] = 42.9, 190, "medical"
    home = HomeModel.fit(rows, others, random_state=0)
    found = home.scores(rows)
    assert found.kinds[:2] == ["visitor", "outlier"]
    assert found.kinds.count("ordinary") > 500
    words = {one["row"]: one["words"] for one in home.outliers(rows, n=60).to_pylist()}
    assert words[0].startswith("rare here, usual elsewhere: ward surgical")
    assert words[1].startswith("rare here and elsewhere: ")


def test_a_site_like_the_others_ranks_by_its_own_rows(others):
    rows = patients(600, 4)
    home = HomeModel.fit(rows, others, random_state=0)
    assert home.weight < 0.5
    found = home.scores(rows)
    assert np.argsort(found.score)[0] == np.argsort(found.here)[0]


def test_the_rarest_rows_have_no_ties(others):
    """Quantiles of many rows are kept, and new rows are rarer than all of them."""
    rows = patients(20_000, 8)
    home = HomeModel.fit(rows, others, random_state=0)
    rows.loc[:9, "temperature"] = np.linspace(45, 109, 10)
    found = home.scores(rows)
    lowest = np.sort(found.score)[:300]
    assert len(np.unique(lowest)) > len(np.unique(np.sort(found.here)[:300])) * 0.95
    order = np.argsort(found.here, kind="stable")
    assert (np.diff(found.score[order]) >= 0.0).all() or home.weight > 0.0


def test_a_file_keeps_it_for_its_owner_alone(tmp_path, home, fahrenheit):
    path = tmp_path / "home.hush"
    home.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = load(path)
    assert isinstance(again, HomeModel)
    assert again.weight == home.weight
    a, b = home.scores(fahrenheit), again.scores(fahrenheit)
    np.testing.assert_array_equal(a.score, b.score)
    assert a.kinds == b.kinds
    assert repr(home).startswith("HomeModel(600 rows here, about 6,000 elsewhere")


@pytest.mark.parametrize(
    "command", ["merge", "release", "export", "drift", "report", "plan ranks", "learn"]
)
def test_no_other_command_takes_it(tmp_path, home, capsys, command):
    path = tmp_path / "home.hush"
    home.save(path)
    (tmp_path / "v.csv").write_text("temperature,pulse,ward,verdict\n37,70,renal,fine\n")
    more = {
        "merge": [str(path)], "release": ["--epsilon", "1"], "drift": [str(path)],
        "learn": [str(tmp_path / "v.csv")],
    }  # fmt: skip
    code = main(
        [*command.split(), str(path), *more.get(command, []), "-o", str(tmp_path / "o.onnx")]
    )
    assert code in (1, 2)
    assert capsys.readouterr().err
    assert not (tmp_path / "o.onnx").exists()


def test_score_writes_both(tmp_path, home, fahrenheit, capsys):
    model, rows, out = (str(tmp_path / name) for name in ("home.hush", "rows.csv", "out.csv"))
    home.save(model)
    fahrenheit.assign(id=[f"P{i}" for i in range(600)]).to_csv(rows, index=False)
    assert main(["score", rows, "--model", model, "--id", "id", "-o", out]) == 0
    printed = capsys.readouterr().out
    assert "common here, rare elsewhere" in printed
    scores = pd.read_csv(out)
    assert list(scores) == ["row", "score", "outlier", "id", "here", "elsewhere", "kind"]
    found = home.scores(fahrenheit)
    np.testing.assert_allclose(scores["score"], found.score)
    assert scores["kind"].tolist() == found.kinds
    assert main(["score", rows, "--model", model, "--id", "id", "--top", "9", "-o", out]) == 0
    listed = pd.read_csv(out)
    both = ["here", "elsewhere"]
    assert list(listed) == [
        *("row", "id", "score", *both, "kind"),
        *(f"{name}_error" for name in both),
        *(f"severity_{name}" for name in both),
        "words",
    ]
    assert (listed[["here_error", "elsewhere_error"]] > 0.0).all(axis=None)
    assert listed[["severity_here", "severity_elsewhere"]].stack().between(0.0, 100.0).all()
    assert (listed["severity_elsewhere"] > 90.0).all()  # the fault is rare elsewhere
    assert len(listed) == 9
    assert listed["id"][0] == f"P{listed['row'][0]}"
    capsys.readouterr()
    assert main(["inspect", model]) == 0
    printed = capsys.readouterr().out
    assert "600" in printed
    assert "no: it holds exact counts, and values of rows" in printed
    assert main(["score", rows, "--model", model, "--contamination", "5", "-o", out]) == 2
    assert "a home model has two scores" in capsys.readouterr().err
    assert main(["score", rows, "--model", model, "-o", str(tmp_path / "out.xlsx")]) == 2


def test_what_cannot_be_is_refused(tmp_path, home, others, fahrenheit):
    with pytest.raises(DataError, match="9 rows; the site's own model needs at least 10"):
        HomeModel.fit(fahrenheit[:9], others)
    with pytest.raises(DataError, match="no column"):
        HomeModel.fit(fahrenheit.drop(columns="pulse"), others)
    with pytest.raises((PlanError, UsageError)):
        HomeModel.fit(fahrenheit, Sketch.from_data(Plan.marginals(SCHEMA), patients(50, 1)))
    with pytest.raises(UsageError, match="no row"):
        HomeModel.fit(fahrenheit, Sketch.zero(others.plan))
    home.save(tmp_path / "home.hush")
    from hushtable import files

    content = files.read(tmp_path / "home.hush")
    for wrong in ({}, {"elsewhere": {}}, {"here": 3}):
        entries = {
            k: v for k, v in content.manifest.items() if k in ("here", "elsewhere", "own_rows")
        }
        arrays = (
            dict(content.arrays)
            if wrong
            else content.arrays | {"own_rows.beyond": np.ones(2) * [2, 1]}
        )
        files.write(tmp_path / "wrong.hush", "home", entries | wrong, arrays)
        with pytest.raises(FileError):
            load(tmp_path / "wrong.hush")
