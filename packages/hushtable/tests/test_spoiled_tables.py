"""Random tables, each spoiled in a known way: no option that a message proposes does harm.

The owner of a table types what messages propose until none is left. Then, each column that is still
there has to hold the values of the clean table: none changed, none invented, none lost, no row more
or less, and the same names.
"""

import csv
import io
import re
import shlex

import numpy as np
import pyarrow as pa
import pytest

from hushtable.data import read
from hushtable.data.typed import typed
from hushtable.data.understanding import schema_from_data
from hushtable.errors import DataError

pytestmark = pytest.mark.usefixtures("shell")  # messages name options

#: Times that an owner obeys a message before giving up.
MOST_STEPS = 6
FLAGS = {"--missing": "missing", "--as": "kinds", "--drop": "drop", "--decimal": "decimal",
         "--dates": "dates"}  # fmt: skip


class Table:
    """Lines of a file, and the columns that its owner means."""

    def __init__(self, rng):
        self.rng, self.n, self.sep = rng, int(rng.integers(40, 120)), str(rng.choice([",", ";"]))
        self.names = ["place", "pulse", "level"]
        whole = rng.integers(50, 110, self.n)
        self.truth = [
            [str(rng.choice(["north", "south", "west"])) for _ in range(self.n)],
            [float(x) for x in whole],
            [float(x) for x in rng.normal(20.3, 4.0, self.n).round(2)],
        ]
        places, pulses, levels = self.truth
        self.texts = [places[:], [f"{x:.0f}" for x in pulses], [f"{x:.2f}" for x in levels]]
        self.above, self.below = [], []

    def some(self, share=0.1):
        """Return the numbers of some rows."""
        size = max(1, int(share * self.n))
        return self.rng.choice(self.n, size, replace=False).tolist()

    def put(self, j, rows, text, value=None):
        for i in rows:
            self.texts[j][i], self.truth[j][i] = text, value

    @property
    def content(self):
        rows = [self.names, *self.above, *zip(*self.texts, strict=True), *self.below]
        file = io.StringIO()
        csv.writer(file, delimiter=self.sep, lineterminator="\n").writerows(rows)
        return file.getvalue()


def words(table):
    table.put(1, table.some(), str(table.rng.choice(["ERR", "n.d.", "?", "k.A.", "-"])))


def marks_everywhere(table):
    words(table)
    table.put(2, table.some(), "?")


def marks_in_the_first_row(table):
    table.put(1, [0, *table.some()], "-")
    table.put(2, [0, *table.some()], "n.d.")


def a_code_of_one_column(table):
    table.put(2, table.some(), "99")
    table.texts[1][5], table.truth[1][5] = "99", 99.0


def a_far_code(table):
    table.put(2, table.some(0.02), "-999")


def decimal_commas(table):
    table.texts[2] = [text.replace(".", ",") for text in table.texts[2]]


def two_scales(table):
    table.texts[2] = [text.replace(".", ",") for text in table.texts[2]]
    table.texts[2][3], table.truth[2][3] = "1,066,000", 1066.0


def brackets(table):
    for i in table.some():
        table.texts[1][i] = f"({table.texts[1][i]})"


def wells(table):
    table.texts[1] = [f"{1 + i % 8}E{1 + i % 5}" for i in range(table.n)]
    table.truth[1] = table.texts[1][:]


def units_row(table):
    table.above = [["", "1/min", "mmol/l"]]


def names_again(table):
    for texts, values, name in zip(table.texts, table.truth, table.names, strict=True):
        texts.insert(9, name)
        del values[9:9]


def a_footer(table):
    table.below = [["Rows: 40", "", ""]]


def a_total(table):
    table.below = [["Total", f"{sum(table.truth[1]):.0f}", f"{sum(table.truth[2]):.2f}"]]


def a_title(table):
    table.above = [table.names]
    table.names = ["Export", "of", "today"]


def accounting_dashes(table):
    table.put(2, table.some(0.7), "-", 0.0)


def quarters(table):
    table.texts[2] = [f"Q{1 + i % 4} {2000 + i % 9}" for i in range(table.n)]
    table.truth[2] = table.texts[2][:]


def units_in_some(table):
    for i in table.some():
        table.texts[2][i] = f"{table.truth[2][i] * 1000:.0f} g"


def limits(table):
    table.put(2, table.some(), "<5", 5.0)


def names_above_codes(table):
    table.names[0] = "N2"
    table.texts[0] = [f"IT{i % 6}" for i in range(table.n)]
    table.truth[0] = table.texts[0][:]


SPOILS = (words, marks_everywhere, marks_in_the_first_row, a_code_of_one_column, a_far_code,
          decimal_commas, two_scales, brackets, wells, units_row, names_again, a_footer, a_total,
          a_title, accounting_dashes, quarters, units_in_some, limits,
          names_above_codes)  # fmt: skip


def proposed(message):
    """Return the options of the last line that proposes some, as `read` takes them."""
    found = re.search(r"\nAdd: (.*)$", message)
    options, flag = {}, ""
    for word in shlex.split(found[1]) if found else ():
        if word in FLAGS:
            flag = FLAGS[word]
            options[flag] = []
        elif word == "--read":
            flag = word
        elif flag == "--read":
            name, value = word.split("=", 1)
            options["header" if name == "no_header" else name] = (
                False if name == "no_header" else value
            )
        elif flag:
            options[flag] = [*options[flag], *next(csv.reader([word]))]
    for flag, values in options.items():
        if flag == "kinds":
            options[flag] = dict(value.rsplit("=", 1) for value in values)
        elif flag.startswith("skip"):
            options[flag] = int(values)
        elif flag in ("decimal", "dates"):
            options[flag] = values[0].split("/")[0]
    return options


def obeyed(path):
    """Read a file, typing what messages propose; None if nothing more is proposed."""
    options = {}
    for _ in range(MOST_STEPS):
        try:
            rows = read(str(path), **options)
            inferred = schema_from_data(rows)
        except DataError as error:
            more = proposed(str(error))
            if not more or {**options, **more} == options:
                return None
            for name, value in more.items():
                if isinstance(value, list):
                    value = [*options.get(name, []), *value]
                elif isinstance(value, dict):
                    value = {**options.get(name, {}), **value}
                options[name] = value
            continue
        asked = [o for c in inferred.columns if c.asked and c.reading for o in c.options]
        codes = [value for field, value in asked if field == "missing"]
        if codes and not set(codes) <= set(options.get("missing", [])):
            options["missing"] = [*options.get("missing", []), *codes]
            continue
        table = pa.Table.from_batches(typed(rows, None, inferred.reading).read())
        return {name: table.column(name).to_pylist() for name in table.column_names}
    return None


def harm(table, found):
    """Describe the first value that is not the owner's; empty if there is none."""
    names = table.above[0] if table.above and "place" in table.above[0] else table.names
    if not set(found) <= set(names):
        return f"names {[*found]}"
    for name, values in zip(names, table.truth, strict=True):
        there = found.get(name)
        if there is None:
            continue
        if len(there) != len(values):
            return f"{len(there)} rows for {len(values)}"
        for i, (mine, own) in enumerate(zip(there, values, strict=True)):
            same = mine == own or (isinstance(mine, float) and np.isclose(mine, float(own or 0)))
            if not same and not (mine is None and own is None):
                return f"{name}: {mine!r} for {own!r} in row {i}"
    return ""


@pytest.mark.parametrize("n", [150, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_proposed_option_does_harm(n, tmp_path):
    path, harmed = tmp_path / "t.csv", []
    for seed in range(n):
        spoil = SPOILS[seed % len(SPOILS)]
        table = Table(np.random.default_rng(seed))
        spoil(table)
        path.write_text(table.content, "utf-8")
        found = obeyed(path)
        if found is not None and (what := harm(table, found)):
            harmed.append((spoil.__name__, seed, what))
    assert not harmed, (len(harmed), harmed[:5])
