"""Judge exports as their owners read them: by commands, with the remedies that messages offer.

python world_judge.py            all exports
python world_judge.py sql zip    those whose names hold one of the words
"""

import contextlib
import importlib.util
import io
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import world_dates
import world_formats
import world_labels
import world_numbers
import world_programs
import world_statistics
from world_tables import WORLD, World, Written

from hushtable.cli import main as command

#: Modules that register exports.
MODULES = (
    world_numbers,
    world_dates,
    world_labels,
    world_programs,
    world_statistics,
    world_formats,
)
#: Times that remedies are typed.
MOST_STEPS = 5
#: Options that say how a file is laid out, and that a later command may need again.
LAYOUT = ("--encoding", "--delimiter", "--no-header", "--skip-lines", "--sheet", "--member")
#: Options of which a later one is added to an earlier one.
LISTS = ("--missing", "--as", "--drop", "--keep-text", "--columns")
#: What says how to go on: an option, a step in a program, or an extra to install.
WAY_OUT = re.compile(
    r"(?<![\w-])--(?!help)\w|\bsave\b.*\bas\b|\bexport\b|\binstall\b|\bunpack\b", re.I
)

#: Scores that differ by no more are the same.
SAME = 1e-6
LEAVES_OUT = "leaves out"

Options = dict[str, str]


@dataclass
class Verdict:
    """What became of an export."""

    name: str
    #: right, refused (with a way out; also where the remedy leaves a column out), or silent
    #: (anything else: wrong scores, and refusals that help no one).
    verdict: str
    #: Times that remedies were typed.
    steps: int
    options: Options
    #: Largest difference from the scores of the twin, and the rank correlation with them.
    difference: float = np.nan
    correlation: float = np.nan
    detail: str = ""

    def __str__(self) -> str:
        figures = (
            "" if np.isnan(self.difference) else f"{self.difference:.3g} {self.correlation:.3f}"
        )
        typed = shlex.join(words(self.options))
        line = f"{self.name:<21} {self.verdict:<8} {self.steps} {figures:<12} {typed}"
        return f"{line}  [{self.detail}]" if self.detail else line


def words(options: Options) -> list[str]:
    """Return options as they are typed."""
    return [
        word for name, value in options.items() for word in ([name, value] if value else [name])
    ]


def parsed(typed: Sequence[str]) -> Options:
    """Return the options of a line; of alternatives behind "or", the first."""
    options: Options = {}
    name = ""
    for word in typed:
        if word.strip(",:;") == "or":
            break
        if word.startswith("--"):
            name, _, value = word.partition("=")
            options[name] = value
        elif name:
            # Of the two answers to a question, the first.
            word = word.split("/")[0] if name in ("--dates", "--decimal") else word
            options[name] = f"{options[name]} {word}".strip()
    return options


def asked(message: str) -> Options:
    """Return the options of the last line "Add: ..." of a message."""
    lines = [line.partition("Add: ")[2] for line in message.splitlines() if "Add: " in line]
    try:
        return parsed(shlex.split(lines[-1])) if lines else {}
    except ValueError:
        return {}


def merged(old: Options, new: Options) -> Options:
    """Add options to earlier ones."""
    joined = dict(old)
    for name, value in new.items():
        parts = joined[name].split(",") if name in LISTS and name in joined else []
        more = [part for part in value.split(",") if part not in parts] if parts else [value]
        joined[name] = ",".join([*parts, *more])
    return joined


def run(*arguments: object) -> tuple[int, str]:
    """Run a command in this process; return its exit code and all that it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = command([str(argument) for argument in arguments])
        except SystemExit as stop:  # wrong usage
            code = stop.code if isinstance(stop.code, int) else 2
    return code, out.getvalue()


def remedy(case: World, message: str, options: Options) -> Options:
    """Return the options that an owner types after a message, with what only an owner knows."""
    new = asked(message)
    known = {name: value for name, value in case.knows.items() if name in message}
    if not new and not known:
        known = dict(case.knows)
    joined = merged(options, {name: value for name, value in new.items() if name not in known})
    return {**joined, **known}


def fitted(case: World, path: Path, options: Options, model: Path) -> tuple[int, str, Options, int]:
    """Fit, typing the remedies of refusals; return code, message, options and steps."""
    for step in range(MOST_STEPS + 1):
        code, message = run("fit", path, *words(options), "--seed", 0, "-o", model)
        if code == 0 or step == MOST_STEPS:
            break
        more = remedy(case, message, options)
        if more == options:
            break
        options = more
    return code, message, options, step


def scored(path: Path, options: Options, model: Path, out: Path) -> tuple[np.ndarray | None, str]:
    """Score, with the options of the layout where the model does not know them."""
    for more in ({}, {name: value for name, value in options.items() if name in LAYOUT}):
        out.unlink(missing_ok=True)
        code, message = run("score", path, *words(more), "--model", model, "-o", out)
        if code == 0:
            return pd.read_csv(out)["score"].to_numpy(), "score asks again" if more else ""
    return None, f"score refuses: {first_line(message)}"


def first_line(message: str) -> str:
    """Return the first line of an error."""
    lines = [line for line in message.splitlines() if "error:" in line] or message.splitlines()
    return lines[0][:150] if lines else ""


def twin_name(name: str, columns: Sequence[str]) -> str | None:
    """Return the twin's name of a column: it may be in other case, in records, or without names."""
    number = re.fullmatch(r"column (\d+)", name)
    if name not in columns and number:
        return columns[int(number[1]) - 1]
    last = name.lower().rpartition(".")[2]
    same = [one for one in columns if one == name]
    same += [one for one in columns if one.lower().rpartition(".")[2] == last]
    return same[0] if same else None


def choice(options: Options, columns: Sequence[str]) -> tuple[set[str], list[str]]:
    """Return the twin's columns that options leave out, and those that they keep, in order."""

    def own(names: Sequence[str]) -> list[str]:
        found = [twin_name(name, columns) for name in names if name]
        return [name for name in found if name is not None]

    pairs = [part.rpartition("=") for part in options.get("--as", "").split(",")]
    ids = [name for name, _, kind in pairs if kind == "id"]
    gone = own([*options.get("--drop", "").split(","), *ids])
    kept = own(options.get("--columns", "").split(",")) or columns
    kept = [name for name in kept if name not in gone]
    return {*columns} - {*kept}, kept


def scores_of(twin: pd.DataFrame, case: World, options: Options, folder: Path) -> np.ndarray:
    """Return the scores of a clean table with the same choice of columns."""
    path, model = folder / "twin.csv", folder / "twin.hush"
    _, kept = choice(options, list(twin.columns))
    twin[kept].to_csv(path, index=False, header=case.header)
    layout = {} if case.header else {"--no-header": ""}
    code, said = run("fit", path, *words(layout), "--seed", 0, "-o", model)
    scores = None
    if code == 0:
        scores, said = scored(path, layout, model, folder / "twin-scores.csv")
    if scores is None:
        raise RuntimeError(f"{case.name}: the twin is refused with {options}: {said}")
    return scores


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Return Spearman's correlation."""
    return float(pd.Series(first).corr(pd.Series(second), method="spearman"))


def lost(case: World, written: Written, options: Options) -> set[str]:
    """Return the columns that the options leave out, and that the owner cannot spare."""
    gone, _ = choice(options, list(written.twin.columns))
    return gone - {*case.spare}


def compared(
    case: World, written: Written, options: Options, scores: np.ndarray, folder: Path
) -> tuple[float, float]:
    """Return the difference from the closest right reading, and the correlation with it."""
    found = []
    for twin in (written.twin, *written.also):
        truth = scores_of(twin, case, options, folder)
        if len(truth) != len(scores):
            return np.inf, np.nan
        found.append((float(np.abs(scores - truth).max()), rank_correlation(scores, truth)))
    return min(found)


def judge(case: World, folder: Path) -> Verdict:
    """Write an export, read it as its owner would, and compare its scores with its twin's."""
    path, written = case.write(folder)
    options = {name: value for name, value in case.knows.items() if name == "--missing"}
    model, steps = folder / "model.hush", 0
    while True:
        code, message, options, more = fitted(case, path, options, model)
        steps += more
        if code:
            way = WAY_OUT.search(message) and "No such option" not in message
            detail = first_line(message).replace(f"{folder}/", "")
            return Verdict(case.name, "refused" if way else "silent", steps, options, detail=detail)
        scores, detail = scored(path, options, model, folder / "scores.csv")
        if scores is None:
            return Verdict(case.name, "silent", steps, options, detail=detail)
        figures = compared(case, written, options, scores, folder)
        noted = merged(options, asked(message))
        if figures[0] <= SAME or noted == options or steps >= MOST_STEPS:
            break
        options, steps = noted, steps + 1  # a note of a command that went well
    gone = lost(case, written, options)
    if gone:
        detail = f"{LEAVES_OUT} {', '.join(sorted(gone))}"
    elif figures[0] == np.inf:
        detail = f"{len(scores)} rows, not {len(written.twin)}"
    verdict = "silent" if figures[0] > SAME else "refused" if gone else "right"
    return Verdict(case.name, verdict, steps, options, *figures, detail)


def installed(case: World) -> bool:
    """Return whether the modules that write an export are there."""
    return all(importlib.util.find_spec(module) for module in case.needs)


def verdicts(names: Sequence[str]) -> Iterator[Verdict]:
    """Judge exports, each in a folder of its own."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            yield judge(WORLD[name], Path(folder))


def main(asked_for: Sequence[str]) -> int:
    """Print one line per export, and the totals; return 1 if any fails."""
    chosen = [name for name in WORLD if not asked_for or any(word in name for word in asked_for)]
    there = [name for name in chosen if installed(WORLD[name])]
    found = []
    for one in verdicts(there):
        found.append(one)
        print(one, flush=True)
    counts = {word: sum(one.verdict == word for one in found)
              for word in ("right", "refused", "silent")}  # fmt: skip
    without = sum(one.detail.startswith(LEAVES_OUT) for one in found)
    failed = sum(one.verdict not in WORLD[one.name].must.split(" or ") for one in found)
    print(f"{len(found)} exports: " + ", ".join(f"{n} {word}" for word, n in counts.items()))
    print(f"{without} leave a column out; {failed} are not what they must be; "
          f"{len(chosen) - len(there)} not written for want of a library")  # fmt: skip
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
