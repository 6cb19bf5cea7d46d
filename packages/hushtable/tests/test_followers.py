"""Columns that follow from others are named, and independent ones are not."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hushtable import HushTable
from hushtable.cli import main
from hushtable.data import read, table_quality
from hushtable.data.quality import followers, followers_words


def _bound(seed, n, d=12, k=3):
    """Rows of factors; in some, three columns have the values of another row."""
    rng = np.random.default_rng(seed)
    factors, noise = rng.normal(size=(k, d)), 0.15 * rng.normal(size=(n, d))
    X = rng.normal(size=(n, k)) @ factors + noise
    for i in rng.choice(n, n // 100, replace=False):
        X[i, rng.choice(d, 3, replace=False)] = X[rng.integers(n), :3]
    return X


def _named(X):
    return {f"m{j}": column for j, column in enumerate(X.T)}


def _independent(rng, n, d):
    yield "normal", rng.normal(size=(n, d))
    yield "Cauchy", rng.standard_cauchy((n, d))
    yield "lognormal", np.exp(2.0 * rng.normal(size=(n, d)))
    yield "yes or no", rng.integers(0, 2, (n, d)).astype(float)
    yield "rare counts", rng.poisson(0.05, (n, d)).astype(float)
    yield "counts", rng.poisson(30.0, (n, d)).astype(float)
    yield "mostly zero", np.where(rng.random((n, d)) < 0.9, 0.0, rng.exponential(size=(n, d)))
    yield "one of several", np.eye(d)[rng.integers(0, d, n)]
    gross = rng.normal(size=(n, d))
    gross[0] = 1e6
    yield "one row far out in all columns", gross
    gaps = rng.normal(size=(n, d))
    gaps[rng.random((n, d)) < 0.1] = np.nan
    yield "gaps", gaps


@pytest.mark.parametrize("seeds", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_columns_that_follow_from_others_are_found_and_independent_ones_are_not(seeds):
    sizes = (6000, 10_000)
    bound = [bool(followers(_named(_bound(k, n)))) for k in range(seeds) for n in sizes]
    wrong, total = [], 0
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        for n, d in ((30, 3), (60, 2), (100, 20), (300, 12), (2000, 60)):
            for kind, X in _independent(rng, n, d):
                total += 1
                wrong += [(kind, n, d)] * bool(followers(_named(X)))
    print(f"\nfound in {sum(bound)} of {len(bound)}; in {len(wrong)} of {total} independent tables")
    assert np.mean(bound) >= 0.95
    assert len(wrong) <= 0.05 * total, wrong


def test_the_words_name_the_strongest_columns_and_the_option(rng):
    x, y, z = rng.normal(size=(3, 900))
    found = followers({"x": x, "y": y, "sum": x + y + 0.1 * rng.normal(size=900), "z": z})
    assert found[0].name == "sum"
    assert {*found[0].others} == {"x", "y"}
    assert 0.98 < found[0].r2 < 1.0
    words = followers_words(found)
    assert words.startswith("sum follows from the other columns, most of all from ")
    assert words.endswith("relations=True (--relations) compares them.")
    assert "z" not in [one.name for one in found]
    assert followers_words([]) == ""


def test_check_and_fit_name_them(tmp_path, capsys):
    frame = pd.DataFrame(_named(_bound(0, 3000)))
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    assert main(["check", str(path)]) == 0  # a hint is no doubt
    out = " ".join(capsys.readouterr().out.split())
    assert "follows from the other columns" in out
    assert "relations=True (--relations) compares them" in out
    for more, hint in (([], True), (["--relations"], False)):
        assert main(["fit", str(path), "-o", str(tmp_path / "m.hush"), *more]) == 0
        seen = capsys.readouterr()
        assert ("(--relations) compares them" in seen.out + seen.err) == hint


@pytest.mark.parametrize("make", [None, pd.DataFrame, pa.table])
def test_in_python_a_detector_names_them_without_a_warning(make):
    X = _bound(1, 3000)
    rows = X if make is None else make(_named(X))
    found = HushTable(n_tables=5, random_state=0).fit(rows).followers()
    assert len(found) >= 8
    assert found[0].r2 >= found[-1].r2 >= 0.9
    if not isinstance(rows, np.ndarray):
        table = read(rows)
        [finding] = [
            one for one in table_quality(table).findings if one.kind == "relations"
        ]  # fmt: skip
        assert {one.name for one in found} == {*finding.columns}
