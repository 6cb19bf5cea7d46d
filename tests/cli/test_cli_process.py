"""The real process: its exit code, how soon it answers, what it loads."""

import statistics
import subprocess
import sys
import time

import pytest

from hushtable import HushTable
from hushtable.cli._app import app

PROGRAM = [sys.executable, "-m", "hushtable.cli"]

LOADED = """
import sys
from hushtable.cli import main
code = main(sys.argv[1:])
print(sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""


def seconds(command, runs):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def loaded(*arguments):
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(eval(done.stderr.splitlines()[-1]))


def test_exit_codes(site):
    for code, arguments in ((1, ["inspect", site / "rows.csv"]), (2, ["inspect"]), (0, ["-h"])):
        done = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True)
        assert done.returncode == code
        assert ("hushtable: error: " in done.stderr) == (code > 0)


@pytest.mark.parametrize("group", [[], ["plan"], ["round"], ["bench"]])
def test_help_loads_no_command(group):
    heavy = {"numpy", "numba", "pyarrow", "sklearn", "scipy", "pandas", "rich", "safetensors"}
    assert not loaded(*group, "--help") & heavy


def test_help_of_the_program_does_without_the_metadata_of_packages():
    assert "importlib.metadata" not in loaded("--help")


@pytest.mark.parametrize(
    "command",
    ["fit", "score", "report", "demo", "plan draw", "round submit"]
    + [f"bench {name}" for name in ("adbench", "paper", "privacy", "sites", "verdicts")],
)
def test_help_of_a_command_loads_nothing_slow(command):
    slow = {"numba", "sklearn", "scipy", "pandas", "matplotlib", "opendp"}
    assert not loaded(*command.split(), "--help") & slow


def commands(group, path="hushtable"):
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from commands(one, f"{path} {name}")
        else:
            yield pytest.param(one, f"{path} {name}", id=f"{path} {name}")


@pytest.mark.parametrize(("listed", "path"), list(commands(app())))
def test_the_table_has_the_first_line_of_every_docstring(listed, path):
    text = listed.load().help
    assert text.splitlines()[0] == listed.help
    # Without \b, Typer would fill the lines of the example into one.
    assert "\n\n\b\nExample" in text
    assert f"\n  {path} " in text + " "


def test_score_loads_no_scikit_learn(site, tmp_path):
    arguments = ["score", site / "rows.csv", "--model", site / "model.hush"]
    names = loaded(*arguments, "-o", tmp_path / "s.parquet")
    assert "hushtable.kernels._built" in names
    assert "sklearn" not in names


def test_scoring_numbers_does_not_load_pandas(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n3,\n5,6\n" * 20)
    HushTable(n_tables=3).fit(tmp_path / "rows.csv").save(tmp_path / "model.hush")
    arguments = ["score", tmp_path / "rows.csv", "--model", tmp_path / "model.hush"]
    for output in ("s.csv", "s.parquet"):
        assert "pandas" not in loaded(*arguments, "-o", tmp_path / output)
    assert "pandas" not in loaded(*arguments, "--explain", "-o", tmp_path / "s.csv")


@pytest.mark.slow
def test_help_answers_at_once():
    for group in ([], ["round"], ["bench"]):
        median = seconds([*PROGRAM, *group, "--help"], 11)
        least = seconds([sys.executable, "-c", "import typer.main"], 11)
        print(f"hushtable {' '.join(group)} --help: {median:.2f} s, typer alone {least:.2f} s")
        assert median < 4 * least  # whatever the machine: nothing heavy is loaded


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
