"""Measure the gain of a hospital that joins: real thyroid patients, four hospitals, three years.

The rows are those of the Garavan Institute in Sydney (``38_thyroid`` of ADBench): 3,772 patients,
93 of them ill, with six measurements scaled to 0 to 1. Hospitals and years are simulated: each seed
assigns the patients again. The case writes ``docs/figures/story.svg`` and prints its tables. Each
masked round is a real one, with keys, books, noise, masks, and the sum.
"""

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hushtable import Feature, HushTable, Plan, Release, Schema, Sketch
from hushtable.privacy import Design
from hushtable_bench import figures
from hushtable_bench.data import LabelledSet, auc_and_ap, load
from hushtable_bench.results import ResultTable
from hushtable_bench.runner import ROOT, CaseRun, data_folder
from hushtable_federation import Book, Card, Keys, OnlineSite, Round, SecureSum
from hushtable_federation.online.carriers import Memory

SET = "38_thyroid.npz"
MEASURED = ("age", "TSH", "T3", "TT4", "T4U", "FTI")
SCHEMA = Schema([Feature.numeric(name, low=0, high=1) for name in MEASURED])
#: Shares of the healthy and of the ill patients; all others are at the general hospital.
SHARES = {"county": (0.25, 0.20), "clinic": (0.02, 0.50), "new": (0.02, 0.05)}
SITES = ("general", *SHARES)
YEARS, OPENS = 3, {"new": 2}  # the new hospital opens in the second year
ALONE, MERGED = "its own counts", "merged counts"
PRIVATE = {f"merged, total epsilon {e:g}": e for e in (1.0, 0.3, 0.1)}
DELTA = 1e-6
STYLES = {
    ALONE: (figures.FLAG, "o--"),
    MERGED: (figures.ROWS, "o-"),
    "merged, total epsilon 1": (figures.THIRD, "s-"),
    "merged, total epsilon 0.1": ("#666666", "^:"),
}
TITLES = {
    "general": "General hospital",
    "county": "County hospital",
    "clinic": "Thyroid clinic",
    "new": "New hospital",
}


def deal(data: LabelledSet, rng: np.random.Generator) -> pd.DataFrame:
    """Assign the patients to hospitals and years; return one row each."""
    patients = pd.DataFrame(data.X, columns=list(MEASURED))
    patients["ill"], patients["site"] = data.y, SITES[0]
    patients["year"] = rng.integers(1, YEARS + 1, len(patients))
    for ill in (False, True):
        left = rng.permutation(np.flatnonzero(data.y == ill))
        sizes = [round(shares[ill] * len(left)) for shares in SHARES.values()]
        for site, rows in zip(SHARES, np.split(left, np.cumsum(sizes)), strict=False):
            patients.loc[rows, "site"] = site
    for site, year in OPENS.items():
        early = (patients["site"] == site) & (patients["year"] < year)
        patients.loc[early, "year"] = rng.integers(year, YEARS + 1, int(early.sum()))
    return patients


def merged(patients: pd.DataFrame, seed: int) -> HushTable:
    """Add up the exact counts of all sites, marginals first."""

    def sketch(plan: Plan) -> Sketch:
        parts = (Sketch.from_data(plan, rows) for _, rows in by_site(patients))
        return sum(parts, start=Sketch.zero(plan))

    marginals = sketch(Plan.marginals(SCHEMA))
    return HushTable.from_counts(sketch(Plan.draw(SCHEMA, marginals=marginals, random_state=seed)))


class Hospitals:
    """The hospitals of a masked round, each with keys and a book."""

    def __init__(self, folder: Path, sites: list[str], cap: float) -> None:
        self.lead, self.keys = Keys.generate("lead"), {site: Keys.generate(site) for site in sites}
        self.cards: list[Card] = [keys.card for keys in self.keys.values()]
        self.books = {
            site: Book.create(folder / f"{site}.book", keys.card, epsilon=cap)
            for site, keys in self.keys.items()
        }
        for book in self.books.values():
            book.trust([self.lead.card], "coordinator")
            book.trust(self.cards)

    def count(self, plan: Plan, patients: pd.DataFrame, epsilon: float) -> Release:
        """Hold a masked round, and return its result."""
        now = datetime.now(UTC).replace(microsecond=0)
        terms = {"epsilon": epsilon, "delta": DELTA, "deadline": now + timedelta(days=1)}
        asked = Round.open(plan, self.cards, self.lead, at=now, **terms)
        sites = {}
        for site, rows in by_site(patients):
            count = partial(Sketch.from_data, X=rows)
            sites[site] = OnlineSite(self.keys[site], self.books[site], count, attended=True).answer
        result = SecureSum(asked, self.lead, Memory(sites)).run()
        assert isinstance(result, Release)
        return result

    def model(self, patients: pd.DataFrame, epsilon: float, seed: int) -> HushTable:
        """Hold a campaign within one total: marginals, if they pay, and tables."""
        terms = {"epsilon": epsilon, "delta": DELTA, "expected_rows": len(patients)}
        first = None
        if Design(**terms).pays_marginals(len(SCHEMA)):
            first = self.count(Plan.marginals(SCHEMA, **terms), patients, epsilon)
        plan = Plan.draw(SCHEMA, marginals=first, random_state=seed, **terms)
        result = self.count(plan, patients, epsilon)
        assert result.ledger.epsilon <= epsilon, "the total holds for both rounds"
        return HushTable.from_counts(result)


def by_site(patients: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each hospital with its counts."""
    for site, rows in patients.groupby("site", sort=False):
        yield str(site), rows[list(MEASURED)]


def private(patients: pd.DataFrame, epsilon: float, seed: int) -> HushTable:
    """Return the model of a masked campaign of the hospitals that have patients."""
    with tempfile.TemporaryDirectory() as folder:
        sites = [site for site, _ in by_site(patients)]
        return Hospitals(Path(folder), sites, epsilon).model(patients, epsilon, seed)


def judge(model: HushTable, rows: pd.DataFrame, **about: object) -> dict[str, object]:
    """Score rows, and compare the ranking with the ill patients."""
    found = auc_and_ap(rows["ill"].to_numpy(), model.score_samples(rows[list(MEASURED)]))
    return about | {"rows": len(rows), "ill": int(rows["ill"].sum())} | found


def one_seed(data: LabelledSet, seed: int) -> Iterator[dict[str, object]]:
    """Yield the accuracy of each hospital on its patients of each year, by each model."""
    patients = deal(data, np.random.default_rng(seed))
    for year in range(1, YEARS + 1):
        so_far, this_year = patients[patients["year"] <= year], patients[patients["year"] == year]
        models = {MERGED: merged(so_far, seed)}
        models |= {name: private(this_year, epsilon, seed) for name, epsilon in PRIVATE.items()}
        for site, rows in this_year.groupby("site"):
            if not 0 < rows["ill"].sum() < len(rows):
                continue
            mine = so_far.loc[so_far["site"] == site, list(MEASURED)]
            alone = HushTable(random_state=seed).fit(mine)
            for name, model in ({ALONE: alone} | models).items():
                yield judge(model, rows, seed=seed, year=year, site=site, counts=name)


def draw(found: pd.DataFrame) -> Figure:
    """Draw ROC-AUC over the years, one panel per hospital."""
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots(1, len(SITES), sharey=True)
    means = found.pivot_table("auc", ["site", "year"], "counts")
    for ax, site in zip(axes, SITES, strict=True):
        for name, (colour, style) in STYLES.items():
            line = means.loc[site][name]
            ax.plot(line.index, line, style, color=colour, label=name, markersize=5)
        ax.set(title=TITLES[site], xlabel="year", xticks=range(1, YEARS + 1), xlim=(0.7, 3.3))
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="#666666", alpha=0.2)
    axes[0].set_ylabel("ROC-AUC of its own patients")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
    )
    return figure


def story(
    run: CaseRun, *, data: Path | None = None, seeds: int = 20, figure: Path | None = None
) -> None:
    """Measure, print the tables, and draw the figure: four minutes."""
    patients = load(data_folder(data) / SET)
    found = pd.DataFrame([row for seed in range(seeds) for row in one_seed(patients, seed)])
    sizes = found.groupby(["site", "year"])[["rows", "ill"]].mean()
    for key, name in (("auc", "ROC-AUC"), ("ap", "Average precision")):
        means = found.pivot_table(key, ["site", "year"], "counts")[[ALONE, MERGED, *PRIVATE]]
        lines = [
            (*at, *(f"{n:.0f}" for n in sizes.loc[at]), *(f"{v:.3f}" for v in of_models))
            for at, of_models in zip(
                means.loc[list(SITES)].index, means.loc[list(SITES)].to_numpy(), strict=True
            )
        ]
        run.say(f"{name}, mean of {seeds} seeds")
        run.say(ResultTable(("hospital", "year", "patients", "ill", *means.columns), lines))
    path = figure or ROOT / "docs" / "figures" / "story.svg"
    with matplotlib.rc_context({"svg.hashsalt": "story", "font.size": 10}):
        draw(found).savefig(path, metadata={"Date": None})
    run.say(f"Wrote {path.name}.")
