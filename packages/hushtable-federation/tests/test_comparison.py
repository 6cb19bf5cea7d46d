"""A site's own rows beside the others' counts: invented rows are found, honest ones are not."""

import json

import numpy as np
import pytest

from hushtable import Plan
from hushtable.cli import main
from hushtable.errors import RoundError, UsageError
from hushtable_federation import Comparison
from hushtable_federation.comparison import ALIKE, strange_share

ROWS = 1_500
SIZES = {"n_tables": 50, "n_cells": 64, "min_depth": 4, "max_depth": 10}


@pytest.fixture
def those(consortium, quick_noise):
    """Four sites with rows of one kind, under a plan with many tables."""
    made = consortium(4, rows=ROWS)
    made.plan = Plan.draw(made.plan.schema, random_state=0, **SIZES)
    return made


def result_of(those, **terms):
    round_ = those.open(**terms)
    sent = {name: site.submit(round_) for name, site in those.sites.items()}
    return those.sum(round_, sent)


def poison(those, copies):
    """Let one site send copies of ten rows that hardly anyone has, in the place of its own."""
    odd = np.random.default_rng(0).uniform(3.0, 4.5, (10, 3))
    those.sites["s03"].X = np.repeat(odd, copies, axis=0)


def seen(those, result, name="s00", **options):
    return Comparison.of(result, those.sites[name].book, **options)


def test_honest_sites_fit(those):
    result = result_of(those)
    for name in those.sites:
        found = seen(those, result, name, alike=True)
        assert found.fits
        assert found.strange <= ALIKE
        assert found.impossible is None
        assert found.words() == ["The counts fit: chance can explain them."]
        assert found.own_rows == ROWS
        assert found.other_sites == 3
        assert abs(found.other_rows - 3 * ROWS) < 5 * found.rows_sd


def test_invented_rows_are_found_by_each_honest_site(those):
    poison(those, 800)
    result = result_of(those)
    for name in ("s00", "s01", "s02"):
        found = seen(those, result, name)
        assert found.fits is False
        # 8,000 of 11,000 rows, less what lies within twice the own share and the noise.
        assert 4_000 < found.strange_rows < 8_500
        assert f"about {found.strange_rows:,} rows" in found.words()[0]
        assert found.words()[-1].startswith("Ask the coordinator and the other sites")


def test_fewer_are_found_where_the_sites_are_alike_and_missed_where_not(those):
    poison(those, 150)
    result = result_of(those)
    assert seen(those, result).fits
    (words,) = seen(those, result).words()
    assert words == "The counts fit: chance and honest differences can explain them."
    assert seen(those, result, alike=True).fits is False


def test_a_bound_on_rows_finds_what_the_kind_does_not_show(those):
    those.sites["s03"].X = np.repeat(those.sites["s03"].X, 3, axis=0)
    result = result_of(those)
    assert seen(those, result, alike=True).fits
    found = seen(those, result, most_rows=3 * ROWS)
    assert found.too_many
    assert found.fits is False
    assert "more than the stated limit of 4,500" in found.words()[0]
    assert not seen(those, result, most_rows=5 * ROWS).too_many
    with pytest.raises(UsageError, match="most_rows"):
        seen(those, result, most_rows=-1)


def test_what_cannot_be_counts_is_said(those):
    result = result_of(those)
    counts = result.counts.copy()
    counts[:16] += 5_000
    counts[16:32] -= 5_000
    found = seen(those, type(result)(result.plan, counts, result.ledger))
    assert found.fits is False
    assert found.words()[0].startswith("The counts of the others are impossible: ")


def test_too_few_rows_tell_nothing(those):
    those.sites["s00"].X = those.sites["s00"].X[:20]
    found = seen(those, result_of(those))
    assert found.strange is None
    assert found.fits is None
    assert "too few rows" in found.words()[0]


def test_a_rest_of_noise_alone_tells_nothing(those):
    for name in ("s01", "s02", "s03"):
        those.sites[name].X = those.sites[name].X[:3]
    assert seen(those, result_of(those)).fits is None


def test_a_result_without_this_site_is_refused(those, consortium):
    result, other = result_of(those), consortium(2)
    with pytest.raises(RoundError, match="has no part in this result"):
        Comparison.of(result, other.sites["s01"].book)


def test_other_rounds_are_refused(those):
    marginals = Plan.marginals(those.plan.schema)
    with pytest.raises(
        UsageError, match="about marginals: needs the result of the round about a model"
    ):
        seen(those, result_of(those, plan=marginals))


def test_chance_is_taken_off_and_nothing_in_common_is_nearly_all():
    rng = np.random.default_rng(50)
    p = rng.dirichlet(np.full(64, 0.3), size=100)
    own, rest = (np.concatenate([rng.multinomial(n, one) for one in p]) for n in (50, 3_000))
    assert strange_share(own, rest, 0.1, 100) < ALIKE
    own, rest = np.tile([1_000, 0], 50), np.tile([0, 9_000], 50)
    assert strange_share(own, rest, 0.1, 50) > 0.99


# --- the command ----------------------------------------------------------------------------


def files_of(those, folder):
    result_of(those).save(folder / "result.hush")
    return folder / "result.hush", those.sites["s00"].book.path


def test_the_command_says_and_alerts(those, tmp_path, capsys):
    poison(those, 800)
    result, book = files_of(those, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    call = ["round", "compare", str(result), "--book", str(book)]
    assert main(call) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "The counts do not fit: the others have about" in said
    assert "do not send it to anyone" in said
    assert main([*call, "--alert", "--json"]) == 3
    facts = json.loads(capsys.readouterr().out)
    assert facts["fits"] is False
    assert facts["strange_rows"] > 4_000
    assert sorted(tmp_path.rglob("*")) == before


def test_the_command_fits(those, tmp_path, capsys):
    result, book = files_of(those, tmp_path)
    call = ["round", "compare", str(result), "--book", str(book), "--alike", "--alert"]
    assert main(call) == 0
    assert "The counts fit: chance can explain them." in capsys.readouterr().out
