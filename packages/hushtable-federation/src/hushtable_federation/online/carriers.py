"""How messages travel between a coordinator and its sites: within a process, and over networks.

A network reaches nodes by names of its own. What it does is a `Carrier`; who is asked what, and
when again, is here, the same for all of them.
"""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hushtable.errors import HushTableError
from hushtable_federation.keys import Keys
from hushtable_federation.online import steps
from hushtable_federation.round import Round


class Transport(Protocol):
    """Carries bytes to sites, and brings what they answer; knows no step and no key.

    Time-outs, repeated requests, refusals and sites that drop out are the business of `SecureSum`,
    which closes the transport when the round is over. See `Memory` for one in this process.
    """

    def send(self, site: str, request: bytes) -> None:
        """Send a request on its way to a site, without waiting for the answer.

        An `OSError` means that the site cannot be reached now.
        """

    def receive(self, seconds: float) -> tuple[str, bytes] | None:
        """Return the next answer with its site's name, or None if none came in these seconds.

        Empty bytes say that this site will not answer what it was asked last. None may come early
        if no answer can come any more.
        """

    def close(self) -> None:
        """Let go of whatever the transport holds; nothing is sent or received after it."""


class Memory:
    """Has sites in this process answer at once; see `Transport`.

    Takes, by name, what answers a request, such as `OnlineSite.answer`. A site without one, or
    whose answer is None, is silent. ``closed`` is whether the round is over.
    """

    def __init__(self, sites: Mapping[str, Callable[[bytes], bytes | None]]) -> None:
        self._sites, self.closed = sites, False
        self._answers: deque[tuple[str, bytes]] = deque()

    def send(self, site: str, request: bytes) -> None:
        """Have the site answer."""
        answer = self._sites[site](request) if site in self._sites else None
        if answer is not None:
            self._answers.append((site, answer))

    def receive(self, seconds: float) -> tuple[str, bytes] | None:
        """Return the next answer, without waiting."""
        return self._answers.popleft() if self._answers else None

    def close(self) -> None:
        """Note that the round is over."""
        self.closed = True


_LOG = logging.getLogger(__name__)
#: Seconds between two looks for answers; and until a silent node is asked again, at first.
_LOOK, _PAUSE = 0.5, 20.0

#: What a network calls one of its nodes.
Node = int | str


class Carrier(Protocol):
    """A network that brings requests to nodes, and answers back.

    A `HushTableError` of any of these ends the round. Whatever else goes wrong is noted, and the
    network asked again.
    """

    def nodes(self) -> Collection[Node]:
        """Return the nodes that can be reached now."""

    def push(self, node: Node, request: bytes) -> str | None:
        """Send a request; return the id of this sending, or None if none was needed or possible."""

    def pull(self, sent: Collection[str]) -> Iterable[tuple[str, bytes]]:
        """Return the answers that came to what was sent, by its id; empty bytes of a failure."""


@dataclass
class _Asked:
    """A request on its way to a node, until its answer is there."""

    node: Node
    request: bytes
    #: Seconds to wait, once it is asked; each time longer.
    pause: float
    #: Ids of its sendings: each time it is asked, another one.
    ids: set[str] = field(default_factory=set)
    #: When to ask (again), by `time.monotonic`.
    due: float = 0.0

    def answered(self, sent: str, answer: bytes) -> bool:
        """Whether this is the answer to one of its sendings; of an error, ask again soon."""
        if sent not in self.ids:
            return False
        self.ids.remove(sent)
        if not answer:  # the node was away, or what runs there was killed
            self.due = min(self.due, time.monotonic() + self.pause / 6)
        return bool(answer)


class Nodes:
    """Reaches the sites of a round at their nodes: a `Transport`.

    Which node is whose shows by its answer to `hello`. Networks lose answers, as Flower does where
    a TLS handshake takes too long, and give up on a node that is away: a silent one is asked
    again, later each time, until his time is over.

    Parameters
    ----------
    carrier : Carrier
        The network.
    round_ : Round
        Whose sites are looked for.
    keys : Keys
        The coordinator's.
    timeout : float
        Seconds that a site has in each step.

    Attributes
    ----------
    nodes : dict of str to int or str
        By site that said hello, its node.
    refused : dict of str to str
        By site that refused to, its word.
    """

    def __init__(self, carrier: Carrier, round_: Round, keys: Keys, timeout: float) -> None:
        self._carrier, self._round, self._keys = carrier, round_, keys
        self._pause = min(_PAUSE, timeout / 4)
        self._wanted: dict[str, bytes] = {}
        self._hellos: dict[Node, _Asked] = {}
        self._asked: dict[str, _Asked] = {}
        self._answers: deque[tuple[str, bytes]] = deque()
        self._there: set[Node] = set()
        self.refused: dict[str, str] = {}
        self.nodes: dict[str, Node] = {}

    def send(self, site: str, request: bytes) -> None:
        """Note what is asked next; what was asked before is over."""
        if self._wanted.get(site) != request:
            self._wanted[site] = request
            self._asked.pop(site, None)

    def receive(self, seconds: float) -> tuple[str, bytes] | None:
        """Push what is due and pull what came, until one of the answers is there."""
        end = time.monotonic() + seconds
        while True:
            try:
                self._look()
            except HushTableError:
                raise
            except Exception as error:  # of a network's many: a time-out is no reason to give up
                _LOG.warning("the network failed, and is asked again: %s", error)
            if self._answers:
                return self._answers.popleft()
            if time.monotonic() >= end:
                return None
            time.sleep(_LOOK)

    def close(self) -> None:
        """Leave the rest to the network, which ends what runs on it."""

    def _look(self) -> None:
        self._there = set(self._carrier.nodes())
        met = {site for site, node in self.nodes.items() if node in self._there}
        if not set(self._wanted) <= met:
            for node in self._there - set(self._hellos) - set(self.nodes.values()):
                request = steps.ask_hello(self._round, self._keys)
                self._hellos[node] = _Asked(node, request, self._pause)
        for site in (set(self._wanted) & met) - set(self._asked):
            self._asked[site] = _Asked(self.nodes[site], self._wanted[site], self._pause)
        under_way = [*self._hellos.values(), *self._asked.values()]
        self._push([one for one in under_way if one.node in self._there])
        every = {sent for one in under_way for sent in one.ids}
        for sent, answer in self._carrier.pull(every) if every else ():
            self._take(sent, answer)

    def _push(self, asked: list[_Asked]) -> None:
        for one in asked:
            now = time.monotonic()
            if now >= one.due:
                sent = self._carrier.push(one.node, one.request)
                one.ids |= {sent} if sent else set()
                one.due, one.pause = now + one.pause, 2 * one.pause

    def _take(self, sent: str, answer: bytes) -> None:
        for node, one in list(self._hellos.items()):
            if one.answered(sent, answer):
                self._meet(node, one, answer)
        for site, one in list(self._asked.items()):
            if one.answered(sent, answer):
                del self._asked[site], self._wanted[site]
                self._answers.append((site, answer))

    def _meet(self, node: Node, asked: _Asked, answer: bytes) -> None:
        card, word = steps.find_caller(self._round, asked.request, answer)
        if card is None or self.nodes.get(card.name) in self._there:
            return
        if not word:
            self.nodes[card.name] = node
            self._asked.pop(card.name, None)
            del self._hellos[node]
        elif card.name in self._wanted:  # that is its answer to whatever it is asked
            self.refused[card.name] = word
            del self._wanted[card.name]
            self._answers.append((card.name, answer))
            asked.due = math.inf
