"""The bar of long work, and the notice that kernels are compiled: who sees them, and when."""

import io
import re
import sys

import numba
import pyarrow as pa
import pytest
from rich.console import Console

from hushtable import HushTable, Sketch, progress
from hushtable.kernels import _common
from hushtable.progress import KEPT, Bar, CompileNotice


@pytest.fixture
def at_once(monkeypatch):
    """Draw bars at once, as on a terminal; return the text of the terminal."""
    screen = io.StringIO()
    monkeypatch.setattr(progress, "SILENT", 0.0)
    monkeypatch.delenv("HUSHTABLE_PROGRESS", raising=False)
    monkeypatch.setattr(
        progress, "_console", lambda: Console(file=screen, force_terminal=True, width=100)
    )
    return screen


@pytest.fixture
def forced(monkeypatch):
    monkeypatch.setattr(progress, "_FORCED", True)
    monkeypatch.setenv("HUSHTABLE_PROGRESS", "1")


def states(screen):
    """Return the states of the bar, one after the other, without its control characters."""
    text = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", screen.getvalue())
    screen.seek(0)
    screen.truncate()
    return [state.strip() for state in re.split(r"[\r\n]", text) if state.strip()]


def stream(batches):
    """Return matrices as a stream of Arrow, whose length is unknown."""
    schema = pa.schema([(f"feature_{j}", pa.float64()) for j in range(4)])
    parts = (pa.record_batch(list(batch.T), schema=schema) for batch in batches)
    return pa.RecordBatchReader.from_batches(schema, parts)


def test_a_fit_at_a_prompt_shows_its_passes_and_takes_its_bar_away(at_once, X, monkeypatch):
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    detector = HushTable(n_tables=10, passes=2, contamination=0.1, random_state=0).fit(X)
    assert at_once.getvalue().endswith("\r\x1b[1A\x1b[2K")
    last = states(at_once)[-1]
    # Ranges, marginals, counts, dense rows, threshold: in one bar.
    assert re.search(r"^Fitting \(pass [3-9]\) .* 500 of 500 rows", last), last
    detector.score_samples(X)
    assert re.search(r"^Scoring .* 500 of 500 rows", states(at_once)[-1])
    Sketch.from_data(detector.plan_, stream([X[:100], X[100:]]))
    assert re.search(r"^Counting .* 500 rows", states(at_once)[-1])


@pytest.mark.parametrize(
    ("wish", "prompt", "appears"),
    [(None, False, False), ("0", True, False), ("1", False, True), ("", True, True)],
)
def test_calls_from_python_have_a_bar_where_someone_waits(
    at_once, X, monkeypatch, wish, prompt, appears
):
    if wish is not None:
        monkeypatch.setenv("HUSHTABLE_PROGRESS", wish)
    monkeypatch.setattr(progress, "_FORCED", wish == "1")
    if prompt:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    HushTable(n_tables=10, random_state=0).fit(X)
    assert bool(states(at_once)) == appears


def test_short_work_has_no_bar_and_failed_work_leaves_none(at_once, forced, X, monkeypatch):
    monkeypatch.setattr(progress, "SILENT", 600.0)
    detector = HushTable(n_tables=10, random_state=0).fit(X)
    assert not states(at_once)
    monkeypatch.setattr(progress, "SILENT", 0.0)

    def broken():
        yield X
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        Sketch.from_data(detector.plan_, stream(broken()))
    assert at_once.getvalue().endswith("\r\x1b[1A\x1b[2K")
    assert progress.begin_pass(None) is None


def test_commands_show_their_own_progress_only(at_once, forced, X, tmp_path, capsys):
    from hushtable.cli import main

    (tmp_path / "rows.csv").write_text("a,b\n" + "1.5,2\n2.5,1\n" * 50)
    assert main(["fit", str(tmp_path / "rows.csv"), "-o", str(tmp_path / "m.hush")]) == 0
    assert not states(at_once)


def test_a_notebook_without_widgets_has_no_bar(at_once, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(Console, "is_jupyter", True, raising=False)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(progress.importlib.util, "find_spec", lambda name: None)
    bar = Bar("Fitting")
    bar.begin_pass(1)
    bar.add(1)
    assert bar._drawing is None


# --- compiling ------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """Return the time, a list of one number, that the test sets."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_compiling_is_stated_once_when_it_takes_long_together(forced, clock, capsys):
    notice = CompileNotice()
    for spent in (0.0, 0.7, 0.2):
        notice.begin()
        notice.begin()  # one kernel inlines another
        clock[0] += spent
        notice.end()
        notice.end()
    clock[0] += 60.0  # nothing compiles
    notice.begin()
    assert capsys.readouterr().err == ""
    clock[0] += 0.2
    for _ in range(2):
        notice.begin()
    assert capsys.readouterr().err == f"{KEPT}\n"


def test_what_is_stated_is_above_the_bar(at_once):
    with Bar("Working") as bar:
        bar.begin_pass(None)
        bar.add(1)
        progress.say("Compiling ...")
        bar.add(1)
    assert "Compiling ..." in states(at_once)
    assert not progress._drawn


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
def test_who_is_informed(monkeypatch, wish, terminal, prompt, watched):
    if wish is None:
        monkeypatch.delenv("HUSHTABLE_PROGRESS", raising=False)
    else:
        monkeypatch.setenv("HUSHTABLE_PROGRESS", wish)
    stderr = io.StringIO()
    stderr.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", stderr)
    if prompt:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert progress.is_watched() == watched
    stderr.close()
    assert not progress.is_watched()
    progress.say("to no one")
    monkeypatch.setattr(sys, "stderr", None)
    assert not progress.is_watched()


def test_what_else_numba_compiles_is_ignored(monkeypatch):
    def compiled(module):
        noted = []
        monkeypatch.setattr(_common.compile_notice, "begin", lambda: noted.append("begin"))
        monkeypatch.setattr(_common.compile_notice, "end", lambda: noted.append("end"))
        function = numba.njit(lambda x: 2 * x)
        function.__module__ = module
        assert function(1) == 2
        return noted

    assert compiled("somebody.elses") == []
    assert compiled("hushtable.kernels._encode") == ["begin", "end"]
