"""Files of rows beside the files of their scores: which are done, and which are to be made."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from hushtable.counts.base import Counts
from hushtable.data.readers import paths
from hushtable.errors import UsageError

#: Where a Parquet file of scores says what it was made of, and by which model.
STAMP = b"hushtable.scores"


@dataclass(frozen=True)
class ScoreFile:
    """A file of rows, and the file that its scores go to.

    Attributes
    ----------
    source : Path
        Rows.
    target : Path
        Where their scores belong.
    model : str
        Digest of the model that scores them.
    """

    source: Path
    target: Path
    model: str

    def stamp(self) -> bytes:
        """Return the note that the target carries: which model scored which rows."""
        seen = self.source.stat()
        stamp = {"model": self.model, "bytes": seen.st_size, "changed_ns": seen.st_mtime_ns}
        return json.dumps(stamp).encode()

    def is_done(self) -> bool:
        """Whether the target holds the scores of these rows by this model.

        It is made again if the rows' file has changed since.

        Raises
        ------
        UsageError
            If it holds anything else, which would be lost.
        """
        if not self.target.exists():
            return False
        stamp = self._found()
        model = None if stamp is None else _model_of(stamp)
        if model is None:
            raise UsageError(
                f"{self.target} is no file of scores as hushtable writes them: give another "
                "folder, or remove it"
            )
        if model != self.model:
            raise UsageError(
                f"{self.target} holds scores by another model or threshold, or other columns: "
                "give another folder, or remove it"
            )
        return stamp == self.stamp()

    def _found(self) -> bytes | None:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            stamp: bytes | None = (parquet.read_schema(self.target).metadata or {}).get(STAMP)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
            return None
        except OSError as error:
            if error.errno is not None:
                raise
            return None  # what Arrow says of a damaged file
        return stamp


def _model_of(stamp: bytes) -> str | None:
    """Return the digest of the model that a stamp names; None if hushtable made no such stamp."""
    try:
        content = json.loads(stamp)
    except (ValueError, RecursionError):
        return None
    model = content.get("model") if isinstance(content, dict) else None
    return model if isinstance(model, str) else None


def score_files_of(
    model: Counts,
    data: str,
    folder: str | os.PathLike[str],
    offset: float | None = None,
    details: str = "",
) -> list[ScoreFile]:
    """Pair every file of rows with its file of scores.

    Parameters
    ----------
    model : Sketch, Release or LocalModel
        What they will be scored by.
    data : str
        A file, a folder of files, or a glob pattern.
    folder : path
        Where the scores go, in folders as the rows are. ``rows.parquet`` becomes
        ``rows.scores.parquet``.
    offset : float, optional
        Threshold, if outliers are to be marked.
    details : str, default=""
        Which other columns are written: files without them are made again.

    Raises
    ------
    UsageError
        If two files would have the same name, or the folder is one that rows are read from.
    """
    sources = paths(data)
    within = Path(data).is_dir()
    top = Path(data) if within else Path(os.path.commonpath([s.parent for s in sources]))
    if within and Path(folder).resolve().is_relative_to(top.resolve()):
        raise UsageError(f"{folder} lies within {data}, where rows are read from: give another")
    digest = _digest(model, offset, details)
    pairs = []
    for source in sources:
        target = Path(folder) / source.parent.relative_to(top)
        target /= f"{source.name.split('.')[0]}.scores.parquet"
        pairs.append(ScoreFile(source, target, digest))
    if len({pair.target for pair in pairs}) < len(pairs):
        raise UsageError(
            f"{data}: several files have the same name but for its ending: score them apart"
        )
    return pairs


def _digest(model: Counts, offset: float | None, details: str) -> str:
    about = f"{model.plan.plan_id} {model.noise_sd} {offset} {details}".rstrip()
    digest = hashlib.sha256(about.encode())
    digest.update(model.counts.tobytes())
    return digest.hexdigest()
