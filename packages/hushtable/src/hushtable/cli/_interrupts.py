"""Ctrl-C that does not get lost: compiled code, as in an import, may drop its exception."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

_pressed = False


@contextlib.contextmanager
def noted() -> Iterator[None]:
    """Note Ctrl-C while a command runs, and raise `KeyboardInterrupt` as ever."""
    global _pressed
    _pressed = False
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # as in the background
        yield
        return
    try:
        signal.signal(signal.SIGINT, _note)
    except ValueError:  # in a thread, which gets no signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def check() -> None:
    """Raise `KeyboardInterrupt` if Ctrl-C was pressed: before what cannot be taken back."""
    if _pressed:
        raise KeyboardInterrupt


def _note(_signal: int, _frame: FrameType | None) -> None:
    global _pressed
    _pressed = True
    raise KeyboardInterrupt
