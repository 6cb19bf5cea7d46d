"""Three hospitals with OMOP tables, and a round for plausible ranges among them."""

import shutil
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pyarrow as pa

from cdm import Cdm
from cli_helpers import do, say, trust

SITES = ("north", "south", "west")
GLUCOSE, MMOL, MG = 3004501, 8753, 8840
#: A concept of the common set in a second unit, and its range.
IN_MMOL = f"""
[[concept]]
name = "glucose_mmol"
concepts = [{GLUCOSE}]
unit = "mmol/L"
units = [{MMOL}]
low = 1
high = 40
source = "limits of meters"
"""


def _column(cdm, name):
    return np.array(cdm.measurement[name])


def changed(cdm, **columns):
    """Return a CDM with other columns of its measurements."""
    table = cdm.measurement
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return replace(cdm, measurement=table)


def in_mmol(cdm, share, rng):
    """Measure glucose in mmol/L, in a share of the rows."""
    values, units = _column(cdm, "value_as_number").copy(), _column(cdm, "unit_concept_id").copy()
    moved = (_column(cdm, "measurement_concept_id") == GLUCOSE) & (rng.random(len(values)) < share)
    values[moved], units[moved] = np.round(values[moved] / 18.0, 2), MMOL
    return changed(cdm, value_as_number=values, unit_concept_id=units)


def multiplied(cdm, concept, unit, factor, share, rng):
    """Multiply a share of a concept's values in a unit, as under a wrong unit or another lab."""
    values = _column(cdm, "value_as_number").copy()
    mine = _column(cdm, "measurement_concept_id") == concept
    mine &= (_column(cdm, "unit_concept_id") == unit) & (rng.random(len(values)) < share)
    values[mine] = np.round(values[mine] * factor, 2)
    return changed(cdm, value_as_number=values)


def three_hospitals(persons):
    """Return a CDM a site: glucose in either unit, or in both; the west has another laboratory."""
    rng = np.random.default_rng(5)
    made = {name: Cdm.made(persons, seed) for seed, name in enumerate(SITES)}
    made["south"] = in_mmol(made["south"], 1.0, rng)
    made["west"] = in_mmol(made["west"], 0.5, rng)
    for concept, unit, factor in ((3016723, 8840, 1.15), (3006923, 8645, 1.4)):
        made["west"] = multiplied(made["west"], concept, unit, factor, 1.0, rng)
    return made


def set_up(here, hospitals):
    """Make keys, databases, site's files, a concept set and a schema in the folder ``here``."""
    common = resources.files("hushtable_connect.omop") / "concepts.toml"
    Path("set.toml").write_text(common.read_text() + IN_MMOL)
    for name, cdm in hospitals.items():
        cdm.into_duckdb(here / f"{name}.duckdb")
        do("round", "keygen", name, "--cap", 3, "--persons", 1)
        rows = f"duckdb:///{here / name}.duckdb"
        say(here, name, rows=rows, omop="person", cdm="cdm", concepts="set.toml")
    do("round", "keygen", "lead")
    where = (rows, "--read", "omop=person", "--read", "cdm=cdm", "--read", "concepts=set.toml")
    do("plan", "draft", *where, "--drop", "age,sex", "-o", "ranges.toml")


def open_for_ranges(expected, sites=SITES, schema="ranges.toml", output="round.hush"):
    """Return the command that opens a round for ranges."""
    cards = [f"{name}.card" for name in sites]
    keys = ("--key", "lead.key", "--epsilon", 1, "--expected-rows", expected, "-o", output)
    return ("round", "open", schema, *cards, *keys, "--ranges")


def play(here, sites=SITES):
    """Put a round into a folder, and have all visit it; return where its result is."""
    box = here / "box"
    box.mkdir(mode=0o755)
    do("round", "sync", box, "--key", "lead.key", "-o", here, "--post", "round.hush")
    return until_done(here, sites)


def until_done(here, sites=SITES):
    """Have all visit the folder ``box`` until the round's result is there; return that."""
    box, cards = here / "box", trust(here, "lead", *sites)
    for _ in range(9):
        for name in sites:
            do("round", "sync", box, "--site", f"{name}.toml", "--yes", *cards)
        do("round", "sync", box, "--key", "lead.key", "-o", here)
        if posted := [*box.glob("*.result.lead.*")]:
            return Path(shutil.copy(posted[0], here / "result.hush"))
    raise AssertionError("the round has no result")
