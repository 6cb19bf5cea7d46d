"""Which pages are followed, with what at hand; and what on them is not run, with the reason."""

import io
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from cli_helpers import hold
from docs_reader import ROOT, Reader
from hushtable import HushTable, Plan, Schema, Sketch
from hushtable.cli import main

SCHEMA = """
[[feature]]
name = "age"
kind = "numeric"
low = 0
high = 120

[[feature]]
name = "pulse"
kind = "numeric"
low = 20
high = 250
"""


@dataclass(frozen=True)
class Page:
    """How a page is followed.

    Attributes
    ----------
    needs : tuple of str
        Libraries without which it is skipped.
    folders : tuple of str
        Computers, and folders of a server.
    before : dict of str to callable
        What others do before a command that begins like this.
    names : callable
        Called in the folder; returns what Python on the page takes for granted.
    slow : bool
        Takes more than a few seconds.
    """

    needs: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    before: dict[str, Callable[[], None]] = field(default_factory=dict)
    names: Callable[[], dict] = dict
    slow: bool = False

    def follow(self, name, here, section=""):
        """Do what the page, or a section of it, says in an empty folder."""
        for folder in (".", *self.folders):
            (here / folder).mkdir(parents=True, exist_ok=True)
            if not folder.startswith("server"):
                give(here / folder)
        but_not = frozenset(line for page, line in NOT_RUN if page == name)
        terminal = sys.stdin
        try:
            return Reader(ROOT / name, here, self.before, self.names, but_not, section).follow()
        finally:
            sys.stdin = terminal


def give(here):
    """Put there what a reader has: rows, and a schema that people agreed on."""
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.integers(18, 95, 400), rng.normal(75, 9, 400).round()])
    text = "age,pulse\n" + "\n".join(f"{a:g},{b:g}" for a, b in rows) + "\n"
    for name in ("patients", "rows", "north", "south"):
        (here / f"{name}.csv").write_text(text)
    named = (f"P{k:03},{line}" if k else f"patient,{line}" for k, line in enumerate(text.split()))
    (here / "mine.csv").write_text("\n".join(named) + "\n")
    (here / "schema.toml").write_text(SCHEMA)


THREE = ("north", "south", "west")


def three_hospitals_with_databases():
    """Put there databases of OMOP tables, and all keys."""
    from range_rounds import three_hospitals

    for name, cdm in three_hospitals(20_000).items():
        cdm.into_duckdb(f"{name}.duckdb")
        do(f"round keygen {name} --cap 2 --persons 1")
    do("round keygen lead")


def the_others_know_their_rows():
    """Write the other sites' files like the page's, and post the round."""
    for name in THREE[1:]:
        Path(f"{name}.toml").write_text(Path("north.toml").read_text().replace("north", name))
    Path("box").mkdir(mode=0o755)
    do("round sync box --key lead.key --post round.hush")
    trust = " ".join(f"--trust {one}.card" for one in ("lead", *THREE[1:]))
    do(f"round sync box --site north.toml {trust} --yes")


def the_round_for_ranges_ends():
    """Have all visit the folder until the result is there."""
    from range_rounds import until_done

    until_done(Path.cwd())


def do(*commands):
    """Run commands that must succeed."""
    for command in commands:
        assert main(command.split()) == 0, command


def the_counts_are_sent():
    """Confirm that the counts are sent."""
    sys.stdin = Terminal("y\n")


def the_statistics_are_there():
    """Have all visit the round about columns until its result is there."""
    for _ in range(3):
        for site in THREE:
            do(f"round sync statistics {site}.csv --key {site}.key --yes")
        do("round sync statistics --key lead.key")
    (posted,) = Path("statistics").glob("*.result.lead.*")
    shutil.copy(posted, "statistics.result.hush")


def release_of(site, plan="plan.hush", epsilon="1"):
    """Return the commands by which another site makes its release."""
    sketch = f"{site}.sketch.hush"
    return (
        f"sketch rows.csv --plan {plan} -o {sketch}",
        f"release {sketch} --epsilon {epsilon} -o {site}.hush",
    )


def visit_of(site, folder, *others, rows):
    """Return the command by which another site visits a round, and trusts all in it."""
    trust = " ".join(f"--trust {one}.card" for one in ("lead", *others))
    return f"round sync {folder} {rows} --key {site}.key {trust} --yes"


def visits_of(folder, *sites, rows="rows.csv"):
    """Have other sites visit a round."""
    everybody = ("north", *sites)
    for site in sites:
        others = [one for one in everybody if one != site]
        do(visit_of(site, folder, *others, rows=rows.format(site)))


def a_round_of_which_one_invents():
    """Hold a round about true rows, and one site's many copies of ten unusual ones."""
    import pandas as pd  # not for the README, which is followed without it

    do(*(f"round keygen {site} --cap 2 --persons 1" for site in THREE), "round keygen lead")
    rng = np.random.default_rng(2)
    odd = np.column_stack([rng.integers(18, 40, 10), rng.integers(190, 240, 10)])
    pd.DataFrame(np.tile(odd, (800, 1)), columns=["age", "pulse"]).to_csv("west.csv", index=False)
    true = np.column_stack([rng.integers(18, 95, 400), rng.normal(75, 9, 400).round()])
    pd.DataFrame(true, columns=["age", "pulse"]).to_csv("south.csv", index=False)
    do("plan draw schema.toml --epsilon 1 --expected-rows 1200 -o plan.hush")
    cards = " ".join(f"{site}.card" for site in THREE)
    do(f"round open plan.hush {cards} --key lead.key --epsilon 1 -o round.hush")
    hold(Path(), "round.hush", *THREE).rename("result.hush")


def the_others_open_a_round():
    """Post a round of three sites, with the keys of the others."""
    do(*(f"round keygen {site} --cap 2 --persons 1" for site in THREE[1:]), "round keygen lead")
    do("plan draw schema.toml --epsilon 1 --expected-rows 10000 -o plan.hush")
    cards = " ".join(f"{site}.card" for site in THREE)
    do(f"round open plan.hush {cards} --key lead.key --epsilon 1 -o round.hush")
    Path("round").mkdir(mode=0o755)
    do("round sync round --post round.hush --key lead.key")


def a_merged_model():
    """Make the releases of two sites, and their sum, for most of a budget of 1."""
    do("plan draw schema.toml --epsilon 0.9 --expected-rows 800 --sites 2 -o plan.hush")
    do(*(command for site in ("north", "south") for command in release_of(site, epsilon="0.9")))
    do("merge north.hush south.hush -o all.hush")


def patients_come_again():
    """Write visits: one of most patients, three of some."""
    import pandas as pd  # not for the README, which is followed without it

    rows = pd.read_csv("rows.csv")
    rows = pd.concat([rows, rows.head(100), rows.head(100)], ignore_index=True)
    rows.insert(0, "patient", [f"P{i:03}" for i in (*range(400), *range(100), *range(100))])
    rows.to_csv("visits.csv", index=False)


def three_months_of_patients():
    """Write the patients of each month, with a higher pulse in the last, and make keys."""
    import pandas as pd  # not for the README, which is followed without it

    for seed, name in enumerate(("north", "south", "east")):
        do(f"round keygen {name} --cap 1.5")
        Path(f"{name}.toml").write_text(f'key = "{name}.key"\nperson = "patient"\n')
        rng = np.random.default_rng(seed)
        for month in (1, 2, 3):
            rows = {
                "patient": rng.integers(40_000, size=2_000),
                "age": rng.integers(18, 95, 2_000),
                "pulse": (rng.normal(75 if month < 3 else 95, 9, 2_000)).round(),
            }
            pd.DataFrame(rows).to_csv(f"{name}-{month}.csv", index=False)
    do("round keygen lead")


def the_month_ends():
    """Have all visit the round of the latest month until its result is there."""
    month = len([*Path().glob("2027-0*.hush")])
    names = ("south", "east") if month == 3 else ("south",)
    for site in names:
        known = [f"{name}.card" for name in ("lead", "north", *names) if name != site]
        trust = "".join(f" --trust {card}" for card in known)
        do(f"round sync rounds {site}-{month}.csv --site {site}.toml{trust} --yes")
    for _ in range(2):
        for site in ("north", *names):
            do(f"round sync rounds --site {site}.toml --yes")
        do("round sync rounds --key lead.key")


def two_years_of_visits():
    """Write the patients of two years, of whom some are in both."""
    import pandas as pd  # not for the README, which is followed without it

    rows = pd.read_csv("rows.csv")
    for year, first in ((2026, 0), (2027, 300)):
        named = rows.copy()
        named.insert(0, "patient", [f"P{i:03}" for i in range(first, first + 400)])
        named["pulse"] += year - 2025.5  # no rows of the months
        named.to_csv(f"visits-{year}.csv", index=False)
    Path("results").mkdir()


def the_year_ends():
    """Have all visit the round of the latest year until its result is there."""
    years = [year for year in (2026, 2027) if Path(f"{year}.hush").exists()]
    for year in years[-1:]:
        text = Path(f"north-{year}.toml").read_text()
        Path(f"south-{year}.toml").write_text(text.replace("north", "south"))
        for _ in range(3):
            for name in ("south", "north"):
                do(f"round sync years --site {name}-{year}.toml --new-people --yes")
            do("round sync years --key lead.key")
        do(f"round sync years --site north-{year}.toml")


def everything_for_reports():
    """Make a model, releases of two sites, and their sum."""
    do("plan draw schema.toml --epsilon 1 --expected-rows 800 --sites 2 -o plan.hush")
    do("fit patients.csv -o model.hush", *release_of("north"), *release_of("south"))
    header, *rows = Path("patients.csv").read_text().splitlines()
    export = [f"Patient ID,Ward,{header}", *(f"P{i:04},east,{row}" for i, row in enumerate(rows))]
    Path("export.csv").write_text("\n".join(export))
    Path("sent").mkdir(exist_ok=True)
    for site in ("north", "south"):
        shutil.copy(f"{site}.hush", "sent")
    do("merge north.hush south.hush -o all.hush")
    do("plan marginals schema.toml -o marginals.plan.hush")
    do("sketch rows.csv --plan marginals.plan.hush -o marginals.hush")
    do("plan ranks all.hush -o ranks.plan.hush")
    do("sketch rows.csv --plan ranks.plan.hush -o ranks.hush")


def the_end_of_a_round():
    """Make a round's result, with what its sites sent in the folder."""
    do(
        *(f"round keygen {site} --cap 2 --persons 1" for site in ("north", "south")),
        "round keygen lead",
    )
    do("round open plan.hush north.card south.card --key lead.key --epsilon 1 -o round.hush")
    result = hold(Path(), "round.hush", "north", "south", rows="rows.csv")
    result.rename("result.hush")
    shutil.rmtree("sent")
    Path("sent").mkdir()
    for path in Path("round.box").glob("*.masked.*"):
        shutil.copy(path, "sent")


def answers():
    """Type answers at a review: the terminal of anyone who follows the page."""
    sys.stdin = io.StringIO("f\nf\nq\n")


class Terminal(io.StringIO):
    """A terminal at which somebody types."""

    def isatty(self):
        return True


def the_call():
    """Confirm the fingerprint after the call, and then that the counts are sent."""
    sys.stdin = Terminal("y\ny\n")


def no_terminal():
    """End the call."""
    sys.stdin = io.StringIO()


def a_lake_and_its_hours():
    """Return a plan, and rows by the hour."""
    import pyarrow.csv
    import pyarrow.parquet as pq

    rows = pyarrow.csv.read_csv("rows.csv")
    Path("lake").mkdir()
    for month in (10, 11):
        pq.write_table(rows, f"lake/2026-{month}.parquet")
    hours = [rows.slice(start, 100) for start in (0, 100, 200, 300)]
    plan = Plan.draw(Schema.from_toml("schema.toml"), n_tables=20)
    pq.write_table(rows.slice(0, 50), "sample.parquet")
    months = [Sketch.from_data(plan, rows.slice(start, 200)) for start in (0, 200)]
    return {
        "plan": plan,
        "requests": [rows.slice(start, 1) for start in (0, 1)],
        "first_hour": hours[0],
        "hours": hours[1:],
        "last_month": months[0],
        "this_month": months[1],
    }


def what_displays_held():
    """Return a detector, its rows, a release, and verdicts."""
    X = np.random.default_rng(0).normal(size=(50, 2))
    plan = Plan.draw(Schema.from_toml("schema.toml"), n_tables=5)
    release = Sketch.from_data(plan, X).release(epsilon=1.0)
    return {
        "np": np, "detector": HushTable(random_state=0).fit(X), "X": X, "release": release,
        "y": [1, 0, 1],
    }  # fmt: skip


ROUNDS = ("opendp", "cryptography")
LOOKS = ("jinja2",)
#: The part of the page on OMOP that needs no PostgreSQL server.
RANGES = "Plausible ranges from several hospitals"

#: By the name of a page; a section by "PAGE: SECTION", where sections need different libraries.
PAGES = {
    "README.md": Page(
        slow=True,
        needs=ROUNDS + LOOKS,
        before={
            ".venv/bin/hushtable score mine.csv": partial(shutil.copy, "rows.csv", "mine.csv"),
            "hushtable round sync": the_others_open_a_round,
        },
    ),
    "docs/benchmarks/accuracy.md": Page(),
    "docs/tutorials/one-table.md: A ranked list with reasons": Page(needs=("pandas",), slow=True),
    "docs/tutorials/one-table.md: Unusual for its ward": Page(),
    "docs/tutorials/one-table.md: Unusual for the same patient": Page(),
    "docs/tutorials/one-table.md: Columns that follow from each other": Page(needs=("pandas",)),
    "docs/reference/api.md": Page(needs=("pandas", *ROUNDS), slow=True),
    "docs/benchmarks/privacy.md": Page(),
    "docs/project/decisions/09-dropped-features.md": Page(
        needs=("matplotlib", "opendp"), names=what_displays_held
    ),
    "docs/explanation/privacy.md": Page(needs=("opendp",)),
    "docs/how-to/data.md: Databases": Page(needs=("duckdb",)),
    "docs/how-to/data.md: Large data": Page(
        slow=True, needs=("pandas", "dask.dataframe", "pyspark"), names=a_lake_and_its_hours
    ),
    "docs/how-to/data.md: Streams and drift": Page(names=a_lake_and_its_hours),
    "docs/how-to/data.md: Features of another table": Page(needs=("duckdb",)),
    "docs/explanation/score.md": Page(
        slow=True,
        needs=("opendp",),
        before={
            "hushtable plan ranks": a_merged_model,
            "hushtable merge north.ranks": partial(
                do, *release_of("south.ranks", "ranks.plan.hush")
            ),
        },
    ),
    "docs/how-to/export.md: Data frames and scikit-learn": Page(
        needs=("pandas", "polars", "duckdb", "pyod"), slow=True
    ),
    "docs/how-to/export.md: In a service": Page(
        needs=("pandas", "mlflow"), names=a_lake_and_its_hours, slow=True
    ),
    "docs/how-to/export.md: Export a model": Page(
        needs=("pandas", "onnx", "onnxruntime", "duckdb"), slow=True
    ),
    "docs/how-to/carriers.md": Page(
        needs=ROUNDS,
        folders=("north", "lead", "rounds"),
        before={
            "hushtable plan draw": partial(
                do, *(f"round keygen {name}" for name in ("north", "south", "lead"))
            )
        },
    ),
    "docs/install.md": Page(),
    "docs/how-to/site.md": Page(
        slow=True,
        needs=ROUNDS,
        before={
            "hushtable round open schema.toml": three_months_of_patients,
            "hushtable round next 2027-01.hush": the_month_ends,
            "hushtable round book north.book": the_month_ends,
            "hushtable decode *.result.hush -o all.hush": the_month_ends,
            "hushtable plan draw schema.toml --epsilon 1 --expected-rows 800": two_years_of_visits,
            "hushtable round open cohorts.plan.hush": the_year_ends,
            "hushtable merge": the_year_ends,
            "hushtable round keygen west": partial(
                os.environ.update, WEST_PASSPHRASE="five words drawn by dice"
            ),
        },
    ),
    "docs/how-to/privacy-officer.md": Page(
        slow=True,
        needs=ROUNDS + LOOKS,
        before={
            "hushtable round sync round --key north.key": partial(
                visits_of, "round", "south", rows="patients.csv"
            )
        },
    ),
    f"docs/how-to/omop.md: {RANGES}": Page(
        slow=True,
        needs=(*ROUNDS, *LOOKS, "duckdb"),
        before={
            "hushtable plan draft": three_hospitals_with_databases,
            "hushtable round sync": the_others_know_their_rows,
            "hushtable round ranges result.hush --read omop": the_round_for_ranges_ends,
        },
    ),
    "docs/how-to/releases.md": Page(
        slow=True,
        needs=("pandas", *ROUNDS),
        before={
            "hushtable round compare": a_round_of_which_one_invents,
            "hushtable round sync statistics north": the_counts_are_sent,
            "hushtable round ranges statistics": the_statistics_are_there,
            "hushtable merge north.hush": partial(do, *release_of("north"), *release_of("south")),
            "hushtable merge north-first.hush": partial(
                do,
                *release_of("north-first", "first.plan.hush"),
                *release_of("south-first", "first.plan.hush"),
            ),
            "hushtable merge north-first-pass": partial(
                do, *release_of("north-first-pass"), *release_of("south-first-pass")
            ),
            "hushtable sketch visits.csv": patients_come_again,
            "hushtable merge north-gate": partial(
                do,
                *release_of("north-gate", "gate.plan.hush"),
                *release_of("south-gate", "gate.plan.hush"),
            ),
        },
    ),
    "docs/how-to/watch.md: Write a report": Page(
        slow=True,
        needs=ROUNDS + LOOKS,
        before={
            "hushtable report model.hush": everything_for_reports,
            "hushtable report result.hush": the_end_of_a_round,
        },
    ),
    "docs/benchmarks/speed.md": Page(),
    "docs/how-to/files.md": Page(),
    "docs/how-to/desk.md": Page(slow=True, before={"hushtable review payments.csv": answers}),
    "docs/how-to/watch.md: Watch a folder": Page(),
}  # fmt: skip

NETWORK = "needs the network"
NVFLARE = "make test-nvflare does it, in an environment of its own"
FLOWER = "make test-flower does it, in an environment of its own"
#: (page, first line of the block): why nobody runs it.
HOME = "needs the result of a round: test_the_home_model_of_a_site makes one, and calls these"
DESK = "it ends when its reader closes it: the package's tests serve it"
NOT_RUN = {
    ("docs/install.md", "pip wheel 'hushtable[federation,report]' -w wheels"): NETWORK,
    ("docs/how-to/releases.md", "hushtable round model result.hush --site north.toml"
        " --marginals columns.hush -o north.home.hush"): HOME,
    ("docs/install.md", "pip uninstall hushtable"): "the tests go on with it",
    ("docs/how-to/carriers.md", "from hushtable_federation.nvflare import RoundRecipe"): NVFLARE,
    ("docs/how-to/carriers.md", "python -m hushtable_flower"
        " --superlink coordinator.example:8000 \\"): FLOWER,
    ("docs/how-to/carriers.md", "flwr run app here --run-config"
        " 'round=\"/srv/round.hush\" key=\"/srv/lead.key\" output=\"/srv/result.hush\"'"
        " --stream"): FLOWER,
    ("docs/how-to/desk.md", "pip install 'hushtable[desk]'"): DESK,
}  # fmt: skip
