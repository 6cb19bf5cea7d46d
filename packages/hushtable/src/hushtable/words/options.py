"""Options that state how rows are read, as a person types them: in a shell, or in Python.

An option is a field of `hushtable.data.options.RowOptions` and a value of it, such as
``("missing", "pain:999")``, ``("as", "x=number")`` or ``("decimal", ",")``. A page offers buttons
for the same pairs.
"""

import csv
import io
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from hushtable.errors import OPTION, HushTableError, added, argument, speaks_shell
from hushtable.language import N_, _, ngettext, numeral

Option: TypeAlias = tuple[str, str]

#: Fields with a single value. Several options of one are alternatives: only a person knows which.
_SINGLE = ("decimal", "dates", "skip_lines", "skip_below")
#: Those among them that have an option of their own, besides `--read`.
_OWN = ("decimal", "dates")
#: Fields with several values, and what stands for a value in a sentence.
_LISTS = ("missing", "as", "drop")
_NO_VALUES = ("NAME", "SIGN", "N", "...")
_on_page = ContextVar("hushtable_on_page", default=False)
#: What the buttons of a page say.
_BUTTONS = {
    ("as", "number"): N_("read as numbers"),
    ("as", "date"): N_("read as dates"),
    ("as", "category"): N_("read as categories"),
    ("as", "label"): N_("one label in several spellings"),
    ("as", "id"): N_("it identifies rows"),
    ("decimal", ","): N_("the comma is the decimal sign"),
    ("decimal", "."): N_("the point is the decimal sign"),
    ("dates", "dmy"): N_("day, month, year"),
    ("dates", "mdy"): N_("month, day, year"),
    ("dates", "ymd"): N_("year, month, day"),
    ("no_header", "true"): N_("the first line is a row"),
    ("skip_lines", "0"): N_("the first line contains the column names"),
    ("skip_below", "0"): N_("all lines below the names are rows"),
    ("skip_footer", "0"): N_("all lines are rows"),
    ("delimiter", ""): N_("each line is one field"),
    ("delimiter", " "): N_("blanks separate the fields"),
}
#: What a page calls an option without a value.
_FIELDS = {
    "delimiter": N_("Field separator"),
    "encoding": N_("Encoding"),
    "member": N_("Part of the file"),
    "sheet": N_("Sheet"),
    "skip_below": N_("Lines below the names that are not rows"),
    "skip_footer": N_("Lines at the end that are not rows"),
    "skip_lines": N_("Lines above the header"),
}


@contextmanager
def on_page() -> Iterator[None]:
    """Let sentences name the buttons of a page, and not what is typed."""
    token = _on_page.set(True)
    try:
        yield
    finally:
        _on_page.reset(token)


def button_words(option: Option) -> str:
    """Return the text of the button for an option."""
    field, value = option
    if field == "missing":
        return _("“%(text)s” stands for a missing value", text=value)
    if field == "drop":
        return _("leave it out")
    if text := _BUTTONS.get((field, value.rpartition("=")[2])):
        return _(text)
    if field == "skip_lines":
        return _("the table begins in line %(n)s", n=numeral(int(value) + 1))
    if field == "skip_below":
        return ngettext(
            "leave out the line below the names", "leave out %(n)s lines below the names",
            int(value),
        )  # fmt: skip
    if field == "skip_footer":
        return ngettext("leave out the last line", "leave out the last %(n)s lines", int(value))
    if field == "delimiter":
        return _("“%(text)s” separates the fields", text=value)
    return f"{_(_FIELDS[field])}: {value}" if field in _FIELDS else f"{field}: {value}"


def with_buttons(error: HushTableError) -> tuple[str, tuple[Option, ...]]:
    """Return a refusal with the names of buttons in the place of options, and these options."""
    sentence, _add, typed = str(error.args[0]).partition("\nAdd: ")
    options: dict[Option, None] = {}
    for name, value in added(typed):
        for item in next(csv.reader([value])) if name in _LISTS else [value]:
            options[name, item] = None

    def button(match: re.Match[str]) -> str:
        name = match[1] or match[3] or match[5]
        value = (match[2] or match[4] or match[6] or "").strip("'")
        if value in _NO_VALUES or (not value and name != "delimiter"):
            return _("“%(text)s”", text=_(_FIELDS[name])) if name in _FIELDS else name
        options[name, value] = None
        return _("“%(text)s”", text=button_words((name, value)))

    sentence = OPTION.sub(button, sentence)
    sentence = sentence.replace("Add “", "Choose “").replace(" add “", " choose “")
    return sentence, tuple(options)


def typed_options(options: Iterable[Option], before: Iterable[Option] = ()) -> str:
    """Return options as they are typed, the values of each field together.

    Values that a person gave ``before`` for the same fields come first. Alternatives are separated
    by a slash, which hushtable refuses.
    """
    options = list(dict.fromkeys(options))
    fields = dict.fromkeys(field for field, _ in options)
    together: dict[str, list[str]] = {field: [] for field in fields}
    for field, value in dict.fromkeys([*before, *options]):
        if field in fields:
            together[field].append(value)
    if _on_page.get():
        return ", ".join(_("“%(text)s”", text=button_words(option)) for option in options)
    for field in together.keys() & {*_SINGLE}:
        together[field] = ["/".join(sorted(together[field], reverse=field == "decimal"))]
    if speaks_shell():
        return " ".join(_in_shell(field, values) for field, values in together.items())
    return ", ".join(argument(field, values) for field, values in together.items())


def way(options: Iterable[Option], before: Iterable[Option] = ()) -> str:
    """Return the last line of a message: what to add to a command, or to a call; empty if nothing.

    ``before`` are options that a person gave already.
    """
    if not (typed := typed_options(options, before)):
        return ""
    if speaks_shell():
        return f"\nAdd: {typed}"
    return f"\nIn Python: hushtable.data.read(data, {typed})"


def _in_shell(field: str, values: list[str]) -> str:
    if field in _SINGLE:
        return f"--{field} {values[0]}" if field in _OWN else f"--read {field}={values[0]}"
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    value = line.getvalue().removesuffix("\n")
    value = shlex.quote(value) if os.name == "posix" else subprocess.list2cmdline([value])
    return f"--{field} {value}"
