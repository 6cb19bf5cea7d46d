"""What follows in a campaign, and at which cost."""

import pytest

from hushtable.errors import PrivacyError
from hushtable_federation import SecureSum
from hushtable_federation.coordinator import following
from rehearsal import Rehearsal


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
    assert ranks.plan.purpose.value == "ranks"
    assert (ranks.terms.epsilon, ranks.previous) == (1.0, (here.round.round_id,))
    assert ranks.plan.behind == result.spent()
    assert following(ranks, result, here.lead, deadline, ranks=1.0) is None
    with pytest.raises(PrivacyError):  # nothing would be left
        following(here.round, result, here.lead, deadline, ranks=0.9)
