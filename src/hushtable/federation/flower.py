"""The online form over Flower: SuperLink and SuperNodes carry its messages, and know nothing else.

A Flower run ships an app to the SuperNodes, which run it. Ours is a folder with a
``pyproject.toml`` whose components are the two names below: what runs at a site is this
installed file. Needs the extra ``flower``. See ``docs/flower.md``.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from hushtable import files
from hushtable.engines.work import rows_of
from hushtable.errors import HushTableError, UsageError
from hushtable.federation.book import ALL_ROWS, Book
from hushtable.federation.hidden import read_plan
from hushtable.federation.keys import Keys
from hushtable.federation.online import OnlineSite
from hushtable.federation.round import Round
from hushtable.federation.secure_sum import SecureSum
from hushtable.plan import Plan
from hushtable.sketch import Sketch

__all__ = ["client_app", "server_app"]


def _content(value: bytes | str) -> RecordDict:
    return RecordDict({"hushtable": ConfigRecord({"content": value})})


def _value(message: Message) -> Any:
    return message.content["hushtable"]["content"]


# --- at a site ----------------------------------------------------------------------------------


def _site(context: Context) -> tuple[Keys, Path, dict[str, Any]]:
    """Return keys, book and the rest of what the SuperNode was started with (--node-config)."""
    config = dict(context.node_config)
    if "key" not in config or "data" not in config:
        raise UsageError(
            'the SuperNode needs --node-config \'key="SITE.key" data="ROWS"\': whose keys, and '
            "which rows"
        )
    key = Path(str(config["key"]))
    return Keys.load(key), Path(str(config.get("book", key.with_suffix(".book")))), config


def _hello(message: Message, context: Context) -> Message:
    """Say which site this node is; what it sends later is signed, so that this need not be."""
    keys, _, _ = _site(context)
    return Message(_content(keys.card.name), reply_to=message)


def _answer(message: Message, context: Context) -> Message:
    """Answer one step; the state is in the book, so that any process may answer the next."""
    keys, book, config = _site(context)
    hidden = None
    if "plan" in config:
        hidden = read_plan(str(config["plan"]))

    def count(plan: Plan) -> Sketch:
        rows = rows_of(plan, str(config["data"]))
        return Sketch.from_data(plan, rows, n_jobs=-1, allow_empty=True)

    data_set = str(config.get("data-set", ALL_ROWS))
    with Book.open(book, keys.card) as notes:
        site = OnlineSite(keys, notes, count, data_set=data_set, plan=hidden)
        return Message(_content(site.answer(_value(message))), reply_to=message)


client_app = ClientApp()
client_app.query("hello")(_hello)
client_app.query("step")(_answer)


# --- at the coordinator -------------------------------------------------------------------------


class _Nodes:
    """Reaches the sites of a round; see `hushtable.federation.secure_sum.Transport`."""

    def __init__(self, grid: Grid, sites: list[str], timeout: float) -> None:
        self._grid, self._timeout = grid, timeout
        self.nodes = self._meet(sites)

    def __call__(self, requests: Mapping[str, bytes]) -> dict[str, bytes]:
        found = self._send("query.step", {
            self.nodes[name]: request for name, request in requests.items() if name in self.nodes
        })  # fmt: skip
        names = {node: name for name, node in self.nodes.items()}
        return {names[node]: value for node, value in found.items()}

    def _meet(self, sites: list[str]) -> dict[str, int]:
        """Ask nodes who they are until all sites are there, or time is up."""
        nodes: dict[str, int] = {}
        asked: set[int] = set()
        end = time.monotonic() + self._timeout
        while set(nodes) < set(sites) and time.monotonic() < end:
            new = set(self._grid.get_node_ids()) - asked
            for node, name in self._send("query.hello", dict.fromkeys(new, "")).items():
                if name in sites:
                    nodes.setdefault(name, node)
                asked.add(node)
            time.sleep(0.5)
        return nodes

    def _send(self, action: str, contents: Mapping[int, bytes | str]) -> dict[int, Any]:
        messages = [
            Message(_content(content), dst_node_id=node, message_type=action, ttl=self._timeout)
            for node, content in contents.items()
        ]
        replies = self._grid.send_and_receive(messages, timeout=self._timeout) if messages else ()
        # A node that was killed, or an app that failed, comes back as an error: no answer.
        return {m.metadata.src_node_id: _value(m) for m in replies if not m.has_error()}


server_app = ServerApp()


@server_app.main()  # type: ignore[untyped-decorator, unused-ignore]
def _coordinate(grid: Grid, context: Context) -> None:
    """Run one round; write the result, and in any case how it went."""
    config = context.run_config
    output = Path(str(config["output"]))
    path = Path(str(config["round"]))
    round_ = Round.from_bytes(path.read_bytes(), path)
    keys = Keys.load(str(config["key"]))
    nodes = _Nodes(grid, round_.names, float(config["timeout"]))
    secure_sum = SecureSum(round_, keys, nodes)
    state: dict[str, Any] = {"round_id": round_.round_id, "nodes": sorted(nodes.nodes)}
    try:
        secure_sum.run().save(output)
        state |= {"done": True}
    except HushTableError as error:
        state |= {"done": False, "error": str(error)}
    state |= {"reached": secure_sum.reached, "lost": secure_sum.lost}
    with files.replacing(output.with_suffix(".state.json")) as temporary:
        temporary.write_text(json.dumps(state, indent=2) + "\n")
