"""Text that databases and programs print or unload, and text in unusual bytes."""

import lzma
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from world_tables import (
    Written,
    base,
    cells_back,
    chance,
    comma,
    day_by,
    delimited,
    european,
    export,
    grouped,
    moments,
    named,
    plain,
    spelled,
    text_of,
    undone,
)


def numbers(*names: str) -> dict:
    """Return readers of plain numbers."""
    return dict.fromkeys(names or ("amount", "count", "share", "level"), float)


def padded(texts: pd.DataFrame, right: Sequence[str]) -> list[list[str]]:
    """Return the names and rows of a table, each cell padded to the width of its column."""
    lines = [list(texts.columns), *texts.to_numpy().tolist()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = [str.rjust if name in right else str.ljust for name in texts.columns]
    return [[align(cell, width) for cell, width, align in zip(line, widths, aligned, strict=True)]
            for line in lines]  # fmt: skip


def gaps(table: pd.DataFrame, seed: int, *names: str) -> pd.DataFrame:
    """Take some values out of columns."""
    return table.assign(**{
        name: table[name].astype(object).where(~chance(seed + k, 0.08), None)
        for k, name in enumerate(names)
    })  # fmt: skip


def numeric(table: pd.DataFrame, *names: str) -> pd.DataFrame:
    return table.assign(**{name: table[name].astype(float) for name in names})


def cut(lines: Sequence[str], widths: Sequence[int], gap: int) -> list[list[str]]:
    """Cut lines at fixed places."""
    starts = np.cumsum([0, *(width + gap for width in widths)])
    return [[line[a : a + w].strip() for a, w in zip(starts, widths, strict=False)]
            for line in lines]  # fmt: skip


RIGHT = ("amount", "count", "share", "level")


@export(
    "SQL Server in Spanish, results to text: dashes below the names, (400 filas afectadas)", "rpt"
)
def sqlserver_rows(path: Path) -> Written:
    table = gaps(base(81), 81, "amount", "level")
    table["day"] = [str(time) for time in moments(table, 81)]
    texts = spelled(table, {"day": "{}.000".format, "amount": "{:.2f}".format})
    texts = texts.where(table.notna(), "NULL")
    names, *rows = padded(texts, RIGHT)
    dashes = ["-" * len(cell) for cell in names]
    left = [cell.strip().ljust(len(cell)) for cell in names]
    lines = [" ".join(line) for line in (left, dashes, *rows)]
    text = "\r\n".join([*lines, "", "(400 filas afectadas)", "", ""])
    path.write_text(text, "utf-8-sig", newline="")

    def back() -> pd.DataFrame:
        names, dashes, *rows = path.read_text("utf-8-sig").splitlines()[:402]
        cells = cut([names, *rows], [len(part) for part in dashes.split()], 1)
        read = pd.DataFrame(cells[1:], columns=cells[0]).replace("NULL", "")
        return undone(read, numbers() | {"day": lambda text: text.removesuffix(".000")})

    return Written(numeric(table, "amount", "level"), back)


@export("psql of PostgreSQL: bars, a line of dashes with +, (400 rows)", "txt")
def psql_aligned(path: Path) -> Written:
    table = gaps(base(82), 82, "amount")
    table["paid"] = np.where(chance(83), "t", "f")
    names, *rows = padded(spelled(table, {}), RIGHT)
    centred = [cell.strip().center(len(cell)) for cell in names]
    rule = "+".join("-" * (len(cell) + 2) for cell in names)
    lines = [" | ".join(line).join((" ", " ")).rstrip() for line in (centred, *rows)]
    path.write_text("\n".join([lines[0], rule, *lines[1:], "(400 rows)", "", ""]))

    def back() -> pd.DataFrame:
        read = [line.split("|") for line in path.read_text().splitlines() if "|" in line]
        cells = [[cell.strip() for cell in line] for line in read]
        return undone(pd.DataFrame(cells[1:], columns=cells[0]), numbers())

    said = (table.assign(paid=np.where(table["paid"] == "t", *pair))
            for pair in (("true", "false"), ("yes", "no")))  # fmt: skip
    return Written(numeric(table, "amount"), back, tuple(numeric(one, "amount") for one in said))


@export("The client of MySQL: boxes of +---+, NULL, 400 rows in set (0.01 sec)", "txt")
def mysql_boxes(path: Path) -> Written:
    table = gaps(base(84), 84, "level")
    texts = spelled(table, {"amount": "{:.2f}".format}).where(table.notna(), "NULL")
    names, *rows = padded(texts, RIGHT)
    left = [cell.strip().ljust(len(cell)) for cell in names]
    rule = "+".join("-" * (len(cell) + 2) for cell in names).join("++")
    lines = [" | ".join(line).join(("| ", " |")) for line in (left, *rows)]
    end = "400 rows in set (0.01 sec)"
    path.write_text("\n".join([rule, lines[0], rule, *lines[1:], rule, end, "", ""]))

    def back() -> pd.DataFrame:
        read = [
            line.strip("| ").split("|") for line in path.read_text().splitlines() if "|" in line
        ]
        cells = [[cell.strip() for cell in line] for line in read]
        frame = pd.DataFrame(cells[1:], columns=cells[0]).replace("NULL", "")
        return undone(frame, numbers())

    return Written(numeric(table, "level"), back)


@export("A wiki: a Markdown table with the alignment of its columns", "md")
def markdown_table(path: Path) -> Written:
    table = base(85, "R&D Sales Legal Support")
    texts = spelled(table, {"amount": "{:,.2f}".format, "share": "{:.1%}".format})
    lines = [list(texts.columns), ["---", ":---", "---:", "---:", "---:", ":---:"],
             *texts.to_numpy().tolist()]  # fmt: skip
    path.write_text("".join(f"| {' | '.join(line)} |\n" for line in lines))

    def back() -> pd.DataFrame:
        names, _, *rows = ([cell.strip() for cell in line.strip("|\n").split("|")]
                           for line in path.read_text().splitlines())  # fmt: skip
        undo = numbers() | {"amount": plain, "share": lambda text: plain(text) / 100}
        return undone(pd.DataFrame(rows, columns=names), undo)

    return Written(table, back)


@export("COPY of PostgreSQL: tabs, \\N, backslashes and tabs escaped, no names", "txt",
        knows={"--no-header": ""}, header=False)  # fmt: skip
def postgres_copy(path: Path) -> Written:
    table = gaps(base(86), 86, "amount", "level")
    labels = {"Alpha": "C:\\data", "Beta": "D:\\temp", "Gamma": "N:\\new", "Delta": "T:\\old\tnew"}
    table["site"] = table["site"].map(labels)
    texts = spelled(table, {"site": lambda s: s.replace("\\", "\\\\").replace("\t", "\\t")})
    texts = texts.where(table.notna(), "\\N")
    path.write_text("".join("\t".join(row) + "\n" for row in texts.to_numpy().tolist()))

    def back() -> pd.DataFrame:
        rows = [line.split("\t") for line in path.read_text().splitlines()]
        read = pd.DataFrame(rows, columns=table.columns).replace("\\N", "")
        undo = {"site": lambda s: re.sub(r"\\(.)", lambda m: m[1].replace("t", "\t"), s)}
        return undone(read, numbers() | undo)

    return Written(numeric(table, "amount", "level"), back)


@export("INTO OUTFILE of MySQL: commas, quotes after a backslash, \\N, no names",
        knows={"--no-header": ""}, header=False)  # fmt: skip
def mysql_outfile(path: Path) -> Written:
    table = gaps(base(87), 87, "count")
    labels = {"Alpha": 'Bar "Sol"', "Beta": "Casa, S.A.", "Gamma": "D\\E", "Delta": "Faro"}
    table["site"] = table["site"].map(labels)
    quoted = {"day": '"{}"'.format, "site": lambda s: '"' + re.sub(r'(["\\])', r"\\\1", s) + '"'}
    texts = spelled(table, quoted).where(table.notna(), "\\N")
    path.write_text("".join(",".join(row) + "\n" for row in texts.to_numpy().tolist()))

    def back() -> pd.DataFrame:
        read = pd.read_csv(path, header=None, names=list(table.columns), escapechar="\\",
                           doublequote=False, na_values=["N"])  # fmt: skip
        return read.assign(count=pd.to_numeric(read["count"]))

    return Written(numeric(table, "count"), back)


@export("A mainframe: fields of fixed width, blanks in labels, empty fields", "dat")
def fixed_width(path: Path) -> Written:
    table = gaps(base(88), 88, "level")
    labels = {"Alpha": "NEW YORK", "Beta": "BOSTON", "Gamma": "SAN JOSE CA", "Delta": "EL PASO"}
    table["site"] = table["site"].map(labels)
    texts = spelled(table, {"amount": "{:.2f}".format, "day": "{:%Y%m%d}".format})
    lines = padded(texts.rename(columns=str.upper), [name.upper() for name in RIGHT])
    path.write_text("".join("  ".join(line) + "\n" for line in lines))
    widths = [len(cell) for cell in lines[0]]

    def back() -> pd.DataFrame:
        cells = cut(path.read_text().splitlines(), widths, 2)
        read = pd.DataFrame(cells[1:], columns=table.columns)
        return undone(read, numbers() | {"day": day_by("%Y%m%d")})

    return Written(numeric(table, "level"), back)


@export("FileMaker on an old Mac: sep=; above, carriage returns, decimal commas",
        knows={"--encoding": "mac-roman"})  # fmt: skip
def mac_sep_line(path: Path) -> Written:
    table = named(base(89, "Rouen Dijon Nîmes Pau"), "jour ville vente nombre part écart")
    forms = {"jour": lambda day: day.strftime("%d.%m.%Y"),
             **dict.fromkeys(["vente", "part", "écart"], comma)}  # fmt: skip
    undo = dict.fromkeys(["vente", "part", "écart"], european) | {"jour": day_by("%d.%m.%Y")}
    text = "sep=;\n" + text_of(spelled(table, forms), ";")
    path.write_bytes(text.replace("\n", "\r").encode("mac-roman"))

    def back() -> pd.DataFrame:
        read = path.read_bytes().decode("mac-roman").replace("\r", "\n").removeprefix("sep=;\n")
        return undone(cells_back(read, ";"), undo)

    return Written(table, back)


@export("A chromatograph: names, units below them, and comments with # between the rows", "txt")
def units_and_comments(path: Path) -> Written:
    table = named(base(90), "date column area peaks purity drift")
    names, *rows = text_of(spelled(table, {}), "\t").splitlines()
    lines = [names, "[UTC]\t[-]\t[mAU*s]\t[-]\t[-]\t[%]"]
    for k, row in enumerate(rows):
        if k % 80 == 40:
            lines.append(f"# calibration {k // 80 + 1} passed")
        lines.append(row)
    path.write_text("\n".join(lines) + "\n")

    def back() -> pd.DataFrame:
        read = path.read_text().splitlines()
        kept = [line for line in read if not line.startswith(("#", "["))]
        return undone(cells_back("\n".join(kept), "\t"), numbers(*table.columns[2:]))

    return Written(table, back)


@export("A DOS program of a Danish farm in cp850, packed by xz under the name .csv",
        knows={"--encoding": "cp850"})  # fmt: skip
def xz_cp850(path: Path) -> Written:
    table = named(base(91, "Århus Køge Ærø Odense"), "dato sted beløb antal andel afvigelse")
    forms = {"dato": lambda day: day.strftime("%d-%m-%Y"), "andel": comma, "afvigelse": comma,
             "beløb": lambda value: f"kr. {grouped(value, '.', ',')}"}  # fmt: skip
    undo = dict.fromkeys(["andel", "afvigelse"], european) | {"dato": day_by("%d-%m-%Y")}
    undo["beløb"] = lambda text: european(text.removeprefix("kr. "))
    delimited(path, table, forms, undo, ";", "cp850")
    path.write_bytes(lzma.compress(path.read_bytes()))

    def back() -> pd.DataFrame:
        return undone(cells_back(lzma.open(path).read().decode("cp850"), ";"), undo)

    return Written(table, back)


@export("A portal of a bank in Portugal: tabs in UTF-16 under the name .xls", "xls")
def utf16_xls(path: Path) -> Written:
    table = named(base(92, "Évora Braga Lisboa Faro"), "data balcão montante número taxa saldo")
    forms = {"data": lambda day: day.strftime("%d-%m-%Y"), "taxa": comma, "saldo": comma,
             "montante": lambda value: f"{grouped(value, ' ', ',')} EUR"}  # fmt: skip
    undo = dict.fromkeys(["montante", "taxa", "saldo"], european) | {"data": day_by("%d-%m-%Y")}
    return delimited(path, table, forms, undo, "\t", "utf-16")
