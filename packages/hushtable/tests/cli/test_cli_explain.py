"""``hushtable score --explain``: columns that agree with the library, and reasons in words."""

import re

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import hushtable
from cli_helpers import do
from hushtable import Plan, Schema


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
    assert "Row 7: " in out
    assert "reason_3, share_3" in out


def test_marginals_say_how_far_out_a_value_lies(explained, site):
    marginals = ("--marginals", site / "marginals.sketch.hush")
    words = [
        reason["words"]
        for line in explained(*marginals, "--json")[0].json["lowest"]
        for reason in line["reasons"]
    ]
    assert "income 199999.00, usually 12500.00 to 37500.00: far above" in words
    assert "age is missing, as in 2% of rows" in words


def test_what_cannot_be_explained_is_refused(refused, site, tmp_path):
    out = tmp_path / "s.csv"
    base = ("score", site / "rows.csv", "-o", out, "--model")
    marginals = ("--marginals", site / "marginals.sketch.hush")
    refused(*base, site / "model.hush", *marginals, says="give --explain with it", code=2)
    wrong = ("--explain", "--marginals", site / "a.sketch.hush")
    refused(*base, site / "model.hush", *wrong, says="--marginals takes")
    other = tmp_path / "other.toml"
    other.write_text((site / "schema.toml").read_text().replace('"age"', '"years"'))
    plan, counts = tmp_path / "plan.hush", tmp_path / "counts.hush"
    Plan.marginals(Schema.from_toml(other)).save(plan)
    data = tmp_path / "years.csv"
    data.write_text((site / "rows.csv").read_text().replace("age,", "years,", 1))
    do("sketch", data, "--plan", plan, "-o", counts)
    refused(
        *base,
        site / "model.hush",
        "--explain",
        "--marginals",
        counts,
        says="do not belong to the model",
    )
