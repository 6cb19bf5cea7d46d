"""The online form over vantage6: its server carries the messages between nodes, and nothing else.

A node starts a fresh container for each call. What lasts is the folder ``hushtable`` of the node's
configuration: a database of type ``folder``, which is mounted at ``/mnt/hushtable``. It holds the
keys, and the file that says the rest: ``site.toml``, or ``coordinator.toml``. The package in the
folder ``vantage6`` of the project names the two functions below, and is all that a caller reaches.
Needs no library of vantage6's. See ``docs/how-to/carriers.md``.

What a caller may choose at a vantage6 node is a function, its arguments, the label of a database,
and for this a query and preprocessing. Here, only the signed request counts: label and query are
the site's.
"""

import base64
import contextlib
import os
from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hushtable import files
from hushtable.counts.base import Noised
from hushtable.errors import RoundError, UsageError
from hushtable_federation.clock import now, stamp
from hushtable_federation.coordinator import Coordinator, following
from hushtable_federation.keys import Keys
from hushtable_federation.online.carriers import Node, Nodes
from hushtable_federation.online.tally import path_of
from hushtable_federation.refusals import Refusal, SiteLog
from hushtable_federation.result import Result
from hushtable_federation.round import Round
from hushtable_federation.site import Site
from hushtable_federation.toml_file import NUMBER, TEXT, TomlFile

#: Name of the function at a site, as the package calls it.
PARTIAL = "partial"
#: Statuses of vantage6 in which a run may still bring a result.
_UNDER_WAY = frozenset({"pending", "initializing", "active", "completed"})
#: Entries of ``coordinator.toml``; the first two are needed.
_ENTRIES = {"key": TEXT, "round": TEXT, "timeout": NUMBER, "days": NUMBER, "ranks": NUMBER}


def _folder() -> Path:
    # Of the image or the node: a caller can set no variable of this name.
    return Path(os.environ.get("HUSHTABLE_FOLDER", "/mnt/hushtable"))


# --- at a site ----------------------------------------------------------------------------------


def answer(request: str) -> str:
    """Answer one step of a round: what a node runs, in a container of its own.

    Parameters
    ----------
    request : str
        What the coordinator signed, in base64.

    Returns
    -------
    str
        What the site signed, in base64: the answer, or one word. Empty without keys or a book.

    Notes
    -----
    A node may pass on to the server whatever a container prints, and prints the text of an
    exception itself. So nothing is printed, and none leaves this function.
    """
    with _silence():
        folder = _folder()
        try:
            site = Site.open(folder / "site.toml", databases=_rows)
            return _text(site.answer(_content(request)))
        except BaseException as error:  # compiled libraries raise what is no Exception, too
            log = SiteLog(folder / "vantage6.log")
            record = f"{type(error).__name__}: {error}"
            log.write(stamp(now()), "", "", Refusal.UNAVAILABLE, record)
            return ""


def _rows(label: str) -> str:
    """Return one of the node's databases as our readers name it."""
    name = label.upper()
    uri = os.environ.get(f"{name}_DATABASE_URI")
    kind = os.environ.get(f"{name}_DATABASE_TYPE", "").lower()
    if uri is None:
        raise UsageError(
            f"database = {label!r}: the node has no database of this label; name one of those in "
            "its configuration"
        )
    if kind in ("csv", "parquet"):
        return os.path.abspath(uri)  # the site's file may be in another folder
    if kind == "sql":  # a path is that of a file of SQLite's
        return f"sqlite:///{uri}" if Path(uri).is_absolute() else uri
    if kind == "omop" and uri.startswith("jdbc:postgresql://"):
        users = [os.environ.get(f"{name}_DB_PARAM_{one}", "") for one in ("USER", "PASSWORD")]
        user = ":".join(quote(one, safe="") for one in users if one)
        return uri.removeprefix("jdbc:").replace("://", f"://{user}@" if user else "://", 1)
    raise UsageError(
        f"database = {label!r} is of type {kind!r}: needs csv, parquet, sql (a URL, or the path of "
        "a file of SQLite's), or omop with a URI that begins with jdbc:postgresql://"
    )


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Let nothing be printed: neither from Python, nor from compiled libraries."""
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
    """Return what `_text` was given; nothing of what it did not make."""
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except ValueError:
        return b""


# --- at the coordinator -------------------------------------------------------------------------


class _Organisations:
    """The nodes of a collaboration, by the ids of their organisations, as a `Carrier`.

    Each request is a task of its own. `client.wait_for_results` would wait for a node that is away
    for ever: so tasks are looked at, and never waited for.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._ids = [int(one["id"]) for one in client.organization.list()]

    def nodes(self) -> Collection[Node]:
        """Return all: a task for a node that is offline waits until it is back."""
        return self._ids

    def push(self, node: Node, request: bytes) -> str | None:
        """Create a task for a node."""
        asked = {"method": PARTIAL, "kwargs": {"request": _text(request)}}
        task = self._client.task.create(
            input_=asked, organizations=[node], name="hushtable", description="a step of a round"
        )
        return str(task["id"]) if "id" in task else None

    def pull(self, sent: Collection[str]) -> Iterable[tuple[str, bytes]]:
        """Return the results that are there; of a container that failed, nothing."""
        for task in sent:
            results = self._client.result.from_task(int(task))
            if results:
                yield task, _content(results[0])
            elif any(
                run.get("status") not in _UNDER_WAY for run in self._client.run.from_task(int(task))
            ):
                yield task, b""


def coordinate(client: Any) -> dict[str, Any]:
    """Run a campaign, or what is left of it: marginals, tables and, if wanted, ranks.

    Everything about it is in the folder of the coordinator's node; the author of a task chooses
    nothing. Rounds, decisions and results are kept beside the keys, so that the same task goes on
    from there, whatever ended the last one.

    Parameters
    ----------
    client : AlgorithmClient
        Of vantage6.

    Returns
    -------
    dict
        ``done``; ``rounds``, one entry for each that was run: its ``round_id``, what it is
        ``about``, who was ``reached``, ``lost`` and ``refused``, each in one word, and the signed
        ``result`` in base64; and the ``error``, if there is no sum.

    Raises
    ------
    HushTableError, OSError
        If the folder lacks what the coordinator needs, or another task is at work in it.
    """
    folder = _folder()
    path = folder / "coordinator.toml"
    remedy = (
        "give the node a database of type folder with the label hushtable, and put "
        f"{path.name} there"
    )
    record = TomlFile.read(path, remedy).check(_ENTRIES, ("key", "round"))
    with files.locked(path):  # or two tasks would draw two plans
        return _campaign(client, folder, record)


def _campaign(client: Any, folder: Path, record: dict[str, Any]) -> dict[str, Any]:
    key, path = folder / record["key"], folder / record["round"]
    lead = Coordinator(key)
    first = Round.from_bytes(path.read_bytes(), path)
    _check_left(first, record.get("ranks"))
    asked: Round | None = first
    run: dict[str, Any] = {"done": False, "rounds": []}
    while asked is not None:
        about = {"round_id": asked.round_id, "about": asked.layout.purpose.value}
        run["rounds"].append(about)
        beside = path_of(key, asked)
        try:
            result = _result(client, asked, lead, beside, record.get("timeout", 600.0), about)
            asked = _after(asked, result, lead.keys, beside, record)
        except RoundError as error:  # in this side's words: of a site's, one at most is in it
            return run | {"error": str(error)}
    return run | {"done": True}


def _check_left(asked: Round, ranks: float | None) -> None:
    """Raise `UsageError` before anyone spends, if nothing would be left for the ranks."""
    if ranks is not None and ranks <= asked.terms.epsilon:
        raise UsageError(
            f"ranks = {ranks:g} is the total epsilon with the ranks, and the rounds before them "
            f"may cost {asked.terms.epsilon:g}: open the first round with less, such as "
            f"--epsilon {0.9 * ranks:g}"
        )


def _result(
    client: Any,
    asked: Round,
    lead: Coordinator,
    beside: Path,
    seconds: float,
    about: dict[str, Any],
) -> Noised:
    """Return the signed result of a round, of now or of before, and say ``about`` it."""
    path = beside.with_suffix(".result.hush")
    if not path.exists():
        nodes = Nodes(_Organisations(client), asked, lead.keys, seconds)
        secure_sum = lead.secure_sum(asked, nodes, seconds)
        try:
            secure_sum.run().save(path)
        finally:
            about |= {"reached": secure_sum.reached, "lost": secure_sum.lost}
            about |= {"refused": nodes.refused}
    about["result"] = _text(path.read_bytes())
    result = Result.load(path)
    result.check_round(asked)
    return result.counts


def _after(
    asked: Round, result: Noised, keys: Keys, beside: Path, record: dict[str, Any]
) -> Round | None:
    """Return the round that follows, as it was written down before anyone was asked."""
    path = beside.with_suffix(".next.hush")
    if not path.exists():
        deadline = now() + timedelta(days=record.get("days", 14.0))
        opened = following(asked, result, keys, deadline, record.get("ranks"))
        if opened is None:
            return None
        opened.save(path)
    return Round.from_bytes(path.read_bytes(), path)
