"""Habits that fit any table of numbers, for the labelled sets."""

from dataclasses import replace

from messy_excel import Workbook
from messy_files import FRENCH, GERMAN, US, Cells, Style, plain_rows
from messy_tables import number

#: Sets of HUSHTABLE_DATA that are small enough to be written many times.
SETS = (
    "6_cardio", "7_Cardiotocography", "23_mammography", "29_Pima", "38_thyroid", "39_vertebral",
    "43_WDBC", "45_wine", "47_yeast",
)  # fmt: skip


def german(table, folder):
    return Cells(table, GERMAN).write(folder / "german.csv")


def french(table, folder):
    style = replace(FRENCH, missing="")
    return Cells(table, style).write(folder / "french.csv")


def american(table, folder):
    """Numbers large enough to be grouped."""
    table = table.map(
        lambda one: one if one.kind == "id" else number(one.name, one.values * 1000, 1)
    )
    return Cells(table, replace(US, quoted=True)).write(folder / "american.csv")


def one_err(table, folder):
    """One word in each of three columns."""
    names = table.names[1:4]
    cells = Cells(table, Style())
    for row, name in zip(plain_rows(table, 3), names, strict=True):
        cells.put(name, {row: "ERR"})
    return cells.write(folder / "err.csv", bad={name: ["ERR"] for name in names})


def dashes(table, folder):
    """One value in fifty is a dash or a question mark, in the first two columns."""
    rows = plain_rows(table, max(2, len(table) // 50))
    cells = Cells(table, Style(";"))
    first, second = table.names[1:3]
    cells.put(first, dict.fromkeys(rows[::2], "-"))
    cells.put(second, dict.fromkeys(rows[1::2], "?"))
    return cells.write(folder / "dashes.csv", bad={first: ["-"], second: ["?"]})


def sap(table, folder):
    cells = Cells(table, GERMAN)
    for name in table.names[1:]:
        cells.change(name, lambda text: text[1:] + "-" if text[0] == "-" else text)
    return cells.write(folder / "sap.csv")


def bare(table, folder):
    """Without a header, blanks around the numbers."""
    names = [f"column {j + 1}" for j in range(len(table.columns))]
    cells = Cells(table.renamed(names), Style())
    for name in names[1:]:
        cells.change(name, " {} ".format)
    return cells.write(folder / "bare.csv", cells.lines()[1:], above=None)


def excel(table, folder):
    book = Workbook(folder / "excel.xlsx").write(table, top=3)
    book.sheet.write(0, 0, "Export")
    return book.file(table, above=3, knows={"--skip-lines": "3"})


HABITS = (german, french, american, one_err, dashes, sap, bare, excel)
