"""Transport of messages between a coordinator and its sites: within a process, and over networks.

A network addresses nodes by its own names. Its operations are a `Carrier`; which site gets which
request, and when it is repeated, is decided here, in the same way for all carriers.
"""

import logging
import math
import secrets
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hushtable.errors import HushTableError
from hushtable_federation.keys import Card, Keys
from hushtable_federation.protocol.messages import Message, ask
from hushtable_federation.refusals import Refused
from hushtable_federation.round import Round


class Transport(Protocol):
    """Carries bytes to sites, and returns their answers; knows no step and no key.

    `SecureSum` handles time-outs, refusals and sites that drop out, and closes the transport
    at the end of the round. See `Memory` for one in this process.
    """

    def send(self, site: str, request: bytes) -> None:
        """Send a request to a site, without waiting for the answer.

        An `OSError` means that the site cannot be reached now.
        """

    def receive(self, seconds: float) -> tuple[str, bytes] | None:
        """Return the next answer with its site's name, or None if none arrived within ``seconds``.

        Empty bytes mean that this site will not answer its last request. The method may return None
        early if no more answers can arrive.
        """

    def close(self) -> None:
        """Release all resources of the transport; nothing is sent or received after that."""


class Memory:
    """Lets sites in this process answer immediately; see `Transport`.

    Takes, by name of the site, a function that answers a request, such as `OnlineSite.answer`. A
    site without one, or with None as an answer, is silent. ``closed`` states whether the round is
    over.
    """

    def __init__(self, sites: Mapping[str, Callable[[bytes], bytes | None]]) -> None:
        self._sites, self.closed = sites, False
        self._answers: deque[tuple[str, bytes]] = deque()

    def send(self, site: str, request: bytes) -> None:
        """Let the site answer."""
        answer = self._sites[site](request) if site in self._sites else None
        if answer is not None:
            self._answers.append((site, answer))

    def receive(self, seconds: float) -> tuple[str, bytes] | None:
        """Return the next answer, without waiting."""
        return self._answers.popleft() if self._answers else None

    def close(self) -> None:
        """Record that the round is over."""
        self.closed = True


_LOG = logging.getLogger(__name__)
#: Seconds between two checks for answers; and before the first repetition to a silent node.
_LOOK, _PAUSE = 0.5, 20.0

#: A network's name for one of its nodes.
Node = int | str


class Carrier(Protocol):
    """A network that brings requests to nodes, and answers back.

    A `HushTableError` from any of these methods ends the round. Other errors are logged, and the
    call is repeated.
    """

    def nodes(self) -> Collection[Node]:
        """Return the nodes that can be reached now."""

    def push(self, node: Node, request: bytes) -> str | None:
        """Send a request; return the id of this message, or None if none was needed or possible."""

    def pull(self, sent: Collection[str]) -> Iterable[tuple[str, bytes]]:
        """Return the answers to sent messages, by id; empty bytes for a failure."""


@dataclass
class _Asked:
    node: Node
    request: bytes
    #: Seconds to wait after sending; longer each time.
    pause: float
    #: Ids of its messages: a new one each time it is sent.
    ids: set[str] = field(default_factory=set)
    #: When to send (again), by `time.monotonic`.
    due: float = 0.0

    def answered(self, sent: str, answer: bytes) -> bool:
        if sent not in self.ids:
            return False
        self.ids.remove(sent)
        if not answer:  # the node was away, or its process was killed
            self.due = min(self.due, time.monotonic() + self.pause / 6)
        return bool(answer)


class Nodes:
    """Reaches the sites of a round at their nodes: a `Transport`.

    A node's answer to `hello` shows which site it belongs to. Networks lose answers, as Flower does
    if a TLS handshake takes too long, and give up on a node that is away. So the request to a
    silent node is repeated, at growing intervals, until its time is over.

    Parameters
    ----------
    carrier : Carrier
        The network.
    round_ : Round
        The round, whose sites are searched for.
    keys : Keys
        The coordinator's.
    timeout : float
        Seconds that a site has for each step.

    Attributes
    ----------
    nodes : dict of str to int or str
        The node of each site that said hello.
    refused : dict of str to str
        The word of each site that refused.
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
        """Record the next request; it replaces the previous one."""
        if self._wanted.get(site) != request:
            self._wanted[site] = request
            self._asked.pop(site, None)

    def receive(self, seconds: float) -> tuple[str, bytes] | None:
        """Send what is due and collect answers, until one arrives."""
        end = time.monotonic() + seconds
        while True:
            try:
                self._look()
            except HushTableError:
                raise
            except (
                Exception
            ) as error:  # one of many errors of a network: a time-out is no reason to give up
                _LOG.warning("the network failed, and the call is repeated: %s", error)
            if self._answers:
                return self._answers.popleft()
            if time.monotonic() >= end:
                return None
            time.sleep(_LOOK)

    def close(self) -> None:
        """Leave the rest to the network, which ends its own processes."""

    def _look(self) -> None:
        self._there = set(self._carrier.nodes())
        met = {site for site, node in self.nodes.items() if node in self._there}
        if not set(self._wanted) <= met:
            for node in self._there - set(self._hellos) - set(self.nodes.values()):
                self._hellos[node] = _Asked(node, ask_hello(self._round, self._keys), self._pause)
        for site in (set(self._wanted) & met) - set(self._asked):
            self._asked[site] = _Asked(self.nodes[site], self._wanted[site], self._pause)
        under_way = [*self._hellos.values(), *self._asked.values()]
        for task in under_way:
            now = time.monotonic()
            if task.node in self._there and now >= task.due:
                sent = self._carrier.push(task.node, task.request)
                task.ids |= {sent} if sent else set()
                task.due, task.pause = now + task.pause, 2 * task.pause
        every = {sent for task in under_way for sent in task.ids}
        for sent, answer in self._carrier.pull(every) if every else ():
            self._take(sent, answer)

    def _take(self, sent: str, answer: bytes) -> None:
        for node, hello in list(self._hellos.items()):
            if hello.answered(sent, answer):
                self._meet(node, hello, answer)
        for site, hello in list(self._asked.items()):
            if hello.answered(sent, answer):
                del self._asked[site], self._wanted[site]
                self._answers.append((site, answer))

    def _meet(self, node: Node, asked: _Asked, answer: bytes) -> None:
        card, word = find_caller(self._round, asked.request, answer)
        if card is None or self.nodes.get(card.name) in self._there:
            return
        if not word:
            self.nodes[card.name] = node
            self._asked.pop(card.name, None)
            del self._hellos[node]
        elif card.name in self._wanted:  # this is its answer to any request
            self.refused[card.name] = word
            del self._wanted[card.name]
            self._answers.append((card.name, answer))
            asked.due = math.inf


def ask_hello(round_: Round, keys: Keys) -> bytes:
    """Return a request for one node alone, so that a signed answer proves which site it is."""
    return ask(round_, "hello", keys, {"node": secrets.token_hex(16)})


def find_caller(round_: Round, asked: bytes, content: bytes) -> tuple[Card | None, str]:
    """Return the site that answered a request, and its word if it refused; None if not valid."""
    digest = Message.read(asked, round_.coordinator).digest
    for card in round_.sites:
        try:
            message = Message.read(content, card)
            if message.check(round_, "hello").body == {"asked": digest}:
                return card, ""
        except Refused as error:
            if message.round_id == round_.round_id:  # and not a repetition of a different one
                return card, error.word
        except HushTableError:
            continue
    return None, ""
