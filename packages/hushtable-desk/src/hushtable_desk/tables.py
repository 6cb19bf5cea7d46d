"""One table of a desk: how it is read, how it was understood, and its fitted model."""

import threading
import warnings
from collections.abc import Iterable, Iterator
from contextvars import copy_context
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from hushtable.data.layout_file import joined
from hushtable.data.options import RowOptions, notes
from hushtable.data.quality import TableQuality, understood_with_quality
from hushtable.data.readers import Batch, Reader
from hushtable.data.texts.doubt import ColumnUnderstanding
from hushtable.errors import HushTableError, UsageError
from hushtable.language import N_, spoken
from hushtable.words.options import Option, button_words, on_page, with_buttons
from hushtable_desk.folder import MODEL, STATE, Folder, as_known, key_of
from hushtable_desk.judging import JudgedRows
from hushtable_desk.language import _
from hushtable_desk.layout import Picture, picture_of

#: Kinds that a person can choose for a column; values for missing ones are a separate setting.
KINDS = ("number", "date", "category", "label", "id")
#: Kinds that are left out of a model unless someone decides otherwise.
_LEFT_OUT = ("id", "text", "empty")
#: Settings that are a single text.
_TEXTS = ("decimal", "dates", "encoding", "delimiter", "sheet", "member", "time", "entity")
#: The types of all settings as JSON values.
_TYPES: dict[str, type] = {
    **dict.fromkeys((*_TEXTS, "id_"), str), **dict.fromkeys(("missing", "drop", "context"), list),
    **dict.fromkeys(("skip_lines", "skip_below", "skip_footer"), int),
    "no_header": bool, "kinds": dict,
}  # fmt: skip
#: Settings that state how the file is laid out.
_LAYOUT = (
    "decimal", "dates", "encoding", "delimiter", "skip_lines", "skip_below", "skip_footer",
    "sheet", "member",
)  # fmt: skip


@dataclass(frozen=True)
class TableSettings:
    """A person's decisions on how to read a table, and on the context of its rows.

    The names are those of `hushtable.data.options.RowOptions`; ``kinds`` is its ``as_``.
    """

    missing: tuple[str, ...] = ()
    decimal: str | None = None
    dates: str | None = None
    kinds: dict[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    encoding: str | None = None
    delimiter: str | None = None
    no_header: bool = False
    skip_lines: int | None = None
    skip_below: int | None = None
    skip_footer: int | None = None
    sheet: str | None = None
    member: str | None = None
    time: str | None = None
    entity: str | None = None
    context: tuple[str, ...] = ()
    id_: str | None = None

    def options(self, drop: Iterable[str] = ()) -> RowOptions:
        """Return the options for reading rows, with further columns to ``drop``."""
        kinds = [f"{name}={kind}" for name, kind in self.kinds.items()]
        left_out = dict.fromkeys([*self.drop, *drop])
        return RowOptions(
            drop=joined(left_out) or None,
            missing=joined(self.missing) or None,
            decimal=self.decimal,
            dates=self.dates,
            as_=[joined(kinds)] if kinds else None,
            encoding=self.encoding,
            delimiter=self.delimiter,
            no_header=self.no_header,
            skip_lines=self.skip_lines,
            skip_below=self.skip_below,
            skip_footer=self.skip_footer,
            sheet=self.sheet,
            member=self.member,
            time=self.time,
            entity=self.entity,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        before = asdict(TableSettings())
        return {name: value for name, value in asdict(self).items() if value != before[name]}

    @property
    def decisions(self) -> list["Choice"]:
        """All decisions so far, each as the choice that takes it back."""
        made = [Choice(button_words(("missing", code)), "missing", code) for code in self.missing]
        made += [Choice(_("“%(name)s” is left out", name=code), "drop", code) for code in self.drop]
        made += [
            Choice(f"{column}: {button_words(('as', f'{column}={kind}'))}", "kinds", "", column)
            for column, kind in self.kinds.items()
        ]
        made += [
            Choice(button_words((name, str(getattr(self, name)))), name, "") for name in _LAYOUT
            if getattr(self, name) is not None
        ]  # fmt: skip
        if self.no_header:
            made.append(Choice(button_words(("no_header", "true")), "no_header", ""))
        return made

    @classmethod
    def from_dict(cls, content: Any) -> "TableSettings":
        """Read the value of `to_dict`; raise `UsageError` for anything else.

        Entries of a later version may state how the table is read, and are not left out.
        """
        known = content if isinstance(content, dict) else {"said": content}
        other = [name for name, value in known.items() if type(value) is not _TYPES.get(name)]
        if other or (other := [k for k in known.get("kinds", {}).values() if k not in KINDS]):
            raise UsageError(
                _("the settings of this table in %(file)s hold what this version does not know: "
                  "%(names)s. Update hushtable, or remove these entries from the file",
                  file=STATE, names=", ".join(map(str, other)))
            )  # fmt: skip
        lists = {name: tuple(map(str, v)) for name, v in known.items() if isinstance(v, list)}
        return cls(**known | lists)


@dataclass(frozen=True)
class Choice:
    """A button that resolves a doubt: its text, and the entry of the settings that it adds."""

    words: str
    name: str
    value: str
    column: str = ""


def choices(column: ColumnUnderstanding) -> list[Choice]:
    """Return the possible decisions on a column in doubt, the likeliest first."""
    options = [*column.options]
    if column.refused or column.kind in _LEFT_OUT:
        kinds = ("category", "number") if column.kind != "empty" else ()
        options += [("as", f"{column.name}={kind}") for kind in kinds]
        options.append(("drop", column.name))
    elif column.doubt is not None and column.doubt.kind == "labels":
        options.append(("as", f"{column.name}=category"))
    elif column.doubt is not None and column.doubt.kind == "codes":
        options.append(("as", f"{column.name}=number"))
    return [choice_of(option) for option in dict.fromkeys(options)]


def choice_of(option: Option) -> Choice:
    """Return the button for an option."""
    field, value = option
    column, _, kind = value.rpartition("=") if field == "as" else ("", "", value)
    name = "kinds" if field == "as" else field
    return Choice(button_words(option), name, kind, column)


class Job:
    """Work on a thread, with its progress."""

    def __init__(self, work: Any) -> None:
        self.error = ""
        self.failure: HushTableError | None = None
        self.done, self.rows = False, 0
        self.total: int | None = None
        # In the language of the page.
        run = partial(copy_context().run, self._run, work)
        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def _run(self, work: Any) -> None:
        try:
            work(self)
        except (HushTableError, OSError) as error:
            self.failure = as_known(error)
            self.error, _ways = with_buttons(self.failure)
        except Exception as error:
            self.error = f"unexpected {type(error).__name__}, which is a bug: report it"
        self.done = True

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it has ended, or for this many seconds."""
        self._thread.join(seconds)

    def watched(self, reader: Reader) -> Reader:
        """Return the same rows, and count those that are read."""
        first = reader.sources[0]

        def read(part: Reader, batches: Iterator[Batch]) -> Iterator[Batch]:
            if part.sources[0] is first:
                self.total, self.rows = part.n_rows or self.rows or None, 0
            for batch in batches:
                yield batch
                self.rows += len(batch)

        return reader.watched(read)

    @property
    def facts(self) -> dict[str, Any]:
        """The state for the waiting page."""
        return {
            "done": self.done, "error": self.error, "rows": self.rows, "total": self.total,
        }  # fmt: skip


class Table:
    """A file of rows, and all work on it.

    Attributes
    ----------
    name : str
        Name of the file, which is directly in the folder.
    key : str
        Replaces the name in addresses.
    said : TableSettings
    model : str
        Name of the model's file in the folder; empty before there is one.
    who : str
        The person who judges.
    """

    def __init__(self, folder: Folder, name: str) -> None:
        self.folder, self.name, self.key = folder, name, key_of(name)
        self.path = folder.file(name)
        self.lock = threading.RLock()
        kept = folder.remembered("tables", name)
        self.said = TableSettings.from_dict(kept.get("said", {}))
        self.model = str(kept.get("model", ""))
        if self.model and not (folder.path / self.model).is_file():
            self.model = ""
        self.job: Job | None = None
        self.who, self._apart = "", ""
        self._columns: tuple[ColumnUnderstanding, ...] | None = None
        #: Sentences on the file's layout if it is unusual.
        self.found: tuple[str, ...] = ()
        self._quality: TableQuality | None = None
        #: Of the sentences on columns and quality.
        self._language = ""
        self._judging: JudgedRows | None = None

    # --- reading ----------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[ColumnUnderstanding, ...]:
        """All columns as they were understood, including those that are left out.

        Raises `DataError` if the file cannot be read with the settings.
        """
        with self.lock:
            if self._language != spoken():
                self._language, self._columns, self._quality = spoken(), None, None
            if self._columns is None:
                kinds = {name: kind for name, kind in self.said.kinds.items() if kind != "id"}
                reader = self._opened(replace(self.said, drop=(), kinds=kinds).options())
                self.found = tuple(reader.found)
                with on_page():  # also if no page asks first
                    self._columns, _, self._quality = understood_with_quality(reader)
            return self._columns

    def _opened(self, options: RowOptions) -> Reader:
        """Open all rows; raise `DataError` or `OSError` if they cannot be read."""
        notes.clear()
        return options.open(str(self.path))

    @property
    def picture(self) -> Picture:
        """The parts of the file that show how to read it, with the settings."""
        return picture_of(self.path, self.said.sheet, self.said.member, self.said.encoding)

    @property
    def left_out(self) -> list[str]:
        """Names of the columns that a model leaves out, by their kind or by a person's decision."""
        needed = {self.said.time, self.said.entity}
        return [
            column.name for column in self.columns
            if column.name not in needed
            and (
                column.name in self.said.drop
                or self.said.kinds.get(column.name) == "id"
                or (column.kind in _LEFT_OUT and column.name not in self.said.kinds)
            )
        ]  # fmt: skip

    @property
    def in_doubt(self) -> list[ColumnUnderstanding]:
        """Columns that need a decision before a model can be fitted."""
        out = set(self.left_out)
        return [col for col in self.columns if col.refused and col.name not in out]

    @property
    def id_(self) -> str | None:
        """Column that names rows: the chosen one, or else the first identifier."""
        if self.said.id_ is not None:
            return self.said.id_ or None
        out = set(self.left_out)
        return next(
            (col.name for col in self.columns if col.kind == "id" and col.name in out), None
        )

    def say(self, **changes: Any) -> None:
        """Change settings, and read the table again."""
        with self.lock:
            before = self.said
            self.said = replace(self.said, **changes)
            reading = {"context", "id_", "drop"}
            if not set(changes) <= reading:
                self._columns = self._quality = None
            try:
                self.said.options().reading  # noqa: B018 (refuses impossible settings)
                self._remember()
            except (HushTableError, OSError):
                self.said, self._columns, self._quality = before, None, None
                raise

    def decide(self, name: str, value: Any, column: str = "") -> None:
        """Record one decision: an entry of the settings, for a column if it is ``kinds``.

        For an entry that is a list, the value is added, or removed if the list has it. The name
        ``all`` takes back every decision.
        """
        settings = self.said
        if name == "kinds":
            kinds = {old: kind for old, kind in settings.kinds.items() if old != column}
            if value in KINDS:
                kinds[column] = str(value)
            elif value:
                raise UsageError(f"kind {value!r}: needs one of {', '.join(KINDS)}")
            drop = tuple(old for old in settings.drop if old != column)
            self.say(kinds=kinds, drop=drop)
        elif name in ("missing", "drop", "context"):
            before = list(getattr(settings, name))
            after = [old for old in before if old != value] if value in before else [*before, value]
            self.say(**{name: tuple(map(str, after))})
        elif name in ("skip_lines", "skip_below", "skip_footer"):
            self.say(**{name: int(value) if str(value).isdecimal() else None})
        elif name == "no_header":
            self.say(no_header=value in (True, "true"))
        elif name == "id_":
            self.say(id_=str(value or ""))
        elif name == "all":
            self.say(**asdict(TableSettings()))
        elif name in _TEXTS:
            self.say(**{name: str(value) if value else None})
        else:
            raise UsageError(f"{name!r} is not a setting of a table")

    @property
    def quality(self) -> TableQuality:
        """The quality of all columns with the current settings."""
        with self.lock:
            _ = self.columns  # their rows are read only once for both
            assert self._quality is not None
            return self._quality

    def _remember(self) -> None:
        if self.folder.writable:
            self.folder.remember("tables", self.name, said=self.said.to_dict(), model=self.model)

    # --- the model --------------------------------------------------------------------------------

    def fit(self, *, clean: bool = False) -> Job:
        """Fit a model on a thread, and write it to the table's folder.

        ``clean`` states that the rows are known to be clean.
        """
        with self.lock:
            if self.job is not None and not self.job.done:
                return self.job
            if doubts := self.in_doubt:
                names = ", ".join(column.name for column in doubts)
                raise UsageError(f"columns are in doubt: first decide what these are: {names}")
            self.job = Job(partial(self._fit, clean=clean))
            return self.job

    def _fit(self, job: Job, *, clean: bool) -> None:
        from hushtable import HushTable  # imported only when needed

        reader = self._opened(self.said.options(self.left_out))
        model = HushTable(
            context=list(self.said.context) or None, novelty=clean, n_jobs=-1, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the page states the doubts
            model.fit(job.watched(reader))
        # Does not replace a model; a longer name may be longer than a file system takes.
        name = self.folder.new_name(f"{self.path.stem[:60]}{MODEL}")
        self.close()
        model.save(self.folder.file(name))
        self.use(name)
        self._judge(job)

    def use(self, model: str) -> None:
        """Score the rows with another model of the folder from now on."""
        with self.lock:
            self.folder.file(model)
            self.close()
            self.model = model
            self._remember()

    # --- judging ----------------------------------------------------------------------------------

    def judge_apart(self) -> None:
        """Keep the verdicts of this person in a log of their own from now on."""
        if not self.who:
            raise UsageError(_("enter your name at the top first"))
        with self.lock:
            self.close()
            self._apart = self.who

    @property
    def judging(self) -> JudgedRows:
        """The rows with the model's scores, which the first call computes."""
        with self.lock:
            if self._judging is None:
                self._judge(None)
            assert self._judging is not None
            return self._judging

    @property
    def is_scored(self) -> bool:
        """Whether the rows were scored."""
        return self._judging is not None

    def score(self) -> Job:
        """Score the rows on a thread."""
        with self.lock:
            if self.job is None or self.job.done:
                self.job = Job(self._judge)
            return self.job

    def _judge(self, job: Job | None) -> None:
        if not self.model:
            raise UsageError(f"{self.name} has no model yet: fit one, or choose one")
        with self.lock:
            options = replace(self.said, drop=(), context=()).options()
            self._judging = JudgedRows.of(
                self.folder, self.name, self.model, options, self._kept(), self.id_,
                self.who, self._apart == self.who != "",
                (lambda reader: reader) if job is None else job.watched,
            )  # fmt: skip

    def _kept(self) -> list[str]:
        """Columns that are kept with the scores: names of rows, and columns that are left out."""
        names = [self.id_, self.said.entity, self.said.time, *self.left_out]
        return list(dict.fromkeys(name for name in names if name))

    def close(self) -> None:
        """Release the log."""
        with self.lock:
            if self._judging is not None:
                self._judging.close()
                self._judging = None

    @property
    def places(self) -> list[tuple[str, str, str]]:
        """The table's pages: each with its address, and its name in English."""
        at = f"/t/{self.key}"
        places = [("table", at, N_("Table"))]
        if self.model:
            places += [
                ("rows", f"{at}/rows", N_("Unusual rows")),
                ("learned", f"{at}/learned", N_("What it learned")),
                ("rules", f"{at}/rules", N_("Rules")),
                ("watch", f"{at}/watch", N_("Watch")),
            ]
        return places
