"""Reports that kernels are being compiled: once per process, if it takes over a second.

The notice appears on a terminal and in a notebook; with the environment's
``HUSHTABLE_PROGRESS=1`` everywhere, and with ``=0`` nowhere.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable

#: Seconds of compiling before the notice appears.
SILENT = 1.0
KEPT = "Compiling for this machine (first use only, about five seconds) ..."
AGAIN = (
    "Compiling for this machine (about five seconds each time: no folder is writable that "
    "could store the result; set NUMBA_CACHE_DIR to one) ..."
)


def _print(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # closed: no one is watching
        print(text, file=sys.stderr, flush=True)


def is_watched() -> bool:
    """Return whether someone is waiting at a terminal, a prompt or a notebook."""
    wish = os.environ.get("HUSHTABLE_PROGRESS")
    if sys.stderr is None or wish == "0":
        return False
    # Python sets the prompt's text if there is a prompt, including IPython's and a notebook's.
    at_prompt = hasattr(sys, "ps1") or bool(sys.flags.interactive)
    return wish == "1" or at_prompt or (not sys.stderr.closed and sys.stderr.isatty())


class Notice:
    """Says ``text`` once, after the time between begins and ends exceeds ``SILENT`` seconds.

    ``say`` prints it: by default on stderr; code that displays progress there prints it above.
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
        """Record that compiling begins, possibly within another compilation."""
        with self._lock:
            self._depth += 1
            if self._depth == 1 and not self._said:
                self._began = time.monotonic()
                self._timer = threading.Timer(max(0.0, SILENT - self._spent), self._due)
                self._timer.daemon = True
                self._timer.start()

    def end(self) -> None:
        """Record that it ends."""
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
