"""All cases, and what is judged; ``python -m tests.messy`` prints what becomes of each."""

import messy_bank
import messy_excel
import messy_hospital
import messy_sensors
from messy_files import Case
from messy_judge import Readers, Verdict, judge

from hushtable import data

#: Modules that register cases.
MODULES = (messy_hospital, messy_bank, messy_excel, messy_sensors)


def readers() -> Readers:
    """Return the two functions that are judged."""
    return Readers(data.read, data.understand)


def verdict(case: Case, folder) -> Verdict:
    """Make the file of a case and judge what is read in it."""
    return judge(case, case.file(folder), readers())
