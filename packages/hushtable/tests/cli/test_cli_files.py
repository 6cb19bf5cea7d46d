"""Damaged, foreign and mismatched .hush files, through the command line."""

import pytest

from hushtable import Sketch, files, load


@pytest.fixture
def users(site, tmp_path, old):
    """For each kind of file, the commands that read it; FILE stands for its path."""
    scores = tmp_path / "old.csv"
    scores.write_bytes(b"precious")
    rows = site / "rows.csv"
    return {
        "plan.hush": [
            ["sketch", rows, "--plan", "FILE", "-o", old],
            ["plan", "check", "FILE", rows],
            ["inspect", "FILE"],
        ],
        "a.sketch.hush": [
            ["merge", site / "b.sketch.hush", "FILE", "-o", old],
            ["merge", "FILE", "-o", old],
            ["score", rows, "--model", "FILE", "-o", scores],
            ["inspect", "FILE"],
        ],
        "marginals.sketch.hush": [
            ["plan", "draw", site / "schema.toml", "--marginals", "FILE", "-o", old],
            ["inspect", "FILE"],
        ],
        "model.hush": [
            ["score", rows, "--model", "FILE", "-o", scores],
            ["inspect", "FILE"],
        ],
    }


KINDS = ["plan.hush", "a.sketch.hush", "marginals.sketch.hush", "model.hush"]


def put(command, path):
    return [path if argument == "FILE" else argument for argument in command]


@pytest.mark.parametrize("name", KINDS)
def test_truncated_other_and_missing_files(refused, site, users, tmp_path, name):
    whole = (site / name).read_bytes()
    path = tmp_path / "short.hush"
    says = "No such file or directory"
    lengths = (0, 5, 100, len(whole) // 2, len(whole) - 1)
    for content in (None, b"a,b\n1,2\n", *(whole[:length] for length in lengths)):
        if content is not None:
            path.write_bytes(content)
            says = "not a .hush file, or a truncated one"
        for command in users[name]:
            refused(*put(command, path), says=["short.hush", says])


@pytest.mark.parametrize(
    ("command", "given", "says"),
    [
        ("sketch", "a.sketch.hush", "holds a sketch: give a plan"),
        ("sketch", "model.hush", "holds a detector: give a plan"),
        ("score", "plan.hush", "holds a plan: give a model"),
        ("score", "marginals.sketch.hush", "holds marginals, which do not score"),
        ("merge", "plan.hush", "holds a plan: give a sketch"),
        ("merge", "model.hush", "holds a detector: give a sketch"),
        ("draw", "plan.hush", "holds a plan: give a sketch"),
        ("draw", "a.sketch.hush", "marginals were counted under another plan"),
    ],
)
def test_another_kind_than_needed(refused, site, tmp_path, old, command, given, says):
    rows, scores, file = site / "rows.csv", tmp_path / "scores.csv", site / given
    refused(
        *{
            "sketch": ["sketch", rows, "--plan", file, "-o", old],
            "score": ["score", rows, "--model", file, "-o", scores],
            "merge": ["merge", site / "a.sketch.hush", file, "-o", old],
            "draw": ["plan", "draw", site / "schema.toml", "--marginals", file, "-o", old],
        }[command],
        says=says,
    )


def test_a_model_whose_threshold_is_no_number(refused, site, tmp_path):
    content = files.read(site / "model.hush")
    sketch = content.build(Sketch.from_file)
    for offset in (None, "1", True, [1.0]):
        entries, arrays = sketch.entries()
        files.write(tmp_path / "m.hush", "detector", entries | {"offset": offset}, arrays)
        arguments = ["score", site / "rows.csv", "--model", tmp_path / "m.hush"]
        says = ["m.hush: the threshold is not a number", "get the file again"]
        refused(*arguments, "-o", tmp_path / "s.csv", says=says)


def test_a_sketch_that_calls_itself_a_release_is_refused(refused, site, tmp_path, old):
    sketch = load(site / "a.sketch.hush")
    files.write(tmp_path / "r.hush", "release", *sketch.entries())
    refused("merge", tmp_path / "r.hush", "-o", old, says="holds no release")
    refused("inspect", tmp_path / "r.hush", says="r.hush")


# --- plans that differ ------------------------------------------------------------------------
