"""``hushtable bench sites``: what it measures, on a made-up set."""

import numpy as np
import pytest

from hushtable_bench import figures, sites
from hushtable_bench.data import LabelledSet
from hushtable_bench.results import Results


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """All steps on 300 rows with one seed, over three numbers of sites."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = np.arange(300) < 12
    X[y] = rng.uniform(-6.0, 6.0, (12, 4))
    found = Results(tmp_path_factory.mktemp("sites") / "sites.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sites, "SITES", (2, 5, 12))
        for step in sites.steps(LabelledSet("made up", X, y), seeds=1):
            step.run(found)
    return found


@pytest.mark.slow
def test_every_curve_has_every_number_of_sites(results):
    for system in sites.CURVES:
        curve = results.curve("sites", "made up", system)
        assert list(curve) == [2, 5, 12]
        assert all(0 <= auc <= 100 for values in curve.values() for auc in values)
    assert {row["setting"] for row in results.select("local")} == {2.0, 10.0}


@pytest.mark.slow
def test_the_total_is_epsilon_whatever_the_number_of_sites(results):
    for row in results.select("sites"):
        assert 0.999 < row["total_epsilon"] <= 1.0 + 1e-9


@pytest.mark.slow
def test_masks_keep_the_noise_of_the_sum(results):
    """From 2 to 12 sites it falls by sqrt(2) towards the scale; otherwise it grows by sqrt(6)."""
    rng = np.random.default_rng(1)
    data = LabelledSet("x", rng.normal(size=(100, 3)), np.arange(100) < 5)
    noise = {
        (k, masked): sites._merged(data, k, 0, masked=masked)[0].ledger.noise_sd
        for k in (2, 12)
        for masked in (True, False)
    }
    assert noise[12, True] == pytest.approx(noise[2, True] * np.sqrt(12 / 11 / 2), rel=1e-3)
    assert noise[12, False] == pytest.approx(noise[2, False] * np.sqrt(6), rel=1e-3)


@pytest.mark.slow
def test_tables_figure_and_verdicts(results, tmp_path, monkeypatch):
    monkeypatch.setattr(sites, "SITES", (2, 5, 12))
    assert "masks, shared noise" in str(sites.sites_table(results, ["made up"]))
    assert "local, 10 sites" in str(sites.local_table(results, ["made up"]))
    files = figures.sites_figure(results, ["made up"], tmp_path)
    assert [file.name for file in files] == ["sites.svg", "sites.png"]
    assert all(file.stat().st_size > 1000 for file in files)
    flat, ahead, total = sites.targets(results, ["made up"])
    values = [v.mean() for v in results.curve("sites", "made up", sites.MASKED).values()]
    assert flat.measured == pytest.approx(max(values) - min(values))
    assert "ahead" in ahead.claim
    assert total.met
