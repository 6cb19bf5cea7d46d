"""Online rounds over Flower: SuperLink and SuperNodes carry the messages, and know nothing else.

A Flower run sends an app to the SuperNodes, which run it. Ours, the folder ``app``, has only the
names of the two components below, so a site runs this installed file. ``python -m
hushtable_flower`` is a site's SuperNode. See ``docs/how-to/carriers.md``.
"""

import logging
import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from hushtable.errors import UsageError
from hushtable_federation.coordinator import Coordinator
from hushtable_federation.online.carriers import Node
from hushtable_federation.site import Site

_LOG = logging.getLogger(__name__)


def _content(value: bytes) -> RecordDict:
    return RecordDict({"hushtable": ConfigRecord({"content": value})})


def _value(message: Message) -> Any:
    return message.content["hushtable"]["content"]


# --- at a site ----------------------------------------------------------------------------------


def _answer(message: Message, context: Context) -> Message:
    """Answer one step; the state is in the book, so any process may answer the next one.

    Flower sends the text of an exception that leaves this function to the coordinator, so none
    does.
    """
    try:
        content = _answered(_value(message), context)
    except Exception as error:  # without keys and book, nothing can be signed
        _LOG.error("no answer: %s", error)
        content = b""
    return Message(_content(content), reply_to=message)


def _answered(request: bytes, context: Context) -> bytes:
    # The options of the SuperNode (--node-config).
    config = {name: str(value) for name, value in context.node_config.items()}
    if set(config) != {"site"}:
        raise UsageError(
            f"the SuperNode has --node-config {sorted(config)}: it needs only "
            "'site=\"NORTH.toml\"', the site's file"
        )
    return Site.open(config["site"]).answer(request)


client_app = ClientApp()
client_app.query("step")(_answer)


def _run_supernode() -> None:
    """Run Flower's SuperNode, with its own options; end the process when it ends.

    In flwr 1.41, a SuperNode whose connection fails leaves its main thread. But a server that it
    started continues in another thread, so the process stays without doing anything, and no service
    manager restarts it.
    """
    from flwr.supernode.cli.flower_supernode import flower_supernode

    try:
        flower_supernode()  # it ended by SystemExit, its server stopped, or it failed
        _LOG.error("the SuperNode lost its connection, and ends")
    except Exception:
        _LOG.exception("the SuperNode failed, and ends")
    sys.stdout.flush()
    os._exit(1)


# --- at the coordinator -------------------------------------------------------------------------


class _Grid:
    """Flower's grid as a `Carrier`; its messages live as long as a step."""

    def __init__(self, grid: Grid, timeout: float) -> None:
        self._grid, self._ttl = grid, timeout

    def nodes(self) -> Collection[Node]:
        """Return the ids of the SuperNodes."""
        return list(self._grid.get_node_ids())

    def push(self, node: Node, request: bytes) -> str | None:
        """Send a request to a SuperNode; return the message's id."""
        message = Message(
            _content(request), dst_node_id=node, message_type="query.step", ttl=self._ttl
        )
        return next(iter(self._grid.push_messages([message])), None)

    def pull(self, sent: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the replies of SuperNodes, by the id of the message that they answer."""
        for reply in self._grid.pull_messages(sent):
            content = None if reply.has_error() else _value(reply)
            answer = content if isinstance(content, bytes) else b""
            yield reply.metadata.reply_to_message_id, answer


server_app = ServerApp()


@server_app.main()
def _coordinate(grid: Grid, context: Context) -> None:
    """Run one round, or the rest of it; write the result and, in any case, a report."""
    config = context.run_config
    path, key, output = (Path(str(config[name])) for name in ("round", "key", "output"))
    timeout = float(config["timeout"])
    Coordinator(key).run(_Grid(grid, timeout), path, output, timeout=timeout)


if __name__ == "__main__":
    _run_supernode()
