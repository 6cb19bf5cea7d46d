"""Files of measuring devices and of machines."""

import json
from dataclasses import replace

import numpy as np
from messy_files import GERMAN, Cells, File, Style, case, plain_rows
from messy_tables import sensors


@case(sensors)
def epoch_milliseconds(table, folder):
    """Points in time as milliseconds since 1970: a number or a date, both linear in time."""
    cells = Cells(table, Style())
    ms = table["time"].values.astype("datetime64[ms]").astype(np.int64)
    cells.columns["time"] = [str(value) for value in ms]
    as_number = table.put("time", kind="number", values=ms.astype(float))
    return cells.write(folder / "epoch.csv", also=(as_number,))


@case(sensors, "right")
def iso_times_with_zone(table, folder):
    """ISO 8601 with a zone."""
    style = Style(day="%Y-%m-%dT", time="%H:%M:%S+00:00")
    return Cells(table, style).write(folder / "zone.csv")


@case(sensors)
def iso_times_with_zones_in_winter_and_summer(table, folder):
    """Local times of Berlin around the change of clocks: the zone is part of the time."""
    start = np.datetime64("2026-03-28T00:00:00", "s")
    utc = start + 600 * np.arange(len(table))
    table = table.put("time", values=utc)
    cells = Cells(table, Style())
    summer = utc >= np.datetime64("2026-03-29T01:00:00", "s")
    local = utc + np.where(summer, 7200, 3600)
    cells.columns["time"] = [
        f"{text}+0{2 if late else 1}:00"
        for text, late in zip(local.astype(str), summer, strict=True)
    ]
    return cells.write(folder / "berlin.csv")


def _sentinel(table, folder, word):
    rows = plain_rows(table, 25)
    cells = Cells(table, Style()).put("temperature", dict.fromkeys(rows, word))
    return cells.write(folder / "sentinel.csv", said={"temperature": word})


@case(sensors, command=True)
def minus_9999_for_no_value(table, folder):
    """A number that means a missing value: unless that is stated, it extends the range."""
    return _sentinel(table, folder, "-9999")


@case(sensors)
def minus_999_for_no_value(table, folder):
    """The same with the digits of the other numbers: -999.00."""
    return _sentinel(table, folder, "-999.00")


@case(sensors)
def infinity_among_numbers(table, folder):
    """Infinities of both signs, in three spellings."""
    rows = plain_rows(table, 3)
    words = dict(zip(rows, ["Infinity", "-Infinity", "inf"], strict=True))
    cells = Cells(table, Style()).put("pressure", words)
    return cells.write(folder / "inf.csv", bad={"pressure": list(words.values())})


@case(sensors, "right")
def empty_and_constant_columns(table, folder):
    """A column without values, and a column with a single value."""
    n = len(table)
    table = table.added(
        replace(table["device"], name="note", kind="empty", values=np.array([None] * n, object)),
        replace(table["device"], name="unit", kind="constant", values=np.array(["C"] * n, object)),
    )
    return Cells(table, Style()).write(folder / "empty.csv")


@case(sensors)
def delimiter_at_the_end(table, folder):
    """A delimiter after every line, including the header: a last column without name and values."""
    cells = Cells(table, Style(";"))
    return cells.write(folder / "ende.csv", [line + ";" for line in cells.lines()])


@case(sensors)
def delimiter_at_the_end_of_rows_only(table, folder):
    """The same, except in the header: each row has one cell more than there are names."""
    cells = Cells(table, Style())
    head, *rows = cells.lines()
    return cells.write(folder / "rows.csv", [head, *(row + "," for row in rows)])


@case(sensors, command=True)
def no_header(table, folder):
    """The first line is a row."""
    names = [f"column {j + 1}" for j in range(len(table.columns))]
    cells = Cells(table.renamed(names), Style())
    return cells.write(folder / "bare.csv", cells.lines()[1:], above=None)


@case(sensors, "right")
def quoted_numbers(table, folder):
    """Every cell in quotes."""
    return Cells(table, Style(quoted=True)).write(folder / "quoted.csv")


@case(sensors, "right")
def german_device_with_tabs(table, folder):
    """Tabs, and the decimal comma of a German device."""
    style = replace(GERMAN, delimiter="\t", thousands="")
    return Cells(table, style).write(folder / "tabs.csv")


def _switch(table, folder, yes, no, style):
    on = np.random.default_rng(11).random(len(table)) < 0.7
    on = np.where(table.odd == 1, ~on, on)
    words = np.where(on, yes, no).astype(object)
    table = table.added(replace(table["device"], name="valid", kind="truth", values=words))
    return Cells(table, style).write(folder / "switch.csv")


@case(sensors, "right")
def yes_and_no_in_german(table, folder):
    """ja and nein."""
    return _switch(table, folder, "ja", "nein", Style(";"))


@case(sensors, "right")
def y_and_n(table, folder):
    """Y and N."""
    return _switch(table, folder, "Y", "N", Style())


@case(sensors, "right")
def one_and_zero(table, folder):
    """1 and 0 for yes and no."""
    return _switch(table, folder, "1", "0", Style())


@case(sensors, "right")
def true_and_false_in_capitals(table, folder):
    """TRUE and FALSE, as Excel writes them."""
    return _switch(table, folder, "TRUE", "FALSE", Style())


@case(sensors)
def json_lines_with_mixed_types(table, folder):
    """Numbers, numbers as texts, null, and a word, in one key."""
    gaps, words, quoted = np.array_split(plain_rows(table, 60), 3)
    table = table.without("humidity", [*gaps, *words])
    lines = []
    texts = [Style().texts(column) for column in table.columns]
    for i, row in enumerate(zip(*texts, strict=True)):
        record = dict(zip(table.names, row, strict=True))
        for name in ("temperature", "pressure", "vibration"):
            record[name] = float(record[name])
        value = record["humidity"]
        if i in words:
            record["humidity"] = "ERR"
        elif i not in quoted:
            record["humidity"] = float(value) if value else None
        lines.append(json.dumps(record))
    path = folder / "readings.jsonl"
    path.write_text("\n".join([*lines, ""]))
    return File(path, table, bad={"humidity": ["ERR"]})


@case(lambda: sensors(7_200))
def one_err_in_row_7000_of_7200(table, folder):
    """99.99% numbers: the fault is far below the head of the file."""
    cells = Cells(table, Style()).put("temperature", {6_999: "ERR"})
    return cells.write(folder / "err.csv", bad={"temperature": ["ERR"]})
