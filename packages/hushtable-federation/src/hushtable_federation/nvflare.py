"""Online rounds over NVFlare: its server and clients carry our messages, and know nothing else.

A job names classes of this installed file, and a round by its name: it sends no code, no path and
no budget. The paths of a site's own file and of the coordinator's rounds are in a local file of
each party, ``local/hushtable.toml`` in its startup kit. Needs the extra ``nvflare``. See
``docs/how-to/carriers.md``.
"""

import contextlib
import logging
import math
import re
import uuid
import warnings
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from nvflare.apis.client import Client
from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal
from nvflare.job_config.api import FedJob
from nvflare.recipe.spec import Recipe

from hushtable.errors import HushTableError, RoundError, UsageError
from hushtable_federation.clock import now, stamp
from hushtable_federation.coordinator import Coordinator
from hushtable_federation.online.carriers import Node
from hushtable_federation.refusals import Refusal, SiteLog
from hushtable_federation.site import Site
from hushtable_federation.toml_file import TEXT, TomlFile

#: The task of a job; its data and its result have one entry, the message.
_TASK, _CONTENT = "hushtable", "content"


def _local(fl_ctx: FLContext) -> Path:
    return Path(fl_ctx.get_prop(FLContextKey.WORKSPACE_OBJECT).get_site_config_dir())


def _settings(fl_ctx: FLContext, name: str, needed: Sequence[str]) -> dict[str, str]:
    file = TomlFile.read(_local(fl_ctx) / "hushtable.toml", f"write it, with [{name}]")
    table = file.check(dict.fromkeys(needed, TEXT), needed, name)
    here = fl_ctx.get_identity_name()  # in the simulator, all sites share this file
    return {key: value.replace("{site}", here) for key, value in table.items()}


def _message(content: bytes) -> Shareable:
    message = Shareable()
    message[_CONTENT] = content
    return message


def _content(message: Any) -> bytes:
    content = message.get(_CONTENT) if isinstance(message, Shareable) else None
    return content if isinstance(content, bytes) else b""


# --- at a site ----------------------------------------------------------------------------------


class SiteExecutor(Executor):
    """Answers one step at a site, by the table ``[site]`` of its ``local/hushtable.toml``.

    The state is in the site's book, so any process may answer the next step. It uses only the
    message from the job; it returns the signed answer, the signed word, or nothing.
    """

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        """Return the answer to a message; no exception leaves, because NVFlare logs its text."""
        log = SiteLog(_local(fl_ctx) / "hushtable.log")
        with _nothing_logged():
            try:
                file = _settings(fl_ctx, "site", ("file",))["file"]
                return _message(Site.open(file).answer(_content(shareable)))
            except Exception as error:  # without keys and book, nothing can be signed
                words = f"{type(error).__name__}: {error}"
                log.write(stamp(now()), "", "", Refusal.UNAVAILABLE, words)
                return _message(b"")


@contextlib.contextmanager
def _nothing_logged() -> Iterator[None]:
    # By default, NVFlare sends a site's log to the server: errors after the job and, while it runs,
    # what the job requests; this includes warnings.
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


# --- at the coordinator -------------------------------------------------------------------------


class _Clients:
    # NVFlare gives a task again to a client that asks again without having answered it, so a
    # pending task is not sent twice.
    def __init__(
        self, controller: Controller, fl_ctx: FLContext, abort: Signal, timeout: float
    ) -> None:
        self._controller, self._context, self._abort = controller, fl_ctx, abort
        self._seconds = max(1, math.ceil(timeout))  # 0 means no limit
        self._standing: dict[str, tuple[Node, bytes]] = {}
        self._came: deque[tuple[str, bytes]] = deque()

    def nodes(self) -> Collection[Node]:
        if self._abort.triggered:
            raise RoundError("the job was stopped: run it again to continue from here")
        clients: list[Client] = self._context.get_engine().get_clients()
        return [client.name for client in clients]

    def push(self, node: Node, request: bytes) -> str | None:
        if (node, request) in list(self._standing.values()):  # results arrive in other threads
            return None
        sent = uuid.uuid4().hex
        self._standing[sent] = node, request
        task = Task(
            _TASK, _message(request), props={"sent": sent}, timeout=self._seconds,
            result_received_cb=self._receive, task_done_cb=self._end,
        )  # fmt: skip
        try:
            self._controller.send(task, self._context, targets=[node])
        except Exception:
            self._end(task, self._context)
            raise
        return sent

    def pull(self, sent: Collection[str]) -> Iterator[tuple[str, bytes]]:
        while self._came:
            yield self._came.popleft()

    def _receive(self, client_task: ClientTask, fl_ctx: FLContext) -> None:
        self._end(client_task.task, fl_ctx)
        # The result of a failed client contains no message.
        self._came.append((client_task.task.get_prop("sent"), _content(client_task.result)))

    def _end(self, task: Task, fl_ctx: FLContext) -> None:
        self._standing.pop(task.get_prop("sent"), None)


class RoundController(Controller):
    """Runs one round, or the rest of it, by ``[coordinator]`` of ``local/hushtable.toml``.

    Parameters
    ----------
    round_name : str
        Name of the round, a file ``NAME.hush`` in the coordinator's folder ``rounds``. The result,
        ``NAME.result.hush``, and the report, ``NAME.result.state.json``, are written beside it.
    timeout : float, default=600
        Seconds to wait for the sites in each step.
    """

    def __init__(self, round_name: str, timeout: float = 600.0) -> None:
        super().__init__()
        self.round_name, self.timeout = round_name, timeout

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Prepare nothing."""

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Cancel unanswered tasks."""
        self.cancel_all_tasks(fl_ctx=fl_ctx)

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Run the round; a round without a sum is a failed job."""
        try:
            error = self._run(abort_signal, fl_ctx).get("error")
        except (HushTableError, OSError) as wrong:
            error = str(wrong)
        if error:
            self.system_panic(error, fl_ctx)

    def _run(self, abort_signal: Signal, fl_ctx: FLContext) -> dict[str, Any]:
        name = _checked(self.round_name)
        settings = _settings(fl_ctx, "coordinator", ("key", "rounds"))
        rounds = Path(settings["rounds"])
        clients = _Clients(self, fl_ctx, abort_signal, self.timeout)
        round_, result = rounds / f"{name}.hush", rounds / f"{name}.result.hush"
        return Coordinator.open(settings["key"]).run(clients, round_, result, timeout=self.timeout)


def _checked(name: str) -> str:
    # A job's author cannot choose files by the name.
    if not re.fullmatch(r"\w[\w.-]{0,99}", name, re.ASCII):
        raise UsageError(
            f"the round {name!a} is not a name: give the name of a file NAME.hush in the "
            "coordinator's folder of rounds, without folder and suffix (letters, digits, '_', "
            "'.', '-')"
        )
    return name


class RoundRecipe(Recipe):
    """An NVFlare job that runs one masked round; it sends only names.

    Parameters
    ----------
    round_name, timeout
        As in `RoundController`.
    least : int
        Number of sites that have to stay, as in the round: with fewer clients, the job does not
        start.

    Raises
    ------
    UsageError
        If the name is a path.

    Examples
    --------
    >>> from hushtable_federation.nvflare import RoundRecipe  # doctest: +SKIP
    >>> RoundRecipe("spring", least=3).export("jobs")  # doctest: +SKIP
    """

    def __init__(self, round_name: str, *, least: int, timeout: float = 600.0) -> None:
        job = FedJob(f"hushtable-{_checked(round_name)}", min_clients=least)
        job.set_app_packages(
            ["hushtable", "hushtable_federation"]
        )  # otherwise, the job would contain copies of them
        job.to_server(RoundController(round_name, timeout))
        job.to_clients(SiteExecutor(), tasks=[_TASK])
        super().__init__(job)
