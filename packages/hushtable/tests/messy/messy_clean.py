"""Clean files of many habits: nothing is to be asked, and nothing to be said.

A false alarm is a fault, too: anyone who sees many stops reading them.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from messy_excel import Workbook
from messy_files import Case, Cells, File, Maker, Style
from messy_tables import N_ROWS, Table, labs, number, orders, payments, sensors, texts

CLEAN: dict[str, Case] = {}


def clean(make: Maker) -> Maker:
    """Register the function below as a clean file."""
    CLEAN[make.__name__] = Case(make.__name__, make, labs, "right")
    return make


def survey() -> Table:
    """Answers in words, and some as numbers from 1 to 5."""
    rng = np.random.default_rng(12)
    n, words = N_ROWS, ["never", "rarely", "sometimes", "often"]
    columns = [texts(f"question {j}", "category", rng.choice(words, n)) for j in range(4)]
    columns += [number(f"score {j}", rng.integers(1, 6, n)) for j in range(3)]
    return Table(tuple(columns), (rng.random(n) < 0.02) * 1.0)


@clean
def categories_only(table, folder):
    table = survey().pick(*(f"question {j}" for j in range(4)))
    return Cells(table, Style()).write(folder / "categories.csv")


@clean
def answers_from_1_to_5(table, folder):
    return Cells(survey(), Style()).write(folder / "answers.csv")


@clean
def identifiers_dropped(table, folder):
    cells = Cells(table, Style())
    return cells.write(folder / "labs.csv", given=("--drop", "Patient"))


@clean
def iso_dates(table, folder):
    return Cells(table.pick("Abnahme", "Alter", "Kalium"), Style()).write(folder / "dates.csv")


@clean
def iso_times(table, folder):
    style = Style(time="T%H:%M:%S", day="%Y-%m-%d")
    return Cells(sensors(), style).write(folder / "times.csv")


@clean
def true_and_false(table, folder):
    words = np.where(np.arange(len(table)) % 3 == 0, "true", "false").astype(object)
    column = replace(table["Station"], name="smoker", kind="truth", values=words)
    table = table.pick("Alter", "TSH", "Station").added(column)
    return Cells(table, Style()).write(folder / "truth.csv")


@clean
def semicolons_and_decimal_dots(table, folder):
    return Cells(sensors(), Style(";")).write(folder / "semicolons.csv")


@clean
def tabs(table, folder):
    return Cells(sensors(), Style("\t")).write(folder / "tabs.csv")


@clean
def three_digits_behind_the_dot(table, folder):
    """As instruments write them: no thousands."""
    rng = np.random.default_rng(13)
    columns = [number(name, rng.gamma(3, 2, len(table)), 3) for name in ("mass", "length")]
    table = Table((*columns, table["Alter"]), table.odd)
    return Cells(table, Style()).write(folder / "three.csv")


@clean
def shortest_numbers(table, folder):
    """Zeros at the end left out, exponents: what a program prints."""
    rng = np.random.default_rng(14)
    small = number("p", 10 ** rng.uniform(-7, 0, len(table)), 9)
    table = Table((small, number("x", rng.normal(size=len(table)), 4)), table.odd)
    cells = Cells(table, Style())
    for name in table.names:
        cells.columns[name] = [str(value) for value in table[name].values.tolist()]
    return cells.write(folder / "shortest.csv")


@clean
def usual_words_for_nothing(table, folder):
    table = table.pick("Alter", "Kalium", "TSH", "Größe", "Station")
    return Cells(table, Style(missing="NA")).write(folder / "na.csv")


@clean
def codes_of_diseases(table, folder):
    codes = np.random.default_rng(15).choice(["E11.9", "I10", "J18.1", "K35.8", "M54.5"], 600)
    table = table.pick("Alter", "TSH").added(texts("ICD", "category", codes))
    return Cells(table, Style()).write(folder / "icd.csv")


@clean
def counts_with_many_zeros(table, folder):
    counts = np.random.default_rng(16).negative_binomial(1, 0.3, len(table))
    table = table.pick("Alter", "Kalium").added(number("visits", np.maximum(counts - 2, 0)))
    return Cells(table, Style()).write(folder / "counts.csv")


@clean
def money_with_cents(table, folder):
    table = payments().pick("Art", "Betrag", "Saldo")
    return Cells(table, Style()).write(folder / "money.csv")


@clean
def parquet(table, folder):
    table = orders().pick("ordered", "quantity", "price", "country")
    path = folder / "orders.parquet"
    pd.DataFrame({one.name: one.values for one in table.columns}).to_parquet(path)
    return File(path, table)


@clean
def a_sheet(table, folder):
    table = table.pick("Alter", "Kalium", "TSH", "Station", "Abnahme")
    return Workbook(folder / "sheet.xlsx").write(table).file(table)
