"""A round over TCP in a network of its own: ``unshare -n python wires.py FOLDER FATE STEP``.

Each site is a process that listens on an address of its own. In one step, while the last site
works on its answer, its wire is cut, or it is slower than the coordinator waits. Prints what came
of it as JSON.
"""

import contextlib
import json
import os
import queue
import socket
import struct
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import numpy as np

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.errors import HushTableError
from hushtable.privacy.mechanisms import add_noise
from hushtable_federation.book.book import Book
from hushtable_federation.clock import now
from hushtable_federation.keys import Keys
from hushtable_federation.online.secure_sum import SecureSum
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.policy import Policy
from hushtable_federation.round import Round

NAMES = ("north", "south", "west")
SCHEMA = Schema([Feature.numeric(name, low=0, high=1) for name in "xy"])
POLICY = Policy(unattended=True, persons=1, features=SCHEMA.features)
PORT, PATIENCE = 7_070, 3.0
#: Steps of a round in which no one is missing when the list is made, in their order.
ASKED = "keys", "shares", "masked", "unmask"


def address(name: str) -> str:
    return f"127.0.0.{2 + NAMES.index(name)}"


def wire(name: str, what: str) -> None:
    """Lay a site's wire, ``add``, or cut it, ``del``."""
    subprocess.run(["ip", "addr", what, f"{address(name)}/32", "dev", "lo"], check=True)


def send(to: socket.socket, content: bytes) -> None:
    to.sendall(struct.pack("!Q", len(content)) + content)


def receive(source: socket.socket) -> bytes:
    with source.makefile("rb") as stream:
        (length,) = struct.unpack("!Q", stream.read(8))
        content = stream.read(length)
    if len(content) < length:
        raise ConnectionError("cut off")
    return content


def serve(name: str, folder: Path, listening: socket.socket, pause: dict[int, float]) -> None:
    """Answer requests, one connection each, in a process of this site alone."""
    keys = Keys.load(folder / f"{name}.key")
    rows = np.random.default_rng(NAMES.index(name)).uniform(0, 1, (80, 2))
    for asked in range(1, 100):
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            request = receive(connection)
            time.sleep(pause.get(asked, 0.0))
            with Book.open(folder / f"{name}.book") as book:
                site = OnlineSite(
                    keys, book, lambda round_: Sketch.from_data(round_.plan, rows), policy=POLICY
                )
                send(connection, site.answer(request))


class Wires:
    """Reaches each site over its wire, all at the same time."""

    def __init__(self, cut_at: int) -> None:
        self.asked, self.cut_at = 0, cut_at
        self.answers: queue.Queue[tuple[str, bytes]] = queue.Queue()

    def send(self, name: str, request: bytes) -> None:
        threading.Thread(target=self._ask, args=(name, request), daemon=True).start()
        if name == NAMES[-1]:
            self.asked += 1
            if self.asked == self.cut_at:
                time.sleep(0.3)  # the request has arrived, and is worked on
                wire(name, "del")

    def _ask(self, name: str, request: bytes) -> None:
        answer = b""
        with (
            contextlib.suppress(OSError, struct.error),
            socket.create_connection((address(name), PORT), timeout=PATIENCE) as to,
        ):
            send(to, request)
            answer = receive(to)
        self.answers.put((name, answer))

    def receive(self, seconds: float) -> tuple[str, bytes] | None:
        with contextlib.suppress(queue.Empty):
            return self.answers.get(timeout=seconds)
        return None

    def close(self) -> None:
        pass


def main() -> None:
    folder, fate, step = Path(sys.argv[1]), sys.argv[2], ASKED.index(sys.argv[3]) + 1
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "addr", "del", "127.0.0.1/8", "dev", "lo"], check=False)
    pause = {"cut": 1.0, "slow": PATIENCE + 1.0}[fate]
    plan = Plan.draw(SCHEMA, n_tables=3, n_cells=16, random_state=0)
    # Kernels and sampler are loaded before the sites' clocks run.
    add_noise(Sketch.from_data(plan, np.zeros((2, 2))).counts, "discrete-gaussian", 2.0)
    cards, children = [], []
    for name in NAMES:
        keys = Keys.generate(name)
        keys.save(folder / f"{name}.key")
        Book.create(folder / f"{name}.book", keys.card, epsilon=2.0).close()
        cards.append(keys.card)
        wire(name, "add")
        listening = socket.create_server((address(name), PORT))
        if (pid := os.fork()) == 0:
            serve(name, folder, listening, {step: pause} if name == NAMES[-1] else {})
            os._exit(0)
        listening.close()
        children.append(pid)
    lead = Keys.generate("lead")
    for name in NAMES:
        with Book.open(folder / f"{name}.book") as book:
            book.trust([lead.card], "coordinator")
            book.trust(cards)
    terms = {"epsilon": 1.0, "deadline": now() + timedelta(days=1), "least": 2}
    round_ = Round.open(plan, cards, lead, **terms)
    secure_sum = SecureSum(round_, lead, Wires(step if fate == "cut" else 0), timeout=PATIENCE)
    said: dict[str, object] = {}
    try:
        result = secure_sum.run()
        shares = [share.release for share in result.ledger.shares]
        answers = {}
        for name in NAMES:
            with Book.open(folder / f"{name}.book") as book:
                answers |= {a.share.release: (name, a.sent) for a in book.answers()}
        said["inside"] = [answers[share][0] for share in shares]
        exact = sum(answers[share][1] for share in shares)
        said["exact"] = bool((result.counts == exact).all())
    except HushTableError as error:
        said["refused"] = str(error)
    finally:
        for pid in children:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
    print(json.dumps(said | {"lost": secure_sum.lost}))


if __name__ == "__main__":
    main()
