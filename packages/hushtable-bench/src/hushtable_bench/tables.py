"""Print Markdown tables, targets with a verdict, and the versions behind the figures."""

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from hushtable.audit.bounds import Finding


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]], text: int = 1) -> str:
    """Lay out a Markdown table; the first ``text`` columns are left-aligned, the rest right."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*cells, strict=True)]
    aligned = [
        [cell.ljust(w) if j < text else cell.rjust(w) for j, (cell, w) in enumerate(row)]
        for row in (zip(row, widths, strict=True) for row in cells)
    ]
    rule = ["-" * w if j < text else "-" * (w - 1) + ":" for j, w in enumerate(widths)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (aligned[0], rule, *aligned[1:]))


def spread(values: ArrayLike, form: str = ".1f") -> str:
    """Write a mean ± standard deviation, a dash for no values."""
    found = np.asarray(values)
    return f"{found.mean():{form}} ± {found.std():{form}}" if found.size else "-"


def judged(finding: Finding) -> tuple[str, str, str]:
    """Write a finding's bound on epsilon, the bound if the noise is Gaussian, and the verdict."""
    gaussian = "" if finding.gaussian_bound is None else f"{finding.gaussian_bound:.2f}"
    return f"{finding.lower_bound:.2f}", gaussian, "rejected" if finding.rejects else "stands"


@dataclass(frozen=True)
class Target:
    """A figure that the project promises, and what this run measured.

    ``needs`` is ``>=``, ``>`` or ``<=``; ``form`` is the format of both figures.
    """

    claim: str
    measured: float
    needs: str
    bound: float
    form: str = ".4f"

    @property
    def met(self) -> bool:
        """Whether the measured figure keeps the promise."""
        compare = {">=": np.greater_equal, ">": np.greater, "<=": np.less_equal}[self.needs]
        return bool(compare(self.measured, self.bound))


def print_targets(targets: Sequence[Target]) -> int:
    """Print each target with its verdict; return the exit code: 1 if one was missed."""
    rows = [
        (
            t.claim, f"{t.measured:{t.form}}", f"{t.needs} {t.bound:{t.form}}",
            "pass" if t.met else "FAIL",
        )
        for t in targets
    ]  # fmt: skip
    print("\n" + markdown_table(("Must show", "measured", "target", "verdict"), rows))
    return 0 if all(target.met for target in targets) else 1


def environment(packages: Sequence[str]) -> dict[str, str]:
    """Return what the figures depend on besides the code; ``packages`` besides our own."""
    return {
        "processor": f"{os.cpu_count()} cores, {_processor()}",
        "python": platform.python_version(),
        **{package: _version(package) for package in ("hushtable", *packages)},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def print_environment(packages: Sequence[str]) -> None:
    """Print what the figures depend on besides the code, in one line."""
    facts = ", ".join(f"{name} {value}" for name, value in environment(packages).items())
    print(f"\nMeasured with {facts}.")
