"""A coordinator that dies at any write goes on from its journal: same sum, no one charged twice."""

import contextlib

import numpy as np
import pytest

from hushtable import files
from hushtable.errors import FileError, RoundError
from hushtable_federation.online.carriers import Memory
from hushtable_federation.online.secure_sum import Journal, SecureSum, path_of
from hushtable_federation.protocol.messages import Message
from hushtable_federation.protocol.tally import Decisions
from rehearsal import Rehearsal

NAMES = ("east", "north", "south")


class Died(BaseException):
    """No one catches it, as no one catches a SIGKILL."""


@pytest.fixture
def dies(monkeypatch):
    """Die after the first write into a folder, while the folder is said."""
    write, dies = files.replacing, {}

    @contextlib.contextmanager
    def replacing(path, **options):
        with write(path, **options) as temporary:
            yield temporary
        if dies.get("in") in path.parents:
            raise Died

    monkeypatch.setattr(files, "replacing", replacing)
    return dies


class Recorded(Memory):
    """Sites in this process; notes what each is asked in each step, and loses some."""

    def __init__(self, here, gone):
        self.asked, self.gone = {}, gone
        self.here = here
        super().__init__({name: self._site(name) for name in NAMES})

    def _site(self, name):
        site = self.here.site(name)

        def answer(request):
            step = Message.read(request, self.here.lead.card).step
            if name in self.gone.get(step, ()):
                return None
            self.asked.setdefault((step, name), set()).add(request)
            return site.answer(request)

        return answer


def check(here, transport, result, inside):
    sent = [here.books[name].answer(here.round.round_id).sent for name in inside]
    np.testing.assert_array_equal(result.counts, sum(sent))
    assert {len(book.answers()) for book in here.books.values()} <= {0, 1}
    assert all(len(requests) == 1 for requests in transport.asked.values())


@pytest.fixture
def here(tmp_path, quick_noise):
    made = Rehearsal(NAMES, tmp_path, least=2)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("gone", "writes"), [({}, 14), ({"unmask": {"east"}}, 13), ({"masked": {"east"}}, 15)]
)
def test_killed_at_every_write(here, tmp_path, dies, gone, writes):
    """Each process dies after its first write: that is before the next one, too."""
    path = path_of(tmp_path / "lead.key", here.round)
    transport = Recorded(here, gone)
    dies["in"] = path.parent
    for _ in range(writes):
        with pytest.raises(Died):
            SecureSum(here.round, here.lead, transport, journal=path).run()
    result = SecureSum(here.round, here.lead, transport, journal=path).run()
    check(here, transport, result, [n for n in NAMES if n not in gone.get("masked", ())])


def test_the_list_stands_though_a_site_is_gone_since(here, tmp_path):
    """Two lists would show a site's masks: sites refuse the second, and the round would be lost."""
    path = path_of(tmp_path / "lead.key", here.round)
    first = SecureSum(here.round, here.lead, Recorded(here, {"unmask": NAMES}), journal=path)
    with pytest.raises(RoundError, match="0 sites are left in step 'unmask'"):
        first.run()
    later = Recorded(here, {step: {"east"} for step in ("shares", "masked", "unmask")})
    check(here, later, SecureSum(here.round, here.lead, later, journal=path).run(), NAMES)
    assert {step for step, _ in later.asked} == {"unmask", "end"}


def test_a_sum_again_needs_nobody(here, tmp_path):
    path = path_of(tmp_path / "lead.key", here.round)
    one = SecureSum(here.round, here.lead, here.transport(), journal=path).run()
    again = SecureSum(here.round, here.lead, Memory({}), journal=path)
    np.testing.assert_array_equal(again.run().counts, one.counts)
    assert again.reached == dict.fromkeys(NAMES, "unmask")
    assert {file.stat().st_mode & 0o777 for file in path.with_suffix("").iterdir()} == {0o600}


def test_who_is_out_since_an_earlier_process_is_named(here, tmp_path):
    path = path_of(tmp_path / "lead.key", here.round)
    SecureSum(here.round, here.lead, Recorded(here, {"masked": {"east"}}), journal=path).run()
    again = SecureSum(here.round, here.lead, Memory({}), journal=path)
    again.run()
    assert again.lost == {"east": "masked: silent"}


def test_an_answer_in_the_sum_that_is_gone_is_asked_for_again(here, tmp_path):
    path = path_of(tmp_path / "lead.key", here.round)
    one = SecureSum(here.round, here.lead, here.transport(), journal=path).run()
    (path.with_suffix("") / "masked.0.hush").unlink()
    with pytest.raises(
        RoundError, match=r"east: on the list of sites, but their answers are missing"
    ):
        SecureSum(here.round, here.lead, Memory({}), journal=path).run()
    again = SecureSum(here.round, here.lead, here.transport(), journal=path).run()
    np.testing.assert_array_equal(again.counts, one.counts)


def test_journals_that_are_none(here, tmp_path):
    path = path_of(tmp_path / "lead.key", here.round)
    other = Rehearsal(("north", "south"), tmp_path / "lead.rounds")
    Journal(path, other.round).decide(Decisions({"north": "0" * 64}))
    other.close()
    with pytest.raises(RoundError, match="holds the decisions of round"):
        SecureSum(here.round, here.lead, here.transport(), journal=path).run()
    for text in (b"", b"{}", b'{"sites": 3}', b"\xff"):
        path.write_bytes(text)
        with pytest.raises(FileError, match="not a coordinator's decisions, or it is damaged"):
            SecureSum(here.round, here.lead, here.transport(), journal=path).run()
    assert here.books["east"].answers() == []


def test_one_process_at_a_time(here, tmp_path):
    path = path_of(tmp_path / "lead.key", here.round)
    one = SecureSum(here.round, here.lead, here.transport(), journal=path)
    with files.locked(path), pytest.raises(FileError, match="another process is working"):
        one.run()
    with files.locked(path):
        assert path.with_name(f".{path.name}.lock").stat().st_mode & 0o777 == 0o600
    one.run()
