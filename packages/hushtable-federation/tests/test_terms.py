"""Terms: one object for what a release costs, checked where it is made."""

import pytest

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.privacy import Cost, ReleaseTerms, Sensitivity
from hushtable_federation import terms as rounds


@pytest.fixture
def sketch():
    schema = Schema([Feature.numeric("a", low=0, high=1)])
    return Sketch.zero(Plan.draw(schema, random_state=0, n_tables=5))


def test_a_release_takes_terms_whole_or_one_by_one(sketch):
    terms = ReleaseTerms(1.0, adjacency="replace-one", rows_per_person=2)
    whole = sketch.release(terms).ledger
    parts = sketch.release(1.0, adjacency="replace-one", rows_per_person=2).ledger
    assert (whole.sensitivity, whole.epsilon) == (parts.sensitivity, parts.epsilon)
    assert "get other values" in terms.words()
    with pytest.raises(UsageError, match="terms contain delta, share already"):
        sketch.release(terms, 1e-7, share=0.5)


def test_a_pure_mechanism_has_no_delta():
    assert ReleaseTerms(1.0, delta=1e-6).delta == 1e-6
    assert ReleaseTerms(1.0, delta=1e-6, mechanism="discrete-laplace").delta == 0.0


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"epsilon": 21.0}, PrivacyError),
        ({"delta": 1.0}, PrivacyError),
        ({"adjacency": "none"}, UsageError),
        ({"rows_per_person": 0}, UsageError),
        ({"share": 2.0}, UsageError),
        ({"mechanism": "gauss"}, UsageError),
        ({"mechanism": ["discrete-gaussian"]}, UsageError),
    ],
)
def test_terms_that_cannot_be_are_refused(wrong, error):
    with pytest.raises(error, match=next(iter(wrong))):
        ReleaseTerms(**({"epsilon": 1.0} | wrong))


def test_the_terms_of_a_round_come_back_and_keep_their_entries():
    terms = rounds.Terms.agreed(6, epsilon=1.0, colluders=2)
    assert (terms.least, terms.k_min, terms.colluders) == (6, 3, 2)
    content = terms.to_dict()
    assert list(content) == [
        "epsilon", "delta", "adjacency", "rows_per_person", "share", "masked", "least", "k_min",
        "protocol", "accounting",
    ]  # fmt: skip
    assert rounds.Terms.from_dict(content) == terms
    for wrong in (
        {"accounting": "exact"},
        {"least": 6.0},
        {"masked": 1},
        {"mechanism": "discrete-laplace"},
    ):
        with pytest.raises(PlanError, match="terms"):
            rounds.Terms.from_dict(content | wrong)
    assert rounds.Terms.agreed(6, epsilon=1.0, masked=False).colluders == 0


def test_terms_from_before_say_nothing_of_accounting_and_keep_their_noise():
    """A round of version 0.1, at sites of today: the noise and the entries that it had."""
    terms = rounds.Terms.agreed(6, epsilon=1.0)
    content = terms.to_dict()
    del content["accounting"], content["protocol"]
    old = rounds.Terms.from_dict(content)
    assert old.protocol == 1
    assert old.to_dict() == content
    nothing = Cost(0.0, 0.0, 0.0)
    assert old.scale(Sensitivity(100), nothing) == 45.3088
    assert terms.scale(Sensitivity(100), nothing) < 42.4


def test_a_bound_on_rows_is_refused_with_what_to_do():
    for refused in (
        lambda: rounds.Terms.agreed(6, epsilon=1.0, max_rows=100),
        lambda: rounds.Terms.from_dict(
            rounds.Terms.agreed(6, epsilon=1.0).to_dict() | {"max_rows": 100, "opened": 1}
        ),
    ):
        with pytest.raises((UsageError, PlanError), match=r"max_rows, .* was dropped .*: open the"):
            refused()


def test_masked_rounds_have_as_many_sites_as_were_tried():
    assert rounds.Terms.agreed(rounds.MAX_MASKED_SITES, epsilon=1.0).masked
    more = rounds.MAX_MASKED_SITES + 1
    with pytest.raises(UsageError, match=r"301 sites: a masked round can have 300 at most\. Open"):
        rounds.Terms.agreed(more, epsilon=1.0)
    assert not rounds.Terms.agreed(more, epsilon=1.0, masked=False).masked
