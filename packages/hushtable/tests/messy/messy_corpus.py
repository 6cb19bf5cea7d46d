"""All cases, and what is judged; ``python -m tests.messy`` prints what becomes of each."""

import messy_bank
import messy_excel
import messy_hospital
import messy_programs
import messy_sensors
from messy_files import CASES, Case
from messy_judge import Readers, Verdict, judge

from hushtable import data

#: Modules that register cases.
MODULES = (messy_hospital, messy_bank, messy_excel, messy_sensors, messy_programs)


WORDS = {
    "right": "right",
    "any": "right, or refused with a remedy",
    "refused": "refused with a remedy",
    "final": "right, or refused for good",
}


def in_order() -> dict[str, Case]:
    """Return the cases in the order of the files, whatever was imported first."""
    modules = [module.__name__ for module in MODULES]

    def place(case: Case) -> tuple[int, int]:
        return modules.index(case.make.__module__), case.make.__code__.co_firstlineno

    return {case.name: case for case in sorted(CASES.values(), key=place)}


def listing() -> str:
    """Return the table of the cases for README.md: what each holds, and what must come of it."""
    lines = ["| case | what is in the file | must be |", "|---|---|---|"]
    for name, case in in_order().items():
        first, *_ = (case.make.__doc__ or "").split("\n")
        lines.append(f"| {name.replace('_', ' ')} | {first} | {WORDS[case.must]} |")
    return "\n".join(lines)


def readers() -> Readers:
    """Return the two functions that are judged."""
    return Readers(data.read, data.understand)


def verdict(case: Case, folder) -> Verdict:
    """Make the file of a case and judge what is read in it."""
    return judge(case, case.file(folder), readers())
