"""The coordinator of a masked round: takes answers, decides, asks, and removes the masks.

It knows no carrier, no clock and no file: the code that runs a round passes it the answers and the
time, and says which step comes next. A decision that a request was based on is never changed, so
`Tally.decided` is to be stored before a request is sent.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.counts.base import Noised
from hushtable.errors import HushTableError, RoundError
from hushtable_federation.keys import Keys
from hushtable_federation.protocol import masks
from hushtable_federation.protocol.messages import (
    LIST,
    Dealt,
    Message,
    NoKeyError,
    RoundKeys,
    Step,
    SumList,
    ask,
    digest_of_content,
    passed_on,
    read_table,
    table,
)
from hushtable_federation.protocol.site import place_of, undealt
from hushtable_federation.refusals import Refusal, Refused, raise_first
from hushtable_federation.result import add_up, total, with_seal
from hushtable_federation.round import Round
from hushtable_federation.submission import Submission

Table = NDArray[np.uint8]


class TooFewError(RoundError):
    """There is no sum yet: more answers may give one."""


@dataclass
class Decisions:
    """All decisions of a coordinator in a round; they are final after a request was based on them.

    Attributes
    ----------
    keys : dict of str to str
        By site whose keys the others mask with, the digest of these keys; empty before.
    listed : SumList
        The list of sites in the sum; empty before.
    signed : dict of str to str
        The signatures under the list that go to each site that is asked to give shares, by signer.
    """

    keys: dict[str, str] = field(default_factory=dict)
    listed: SumList = field(default_factory=SumList)
    signed: dict[str, str] = field(default_factory=dict)


class Tally:
    """The answers of a round so far, and the conclusions from them.

    Parameters
    ----------
    round_ : Round
        A masked round.
    keys : Keys
        The coordinator's.
    decided : Decisions, optional
        Decisions of an earlier process.

    Attributes
    ----------
    lost : dict of str to str
        By site that is out, the step and the reason: one word of `Refusal`.
    reached : dict of str to str
        By site, the last step that it answered.
    found_out : dict of str to str
        By site that cheated, a message about what it did.
    disputed : list of (str, str)
        Pairs of a reader and a dealer whose shares it does not accept. It is unknown which of the
        two is wrong, or whether the coordinator passed on something else.
    """

    def __init__(self, round_: Round, keys: Keys, decided: Decisions | None = None) -> None:
        self.round, self._keys = round_, keys
        self.decided = Decisions() if decided is None else decided
        self.lost: dict[str, str] = {}
        self.reached: dict[str, str] = {}
        self.found_out: dict[str, str] = {}
        self.disputed: list[tuple[str, str]] = []
        self.drawn: dict[str, RoundKeys] = {}
        self.dealt: dict[str, Dealt] = {}
        #: Without their counts.
        self.submitted: dict[str, Submission] = {}
        self.signed: dict[str, str] = {}
        #: By site that helped: shares of seeds, shares of keys, and keys of masks.
        self.helped: dict[str, tuple[Table, Table, Table]] = {}
        #: All keys that were seen with their site's signature, by site and digest.
        self._seen: dict[tuple[str, str], RoundKeys] = {}
        self._digests: dict[tuple[Step, str], str] = {}
        self._twice: set[str] = set()

    def advance(
        self, inbox: Iterable[tuple[Step, str, bytes]], at: datetime, step: Step
    ) -> dict[str, bytes]:
        """Take answers, decide what a step needs, and return its requests, by site.

        Parameters
        ----------
        inbox : iterable of (str, str, bytes)
            Step, site and content of each answer; empty content for a silent site.
        at : datetime
            The current time.
        step : Step
            The step to ask for: no answers to the steps before it are waited for.

        Raises
        ------
        RoundError
            If too few sites are left, or the round has failed.
        """
        for of, site, content in inbox:
            self.take(of, site, content, at)
        if step == "shares":
            self.close_keys()
        elif step == "survivors":
            self.close()
        elif step == "unmask" and not self.whole:
            self.close_signatures()
        elif step == "masked" and not self.listed.sites:
            self.check_enough(len(self.dealt), "shares")  # before anyone spends
        return self.requests(step)

    # --- what comes ---------------------------------------------------------------------------

    def take(self, step: Step, site: str, content: bytes, at: datetime) -> str:
        """Take an answer; if it is not valid, record and return the word for the reason.

        ``content`` is empty for a silent site.
        """
        word = "" if content else str(Refusal.SILENT)
        try:
            if content:
                self.add(step, site, content, at)
        except HushTableError as error:  # whose message may quote what arrived
            word = error.word or Refusal.GARBLED
        if word:
            self.lost.setdefault(site, f"{step}: {word}")
        return word

    def add(self, step: Step, site: str, content: bytes, at: datetime) -> None:
        """Take an answer; raise `HushTableError` with a message for the coordinator alone."""
        if step == "masked":
            self._take_masked(site, content, at)
        else:
            message = Message.read(content, self.round.card(site)).check(self.round, step)
            if step == "keys":
                self._take_keys(message)
            elif step == "shares":
                self._take_dealt(message)
            else:
                self._take_signed(step, message)
        self.reached[site] = step

    def drop(self, names: Collection[str]) -> None:
        """Leave sites out before the list is decided, regardless of what they sent."""
        for name in names if not self.listed.sites else ():
            if not self.decided.keys:
                self.drawn.pop(name, None)
            self.dealt.pop(name, None)
            self.submitted.pop(name, None)

    def _take_keys(self, message: Message) -> None:
        site = message.sender
        try:
            keys = RoundKeys.of_message(self.round, message)
        except NoKeyError:
            self.found_out[site] = "signed a key for this round that is no key"
            raise
        self._seen[site, keys.digest] = keys
        if keys.digest == self.decided.keys.get(site, keys.digest):
            self.drawn[site] = keys
        self._is_first("keys", site, keys.digest, self.decided.keys.get(site))

    def _take_dealt(self, message: Message) -> None:
        dealt = Dealt.of_message(self.round, message)
        for name, content in dealt.keys.items():
            earlier = self._seen.get((name, digest_of_content(content)))
            if earlier is None or earlier.content != content:
                keys = RoundKeys.of(self.round, name, content)
                self._seen[name, keys.digest] = keys
                if keys.digest == self.decided.keys.get(name, keys.digest):
                    self.drawn.setdefault(name, keys)  # though its own message may be on its way
                # Two different keys of one site, both with its signature, prove that it cheated.
                self._compare("keys", name, keys.digest, self.decided.keys.get(name))
        listed = self.listed.dealers.get(message.sender)
        if self._is_first("shares", message.sender, dealt.seed, listed):
            self.dealt[message.sender] = dealt

    def _take_masked(self, site: str, content: bytes, at: datetime) -> None:
        submission = _submission(self.round, site, content, at)
        listed = self.listed.sites.get(site, {}).get("masked")
        if self._is_first("masked", site, submission.digest, listed):
            self.submitted[site] = submission.accepted(b"")

    def _is_first(self, step: Step, site: str, digest: str, decided: str | None) -> bool:
        """Return whether an answer counts; raise `RoundError` if a site gave two different ones.

        For a site on the list, the answer on the list counts, and any other proves cheating; so for
        keys that others were asked to mask with.
        """
        self._compare(step, site, digest, decided)
        if self.listed.sites:
            return decided == digest
        if site in self._twice:
            raise RoundError(f"{site!r} {self.found_out[site]}")
        return True

    def _compare(self, step: Step, site: str, digest: str, decided: str | None) -> None:
        """Record a site that signed two different answers to a step, and leave it out."""
        if self._digests.setdefault((step, site), decided or digest) != digest:
            self.found_out[site] = f"signed two different answers to step {step!r}"
            self._twice.add(site)
            self.drop([site])

    def _take_signed(self, step: Step, message: Message) -> None:
        site, digest = message.sender, self.listed.digest(self.round)
        faults = {
            f"{site!r} answers about a different list of sites": (
                site not in self.listed.sites or message.body.get("list") != digest
            ),
            # It was lost from a folder, and not from this list: see `lacking`.
            f"what {site!r} dealt is missing, so its answer cannot be read yet": (
                site not in self.dealt
            ),
        }
        raise_first(RoundError, faults)
        if "complaints" in message.body:
            self._take_complaints(message)
        elif step == "survivors":
            signature = message.body.get("signature")
            if not isinstance(signature, str) or not self.round.card(site).signs(
                LIST, digest, signature
            ):
                raise RoundError(f"{site!r} did not sign the list of sites")
            self.signed.setdefault(site, signature)
        else:
            self.helped.setdefault(site, self._tables(message))

    def _take_complaints(self, message: Message) -> None:
        names = message.body["complaints"]
        dealers = list(self.listed.dealers)
        if not isinstance(names, list) or not names or not all(site in dealers for site in names):
            raise RoundError(f"{message.sender!r} sent a malformed complaint")
        self.disputed = sorted({*self.disputed, *((message.sender, name) for name in names)})

    # --- what is decided ----------------------------------------------------------------------

    @property
    def listed(self) -> SumList:
        """Return the list of sites in the sum; empty until that is decided."""
        return self.decided.listed

    @property
    def whole(self) -> bool:
        """Return whether all sites of the roster are on the list."""
        return set(self.listed.sites) == set(self.round.names)

    @property
    def present(self) -> list[str]:
        """Return the sites that dealt shares and sent counts, masked with all decided keys."""
        present = sorted(set(self.dealt) & set(self.submitted))
        if self.listed.sites:  # which sites agreed was checked before that was decided
            return present
        keys = [self.dealt[name].digests for name in present if name in self.decided.keys]
        # A member may show some sites one key and others a different one. Then it is out, because
        # only what is agreed on by those on the list matters.
        own = {}
        for name in set(present) & set(self.decided.keys):
            (digest, _), *_ = Counter(digests.get(name, "") for digests in keys).most_common(1)
            if digest == self.dealt[name].digests[name]:
                own[name] = digest
        return sorted(name for name in own if own.items() <= self.dealt[name].digests.items())

    def close_keys(self) -> None:
        """Decide that all mask with the sites that have drawn keys; raise if they are too few."""
        if not self.decided.keys:
            self.check_enough(len(self.drawn), "keys")
            self.decided.keys = {name: self.drawn[name].digest for name in sorted(self.drawn)}

    def close(self) -> None:
        """Decide that the current sites form the sum; raise `RoundError` if they are too few."""
        if self.listed.sites:
            return
        present = self.present
        self.check_enough(len(present), "masked")
        sites = {
            name: {"masked": self.submitted[name].digest, "seed": self.dealt[name].seed}
            for name in present
        }
        others = {
            name: dealt.seed
            for name, dealt in self.dealt.items()
            if name not in sites and self._is_useful(dealt, present)
        }
        self.decided.listed = SumList(sites, dict(sorted(others.items())))

    def _is_useful(self, dealt: Dealt, present: Collection[str]) -> bool:
        """Return whether all sites in the sum can read what another site dealt.

        They have to know the same key of it, and it the keys that they seal with.
        """
        digest = dealt.digests[dealt.sender]
        return all(
            self.dealt[name].digests.get(dealt.sender) == digest
            and dealt.digests.get(name) == self.dealt[name].digests[name]
            for name in present
        )

    def close_signatures(self) -> None:
        """Decide whose signatures prove the list; raise `RoundError` if they are too few."""
        self._check_disputed()
        if not self.decided.signed:
            self.check_enough(len(self.signed), "survivors")
            first = sorted(self.signed)[: self.round.needed]
            self.decided.signed = {name: self.signed[name] for name in first}

    def check_enough(self, n: int, step: Step) -> None:
        """Raise `RoundError` unless that many sites are enough to continue."""
        least = self.round.needed
        if n < least:
            lost = "; ".join(f"{name}: {why}" for name, why in sorted(self.lost.items()))
            stream = self.round.period is not None
            remedy = "the period again (hushtable round next --again)" if stream else "a new round"
            raise TooFewError(
                f"no sum: {n} sites are left in step {step!r}, and {least} are needed "
                f"({lost or 'no one is lost'}). Nothing can be read from what was sent; open "
                f"{remedy}"
            )

    def _check_disputed(self) -> None:
        """Raise `RoundError` if a site does not accept the shares of another one."""
        if self.disputed:
            pairs = "; ".join(
                f"{reader!r} says that the shares of {dealer!r} for it do not open, or do not have "
                "its signature"
                for reader, dealer in self.disputed
            )
            raise RoundError(
                f"no sum: {pairs}. One of the two is wrong, or what was passed on between them, "
                "and nothing shows which: open the round again without them"
            )

    # --- what is asked ------------------------------------------------------------------------

    def requests(self, step: Step) -> dict[str, bytes]:
        """Return the requests of a step, by site; the same bytes each time."""
        if step == "keys":
            return dict.fromkeys(self.decided.keys or self.round.names, self._ask(step, {}))
        if step == "shares":
            keys = self.decided.keys
            if not set(keys) <= set(self.drawn):
                return {}
            contents = {name: self.drawn[name].content for name in keys}
            return dict.fromkeys(keys, self._ask(step, *passed_on(contents)))
        if step == "masked":
            return dict.fromkeys(sorted(self.dealt), self._ask(step, {}))
        if step == "unmask" and not self.whole:
            request = self._ask(step, {"signed": self.decided.signed})
            return dict.fromkeys(sorted(self.signed) if self.decided.signed else (), request)
        if (step == "survivors") == self.whole or self.lacking:
            return {}  # a list of all sites needs no signatures
        return {name: self._listing(step, name) for name in sorted(self.listed.sites)}

    def ending(self) -> bytes:
        """Return the message that the round has ended, and that no more requests follow."""
        return self._ask("end", {})

    def _listing(self, step: Step, reader: str) -> bytes:
        """Return the list for one site: with its rows, and keys of dealers that have others."""
        mine = self.dealt[reader].digests
        dealers = [self.dealt[name] for name in sorted(self.listed.dealers)]
        keys = {dealt.sender: dealt.digests for dealt in dealers if dealt.digests != mine}
        rows = table([dealt.rows[reader] for dealt in dealers], masks.SEALED_BYTES)
        body = self.listed.to_dict() | {"reader": reader} | ({"keys": keys} if keys else {})
        return self._ask(step, body, {"rows": rows})

    def _ask(self, step: Step, body: dict[str, Any], arrays: files.Arrays | None = None) -> bytes:
        return ask(self.round, step, self._keys, body, arrays)

    # --- the sum ------------------------------------------------------------------------------

    @property
    def lacking(self) -> list[str]:
        """Return the sites whose answers the list names, but which are not on hand."""
        others = set(self.listed.others) - set(self.dealt)
        return sorted((set(self.listed.sites) - set(self.present)) | others)

    @property
    def awaited(self) -> list[str]:
        """Return the sites on the list that have not helped to remove the masks yet."""
        return sorted(set(self.listed.sites) - set(self.helped))

    @property
    def indispensable(self) -> list[str]:
        """Return the sites that drew a key and dealt nothing, if masks with them were sent."""
        each = (undealt(self.dealt[name].keys, self.listed) for name in self.listed.sites)
        return sorted({name for names in each for name in names})

    def result(self, content: Callable[[str], bytes]) -> Noised:
        """Return the signed sum; raise `RoundError` if there is none, `TooFewError` if not yet.

        ``content`` returns what a site submitted, so that only one of them is in memory.
        """
        self._check_disputed()
        self.check_enough(len(self.helped), "unmask")
        if self.indispensable and self.awaited:
            raise TooFewError(
                f"no sum: {_named(self.indispensable)} drew a key and dealt no shares of it, so "
                f"all sites in the sum have to help, and {_named(self.awaited)} did not"
            )
        sites = sorted(self.listed.sites)
        digests = {name: self.listed.sites[name]["masked"] for name in sites}
        words = add_up(self.round, digests, content)
        for name in sites:
            seed = self._combined(name, of_seed=True)
            key = masks.own_key(seed, self.round.round_id, name)
            masks.add_stream(key, words, subtract=True)
        for name, other, key in self._outside(sites):
            masks.add_pair(name, other, key, words, subtract=True)
        ledgers = {name: self.submitted[name].ledger for name in sites}
        return with_seal(self.round, total(self.round, words, ledgers), digests, self._keys)

    def _outside(self, sites: list[str]) -> Iterable[tuple[str, str, bytes]]:
        """Yield each site in the sum with a site outside, and the key of their mask."""
        round_id = self.round.round_id
        for other in self.listed.others:
            private = self._combined(other, of_seed=False)
            for name in sites:
                public = self._seen[name, self.dealt[name].digests[name]].mask
                yield name, other, masks.pair_key(private, public, round_id, other, name)
        for name in sites:
            away = undealt(self.dealt[name].keys, self.listed)
            if away:
                _, _, keys = self.helped[name]
                for other, key in zip(away, keys, strict=True):
                    yield name, other, key.tobytes()

    def _tables(self, message: Message) -> tuple[Table, Table, Table]:
        """Return what a site gives; raise `RoundError` if it has the wrong form."""
        away = undealt(self.dealt[message.sender].keys, self.listed)
        return (
            read_table(message, "seeds", len(self.listed.sites), masks.PROVED_BYTES),
            read_table(message, "keys", len(self.listed.others), masks.PROVED_BYTES),
            read_table(message, "pairs", len(away), masks.SECRET_BYTES),
        )

    def _combined(self, dealer: str, *, of_seed: bool) -> bytes:
        """Return the secret of a dealer from the shares that sites gave.

        Signatures are only checked if the shares do not give the secret that the dealer committed
        to: they then show whether the readers or the dealer cheated.
        """
        names = sorted(self.listed.sites if of_seed else self.listed.others)
        i, part = names.index(dealer), 0 if of_seed else 1
        given = {name: shares[part][i].tobytes() for name, shares in sorted(self.helped.items())}
        secret = self._fitting(dealer, given, of_seed)
        if secret is None:
            given = {
                name: shares
                for name, shares in given.items()
                if self._is_signed(dealer, name, shares, of_seed)
            }
            secret = self._fitting(dealer, given, of_seed)
        if secret is not None:
            return secret
        if len(given) < self.round.needed:
            raise TooFewError(
                f"no sum: {len(given)} sites gave valid shares of {dealer!r}, and "
                f"{self.round.needed} are needed. More answers may solve this; otherwise open a "
                "new round"
            )
        self.found_out[dealer] = "dealt shares that do not belong together"
        raise RoundError(
            f"no sum: {dealer!r} {self.found_out[dealer]}. Open a new round without it"
        )

    def _is_signed(self, dealer: str, reader: str, given: bytes, of_seed: bool) -> bool:
        """Return whether a dealer signed a share; record a reader that gave something else."""
        card, context = self.round.card(dealer), self.dealt[dealer].context(self.round, reader)
        if masks.is_proved(card, context, given, of_seed=of_seed):
            return True
        self.found_out[reader] = f"gave a share that its dealer, {dealer!r}, did not sign"
        return False

    def _fitting(self, dealer: str, given: dict[str, bytes], of_seed: bool) -> bytes | None:
        """Return the secret of the first shares, if it is the one that the dealer committed to."""
        first = list(given.items())[: self.round.needed]
        if len(first) < self.round.needed:
            return None
        places = {place_of(self.round, name): one[: masks.SHARE_BYTES] for name, one in first}
        secret = masks.combine(places)
        if secret is None:
            return None
        if of_seed:
            return secret if masks.seed_hash(secret) == self.listed.dealers[dealer] else None
        own = self._seen[dealer, self.dealt[dealer].digests[dealer]]
        return secret if masks.public_of(secret) == own.mask else None


def _submission(round_: Round, name: str, content: bytes, at: datetime) -> Submission:
    """Return what a site submits; raise `HushTableError` if it is not valid."""
    try:
        return Submission.from_bytes(content, name, round_, at, name)
    except HushTableError as error:
        try:
            Message.read(content, round_.card(name)).check(round_, "masked")
        except Refused:  # the reason for the refusal
            raise
        except HushTableError:  # not that either
            raise error from None
        raise


def _named(names: list[str]) -> str:
    return ", ".join(map(repr, names))
