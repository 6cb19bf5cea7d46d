"""The online form over Flower: SuperLink and SuperNodes carry its messages, and know nothing else.

A Flower run ships an app to the SuperNodes, which run it. Ours is a folder with a
``pyproject.toml`` whose components are the two names below: what runs at a site is this
installed file. Needs the extra ``flower``. See ``docs/flower.md``.
"""

import glob
import json
import logging
import time
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
from hushtable.federation.online.secure_sum import SecureSum
from hushtable.federation.online.site import OnlineSite
from hushtable.federation.policy_file import load_policy, policy_beside
from hushtable.federation.round import Round
from hushtable.plans.plan import Plan


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
        logging.getLogger(__name__).error("no answer: %s", error)
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


class _Nodes:
    """Reaches the sites of a round at their nodes: a `Transport`."""

    def __init__(self, grid: Grid, round_: Round, keys: Keys, timeout: float) -> None:
        self._grid, self._timeout = grid, timeout
        self._requests: dict[int, bytes] = {}
        self._answers: list[tuple[int, bytes]] = []
        self.refused: dict[str, str] = {}
        self.nodes: dict[str, int] = {}
        self._meet(round_, keys)

    def send(self, site: str, request: bytes) -> None:
        """Note what goes out with the requests to other sites."""
        if site not in self.nodes:
            raise ConnectionError(f"no node said that it is {site!r}")
        self._requests[self.nodes[site]] = request

    def receive(self, seconds: float) -> tuple[str, bytes] | None:
        """Send what is noted, if anything is; return one of the answers."""
        self._exchange(seconds)
        if not self._answers:
            return None
        node, answer = self._answers.pop(0)
        return next(name for name, one in self.nodes.items() if one == node), answer

    def close(self) -> None:
        """Leave the rest to Flower, which ends the run."""

    def _meet(self, round_: Round, keys: Keys) -> None:
        """Ask nodes who they are until all sites are there, or time is up."""
        asked: set[int] = set()
        end = time.monotonic() + self._timeout
        while not set(round_.names) <= {*self.nodes, *self.refused} and time.monotonic() < end:
            new = set(self._grid.get_node_ids()) - asked
            hellos = {node: hello.request(round_, keys) for node in new}
            self._requests |= hellos
            self._exchange(self._timeout)
            for node, answer in self._answers:
                card, word = hello.caller(round_, hellos[node], answer)
                if card is not None and word:
                    self.refused[card.name] = word
                elif card is not None:
                    self.nodes.setdefault(card.name, node)
                asked.add(node)
            self._answers = []
            time.sleep(0.5)

    def _exchange(self, seconds: float) -> None:
        """Send what is noted, all at once, and wait for the answers."""
        messages = [
            Message(_content(one), dst_node_id=node, message_type="query.step", ttl=self._timeout)
            for node, one in self._requests.items()
        ]
        self._requests = {}
        replies = self._grid.send_and_receive(messages, timeout=seconds) if messages else ()
        # A node that was killed, or an app that failed, comes back as an error: no answer.
        found = ((m.metadata.src_node_id, _value(m)) for m in replies if not m.has_error())
        self._answers += [(node, one) for node, one in found if isinstance(one, bytes) and one]


server_app = ServerApp()


# Flower is untyped where it is not installed.
@server_app.main()  # type: ignore[untyped-decorator, unused-ignore]
def _coordinate(grid: Grid, context: Context) -> None:
    """Run one round; write the result, and in any case how it went."""
    config = context.run_config
    output, path = Path(str(config["output"])), Path(str(config["round"]))
    round_ = Round.from_bytes(path.read_bytes(), path)
    keys, timeout = Keys.load(str(config["key"])), float(config["timeout"])
    nodes = _Nodes(grid, round_, keys, timeout)
    secure_sum = SecureSum(round_, keys, nodes, timeout=timeout)
    state: dict[str, Any] = {"round_id": round_.round_id, "nodes": sorted(nodes.nodes)}
    try:
        secure_sum.run().save(output)
        state |= {"done": True}
    except HushTableError as error:  # in this side's words: of a site's, one at most is in it
        state |= {"done": False, "error": str(error)}
    state |= {"reached": secure_sum.reached, "lost": secure_sum.lost, "refused": nodes.refused}
    with files.replacing(output.with_suffix(".state.json")) as temporary:
        temporary.write_text(json.dumps(state, indent=2) + "\n")
