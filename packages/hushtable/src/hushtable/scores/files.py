"""Files of rows, and the files of their scores: which are done, and which to make."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from hushtable.counts.base import Counts
from hushtable.data.readers import paths
from hushtable.errors import UsageError

#: Metadata key of a Parquet file of scores that states its rows and its model.
STAMP = b"hushtable.scores"


@dataclass(frozen=True)
class ScoreFile:
    """A file of rows, the file for its scores, and the digest of the model."""

    source: Path
    target: Path
    model: str

    def stamp(self) -> bytes:
        """Return the note that the target contains: which model scored which rows."""
        seen = self.source.stat()
        stamp = {"model": self.model, "bytes": seen.st_size, "changed_ns": seen.st_mtime_ns}
        return json.dumps(stamp).encode()

    def is_done(self) -> bool:
        """Return whether the target holds the scores of these rows, unchanged, by this model.

        It is made again if the rows' file has changed since. Raises `UsageError` if it holds
        anything else, which would be lost.
        """
        if not self.target.exists():
            return False
        stamp = self._found()
        model = None if stamp is None else _model_of(stamp)
        if model is None:
            raise UsageError(
                f"{self.target} is not a file of scores that hushtable wrote: give another "
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
            return None  # Arrow's error for a damaged file
        return stamp


def _model_of(stamp: bytes) -> str | None:
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

    ``data`` is a file, a folder of files, or a glob pattern. The scores go into ``folder``, in the
    same subfolders as the rows; ``rows.parquet`` becomes ``rows.scores.parquet``. ``offset`` is the
    threshold, if outliers are to be marked; ``details`` names the other columns to write: files
    without them are made again. Raises `UsageError` if two files would have the same name, or if
    the folder is one from which rows are read.
    """
    sources = paths(data)
    within = Path(data).is_dir()
    top = Path(data) if within else Path(os.path.commonpath([s.parent for s in sources]))
    if within and Path(folder).resolve().is_relative_to(top.resolve()):
        raise UsageError(f"{folder} is inside {data}, from which rows are read: give another")
    about = f"{model.plan.plan_id} {model.noise_sd} {offset} {details}".rstrip()
    digest = hashlib.sha256(about.encode())
    digest.update(model.counts.tobytes())
    pairs = []
    for source in sources:
        target = Path(folder) / source.parent.relative_to(top)
        target /= f"{source.name.split('.')[0]}.scores.parquet"
        pairs.append(ScoreFile(source, target, digest.hexdigest()))
    if len({pair.target for pair in pairs}) < len(pairs):
        raise UsageError(
            f"{data}: several files have the same name apart from the ending: score them separately"
        )
    return pairs
