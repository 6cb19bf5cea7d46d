"""Labelled sets that benchmarks judge by: .npz files with X (n, d) and y (n,), 1 for an outlier."""

import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hushtable.data.schema import Feature, Schema
from hushtable.errors import DataError

#: The environment variable that names the folder.
VARIABLE = "HUSHTABLE_DATA"


@dataclass(frozen=True)
class LabelledSet:
    """Rows with labels that the detectors do not see."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.bool_]

    def schema(self) -> Schema:
        """Return the schema with the data's own ranges, taken as if they were public."""
        features = (
            Feature.numeric(f"x{j}", low=float(x.min()), high=float(x.max()))
            for j, x in enumerate(self.X.T)
        )
        return Schema(tuple(features), named=False)

    def distinct(self) -> "LabelledSet":
        """Leave duplicate rows out, as the paper does."""
        _, first = np.unique(np.column_stack([self.X, self.y]), axis=0, return_index=True)
        return self._take(np.sort(first))

    def at_most(self, rows: int, seed: int = 0) -> "LabelledSet":
        """Keep a random subset where there are more rows."""
        if len(self.X) <= rows:
            return self
        chosen = np.random.default_rng(seed).choice(len(self.X), rows, replace=False)
        return self._take(np.sort(chosen))

    def _take(self, rows: NDArray[np.intp]) -> "LabelledSet":
        return LabelledSet(self.name, self.X[rows], self.y[rows])


def data_folder(given: Path | None = None, default: Path | None = None) -> Path:
    """Return the folder given, or the one that the environment names, or a default."""
    named = os.environ.get(VARIABLE)
    folder = given or (Path(named) if named else default)
    if folder is None or not folder.is_dir():
        what = f"{folder} is not a folder" if folder else "no folder of labelled sets is named"
        raise DataError(
            f"{what}: name a folder of .npz files (X and y in each) with --data or in {VARIABLE}"
        )
    return folder


def find_sets(folder: Path) -> list[Path]:
    """Return the .npz files of a folder, by name."""
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise DataError(f"{folder} holds no .npz file: needs X (n, d) and y (n,) in each")
    return files


def load(path: Path) -> LabelledSet:
    """Read X (n, d) and y (n,), 1 for an outlier, from a .npz file."""
    try:
        # NumPy leaves a broken file open that it has opened itself.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            X, y = np.ascontiguousarray(arrays["X"], np.float64), arrays["y"] != 0
    except FileNotFoundError:
        raise DataError(f"{path} is missing") from None
    except (KeyError, OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path}: needs arrays X and y of numbers ({error})") from None
    if X.ndim != 2 or y.shape != X.shape[:1] or y.all() or not y.any():
        raise DataError(f"{path}: needs X (n, d) and y (n,) with both labels in it")
    return LabelledSet(path.stem, X, y)


def auc(y: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """Return the ROC-AUC of scores that are low for outliers."""
    from sklearn.metrics import roc_auc_score  # takes a second to import: not for --help

    return float(roc_auc_score(y, -scores))


def auc_and_ap(y: NDArray[np.bool_], scores: NDArray[np.float64]) -> dict[str, float]:
    """Return ROC-AUC and average precision, by the names of the columns of `Results`."""
    from sklearn.metrics import average_precision_score  # as above

    return {"auc": auc(y, scores), "ap": float(average_precision_score(y, -scores))}
