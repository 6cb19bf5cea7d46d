"""Files of Excel: its CSV in many encodings, and its sheets."""

import datetime
from dataclasses import replace

import numpy as np
import xlsxwriter
from messy_files import GERMAN, Cells, File, Style, case, plain_rows
from messy_tables import labs, orders, payments, sensors


@case(labs, "right", command=True)
def german_excel(table, folder):
    """A CSV file saved by German Excel."""
    return Cells(table, GERMAN).write(folder / "labor.csv")


@case(labs, "right")
def german_excel_latin_1(table, folder):
    """The same in latin-1, without thousands dots."""
    style = replace(GERMAN, encoding="latin-1", thousands="")
    return Cells(table, style).write(folder / "labor.csv")


@case(labs, "right")
def excel_with_a_bom(table, folder):
    """Excel's "CSV UTF-8", with a byte order mark."""
    return Cells(table, replace(GERMAN, encoding="utf-8-sig")).write(folder / "bom.csv")


@case(labs, "right", command=True)
def excel_with_a_sep_line(table, folder):
    """Excel writes its delimiter in a line above the header."""
    cells = Cells(table, replace(GERMAN, encoding="utf-8-sig"))
    return cells.write(folder / "sep.csv", ["sep=;", *cells.lines()], above=1)


@case(labs, "right", command=True)
def excel_unicode_text(table, folder):
    """Excel's "Unicode text": UTF-16 with tabs."""
    style = replace(GERMAN, delimiter="\t", encoding="utf-16")
    return Cells(table, style).write(folder / "unicode.csv")


@case(labs)
def utf_16_without_a_mark(table, folder):
    """UTF-16 from a program that omits the byte order mark."""
    style = Style(";", encoding="utf-16-le")
    return Cells(table, style).write(folder / "unmarked.csv", knows={"--encoding": "utf-16-le"})


@case(labs)
def old_mac_lines(table, folder):
    """Line ends of old Macintoshes."""
    return Cells(table, Style(";", newline="\r")).write(folder / "mac.csv")


@case(payments, "right")
def texts_with_line_breaks(table, folder):
    """Notes with line breaks (Alt and Enter), delimiters, and quotes."""
    notes = [f'{text};\n"bezahlt"' for text in table["Verwendungszweck"].values]
    table = table.put("Verwendungszweck", values=np.array(notes, object))
    return Cells(table, replace(GERMAN, newline="\n")).write(folder / "notizen.csv")


class Workbook:
    """A workbook with one sheet of rows, as typed cells."""

    def __init__(self, path, sheet="Labor"):
        self.path = path
        self.book = xlsxwriter.Workbook(path)
        self.sheet = self.book.add_worksheet(sheet)
        self.day = self.book.add_format({"num_format": "dd.mm.yyyy"})
        self.minute = self.book.add_format({"num_format": "dd.mm.yyyy hh:mm"})

    def write(self, table, top=0, left=0):
        for j, column in enumerate(table.columns, left):
            self.sheet.write_string(top, j, column.name)
            for i, value in enumerate(column.values.tolist(), top + 1):
                if not isinstance(value, datetime.datetime):
                    if value is not None and value == value:
                        self.sheet.write(i, j, value)
                elif value.time() == datetime.time():
                    self.sheet.write_datetime(i, j, value, self.day)
                else:
                    self.sheet.write_datetime(i, j, value, self.minute)
        return self

    def file(self, table, **fields):
        self.book.close()
        return File(self.path, table, **fields)


@case(labs, "right", command=True)
def sheet(table, folder):
    """A plain sheet: numbers, texts and dates in typed cells."""
    return Workbook(folder / "labor.xlsx").write(table).file(table)


@case(orders, "right")
def sheet_with_times(table, folder):
    """A sheet with points in time."""
    return Workbook(folder / "orders.xlsx", "Orders").write(table).file(table)


@case(labs, command=True)
def sheet_below_a_title(table, folder):
    """A title, a date and an empty line above the header."""
    book = Workbook(folder / "titel.xlsx").write(table, top=4)
    book.sheet.write(0, 0, "Klinikum: Laborwerte 1. Halbjahr")
    book.sheet.write(1, 0, "Stand")
    book.sheet.write_datetime(1, 1, datetime.datetime(2026, 7, 1), book.day)
    return book.file(table, above=4, knows={"--skip-lines": "4"})


@case(labs)
def sheet_off_the_corner(table, folder):
    """A table that starts at C4, with nothing around it."""
    return Workbook(folder / "ecke.xlsx").write(table, top=3, left=2).file(table, above=3)


@case(labs)
def sheet_with_a_merged_header(table, folder):
    """Groups of columns in merged cells above the names."""
    book = Workbook(folder / "gruppen.xlsx").write(table, top=1)
    book.sheet.merge_range(0, 0, 0, 3, "Person")
    book.sheet.merge_range(0, 4, 0, 8, "Messung")
    return book.file(table, above=1, knows={"--skip-lines": "1"})


@case(labs, "right")
def sheet_with_formulas(table, folder):
    """A column of formulas, with the values that Excel computed."""
    book = Workbook(folder / "formeln.xlsx").write(table)
    j = table.names.index("Kalium")
    for i, value in enumerate(table["Kalium"].values, 1):
        book.sheet.write_formula(i, j, f"=ROUND({value!r}*2/2,1)", None, value)
    return book.file(table)


@case(labs)
def sheet_with_errors(table, folder):
    """Formulas that failed, such as #DIV/0!: no value."""
    rows = plain_rows(table, 6)
    words = dict(zip(rows, ["#DIV/0!", "#N/A", "#VALUE!"] * 2, strict=True))
    table = table.without("Ferritin", rows)
    book = Workbook(folder / "fehler.xlsx").write(table)
    for row, word in words.items():
        book.sheet.write_formula(row + 1, table.names.index("Ferritin"), "=1/0", None, word)
    return book.file(table)


@case(labs, command=True)
def sheet_behind_a_cover(table, folder):
    """The rows are on the second of three sheets."""
    path = folder / "mappe.xlsx"
    book = Workbook(path, "Deckblatt")
    book.sheet.write_column(0, 0, ["Klinikum", "Laborwerte", "Auswertung", "intern"])
    book.sheet = book.book.add_worksheet("Labor")
    book.write(table)
    book.sheet = book.book.add_worksheet("Codes")
    book.sheet.write_row(0, 0, ["Code", "Text"])
    book.sheet.write_row(1, 0, [1, "eins"])
    return book.file(table, knows={"--sheet": "Labor"})


@case(labs)
def sheet_with_numbers_as_text(table, folder):
    """Cells of text with German numbers, from a report writer."""
    book = Workbook(folder / "texte.xlsx").write(table)
    texts = replace(GERMAN, thousands="").texts(table["TSH"])
    for i, text in enumerate(texts, 1):
        book.sheet.write_string(i, table.names.index("TSH"), text)
    return book.file(table, knows={"--decimal": ","})


@case(labs)
def sheet_with_words_among_numbers(table, folder):
    """ERR in three cells of a column of numbers."""
    rows = plain_rows(table, 3)
    table = table.without("TSH", rows)
    book = Workbook(folder / "worte.xlsx").write(table)
    for row in rows:
        book.sheet.write_string(row + 1, table.names.index("TSH"), "ERR")
    return book.file(table, bad={"TSH": ["ERR"]})


@case(sensors, "right")
def sheet_without_gaps(table, folder):
    """A sheet of a device without empty cells."""
    return Workbook(folder / "sensors.xlsx", "Tabelle1").write(table).file(table)
