"""Labels in several spellings, words for yes and no, totals, notes and footers."""

import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
from world_tables import (
    MAY_REFUSE,
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
    named,
    plain,
    spelled,
    text_of,
    undone,
)


def respelled(path: Path, table: pd.DataFrame, columns: dict, **fields) -> Written:
    """Write a table with other spellings of labels; each column has a writer and a reader."""
    written = table.assign(**{name: write for name, (write, _) in columns.items()})
    undo = {name: read for name, (_, read) in columns.items()}
    made = delimited(path, written, {}, undo, **fields)
    return Written(table, made.back)


@export("A Mac and a PC in Vietnam: labels composed and decomposed, blanks behind; 1.234.500 ₫")
def vietnamese_composed(path: Path) -> Written:
    table = named(base(61), "ngày nơi tiền số tỷ_lệ mức")
    places = dict(zip(["Alpha", "Beta", "Gamma", "Delta"],
                      ("Hà Nội", "Đà Nẵng", "Cần Thơ", "Huế"), strict=True))  # fmt: skip
    table["nơi"] = table["nơi"].map(places)
    table["tiền"] = (table["tiền"] * 1000).round()
    forms = ("NFC", ""), ("NFD", ""), ("NFC", " "), ("NFD", "\N{NO-BREAK SPACE}")
    written = [unicodedata.normalize(forms[k % 4][0], label) + forms[k % 4][1]
               for k, label in enumerate(table["nơi"])]  # fmt: skip
    numbers = {"tiền": lambda value: f"{grouped(value, '.', ',', 0)} ₫", "tỷ_lệ": comma,
               "mức": comma}  # fmt: skip
    undo = dict.fromkeys(numbers, european)
    undo["nơi"] = lambda text: unicodedata.normalize("NFC", text).strip()
    made = delimited(path, table.assign(nơi=written), numbers, undo, ";")
    return Written(table, made.back)


@export("Forms filled in by hand: Nord, NORD and nord")
def case_variants(path: Path) -> Written:
    table = base(62, "Nord Sud Est Ouest")
    change = (str, str.upper, str.lower, str)
    written = [change[k % 4](label) for k, label in enumerate(table["site"])]
    return respelled(path, table, {"site": (written, str.capitalize)})


@export("Two systems of a Swiss chain, one without accents: Zürich and Zurich")
def accents_dropped(path: Path) -> Written:
    table = base(63, "Zürich Genève Neuchâtel Délémont")
    bare = {unicodedata.normalize("NFD", name).encode("ascii", "ignore").decode(): name
            for name in table["site"].unique()}  # fmt: skip
    back = {name: text for text, name in bare.items()}
    written = [back[label] if k % 2 else label for k, label in enumerate(table["site"])]
    return respelled(path, table, {"site": (written, lambda text: bare.get(text, text))})


@export("A store in Minsk: codes typed on two keyboards, and ligatures from a PDF", must=MAY_REFUSE)
def lookalikes(path: Path) -> Written:
    table = base(64, "A1 B2 C3 E5")
    table["part"] = np.random.default_rng(64).choice(["filter", "office", "shaft"], len(table))
    cyrillic = str.maketrans("ABCE", "АВСЕ")
    codes = [label.translate(cyrillic) if k % 3 == 1 else label
             for k, label in enumerate(table["site"])]  # fmt: skip
    parts = [label.replace("ffi", "ﬃ").replace("fi", "ﬁ") if k % 2 else label
             for k, label in enumerate(table["part"])]  # fmt: skip
    latin = str.maketrans("АВСЕ", "ABCE")
    return respelled(path, table, {
        "site": (codes, lambda text: text.translate(latin)),
        "part": (parts, lambda text: unicodedata.normalize("NFKC", text)),
    })  # fmt: skip


@export("Two terminals in Osaka: ＡＢ１２ in full width and AB12")
def fullwidth_letters(path: Path) -> Written:
    table = base(65, "AB12 CD34 EF56 GH78")
    wide = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
    written = [label.translate(wide) if k % 2 else label for k, label in enumerate(table["site"])]
    column = (written, lambda text: unicodedata.normalize("NFKC", text))
    return respelled(path, table, {"site": column}, encoding="utf-8-sig")


ANSWERS = {
    "bezahlt": ("ja Ja JA J", "nein Nein NEIN N"),
    "payé": ("oui OUI Oui O", "non NON Non N"),
    "pagado": ("sí SI Sí S", "no NO No N"),
    "оплачено": ("да ДА Да Д", "нет НЕТ Нет Н"),
}


@export("A European survey: yes and no in four languages and spellings, and X or nothing for a box")
def yes_no_languages(path: Path) -> Written:
    table = base(66)
    drawn = {name: chance(66 + k) for k, name in enumerate([*ANSWERS, "box"])}
    rng = np.random.default_rng(66)
    written = table.copy()
    for name, (yes, no) in ANSWERS.items():
        words = yes.split(), no.split()
        written[name] = [words[not value][rng.integers(4)] for value in drawn[name]]
    written["box"] = np.where(drawn["box"], "X", None)

    def twin(pairs: dict, box: tuple) -> pd.DataFrame:
        columns = {name: np.where(drawn[name], *pair) for name, pair in pairs.items()}
        return table.assign(**columns, box=np.where(drawn["box"], *box))

    own = {name: (yes.split()[0], no.split()[0]) for name, (yes, no) in ANSWERS.items()}
    twins = [twin(pairs, box)
             for pair in (("yes", "no"), (True, False), None)
             for pairs in [dict.fromkeys(ANSWERS, pair) if pair else own]
             for box in (pair or ("yes", "no"), ("X", None))]  # fmt: skip
    yes_words = {word for yes, _ in ANSWERS.values() for word in yes.split()}
    undo = dict.fromkeys(ANSWERS, lambda text: "yes" if text in yes_words else "no")
    made = delimited(path, written, {}, undo)
    return Written(twins[0], lambda: made.back().assign(
        box=["yes" if cell == "X" else "no" for cell in made.back()["box"]]
    ), tuple(twins[1:]))  # fmt: skip


@export("Two exports put together: a mark and names in the middle, zero-width signs in labels",
        must=MAY_REFUSE)  # fmt: skip
def pasted_exports(path: Path) -> Written:
    table = base(67)
    first = text_of(spelled(table[:200], {}))
    hidden = {"site": lambda label: label[:2] + "\u200b" + label[2:] + "\u200d"}
    second = text_of(spelled(table[200:], hidden))
    path.write_text(f"\ufeff{first}\ufeff{second}", "utf-8")

    def back() -> pd.DataFrame:
        names, *lines = path.read_text("utf-8").replace("\ufeff", "").splitlines()
        kept = "\n".join([names, *(line for line in lines if line != names)])
        return undone(cells_back(kept.translate({0x200B: "", 0x200D: ""})), {})

    return Written(table, back)


@export("A Portuguese survey with a codebook: -9, -8, 77 and 88 for no answer",
        knows={"--missing": "-9,-8,77,88"})  # fmt: skip
def two_sentinels(path: Path) -> Written:
    table = base(68)
    table["level"] = table["level"].where(~table["level"].isin([-9, -8]), -7.9)
    written = table.copy()
    for k, (name, codes) in enumerate({"level": (-9, -8), "count": (77, 88)}.items()):
        gone = chance(70 + k, 0.16)
        code = np.where(chance(80 + k), *codes)
        written[name] = written[name].astype(object).where(~gone, code)
        table[name] = table[name].where(~gone)
    undo = {"level": lambda text: None if text in ("-9", "-8") else float(text),
            "count": lambda text: None if text in ("77", "88") else float(text)}  # fmt: skip
    made = delimited(path, written, {}, undo)
    return Written(table, made.back)


def spanish(seed: int) -> tuple[pd.DataFrame, dict, dict]:
    """Return a Spanish table with its labels first, and how it is written and read."""
    table = named(base(seed, "Norte Sur Este Oeste"), "fecha zona importe número cuota saldo")
    table = table[["zona", "fecha", "importe", "número", "cuota", "saldo"]]
    forms = {"fecha": lambda day: day.strftime("%d/%m/%Y"), "cuota": comma, "saldo": comma,
             "importe": lambda value: grouped(value, ".", ",")}  # fmt: skip
    undo = dict.fromkeys(["importe", "cuota", "saldo"], european) | {"fecha": day_by("%d/%m/%Y")}
    return table, forms, undo


@export("A pivot table in Spanish: Total general below, without a label in other columns")
def total_general(path: Path) -> Written:
    table, forms, undo = spanish(71)
    total = grouped(table["importe"].sum(), ".", ",")
    below = [f"Total general;;{total};{table['número'].sum()};;"]
    return delimited(path, table, forms, undo, ";", below=below)


@export("A report in Spanish: a line on thousands above, Fin del informe below",
        knows={"--encoding": "cp1252"})  # fmt: skip
def spanish_report(path: Path) -> Written:
    table, forms, undo = spanish(72)
    above = ["Informe de ventas;;;;;", "(importes en miles de euros);;;;;", ""]
    return delimited(path, table, forms, undo, ";", "cp1252", above, ["", "Fin del informe"])


@export("An accounting program: blocks of rows, each with its subtotal", must=MAY_REFUSE)
def subtotals(path: Path) -> Written:
    table = base(73).sort_values(["site", "day"], kind="stable", ignore_index=True)
    texts = spelled(table, {})
    names, *lines = text_of(texts).splitlines()
    out, at = [names], 0
    for site, block in table.groupby("site"):
        out += lines[at : at + len(block)]
        at += len(block)
        out.append(f",Subtotal {site},{block['amount'].sum():.2f},{block['count'].sum()},,")
    path.write_text("\n".join(out) + "\n")

    def back() -> pd.DataFrame:
        kept = [line for line in path.read_text().splitlines() if "Subtotal" not in line]
        return undone(cells_back("\n".join(kept)), dict.fromkeys(("amount", "count"), plain))

    return Written(table, back)


def sheet_back(path: Path, n: int) -> pd.DataFrame:
    """Read the names and the first n rows of a sheet."""
    return pd.read_excel(path, engine="calamine", nrows=n).assign(
        day=lambda read: [str(day)[:10] for day in read["day"]]
    )


def workbook(path: Path, table: pd.DataFrame, below: list[list]) -> None:
    """Write a sheet with dates of two formats, and rows below."""
    import xlsxwriter

    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet("Data")
        formats = [book.add_format({"num_format": form}) for form in ("yyyy-mm-dd", "dd.mm.yy")]
        sheet.write_row(0, 0, table.columns)
        for k, row in enumerate(table.itertuples(index=False), start=1):
            for j, value in enumerate(row):
                if j == 0:
                    sheet.write_datetime(k, 0, value, formats[k % 2])
                else:
                    sheet.write(k, j, value)
        for k, cells in enumerate(below, start=len(table) + 1):
            for j, value in enumerate(cells):
                if value is not None:
                    sheet.write(k, j, value)


@export("Excel in two offices: date cells of two formats in one column", "xlsx")
def xlsx_dates(path: Path) -> Written:
    table = base(74)
    workbook(path, table, [])
    return Written(table, lambda: sheet_back(path, len(table)))


@export("Excel with Alt and =: a sum below each column of numbers, and no label", "xlsx",
        must=MAY_REFUSE)  # fmt: skip
def sum_row(path: Path) -> Written:
    table = base(75)
    sums = [float(table[name].sum().round(3)) for name in table.columns[2:]]
    workbook(path, table, [[None, None, *sums]])
    return Written(table, lambda: sheet_back(path, len(table)))


@export("A workbook with a list of managers below the rows", "xlsx", must=MAY_REFUSE)
def second_table(path: Path) -> Written:
    table = base(76)
    managers = ("Alpha", "Ann"), ("Beta", "Bob"), ("Gamma", "Cy"), ("Delta", "Di")
    workbook(path, table, [[], [], ["Site", "Manager"], *map(list, managers)])
    return Written(table, lambda: sheet_back(path, len(table)))
