"""What follows in a campaign, and at which cost."""

import pytest

from hushtable.counts import rounds
from hushtable.errors import PrivacyError
from hushtable_federation import SecureSum
from hushtable_federation.coordinator import round_after
from rehearsal import Rehearsal


def test_ranks_follow_tables_within_a_total(tmp_path):
    here = Rehearsal(("north", "south"), tmp_path, epsilon=0.9)
    result = SecureSum(here.round, here.lead, here.transport()).run()
    until, plan = here.round.deadline, rounds.ranks(result)
    ranks = round_after(here.round, plan, here.lead, until, epsilon=1.0)
    assert ranks.plan.purpose.value == "ranks"
    assert (ranks.terms.epsilon, ranks.previous) == (1.0, (here.round.round_id,))
    assert ranks.plan.behind == result.spent()
    with pytest.raises(PrivacyError):  # nothing would be left
        round_after(here.round, plan, here.lead, until, epsilon=0.9)
    here.close()
