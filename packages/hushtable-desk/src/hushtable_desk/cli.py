"""``hushtable desk``: the desk in a browser of this machine."""

import errno
import os
import socket
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated

import uvicorn

from hushtable.cli.options import argument, flag, option
from hushtable.errors import FileError, UsageError, explain
from hushtable_desk.app import build_app
from hushtable_desk.desk import Desk
from hushtable_desk.security import KNOWS_ACCOUNTS, LOOPBACK, Access

_Where = Annotated[str, argument("DATA|FOLDER", "Table or folder to open.")]
_Model = Annotated[Path | None, option("FILE", "Model to score the table with.")]
_Port = Annotated[int, option("N", "Port to listen on; 0 takes any free port.", min=0, max=65_535)]
_Idle = Annotated[int, option("MIN", "End after this many minutes without a request.", min=1)]
_Browser = Annotated[bool, flag("--no-browser", "Print the address, but open no browser.")]
#: Errors of a machine without IPv6.
_NO_IPV6 = errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL
_NO_OWNERS = (
    "This system does not report which account sends a request: until the desk ends, open no page "
    f"of another account's program on {LOOPBACK} in this browser."
)
#: Seconds between two checks whether a desk is still used.
_EVERY = 5.0


def desk(
    data: _Where = ".",
    model: _Model = None,
    port: _Port = 0,
    idle: _Idle = 240,
    no_browser: _Browser = False,
) -> None:
    """Review unusual rows in a browser, and judge them.

    This command opens a page that only this account's browser on this machine can use. The page has
    the tables and models of a folder, the reading of each column, and the most unusual rows with
    reasons and pictures; you give verdicts with keys. Nothing leaves the machine. Verdicts are in
    the same log as those of hushtable review: ROWS.verdicts.csv, in the folder of the rows.

    Example:
      hushtable desk
      hushtable desk patients.csv
      hushtable desk patients.csv --model model.hush
    """
    path = Path(data)
    folder, name = (path, "") if path.is_dir() else (path.parent, path.name)
    if name and not path.is_file():
        raise UsageError(f"{data}: there is no such file or folder")
    opened = Desk(folder, _account())
    first = "/"
    if name:
        first = opened.open(name, model)
    elif model is not None:
        raise UsageError("--model needs the table to score: give its name, too")
    with listen_at(port) as listening:
        access = Access(listening[0].getsockname()[1], first)
        server = uvicorn.Server(
            uvicorn.Config(
                build_app(opened, access), log_config=None, access_log=False,
                server_header=False, lifespan="off",
            )
        )  # fmt: skip
        print(f"The desk is at {access.address}")
        print("It opens once, in a browser of this account. Ctrl-C ends it; verdicts are saved.")
        if not KNOWS_ACCOUNTS:
            print(_NO_OWNERS)
        threading.Thread(target=_end_when_idle, args=(server, access, idle), daemon=True).start()
        with tempfile.TemporaryDirectory(prefix="hushtable-desk-") as private:
            if not no_browser:
                _open_browser(access.address, Path(private))
            try:
                with suppress(KeyboardInterrupt):  # which ends it as it should
                    server.run(sockets=listening)
            finally:
                opened.close()
    if access.last + 60.0 * idle <= time.monotonic():
        print(f"The desk has ended after {idle:,} minutes without a request.")


def _account() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # the account has no name
        return ""


@contextmanager
def listen_at(port: int) -> Iterator[list[socket.socket]]:
    """Yield sockets that listen only on the loopback addresses, all at one port.

    A browser may try the address of IPv6 first for a name below localhost, so that port is taken
    there, too, if this machine has IPv6.
    """
    with ExitStack() as stack:
        try:
            listening = [stack.enter_context(_listening(socket.AF_INET, LOOPBACK, port))]
            port = listening[0].getsockname()[1]
            if KNOWS_ACCOUNTS:
                listening.append(stack.enter_context(_listening(socket.AF_INET6, "::1", port)))
        except OSError as error:
            if error.errno not in _NO_IPV6:
                raise FileError(
                    f"port {port} cannot be used: {explain(error)}: give another --port, or leave "
                    "it out"
                ) from error
        yield listening


def _listening(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    # States TCP, because asyncio otherwise keeps Nagle's algorithm, which adds 40 ms per answer.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # on other systems, this would let another program use the port, too
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except OSError:
        listening.close()
        raise
    return listening


def _open_browser(address: str, private: Path) -> None:
    """Open a browser at an address that no other account sees among its arguments."""
    page = private / "open.html"
    page.touch(mode=0o600)
    page.write_text(
        '<!DOCTYPE html><meta charset="utf-8"><title>hushtable desk</title>'
        f'<meta http-equiv="refresh" content="0;url={address}"><a href="{address}">Open it</a>'
    )
    open_: Callable[[str], bool] = webbrowser.open
    try:
        opened = open_(page.as_uri())
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        print("No browser could be opened: copy the address into a browser.")


def _end_when_idle(server: uvicorn.Server, access: Access, minutes: int) -> None:
    while not server.should_exit:
        time.sleep(_EVERY)
        if time.monotonic() - access.last > 60.0 * minutes:
            server.should_exit = True
