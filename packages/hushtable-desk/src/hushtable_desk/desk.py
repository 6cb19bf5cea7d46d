"""A desk: the open folder, the tables opened from it, and the pages of both."""

import os
import re
import threading
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

import hushtable
from hushtable import plugins
from hushtable.errors import PluginError, UsageError
from hushtable.language import LANGUAGES, numeral, numerals, percents, spoken
from hushtable_desk.folder import Folder, key_of
from hushtable_desk.language import WORDS
from hushtable_desk.tables import Table

#: Options of the command line in brackets; the desk has buttons instead.
_OPTIONS = re.compile(r" \((?:[^()]*--[^()]*|\w+ (?:-\w+|x))\)|, for example in Python: .*")


@cache
def _pages(language: str) -> Environment:
    """Return the templates with their texts in a language."""
    pages = Environment(
        loader=PackageLoader("hushtable_desk"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    pages.policies["ext.i18n.trimmed"] = True
    pages.install_gettext_translations(WORDS.translations(language), newstyle=True)  # type: ignore[attr-defined] # of the extension
    return pages


class Desk:
    """A folder of tables and models, and all work on it by the people at one browser.

    Parameters
    ----------
    folder : path
        The folder; the desk reads and writes nothing outside it.

    Attributes
    ----------
    folder : Folder
    who : str
        Name of the person who is judging, for the log of verdicts.
    language : str
        Code of the language of the pages; empty until someone chooses one.

    Raises
    ------
    UsageError
        If there is no such folder.
    FileError
        If this account may not read it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hushtable_desk import Desk
    >>> _ = Path("patients.csv").write_bytes(b"age,pulse")
    >>> [table.name for table in Desk(".").folder.tables]
    ['patients.csv']
    """

    def __init__(self, folder: str | Path, who: str = "") -> None:
        self.folder = Folder(Path(folder))
        self.who, self.language = who, ""
        self._tables: dict[str, Table] = {}
        self._lock = threading.Lock()

    def table(self, key: str) -> Table:
        """Return a table by the key of its name; open it if it is not open yet.

        Raises `UsageError` if no file of the folder has that name.
        """
        with self._lock:
            if key not in self._tables:
                entry = self.folder.by_key(key)
                if entry is None:
                    raise UsageError("this table is no longer in the folder")
                self._tables[key] = Table(self.folder, entry.name)
            self._tables[key].who = self.who
            return self._tables[key]

    def open(self, name: str, model: Path | None = None) -> str:
        """Open a table of the folder, and return the address of its page.

        If ``model`` names a file of the folder, that model scores the rows.
        """
        self.folder.file(name)
        table = self.table(key_of(name))
        if model is None:
            return f"/t/{table.key}/rows" if table.model else f"/t/{table.key}"
        if model.resolve().parent != self.folder.path:
            raise UsageError(f"{model}: the model is not in the folder of the table: copy it there")
        table.use(model.name)
        return f"/t/{table.key}/rows"

    def without_path(self, words: str) -> str:
        """Return a sentence without the folder's path and without options of the command line."""
        return _OPTIONS.sub("", words.replace(f"{self.folder.path}{os.sep}", ""))

    @property
    def has_rounds(self) -> bool:
        """Whether the package of rounds is installed."""
        try:
            return "round" in plugins.points(plugins.COMMANDS)
        except PluginError:
            return False

    def close(self) -> None:
        """Release all logs."""
        for table in list(self._tables.values()):  # another request may open one
            table.close()

    def text(self, request: Request, name: str, **context: Any) -> str:
        """Return a template with its texts in the language of now."""
        known = {
            "desk": self, "language": spoken(), "languages": LANGUAGES, "path": request.url.path,
            "version": hushtable.__version__, "local": self.without_path, "numeral": numeral,
            "numerals": numerals, "percents": percents, "table": None, "here": "", "apart": "",
        }  # fmt: skip
        return _pages(spoken()).get_template(name).render(known | context)

    def page(self, request: Request, name: str, status: int = 200, **context: Any) -> HTMLResponse:
        """Return a page; ``table`` is its table, and ``here`` is its place in the menu."""
        return HTMLResponse(self.text(request, name, **context), status)
