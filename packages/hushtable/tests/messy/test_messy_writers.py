"""The corpus is what it says: each file, read back by pandas under its true settings, is its table.

And the judge condemns: a reading that is wrong in one cell, silent or false does not pass.
"""

import datetime
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from messy_clean import CLEAN
from messy_corpus import MODULES, listing
from messy_files import CASES, Cells, Style
from messy_judge import Readers, judge
from messy_labelled import HABITS, SETS
from messy_options import Options
from messy_tables import labelled, labs
from python_calamine import load_workbook

from hushtable.errors import DataError

pytestmark = pytest.mark.usefixtures("shell")  # messages name options

CORPUS = {**CASES, **CLEAN}


def cells_of(file):
    """Read the cells below the header, by means that are not ours."""
    if file.path.suffix == ".parquet":
        frame = pd.read_parquet(file.path)
        return frame.astype(object).where(frame.notna(), None)
    if file.path.suffix == ".jsonl":
        return pd.DataFrame([json.loads(line) for line in file.lines()], dtype=object)
    if file.path.suffix == ".xlsx":
        book = load_workbook(file.path)
        name = file.knows.get("--sheet", book.sheet_names[0])
        # What lies left of the table and above it is no part of a sheet.
        rows = book.get_sheet_by_name(name).to_python(skip_empty_area=False)[file.above :]
        start = rows[0].index(file.table.names[0])
        return pd.DataFrame([row[start:] for row in rows[1:]], columns=rows[0][start:])
    if file.path.name == "rows.csv":  # a last delimiter in rows only would shift the header
        text = "\n".join(line.rstrip(",") for line in file.lines())
        (file.path.parent / "stripped.csv").write_text(text)
        file = replace(file, path=file.path.parent / "stripped.csv")
    frame = pd.read_csv(
        file.path,
        sep=file.style.delimiter,
        encoding=file.style.encoding,
        skiprows=file.above or 0,
        header=None if file.above is None else 0,
        skipfooter=file.below,
        skip_blank_lines=False,
        dtype=str,
        keep_default_na=False,
        engine="python",
        index_col=False,
    )
    if file.above is None or file.path.name == "twice.csv":  # pandas would number the names
        frame.columns = file.table.names
    return frame.set_axis([str(name).strip() for name in frame.columns], axis=1)


def number_of(cell, style):
    """Read a number as a person does who knows the decimal sign; NaN for none."""
    if isinstance(cell, int | float):
        return float(cell)
    text = str(cell).strip().replace("\N{MINUS SIGN}", "-").removeprefix("EUR ")
    negative = text.endswith("-") or text.startswith(("-", "("))
    text = (
        text.strip("-()$%€\N{NO-BREAK SPACE} ")
        .removesuffix("EUR")
        .removesuffix("USD")
        .removesuffix("H")
        .removesuffix("L")
    )
    text = text.removesuffix(" mmol/l").removesuffix(" mU/l").strip()
    if style.thousands:
        text = text.replace(style.thousands, "")
    try:
        value = float(text.replace(style.decimal, "."))
    except ValueError:
        return np.nan
    return np.nan if np.isinf(value) else -value if negative else value


def date_of(cell, style):
    if isinstance(cell, datetime.datetime | datetime.date):
        return np.datetime64(cell, "s")
    if not str(cell).strip("0. "):
        return np.datetime64("NaT")
    text = str(cell).strip()
    for form in (style.day, style.day + style.time):
        try:
            found = datetime.datetime.strptime(text, form)
        except ValueError:
            continue
        return np.datetime64(found.astimezone(datetime.UTC).replace(tzinfo=None)
                             if found.tzinfo else found, "s")  # fmt: skip
    if text.isdigit():
        return np.datetime64(int(text) // 1000, "s")
    found = datetime.datetime.fromisoformat(text)
    return np.datetime64(found.astimezone(datetime.UTC).replace(tzinfo=None), "s")


def same(column, cells, file):
    """Whether the cells are the column's values."""
    style = file.style
    if file.path.suffix == ".xlsx":
        style = replace(style, decimal=",")  # texts in cells are German ones
    if column.kind == "number":
        read = np.array([number_of(cell, style) for cell in cells])
        if column.name in file.said:
            read[read == float(file.said[column.name])] = np.nan
        return np.array_equal(read, column.values, equal_nan=True)
    if column.kind == "date":
        read = np.array([date_of(cell, style) for cell in cells])
        return np.array_equal(read, column.values, equal_nan=True)
    if column.kind == "clock":
        parts = np.array([cell.split(":") for cell in cells], float)
        return np.array_equal(parts @ [3600, 60, 1], column.values)
    cells = [cell[2:-1] if str(cell).startswith('="') else cell for cell in cells]
    read = [str(cell).strip() if cell not in ("", None, style.missing) else None for cell in cells]
    return read == [None if value is None else value.strip() for value in column.values]


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPUS)
def test_a_file_is_its_table(name, tmp_path):
    file = CORPUS[name].file(tmp_path)
    if file.strike and (file.below == 0 or name == "list_of_sap"):
        file = file.struck()
    if name == "list_of_sap":
        file = replace(file, above=0, below=0)
    if name == "two_orders_of_dates":
        return  # no one format reads it: that is the point
    frame = cells_of(file)
    matching = [
        table
        for table in file.readings
        if len(table) == len(frame)
        and all(same(column, frame[column.name], file) for column in table.columns)
    ]
    assert matching, frame.head()
    assert np.nansum(matching[0].odd) > 0


@pytest.mark.slow
@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.__name__)
@pytest.mark.parametrize("name", SETS)
def test_a_file_of_a_labelled_set_is_its_table(name, habit, data_dir, tmp_path):
    file = habit(labelled(str(data_dir / f"{name}.npz")), tmp_path)
    frame = cells_of(file)
    assert all(same(column, frame[column.name], file) for column in file.table.columns)
    assert len(frame) == len(file.table)


def test_the_readme_lists_every_case():
    table = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
    assert listing() in table, f"README.md's table is another; it should be:\n{listing()}"


def test_there_are_enough_cases():
    assert len(CASES) >= 45
    assert len(CLEAN) >= 10
    assert sum(case.command for case in CASES.values()) >= 12


@pytest.mark.parametrize("module", MODULES)
def test_files_come_out_alike_each_time(module, tmp_path):
    name = next(n for n, case in CASES.items() if case.make.__module__ == module.__name__)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = (CASES[name].file(tmp_path / folder).path for folder in "ab")
    assert first.read_bytes() == second.read_bytes()


@dataclass
class Seen:
    """What `understand` says of a column, in a stand-in."""

    name: str
    kind: str
    evidence: str = ""
    doubt: str = ""
    option: str = ""


class Understood(list):
    """What `understand` returns, in a stand-in."""

    @property
    def doubts(self):
        return [one for one in self if one.doubt]

    @property
    def refused(self):
        return False


class Perfect:
    """A reader that knows the truth, and asks for the words that are no values."""

    word = "ERR"

    def __init__(self, file):
        self.file = file

    def refuse(self, missing):
        if self.word not in missing:
            line = next(i for i, line in enumerate(self.file.lines(), 1) if ";ERR;" in line)
            raise DataError(
                f"labor.csv: column 'TSH': 588 numbers and 'ERR' in line {line}. Add: --missing ERR"
            )

    def table(self):
        return self.file.table

    def understand(self, path, *, missing=()):
        self.refuse(missing)
        return Understood(Seen(one.name, one.kind) for one in self.table().columns)

    def read(self, path, *, missing=()):
        self.refuse(missing)
        columns = self.table().columns
        kept = [one for one in columns if one.kind in ("number", "date", "category")]
        return pd.DataFrame({one.name: one.values for one in kept})


class OffByOneCell(Perfect):
    def table(self):
        table = self.file.table
        return table.put("Kalium", values=table["Kalium"].values + (np.arange(600) == 9))


class Category(Perfect):
    """The column of the bad word becomes text, as it did."""

    def table(self):
        words = np.array([str(value) for value in self.file.table["TSH"].values], object)
        return self.file.table.put("TSH", kind="category", values=words)


class LeavesOut(Perfect):
    def table(self):
        return self.file.table.pick("Patient", "Alter", "Station", "Geschlecht", "Kalium", "Größe")


class Silent(Perfect):
    def refuse(self, missing):
        pass


class WrongLine(Perfect):
    def refuse(self, missing):
        if self.word not in missing:
            raise DataError("column 'TSH': 'ERR' in line 3. Add: --missing ERR")


class NoColumn(Perfect):
    def refuse(self, missing):
        if self.word not in missing:
            raise DataError("'ERR' in line 312. Add: --missing ERR")


class WrongOption(Perfect):
    word = "n/a"


class NoOption(Perfect):
    def refuse(self, missing):
        raise DataError("labor.csv: column 'TSH' is odd")


def err_case(folder):
    case = CASES["one_err_among_numbers"]
    made = replace(labs(), columns=tuple(one for one in labs().columns if one.name != "Abnahme"))
    file = Cells(made, Style(";")).put("TSH", {310: "ERR"})
    return case, file.write(folder / "labor.csv", bad={"TSH": ["ERR"]})


def test_the_judge_passes_what_is_right(tmp_path):
    case, file = err_case(tmp_path)
    reader = Perfect(file)
    verdict = judge(case, file, Readers(reader.read, reader.understand))
    assert (verdict.outcome, verdict.options) == ("refused, 1 step", "--missing ERR")
    assert verdict.clean == verdict.messy > 0.9


@pytest.mark.parametrize(
    "reader",
    [OffByOneCell, Category, LeavesOut, Silent, WrongLine, NoColumn, WrongOption, NoOption],
)
def test_the_judge_condemns_what_is_wrong(reader, tmp_path):
    case, file = err_case(tmp_path)
    liar = reader(file)
    with pytest.raises(AssertionError):
        judge(case, file, Readers(liar.read, liar.understand))


def test_the_judge_condemns_questions_without_need(tmp_path):
    case, file = err_case(tmp_path)
    reader = Perfect(file)
    with pytest.raises(AssertionError, match="asked without need"):
        judge(replace(case, must="right"), file, Readers(reader.read, reader.understand))


def test_options_of_a_message_are_those_that_are_typed():
    message = "refused. Add: --missing 'ERR,-' --as 'TSH (mU/l)=number' --no-header --dates mdy"
    options = Options.said(message, {"--dates": "dmy"})
    assert options.keywords() == {
        "missing": ["ERR", "-"],
        "kinds": {"TSH (mU/l)": "number"},
        "header": False,
        "dates": "dmy",
    }
    assert Options.parse(options.words()) == options
