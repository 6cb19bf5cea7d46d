"""Transports of other makers that fail, repeat, and never stop talking."""

import numpy as np
import pytest

from hushtable.errors import RoundError
from hushtable_federation import SecureSum
from rehearsal import Rehearsal


@pytest.fixture
def here(tmp_path):
    made = Rehearsal(("east", "north", "south"), tmp_path, least=2)
    yield made
    made.close()


def sent(here, *names):
    return sum(here.books[name].answer(here.round.round_id).sent for name in names)


class Unsteady:
    """Says every answer twice, and cannot reach one site."""

    def __init__(self, inner):
        self.inner = inner

    def send(self, site, request):
        if site == "south":
            raise ConnectionError("no way there")
        self.inner.send(site, request)
        self.inner.send(site, request)

    def receive(self, seconds):
        return self.inner.receive(seconds)

    def close(self):
        self.inner.close()


def test_a_site_that_cannot_be_reached_is_lost_and_answers_count_once(here):
    wire = here.transport()
    secure_sum = SecureSum(here.round, here.lead, Unsteady(wire))
    result = secure_sum.run()
    np.testing.assert_array_equal(result.counts, sent(here, "east", "north"))
    assert secure_sum.lost == {"south": "keys: silent"}
    assert wire.closed


def test_a_site_that_keeps_talking_does_not_keep_a_step_open(here):
    """What no one waits for ends with the time; without that, the step would never end."""

    class Chatter:
        def send(self, site, request):
            pass

        def receive(self, seconds):
            return "mallory", b"more"

        def close(self):
            pass

    with pytest.raises(RoundError, match="0 sites are left"):
        SecureSum(here.round, here.lead, Chatter(), timeout=0.1).run()
