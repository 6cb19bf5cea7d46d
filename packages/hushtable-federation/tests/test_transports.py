"""A transport of one's own, in one file: a folder of messages, as a mail drop has them."""

import threading
import time
from collections import Counter

import numpy as np
import pytest

from hushtable.errors import RoundError
from hushtable_federation import Book, OnlineSite, Policy, SecureSum
from hushtable_federation.rehearsal import Rehearsal


class Folder:
    """Each message is a file: ``SITE.N.in`` to a site, ``SITE.N.out`` from it."""

    def __init__(self, path):
        self.path, self.n, self.read, self.closed = path, 0, set(), 0

    def send(self, site, request):
        self.n += 1
        part = self.path / "part"
        part.write_bytes(request)
        part.rename(self.path / f"{site}.{self.n}.in")

    def receive(self, seconds):
        end = time.monotonic() + seconds
        while True:
            for file in sorted(set(self.path.glob("*.out")) - self.read):
                self.read.add(file)
                return file.name.split(".")[0], file.read_bytes()
            if time.monotonic() >= end:
                return None
            time.sleep(0.01)

    def close(self):
        self.closed += 1


class Postman(threading.Thread):
    """Has the sites answer what lies in the folder, until the transport is closed."""

    def __init__(self, folder, here, gone):
        super().__init__(daemon=True)
        self.folder, self.here, self.gone = folder, here, gone
        self.done, self.asked = set(), Counter()

    def run(self):
        while not self.folder.closed:
            for file in sorted(set(self.folder.path.glob("*.in")) - self.done):
                self.done.add(file)
                name, n, _ = file.name.split(".")
                self.asked[name] += 1
                if self.asked[name] < self.gone.get(name, 99):
                    part = self.folder.path / f"part.{name}"
                    part.write_bytes(self.answer(name, file.read_bytes()))
                    part.rename(self.folder.path / f"{name}.{n}.out")
            time.sleep(0.01)

    def answer(self, name, request):
        """Answer as a process would that begins with each request."""
        policy = Policy(unattended=True, persons=1, plans=(self.here.round.plan.plan_id,))
        with Book.open(self.here.books[name].path) as book:
            sketch = self.here.sketches[name]
            site = OnlineSite(self.here.keys[name], book, lambda plan: sketch, policy=policy)
            return site.answer(request)


@pytest.fixture
def here(tmp_path):
    made = Rehearsal(("east", "north", "south"), tmp_path, least=2)
    yield made
    made.close()


def run(here, tmp_path, gone, **options):
    """Run the round; ``gone`` has, by site, the request from which on it is silent."""
    (tmp_path / "box").mkdir()
    folder = Folder(tmp_path / "box")
    postman = Postman(folder, here, gone)
    postman.start()
    secure_sum = SecureSum(here.round, here.lead, folder, **options)
    try:
        return secure_sum.run(), secure_sum
    finally:
        assert folder.closed == 1
        postman.join()


def sent(here, *names):
    return sum(here.books[name].answer(here.round.round_id).sent for name in names)


def test_a_round_over_a_folder(here, tmp_path):
    result, secure_sum = run(here, tmp_path, {})
    np.testing.assert_array_equal(result.counts, sent(here, *here.keys))
    assert secure_sum.lost == {}


def test_a_site_drops_out(here, tmp_path):
    result, secure_sum = run(here, tmp_path, {"east": 3}, timeout=2.0)
    np.testing.assert_array_equal(result.counts, sent(here, "north", "south"))
    assert secure_sum.lost == {"east": "masked: silent"}


def test_too_many_drop_out_and_the_transport_is_closed(here, tmp_path):
    with pytest.raises(RoundError, match="1 sites are left in step 'keys'"):
        run(here, tmp_path, {"east": 1, "south": 1}, timeout=2.0)


class Unsteady:
    """Loses every first request to a site, says every answer twice, and cannot reach one site."""

    def __init__(self, inner):
        self.inner, self.seen = inner, set()

    def send(self, site, request):
        if site == "south":
            raise ConnectionError("no way there")
        if request in self.seen:
            self.inner.send(site, request)
            self.inner.send(site, request)
        self.seen.add(request)

    def receive(self, seconds):
        return self.inner.receive(seconds)

    def close(self):
        self.inner.close()


def test_silent_sites_are_asked_again_and_answers_count_once(here):
    wire = here.transport()
    secure_sum = SecureSum(here.round, here.lead, Unsteady(wire), tries=2)
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
