"""Online rounds over vantage6: its server carries the messages between nodes, and nothing else.

A node starts a new container for each call. The only lasting state is the folder ``hushtable`` of
the node's configuration: a database of type ``folder``, which is mounted at ``/mnt/hushtable``. It
contains the keys, and the settings: ``site.toml``, or ``coordinator.toml``. The package in the
folder ``vantage6`` of the project names the two functions below, which are all that a caller can
reach. Needs no vantage6 library. See ``docs/how-to/carriers.md``.

A caller may choose at a vantage6 node a function, its arguments, the label of a database, and a
query and preprocessing for it. Here, only the signed request matters: the site chooses label and
query.
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
from hushtable_federation.online.journal import path_of
from hushtable_federation.refusals import Refusal, SiteLog
from hushtable_federation.result import Result
from hushtable_federation.round import Round
from hushtable_federation.site import Site
from hushtable_federation.toml_file import NUMBER, TEXT, TomlFile

#: Name of the function at a site, in the package.
PARTIAL = "partial"
#: Statuses of vantage6 in which a run may still give a result.
_UNDER_WAY = frozenset({"pending", "initializing", "active", "completed"})
#: Entries of ``coordinator.toml``; the first two are needed.
_ENTRIES = {"key": TEXT, "round": TEXT, "timeout": NUMBER, "days": NUMBER, "ranks": NUMBER}


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
            site = Site.open(folder / "site.toml", databases=_rows)
            return _text(site.answer(_content(request)))
        except (
            BaseException
        ) as error:  # compiled libraries also raise errors that are not an Exception
            log = SiteLog(folder / "vantage6.log")
            record = f"{type(error).__name__}: {error}"
            log.write(stamp(now()), "", "", Refusal.UNAVAILABLE, record)
            return ""


def _rows(label: str) -> str:
    """Return the name of a node's database in the form that our readers use."""
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
    if kind == "sql":  # a path names an SQLite file
        return f"sqlite:///{uri}" if Path(uri).is_absolute() else uri
    if kind == "omop" and uri.startswith("jdbc:postgresql://"):
        users = [os.environ.get(f"{name}_DB_PARAM_{one}", "") for one in ("USER", "PASSWORD")]
        user = ":".join(quote(one, safe="") for one in users if one)
        return uri.removeprefix("jdbc:").replace("://", f"://{user}@" if user else "://", 1)
    raise UsageError(
        f"database = {label!r} is of type {kind!r}: needs csv, parquet, sql (a URL, or the path of "
        "an SQLite file), or omop with a URI that begins with jdbc:postgresql://"
    )


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
    """Run a campaign, or the rest of it: marginals, tables and, if requested, ranks.

    Everything about it is in the folder of the coordinator's node; the author of a task chooses
    nothing. Rounds, decisions and results are kept beside the keys, so the same task continues from
    there, regardless of how the last one ended.

    Parameters
    ----------
    client : AlgorithmClient
        Of vantage6.

    Returns
    -------
    dict
        ``done``; ``rounds``, one entry for each round that was run: its ``round_id``, what it is
        ``about``, which sites were ``reached``, ``lost`` and ``refused``, each with one word, and
        the signed ``result`` in base64; and the ``error``, if there is no sum.

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
    with files.locked(path):  # otherwise, two tasks would draw two plans
        return _campaign(client, folder, record)


def _campaign(client: Any, folder: Path, record: dict[str, Any]) -> dict[str, Any]:
    key, path = folder / record["key"], folder / record["round"]
    lead = Coordinator(key)
    first = Round.from_bytes(path.read_bytes(), path)
    _check_left(first, record.get("ranks"))
    asked: Round | None = first
    run: dict[str, Any] = {"done": False, "rounds": []}
    while asked is not None:
        about = {"round_id": asked.round_id, "about": asked.plan.purpose.value}
        run["rounds"].append(about)
        beside = path_of(key, asked)
        try:
            result = _result(client, asked, lead, beside, record.get("timeout", 600.0), about)
            asked = _after(asked, result, lead.keys, beside, record)
        except RoundError as error:  # in our own words; it contains at most one word from a site
            return run | {"error": str(error)}
    return run | {"done": True}


def _check_left(asked: Round, ranks: float | None) -> None:
    """Raise `UsageError` before any site spends, if no budget would be left for the ranks."""
    if ranks is not None and ranks <= asked.terms.epsilon:
        raise UsageError(
            f"ranks = {ranks:g} is the total epsilon including the ranks, but the rounds before "
            f"them may cost {asked.terms.epsilon:g}: open the first round with less, such as "
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
    """Return the signed result of a round, new or earlier, and record it in ``about``."""
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
    """Return the next round, as it was recorded before any request."""
    path = beside.with_suffix(".next.hush")
    if not path.exists():
        deadline = now() + timedelta(days=record.get("days", 14.0))
        opened = following(asked, result, keys, deadline, record.get("ranks"))
        if opened is None:
            return None
        opened.save(path)
    return Round.from_bytes(path.read_bytes(), path)
