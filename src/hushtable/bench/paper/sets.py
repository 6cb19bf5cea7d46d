"""The paper's eleven data sets: where they come from, and what the paper says of them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from hushtable.bench.data import LabelledSet, load
from hushtable.errors import DataError, HushTableError, MissingExtraError

__all__ = ["SETS", "SYSTEMS_OF_THE_PAPER", "PaperSet", "kdd99_from_uci", "load_set", "load_sets"]

#: The columns of the paper's Table 2, in its order.
SYSTEMS_OF_THE_PAPER = (
    "LSH iTables", "RS-H", "iForest", "LSHiForest", "EnsKNNW", "EnsLOF", "LODA", "ACE",
)  # fmt: skip

# One commit of the collection: what it holds does not change.
_ADBENCH = (
    "https://raw.githubusercontent.com/Minqi824/ADBench/"
    "f7fed68dea6901fe9a81ed51b251b1d2456790cd/adbench/datasets/Classical/"
)
_UCI = "https://kdd.ics.uci.edu/databases/kddcup99/corrected.gz"


@dataclass(frozen=True)
class PaperSet:
    """One set: the paper's Tables 1 and 2, and the public file.

    Attributes
    ----------
    name : str
        The paper's name.
    file : str
        Name of the .npz file, without its suffix.
    rows, columns, outliers : int
        The paper's n, d and o (Table 1).
    auc : tuple of float
        The paper's ROC-AUC in percent (Table 2), as `SYSTEMS_OF_THE_PAPER` orders them.
    sha256 : str
        Of the public .npz file; empty where the set is rebuilt.
    remark : str
        Why the public file is not what the paper's Table 1 says, if it is not.
    comparable : bool
        Whether the paper's figures can be held against this file's.
    """

    name: str
    file: str
    rows: int
    columns: int
    outliers: int
    auc: tuple[float, ...]
    sha256: str = ""
    remark: str = ""
    comparable: bool = True

    @property
    def published(self) -> Mapping[str, float]:
        """The paper's ROC-AUC of each system, in percent."""
        return dict(zip(SYSTEMS_OF_THE_PAPER, self.auc, strict=True))


SETS = (
    PaperSet(
        "BreastW", "4_breastw", 683, 9, 239,
        (97.3, 95.9, 96.1, 94.9, 96.6, 97.7, 96.6, 42.6),
        "4f37ce07dbc25ddad8178fdc6d664ab46d2d0000ee28c2787c3c7ff3c03ef9f6",
        "The paper lists the file's 683 rows, but its ROC-AUC are those of the distinct ones: "
        "with duplicates, every system is 1 to 3 points better, and ACE 38.",
    ),
    PaperSet(
        "Pima", "29_Pima", 768, 8, 268,
        (69.1, 69.0, 67.5, 62.5, 64.2, 65.1, 63.2, 50.1),
        "215454bb263a2f040945c9ea7bd7f06f1e89a61a3143bdb6f196e3887e801a7d",
    ),
    PaperSet(
        "Cardio", "6_cardio", 1822, 21, 175,
        (93.4, 90.1, 92.3, 89.5, 82.1, 87.5, 93.0, 32.4),
        "bc5009bde6930b4d298b594f31b34485a9a17210cff0e8fb00a8c3068b885a2d",
    ),
    PaperSet(
        "Mnist", "24_mnist", 7603, 100, 700,
        (82.4, 72.3, 80.1, 59.8, 84.0, 87.2, 81.6, 93.7),
        "be7706272325fdd3592c1be555ae1a82f916a2f8545f4f8cbaa548ab102cc44c",
    ),
    PaperSet(
        "Musk", "25_musk", 3062, 166, 97,
        (100.0, 100.0, 100.0, 51.9, 84.4, 99.2, 95.9, 93.2),
        "2ed3f4392197b76a1e59116ff880c7720a4b026cf4842073a53b56fdea265017",
    ),
    PaperSet(
        "Pendigits", "28_pendigits", 6870, 16, 156,
        (95.1, 90.6, 95.4, 95.0, 82.0, 87.8, 95.0, 95.4),
        "c4936b89dcdad59d303020e492f763a0f54170080d787c77497609acbb9c2d79",
    ),
    PaperSet(
        "Satimage-2", "31_satimage-2", 5801, 36, 69,
        (99.2, 99.7, 99.3, 99.1, 99.6, 99.9, 99.3, 99.8),
        "1b056e357f801b8b20c3f380a30224a3c4088d7ed764ec5a24828dc9b1918d6f",
    ),
    PaperSet(
        "Thyroid", "38_thyroid", 3656, 6, 93,
        (94.8, 94.5, 97.7, 90.2, 94.8, 94.5, 84.0, 91.9),
        "8de161b3f235b7647bb0b39a836d983ff61d67bf234edac461da2d71e889cb87",
    ),
    PaperSet(
        "Shuttle", "32_shuttle", 49_097, 9, 3511,
        (99.0, 99.2, 99.7, 99.0, 84.1, 87.0, 99.3, 98.9),
        "26900b0f6be45d9ddb7a402c9b2f956ceda42d23a8ca4cf4406b8bc1352823d1",
    ),
    PaperSet(
        "Cover", "10_cover", 286_048, 54, 2747,
        (98.9, 98.3, 97.5, 49.1, 85.0, 79.4, 59.0, 53.8),
        "945a097c3542ae81a551bf1c06dcad78a755d94f84fcaf1d60687e42d1a656df",
        "The public file has the 10 numeric columns, the paper all 54: 44 are binary.",
        comparable=False,
    ),
    PaperSet(
        "KDD99", "kdd99", 48_113, 40, 200,
        (98.8, 99.0, 98.7, 55.8, 60.7, 59.2, 52.8, 86.3),
        remark="The paper does not say which rows it took. Rebuilt from the labelled test file: "
        "normal, user-to-root and multihop rows, without duplicates; categories are "
        "log(n / frequency); two constant columns are left out.",
        comparable=False,
    ),
)  # fmt: skip


def load_set(which: PaperSet, folder: Path | None) -> tuple[LabelledSet, int]:
    """Load a set as the paper takes it: without duplicate rows.

    Parameters
    ----------
    which : PaperSet
        The set.
    folder : path, optional
        Folder with its .npz file; None fetches the public file, once, and checks it.

    Returns
    -------
    LabelledSet, int
        The set under the paper's name, and how many rows it had with duplicates.

    Raises
    ------
    DataError
        If the file is missing, broken, or cannot be fetched.
    MissingExtraError
        If pooch is needed and not installed.
    """
    if folder is not None:
        data = load(folder / f"{which.file}.npz")
    elif which.sha256:
        data = load(_fetch(f"{_ADBENCH}{which.file}.npz", which.sha256))
    else:
        data = kdd99_from_uci(_fetch(_UCI, None))
        found = (*data.X.shape, int(data.y.sum()))
        if found != (48_146, 39, 233):
            raise DataError(
                f"{_UCI}: the rebuilt set has {found} rows, columns and outliers; needs (48146, "
                "39, 233): the public file has changed, name a folder with kdd99.npz"
            )
    distinct = data.distinct()
    return LabelledSet(which.name, distinct.X, distinct.y), len(data.X)


def load_sets(
    names: Collection[str], folder: Path | None
) -> tuple[list[tuple[PaperSet, LabelledSet, int]], dict[str, str]]:
    """Load several sets; one that cannot be loaded is left out, with the reason by its name."""
    loaded, left_out = [], {}
    for which in SETS:
        if which.name in names:
            try:
                loaded.append((which, *load_set(which, folder)))
            except HushTableError as error:
                left_out[which.name] = str(error)
    return loaded, left_out


def _fetch(url: str, sha256: str | None) -> Path:
    """Download a file to the user's cache, unless it is there."""
    try:
        import pooch
    except ImportError:
        raise MissingExtraError("fetching public data sets", "pooch", "bench") from None
    pooch.get_logger().setLevel("WARNING")
    try:
        return Path(pooch.retrieve(url, sha256, path=pooch.os_cache("hushtable")))
    except (OSError, ValueError) as error:  # no network, or another file than expected
        reason = str(error).splitlines()[0]
        raise DataError(
            f"{url} cannot be fetched ({reason}): name a folder that has the file with --data"
        ) from None


#: What KDD Cup 1999 calls user-to-root attacks in its test file.
_USER_TO_ROOT = (
    "buffer_overflow.", "httptunnel.", "loadmodule.", "perl.", "ps.", "rootkit.", "sqlattack.",
    "xterm.",
)  # fmt: skip


def kdd99_from_uci(path: Path) -> LabelledSet:
    """Rebuild the set from KDD Cup 1999's labelled test file (CSV, gzipped or not).

    Outliers are user-to-root attacks and multihop, inliers normal rows; no other row is taken.
    The value of a category is log(n / frequency), n being the distinct rows.
    """
    options = pyarrow.csv.ReadOptions(autogenerate_column_names=True)
    try:
        table = pyarrow.csv.read_csv(path, read_options=options)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: not KDD Cup 1999's rows: {error}") from None
    if table.num_columns != 42:
        raise DataError(f"{path}: {table.num_columns} columns; KDD Cup 1999's rows have 42")
    label = table.column(41)
    outlying = pc.is_in(label, pa.array([*_USER_TO_ROOT, "multihop."]))
    table = table.filter(pc.or_(outlying, pc.equal(label, "normal.")))
    # Distinct rows, whatever the name of the attack.
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
