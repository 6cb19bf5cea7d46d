"""A mailbox that hides, repeats, cuts off and loses messages: one sum, and nothing paid twice."""

import random

import pytest

from folder_helpers import Clock, Folder
from hushtable.errors import FileError
from hushtable_federation.folder.mailbox import Store


class Lossy:
    """Messages in this process; what is lost, hidden, cut off or repeated, a seed decides.

    Each party has one of its own over the same ``messages``. Nothing is lost for ever: who calls
    again puts it there again.
    """

    def __init__(self, messages, rng, rate):
        self.where, self._messages, self._rng, self._rate = "memory", messages, rng, rate

    def _happens(self):
        return self._rng.random() < self._rate

    def entries(self, folder=""):
        if not folder:
            return [("copy", "directory"), *self._files("")]
        return self._files(folder)

    def _files(self, folder):
        paths = [name.rpartition("/") for name in self._messages]
        return [(n, "file") for of, _, n in paths if of == folder and not self._happens()]

    def subfolder(self, name):
        return None

    def load(self, name, most):
        if name not in self._messages or self._happens():
            raise FileNotFoundError(name)
        content = self._messages[name]
        return content[:-1] if self._happens() else content

    def save(self, name, content):
        if self._happens():
            raise FileError("the network is gone: call again")
        if self._happens():
            return  # it says that it did
        self._messages[name] = content
        if self._happens():  # the same message twice, in a stranger's subfolder
            self._messages[f"copy/{name}"] = content


@pytest.mark.parametrize("seed", range(4))
def test_messages_that_are_lost_and_repeated(those, monkeypatch, quick_noise, seed):
    clock, messages, rng = Clock(monkeypatch), {}, random.Random(seed)
    rate = {"now": 0.0}

    def place(name):
        return Store(Lossy(messages, rng, rate["now"]), name)

    here = Folder(those, those.open(least=2), place)
    rate["now"] = 0.05
    states = {}
    for _ in range(60):
        # A site that has the result is done; the coordinator puts again what got lost.
        parties = [name for name in those.sites if states.get(name) != "done"]
        for name in rng.sample(["lead", *parties], len(parties) + 1):
            try:
                visit = here.visit() if name == "lead" else here.site(name)
            except (FileError, ValueError):  # the round itself was not to be seen; or no network
                continue
            states[name] = visit.state
        if all(states.get(name) == "done" for name in those.sites):
            break
    assert all(states[name] == "done" for name in those.sites), states
    assert clock.at < here.round.deadline
    assert set(here.check().sites) == set(those.sites)  # no one answered twice, and all are in
