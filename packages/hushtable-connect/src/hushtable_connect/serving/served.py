"""A served model: severity, outlier, score, and reasons of each row, in the rows' order."""

import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from hushtable.counts.base import Counts
from hushtable.detectors.fitted import frame_like
from hushtable.detectors.load import load
from hushtable.errors import DataError
from hushtable.plans.draws import draw_of
from hushtable.scores.outliers import AMONG, reasons_of
from hushtable.scores.reasons import Reasons
from hushtable.scores.usual import SCORED
from hushtable_connect.engines.work import counts_of


class Served:
    """A model that is loaded once, and reports how rare rows are, and why.

    Several threads can call it at once.

    Parameters
    ----------
    model : detector, Sketch or Release
        A fitted detector, or merged counts to score by.

    Attributes
    ----------
    detector : detector
        The detector that scores. If the counts are merged or released, ``detector.set_ranks`` sets
        the rows that severities compare with.

    Raises
    ------
    UsageError
        If this is no model.

    Examples
    --------
    >>> from hushtable import HushTable
    >>> from hushtable_connect.serving import Served
    >>> pulses = [{"pulse": 60 + i % 40} for i in range(200)]
    >>> served = Served(HushTable(random_state=0).fit(pulses))
    >>> [answer] = served.answer([{"pulse": 190}])
    >>> answer["outlier"], answer["severity"], answer["reasons"]
    (True, 100.0, 'pulse 190, usually 61 to 97: beyond the range of 60 to 99')
    """

    def __init__(self, model: Any) -> None:
        counts = counts_of(model)
        if isinstance(model, Counts):
            model = draw_of(counts.plan.detector).estimator_class().from_counts(counts)
        self.detector = model
        self._made: tuple[Any, Reasons | None] | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read the .hush file of a fitted detector, or of counts.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Served

        Raises
        ------
        FileError
            If it is not an intact .hush file of a protocol that this version reads.
        UsageError
            If it holds no model.
        OSError
            If the file cannot be read.
        """
        return cls(load(path))

    def judge(self, X: Any) -> Any:
        """Return the result for each row, in the order of the rows.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit`; other columns are left out.

        Returns
        -------
        DataFrame or pyarrow.Table
            A data frame of pandas (with the rows' index) or polars if the rows are one, else a
            Table, with the columns

            - ``row``, from 0;
            - ``severity``, from 0 to 100, as in the detector's ``outliers``; null if the model does
              not know the rows that it counted;
            - ``outlier``, whether the score is below the threshold; null if released counts are
              too noisy to derive a threshold;
            - ``score``, low = abnormal, bit-identical to that of ``score_samples``;
            - ``reasons``, in words; null if the detector gives none;
            - ``outside``, the columns beyond the plan's ranges or categories, or empty.

        Raises
        ------
        DataError
            If there are no rows, or the columns or values do not fit.
        """
        return frame_like(self._answers(X), X)

    def answer(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the result for each row of a request, for example from JSON.

        Parameters
        ----------
        rows : list of dict
            Values by column. A missing value is None; a row without the column is refused.

        Returns
        -------
        list of dict
            Values by the names of the columns of `judge`.

        Raises
        ------
        DataError
            If there are no rows, or the columns or values do not fit.
        """
        schema = self.detector.plan_.schema.of_rows
        names = list(schema.names)
        if not rows:
            raise DataError("no rows: needs 1 or more")
        for place, row in enumerate(rows):
            if lacking := [name for name in names if name not in row]:
                raise DataError(
                    f"row {place} has no value {lacking}: needs {names}; null if one is missing"
                )
        X: Any = [{name: row[name] for name in names} for row in rows]
        if not schema.named:
            X = [list(row.values()) for row in X]
        found = self._answers(X)
        answers: list[dict[str, Any]] = found.to_pylist()
        return answers

    def _answers(self, X: Any) -> pa.Table:
        """Return the table of `judge`."""
        found = self.detector._lowest(X, sys.maxsize, reasons=self._reasons()).table()
        places = [(name, "ascending") for name in ("file", "row") if name in found.column_names]
        found = found.sort_by(places)
        none = pa.nulls(len(found), pa.string())
        severity, offset = found["severity"], self.detector.offset_
        if (found.schema.metadata or {}).get(AMONG, b"").decode() == SCORED:
            # A severity among the rows of one request would have no meaning.
            severity = pa.nulls(len(found), pa.float64())
        outlier = pa.nulls(len(found), pa.bool_())
        if not math.isnan(offset):
            outlier = pc.less(found["score"], offset)
        return pa.table(
            {
                "row": found["row"],
                "severity": severity,
                "outlier": outlier,
                "score": found["score"],
                "reasons": found["words"] if "words" in found.column_names else none,
                "outside": found["outside"],
            }
        ).replace_schema_metadata(found.schema.metadata)

    def _reasons(self) -> Reasons | None:
        """Return the explainer, made once, because making it takes longer than one answer."""
        scorer, made = self.detector._scorer, self._made
        if made is None or made[0] is not scorer:  # verdicts were learned after it was made
            made = self._made = scorer, reasons_of(scorer, self.detector._usual_values())
        return made[1]
