"""Exports of hospitals and their laboratories."""

from dataclasses import replace

import numpy as np
from messy_files import GERMAN, US, Cells, Style, case, plain_rows
from messy_tables import labs, number, texts

SEMICOLON = Style(";", missing="")


def _spoilt(table, folder, name, words, style=SEMICOLON, **fields):
    """Write some words where numbers belong."""
    rows = plain_rows(table, len(words))
    cells = Cells(table, style).put(name, dict(zip(rows, words, strict=True)))
    return cells.write(folder / "labor.csv", bad={name: sorted(set(words))}, **fields)


@case(labs, command=True)
def one_err_among_numbers(table, folder):
    """ERR in one of 600 rows."""
    return _spoilt(table, folder, "TSH", ["ERR"], Style())


@case(labs, command=True)
def dashes_and_question_marks(table, folder):
    """Dashes and question marks in place of missing values."""
    return _spoilt(table, folder, "Kalium", ["-", "?", "-", "?", "-"])


@case(labs)
def haemolytic_samples(table, folder):
    """A remark of the laboratory in place of a value."""
    return _spoilt(table, folder, "Kalium", ["hämolytisch"] * 9, replace(GERMAN, encoding="utf-8"))


@case(labs)
def not_detectable(table, folder):
    """German laboratories write n.n. for a value that cannot be detected."""
    return _spoilt(table, folder, "TSH", ["n.n."] * 14, GERMAN)


@case(labs)
def no_value_in_german(table, folder):
    """k.A., the German abbreviation of "not stated"."""
    return _spoilt(table, folder, "Ferritin", ["k.A."] * 20, GERMAN)


@case(labs)
def plus_signs_among_numbers(table, folder):
    """Plus signs of a test strip among measured numbers."""
    return _spoilt(table, folder, "Ferritin", ["++", "+++", "neg.", "++", "+"])


@case(labs)
def several_columns_with_words(table, folder):
    """A different word in each of three columns, in American style."""
    cells = Cells(table, US)
    rows = plain_rows(table, 12)
    cells.put("TSH", dict.fromkeys(rows[:4], "pending"))
    cells.put("Kalium", dict.fromkeys(rows[4:8], "see note"))
    cells.put("Ferritin", dict.fromkeys(rows[8:], "QNS"))
    bad = {"TSH": ["pending"], "Kalium": ["see note"], "Ferritin": ["QNS"]}
    return cells.write(folder / "labs.csv", bad=bad)


@case(labs)
def limits_of_detection(table, folder):
    """Values below or above the method's limits: missing, or equal to the limit."""
    low, high = plain_rows(table, 8)[:5], plain_rows(table, 8)[5:]
    limits = table["TSH"].values.copy()
    limits[low], limits[high] = 0.01, 100
    cells = Cells(table, SEMICOLON)
    cells.put("TSH", {**dict.fromkeys(low, "<0.01"), **dict.fromkeys(high, ">100")})
    return cells.write(
        folder / "limits.csv",
        also=(table.put("TSH", values=limits),),
        bad={"TSH": ["<0.01", ">100"]},
    )


@case(labs)
def flags_behind_numbers(table, folder):
    """Flags H and L after values outside the normal range: the numbers must stay."""
    cells = Cells(table, SEMICOLON)
    values = table["Kalium"].values
    flags = [" H" if value > 5.1 else " L" if value < 3.5 else "" for value in values]
    written = cells.columns["Kalium"]
    cells.columns["Kalium"] = [text + flag for text, flag in zip(written, flags, strict=True)]
    flagged = [text for text in cells.columns["Kalium"] if text[-1] in "HL"]
    return cells.write(folder / "flags.csv", bad={"Kalium": flagged})


@case(labs)
def units_in_cells(table, folder):
    """A unit after every number of a column."""
    cells = Cells(table, GERMAN).change("Kalium", "{} mmol/l".format)
    cells.change("TSH", "{} mU/l".format)
    return cells.write(folder / "einheiten.csv")


@case(labs)
def units_below_the_header(table, folder):
    """A row of units, which is not data: it is skipped, or a row without values."""
    table = table.pick("Patient", "Alter", "Kalium", "TSH", "Größe")
    cells = Cells(table, SEMICOLON)
    units = ["", "Jahre", "mmol/l", "mU/l", "cm"]
    lines = cells.lines()
    lines.insert(1, cells.style.line(units))
    return cells.write(
        folder / "einheiten.csv",
        lines,
        table=table.with_empty_row(0),
        also=(table,),
        strike=(2,),
        bad={"Alter": ["Jahre"], "Kalium": ["mmol/l"], "TSH": ["mU/l"], "Größe": ["cm"]},
    )


@case(labs)
def half_numbers_half_codes(table, folder):
    """A column with numbers of one device and codes of another: no one can guess."""
    codes = np.array(["A17", "B20", "C03", "E11", "K35"])
    half = np.arange(0, len(table), 2)
    cells = Cells(table, SEMICOLON)
    cells.put("Ferritin", {int(row): str(codes[row // 2 % 5]) for row in half})
    return cells.write(
        folder / "halb.csv", bad={"Ferritin": codes.tolist()}, knows={"--as": "Ferritin=number"}
    )


@case(labs)
def header_twice(table, folder):
    """Two exports pasted together."""
    table = table.pick("Patient", "Alter", "Kalium", "TSH", "Größe", "Ferritin")
    cells = Cells(table, SEMICOLON)
    lines = cells.lines()
    lines.insert(301, lines[0])
    return cells.write(
        folder / "doppelt.csv",
        lines,
        table=table.with_empty_row(300),
        also=(table,),
        strike=(302,),
        bad={name: [name] for name in table.names[1:]},
    )


@case(labs)
def numbers_of_patients(table, folder):
    """Numbers of patients, which are not measurements, whether consecutive or not."""
    running = np.arange(1, len(table) + 1)
    row = number("Nr", running)
    table = table.added(replace(row, kind="id", values=running.astype(str).astype(object)))
    return Cells(table, Style()).write(folder / "nummern.csv")


@case(labs)
def patients_with_leading_zeros(table, folder):
    """Patient numbers that start with zeros."""
    ids = np.array([text[2:].zfill(8) for text in table["Patient"].values], object)
    return Cells(table.put("Patient", values=ids), Style()).write(folder / "nullen.csv")


@case(labs)
def names_and_notes(table, folder):
    """Names of persons and free text: both identify a row, and neither is a category."""
    rng = np.random.default_rng(17)
    parts = ["ba", "do", "fi", "ga", "ke", "lu", "mo", "na", "pe", "ri", "so", "tu"]
    words = rng.choice(parts, (len(table), 9))
    names = ["".join(row[:2]).title() + " " + "".join(row[2:5]).title() for row in words]
    notes = [f"{a}{b} {c}{d}, {a}{c} {d}{b}." for *_, a, b, c, d in words]
    table = table.added(texts("Name", "id", names), texts("Bemerkung", "text", notes))
    return Cells(table, SEMICOLON).write(folder / "namen.csv")


@case(labs)
def two_digit_years(table, folder):
    """Years with two digits, as in 15.05.26."""
    style = replace(GERMAN, day="%d.%m.%y")
    return Cells(table, style).write(folder / "jahre.csv", knows={"--dates": "dmy"})


@case(labs)
def blanks_around_numbers(table, folder):
    """Columns of fixed width, with blanks before and after the numbers."""
    cells = Cells(table, SEMICOLON)
    for name in ("Alter", "Kalium", "TSH", "Größe", "Ferritin"):
        cells.change(name, "{:>10} ".format)
    return cells.write(folder / "blanks.csv")
