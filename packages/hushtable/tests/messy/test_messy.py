"""Exports of programs and countries come right, or are refused with the options that help.

``expected.toml`` has one entry for each file. Its owner fits a detector, types the options that the
messages request, runs the line of Python that a message
proposes, and fits again. At the end, every score has to be that of the file's truth, which
has the same table with plain numbers, days in ISO 8601, and one spelling of each label. Some files
are read every day, and all of them at night. For each file, the entry states:

- what: who writes such a file, and what is unusual in it, if its name does not state it
- given: options that the owner types at once
- knows: answers of the owner, by option, that replace those that a message proposes
- options: all options that the owner has typed in the end
- says: words that the messages contain, such as a wrong value and its line
- refused: whether the file is refused for good
- kinds: what each column of the truth is: number, date, label, or out of the model
- needs: the package that reads such a file
"""

import json
import pathlib
import re
import shlex
import shutil
import tomllib

import numpy as np
import pandas as pd
import pytest

from hushtable import HushTable, load

HERE = pathlib.Path(__file__).parent
CASES = tomllib.loads((HERE / "expected.toml").read_text("utf-8"))
#: Times that an owner obeys a message before giving up.
MOST_STEPS = 5
N_TABLES = 25
#: Options that state how a file is laid out, which a model does not keep.
LAYOUT = tuple(f"--read {name}" for name in ("encoding", "delimiter", "no_header", "skip_lines",
               "skip_footer", "sheet", "member"))  # fmt: skip
#: Options of which a later one is added to an earlier one.
LISTS = ("--missing", "--as", "--drop", "--columns")


def parsed(words):
    """Return options by name; of alternatives behind "or", the first."""
    options, name = {}, ""
    for word in words:
        if word.strip(",:;") == "or":
            break
        if name == "--read":
            name, _, value = word.partition("=")
            name = f"--read {name}"
            options[name] = value
        elif word == "--read":
            name = word
        elif word.startswith("--"):
            name = word
            options[name] = ""
        elif name:
            options[name] = f"{options[name]} {word}".strip()
    return options


def requested(message):
    """Return the options of the last "Add: ..." of a message, to the end of its line."""
    _, add, tail = message.rpartition("Add: ")
    # A name of a column in quotes may hold a line break.
    line = re.match(r"('[^']*'|[^'\n])*", tail)[0]
    return parsed(shlex.split(line)) if add else {}


def joined(options, more, known):
    """Add requested options to earlier ones; what the owner knows overrides what is proposed."""
    both = dict(options)
    for name, value in more.items():
        value = known.get(name, value)
        earlier = both[name].split(",") if name in LISTS and name in both else []
        both[name] = ",".join([*earlier, *(one for one in value.split(",") if one not in earlier)])
        if name in ("--dates", "--decimal"):
            both[name] = both[name].split("/")[0]
    return both


def typed(options):
    """Return the words of a command line."""
    words = []
    for name, value in options.items():
        flag, _, entry = name.partition(" ")
        words += [flag, f"{entry}={value}"] if entry else [word for word in (flag, value) if word]
    return words


def fitted(case, path, run, folder):
    """Fit, typing what messages request; return the exit code, all messages, and the options."""
    known, messages = case.get("knows", {}), ""
    options = parsed(shlex.split(case.get("given", "")))
    shutil.copy(path, folder)
    path = folder / path.name
    for _ in range(MOST_STEPS):
        result = run("fit", path, *typed(options), "--seed", 0, "--tables", N_TABLES,
                     "-o", folder / "model.hush")  # fmt: skip
        messages += result.err
        if way := re.search(r"Python: (pathlib\..*\))", result.err):
            path = converted(way[1], folder)
            continue
        # Where a message requests nothing, owners try what they know of the file.
        more = requested(result.err) or (known if result.code else {})
        more = joined(options, more, known)
        if more == options:
            break
        options = more
    return result.code, messages, options, path


def converted(code, folder):
    """Run the line of Python that a message proposes, and return the file that it writes."""
    before = set(folder.iterdir())
    exec(code, {"json": json, "pathlib": pathlib})
    [made] = set(folder.iterdir()) - before
    return made


def truth(case, name, names):
    """Return the scores of the true table with the columns of the model, in their order."""
    table = pd.read_csv(HERE / "truth" / f"{name}.csv", dtype=str, keep_default_na=False)
    kinds = dict(zip(table.columns, case["kinds"].split(), strict=True))
    assert {column for column, kind in kinds.items() if kind != "out"} == set(names)
    columns = {}
    for column in names:
        values = table[column]
        if kinds[column] == "number":
            columns[column] = pd.to_numeric(values)
        elif kinds[column] == "date":
            moments = pd.to_datetime(values.where(values != ""), format="ISO8601")
            columns[column] = (moments - pd.Timestamp(0)).dt.total_seconds()
        else:
            columns[column] = values.where(values != "", None)
    frame = pd.DataFrame(columns)
    return HushTable(n_tables=N_TABLES, random_state=0).fit(frame).score_samples(frame)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (not case.get("everyday")))
     for name, case in CASES.items()],
)  # fmt: skip
def test_a_messy_file_comes_right_or_says_how(name, run, tmp_path):
    case = CASES[name]
    if "needs" in case:
        pytest.importorskip(case["needs"])
    path = HERE / "files" / case["file"]
    code, messages, options, path = fitted(case, path, run, tmp_path)
    for words in case.get("says", []):
        assert words in messages
    if not options and "says" not in case:
        assert messages == ""  # a false alarm is a fault, too
    assert shlex.join(typed(options)) == case.get("options", "")
    if case.get("refused"):
        assert code == 1
        return
    assert code == 0, messages
    layout = {name: value for name, value in options.items() if name in LAYOUT}
    scores = tmp_path / "scores.csv"
    result = run("score", path, *typed(layout), "--model", tmp_path / "model.hush", "-o", scores)
    assert result.code == 0, result.err
    names = [one.name for one in load(tmp_path / "model.hush").plan_.schema.features]
    np.testing.assert_allclose(pd.read_csv(scores)["score"], truth(case, name, names), 1e-6)


@pytest.mark.parametrize("n", [7_200, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_one_word_far_below_the_head_is_named_with_its_line(n, run, tmp_path):
    rows = [f"{k % 97}.{k % 10},{k % 53}.5" for k in range(n)]
    rows[-200] = "ERR,1.5"
    path = tmp_path / "readings.csv"
    path.write_text("\n".join(["temperature,humidity", *rows, ""]))
    fit = ["fit", path, "--tables", N_TABLES, "-o", tmp_path / "model.hush"]
    refused = run(*fit)
    assert refused.code == 1
    for words in ("temperature", "'ERR'", f"line {n - 198}", "Add: --missing ERR"):
        assert words in refused.err
    assert run(*fit, "--missing", "ERR").code == 0
