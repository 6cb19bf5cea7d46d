"""Rounds at a desk: sites whose files are in its folder, what rounds ask and cost, and the pages.

This module loads only if the package of rounds is installed. The site itself allows or refuses
everything, as it does for a command.
"""

import glob
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hushtable import far, files
from hushtable.data.options import notes
from hushtable.describe.plan import column_rows
from hushtable.detectors.load import open_model
from hushtable.errors import FileError, HushTableError, RoundError, UsageError, explain
from hushtable.language import numerals
from hushtable.privacy.accounting import rounded_up
from hushtable_desk.folder import Folder, key_of
from hushtable_desk.language import _
from hushtable_desk.lines import ChartLine, LineChart
from hushtable_desk.pages import desk_of, write
from hushtable_federation.credentials import BY_DEFAULT
from hushtable_federation.describe import (
    done_words,
    officer_words,
    round_lines,
    site_words,
    standing,
    task_words,
)
from hushtable_federation.folder.mailbox import Store, parsed
from hushtable_federation.folder.round_folder import RoundFolder, rounds
from hushtable_federation.keys import Keys
from hushtable_federation.online.site import Statement
from hushtable_federation.policy import Approval, check_officer, load_policy, parties
from hushtable_federation.refusals import Refusal
from hushtable_federation.reply import Reply
from hushtable_federation.result import Result
from hushtable_federation.settings import SiteSettings, site_files
from hushtable_federation.site import Attendant, Site, SiteRows, Standing
from hushtable_federation.state import RoundState

#: Depth of folders to search for rounds, and the number of folders at most.
_DEEP, _MOST = 3, 2000


class DeskSite:
    """A site whose file is directly in the folder.

    Attributes
    ----------
    name, key : str
        Name of the file, and the key that replaces it in addresses.
    """

    def __init__(self, folder: Folder, name: str) -> None:
        self.folder, self.name, self.key = folder, name, key_of(name)

    @cached_property
    def site(self) -> Site:
        """The site that the file describes.

        Raises `UsageError` if the file names something outside the folder.
        """
        with _reading(self.name):
            settings = SiteSettings.load(self.folder.file(self.name))
            check_inside(self.folder, settings)
            # Rounds are in the open folder: the desk reaches no other, and needs no login.
            return Site(replace(settings, address=BY_DEFAULT))

    @property
    def rows(self) -> str:
        """The place of its rows; empty if its file does not name it."""
        named = self.site.settings.rows or ""
        return far.public(named) if "://" in named else named.removeprefix(f"{self.folder.path}/")

    @property
    def counts_rows(self) -> bool:
        """Whether it has rows or a policy; without both, it can only coordinate."""
        return bool(self.rows) or self.site.settings.policy.exists()

    def rounds(self) -> tuple[list["AskedRound"], list[str]]:
        """Return the rounds of the site, the last opened first, and errors of others."""
        asked, faults, card = list[AskedRound](), list[str](), self.site.card
        for where in round_folders(self.folder):
            try:
                store = Store.open(self.folder.path / where, card.name)
                for item in rounds(store):
                    if card in (*item.sites, item.coordinator):
                        asked.append(AskedRound(self, where, RoundFolder(item, store)))
            except HushTableError as error:
                faults.append(str(error))
        return sorted(asked, key=lambda item: item.round.opened, reverse=True), faults


def sites_of(folder: Folder) -> list[DeskSite]:
    """Return the sites whose files, and the keys with them, are directly in a folder."""
    inside = {entry.name for entry in folder.files(".toml")}
    return [DeskSite(folder, path.name) for path in site_files(folder.path) if path.name in inside]


def find_round(folder: Folder, key: str) -> "AskedRound":
    """Return the round of an address; raise `UsageError` if it does not exist."""
    for site in sites_of(folder):
        try:
            visible, _ = site.rounds()
        except HushTableError:  # the page of this site states the reason
            continue
        for asked in visible:
            if asked.key == key:
                return asked
    raise UsageError("this round is no longer in the folder")


def round_folders(folder: Folder) -> list[str]:
    """Return the folders with rounds below a folder, as relative paths.

    Links are not followed. A round in a coordinator's own subfolder belongs to the folder above.
    """
    folders, n = set[Path](), 0
    for at, below, names in os.walk(folder.path):
        here, n = Path(at), n + 1
        deep = len(here.relative_to(folder.path).parts)
        below[:] = [d for d in below if not d.startswith(".") and deep < _DEEP and n < _MOST]
        if deep == 0:
            continue
        for claims in filter(None, map(parsed, names)):
            if claims.step == "round":
                mine = here.name == claims.sender and deep > 1
                folders.add(here.parent if mine else here)
    return sorted(folder_path.relative_to(folder.path).as_posix() for folder_path in folders)


def check_inside(folder: Folder, settings: SiteSettings) -> None:
    """Raise `UsageError` if a site's file names a link, or a file outside the folder.

    Rows and concepts can have a URL, except one that names files of this machine.
    """
    for entry, named in settings.files().items():
        is_url = "://" in named and not named.lower().startswith(("file:", "local:"))
        if is_url and entry in ("rows", "concepts"):
            continue
        for path in map(Path, (named, *glob.glob(named))):
            if not path.is_symlink() and path.resolve().is_relative_to(folder.path):
                continue
            why = "a link" if path.is_symlink() else "outside the open folder"
            raise UsageError(
                f"{entry} is {why}, and the desk uses nothing outside the folder: move the file "
                f"into the folder, correct {entry} in the site's file, or use the commands of "
                "hushtable round"
            )


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Add the name of a file to the system's error."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{name} cannot be read: {explain(error)}") from error


class PersonAtDesk(Attendant):
    """The person who answers in a browser, after reading the page of the round.

    Parameters
    ----------
    compared : bool
        Whether all parties have read the same fingerprint of all cards aloud.
    statement : Statement
        Statement on the rows.

    Attributes
    ----------
    words : list of str
        Sentences on the counted rows.
    """

    attended = True

    def __init__(self, compared: bool, statement: Statement) -> None:
        self._compared, self.statement = compared, statement
        self.words: list[str] = []

    def confirm(self, reply: Reply) -> None:
        """Trust all cards if they were compared; raise `Refused` if others are needed."""
        if self._compared:
            reply.trust(reply.new)
        reply.check_known()

    def report(self, reply: Reply, rows: SiteRows) -> None:
        """Record the number of counted rows, and the unread columns."""
        sketch = rows.sketch
        if sketch is not None:
            self.words.append(f"Counted {sketch.n_rows:,} rows.")
            self.words += [f"Not read: {words}." for words in sketch.unread]
            outside = {name: n for name, n in sketch.outside().items() if n}
            self.words += [
                f"Outside the range of {name}: {n:,} rows." for name, n in outside.items()
            ]


class AskedRound:
    """A round that a site of the folder takes part in.

    Attributes
    ----------
    at : DeskSite
    where : str
        Its folder, relative to the desk's folder.
    found : RoundFolder
        The round's files in that folder.
    key : str
        Replaces site, folder, and round in addresses.
    """

    def __init__(self, at: DeskSite, where: str, folder: RoundFolder) -> None:
        self.at, self.where, self.found, self.round = at, where, folder, folder.round
        self.key = key_of("\n".join((at.name, where, self.round.round_id)))
        self._approval = at.folder.file(f"{self.round.round_id[:12]}.approval")

    @property
    def title(self) -> str:
        """Its title, or else the first digits of its id."""
        return self.round.title or self.round.round_id[:12]

    @property
    def me(self) -> str:
        """The site's name."""
        return self.at.site.card.name

    @cached_property
    def progress(self) -> RoundState:
        """How the round stands."""
        return RoundState.of(self.found)

    @property
    def state(self) -> str:
        """The state of the site in it; empty if the site only coordinates."""
        return self.progress.states.get(self.me, "")

    @property
    def is_open(self) -> bool:
        """Whether the round now requests the site's rows."""
        return self.state in ("awaited", "refused") and self.progress.may_answer(self.me)

    @property
    def stands(self) -> str:
        """How it stands, in some sentences."""
        return standing(self.progress)

    @property
    def next_steps(self) -> list[str]:
        """Sentences on what the site has to do."""
        tasks = self.progress.tasks
        return [task_words(self.progress, task) for task in tasks if self.me in task.who]

    @cached_property
    def standing(self) -> Standing:
        """The known parties, and the results of policy and book."""
        with _reading(self.at.name):
            return Standing.of(self._site, self.round)

    @property
    def _site(self) -> Site:
        """The site, with the approval of this round if one was signed at the desk."""
        site = self.at.site
        if not self._approval.exists():
            return site
        return Site(replace(site.settings, approvals=glob.escape(str(self._approval))))

    @property
    def approved(self) -> bool:
        """Whether the officer has signed, or no one has to."""
        with _reading("the approval"):
            approval = self._site.approvals().get(self.round.round_id)
        try:
            check_officer(self.standing.officer, approval, self.round)
        except RoundError:
            return False
        return True

    @property
    def verdict(self) -> str:
        """Whether the site can answer: not at all, after another step, or now.

        The value is ``"forbidden"``, ``"approval"``, ``"people"`` (the fingerprint of all cards has
        to be compared), or ``"allowed"``.
        """
        if self.standing.forbidden:
            return "forbidden"
        if not self.approved:
            return "approval"
        return "allowed" if self.standing.allows else "people"

    @property
    def result(self) -> Path | None:
        """The file of its result; None until it is fetched."""
        path = self.at.site.result(self.round)
        return path if path.is_file() else None

    # --- what a person does -----------------------------------------------------------------------

    def answer(
        self, compared: str = "", statement: Statement | None = None, rows: str = ""
    ) -> list[str]:
        """Take the next step in the round, as `Site.sync` does; return a description of it.

        Parameters
        ----------
        compared : str
            The fingerprint of all cards, if all parties have read the same aloud; else empty.
        statement : Statement, optional
            Statement on the rows.
        rows : str
            Name of the table to count, if it is not the table that the site's file names.

        Raises
        ------
        HushTableError
            If the policy, the book, or the officer's missing signature forbids it, or something
            else prevents it.
        """
        if compared not in ("", self.round.fingerprint):
            raise UsageError(
                "the fingerprint that was compared is not that of this round's cards: load the "
                "page again, and compare the fingerprint that it shows"
            )
        site, person = self._site, PersonAtDesk(bool(compared), statement or Statement())
        if rows:
            site = Site(replace(site.settings, rows=str(self.at.folder.file(rows))))
        known = len(notes)
        try:
            with _reading("a file of the site"):
                ((_found, visit),) = site.sync(
                    self.at.folder.path / self.where, which=self.round.round_id, attendant=person
                )
            words = notes[known:]
        finally:
            del notes[known:]
        out = [f"Detected: {name} {why}." for name, why in visit.found_out.items()]
        return [*done_words(visit.posted), *person.words, *words, *visit.words, *out]

    def approve(self, key: str) -> list[str]:
        """Sign the round with the officer's keys, the text of their file, and keep the signature.

        The keys are not kept. Raises `HushTableError` if the policy forbids the round, or names
        another officer or none.
        """
        self._check_open()
        if self.standing.forbidden:
            raise RoundError(" ".join(self.standing.words))
        if not self.standing.officer:
            raise UsageError("the policy names no officer: no one has to sign the round")
        approval = Approval.sign(self.round, Keys.from_bytes(key.encode(), "the file of keys"))
        check_officer(self.standing.officer, approval, self.round)
        with _reading(self._approval.name):
            approval.save(self._approval)
        return [f"{approval.card.name} has signed the round."]

    def refuse(self, why: str) -> list[str]:
        """Refuse the round: a signed refusal for the others, and the reason for the site's log."""
        self._check_open()
        word = self.standing.word or Refusal.POLICY
        return self._site.refuse(self.found, why or "a person refused it at the desk", word).words

    def use(self) -> str:
        """Put the result directly in the folder, as a model; return its name there.

        Raises `HushTableError` if it is missing, is not the round's, or cannot score rows.
        """
        path, folder = self.result, self.at.folder
        if path is None:
            raise UsageError("the result is not in the folder yet: fetch it first")
        with _reading(path.name):
            Result.load(path).check_round(self.round)
            open_model(path)
            content = path.read_bytes()
            name = path.name
            if folder.file(name).exists() and folder.file(name).read_bytes() == content:
                return name
            name = folder.new_name(name)
            files.write_bytes(folder.file(name), content)
            return name

    def _check_open(self) -> None:
        if not self.is_open:
            raise RoundError("this round does not request the rows of this site now")


# --- costs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spending:
    """The costs of all rounds about some rows for the people in them.

    Attributes
    ----------
    data_set : str
        Name of the rows.
    rounds : list of dict
        For each answer: ``round_id``, ``title``, ``made``, and ``after``, the total epsilon so far.
    limit : float
        The highest cost of all rounds together, by the book and the policy.
    """

    data_set: str
    rounds: list[dict[str, str]]
    totals: list[float]
    limit: float

    @property
    def spent(self) -> str:
        """The epsilon so far."""
        return numerals(f"{rounded_up(self.totals[-1] if self.totals else 0.0):g}")

    def chart(self, after: float | None = None) -> Markup:
        """Draw the epsilon after each round, and the limit.

        ``after`` is the epsilon after a round that is not answered yet.
        """
        totals = [0.0, *self.totals, *([] if after is None else [after])]
        last = len(totals) - 1
        lines = [ChartLine(_("spent"), totals, marked=[] if after is None else [last])]
        if math.isfinite(self.limit):
            lines.append(ChartLine(_("limit"), [self.limit] * 2, [0, max(last, 1)]))
        words, across = _("Epsilon after each round, and the limit"), _("rounds")
        return LineChart(lines, words, across=across, steps=True, from_zero=True).svg


def spending(site: Site) -> list[Spending]:
    """Return the costs by set of rows, always including the rows of the site's file."""
    policy = load_policy(site.settings.policy)
    with site.book() as book:
        names = list(dict.fromkeys([site.settings.data_set, *book.data_sets()]))
        limit = min(book.epsilon, policy.total_epsilon)
        answers = [entry.content for entry in book.history() if entry.kind == "answer"]
        spent = []
        for name in names:
            course = book.totals(name)
            about = [answer for answer in answers if answer["data_set"] == name]
            rounds = [
                {
                    "round_id": record["round_id"][:12], "title": str(record["title"]),
                    "made": str(record["made"]), "after": numerals(f"{rounded_up(after):g}"),
                }
                for record, after in zip(about, course, strict=True)
            ]  # fmt: skip
            spent.append(Spending(name, rounds, course, limit))
        return spent


# --- pages ----------------------------------------------------------------------------------------


def routes() -> list[BaseRoute]:
    """Return the routes of rounds."""
    return [
        Route("/rounds", all_rounds),
        Route("/rounds/{key}", one_round),
        *(
            Route(f"/rounds/{{key}}/{name}", write(partial(_done, work)), methods=["POST"])
            for name, work in _WRITES.items()
        ),
    ]


def all_rounds(request: Request) -> Response:
    """Show the rounds of a site, and its book."""
    desk = desk_of(request)
    sites, wanted = sites_of(desk.folder), request.query_params.get("site")
    chosen = next((site for site in sites if site.key == wanted), sites[0] if sites else None)
    about: dict[str, Any] = {"error": "", "asked": [], "faults": [], "spent": [], "book_error": ""}
    if chosen is not None:
        about |= _about(chosen)
    return desk.page(request, "rounds.html", here="rounds", sites=sites, chosen=chosen, **about)


def _about(chosen: DeskSite) -> dict[str, Any]:
    """Return the facts on a site for its page, or the reason why there are none."""
    about: dict[str, Any] = {}
    try:
        about["asked"], about["faults"] = chosen.rounds()
    except HushTableError as error:
        return {"error": str(error)}
    if not chosen.counts_rows:
        return about
    try:
        about["spent"] = spending(chosen.site)
    except HushTableError as error:
        about["book_error"] = str(error)
    return about


def one_round(request: Request) -> Response:
    """Show a round's request, its cost, the policy's decision, and the possible actions."""
    desk = desk_of(request)
    asked = find_round(desk.folder, request.path_params["key"])
    return desk.page(
        request, "round.html", here="rounds", one=asked,
        sites=[(name, site_words(asked.progress, name)) for name in asked.round.names],
        asks=officer_words(asked.round), columns=column_rows(asked.round.plan),
        parties=parties(asked.round), terms=round_lines(asked.round), tables=desk.folder.tables,
        **_allowed(asked),
    )  # fmt: skip


def _allowed(asked: AskedRound) -> dict[str, Any]:
    """Return the results of policy and book for a round, or why they cannot be read."""
    facts: dict[str, Any] = {"verdict": "", "standing": None, "spent": None, "error": ""}
    if not asked.at.counts_rows:
        return facts
    try:
        about = asked.at.site.settings.data_set
        facts["spent"] = next(s for s in spending(asked.at.site) if s.data_set == about)
        if asked.is_open:
            facts |= {"standing": asked.standing, "verdict": asked.verdict}
    except HushTableError as error:
        facts["error"] = str(error)
    return facts


# --- writes ---------------------------------------------------------------------------------------

_Work = Callable[[AskedRound, dict[str, Any]], dict[str, Any]]


def _done(work: _Work, request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """Do the work of a write to the address of a round."""
    return work(find_round(desk_of(request).folder, request.path_params["key"]), body)


def _answer(asked: AskedRound, body: dict[str, Any]) -> dict[str, Any]:
    statement = Statement(body.get("new_people") is True, body.get("outside_too") is True)
    compared, rows = (str(body.get(name) or "") for name in ("compared", "rows"))
    return {"words": asked.answer(compared, statement, rows)}


def _approve(asked: AskedRound, body: dict[str, Any]) -> dict[str, Any]:
    key = body.get("key")
    if not isinstance(key, str) or not key:
        raise UsageError("approval is missing: needs the officer's file of keys")
    return {"words": asked.approve(key)}


def _refuse(asked: AskedRound, body: dict[str, Any]) -> dict[str, Any]:
    return {"words": asked.refuse(str(body.get("why") or ""))}


_WRITES: dict[str, _Work] = {
    "answer": _answer, "approve": _approve, "refuse": _refuse,
    "use": lambda one, said: {"model": one.use(), "go": "/models"},
}  # fmt: skip
