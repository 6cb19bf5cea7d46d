"""The online form over Flower: SuperLink and SuperNodes carry its messages, and know nothing else.

A Flower run ships an app to the SuperNodes, which run it. Ours is a folder with a
``pyproject.toml`` whose components are the two names below: what runs at a site is this
installed file. Needs the extra ``flower``. See ``docs/flower.md``.
"""

import glob
import json
import logging
import math
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from hushtable import files
from hushtable.counts.sketch import Sketch
from hushtable.data.typed import open_rows
from hushtable.errors import HushTableError, UsageError
from hushtable.federation.approval import Approval
from hushtable.federation.book.book import ALL_ROWS, Book
from hushtable.federation.book.digests import RowDigester, RowDigests
from hushtable.federation.hidden import read_plan
from hushtable.federation.keys import Keys
from hushtable.federation.online import hello
from hushtable.federation.online.journal import path_of
from hushtable.federation.online.secure_sum import SecureSum
from hushtable.federation.online.site import OnlineSite
from hushtable.federation.policy_file import load_policy, policy_beside
from hushtable.federation.round import Round
from hushtable.plans.plan import Plan

_LOG = logging.getLogger(__name__)
#: Seconds between two looks for answers; and until a silent node is asked again, at first.
_LOOK, _PAUSE = 0.5, 20.0


def _content(value: bytes) -> RecordDict:
    return RecordDict({"hushtable": ConfigRecord({"content": value})})


def _value(message: Message) -> Any:
    return message.content["hushtable"]["content"]


# --- at a site ----------------------------------------------------------------------------------


def _answer(message: Message, context: Context) -> Message:
    """Answer one step; the state is in the book, so that any process may answer the next.

    Flower sends the coordinator the text of an exception that leaves this function: none does.
    """
    try:
        content = _answered(_value(message), context)
    except Exception as error:  # no keys, no book: there is nothing to sign with
        _LOG.error("no answer: %s", error)
        content = b""
    return Message(_content(content), reply_to=message)


def _answered(request: bytes, context: Context) -> bytes:
    # What the SuperNode was started with (--node-config).
    config = {name: str(value) for name, value in context.node_config.items()}
    if "key" not in config or "data" not in config:
        raise UsageError(
            'the SuperNode needs --node-config \'key="SITE.key" data="ROWS"\': whose keys, and '
            "which rows"
        )
    key = Path(config["key"])
    keys, path = Keys.load(key), config.get("book", key.with_suffix(".book"))
    hidden = read_plan(config["plan"]) if "plan" in config else None
    policy = load_policy(config.get("policy", policy_beside(key)))
    approvals = [Approval.load(found) for found in glob.glob(config.get("approvals", ""))]
    with Book.open(path, keys.card) as book:
        rows = _Rows(config["data"], book)
        site = OnlineSite(
            keys,
            book,
            rows.count,
            policy=policy,
            recognise=rows.seen,
            approvals={one.round_id: one for one in approvals},
            data_set=config.get("data-set", ALL_ROWS),
            plan=hidden,
        )
        return site.answer(request)


class _Rows:
    """The site's rows: counted, and recognised by what was counted."""

    def __init__(self, data: str, book: Book) -> None:
        self._data, self._book = data, book
        self._digester: RowDigester | None = None

    def count(self, plan: Plan) -> Sketch:
        self._digester = self._book.digester(plan.schema)
        rows = self._digester.watch(open_rows(self._data, plan.schema))
        sketch = Sketch.from_data(plan, rows, n_jobs=-1, allow_empty=True)
        if not sketch.n_rows:
            self._digester = None
        return sketch

    def seen(self) -> RowDigests | None:
        return None if self._digester is None else self._digester.digests()


client_app = ClientApp()
client_app.query("step")(_answer)


# --- at the coordinator -------------------------------------------------------------------------


@dataclass
class _Asked:
    """A request on its way to a node, until its answer is there."""

    node: int
    request: bytes
    #: Seconds to wait, once it is asked; each time longer.
    pause: float
    #: Ids of its messages: each time it is asked, another one.
    ids: set[str] = field(default_factory=set)
    #: When to ask (again), by `time.monotonic`.
    due: float = 0.0

    def answered(self, sent: str, answer: bytes) -> bool:
        """Whether this is the answer to one of its messages; of an error, ask again soon."""
        if sent not in self.ids:
            return False
        self.ids.remove(sent)
        if not answer:  # the node was away, or the app killed
            self.due = min(self.due, time.monotonic() + self.pause / 6)
        return bool(answer)


class _Nodes:
    """Reaches the sites of a round at their nodes: a `Transport`.

    Which node is whose shows by its answer to `hello`. Flower loses an answer where a TLS handshake
    takes too long, as on a busy machine, and gives up on a node that is away for a minute: whoever
    is silent is asked again, later each time, until his time is over.
    """

    def __init__(self, grid: Grid, round_: Round, keys: Keys, timeout: float) -> None:
        self._grid, self._round, self._keys, self._ttl = grid, round_, keys, timeout
        self._pause = min(_PAUSE, timeout / 4)
        self._wanted: dict[str, bytes] = {}
        self._hellos: dict[int, _Asked] = {}
        self._asked: dict[str, _Asked] = {}
        self._answers: deque[tuple[str, bytes]] = deque()
        self._there: set[int] = set()
        self.refused: dict[str, str] = {}
        self.nodes: dict[str, int] = {}

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
            except Exception as error:  # of Flower's many: a time-out is no reason to give up
                _LOG.warning("Flower failed, and is asked again: %s", error)
            if self._answers:
                return self._answers.popleft()
            if time.monotonic() >= end:
                return None
            time.sleep(_LOOK)

    def close(self) -> None:
        """Leave the rest to Flower, which ends the run."""

    def _look(self) -> None:
        self._there = set(self._grid.get_node_ids())
        met = {site for site, node in self.nodes.items() if node in self._there}
        if not set(self._wanted) <= met:
            for node in self._there - set(self._hellos) - set(self.nodes.values()):
                request = hello.request(self._round, self._keys)
                self._hellos[node] = _Asked(node, request, self._pause)
        for site in (set(self._wanted) & met) - set(self._asked):
            self._asked[site] = _Asked(self.nodes[site], self._wanted[site], self._pause)
        under_way = [*self._hellos.values(), *self._asked.values()]
        self._push([one for one in under_way if one.node in self._there])
        every = {sent for one in under_way for sent in one.ids}
        for reply in self._grid.pull_messages(every) if every else ():
            self._take(reply.metadata.reply_to_message_id, reply)

    def _push(self, asked: list[_Asked]) -> None:
        for one in asked:
            now = time.monotonic()
            if now >= one.due:
                message = Message(
                    _content(one.request), dst_node_id=one.node, message_type="query.step",
                    ttl=self._ttl,
                )  # fmt: skip
                one.ids |= {sent for sent in self._grid.push_messages([message]) if sent}
                one.due, one.pause = now + one.pause, 2 * one.pause

    def _take(self, sent: str, reply: Message) -> None:
        content = None if reply.has_error() else _value(reply)
        answer = content if isinstance(content, bytes) else b""
        for node, one in list(self._hellos.items()):
            if one.answered(sent, answer):
                self._meet(node, one, answer)
        for site, one in list(self._asked.items()):
            if one.answered(sent, answer):
                del self._asked[site], self._wanted[site]
                self._answers.append((site, answer))

    def _meet(self, node: int, asked: _Asked, answer: bytes) -> None:
        card, word = hello.caller(self._round, asked.request, answer)
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


server_app = ServerApp()


# Flower is untyped where it is not installed.
@server_app.main()  # type: ignore[untyped-decorator, unused-ignore]
def _coordinate(grid: Grid, context: Context) -> None:
    """Run one round, or what is left of it; write the result, and in any case how it went."""
    config = context.run_config
    output, path = Path(str(config["output"])), Path(str(config["round"]))
    round_ = Round.from_bytes(path.read_bytes(), path)
    key, timeout = Path(str(config["key"])), float(config["timeout"])
    keys = Keys.load(key)
    nodes = _Nodes(grid, round_, keys, timeout)
    journal = path_of(key, round_)
    secure_sum = SecureSum(round_, keys, nodes, timeout=timeout, journal=journal)
    state: dict[str, Any] = {"round_id": round_.round_id}
    try:
        secure_sum.run().save(output)
        state |= {"done": True}
    except HushTableError as error:  # in this side's words: of a site's, one at most is in it
        state |= {"done": False, "error": str(error)}
    state |= {"nodes": sorted(nodes.nodes), "reached": secure_sum.reached}
    state |= {"lost": secure_sum.lost, "refused": nodes.refused}
    with files.replacing(output.with_suffix(".state.json")) as temporary:
        temporary.write_text(json.dumps(state, indent=2) + "\n")
