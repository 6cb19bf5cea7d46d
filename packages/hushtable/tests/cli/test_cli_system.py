"""What the system refuses: a full disk, a read-only folder, Ctrl-C, a closed pipe; and bugs."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from cli_helpers import contents, write_rows
from hushtable import cli, files
from hushtable.cli import inspect_

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX limits and signals")

# Every command that writes, run in one process: as it should be, so that all modules and kernels
# are loaded; then in each trouble. Prints what each of the runs in trouble came to.
IN_TROUBLE = """
import contextlib, io, json, os, pathlib, resource, sys
from hushtable.cli import main

def trouble(kind):
    most = 300 if kind == "full disk" else resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    if kind == "read-only folder":
        os.chmod("full", 0o555)
        if os.geteuid() == 0:  # whom permissions do not bind
            os.setuid(65534)

kinds, commands = map(json.loads, sys.argv[1:])
for command in commands:
    assert main([word.format(out="fine") for word in command]) == 0, command
results = {}
for kind in kinds:
    trouble(kind)
    results[kind] = []
    for command in commands:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([word.format(out="full") for word in command])
        results[kind].append((code, out.getvalue(), err.getvalue()))
print()
print(json.dumps(results))
"""

WRITERS = [
    "fit rows.csv -o {out}/model.hush",
    "fit rows.csv --detector lsh-itables -o {out}/lsh.hush",
    "score rows.csv --model model.hush -o {out}/scores.parquet",
    "score rows.csv --model model.hush -o {out}/scores.csv",
    "plan draw schema.toml -o {out}/plan.hush",
    "sketch rows.csv --plan plan.hush -o {out}/a.sketch.hush",
    "merge a.sketch.hush b.sketch.hush -o {out}/all.hush",
    "export model.hush -o {out}/model.json",
]


@pytest.fixture(scope="module")
def public_site(site):
    """A copy of the site that every user of the machine may read."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for path in site.iterdir():
            shutil.copyfile(path, Path(folder, path.name))
        yield Path(folder)


#: What is said in each trouble; the last takes rights away, for good.
SAYS = {
    "full disk": ["File too large: free some space", "nothing was written"],
    "read-only folder": ["full is read-only: use another folder"],
}


@posix
def test_outputs_survive(public_site):
    names = [command.split("/")[1] for command in WRITERS]
    for folder in ("fine", "full"):
        shutil.rmtree(public_site / folder, ignore_errors=True)
        (public_site / folder).mkdir()
        for name in names:
            (public_site / folder / name).write_text(f"precious {name}")
    before = contents(public_site / "full")
    commands = json.dumps([command.split() for command in WRITERS])
    done = subprocess.run(
        [sys.executable, "-c", IN_TROUBLE, json.dumps(list(SAYS)), commands],
        cwd=public_site,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert contents(public_site / "full") == before, "an output was changed, or a part left"
    fine = contents(public_site / "fine")
    assert fine.keys() == before.keys()
    assert not any(fine[name] == before[name] for name in fine), "a command wrote nothing"
    results = json.loads(done.stdout.splitlines()[-1])
    assert results.keys() == SAYS.keys()
    for trouble, says in SAYS.items():
        for name, (code, out, err) in zip(names, results[trouble], strict=True):
            assert (code, out) == (1, ""), (trouble, name, err)
            assert err.startswith(f"hushtable: error: cannot write full/{name}: ")
            assert all(words in err for words in says), err


@pytest.mark.parametrize("command", [command.split() for command in WRITERS])
def test_folders_that_are_none(refused, site, tmp_path, monkeypatch, command):
    monkeypatch.chdir(site)
    (tmp_path / "file").write_text("precious")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "folder.parquet").mkdir()
    name = command[-1].removeprefix("{out}")
    says = ["cannot write", "there is no folder"]
    refused(*command[:-1], f"{tmp_path}/none{name}", says=says)
    refused(*command[:-1], f"{tmp_path}/file{name}", says=says)
    folder = tmp_path / name[1:]
    folder.mkdir()
    refused(*command[:-1], folder, says="it is a folder: name a file")


def test_an_output_that_is_also_read(run, refused, site, tmp_path):
    """A second run must not take the scores of the first for rows."""
    for name in ("1.csv", "2.csv"):
        (tmp_path / name).write_bytes((site / "rows.csv").read_bytes())
    options = ["--model", site / "model.hush", "-o", tmp_path / "scores.csv"]
    for data in (tmp_path, f"{tmp_path}/*.csv"):
        assert run("score", data, *options).code == 0
        refused("score", data, *options, code=2, says="scores.csv is both read and written")
        (tmp_path / "scores.csv").unlink()
    assert run("fit", tmp_path, "-o", tmp_path / "m.hush").code == 0
    assert run("fit", tmp_path, "-o", tmp_path / "m.hush").code == 0


def test_a_device_is_not_replaced(refused, site):
    says = f"cannot write {os.devnull}: it is not a regular file"
    refused("fit", site / "rows.csv", "-o", os.devnull, says=says)
    assert not os.path.isfile(os.devnull)


@pytest.mark.slow
def test_a_full_disk_beneath_standard_output(site):
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hushtable.cli", "inspect", site / "plan.hush"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("hushtable: error: standard output: No space left on device")
    assert "Exception ignored" not in done.stderr


@posix
def test_a_closed_pipe_is_no_error(site):
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-m", "hushtable.cli", "inspect", site / "plan.hush"],
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (1, "")


# --- Ctrl-C -----------------------------------------------------------------------------------

# A shell starts background jobs with SIGINT ignored, and Python keeps to that.
INTERRUPTIBLE = """
import pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from hushtable.cli import main
pathlib.Path(sys.argv.pop(1)).touch()
sys.exit(main())
"""


@pytest.fixture(scope="module")
def long_work(tmp_path_factory):
    """Rows and a model that keep a computer busy for ten seconds and more."""
    here = tmp_path_factory.mktemp("long")
    write_rows(here / "short.csv", 100)
    head, rows = (here / "short.csv").read_text().split("\n", 1)
    (here / "rows.csv").write_text(head + "\n" + rows * 20_000)
    assert cli.main(["fit", f"{here}/short.csv", "--tables", "10000", "-o", f"{here}/m.hush"]) == 0
    return here


def interrupt(arguments, folder, started, *, after=0.0, when=lambda: True):
    """Send SIGINT some seconds after the start, and not before ``when()``."""
    started.unlink(missing_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, started, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if started.exists() and when():
                break
            time.sleep(0.01)
        time.sleep(after)
        assert process.poll() is None, f"ended before it was interrupted: {process.communicate()}"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    return process.returncode, out, err


@posix
@pytest.mark.serial
@pytest.mark.slow
@pytest.mark.parametrize("json_option", [[], ["--json"]])
def test_ctrl_c_while_writing(long_work, tmp_path, json_option):
    """The temporary file is there and growing when the signal comes."""
    out = tmp_path / "scores.csv"
    out.write_text("precious")
    arguments = ["score", "rows.csv", "--model", "m.hush", "-o", str(out), *json_option]
    code, said, err = interrupt(
        arguments, long_work, long_work / "started", when=lambda: len(os.listdir(tmp_path)) > 1
    )
    assert code == 130
    assert err == "Interrupted: nothing was written.\n"
    if json_option:
        assert json.loads(said) == {"error": err.strip(), "kind": "Interrupted"}
    else:
        assert said == ""
    assert contents(tmp_path) == {"scores.csv": b"precious"}


@pytest.mark.slow
@posix
@pytest.mark.parametrize("after", [0.1, 2.0])
def test_ctrl_c_while_fitting(long_work, tmp_path, after):
    """During the imports, and in the middle of the work."""
    model = tmp_path / "m.hush"
    model.write_text("precious")
    arguments = ["fit", "rows.csv", "--tables", "10000", "-o", str(model)]
    code, said, err = interrupt(arguments, long_work, long_work / "started", after=after)
    assert (code, said, err) == (130, "", "Interrupted: nothing was written.\n")
    assert contents(tmp_path) == {"m.hush": b"precious"}


@pytest.mark.parametrize("command", ["fit", "sketch", "merge", "draw"])
def test_ctrl_c_between_writing_and_renaming(run, site, old, tmp_path, monkeypatch, command):
    def interrupted(*_):
        assert len(os.listdir(tmp_path)) == 2, "the temporary file should be there by now"
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", interrupted)
    result = run(
        *{
            "fit": ["fit", site / "rows.csv", "--tables", 2],
            "sketch": ["sketch", site / "rows.csv", "--plan", site / "plan.hush"],
            "merge": ["merge", site / "a.sketch.hush"],
            "draw": ["plan", "draw", site / "schema.toml"],
        }[command],
        "-o",
        old,
    )
    assert (result.code, result.out) == (130, "")
    assert result.err == "Interrupted: nothing was written.\n"
    assert contents(tmp_path) == {"old.hush": b"precious"}


def test_after_ctrl_c_python_is_not_taken_apart_under_its_threads(tmp_path):
    """Threads in compiled code would abort it (PyGILState_Release), some time or other."""
    program = """
import atexit, sys
import hushtable.cli, hushtable.cli.app
atexit.register(print, "taken apart")
def interrupted(_):
    raise KeyboardInterrupt
hushtable.cli.app.run = interrupted
sys.exit(hushtable.cli.main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "Interrupted: nothing was written.\n"


def test_ctrl_c_after_the_file_was_written_does_not_deny_it(run, site, tmp_path, monkeypatch):
    from hushtable.cli import release

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(release, "TextTable", interrupted)
    result = run("merge", site / "a.sketch.hush", "-o", tmp_path / "all.hush")
    assert result.code == 130
    assert result.err == f"Interrupted: {tmp_path / 'all.hush'} had already been written.\n"
    assert (tmp_path / "all.hush").exists()


# --- bugs -------------------------------------------------------------------------------------


def test_a_bug_shows_no_traceback_unless_asked(run, site, monkeypatch):
    def broken(*_):
        raise KeyError("x")

    monkeypatch.setattr(inspect_, "_facts", broken)
    result = run("inspect", site / "plan.hush")
    assert result.code == 1
    assert result.err.startswith("hushtable: error: unexpected KeyError, which is a bug")
    assert "HUSHTABLE_DEBUG=1" in result.err
    assert len(result.err.splitlines()) == 1
    assert run("inspect", site / "plan.hush", "--json").json["kind"] == "KeyError"
    monkeypatch.setenv("HUSHTABLE_DEBUG", "1")
    result = run("inspect", site / "plan.hush")
    assert result.err.startswith("Traceback")
    assert "in broken" in result.err


def test_out_of_memory(run, site, monkeypatch):
    def large(*_):
        raise MemoryError

    monkeypatch.setattr(inspect_, "_facts", large)
    result = run("inspect", site / "plan.hush")
    assert result.code == 1
    assert "out of memory" in result.err
