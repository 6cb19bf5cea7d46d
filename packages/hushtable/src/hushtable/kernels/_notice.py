"""Says that kernels are being compiled: once in a process, when it has taken over a second.

It is said on a terminal and in a notebook; with the environment's ``HUSHTABLE_PROGRESS=1``
everywhere, and with ``=0`` nowhere.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable

#: Seconds of compiling before it is said.
SILENT = 1.0
KEPT = "Compiling for this machine (first use only, about five seconds) ..."
AGAIN = (
    "Compiling for this machine (about five seconds each time: no folder can be written to that "
    "would keep it; set NUMBA_CACHE_DIR to one) ..."
)


def _print(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # closed: no one is watching
        print(text, file=sys.stderr, flush=True)


def is_watched() -> bool:
    """Return whether someone waits at a terminal, a prompt or a notebook."""
    wish = os.environ.get("HUSHTABLE_PROGRESS")
    if sys.stderr is None or wish == "0":
        return False
    # Python has a text for the prompt where there is one, IPython's and a notebook's included.
    at_prompt = hasattr(sys, "ps1") or bool(sys.flags.interactive)
    return wish == "1" or at_prompt or (not sys.stderr.closed and sys.stderr.isatty())


class Notice:
    """Says ``text`` once, when what begins and ends has taken ``SILENT`` seconds in all.

    ``say`` is how: by default on stderr; anyone who shows a line of progress there puts it above.
    """

    def __init__(self, text: str = KEPT) -> None:
        self.text = text
        self.say: Callable[[str], None] = _print
        self._lock = threading.Lock()
        self._depth = 0
        self._spent = self._began = 0.0
        self._said = False
        self._timer: threading.Timer | None = None

    def begin(self) -> None:
        """Note that compiling begins, perhaps within another."""
        with self._lock:
            self._depth += 1
            if self._depth == 1 and not self._said:
                self._began = time.monotonic()
                self._timer = threading.Timer(max(0.0, SILENT - self._spent), self._due)
                self._timer.daemon = True
                self._timer.start()

    def end(self) -> None:
        """Note that it ends."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._timer is not None:
                self._timer.cancel()
                self._timer = None
                self._spent += time.monotonic() - self._began

    def _due(self) -> None:
        with self._lock:
            due, self._said = self._depth > 0 and not self._said, True
        if due and is_watched():
            self.say(self.text)


notice = Notice()
