"""The paper's eleven data sets: their sources, and the paper's figures for them."""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from hushtable.errors import DataError, HushTableError
from hushtable_bench.data import LabelledSet, fetch, load

#: The paper's figures, and remarks on them.
PUBLISHED = tomllib.loads(Path(__file__).with_name("published.toml").read_text("utf-8"))
#: The columns of the paper's Table 2, in its order.
SYSTEMS_OF_THE_PAPER: tuple[str, ...] = tuple(PUBLISHED["systems"])

# One commit of the collection, whose content does not change.
_ADBENCH = (
    "https://raw.githubusercontent.com/Minqi824/ADBench/"
    "f7fed68dea6901fe9a81ed51b251b1d2456790cd/adbench/datasets/Classical/"
)
_UCI = "https://kdd.ics.uci.edu/databases/kddcup99/corrected.gz"


@dataclass(frozen=True)
class PaperSet:
    """One set: the paper's Tables 1 and 2, and the public file."""

    name: str  # the paper's
    file: str  # name of the .npz file, without its suffix
    #: The paper's n, d and o (Table 1).
    rows: int
    columns: int
    outliers: int
    #: The paper's ROC-AUC in percent (Table 2), as `SYSTEMS_OF_THE_PAPER` orders them.
    auc: tuple[float, ...]
    sha256: str = ""  # digest of the public .npz file; empty if the set is rebuilt
    remark: str = ""  # why the public file differs from the paper's Table 1, if it does
    comparable: bool = True  # whether the paper's figures can be compared with this file's

    @property
    def published(self) -> Mapping[str, float]:
        """The paper's ROC-AUC of each system, in percent."""
        return dict(zip(SYSTEMS_OF_THE_PAPER, self.auc, strict=True))


SETS = tuple(PaperSet(**entry | {"auc": tuple(entry["auc"])}) for entry in PUBLISHED["set"])


def load_set(which: PaperSet, folder: Path | None) -> tuple[LabelledSet, int]:
    """Load a set as in the paper: without duplicate rows, with the paper's name.

    Without a folder, the public file is fetched, once, and checked. Also returns the number of
    rows with duplicates.
    """
    if folder is not None:
        data = load(folder / f"{which.file}.npz")
    elif which.sha256:
        data = load(fetch(f"{_ADBENCH}{which.file}.npz", which.sha256))
    else:
        data = kdd99_from_uci(fetch(_UCI, None))
        shape = (*data.X.shape, int(data.y.sum()))
        if shape != (48_146, 39, 233):
            raise DataError(
                f"{_UCI}: the rebuilt set has {shape} rows, columns, and outliers; needs (48146, "
                "39, 233): the public file has changed; name a folder with kdd99.npz"
            )
    distinct = data.distinct()
    return LabelledSet(which.name, distinct.X, distinct.y), len(data.X)


def load_sets(
    names: Collection[str], folder: Path | None
) -> tuple[list[tuple[PaperSet, LabelledSet, int]], dict[str, str]]:
    """Load several sets; leave out sets that cannot be loaded, and return the reasons by name."""
    loaded, left_out = [], {}
    for which in SETS:
        if which.name in names:
            try:
                loaded.append((which, *load_set(which, folder)))
            except HushTableError as error:
                left_out[which.name] = str(error)
    return loaded, left_out


#: What KDD Cup 1999 calls user-to-root attacks in its test file.
_USER_TO_ROOT = (
    "buffer_overflow.", "httptunnel.", "loadmodule.", "perl.", "ps.", "rootkit.", "sqlattack.",
    "xterm.",
)  # fmt: skip


def kdd99_from_uci(path: Path) -> LabelledSet:
    """Rebuild the set from KDD Cup 1999's labelled test file (CSV, gzipped or not).

    Outliers are user-to-root attacks and multihop, and inliers are normal rows; other rows are left
    out. The value of a category is log(n / frequency), where n is the number of distinct rows.
    """
    options = pyarrow.csv.ReadOptions(autogenerate_column_names=True)
    try:
        table = pyarrow.csv.read_csv(path, read_options=options)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: these are not KDD Cup 1999's rows: {error}") from None
    if table.num_columns != 42:
        raise DataError(f"{path}: {table.num_columns} columns; KDD Cup 1999's rows have 42")
    label = table.column(41)
    outlying = pc.is_in(label, pa.array([*_USER_TO_ROOT, "multihop."]))
    table = table.filter(pc.or_(outlying, pc.equal(label, "normal.")))
    # Rows are distinct without the name of the attack.
    table = table.set_column(41, "normal", pc.equal(table.column(41), "normal."))
    table = table.group_by(table.column_names).aggregate([])
    n = table.num_rows
    columns = []
    for column in table.columns[:41]:
        if pa.types.is_string(column.type):
            column = column.combine_chunks().dictionary_encode()
            share = np.bincount(column.indices.to_numpy()) / n
            values = -np.log(share)[column.indices.to_numpy()]
        else:
            values = column.to_numpy().astype(np.float64)
        if np.ptp(values) > 0:
            columns.append(values)
    normal = table.column(41).to_numpy(zero_copy_only=False)
    return LabelledSet("kdd99", np.column_stack(columns), ~normal.astype(bool))
