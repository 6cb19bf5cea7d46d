"""What follows in a campaign, and at which cost."""

from datetime import timedelta

import pytest

from hushtable import Feature, Plan, Schema
from hushtable.errors import PrivacyError, RoundError
from hushtable_federation import SecureSum
from hushtable_federation.coordinator import following
from hushtable_federation.layout import Layout
from hushtable_federation.rehearsal import Rehearsal
from hushtable_federation.round import Round


@pytest.fixture
def here(tmp_path):
    rehearsal = Rehearsal(("north", "south"), tmp_path, epsilon=0.9)
    yield rehearsal
    rehearsal.close()


def test_ranks_follow_tables_within_a_total(here):
    result = SecureSum(here.round, here.lead, here.transport()).run()
    deadline = here.round.deadline
    assert following(here.round, result, here.lead, deadline) is None
    ranks = following(here.round, result, here.lead, deadline, ranks=1.0)
    assert ranks.layout.purpose.value == "ranks"
    assert (ranks.terms.epsilon, ranks.previous) == (1.0, (here.round.round_id,))
    assert ranks.plan.behind == result.spent()
    assert following(ranks, result, here.lead, deadline, ranks=1.0) is None
    with pytest.raises(PrivacyError):  # nothing would be left
        following(here.round, result, here.lead, deadline, ranks=0.9)


def test_what_follows_a_hidden_plan_is_drawn_at_its_sites(here):
    schema = Schema([Feature.numeric(name, low=-5, high=5) for name in "xy"])
    layout = Layout.of(Plan.marginals(schema, epsilon=1.0, delta=1e-6, expected_rows=400))
    cards = [keys.card for keys in here.keys.values()]
    deadline = here.round.deadline + timedelta(days=1)
    hidden = Round.open(layout, cards, here.lead, epsilon=1.0, deadline=deadline)
    result = SecureSum(here.round, here.lead, here.transport()).run()
    with pytest.raises(RoundError, match="--secret"):
        following(hidden, result, here.lead, deadline)
