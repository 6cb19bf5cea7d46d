"""The forecast of ``hushtable round book``: as a table, for machines, and as a picture."""

from pathlib import Path
from typing import Any

from hushtable import files
from hushtable.cli.output import Target, print_table, shown
from hushtable.errors import MissingExtraError, UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy.accounting import rounded_up
from hushtable_federation.book.book import Book
from hushtable_federation.outlook import Outlook, forecast, last_rows, totals
from hushtable_federation.round import Round

#: Kinds of pictures, by the end of their names.
_PICTURES = (".pdf", ".png", ".svg")


class Forecast:
    """Costs of further rounds about some rows; ``path`` is that of a round or plan."""

    def __init__(self, notes: Book, path: Path | None, data_set: str | None) -> None:
        self.cap, self.delta = notes.epsilon, notes.delta
        self.data_set = last_rows(notes) if data_set is None else data_set
        self.lines = forecast(notes, None if path is None else _asked(path), self.data_set)
        self.spent = totals(notes, self.data_set)

    def facts(self) -> dict[str, Any]:
        """Return it as machines read it."""
        return {"data_set": self.data_set, "rounds": [self._facts(one) for one in self.lines]}

    def _facts(self, one: Outlook) -> dict[str, Any]:
        names = ("kind", "what", "epsilon", "allowed", "why_not")
        said = {name: getattr(one, name) for name in names}
        return said | {"of_cap": one.epsilon / self.cap, "how_many": one.more}

    def show(self) -> None:
        """Print it as a table."""
        now = self.spent[-1] if self.spent else 0.0
        print(
            f"Forecast for {shown(self.data_set)}: "
            f"epsilon {rounded_up(now):g} of {self.cap:g} is spent.\n"
        )
        rows = [
            [
                one.what,
                "yes" if one.allowed else f"no: {one.why_not}",
                f"{rounded_up(one.epsilon):g}",
                f"{rounded_up(100.0 * one.epsilon / self.cap):g}%",
                "no limit" if one.more is None else f"{one.more:,}",
            ]
            for one in self.lines
        ]
        print_table(["what", "allowed", "epsilon after", "of the cap", "how many"], rows, left=2)

    def draw(self, target: Target) -> None:
        """Draw what was spent, and the first line's course."""
        try:
            from matplotlib.figure import Figure  # of an extra
        except ImportError:
            raise MissingExtraError("--plot", "matplotlib", "report") from None
        from hushtable.plots import BudgetDisplay  # loads NumPy alone

        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        course = self.lines[0].course
        BudgetDisplay.from_values(self.spent, cap=self.cap, course=course, ax=figure.subplots())
        with target.writing(), files.replacing(target.path) as file:
            figure.savefig(file, format=target.path.suffix[1:].lower(), dpi=150)


def picture(path: Path | None, inputs: list[Path | None]) -> Target | None:
    """Return where the picture goes, if one is asked for; refused early if it cannot be."""
    if path is None:
        return None
    if path.suffix.lower() not in _PICTURES:
        raise UsageError(f"--plot {path}: needs a name that ends in {', '.join(_PICTURES)}")
    return Target(path, inputs)


def _asked(path: Path) -> Round | Plan:
    content = files.read(path).expect("round", "plan")
    if content.kind == "round":
        return Round.from_bytes(path.read_bytes(), path)
    return content.build(Plan.from_file)
