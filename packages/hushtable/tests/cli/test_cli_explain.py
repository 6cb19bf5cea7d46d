"""``hushtable score --explain``: columns that agree with the library, and reasons in words."""

import re

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import hushtable


@pytest.fixture
def explained(run, site, tmp_path):
    """Score the site's rows with explanations; return the result and the table."""

    def explained(*options, model="model.hush", suffix=".parquet"):
        out = tmp_path / f"scores{suffix}"
        arguments = ("score", site / "rows.csv", "--model", site / model, "--explain", "-o", out)
        result = run(*arguments, *options)
        assert result.code == 0, result.err
        return result, pq.read_table(out) if suffix == ".parquet" else pyarrow.csv.read_csv(out)

    return explained


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_columns_are_the_librarys_shares(explained, site, suffix):
    _, table = explained(suffix=suffix)
    assert table.schema.names[3:] == [
        "outside", "reason_1", "share_1", "reason_2", "share_2", "reason_3", "share_3",
    ]  # fmt: skip
    model = hushtable.load(site / "model.hush")
    shares = model.explain(site / "rows.csv")
    np.testing.assert_array_equal(table["score"], model.score_samples(site / "rows.csv"))
    order, names = np.argsort(-shares, axis=1, kind="stable"), model.feature_names_in_
    for k in range(3):
        best = np.take_along_axis(shares, order[:, [k]], axis=1)[:, 0]
        named = [name if s > 0 else None for name, s in zip(names[order[:, k]], best, strict=True)]
        found = table[f"reason_{k + 1}"].to_pylist()
        assert [name or None for name in found] == named
        assert table[f"share_{k + 1}"].to_pylist() == [s if s > 0 else None for s in best]


def test_the_lowest_rows_are_explained_in_words(explained, site):
    facts = explained("--json")[0].json
    first = facts["lowest"][0]
    assert first["row"] == 7
    assert {reason["feature"] for reason in first["reasons"][:2]} == {"age", "income"}
    words = [reason["words"] for reason in first["reasons"]]
    assert any(
        re.fullmatch(r"income 199999.00, usually [\d.]+ to [\d.]+: far above", one) for one in words
    )
    assert first["repaired"]["columns"][0] in ("age", "income")
    out = explained()[0].out
    assert re.search(r"Why:\n\n1\. income 199999.00, usually [\d.]+ to [\d.]+: far above; age", out)
    assert "reason_3, share_3" in out
