"""Files of statistics programs: SPSS, Stata, SAS, R and Weka."""

from pathlib import Path

import numpy as np
import pandas as pd
from world_programs import gaps, numeric
from world_tables import Written, base, chance, export


def coded(seed: int) -> tuple[pd.DataFrame, dict]:
    """Return a table with sex and smoker in words, and the codes of these."""
    table = base(seed)
    table["sex"] = np.where(chance(seed), "male", "female")
    table["smoker"] = np.random.default_rng(seed).choice(["never", "former", "daily"], len(table))
    return table, {"sex": {1: "male", 2: "female"},
                   "smoker": {1: "never", 2: "former", 3: "daily"}}  # fmt: skip


def in_codes(table: pd.DataFrame, labels: dict) -> pd.DataFrame:
    """Replace words with their codes."""
    return table.assign(**{
        name: table[name].map({word: code for code, word in words.items()})
        for name, words in labels.items()
    })  # fmt: skip


@export("SPSS: value labels for two categories, dates, and user-missing 998 and 999", "sav",
        needs=("pyreadstat",))  # fmt: skip
def spss_labels(path: Path) -> Written:
    import pyreadstat

    table, labels = coded(101)
    gone = chance(102, 0.1)
    written = in_codes(table, labels)
    written["count"] = written["count"].where(~gone, np.where(chance(103), 998, 999))
    table["count"] = table["count"].where(~gone)
    pyreadstat.write_sav(written, str(path), variable_value_labels=labels,
                         missing_ranges={"count": [998, 999]})  # fmt: skip
    return Written(table, lambda: pyreadstat.read_sav(str(path), apply_value_formats=True)[0])


@export("SPSS, compressed as .zsav: labels for the codes of missing values only", "zsav",
        needs=("pyreadstat",))  # fmt: skip
def spss_zsav(path: Path) -> Written:
    import pyreadstat

    table = base(104)
    gone = chance(104, 0.1)
    written = table.assign(level=table["level"].where(~gone, -999.0))
    table["level"] = table["level"].where(~gone)
    pyreadstat.write_sav(written, str(path), compress=True, missing_ranges={"level": [-999]},
                         variable_value_labels={"level": {-999: "refused"}})  # fmt: skip
    return Written(table, lambda: pyreadstat.read_sav(str(path))[0])


@export("Stata: value labels, and the extended missing values .a and .b", "dta",
        needs=("pyreadstat",))  # fmt: skip
def stata_labels(path: Path) -> Written:
    import pyreadstat

    table, labels = coded(105)
    gone = chance(105, 0.1)
    written = in_codes(table, labels)
    letters = np.where(chance(106), "a", "b")
    written["level"] = written["level"].astype(object).where(~gone, letters)
    table["level"] = table["level"].where(~gone)
    pyreadstat.write_dta(written, str(path), variable_value_labels=labels,
                         missing_user_values={"level": ["a", "b"]})  # fmt: skip
    return Written(table, lambda: pyreadstat.read_dta(str(path), apply_value_formats=True)[0])


@export("SAS for an authority: a transport file of version 5, names in capitals", "xpt",
        needs=("pyreadstat",))  # fmt: skip
def sas_xpt5(path: Path) -> Written:
    import pyreadstat

    table = base(107)
    table["level"] = table["level"].where(~chance(107, 0.1))
    written = table.rename(columns=str.upper)
    pyreadstat.write_xport(written, str(path), file_format_version=5, table_name="LB")
    return Written(table, lambda: pyreadstat.read_xport(str(path))[0].rename(columns=str.lower))


def for_r(table: pd.DataFrame) -> pd.DataFrame:
    """Return a frame as rdata writes it: texts as objects."""
    return table.assign(
        **{name: table[name].astype(str).astype(object) for name in ("day", "site")}
    )


@export("R: save() of one data frame, with NA", "rda", needs=("rdata",))
def r_save(path: Path) -> Written:
    import rdata

    table = numeric(gaps(base(108), 108, "level"), "level")
    rdata.write_rda(path, {"export": for_r(table)})
    return Written(table, lambda: rdata.read_rda(path)["export"].reset_index(drop=True))


@export("R: saveRDS() of a data frame with a factor", "rds", needs=("rdata",))
def r_factor(path: Path) -> Written:
    import rdata

    table = base(109, "Wien Graz Linz Steyr")
    rdata.write_rds(path, for_r(table).assign(site=pd.Categorical(table["site"].astype(object))))
    return Written(table, lambda: rdata.read_rds(path).reset_index(drop=True))
