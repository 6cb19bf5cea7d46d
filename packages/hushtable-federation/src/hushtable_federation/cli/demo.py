"""``hushtable demo``: three hospitals that find outliers together and pool no row."""

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from hushtable.cli.result import Block, CommandResult, TextTable
from hushtable.counts import rounds
from hushtable.counts.sketch import Sketch
from hushtable.data.schema import Feature, Schema
from hushtable.errors import HushTableError
from hushtable.plans.plan import Plan
from hushtable.scores.scorer import Scorer

# Public ranges: the data set's published description states the smallest and the largest value of
# each feature; here they are rounded outward to two digits. They do not come from the rows. A
# measurement has three ranges: for its mean over the cells, its standard error, and the mean of the
# worst cells.
_RANGES = {
    "radius": ((6.9, 29), (0.11, 2.9), (7.9, 37)),
    "texture": ((9.7, 40), (0.35, 4.9), (12, 50)),
    "perimeter": ((43, 190), (0.75, 22), (50, 260)),
    "area": ((140, 2600), (6.8, 550), (180, 4300)),
    "smoothness": ((0.052, 0.17), (0.0015, 0.032), (0.07, 0.23)),
    "compactness": ((0.018, 0.35), (0.0015, 0.14), (0.026, 1.1)),
    "concavity": ((0, 0.43), (0, 0.4), (0, 1.3)),
    "concave points": ((0, 0.21), (0, 0.054), (0, 0.3)),
    "symmetry": ((0.1, 0.31), (0.0075, 0.08), (0.15, 0.67)),
    "fractal dimension": ((0.045, 0.098), (0.0005, 0.035), (0.054, 0.21)),
}
_NAMES = ("mean {}", "{} error", "worst {}")

#: Hospitals with their benign and malignant rows: the last has most of the malignant ones.
_SPLIT = [("General hospital", 200, 6), ("County hospital", 120, 6), ("Cancer centre", 37, 24)]
_SEED = 0

_NEXT = """
What to type next, in Python:

  from hushtable import HushTable
  detector = HushTable(random_state=0).fit("mine.csv")
  scores = detector.score_samples("mine.csv")  # low is abnormal

at one site:

  hushtable score mine.csv --top 20 -o top.xlsx
  hushtable fit mine.csv -o model.hush                   # to keep a model
  hushtable report model.hush mine.csv -o report.html    # for people

at several:

  hushtable plan draft mine.csv -o schema.toml    # then fill in the public ranges
  hushtable plan draw schema.toml -o plan.hush
  hushtable sketch mine.csv --plan plan.hush -o site.sketch.hush    # at each site
  hushtable release site.sketch.hush --epsilon 1 -o site.hush       # its noise makes it private
  hushtable merge north.hush south.hush -o all.hush
  hushtable score mine.csv --model all.hush -o scores.csv    # at each site"""


@dataclass(frozen=True)
class _Hospital:
    name: str
    X: Any
    malignant: Any


def demo() -> CommandResult:
    """Show three hospitals that find outliers together and pool no row.

    The data come with scikit-learn. Nothing is downloaded or written.

    Example:
      hushtable demo
    """
    from hushtable_federation.home import HomeModel  # not imported for --help

    hospitals, pooled = _hospitals()
    schema = _schema()
    parts = _sketches(schema, hospitals)
    merged_sketch = reduce(add, parts)
    (pooled_sketch,) = _sketches(schema, [pooled])
    if merged_sketch != pooled_sketch:
        raise HushTableError("merged and pooled counts differ, which is a bug: report it")

    merged, everything = Scorer(merged_sketch), Scorer(pooled_sketch)
    lines = []
    for hospital, part in [*zip(hospitals, parts, strict=True), (pooled, None)]:
        alone = home = None
        if part is not None:
            alone = Scorer(*_sketches(schema, [hospital])).score(hospital.X)
            others = HomeModel.fit(hospital.X, merged_sketch - part, random_state=_SEED)
            home = others.scores(hospital.X).score
        lines.append(
            {
                "hospital": hospital.name,
                "rows": len(hospital.X),
                "outliers": int(hospital.malignant.sum()),
                "auc_alone": None if alone is None else _auc(hospital, alone),
                "auc_merged": _auc(hospital, merged.score(hospital.X)),
                "auc_pooled": _auc(hospital, everything.score(hospital.X)),
                "auc_home": None if home is None else _auc(hospital, home),
            }
        )
    facts = {
        "command": "demo",
        "hospitals": lines[:-1],
        "all": lines[-1],
        "merged_equals_pooled": True,
        "cells": merged_sketch.plan.family.n_cells,
        "plan_id": merged_sketch.plan.plan_id,
    }
    return CommandResult(facts, _blocks(facts))


def _hospitals() -> tuple[list[_Hospital], _Hospital]:
    # Not imported for --help.
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    malignant = data.target == 0
    rng = np.random.default_rng(_SEED)
    benign_rows = iter(rng.permutation(np.flatnonzero(~malignant)))
    malignant_rows = iter(rng.permutation(np.flatnonzero(malignant)))
    dealt = [
        [*(next(benign_rows) for _ in range(n)), *(next(malignant_rows) for _ in range(m))]
        for _, n, m in _SPLIT
    ]
    hospitals = [
        _Hospital(name, data.data[rows], malignant[rows])
        for (name, *_), rows in zip(_SPLIT, dealt, strict=True)
    ]
    rows = np.sort(np.concatenate(dealt))
    return hospitals, _Hospital("All three", data.data[rows], malignant[rows])


def _schema() -> Schema:
    features = (
        Feature.numeric(name.format(measured), low=ranges[k][0], high=ranges[k][1])
        for k, name in enumerate(_NAMES)
        for measured, ranges in _RANGES.items()
    )
    return Schema(tuple(features))


def _sketches(schema: Schema, hospitals: list[_Hospital]) -> list[Sketch]:
    # In rounds: marginals, which refine the plan; all rows; a gate; the dense regions.
    def counted(plan: Plan) -> list[Sketch]:
        return [Sketch.from_data(plan, hospital.X) for hospital in hospitals]

    marginals = reduce(add, counted(Plan.marginals(schema)))
    plan = Plan.draw(schema, marginals=marginals, random_state=_SEED)
    first = reduce(add, counted(plan))
    gate = reduce(add, counted(rounds.gate(first)))
    return counted(rounds.second_pass(first, gate))


def _auc(hospital: _Hospital, scores: Any) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(hospital.malignant, -scores))


def _blocks(facts: dict[str, Any]) -> list[Block]:
    lines = [*facts["hospitals"], facts["all"]]
    total = facts["all"]
    benign, outliers = total["rows"] - total["outliers"], total["outliers"]
    rows = []
    for line in lines:
        aucs = [line[f"auc_{which}"] for which in ("alone", "merged", "pooled", "home")]
        numbers = ["-" if auc is None else f"{auc:.3f}" for auc in aucs]
        rows.append([line["hospital"], str(line["rows"]), str(line["outliers"]), *numbers])
    headers = [
        "", "rows", "outliers", "its own counts", "merged counts", "all in one place",
        "own rows and the others' counts",
    ]  # fmt: skip
    return [
        "Three hospitals look for outliers together, and no row leaves a hospital.\n\n"
        "Data: breast-cancer biopsies (Wisconsin, in scikit-learn), 30 measurements each.\n"
        f"Malignant rows are the outliers. Only {outliers} of the 212 are kept, so that they are\n"
        f"as rare as outliers usually are: about one for every ten of the {benign} benign rows.\n",
        "ROC-AUC of each hospital's rows (1 is perfect, 0.5 is chance), scored by\n",
        TextTable(headers, rows),
        "\nMerged counts equal the counts of all data in one place, to the bit, in each of the\n"
        f"{facts['cells']:,} cells: no accuracy is lost by not pooling.\n"
        f"On its own, the {_SPLIT[-1][0]} takes its many outliers for normal. The others' counts\n"
        "show it what is common. The other hospitals lose a little with merged counts. Each\n"
        "hospital can combine its own rows with the others' counts, which is close to the better\n"
        "of both (docs/how-to/releases).\n"
        "(The hospitals share exact counts: these contain no row, but are not private either.)",
        _NEXT,
    ]
