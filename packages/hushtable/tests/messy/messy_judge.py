"""The judge: reads a file as its owner would, obeys the messages, and compares with the truth."""

import re
import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from messy_files import Case, File
from messy_options import LAYOUT, Options
from messy_tables import Column, Table
from sklearn.metrics import roc_auc_score

from hushtable import HushTable, load
from hushtable.errors import DataError

#: Kinds that `understand` may give for what a column is.
ALLOWED = {
    "number": {"number"},
    "date": {"date"},
    "clock": {"date", "number"},
    "category": {"category"},
    "truth": {"category", "number"},
    "id": {"id", "text"},
    "text": {"id", "text"},
    "code": {"id", "category"},
    "constant": {"constant", "category"},
    "empty": {"empty"},
}
MODELLED = {"number", "date", "clock", "category", "truth"}
LEFT_OUT = {"id", "text", "empty"}
#: Messages that a person obeys before giving up.
MOST_STEPS = 5
#: Tables of the detectors, where rows and outliers are few.
N_TABLES = 25
#: How much of ROC-AUC a right reading may lose.
TOLERANCE = 0.005


@dataclass(frozen=True)
class Readers:
    """What is judged: the two functions of `hushtable.data`, or a stand-in."""

    read: Callable[..., Any]
    understand: Callable[..., Any]


@dataclass(frozen=True)
class Verdict:
    """What came of a case."""

    case: str
    outcome: str
    options: str
    steps: int
    clean: float = np.nan
    messy: float = np.nan

    def __str__(self) -> str:
        areas = f"{self.clean:6.3f} {self.messy:6.3f}".replace("nan", "  -")
        return f"{self.case:<45} {self.outcome:<18} {areas}  {self.options}"


def judge(case: Case, file: File, readers: Readers, n_tables: int = N_TABLES) -> Verdict:
    """Read, obey, read again; fail on anything silent or wrong."""
    options, steps, messages = Options.parse(file.given), 0, []
    while True:
        seen, refused = None, True
        try:
            seen = readers.understand(file.path, **options.keywords())
            refused = bool(seen.refused)
            rows = readers.read(file.path, **options.keywords())
            detector = fitted(rows, n_tables)
            assert not refused, f"understand refuses, fit does not: {seen}"
        except DataError as error:
            if not refused:
                raise AssertionError(f"fit refuses, understand does not: {seen}") from error
            messages.append(str(error))
            obeyed = obey(case, file, messages[-1], options)
            if obeyed is None:
                return Verdict(case.name, "refused for good", "", steps)
            file, options = obeyed
        else:
            unsaid = set(file.said) - resolved(file, options) | identifying(file, detector)
            if not unsaid:
                break
            options = options.joined(doubted(seen, unsaid))
        steps += 1
        assert steps <= MOST_STEPS, f"never comes right; at last: {messages[-1:]} with {options}"
    # Identifiers may be asked about anywhere.
    asked = bool(set(options) - {"--drop"}) or file.path.stem.endswith("-struck")
    assert case.must != "right" or not asked, f"asked without need: {messages}"
    assert case.must != "refused" or asked, f"guessed what no one can know: {seen}"
    check_exceptions(file, seen, messages)
    clean, messy = compare(file, seen, detector, readers.read(file.path, **options.keywords()))
    outcome = "right" if not steps else "refused" if messages else "doubt said"
    outcome += f", {steps} step{'s' * (steps > 1)}" * (steps > 0)
    return Verdict(case.name, outcome, str(options), steps, clean, messy)


def obey(case: Case, file: File, message: str, options: Options) -> tuple[File, Options] | None:
    """Do what a message says: add options, else strike lines out; None where nothing helps."""
    check_lines(file, message)
    if case.must == "final" and names_all(file, [message]):
        return None
    if "Add: " not in message and set(file.strike) & lines_named(message):
        return file.struck(), options
    more = options.joined(Options.said(message, file.knows))
    assert more != options, f"the options that it asks for are there: {options}: {message}"
    return file, more


def lines_named(message: str) -> set[int]:
    """Return the lines of a file, or the rows of a sheet, that a message names."""
    found = re.findall(r"\blines? (\d[\d,]*)|\brows? (\d[\d,]*) of sheet", message)
    single = {int("".join(pair).replace(",", "")) for pair in found}
    several = re.findall(r"\blines (\d+) to (\d+)", message)
    return single.union(*(range(int(a), int(b) + 1) for a, b in several))


def quoted(words: Sequence[str], message: str) -> list[str]:
    """Return the words that a message shows in quotes."""
    forms = {word: "|".join(map(re.escape, (word, repr(word)[1:-1]))) for word in words}
    return [word for word in words if re.search(f"""['"`]({forms[word]})['"`]""", message)]


def check_lines(file: File, message: str) -> None:
    """Check that a bad value stands in a line that the message names."""
    for column, words in file.bad.items():
        shown = quoted(words, message) if column in message else []
        if not shown:
            continue
        lines, numbers = file.lines(), lines_named(message)
        assert any(
            word in lines[number - 1]
            for number in numbers
            if number <= len(lines)
            for word in shown
        ), f"{column}: none of {shown} stands in lines {sorted(numbers)}: {message}"


def names_all(file: File, messages: Sequence[str]) -> bool:
    """Whether the messages name each column with bad values, and one of these."""
    return all(
        any(column in message and quoted(words, message) for message in messages)
        for column, words in file.bad.items()
    )


def check_exceptions(file: File, seen: Any, messages: Sequence[str]) -> None:
    """Check that each text that is no value was named: in a message, or in what was understood."""
    if not file.path.stem.endswith("-struck"):
        told = [str(seen), *(f"{one.name!r} {one.evidence} {one.doubt}" for one in seen)]
        if any(set(file.strike) & lines_named(text) for text in [*messages, *told]):
            return  # the whole line was named
        assert names_all(file, [*messages, *told]), (
            f"no column with one of its bad values, {dict(file.bad)}, in: {[*messages, *told]}"
        )


def fitted(rows: Any, n_tables: int) -> HushTable:
    """Fit a detector; what it warns of, `understand` has to say as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return HushTable(n_tables=n_tables, random_state=0).fit(rows)


def identifying(file: File, detector: HushTable) -> set[str]:
    """Return identifiers and free text that are in the model: a doubt about each must be said."""
    names = {one.name for one in detector.plan_.schema.features}
    return {one.name for one in file.table.columns if one.kind in ("id", "text")} & names


def resolved(file: File, options: Options) -> set[str]:
    given = {
        float(text) for text in options.get("--missing", []) if re.fullmatch(r"-?\d+(\.\d+)?", text)
    }
    return {name for name, word in file.said.items() if float(word) in given}


def doubted(seen: Any, columns: set[str]) -> Options:
    """Return the options that resolve the doubts about some columns; each must have one."""
    options = Options()
    for name in columns:
        doubts = [one for one in seen.doubts if one.name == name]
        assert doubts, f"no doubt about {name!r} is said: {seen}"
        assert doubts[0].option, f"no option resolves the doubt about {name!r}: {doubts[0]}"
        options = options.joined(Options.parse(shlex.split(doubts[0].option)))
    return options


def compare(file: File, seen: Any, detector: Any, rows: Any) -> tuple[float, float]:
    """Compare kinds, ranges, categories and scores with the truth; return both ROC-AUC."""
    found = {one.name: one for one in seen}
    features = {one.name: one for one in detector.plan_.schema.features}
    scores = detector.score_samples(rows)

    def check(table: Table) -> tuple[float, float]:
        check_kinds(table, found, features)
        return check_values(table, features, scores, detector.n_tables)

    return rightly(file, check)


def rightly(file: File, check: Callable[[Table], tuple[float, float]]) -> tuple[float, float]:
    """Return what a check of the first right reading returns; else raise the first one's fault."""
    wrong = []
    for table in file.readings:
        try:
            return check(table)
        except AssertionError as error:
            wrong.append(error)
    raise wrong[0]


def check_kinds(table: Table, found: Mapping[str, Any], features: Mapping[str, Any]) -> None:
    unknown = set(features) - set(table.names)
    assert not unknown, f"features that are no columns: {unknown}"
    for column in table.columns:
        name, modelled = column.name, column.name in features
        if column.kind in LEFT_OUT:
            assert not modelled, f"{name!r} is {column.kind}, and in the model"
        elif column.kind in MODELLED:
            assert modelled, f"{name!r} is {column.kind}, and left out: {found.get(name)}"
            numeric = features[name].kind == "numeric"
            assert column.kind == "truth" or numeric == (column.kind != "category"), name
        if name in found:
            kind = found[name].kind
            assert kind in ALLOWED[column.kind], f"{name!r} is {column.kind}, not {kind}"
        else:
            assert not modelled, f"{name!r} is in the model, but was not understood"


def check_values(
    table: Table, features: Mapping[str, Any], scores: np.ndarray, n_tables: int
) -> tuple[float, float]:
    """Check what the detector saw, by its ranges and categories, and by every score."""
    for name, feature in features.items():
        if feature.kind == "numeric":
            values = _numbers(table[name])
            spread = [np.nanmin(values), np.nanmax(values)]
            np.testing.assert_allclose([feature.low, feature.high], spread, 1e-12, err_msg=name)
        else:
            texts = sorted(set(table[name].values[~table[name].missing]))
            assert list(feature.categories) == texts, name
    kinds = tuple((name, feature.kind) for name, feature in features.items())
    truth = true_scores(table, kinds, n_tables)
    assert len(scores) == len(truth), f"{len(scores)} rows, not {len(truth)}"
    if table.exact:
        np.testing.assert_allclose(scores, truth, 1e-12, err_msg="scores")
    clean, messy = area(table, truth), area(table, scores)
    assert abs(clean - messy) <= TOLERANCE, f"ROC-AUC {messy:.3f}, not {clean:.3f}"
    return clean, messy


def _numbers(column: Column) -> np.ndarray:
    values = column.values
    if column.kind == "date":
        seconds = values.astype("datetime64[s]").astype(float)
        return np.where(column.missing, np.nan, seconds)
    if column.kind == "truth":
        return np.unique(values, return_inverse=True)[1].astype(float)
    return values.astype(float)


@cache
def true_scores(table: Table, kinds: tuple[tuple[str, str], ...], n_tables: int) -> np.ndarray:
    """Return the scores (n,) of the clean table, as typed columns of a frame."""
    frame = pd.DataFrame({
        name: _numbers(table[name]) if kind == "numeric" else table[name].values
        for name, kind in kinds
    })  # fmt: skip
    return HushTable(n_tables=n_tables, random_state=0).fit(frame).score_samples(frame)


def area(table: Table, scores: np.ndarray) -> float:
    """Return the ROC-AUC of scores, low for outliers, over the rows that are rows of data."""
    rows = ~np.isnan(table.odd)
    return float(roc_auc_score(table.odd[rows], -scores[rows]))


def command_line(case: Case, file: File, run: Callable[..., Any], folder: Path) -> Options:
    """Fit and score by commands, adding the options of each message as they are typed."""
    options, model, out = Options.parse(file.given), folder / "model.hush", folder / "scores.csv"
    for _ in range(MOST_STEPS):
        result = run(
            "fit", file.path, *options.words(), "--seed", 0, "--tables", N_TABLES, "-o", model
        )
        if result.code == 0:
            if set(file.said) <= resolved(file, options):
                break
            for name, word in file.said.items():
                for words in (name, word, "--missing"):
                    assert words in result.err, f"no doubt about {name!r} is said: {result.err}"
                options = options.joined(Options.parse(["--missing", word]))
            continue
        assert (result.code, model.exists()) == (1, False), result.err
        assert result.err.startswith("hushtable: error: "), result.err
        obeyed = obey(case, file, result.err.strip(), options)
        assert obeyed is not None
        file, options = obeyed
    assert result.code == 0, result.err
    said = result.err + result.out
    layout = Options({name: values for name, values in options.items() if name in LAYOUT})
    result = run("score", file.path, *layout.words(), "--model", model, "-o", out)
    assert result.code == 0, result.err
    scores = pd.read_csv(out)["score"].to_numpy()
    detector = load(model)
    features = {one.name: one for one in detector.plan_.schema.features}
    for name in identifying(file, detector):
        assert name in said, f"{name!r} is in the model, and nothing was said: {said}"
    rightly(file, lambda table: check_values(table, features, scores, N_TABLES))
    return options
