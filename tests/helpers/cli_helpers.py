"""What several tests of the command line share."""

import contextlib
import json
import shutil
from pathlib import Path

import numpy as np

from hushtable.cli import main
from hushtable.errors import HushTableError

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


def make_parties(here, *sites):
    """Write a plan, keys and books with a cap of 3, and rows of sites; and the keys of "lead"."""
    (here / "schema.toml").write_text(SCHEMA)
    do("plan", "draw", here / "schema.toml", "--tables", 5, "--seed", 1, "-o", here / "plan.hush")
    for seed, name in enumerate(sites):
        do("round", "keygen", name, "--cap", 3, "--persons", "1", "--folder", here)
        write_rows(here / f"{name}.csv", 200, seed)
    do("round", "keygen", "lead", "--folder", here)


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


def draw_keys(here, box, *but, rows="{}.csv", **changes):
    """Have the other sites whose keys are in a folder make their first visit to its rounds.

    Those that cannot are left out, as the test is about the site that comes last.
    """
    # Tests of the core share this module, and need no federation.
    from hushtable_federation.folder.mailbox import Store
    from hushtable_federation.folder.round_folder import RoundFolder, rounds
    from hushtable_federation.keys import Keys
    from hushtable_federation.site import Attendant, Site

    class Confirming(Attendant):
        """Someone who looks at a round, knows all who take part, and agrees."""

        attended = True

        def __init__(self, cards):
            self.cards = cards

    store = Store.open(box)
    for asked in rounds(store):
        for name in set(asked.names) - set(but) if asked.terms.masked else ():
            key = here / f"{name}.key"
            if key.exists() and Keys.load(key).card in asked.sites:
                cards = [asked.coordinator, *asked.sites]
                given = Site.open(key).settings.rows or str(here / rows.format(name))
                site = Site.open(key, rows=given, **changes)
                cards = [card for card in cards if card != site.card]
                with contextlib.suppress(HushTableError):
                    site.visit(RoundFolder(asked, Store.open(box, name)), Confirming(cards))


def answer(here, name, round_="round.hush", *options, rows=None):
    """Return the command by which a site answers a round in a folder of its own.

    It comes last, after all others have drawn their keys: so it sends its counts at once.
    """
    box = post(here, round_)
    draw_keys(here, box, name, rows=str(rows or f"{name}.csv").replace(name, "{}"))
    return visit(here, box, name, *options, rows=rows or f"{name}.csv")


def hold(here, round_, *names, rows="{}.csv", known=False):
    """Play a round in a folder by commands; return where its result is.

    The rows of the sites ``names`` are in ``rows``; without ``known``, each trusts all cards.
    """
    box, cards = post(here, round_), () if known else trust(here, "lead", *names)
    for _ in range(3):  # their keys, their counts, and what takes the masks off
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
