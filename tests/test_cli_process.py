"""The real process: its exit code, how soon it answers, what it loads."""

import ast
import contextlib
import os
import statistics
import subprocess
import sys
import time

import pytest

from hushtable import HushTable
from hushtable.cli.app import app

PROGRAM = [sys.executable, "-m", "hushtable.cli"]

# Runs commands one after the other; prints what is loaded after each.
LOADED = """
import ast, sys
from hushtable.cli import main
for words in ast.literal_eval(sys.argv[1]):
    code = main(words)
    print("loaded:", sorted(sys.modules), file=sys.stderr)
    assert code == 0, words
"""


def seconds(command, runs):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def loaded(*commands):
    """Return the modules that are loaded after each of some commands of one process."""
    words = str([[str(word) for word in command] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", LOADED, words], capture_output=True, text=True, check=True
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("loaded: ")]
    return [set(ast.literal_eval(line.removeprefix("loaded: "))) for line in lines]


def test_exit_codes(site):
    for code, arguments in ((1, ["inspect", site / "rows.csv"]), (2, ["inspect"]), (0, ["-h"])):
        done = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True)
        assert done.returncode == code
        assert ("hushtable: error: " in done.stderr) == (code > 0)


def test_a_command_loads_what_it_runs_alone(site, tmp_path):
    model, rows = tmp_path / "model.hush", site / "rows.csv"
    HushTable(n_tables=10, random_state=0).fit(rows).save(model)
    never = {
        "sklearn",
        "scipy",
        "joblib",
        "pandas",
        "polars",
        "numba",
        "pydantic",
        "hushtable_federation",
    }
    score = ["score", rows, "--model", model, "-o", tmp_path / "scores.csv"]
    (scored,) = loaded(score)
    assert not scored & never
    assert "hushtable.kernels._built" in scored
    assert not scored & {"pyarrow.parquet", "tomllib", "importlib.metadata", "numpy.random"}
    assert not scored & {"hushtable.detectors.base", "hushtable.data.understanding"}
    (listed,) = loaded([*score[:-1], tmp_path / "top.csv", "--top", 3])
    assert not listed & never
    (fitted,) = loaded(["fit", rows, "-o", tmp_path / "fitted.hush"])
    assert not fitted & never


def test_help_loads_no_command():
    heavy = {"numpy", "numba", "pyarrow", "sklearn", "scipy", "pandas", "rich", "safetensors"}
    program, *groups = loaded(["--help"], *([group, "--help"] for group in ("plan", "round")))
    for group in (program, *groups):
        assert not group & heavy


@pytest.mark.slow
def test_help_of_a_command_loads_nothing_slow():
    slow = {"numba", "sklearn", "scipy", "pandas", "matplotlib", "opendp"}
    commands = ["fit", "score", "report", "demo", "plan draw", "round sync", "bench"]
    after = loaded(*([*command.split(), "--help"] for command in commands))
    for command, names in zip(commands, after, strict=True):
        assert not names & slow, command


def commands(group, path="hushtable"):
    for name in group.list_commands(None):
        one = group.commands[name]
        if hasattr(one, "commands"):
            yield from commands(one, f"{path} {name}")
        else:
            yield one, f"{path} {name}"


def test_the_table_has_the_first_line_of_every_docstring():
    for listed, path in commands(app()):
        text = listed.load().help
        assert text.splitlines()[0] == listed.help
        # Without \b, Typer would fill the lines of the example into one.
        assert "\n\n\b\nExample" in text
        assert f"\n  {path} " in text + " "


@pytest.mark.slow
def test_scoring_numbers_does_not_load_pandas(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n3,\n5,6\n" * 20)
    HushTable(n_tables=3).fit(tmp_path / "rows.csv").save(tmp_path / "model.hush")
    arguments = ["score", tmp_path / "rows.csv", "--model", tmp_path / "model.hush"]
    ways = (["-o", "s.csv"], ["-o", "s.parquet"], ["-o", "s.csv", "--explain"])
    for names in loaded(*([*arguments, *way] for way in ways)):
        assert "pandas" not in names


@pytest.mark.slow
def test_bytecode_that_cannot_be_written(site, tmp_path):
    """Modules are compiled again then, and nothing is said of it."""
    (tmp_path / "file").touch()
    nowhere = os.environ | {"PYTHONPYCACHEPREFIX": str(tmp_path / "file" / "cache")}
    command = [*PROGRAM, "score", site / "rows.csv", "--model", site / "model.hush"]
    done = subprocess.run(
        [*command, "-o", tmp_path / "s.csv"], env=nowhere, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "file").read_bytes() == b""


@pytest.mark.serial
@pytest.mark.slow
def test_help_answers_at_once():
    for group in ([], ["round"]):
        median = seconds([*PROGRAM, *group, "--help"], 11)
        least = seconds([sys.executable, "-c", "import typer.main"], 11)
        print(f"hushtable {' '.join(group)} --help: {median:.2f} s, typer alone {least:.2f} s")
        assert median < 4 * least  # whatever the machine: nothing heavy is loaded


@pytest.mark.serial
@pytest.mark.slow
def test_a_thousand_rows_are_scored_at_once(site, tmp_path):
    head, rows = (site / "rows.csv").read_text().split("\n", 1)
    data = tmp_path / "rows.csv"
    data.write_text(head + "\n" + "".join((rows * 3).splitlines(keepends=True)[:1000]))
    command = [*PROGRAM, "score", data, "--model", site / "model.hush", "-o", tmp_path / "s.csv"]
    seconds(command, 1)
    median = seconds(command, 5)
    print(f"hushtable score on 1,000 rows: median of 5 runs {median:.2f} s")
    assert median < 2.5


@pytest.mark.serial
@pytest.mark.slow
def test_starts_take_a_few_times_what_numpy_and_arrow_take():
    from hushtable_bench import speed, workloads

    with contextlib.ExitStack() as stack:
        found = speed.in_turns(workloads.starts(1, stack), 5)
    least = found["import numpy, pyarrow.compute"]
    times = {name: round(seconds / least, 2) for name, seconds in found.items()}
    print(times)  # measured: 2.5 to 3.3, 2.6 to 3.4 and 2.2 to 2.8; once 4.7, 12.7 and 10.9
    assert times["hushtable score"] < 4.0
    assert times["hushtable fit"] < 4.5
    assert times["first fit and scores in Python"] < 4.0
    assert times["import hushtable"] < 0.5
