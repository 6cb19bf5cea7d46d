"""A network that loses, delays, doubles, cuts and swaps messages: the exact sum, or none."""

import contextlib
import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hushtable.errors import HushTableError, RoundError
from hushtable_federation.online.secure_sum import SecureSum
from hushtable_federation.online.site import OnlineSite
from round_helpers import T0, UNATTENDED, Consortium

#: What may happen to a message; most of the time nothing.
FATES = ("lost", "late", "doubled", "cut", "swapped", *["fine"] * 15)
SITES = 4


class Network:
    """Carries messages in this process, each to its fate.

    A late message comes in the place of the next one on the same way; its own step has none.
    """

    def __init__(self, those, requests, answers):
        self.agents = {
            name: OnlineSite(site.keys, site.book, site.count, policy=UNATTENDED)
            for name, site in those.sites.items()
        }
        self.fates = {"request": itertools.cycle(requests), "answer": itertools.cycle(answers)}
        self.late, self.seen, self.said = {}, set(), {}
        self.requests, self.answers, self.arrived = [], [], []

    def carry(self, way, name, message, others):
        """Return what arrives; none, one or two."""
        fate = next(self.fates[way])
        self.seen.add(fate)
        arrived = [self.late.pop((way, name))] if (way, name) in self.late else []
        match fate:
            case "late":
                self.late[way, name] = message
            case "doubled":
                arrived += [message, message]
            case "cut":
                arrived.append(message[: len(message) * 2 // 3])
            case "swapped":
                arrived.append(others[0])
            case "fine":
                arrived.append(message)
        return arrived

    def send(self, name, request):
        self.requests.append(request)
        for arrived in self.carry("request", name, request, self.requests[-SITES:]):
            answer = self._answer(name, arrived)
            if answer is not None:
                self.answers.append(answer)
                others = self.answers[-SITES:]
                self.arrived += [(name, a) for a in self.carry("answer", name, answer, others)]

    def receive(self, seconds):
        return self.arrived.pop(0) if self.arrived else None

    def close(self):
        self.arrived = None

    def _answer(self, name, request):
        try:
            answer = self.agents[name].answer(request)
        except HushTableError:  # not even a round that it could refuse by a signed message
            return None
        # Asked again, a site says the same, and never anything else.
        refused = b'\\"refused\\"'
        if refused not in answer:
            assert self.said.setdefault((name, request), answer) == answer
        return answer


@pytest.fixture(scope="module")
def consortia(tmp_path_factory):
    """Make consortia of four sites, of which three are enough, with noise that is drawn fast."""
    rng, made = np.random.default_rng(1), []

    def add_noise(counts, mechanism, scale, *, progress=None):
        return counts + np.rint(rng.normal(0.0, scale, len(counts))).astype(np.int64)

    def make():
        made.append(Consortium(tmp_path_factory.mktemp("consortium"), SITES))
        return made[-1], made[-1].open(least=3)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hushtable.privacy.mechanisms.add_noise", add_noise)
        patch.setattr("hushtable_federation.clock.read", lambda: T0)
        yield make
    for those in made:
        those.close()


def run(consortia, requests, answers):
    """Run a round; return whether there was a sum, after a look that it is the right one."""
    those, round_ = consortia()
    network = Network(those, requests, answers)
    secure_sum = SecureSum(round_, those.lead, network)
    summed = False
    with contextlib.suppress(RoundError):
        result = secure_sum.run()
        summed = True
    if summed:
        shares = {share.release for share in result.ledger.shares}
        inside = [
            answer.sent
            for site in those.sites.values()
            for answer in site.book.answers()
            if answer.share.release in shares
        ]
        assert len(inside) == len(shares) >= 3
        np.testing.assert_array_equal(result.counts, sum(inside))
    for site in those.sites.values():
        assert len(site.book.answers()) <= 1
    return summed


def test_a_network_without_faults(consortia):
    assert run(consortia, ["fine"], ["fine"])


@pytest.mark.parametrize(
    ("fate", "way"),
    [
        # Every day each on one way, in turn.
        pytest.param(fate, way, marks=[pytest.mark.slow] * ((at + way) % 2))
        for at, fate in enumerate(["lost", "late", "doubled", "cut", "swapped"])
        for way in (0, 1)
    ],
)
def test_one_fault_at_a_time(consortia, fate, way):
    """Wherever a single message meets it, the three other sites are enough."""
    fates = [["fine"], ["fine"]]
    for place in (2, SITES + 2, 2 * SITES + 2):
        fates[way] = ["fine"] * place + [fate] + ["fine"] * 40
        assert run(consortia, *fates), place


def sequences():
    return st.lists(st.sampled_from(FATES), min_size=1, max_size=20)


@settings(max_examples=8, suppress_health_check=list(HealthCheck), database=None)
@given(requests=sequences(), answers=sequences())
def test_any_faults(consortia, requests, answers):
    run(consortia, requests, answers)


@pytest.mark.slow
def test_many_faults(consortia):
    outcomes = {True: 0, False: 0}

    @settings(max_examples=300, suppress_health_check=list(HealthCheck), database=None)
    @given(requests=sequences(), answers=sequences())
    def tried(requests, answers):
        outcomes[run(consortia, requests, answers)] += 1

    tried()
    assert min(outcomes.values()) > 20
    print(f"rounds over a faulty network: {outcomes[True]} exact sums, {outcomes[False]} refused")
