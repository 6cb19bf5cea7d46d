"""Online rounds over vantage6: its server carries the messages between nodes, and nothing else.

A node starts a new container for each call. The only lasting state is the folder ``hushtable`` of
the node's configuration: a database of type ``folder``, which is mounted at ``/mnt/hushtable``. It
contains the keys, and the settings: ``site.toml``, which also names the rows, or
``coordinator.toml``. The package ``v6_hushtable`` names the two functions below, which are all that
a caller can reach. See ``docs/how-to/carriers.md``.

A caller may choose at a vantage6 node a function, its arguments, and a database. Here, only the
signed request matters.
"""

import base64
import contextlib
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from hushtable import files
from hushtable_federation.clock import now, stamp
from hushtable_federation.coordinator import Coordinator
from hushtable_federation.online.carriers import Node
from hushtable_federation.refusals import Refusal, SiteLog
from hushtable_federation.site import Site
from hushtable_federation.toml_file import TEXT, Kind, TomlFile

#: Name of the function at a site, in the package.
PARTIAL = "partial"
#: Statuses of vantage6 in which a run may still give a result.
_UNDER_WAY = frozenset({"pending", "initializing", "active", "completed"})
_NUMBER: Kind = (lambda value: type(value) in (int, float), "a number")
#: Entries of ``coordinator.toml``; the first two are needed.
_ENTRIES = {"key": TEXT, "round": TEXT, "timeout": _NUMBER}


def _folder() -> Path:
    # Set by the image or the node: a caller cannot set a variable of this name.
    return Path(os.environ.get("HUSHTABLE_FOLDER", "/mnt/hushtable"))


# --- at a site ----------------------------------------------------------------------------------


def answer(request: str) -> str:
    """Answer one step of a round; a node runs this in a new container.

    Parameters
    ----------
    request : str
        The request that the coordinator signed, in base64.

    Returns
    -------
    str
        The content that the site signed, in base64: the answer, or one word. Empty without keys or
        a book.

    Notes
    -----
    A node may pass on to the server whatever a container prints, and prints the text of an
    exception itself. So this function prints nothing, and no exception leaves it.
    """
    with _silence():
        folder = _folder()
        try:
            return _text(Site.open(folder / "site.toml").answer(_content(request)))
        except (
            BaseException
        ) as error:  # compiled libraries also raise errors that are not an Exception
            log = SiteLog(folder / "vantage6.log")
            record = f"{type(error).__name__}: {error}"
            log.write(stamp(now()), "", "", Refusal.UNAVAILABLE, record)
            return ""


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Suppress all output from Python and from compiled libraries."""
    kept = [os.dup(number) for number in (1, 2)]
    try:
        with (
            open(os.devnull, "w") as nowhere,
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
        ):
            for number in (1, 2):
                os.dup2(nowhere.fileno(), number)
            yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _content(text: Any) -> bytes:
    """Return what `_text` was given; empty for anything else."""
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except ValueError:
        return b""


# --- at the coordinator -------------------------------------------------------------------------


class _Organisations:
    """The nodes of a collaboration, by the ids of their organisations, as a `Carrier`.

    Each request is a separate task. `client.wait_for_results` would wait forever for a node that is
    away, so tasks are polled instead.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._ids = [int(one["id"]) for one in client.organization.list()]

    def nodes(self) -> Collection[Node]:
        """Return all nodes: a task for an offline node waits until it is back."""
        return self._ids

    def push(self, node: Node, request: bytes) -> str | None:
        """Create a task for a node."""
        asked = {"method": PARTIAL, "kwargs": {"request": _text(request)}}
        task = self._client.task.create(
            input_=asked, organizations=[node], name="hushtable", description="a step of a round"
        )
        return str(task["id"]) if "id" in task else None

    def pull(self, sent: Collection[str]) -> Iterable[tuple[str, bytes]]:
        """Return the results that have arrived; empty for a failed container."""
        for task in sent:
            results = self._client.result.from_task(int(task))
            if results:
                yield task, _content(results[0])
            elif any(
                run.get("status") not in _UNDER_WAY for run in self._client.run.from_task(int(task))
            ):
                yield task, b""


def coordinate(client: Any) -> dict[str, Any]:
    """Run the round that ``coordinator.toml`` names, or the rest of it.

    Everything about it is in the folder of the coordinator's node; the author of a task chooses
    nothing. Decisions are kept beside the keys, so the same task continues from there, regardless
    of how the last one ended.

    Parameters
    ----------
    client : AlgorithmClient
        Of vantage6.

    Returns
    -------
    dict
        The report of `Coordinator.run`, and the signed ``result`` in base64, if there is one.

    Raises
    ------
    HushTableError, OSError
        If the folder lacks files that the coordinator needs, or another task is using it.
    """
    folder = _folder()
    path = folder / "coordinator.toml"
    remedy = (
        "give the node a database of type folder with the label hushtable, and put "
        f"{path.name} there"
    )
    record = TomlFile.read(path, remedy).check(_ENTRIES, ("key", "round"))
    output = folder / "result.hush"
    with files.locked(path):  # two tasks at a time would ask twice
        seconds = record.get("timeout", 600.0)
        carrier = _Organisations(client)
        state = Coordinator(folder / record["key"]).run(
            carrier, folder / record["round"], output, timeout=seconds
        )
    return state | ({"result": _text(output.read_bytes())} if state["done"] else {})
