"""What databases and programs write: their words for nothing, their dates, their signs."""

from dataclasses import replace

import numpy as np
from messy_files import GERMAN, Cells, Style, case, plain_rows
from messy_tables import Column, date, labs, orders, payments, sensors


@case(sensors)
def null_of_mysql(table, folder):
    r"""\N for no value, as in exports of MySQL and PostgreSQL."""
    gaps = plain_rows(table, 40)
    return Cells(table.without("humidity", gaps), Style("\t", missing="\\N")).write(
        folder / "unload.csv", bad={"humidity": ["\\N"]}
    )


@case(sensors)
def null_in_words(table, folder):
    """(null) of one program and NULL of another."""
    gaps = plain_rows(table, 40)
    cells = Cells(table, Style())
    cells.put("humidity", dict.fromkeys(gaps[::2], "(null)"))
    cells.put("pressure", dict.fromkeys(gaps[1::2], "NULL"))
    return cells.write(folder / "null.csv", bad={"humidity": ["(null)"]})


@case(orders, "right")
def bars_between_cells(table, folder):
    return Cells(table, Style("|")).write(folder / "bars.csv")


@case(labs)
def decimal_commas_in_quotes(table, folder):
    """Decimal commas in a file with commas as delimiters: every number is in quotes."""
    style = Style(decimal=",", quoted=True)
    return Cells(table, style).write(folder / "quotes.csv", knows={"--decimal": ","})


@case(payments)
def currency_in_front(table, folder):
    """EUR 1.234,50 and €1.234,50."""
    cells = Cells(table, GERMAN).change("Betrag", "EUR {}".format).change("Saldo", "€{}".format)
    return cells.write(folder / "vorn.csv")


@case(payments)
def brackets_of_accountants(table, folder):
    """(12.00) for -12.00, without any currency."""
    cells = Cells(table, Style(thousands=","))
    cells.change("Betrag", lambda text: f"({text[1:]})" if text[0] == "-" else text)
    return cells.write(folder / "accounts.csv")


@case(payments)
def minus_of_typesetters(table, folder):
    """The minus sign U+2212, as in text copied from a page."""
    cells = Cells(table, Style())
    for name in ("Betrag", "Saldo"):
        cells.change(name, lambda text: text.replace("-", "\N{MINUS SIGN}"))
    return cells.write(folder / "minus.csv")


@case(orders)
def percent_in_german(table, folder):
    """48,6 % with a no-break space."""
    cells = Cells(table, replace(GERMAN, encoding="utf-8"))
    cells.change("discount", "{}\N{NO-BREAK SPACE}%".format)
    return cells.write(folder / "prozent.csv", also=(table.scaled("discount", 0.01),))


def _dates(table, folder, form, **fields):
    """Write the days of the orders in another form."""
    day = date("ordered", table["ordered"].values.astype("datetime64[D]"))
    cells = Cells(table.put("ordered", values=day.values), replace(Style(), day=form))
    return cells.write(folder / "dates.csv", **fields)


@case(orders)
def dates_with_names_of_months(table, folder):
    """15-May-2026."""
    return _dates(table, folder, "%d-%b-%Y")


@case(orders)
def dates_of_oracle(table, folder):
    """15-MAY-26."""
    made = _dates(table, folder, "%d-%b-%y")
    made.path.write_text(made.path.read_text().upper().replace("ORDERED", "ordered"))
    names = [name.upper() for name in table.names]
    names[table.names.index("ordered")] = "ordered"
    texts = made.table.map(
        lambda one: (
            one
            if one.kind not in ("id", "category")
            else replace(one, values=np.array([text.upper() for text in one.values], object))
        )
    )
    return replace(made, table=texts.renamed(names))


@case(orders)
def dates_without_signs(table, folder):
    """20260515: eight digits, which are not a number on a linear scale."""
    return _dates(table, folder, "%Y%m%d")


@case(orders)
def dates_with_slashes_year_first(table, folder):
    """2026/05/15."""
    return _dates(table, folder, "%Y/%m/%d")


@case(labs)
def no_date_of_sap(table, folder):
    """00.00.0000 for no date."""
    rows = plain_rows(table, 30)
    cells = Cells(table, GERMAN).put("Abnahme", dict.fromkeys(rows, "00.00.0000"))
    return cells.write(folder / "datum.csv", bad={"Abnahme": ["00.00.0000"]})


@case(sensors)
def exponents_with_a_comma(table, folder):
    """1,2345E+02, from a German instrument."""
    cells = Cells(table, replace(GERMAN, thousands=""))
    values = table["vibration"].values
    cells.columns["vibration"] = [f"{value:.6E}".replace(".", ",") for value in values]
    return cells.write(folder / "exponent.csv")


@case(sensors)
def comments_above(table, folder):
    """Lines with # above the header, as in files of instruments."""
    above = ["# Logger 7, firmware 2.1", "# interval: 600 s, zone: UTC", "#"]
    cells = Cells(table, Style())
    return cells.write(
        folder / "log.csv", [*above, *cells.lines()], above=3, knows={"--skip-lines": "3"}
    )


@case(sensors)
def note_at_the_end(table, folder):
    """A line of words below the rows."""
    cells = Cells(table, Style())
    lines = [*cells.lines(), "*** end of report ***"]
    return cells.write(
        folder / "report.csv",
        lines,
        table=table.with_empty_row(len(table)),
        also=(table,),
        below=1,
        strike=(len(lines),),
    )


@case(labs, "right")
def breaks_in_names_of_columns(table, folder):
    """Names with a unit in a second line, as typed in Excel's header."""
    table = table.renamed([f"{name}\n(wie gemessen)" for name in table.names])
    return Cells(table, replace(GERMAN, newline="\n")).write(folder / "namen.csv")


@case(labs)
def identifiers_protected_from_excel(table, folder):
    """="00123", with which programs prevent Excel from dropping zeros."""
    cells = Cells(table, Style()).change("Patient", '="{}"'.format)
    return cells.write(folder / "schutz.csv")


@case(sensors)
def times_of_day(table, folder):
    """A column of times such as 13:40:00: seconds, hours, or days, but not a category."""
    seconds = np.random.default_rng(18).integers(8 * 3600, 18 * 3600, len(table))
    seconds = np.where(table.odd == 1, 3 * 3600 + seconds % 600, seconds)
    clock = Column("clock", "clock", seconds.astype(float))
    cells = Cells(table, Style())
    cells.names.append("clock")
    cells.columns["clock"] = [f"{s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}" for s in seconds]
    hours, part = (table.added(clock).scaled("clock", 1 / unit) for unit in (3600, 86400))
    return cells.write(folder / "clock.csv", table=table.added(clock), also=(hours, part))


@case(sensors, "final")
def two_columns_of_one_name(table, folder):
    """Two sensors with the same name: refused, or distinguished."""
    cells = Cells(table, Style())
    cells.names[cells.names.index("humidity")] = "temperature"
    names = list(table.names)
    names[names.index("humidity")] = "temperature 2"
    return cells.write(folder / "twice.csv", table=table.renamed(names))
