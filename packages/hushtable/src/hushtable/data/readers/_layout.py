"""How a file is laid out, where its reader should not find out by itself."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from hushtable.data.readers._unasked import Unasked
from hushtable.errors import UsageError


@dataclass(frozen=True)
class Layout:
    """Layout of a file or the like, as far as it is given; None: the reader finds out."""

    #: As Python names it, such as ``"cp1252"``.
    encoding: str | None = None
    #: One character between two fields.
    delimiter: str | None = None
    #: False: there is no line of names, and columns are called ``column 1``, ``column 2``, ...
    header: bool | None = None
    #: Lines above the line of names, or above the first row if there is none.
    skip_lines: int | None = None
    #: Name of a sheet.
    sheet: str | None = None
    #: Question to a database, in SQL.
    query: str | None = None
    #: Where nobody is here to be asked: the columns of a public schema.
    unasked: Unasked | None = None

    def check_used(self, used: Collection[str], source: str) -> None:
        """Raise `UsageError` if something is given that a source has no use for."""
        said = vars(self) | {"unasked": None}  # of use to all
        given = [name for name, value in said.items() if value is not None]
        if unused := [_OPTIONS.get(name, f"--{name}") for name in given if name not in used]:
            raise UsageError(f"{source} has no use for {', '.join(unused)}: leave it out")

    @property
    def kept(self) -> dict[str, str | int | bool]:
        """Entries that a model keeps for later files."""
        return {name: value for name in KEPT if (value := getattr(self, name)) is not None}

    def completed(self, kept: Mapping[str, str | int | bool], used: Collection[str]) -> "Layout":
        """Return this layout, completed by what a model kept and a source has a use for."""
        more = {name: kept[name] for name in kept if name in used and getattr(self, name) is None}
        return replace(self, **more)  # type: ignore[arg-type] # who read them checked


#: What a model keeps, and its kinds.
KEPT = {"encoding": str, "delimiter": str, "header": bool, "skip_lines": int, "sheet": str}
#: Where it is not the name with two hyphens, the option of the command line.
_OPTIONS = {"header": "--no-header", "skip_lines": "--skip-lines"}
