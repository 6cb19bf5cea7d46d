"""The steps after keys and shares: a site's answers, and how the coordinator reads them.

``hello`` states whose keys a site has; ``masked`` brings counts under masks. If sites are missing,
the others sign once, in ``survivors``, which sites are in the sum. ``unmask`` brings the shares
that remove the masks: for sites in the sum, shares of their own masks and of masks with sites
outside, but never of masks between two sites in the sum. ``without`` leaves out sites that
complaints exposed.
"""

import secrets
from collections.abc import Collection, Mapping

import numpy as np

from hushtable import files
from hushtable.errors import HushTableError, RoundError
from hushtable_federation.book.digests import PersonsSeen
from hushtable_federation.clock import now
from hushtable_federation.keys import Card, Keys, stream
from hushtable_federation.masks import (
    NONCE_BYTES,
    SHARE_BYTES,
    Bytes,
    Secret,
    opening_bytes,
    pairwise_mask,
    place_of,
)
from hushtable_federation.online import shares, totals
from hushtable_federation.online.messages import Message, ask, unclosed
from hushtable_federation.online.shares import Dealt, Kept, SiteState
from hushtable_federation.refusals import Refusal, Refused, refusing
from hushtable_federation.round import Round
from hushtable_federation.submission import Submission


def answer_hello(site: SiteState, digest: str) -> bytes:
    """Sign the request, by its digest, if the site knows its sender."""
    site.reply(site.attended).check_known()
    return site.sign("hello", {"asked": digest})


def ask_hello(round_: Round, keys: Keys) -> bytes:
    """Return a request for one node alone, so that a signed answer proves which site it is."""
    return ask(round_, "hello", keys, {"node": secrets.token_hex(16)})


def find_caller(round_: Round, asked: bytes, content: bytes) -> tuple[Card | None, str]:
    """Return the site that answered a request, and its word if it refused; None if not valid."""
    digest = Message.read(asked, round_.coordinator).digest
    for card in round_.sites:
        try:
            message = Message.read(content, card)
            if message.check(round_, "hello").body == {"asked": digest}:
                return card, ""
        except Refused as error:
            if message.round_id == round_.round_id:  # and not a repetition of a different one
                return card, error.word
        except HushTableError:
            continue
    return None, ""


def answer_masked(site: SiteState, _: Message | None) -> tuple[bytes, Kept]:
    """Add noise to the counts, record them, and mask them with all sites that drew keys.

    A site that does not answer is left out later, with the shares of its mask keys.
    """
    own_mask, rows = bytes.fromhex(site.kept("shares")["own_mask"]), site.rows()
    reply = site.reply(rows.attended)  # a person reviewed the round before, if at all
    if rows.data_set not in (None, reply.data_set):
        raise Refused(
            Refusal.UNAVAILABLE,
            f"the rows of this round were counted as data_set {rows.data_set!r}, and this visit is "
            f"for data_set {reply.data_set!r}, which has a budget of its own: nothing was sent. "
            f"Visit the round with the site's file that has data_set = {rows.data_set!r}",
        )
    n_cells = site.round.plan.family.n_cells
    masks = pairwise_mask(site.me, site.round_keys().pairs(), n_cells)
    masks += stream(own_mask, n_cells)
    new = rows.new_people
    reply.answer(rows.counts, masks, rows=rows.digests, persons=rows.persons, new_people=new)
    return b"", {}  # the content to send is stored once, with the contribution in the book


def answer_submission(site: SiteState) -> bytes:
    """Count the rows and add noise: everything that a round without masks needs."""
    reply = site.reply(site.attended)
    sketch = site.count(reply.plan)
    counts = reply.counted(sketch, outside_too=site.statement.outside_too)
    rows, persons = site.recognise(), PersonsSeen.of(sketch.persons)
    new = site.statement.new_people
    return reply.answer(counts, None, rows=rows, persons=persons, new_people=new).content


def read_masked(round_: Round, name: str, content: bytes) -> Submission:
    """Return what a site submits; raise `HushTableError` if it is not valid."""
    try:
        submission = Submission.from_bytes(content, name, round_, now())
    except HushTableError:
        try:
            Message.read(content, round_.card(name)).check(round_, "masked")
        except Refused:  # the reason for the refusal
            raise
        except HushTableError:  # not that either: report the first error
            pass
        raise
    if submission.site != name:
        raise RoundError(f"{name!r} answers for {submission.site!r}")
    return submission


def answer_survivors(site: SiteState, asked: Message) -> tuple[bytes, Kept]:
    """Sign which sites are in the sum; report whose shares are not what they proved."""
    if site.book.step(site.round.round_id, "unmask") is not None:
        raise Refused(Refusal.ANSWERED, "shares were given for a different list of sites")
    taken = shares.take_list(site, asked)
    body, arrays = taken.answer()
    return site.sign("survivors", body, arrays), taken.kept()


#: Parts of what a site gives: a dealer's shares, and the opening of their row.
_SHARES, _OPENINGS = "shares", "openings"


def answer_unmask(site: SiteState, asked: Message) -> tuple[bytes, Kept]:
    """Give shares: at once for a list of all sites, otherwise if enough sites signed the list."""
    body: Kept = {}
    arrays: files.Arrays = {}
    if "sites" in asked.body:
        kept, body, arrays = _whole(site, asked)
    else:
        kept = site.kept("survivors")
        _check_signed(site, asked, kept["sites"])
    names = sorted(kept["sites"])
    out = [name for name in site.round.names if name not in kept["sites"]]
    wanted = [[name, *out] for name in names]
    arrays |= pick_shares(site.round, kept, names, wanted)
    if site.round.terms.max_rows is not None:
        arrays[totals.NAME] = totals.of_masks(site.round_keys(), names)
    return site.sign("unmask", body, arrays), kept


def _whole(site: SiteState, asked: Message) -> tuple[Kept, Kept, files.Arrays]:
    """Accept a list of all sites: with it, masks between sites cannot be requested."""
    if site.book.step(site.round.round_id, "survivors") is not None:
        raise Refused(Refusal.ANSWERED, "this site signed a different list of sites")
    taken = shares.take_list(site, asked)
    if set(taken.sites) != set(site.round.names):
        raise Refused(Refusal.SITES, "sites are missing: the sites in the sum have to sign first")
    body, arrays = taken.answer()
    return taken.kept(), body, arrays


def _check_signed(site: SiteState, asked: Message, sites: shares.Sites) -> None:
    signed = 0
    with refusing(Refusal.SHARES):
        for name, content in unclosed(asked).items():
            message = Message.read(content, site.round.card(name)).check(site.round, "survivors")
            if message.body.get("sites") != sites:
                raise RoundError(
                    f"{name!r} signed a list of sites that differs from the one signed here"
                )
            signed += name in sites
    if signed < site.round.needed:
        raise Refused(
            Refusal.SITES,
            f"{signed} sites signed the list, and {site.round.needed} are needed: no share is "
            "given",
        )


def pick_shares(
    round_: Round, kept: Kept, dealers: list[str], wanted: list[list[str]]
) -> files.Arrays:
    """Return the shares that a site gives, and the proof that they are those it was dealt.

    ``wanted`` are the secrets of each dealer, by the names that they belong to. Entries for rows
    with a complaint are zero.
    """
    n = len(round_.names)
    found = np.zeros((len(dealers), len(wanted[0]) if wanted else 0, SHARE_BYTES), np.uint8)
    openings = np.zeros((len(dealers), opening_bytes(n)), np.uint8)
    for i, dealer in enumerate(dealers):
        if dealer in kept["rows"]:
            row = np.frombuffer(bytes.fromhex(kept["rows"][dealer]), np.uint8)[NONCE_BYTES:]
            table, openings[i] = np.split(row, [n * SHARE_BYTES])
            places = [round_.names.index(name) for name in wanted[i]]
            found[i] = table.reshape(n, SHARE_BYTES)[places]
    return {_SHARES: found, _OPENINGS: openings}


def read_shares(message: Message, shape: tuple[int, int], n_sites: int) -> tuple[Bytes, Bytes]:
    """Return the shares that a site gives, and their openings.

    Of shape (n_dealers, n_wanted, 33), and (n_dealers, 32 (n_sites + 1)). Raise `RoundError` if
    they have the wrong form.
    """
    shapes = {_SHARES: (*shape, SHARE_BYTES), _OPENINGS: (shape[0], opening_bytes(n_sites))}
    for name, wanted in shapes.items():
        found = message.arrays.get(name)
        if found is None or found.dtype != np.uint8 or found.shape != wanted:
            raise RoundError(f"{message.sender!r} gave {name} of the wrong form")
    return message.arrays[_SHARES], message.arrays[_OPENINGS]


def check_shares(
    round_: Round,
    message: Message,
    wanted: Mapping[str, list[str]],
    dealt: Mapping[str, Dealt],
    lacking: Collection[str],
) -> tuple[dict[Secret, int], bool]:
    """Return the shares that a site proves it was dealt, and whether it gave others.

    ``wanted`` are the secrets of each dealer, by the names that they belong to; ``lacking`` are
    dealers whose shares the site does not have.
    """
    found: dict[Secret, int] = {}
    wrong, place = False, place_of(round_, message.sender)
    shape = len(wanted), len(next(iter(wanted.values()), []))
    tables = read_shares(message, shape, len(round_.names))
    for dealer, table, opening in zip(wanted, *tables, strict=True):
        if dealer in lacking:
            continue
        each = {name: one.tobytes() for name, one in zip(wanted[dealer], table, strict=True)}
        numbers = {round_.names.index(name): share for name, share in each.items()}
        if dealt[dealer].dealing.shows(place, opening.tobytes(), numbers):
            found |= {(dealer, name): int.from_bytes(share) for name, share in each.items()}
        else:
            wrong = True
    return found, wrong


#: No name begins like this.
_DEALING = "dealing/"


def ask_without(
    names: list[str], dealt: dict[str, Dealt], answers: dict[str, Message]
) -> tuple[Kept, dict[str, bytes]]:
    """Return body and messages: the sites to leave out, and the proof of the reason."""
    shown = {f"{_DEALING}{name}": dealt[name].message.content for name in names}
    return {"without": names}, shown | {name: one.content for name, one in answers.items()}


def answer_without(site: SiteState, asked: Message) -> tuple[bytes, Kept]:
    """Give shares of the masks between sites that stay and sites that do not."""
    kept, names = site.kept("unmask"), asked.body.get("without")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Refused(Refusal.REQUEST, "step 'without': the request is malformed")
    dealt, answers = dict[str, Dealt](), []
    with refusing(Refusal.SHARES):
        for name, content in unclosed(asked).items():
            dealer = name.removeprefix(_DEALING)
            if dealer != name:
                dealt[dealer] = Dealt.read(site.round, dealer, content)
            else:
                answers.append(_complaint(site, name, content))
        for name, one in dealt.items():
            if one.message.digest != kept["sites"].get(name, {}).get("shares"):
                raise RoundError(f"{name!r} dealt shares that differ from those on the list")
        guilty = shares.judge(site.round, dealt, answers).dealers
        if not names or not set(names) <= set(guilty):
            raise RoundError("the complaints do not prove that these sites have to be left out")
    stay = sorted(set(kept["sites"]) - set(names))
    shares.check_enough(site.round, dict.fromkeys(stay))
    given = pick_shares(site.round, kept, stay, [sorted(names)] * len(stay))
    return site.sign("without", {}, given), {}


def _complaint(site: SiteState, name: str, content: bytes) -> Message:
    message = Message.read(content, site.round.card(name))
    step = message.step if message.step in ("survivors", "unmask") else "unmask"
    return message.check(site.round, step)
