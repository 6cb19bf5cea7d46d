"""Figures that others published, and the collections that promises are made for."""

import re
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

KNOWN = tomllib.loads(Path(__file__).with_name("known.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Published:
    """Means of one detector that somebody else measured; NaN where none was published."""

    system: str
    auc: float
    ap: float
    over: str  # over which sets
    source: str


def plain(name: str) -> str:
    """Return the name of a set without number, capitals and marks: 31_satimage-2 is satimage2."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"^\d+_", "", name).lower())


def collection(sets: Collection[str]) -> str | None:
    """Return which collection the sets are, all of it and nothing else."""
    found = (key for key, entry in KNOWN["collections"].items() if set(entry["sets"]) == set(sets))
    return next(found, None)


def sets_published(sets: Sequence[str]) -> list[str]:
    """Return the sets of which figures by set were published (novelty only)."""
    names = {plain(name) for name in KNOWN["novelty"]["auc"]}
    return [name for name in sets if plain(name) in names]


def published(protocol: str, sets: Sequence[str]) -> list[Published]:
    """Return published means over the sets that are known; best first.

    Means that were published as such are there if at least half as many sets are known.
    """
    known = [plain(name) for name in sets_published(sets)]
    found = []
    if known and protocol == "novelty":
        table = KNOWN["novelty"]
        auc, ap = (
            np.array([row for name, row in table[metric].items() if plain(name) in known])
            for metric in ("auc", "ap")
        )
        for at, system in enumerate(table["systems"]):
            there = np.isfinite(auc[:, at])
            if there.any():
                means = [float(metric[there, at].mean()) for metric in (auc, ap)]
                over = f"{there.sum()} of these {len(sets)}"
                found.append(Published(system, means[0], means[1], over, table["source"]))
    others = KNOWN["means"][protocol]
    if 2 * len(known) >= others["sets"]:
        over = f"{others['sets']} of ADBench"
        for system, figure in others["auc"].items():
            found.append(Published(system, figure, np.nan, over, others["source"]))
    return sorted(found, key=lambda one: -one.auc)
