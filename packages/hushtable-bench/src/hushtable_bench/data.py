"""Labelled sets for benchmarks: .npz files with X (n, d) and y (n,), 1 for an outlier.

NaN in X is a missing value. An array ``categorical``, bool (d,), may say which columns of X hold
codes of categories.
"""

import os
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.data.schema import Feature, Schema
from hushtable.errors import DataError, MissingExtraError

#: The environment variable that names the folder.
VARIABLE = "HUSHTABLE_DATA"
#: Outliers that a figure needs.
FEWEST = 2
#: What NumPy raises for a file that is no archive of arrays, or a broken one.
_UNREADABLE = (OSError, TypeError, ValueError, EOFError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class LabelledSet:
    """Rows with labels that the detectors do not see; NaN in X is a missing value."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.bool_]
    #: Which columns hold codes of categories (d,); None where none does.
    categorical: NDArray[np.bool_] | None = None
    #: Which rows a published split trains on (n,); None where the file names none.
    train: NDArray[np.bool_] | None = None

    def rows(self) -> Any:
        """Return the rows for our detectors: X, or a table in which codes are texts."""
        if self.categorical is None:
            return self.X
        import pyarrow as pa  # too heavy for --help

        columns = {}
        for j, x in enumerate(self.X.T):
            # With a word before it, so that no text is read as a number.
            codes = [None if np.isnan(value) else f"code {value:.17g}" for value in x]
            columns[f"x{j}"] = codes if self.categorical[j] else pa.array(x, from_pandas=True)
        return pa.table(columns)

    def schema(self) -> Schema:
        """Return the schema with the data's own ranges, as if they were public."""
        features = (
            Feature.numeric(f"x{j}", low=float(np.nanmin(x)), high=float(np.nanmax(x)))
            for j, x in enumerate(self.X.T)
        )
        return Schema(tuple(features), named=False)

    def distinct(self) -> "LabelledSet":
        """Leave duplicate rows out, as the paper does."""
        _, first = np.unique(np.column_stack([self.X, self.y]), axis=0, return_index=True)
        return self.take(np.sort(first))

    def at_most(self, rows: int, seed: int = 0) -> "LabelledSet":
        """Keep a random subset where there are more rows."""
        if len(self.X) <= rows:
            return self
        chosen = np.random.default_rng(seed).choice(len(self.X), rows, replace=False)
        return self.take(np.sort(chosen))

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> "LabelledSet":
        """Return some of the rows, by their places or a mask."""
        train = None if self.train is None else self.train[rows]
        return replace(self, X=self.X[rows], y=self.y[rows], train=train)


def data_folder(given: Path | None = None, default: Path | None = None) -> Path:
    """Return the folder given, or the one that the environment names, or a default."""
    named = os.environ.get(VARIABLE)
    folder = given or (Path(named) if named else default)
    if folder is None or not folder.is_dir():
        what = f"{folder} is not a folder" if folder else "no folder of labelled sets is named"
        raise DataError(
            f"{what}: name a folder of .npz files (with X and y in each) by --data or {VARIABLE}"
        )
    return folder


def find_sets(folder: Path) -> list[Path]:
    """Return the .npz files of a folder, by name."""
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise DataError(f"{folder} holds no .npz files: needs files with X (n, d) and y (n,)")
    return files


def fetch(url: str, sha256: str | None) -> Path:
    """Download a public file to the user's cache, unless it is there; check it by its digest."""
    try:
        import pooch
    except ImportError:
        raise MissingExtraError("fetching public data sets", "pooch", "bench") from None
    pooch.get_logger().setLevel("WARNING")
    try:
        return Path(pooch.retrieve(url, sha256, path=pooch.os_cache("hushtable")))
    except (OSError, ValueError) as error:  # no network, or an unexpected file
        reason = str(error).splitlines()[0]
        raise DataError(
            f"{url} cannot be fetched ({reason}): name a folder that has the file with --data"
        ) from None


def load(path: Path) -> LabelledSet:
    """Read X (n, d), y (n,), 1 for an outlier, and ``categorical`` (d,) if a .npz file has it."""
    X, y, categorical = read_arrays(path, ("X", "y"), optional="categorical")
    data = labelled_set(path, X, y)
    return replace(data, categorical=_categorical(path, categorical, X.shape[1]))


#: How names of sets begin, by the folder of the collection's repository.
PREFIXES = {"oddbench": "odd_", "ovrbench": "ovr_"}


def named(path: Path) -> str:
    """Return the name of a set, with the prefix of its collection."""
    prefix = PREFIXES.get(path.absolute().parent.name.lower(), "")
    return prefix + path.stem.removeprefix(prefix)


def load_split(path: Path, rows: int) -> LabelledSet:
    """Read a set whose file names training rows; ``rows`` of these, and of the others, at most.

    The file has X, y and train, bool (n,); or train, test and test_labels.
    """
    try:
        X, y, mask = read_arrays(path, ("X", "y"), optional="train")
    except DataError:
        train, test, labels, more = read_arrays(
            path, ("train", "test", "test_labels"), optional="train_labels"
        )
        if not train.ndim == test.ndim == 2 or train.shape[1] != test.shape[1]:
            raise DataError(
                f"{path}: needs train (n, d) and test (k, d) of the same columns"
            ) from None
        X, mask = np.vstack([train, test]), np.arange(len(train) + len(test)) < len(train)
        y = np.concatenate([np.zeros(len(train)) if more is None else more.ravel(), labels.ravel()])
    data = replace(labelled_set(path, X, y), name=named(path))
    if mask is None or mask.dtype != np.bool_ or mask.shape != y.shape:
        raise DataError(f"{path}: names no training rows; needs train, bool (n,)")
    if data.y[mask].any() or not mask.any():
        raise DataError(
            f"{path}: {data.y[mask].sum()} of its {mask.sum()} training rows are outliers; needs "
            "inliers"
        )
    # With seeds of their own, so that all systems and all runs have the same rows.
    fitted, judged = data.take(mask).at_most(rows, 0), data.take(~mask).at_most(rows, 1)
    if judged.y.sum() < FEWEST or judged.y.all():
        raise DataError(
            f"{path}: {judged.y.sum()} of its {len(judged.y)} test rows are outliers; needs "
            f"{FEWEST}, and an inlier"
        )
    X, y = np.vstack([fitted.X, judged.X]), np.concatenate([fitted.y, judged.y])
    return replace(data, X=X, y=y, train=np.arange(len(y)) < len(fitted.y))


def read_arrays(path: Path, needed: Sequence[str], optional: str | None = None) -> list[Any]:
    """Read arrays of numbers out of a .npz file, and one more as it is: None if it is missing."""
    names = " and ".join(filter(None, (", ".join(needed[:-1]), needed[-1])))
    try:
        # NumPy does not close a broken file that it opened.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            contents: list[Any] = [
                np.ascontiguousarray(arrays[name], np.float64) for name in needed
            ]
            return contents if optional is None else [*contents, arrays.get(optional)]
    except FileNotFoundError:
        raise DataError(f"{path} is missing") from None
    except (KeyError, *_UNREADABLE) as error:
        raise DataError(f"{path}: needs arrays {names} of numbers ({error})") from None


def labelled_set(path: Path, X: NDArray[np.float64], y: NDArray[np.float64]) -> LabelledSet:
    """Check the rows and labels that a file holds."""
    if X.ndim != 2 or y.shape != X.shape[:1] or y.all() or not y.any():
        raise DataError(f"{path}: needs X (n, d) and y (n,) with both labels in it")
    if np.isnan(y).any():
        raise DataError(f"{path}: y holds NaN; needs 0 for a normal row and 1 for an outlier")
    if np.isinf(X).any():
        at = int(np.isinf(X).any(axis=0).argmax())
        raise DataError(f"{path}: column {at} of X holds infinity; needs numbers, NaN if missing")
    if (empty := np.isnan(X).all(axis=0)).any():
        raise DataError(
            f"{path}: column {empty.argmax()} of X is missing in every row; leave it out"
        )
    return LabelledSet(path.stem, X, y != 0)


def _categorical(path: Path, mask: Any, columns: int) -> NDArray[np.bool_] | None:
    """Check which columns hold codes; None where none does."""
    if mask is None:
        return None
    if mask.dtype != np.bool_ or mask.shape != (columns,):
        raise DataError(
            f"{path}: categorical is {mask.dtype} of shape {mask.shape}; needs bool of shape "
            f"({columns},), True for each column of X that holds codes of categories"
        )
    return mask if mask.any() else None


def auc(y: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """Return the ROC-AUC of scores that are low for outliers."""
    from sklearn.metrics import roc_auc_score  # takes a second to import: not for --help

    return float(roc_auc_score(y, -scores))


def auc_and_ap(y: NDArray[np.bool_], scores: NDArray[np.float64]) -> dict[str, float]:
    """Return ROC-AUC and average precision, by the names of the columns of `Results`."""
    from sklearn.metrics import average_precision_score  # as above

    return {"auc": auc(y, scores), "ap": float(average_precision_score(y, -scores))}
