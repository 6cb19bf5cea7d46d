"""What a design says beforehand about accuracy, and when it promises none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable.errors import UsageError
from hushtable.privacy import Design, Horizon
from hushtable.privacy.layout import BEARABLE, LOSS, PROMISED, Expectation

DELTA = 1e-6
DESIGNS = st.builds(
    Design,
    st.floats(0.01, 10.0),
    st.just(DELTA),
    st.integers(20, 1_000_000),
    st.integers(1, 20),
    horizon=st.none() | st.integers(1, 60).map(Horizon.of),
)


def test_expectations_at_a_tenth():
    few = Design(0.1, DELTA, 300)
    assert few.expectation().mostly_noise
    assert few.words() == (
        "Mostly noise: no accuracy is promised for 300 rows at epsilon 0.1. Labelled data sets "
        "lost about 8 points of ROC-AUC (of 100) on average, and one in ten lost more than 24. A "
        "loss of about 2 points needs about 1,200 rows of all sites or an epsilon of 0.43. This "
        "applies to a single noise: that of one site, or of sites with masks. The loss is relative "
        "to the same tables without noise. A site of 50 rows that scores with a home model (its "
        "own rows and the result) is expected to gain almost nothing over its own rows alone if it "
        "is like the others, and about 0.1 points (standard deviation 0.3) if three in ten of its "
        "rows are rare elsewhere. With the result alone, it will probably do no better than "
        "without it. Half of the possible gain needs about 3,200 rows of all sites or an epsilon "
        "of 1.3."
    )
    some = Design(0.1, DELTA, 1500)
    assert not some.expectation().mostly_noise
    assert some.words() == (
        "Noise is expected to cost about 1.6 points of ROC-AUC (of 100) for 1,500 rows at epsilon "
        "0.1; of labelled data sets, one in ten lost more than 5. This applies to a single noise: "
        "that of one site, or of sites with masks. The loss is relative to the same tables without "
        "noise. A site of 50 rows that scores with a home model (its own rows and the result) is "
        "expected to gain about 0.3 points (standard deviation 0.8) over its own rows alone if it "
        "is like the others, and about 1.7 points (standard deviation 2.4) if three in ten of its "
        "rows are rare elsewhere. With the result alone, it will probably do no better than "
        "without it. Half of the possible gain needs about 3,200 rows of all sites or an epsilon "
        "of 0.23."
    )
    assert "less than 0.1 points" in Design(1.0, DELTA, 50_000).words()


def test_what_a_site_is_expected_to_gain():
    """More with less noise; like the others, fewer own rows gain more, and 300 gain nothing."""
    quiet, noisy = (Design(epsilon, DELTA, 5000).expectation() for epsilon in (1.0, 0.1))
    for kind in ("alike", "many cases"):
        assert quiet.gain(50, kind)[0] > noisy.gain(50, kind)[0] > 0.0
    assert quiet.gain(25)[0] > quiet.gain(100)[0] > quiet.gain(250)[0] > quiet.gain(300)[0] == 0.0
    assert quiet.gain(3000, "many cases") == quiet.gain(50, "many cases")
    assert -0.02 < quiet.gain(50, "case mix")[0] < 0.0
    assert all(quiet.gain(rows, "case mix")[1] > 0.0 for rows in (50, 3000))
    with pytest.raises(UsageError, match="kind='other': needs one of alike, many cases, case mix"):
        quiet.gain(50, "other")
    words = Design(1.0, DELTA, 5000).words()
    assert "A site of 50 rows that scores with a home model" in words
    assert "Half of the possible gain" not in words


def test_sites_without_masks_are_told_what_masks_gain():
    apart, together = Design(0.1, DELTA, 3000, sites=4), Design(0.1, DELTA, 3000)
    assert apart.expected_loss == pytest.approx(2 * together.expected_loss)
    words = apart.words()
    assert "with the noises of 4 sites" in words
    assert "With masks, sites share one noise, and the loss is about 0.8 points. The loss" in words


def test_a_horizon_says_what_to_expect_early():
    design = Design(0.1, DELTA, 6000, horizon=Horizon.of(60))
    assert design.early == 12
    early, late = design.expectation(12), design.expectation()
    assert design.expectation(60) == late
    # A fifth of the rows, and less noise than on the sum of all periods.
    assert 4.0 < early.loss / late.loss < 5.0
    assert "after all 60 periods; after 12, it is about 4 points, which is mostly noise" in (
        design.words()
    )
    for wrong in (0, 61, 1.5):
        with pytest.raises(UsageError):
            design.expectation(wrong)
    assert Design(0.1, DELTA, 6000, horizon=Horizon.of(2)).early == 1
    alone = Design(0.1, DELTA, 6000, horizon=Horizon.of(1))
    assert alone.early is None
    assert alone.expected_loss == pytest.approx(Design(0.1, DELTA, 6000).expected_loss)


@given(DESIGNS)
def test_what_helps_does_help_and_words_refuse_where_the_figures_do(design):
    assert design.words().startswith("Mostly noise: no accuracy is promised") == (
        design.signal < PROMISED
    )
    helps = design.helps()
    if design.expected_loss <= BEARABLE:
        assert helps == {}
    for name, number in helps.items():
        terms = {"epsilon": design.epsilon, "rows": design.expected_rows} | {name: number}
        better = Design(
            terms["epsilon"], DELTA, int(terms["rows"]), design.sites, horizon=design.horizon
        )
        assert 0.75 * BEARABLE < better.expected_loss <= BEARABLE * (1 + 1e-6)


def test_nothing_is_proposed_that_a_plan_would_refuse():
    hopeless = Design(0.1, 0.01, 50)
    assert "rows" not in hopeless.helps()
    assert "A loss of about 2 points needs an epsilon of 1.5" in hopeless.words()
    worse = Design(1e-4, 0.05, 20, sites=1_000_000)
    assert worse.helps() == {}
    assert "Labelled data sets" not in worse.words()  # none was measured under as much noise
    assert "points needs more rows, more sites or a larger epsilon" in worse.words()


@given(st.floats(0.1, 1e6), st.floats(1.0, 100.0))
def test_more_signal_loses_less(signal, factor):
    less, more = Expectation(signal), Expectation(signal * factor)
    assert more.loss <= less.loss <= less.one_in_ten
    assert more.one_in_ten <= less.one_in_ten
    assert more.lacking <= less.lacking
    assert less.loss <= LOSS / signal


@pytest.mark.parametrize(
    ("rows", "own"), [(300, True), (3900, True), (4000, False), (50_000, False)]
)
def test_a_design_says_where_a_sites_own_rows_are_as_good(rows, own):
    """The loss is against the same tables without noise: a site has its own rows without any."""
    design = Design(0.1, DELTA, rows)
    assert (design.signal < 100.0) == own
    assert ("With the result alone, it will probably do no better" in design.words()) == own
    assert "relative to the same tables without noise" in design.words()
