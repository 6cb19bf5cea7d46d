"""Compiling is said: once, to someone who waits, and only if it takes a while."""

import io
import sys
import threading

import numba
import pytest

from hushtable.kernels import _cache, _notice
from hushtable.kernels._notice import KEPT, Notice


@pytest.fixture
def soon(monkeypatch):
    """Say it at once, to anyone who is there."""
    monkeypatch.setattr(_notice, "SILENT", 0.0)
    monkeypatch.setenv("HUSHTABLE_PROGRESS", "1")


@pytest.fixture
def said():
    """Return a notice, and the list that it says things to."""
    notice, said = Notice(), []
    notice.say = said.append
    return notice, said


def wait():
    """Wait until the timer has run, if there is one."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join()


def test_once_and_only_while_something_compiles(soon, said):
    notice, lines = said
    for _ in range(3):
        notice.begin()
        notice.begin()  # one kernel inlines another
        wait()
        notice.end()
        notice.end()
    assert lines == [KEPT]


def test_short_compiling_is_not_said_and_adds_up(soon, said, monkeypatch):
    notice, lines = said
    monkeypatch.setattr(_notice, "SILENT", 300.0)
    now, timers = [0.0], []
    monkeypatch.setattr(_notice.time, "monotonic", lambda: now[0])

    class Timer:
        """A timer that is due when the test says so."""

        def __init__(self, seconds, due):
            self.seconds, self.due, self.cancelled = seconds, due, False
            timers.append(self)

        def start(self):
            pass

        def cancel(self):
            self.cancelled = True

    monkeypatch.setattr(_notice.threading, "Timer", Timer)
    for spent in (0.0, 200.0):
        notice.begin()
        now[0] += spent
        notice.end()
    assert lines == []
    notice.begin()
    assert [one.seconds for one in timers] == [300.0, 300.0, 100.0]  # not another 300 s
    assert [one.cancelled for one in timers] == [True, True, False]
    timers[-1].due()
    notice.end()
    assert lines == [KEPT]


@pytest.mark.parametrize(
    ("wish", "terminal", "prompt", "watched"),
    [
        (None, False, False, False),
        (None, True, False, True),
        (None, False, True, True),
        ("1", False, False, True),
        ("0", True, True, False),
    ],
)
def test_who_is_told(monkeypatch, wish, terminal, prompt, watched):
    if wish is None:
        monkeypatch.delenv("HUSHTABLE_PROGRESS", raising=False)
    else:
        monkeypatch.setenv("HUSHTABLE_PROGRESS", wish)
    stderr = io.StringIO()
    stderr.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", stderr)
    if prompt:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert _notice.is_watched() == watched
    monkeypatch.setattr(sys, "stderr", None)
    assert not _notice.is_watched()


def test_a_closed_stderr_stops_nothing(soon, monkeypatch):
    monkeypatch.setattr(sys, "stderr", closed := io.StringIO())
    closed.close()
    notice = Notice()
    notice.begin()
    wait()
    notice.end()
    monkeypatch.delenv("HUSHTABLE_PROGRESS")
    assert not _notice.is_watched()


def test_what_else_numba_compiles_is_not_our_affair(said, monkeypatch):
    notice, _ = said
    monkeypatch.setattr(_cache, "notice", notice)

    def compiled(module):
        noted = []
        monkeypatch.setattr(notice, "begin", lambda: noted.append("begin"))
        monkeypatch.setattr(notice, "end", lambda: noted.append("end"))
        function = numba.njit(lambda x: 2 * x)
        function.__module__ = module
        assert function(1) == 2
        return noted

    assert compiled("somebody.elses") == []
    assert compiled("hushtable.kernels._encode") == ["begin", "end"]
