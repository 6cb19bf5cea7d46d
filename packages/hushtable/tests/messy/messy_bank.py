"""Statements of banks, lists of SAP, exports of shops."""

from dataclasses import replace

import numpy as np
from messy_files import FRENCH, GERMAN, US, Cells, Style, case, plain_rows
from messy_tables import date, days, number, orders, payments, texts


@case(payments, command=True)
def german_statement(table, folder):
    """Lines about the account above the header, and amounts with thousands dots."""
    above = [
        '"Kontonummer:";"DE44500105175407324931 / Girokonto"',
        "",
        '"Von:";"01.01.2026"',
        '"Bis:";"28.06.2026"',
        '"Kontostand vom 28.06.2026:";"81.204,17 EUR"',
        "",
    ]
    cells = Cells(table, replace(GERMAN, quoted=True))
    return cells.write(
        folder / "umsaetze.csv",
        [*above, *cells.lines()],
        above=len(above),
        knows={"--skip-lines": "6"},
    )


@case(payments)
def amounts_with_currency(table, folder):
    """Amounts as 1.234,50 EUR in one column and 1.234,50 € in another."""
    cells = Cells(table, GERMAN).change("Betrag", "{} EUR".format).change("Saldo", "{} €".format)
    return cells.write(folder / "betrag.csv")


@case(payments)
def sign_in_a_column_of_its_own(table, folder):
    """Amounts without a sign, and a column with S (debit) or H (credit)."""
    amount = table["Betrag"].values
    table = table.put("Betrag", values=np.abs(amount))
    table = table.added(texts("Soll/Haben", "category", np.where(amount < 0, "S", "H")))
    return Cells(table, replace(GERMAN, quoted=True)).write(folder / "soll.csv")


@case(payments, command=True)
def trailing_minus_of_sap(table, folder):
    """SAP writes the sign after the number: 12,50-."""

    def behind(text):
        return text[1:] + "-" if text.startswith("-") else text

    cells = Cells(table, GERMAN).change("Betrag", behind).change("Saldo", behind)
    return cells.write(folder / "sap.txt.csv")


@case(payments)
def list_of_sap(table, folder):
    """A printed list with bars, lines of dashes, and blanks that fill the columns."""
    table = table.pick("Buchungstag", "Art", "Betrag", "Saldo")
    cells = Cells(table, replace(GERMAN, delimiter="|"))
    rows = [cells.names, *cells.rows()]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = [False, False, True, True]
    body = [
        "|"
        + "|".join(
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(row, wide, right, strict=True)
        )
        + "|"
        for row in rows
    ]
    dashes = "-" * len(body[0])
    lines = [dashes, body[0], dashes, *body[1:], dashes]
    return cells.write(folder / "liste.txt.csv", lines, above=1, below=1, strike=(1, 3, len(lines)))


@case(payments)
def total_at_the_end(table, folder):
    """The sum of all rows below them: read as a row, it would extend every range."""
    cells = Cells(table, GERMAN)
    total = cells.style.number(float(table["Betrag"].values.sum() + 9e6), 2)
    lines = cells.lines()
    lines.append(f"Summe;;;;{total};{total};")
    return cells.write(
        folder / "summe.csv",
        lines,
        below=1,
        strike=(len(lines),),
        bad={"Buchungstag": ["Summe"]},
    )


@case(payments, "final")
def two_currencies(table, folder):
    """Euros and dollars in one column: no option makes them one number."""
    cells = Cells(table, Style())
    marks = ["EUR", "USD"]
    words = [f"{text} {marks[i % 3 == 0]}" for i, text in enumerate(cells.columns["Betrag"])]
    cells.columns["Betrag"] = words
    cells.columns["Währung"] = [""] * len(table)
    table = table.put("Währung", kind="empty", values=np.array([None] * len(table), object))
    return cells.write(folder / "waehrungen.csv", table=table, bad={"Betrag": words})


@case(orders, command=True)
def american_money(table, folder):
    """Money as $4,081.98, accounting brackets for negative amounts, percent, AM and PM."""
    cells = Cells(table, US).change("price", "${}".format).change("discount", "{}%".format)
    cells.change("margin", lambda text: f"(${text[1:]})" if text[0] == "-" else f"${text}")
    return cells.write(
        folder / "orders.csv",
        also=(table.scaled("discount", 0.01),),
        knows={"--dates": "mdy"},
    )


@case(orders)
def percent_among_numbers(table, folder):
    """Some shares as 48.6%, some as 48.6: the same, or a hundred times as much?"""
    rows = plain_rows(table, 150)
    cells = Cells(table, Style())
    column = cells.columns["discount"]
    for row in rows:
        column[row] += "%"
    lost = table.without("discount", rows)
    return cells.write(
        folder / "percent.csv",
        also=(lost,),
        bad={"discount": [column[row] for row in rows]},
        knows={"--as": "discount=number"},
    )


@case(orders)
def german_whole_thousands(table, folder):
    """Whole numbers with thousands dots: 987 and 1.234, which a machine reads as 1.2."""
    whole = np.round(table["price"].values * 3)
    table = table.put("price", values=whole, digits=0).pick("order", "quantity", "price", "country")
    style = replace(GERMAN, encoding="utf-8")
    return Cells(table, style).write(folder / "ganze.csv", knows={"--decimal": ","})


@case(orders)
def american_whole_thousands(table, folder):
    """Whole numbers with thousands commas: 987 and 1,234."""
    whole = np.round(table["price"].values * 3)
    table = table.put("price", values=whole, digits=0).pick("order", "quantity", "price", "country")
    return Cells(table, US).write(folder / "whole.csv", knows={"--decimal": "."})


@case(orders)
def swiss_apostrophes(table, folder):
    """Thousands apostrophes, as in Swiss systems."""
    style = Style(";", thousands="'", day="%d.%m.%Y")
    return Cells(table, style).write(folder / "schweiz.csv", knows={"--dates": "dmy"})


@case(orders)
def swiss_typographic_apostrophes(table, folder):
    """The same with the apostrophe that Windows has used since 2017."""
    style = Style(";", thousands="\N{RIGHT SINGLE QUOTATION MARK}", day="%d.%m.%Y")
    return Cells(table, style).write(folder / "schweiz.csv", knows={"--dates": "dmy"})


@case(orders)
def indian_lakhs(table, folder):
    """1,23,456.50: groups of two above the thousand."""
    table = table.put("price", values=number("price", table["price"].values * 100, 2).values)

    def grouped(text):
        whole, point, part = text.replace(",", "").partition(".")
        head, tail = whole[:-3], whole[-3:]
        groups = [head[max(0, i - 2) : i] for i in range(len(head), 0, -2)][::-1]
        return ",".join([*groups, tail]) + point + part

    cells = Cells(table, Style(thousands=",")).change("price", grouped)
    return cells.write(folder / "lakh.csv")


def _french(table, folder, mark, encoding="utf-8"):
    table = table.put("country", values=np.array([f"pays {t}" for t in table["country"].values]))
    style = replace(FRENCH, thousands=mark, encoding=encoding)
    gaps = plain_rows(table, 11)
    cells = Cells(table.without("margin", gaps), style)
    return cells.write(folder / "ventes.csv", bad={"margin": ["n.d."]}, knows={"--dates": "dmy"})


@case(orders)
def french_blanks(table, folder):
    """Thousands blanks, decimal commas, and n.d. for no value."""
    return _french(table, folder, " ")


@case(orders)
def french_hard_blanks(table, folder):
    """The same with no-break spaces, in cp1252."""
    return _french(table, folder, "\N{NO-BREAK SPACE}", "cp1252")


@case(orders)
def french_narrow_blanks(table, folder):
    """The same with narrow no-break spaces, as in French Excel."""
    return _french(table, folder, "\N{NARROW NO-BREAK SPACE}")


def _days_in_doubt(table):
    """Give every row a day up to the twelfth."""
    rng = np.random.default_rng(8)
    return table.put("ordered", values=date("ordered", days(rng, len(table), True)).values)


@case(orders, "refused", command=True)
def day_or_month_first(table, folder):
    """No day above 12: only a person knows the order."""
    style = Style(day="%d/%m/%Y")
    cells = Cells(_days_in_doubt(table), style)
    return cells.write(folder / "tage.csv", knows={"--dates": "dmy"})


@case(orders, "refused")
def month_or_day_first(table, folder):
    """The same in American order, with the month first."""
    style = Style(day="%m/%d/%Y")
    cells = Cells(_days_in_doubt(table), style)
    return cells.write(folder / "months.csv", knows={"--dates": "mdy"})


@case(orders, "final")
def two_orders_of_dates(table, folder):
    """Days first in one office, months first in the other: no single order fits."""
    ordered = table["ordered"].values.astype("datetime64[D]")
    cells = Cells(table.put("ordered", values=ordered.astype("datetime64[s]")), Style())
    written = [day.strftime("%d/%m/%Y" if i % 2 else "%m/%d/%Y") for i, day in
               enumerate(ordered.tolist())]  # fmt: skip
    cells.columns["ordered"] = written
    return cells.write(folder / "zwei.csv", bad={"ordered": written})


@case(orders, "refused")
def thousands_or_decimals_with_a_comma(table, folder):
    """1,234 throughout, and no other number with a mark: thousands, or a fraction?"""
    kilos = np.random.default_rng(9).integers(1000, 9999, len(table)) * 1.0
    kilos = np.where(table.odd == 1, 95_000 + kilos, kilos)
    table = table.pick("order", "quantity", "country").added(number("weight", kilos))
    return Cells(table, Style(";", thousands=",")).write(
        folder / "komma.csv", knows={"--decimal": "."}
    )


@case(orders, "refused")
def thousands_or_decimals_with_a_dot(table, folder):
    """1.234 throughout, where decimals could have a comma."""
    kilos = np.random.default_rng(9).integers(1000, 9999, len(table)) * 1.0
    kilos = np.where(table.odd == 1, 95_000 + kilos, kilos)
    table = table.pick("order", "quantity", "country").added(number("weight", kilos))
    return Cells(table, Style(";", ",", ".")).write(folder / "punkt.csv", knows={"--decimal": ","})


@case(orders)
def zip_codes(table, folder):
    """Digits with leading zeros that denote places."""
    rng = np.random.default_rng(10)
    codes = np.char.zfill((rng.integers(1, 99, len(table)) * 1009).astype(str), 5)
    table = table.added(texts("PLZ", "code", codes))
    return Cells(table, Style(";")).write(folder / "plz.csv")
