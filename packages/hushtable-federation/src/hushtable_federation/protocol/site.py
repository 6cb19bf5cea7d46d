"""A site in a masked round: its answer to each step, from what it keeps between the steps.

A site answers each step once, and records the answer before it is sent; the same request gets the
same bytes, even after a crash. Everything that can fail because of the rows fails in the first
step, before any site spends.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from hushtable import files
from hushtable.errors import RoundError
from hushtable_federation.keys import Keys
from hushtable_federation.protocol import masks
from hushtable_federation.protocol.messages import (
    LIST,
    Dealt,
    Message,
    RoundKeys,
    Step,
    SumList,
    digest_of_content,
    digest_of_keys,
    passed_on,
    read_passed_on,
    read_table,
    table,
)
from hushtable_federation.refusals import Refusal, Refused, refusing
from hushtable_federation.round import Round

#: As JSON has it.
Kept = dict[str, Any]


class StepStore(Protocol):
    """Where a site keeps its answers and secrets between the steps; its book is one."""

    def step(self, round_id: str, step: str) -> tuple[str, bytes, Kept] | None:
        """Return the digest of a step's request, the answer, and what is kept for later steps."""

    def note_step(
        self, round_id: str, step: str, asked: str, answer: bytes, kept: Kept
    ) -> tuple[str, bytes]:
        """Record a step, or return the request and answer that another process recorded."""


class MaskedCounts(Protocol):
    """The rows of a site, as the steps need them."""

    def count(self) -> None:
        """Check the round, and count the rows; raise whatever stops the site."""

    def send(self, mask: masks.Words) -> bytes:
        """Record the counts with noise, and return the signed submission with this mask added."""

    def sent(self) -> bytes:
        """Return what `send` returned before; empty if nothing was sent."""


class _CheckedList(NamedTuple):
    """A checked list, with the rows of shares that came with it, and rows that are not valid."""

    listed: SumList
    rows: dict[str, bytes]
    complaints: list[str]


@dataclass(frozen=True)
class MaskedSite:
    """A site in a masked round.

    Parameters
    ----------
    round : Round
        The round.
    keys : Keys
        The site's.
    store : StepStore
        What it keeps between the steps.
    counts : MaskedCounts
        The site's rows.
    """

    round: Round
    keys: Keys
    store: StepStore
    counts: MaskedCounts

    @property
    def me(self) -> str:
        """Return the site's name."""
        return self.keys.card.name

    def answer(self, asked: Message) -> bytes:
        """Return the signed answer to a request.

        Raise `Refused` if there is none, and what `MaskedCounts` raises.
        """
        if asked.step == "keys":
            return self.draw()
        if asked.step == "shares":
            with refusing(Refusal.REQUEST):
                keys = read_passed_on(self.round, asked)
            return self.deal(keys)
        if asked.step == "masked":
            return self.mask()
        if asked.step == "survivors":
            return self._once("survivors", asked.digest, lambda: self._sign(asked))
        if asked.step == "unmask":
            return self._once("unmask", asked.digest, lambda: self._unmask(asked))
        raise Refused(Refusal.REQUEST, f"step {asked.step!r} is unknown here")

    def _once(self, step: Step, asked: str, work: Callable[[], tuple[bytes, Kept]]) -> bytes:
        """Return the recorded answer to a step; answer and record it the first time."""
        noted = self.store.step(self.round.round_id, step)
        given = noted and noted[:2]
        if given is None:
            answer, kept = work()
            given = self.store.note_step(self.round.round_id, step, asked, answer, kept)
        if given[0] != asked:
            raise Refused(
                Refusal.ANSWERED,
                f"step {step!r} was already answered, to a different request, and each step is "
                "answered once: open a new round",
            )
        return given[1]

    def _noted(self, step: Step) -> tuple[bytes, Kept]:
        noted = self.store.step(self.round.round_id, step)
        if noted is None:
            raise Refused(Refusal.ORDER, f"step {step!r} has to come first")
        return noted[1:]

    def _kept(self, step: Step) -> Kept:
        """Return what was kept from an earlier step; refuse if it is missing or forgotten."""
        kept = self._noted(step)[1]
        if not kept:
            raise Refused(
                Refusal.TIME,
                f"the data kept from step {step!r} are forgotten: the round has ended, its time "
                "is over, or a person here has refused it",
            )
        return kept

    def _message(self, step: Step, body: Kept, arrays: files.Arrays | None = None) -> bytes:
        return Message.make(self.round, step, self.keys, body, arrays).content

    # --- keys, shares and masks ---------------------------------------------------------------

    def draw(self) -> bytes:
        """Count the rows, and draw two key pairs for this round: to mask and to seal with."""

        def work() -> tuple[bytes, Kept]:
            self.counts.count()
            mask, seal = masks.draw_key(), masks.draw_key()
            public = masks.public_of(mask), masks.public_of(seal)
            made = RoundKeys.sign(self.round, self.keys, *public)
            arrays = {"keys": table([made.content], len(made.content))}
            return self._message("keys", {}, arrays), {"mask": mask.hex(), "seal": seal.hex()}

        return self._once("keys", self.round.round_id, work)

    def deal(self, keys: Mapping[str, bytes]) -> bytes:
        """Deal shares of the private mask key and of the seed of the own mask.

        ``keys`` are the keys of the sites to mask with, this one among them, as they are passed on.
        """
        asked = digest_of_keys({name: digest_of_content(key) for name, key in keys.items()})
        return self._once("shares", asked, lambda: self._deal(keys))

    def _deal(self, keys: Mapping[str, bytes]) -> tuple[bytes, Kept]:
        with refusing(Refusal.SHARES):
            round_keys = {name: RoundKeys.of(self.round, name, key) for name, key in keys.items()}
        _check_enough(self.round, round_keys)
        mine = RoundKeys.read(self.round, self.me, self._noted("keys")[0])
        if round_keys.get(self.me) != mine:
            raise Refused(Refusal.SITES, "the keys for this round lack the one of this site")
        drawn, seed = self._kept("keys"), secrets.token_bytes(masks.SECRET_BYTES)
        names = sorted(round_keys)
        places = [place_of(self.round, name) for name in names]
        of_key, of_seed = (
            masks.share(secret, self.round.needed, places)
            for secret in (bytes.fromhex(drawn["mask"]), seed)
        )
        commitment, rows = masks.seed_hash(seed), []
        all_keys = digest_of_keys({name: key.digest for name, key in round_keys.items()})
        for name, of_key_here, of_seed_here in zip(names, of_key, of_seed, strict=True):
            context = masks.Context(self.round.round_id, self.me, name, all_keys, commitment)
            row = masks.Row.sign(self.keys, context, of_key_here, of_seed_here)
            rows.append(masks.seal_row(self._seal(name, round_keys[name].seal), row))
        body, arrays = passed_on(keys)
        arrays["rows"] = table(rows, masks.SEALED_BYTES)
        kept = {"seed": seed.hex(), "keys": {name: key.hex() for name, key in keys.items()}}
        return self._message("shares", body | {"seed": commitment}, arrays), kept

    def _seal(self, other: str, public: str) -> bytes:
        private = bytes.fromhex(self._drawn["seal"])
        return masks.seal_key(private, public, self.round.round_id, self.me, other)

    def _pair(self, other: str) -> bytes:
        private, public = bytes.fromhex(self._drawn["mask"]), self._partners[other].mask
        return masks.pair_key(private, public, self.round.round_id, self.me, other)

    @cached_property
    def _drawn(self) -> Kept:
        return self._kept("keys")

    @cached_property
    def _partners(self) -> dict[str, RoundKeys]:
        """Return the keys of the sites that this one masks with, and its own; checked before."""
        keys = self._kept("shares")["keys"]
        return {name: RoundKeys(key[:64], key[64:128], key[128:]) for name, key in keys.items()}

    def mask(self) -> bytes:
        """Send the counts with noise and masks: the own one, and one with each partner."""

        def work() -> tuple[bytes, Kept]:
            total = np.zeros(self.round.plan.family.n_cells, np.uint64)
            seed = bytes.fromhex(self._kept("shares")["seed"])
            masks.add_stream(masks.own_key(seed, self.round.round_id, self.me), total)
            for name in self._partners:
                if name != self.me:
                    masks.add_pair(self.me, name, self._pair(name), total)
            self.counts.send(total)
            return b"", {}  # the submission is stored once, with the counts

        self._once("masked", self.round.round_id, work)
        return self.counts.sent()

    # --- the list -----------------------------------------------------------------------------

    def _sign(self, asked: Message) -> tuple[bytes, Kept]:
        """Sign the list, if all of it is as this site knows it; or complain about rows."""
        if self.store.step(self.round.round_id, "unmask") is not None:
            raise Refused(Refusal.ANSWERED, "shares were given for a different list of sites")
        taken = self._take(asked)
        digest = taken.listed.digest(self.round)
        if taken.complaints:
            return self._complain("survivors", taken)
        body = {"list": digest, "signature": self.keys.sign(LIST, digest)}
        rows = {name: row.hex() for name, row in taken.rows.items()}
        return self._message("survivors", body), {"list": taken.listed.to_dict(), "rows": rows}

    def _complain(self, step: Step, taken: _CheckedList) -> tuple[bytes, Kept]:
        body = {"list": taken.listed.digest(self.round), "complaints": taken.complaints}
        return self._message(step, body), {"complaints": taken.complaints}

    def _unmask(self, asked: Message) -> tuple[bytes, Kept]:
        """Give shares: at once for a list of all sites, otherwise if enough sites signed it."""
        if "sites" in asked.body:
            if self.store.step(self.round.round_id, "survivors") is not None:
                raise Refused(Refusal.ANSWERED, "this site signed a different list of sites")
            taken = self._take(asked)
            if set(taken.listed.sites) != set(self.round.names):
                raise Refused(
                    Refusal.SITES, "sites are missing: the sites in the sum have to sign first"
                )
            if taken.complaints:
                return self._complain("unmask", taken)
            return self._give(taken.listed, taken.rows), {}
        kept = self._kept("survivors")
        if "complaints" in kept:
            raise Refused(Refusal.SHARES, f"this site complained about {kept['complaints']}")
        listed = SumList.of(self.round, kept["list"])
        self._check_signed(asked, listed)
        return self._give(listed, {n: bytes.fromhex(row) for n, row in kept["rows"].items()}), {}

    def _take(self, asked: Message) -> _CheckedList:
        """Check a list, and open the rows of shares that come with it.

        Raise `Refused` unless it has enough sites, this one as it answered, and only sites that
        mask with one another by the keys that this site knows.
        """
        with refusing(Refusal.REQUEST):
            body = dict(asked.body)
            keys, reader = body.pop("keys", {}), body.pop("reader", None)
            if reader != self.me:  # anyone who can write to a folder can give it another's request
                raise RoundError(f"the request is for {reader!r}, not for {self.me!r}")
            listed = SumList.of(self.round, body)
            sealed = read_table(asked, "rows", len(listed.dealers), masks.SEALED_BYTES)
        _check_enough(self.round, listed.sites)
        dealt = Dealt.of_message(self.round, Message.read(self._noted("shares")[0], self.keys.card))
        sent = self.counts.sent()
        if not sent:
            raise Refused(Refusal.ORDER, "step 'masked' has to come first")
        mine = {"masked": files.unpack(sent, "the submission").digest, "seed": dealt.seed}
        if listed.sites.get(self.me) != mine:
            raise Refused(Refusal.SITES, "the list of sites does not have this site's answer")
        rows, complaints = dict[str, bytes](), list[str]()
        for dealer, row in zip(sorted(listed.dealers), sealed, strict=True):
            theirs = _keys_of(dealer, keys, dealt.digests)
            self._check_keys(listed, dealer, theirs, dealt.digests)
            all_keys, seed = digest_of_keys(theirs), listed.dealers[dealer]
            context = masks.Context(self.round.round_id, dealer, self.me, all_keys, seed)
            key = self._seal(dealer, self._partners[dealer].seal)  # refused if it is forgotten
            try:
                rows[dealer] = masks.open_row(key, row.tobytes())
                masks.Row.read(self.round.card(dealer), context, rows[dealer])
            except RoundError:
                complaints.append(dealer)
        return _CheckedList(listed, rows, complaints)

    def _check_keys(
        self, listed: SumList, dealer: str, theirs: Mapping[str, str], mine: Mapping[str, str]
    ) -> None:
        """Refuse unless a dealer masks with all sites on the list by the same keys as this site.

        For another dealer, its own key is enough: the one that its shares give.
        """
        names = {*listed.sites} if dealer in listed.sites else {dealer}
        for name in sorted({*names, dealer}):
            if name not in mine or theirs.get(name) != mine[name]:
                raise Refused(
                    Refusal.SITES,
                    f"{dealer!r} and this site do not have the same key of {name!r}, so their "
                    "masks would not cancel",
                )

    def _check_signed(self, asked: Message, listed: SumList) -> None:
        """Refuse unless enough sites on the list signed the list that this site signed."""
        signed = asked.body.get("signed")
        if not isinstance(signed, dict) or not all(map(_is_text, signed.values())):
            raise Refused(Refusal.REQUEST, "step 'unmask': the request is malformed")
        digest = listed.digest(self.round)
        for name, signature in signed.items():
            if name not in listed.sites:
                raise Refused(Refusal.SHARES, f"{name!r} is not on the list")
            if not self.round.card(name).signs(LIST, digest, signature):
                raise Refused(Refusal.SHARES, f"{name!r} did not sign the list signed here")
        if len(signed) < self.round.needed:
            raise Refused(
                Refusal.SITES,
                f"{len(signed)} sites signed the list, and {self.round.needed} are needed: no "
                "share is given",
            )

    def _give(self, listed: SumList, rows: Mapping[str, bytes]) -> bytes:
        """Give a share of the seed of each site in the sum, and of the mask key of each other one.

        Never both of one site. No one has shares of the key of a site that dealt nothing: give the
        key of this site's mask with it.
        """
        opened = {name: _row(row) for name, row in rows.items()}
        seeds = [opened[name].prove_seed() for name in sorted(listed.sites)]
        keys = [opened[name].prove_key() for name in sorted(listed.others)]
        pairs = [self._pair(name) for name in undealt(self._partners, listed)]
        arrays = {
            "seeds": table(seeds, masks.PROVED_BYTES),
            "keys": table(keys, masks.PROVED_BYTES),
            "pairs": table(pairs, masks.SECRET_BYTES),
        }
        return self._message("unmask", {"list": listed.digest(self.round)}, arrays)


def undealt(partners: Mapping[str, object], listed: SumList) -> list[str]:
    """Return the sites that a site masks with, but whose shares are not on hand, sorted."""
    return sorted(set(partners) - set(listed.dealers))


def place_of(round_: Round, name: str) -> int:
    """Return the place of a site's shares, counted from 1 in the order of the roster."""
    return round_.names.index(name) + 1


def _check_enough(round_: Round, names: Mapping[str, object]) -> None:
    if len(names) < round_.needed:
        raise Refused(Refusal.SITES, f"{len(names)} sites are left, and {round_.needed} are needed")


def _keys_of(dealer: str, keys: Any, mine: Mapping[str, str]) -> dict[str, str]:
    """Return the digests of the keys that a dealer masks with; by default, those of this site."""
    record = keys.get(dealer, mine) if isinstance(keys, dict) else None
    if not isinstance(record, Mapping) or not all(map(_is_text, record.values())):
        raise Refused(Refusal.REQUEST, "the list of sites comes with malformed keys")
    return dict(record)


def _row(content: bytes) -> masks.Row:
    key, seed = content[: masks.SHARE_BYTES], content[masks.SHARE_BYTES : 2 * masks.SHARE_BYTES]
    return masks.Row(key, seed, content[2 * masks.SHARE_BYTES :])


def _is_text(value: object) -> bool:
    return isinstance(value, str)
