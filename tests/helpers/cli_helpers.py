"""What several tests of the command line share."""

import json
import shutil
from pathlib import Path

import numpy as np

from hushtable.cli import main

SCHEMA = """
[[feature]]
name = "age"
kind = "numeric"
low = 0
high = 120
unit = "year"

[[feature]]
name = "income"
kind = "numeric"
low = 0
high = 200_000

[[feature]]
name = "ward"
kind = "categorical"
categories = ["north", "south"]
"""


def trust(folder, *names):
    """Options that name the cards of a round as those of their owners."""
    return [word for name in names for word in ("--trust", folder / f"{name}.card")]


def say(folder, name, /, **entries):
    """Add entries to a site's file, or change those that are there; return the file."""
    path = folder / f"{name}.toml"
    lines = path.read_text().splitlines()
    kept = [line for line in lines if line.partition(" = ")[0] not in entries]
    added = [f"{entry} = {json.dumps(value)}" for entry, value in entries.items()]
    path.write_text("\n".join([*kept, *added]) + "\n")
    return path


def write_rows(path, n_rows, seed=0):
    """Write a CSV file: an outlier in row 7, a missing age in every fiftieth row."""
    rng = np.random.default_rng(seed)
    age = np.char.mod("%d", rng.integers(20, 80, n_rows)).astype(object)
    age[::50] = ""
    income = np.minimum(rng.lognormal(10, 0.3, n_rows), 150_000.0)
    income[7], age[7] = 199_999.0, "119"
    ward = rng.choice(["north", "south"], n_rows)
    lines = [f"{a},{i:.2f},{w}" for a, i, w in zip(age, income, ward, strict=True)]
    path.write_text("\n".join(["age,income,ward", *lines]) + "\n")
    return path


def do(*arguments):
    """Run a command that must succeed."""
    assert main([str(argument) for argument in arguments]) == 0, arguments


def visit(here, box, name, *options, rows=None):
    """Return the command by which a party of the folder ``here`` visits a folder of rounds."""
    command = ("round", "sync", box, "--key", here / f"{name}.key", "-o", here, *options)
    return command if rows is None else (*command, here / rows, "--yes")


def post(here, round_):
    """Put a round into a folder of its own, if it is not there; return the folder."""
    box = here / f"{Path(round_).stem}.box"
    if not box.exists():
        box.mkdir(mode=0o755)  # of one user alone, whatever the umask
        do(*visit(here, box, "lead", "--post", here / round_))
    return box


def answer(here, name, round_="round.hush", *options, rows=None):
    """Return the command by which a site answers a round in a folder of its own."""
    return visit(here, post(here, round_), name, *options, rows=rows or f"{name}.csv")


def hold(here, round_, *names, rows="{}.csv", known=False):
    """Play a round in a folder by commands; return where its result is.

    The rows of the sites ``names`` are in ``rows``; without ``known``, each trusts all cards.
    """
    box, cards = post(here, round_), () if known else trust(here, "lead", *names)
    for _ in range(2):  # their counts, and what takes the masks off
        for name in names:
            do(*visit(here, box, name, *cards, rows=str(rows).format(name)))
        do(*visit(here, box, "lead"))
    (posted,) = box.glob("*.result.lead.*")
    return Path(shutil.copy(posted, here / f"{Path(round_).stem}.result.hush"))


def contents(folder):
    """Return every file under a folder with its bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


def allow_no_masks(here, *names):
    """Let the policies of these sites allow rounds without masks."""
    for name in names:
        policy = here / f"{name}.policy.toml"
        policy.write_text(policy.read_text().replace("masks = true", "masks = false"))
