"""Models for other runtimes: ONNX, one SQL statement, or JSON. They score as the library does.

A format is one module and one entry point of `hushtable.exports`, which has the name of the ending
of its files, and provides its `Format`. May import `scores` of the core and the layers below it;
``tests/exports`` tests each format with its runtime.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hushtable import files, plugins
from hushtable.counts.base import Counts
from hushtable.data.texts.reading import Reading
from hushtable.detectors.load import open_model
from hushtable.errors import UsageError
from hushtable.plans.plan import Plan
from hushtable.scores.scorer import Scorer

__all__ = ["Format", "Model", "export", "format_of", "formats"]


@dataclass(frozen=True)
class Model:
    """A model to export."""

    scorer: Scorer
    #: Rows with scores below it are outliers; NaN if there is too much noise for a threshold.
    threshold: float

    @property
    def plan(self) -> Plan:
        """The features, the hash functions, and how counts become scores."""
        return self.scorer.plan

    @classmethod
    def of(cls, source: Any) -> "Model":
        """Make a model from a fitted detector, counts that score, or the path of their .hush file.

        Raises
        ------
        UsageError
            If it is none of these, or if it reads some values as missing, or several spellings as
            one label, because no other runtime does this.
        FileError, OSError
            If the file cannot be read, or holds counts that do not score.
        """
        if isinstance(source, str | os.PathLike):
            opened = open_model(source)
            _check_exportable(opened.reading, opened.scorer.plan)
            return cls(opened.scorer, opened.threshold)
        if isinstance(source, Counts):
            scorer = Scorer(source)
            _check_exportable(Reading(), scorer.plan)
            return cls(scorer, scorer.auto_offset())
        if not hasattr(source, "offset_"):
            raise UsageError(f"a {type(source).__name__}: needs a fitted detector or counts")
        _check_exportable(source.reading_, source._scorer.plan)
        return cls(source._scorer, float(source.offset_))


def _check_exportable(reading: Reading, plan: Plan) -> None:
    # It may depend on a context, relations, or a history; or the model may read some values as
    # missing, which other runtimes would score as they are. If all features are numeric, a text
    # that is not a number cannot be a value.
    schema = plan.schema
    for what, used in (("a context", plan.context), ("relations", schema.relations)):
        if used:
            raise UsageError(
                f"a model with {what} cannot be exported yet: score rows with hushtable, or fit "
                f"without {what.removeprefix('a ')}"
            )
    if reading.entity:
        raise UsageError(
            f"the model compares the readings of each {reading.entity!r}, which an export cannot "
            "do: add the columns of hushtable.history.history_columns to the rows, fit to them "
            "without entity, and add the same columns to rows before they are scored"
        )
    several = [n for n, column in reading.columns.items() if column.kind in ("label", "answer")]
    if several:
        raise UsageError(
            f"the model reads several spellings as one label in {several}, which an export "
            "cannot do: write each label in one way, and fit again"
        )
    if reading.absent or (reading.missing and schema.categorical_names):
        raise UsageError(
            f"the model reads {', '.join(map(repr, reading.missing))} as missing values, which an "
            "export cannot do: replace them with null in the rows, fit again without missing "
            "(--missing), and replace them in the same way in rows before they are scored"
        )


class Format(NamedTuple):
    """A format: its name, how to use its files, the function that writes it, and its options."""

    words: str
    use: str
    write: Callable[..., bytes]
    options: tuple[str, ...] = ()

    def check(self, options: dict[str, Any]) -> None:
        """Raise `UsageError` if there are options that this format does not have."""
        for name in options:
            if name not in self.options:
                taking = [ending for ending, other in formats().items() if name in other.options]
                of = f"is for {', '.join(taking)} files" if taking else "is not an option"
                raise UsageError(f"{name} {of}: leave it out for {self.words}")


def formats() -> dict[str, Format]:
    """Return the formats of the installed packages, by the ending of their files."""
    by_name: dict[str, Any] = {}
    for name in plugins.points(plugins.EXPORTS):
        by_name[f".{name}"] = plugins.find(plugins.EXPORTS, name)
    return by_name


def format_of(path: str | os.PathLike[str]) -> Format:
    """Return the format of a file by its name; raise `UsageError` if there is none."""
    known, ending = formats(), Path(path).suffix.lower()
    if ending not in known:
        raise UsageError(f"{path}: needs a name that ends in {', '.join(known)}")
    return known[ending]


def export(model: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Write a model for another runtime, in the format that the ending of the file's name gives.

    Only the owner of the file can read it, because the scores of cells reveal their counts.

    Parameters
    ----------
    model : fitted detector, Sketch, Release, LocalModel, or path of a .hush file
        The model that scores.
    path : path
        The file to write: ``.onnx``, ``.sql`` or ``.json``.
    **options
        Options of the format: see `hushtable_connect.exports.onnx`,
        `hushtable_connect.exports.sql`, and `hushtable_connect.exports.portable`.

    Raises
    ------
    UsageError
        If the ending is none of these, the format has no such option, or the model's export would
        not be exact.
    FileError, OSError
        If the model cannot be read, or holds counts that do not score; or the file cannot be
        written.

    Examples
    --------
    >>> from hushtable import HushTable
    >>> from hushtable_connect.exports import export
    >>> detector = HushTable(random_state=0).fit([[70, 1], [71, 2], [72, 3], [180, 4]])
    >>> export(detector, "model.json")
    """
    kind = format_of(path)
    kind.check(options)
    files.write_bytes(path, kind.write(Model.of(model), **options))
