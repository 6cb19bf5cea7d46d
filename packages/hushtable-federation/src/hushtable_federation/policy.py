"""The policy of a site: whom it answers, together with whom, at what cost; its file; approvals.

Nothing in it depends on rows, so its refusals reveal nothing about them. ``hushtable round keygen``
writes a strict file with comments; the person responsible for the rows edits it.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from hushtable.arguments import Stored, is_digest, translate_errors, whole
from hushtable.data.labels import fold
from hushtable.data.schema import Feature, Schema
from hushtable.errors import FileError, PlanError, PrivacyError
from hushtable.plans.plan import Plan
from hushtable.privacy.accounting import rounded_up
from hushtable.privacy.budget import MAX_EPSILON, check_delta, check_epsilon
from hushtable_federation.keys import Card, Keys, grouped, new_private, read_json, write_json
from hushtable_federation.permissions import fault_of
from hushtable_federation.refusals import Refusal, Refused, raise_first
from hushtable_federation.round import Round
from hushtable_federation.toml_file import ANY, SWITCH, TABLE, Kind, TomlFile, is_texts

Role = Literal["coordinator", "site"]
#: "column" if a column identifies persons, or the most rows of any person, as the site affirms.
Persons = int | Literal["column"]


def parties(round_: Round) -> list[tuple[Role, Card]]:
    """Return the coordinator and the sites, each with its role."""
    return [("coordinator", round_.coordinator), *(("site", card) for card in round_.sites)]


@dataclass(frozen=True)
class Policy:
    """Rules that the people of a site set.

    Attributes
    ----------
    coordinators, sites : mapping of str to str
        Fingerprints of cards by name. A table that is not empty decides alone who is known in that
        role; otherwise the site's book decides.
    epsilon, delta : float
        The most that a round may state.
    total_epsilon : float
        The most that all rounds together may cost, at the delta of the book's cap; the cap applies,
        too.
    known_sites : int
        The least number of sites of a masked round that have to be known here, including this one.
    coordinator_may_be_site : bool
        Whether the coordinator may take part as a site.
    unattended : bool
        Whether rounds may be answered without a person.
    persons : "column" or int
        What shows that no person has more rows than a round states. By default, a column of the
        rows identifies persons, and excess rows of a person are not counted. A number is the most
        rows that any person has, as the site affirms: a round that states fewer is refused, unless
        a column identifies persons.
    masks : bool
        Whether the site answers only masked rounds. Without masks, the coordinator sees this site's
        counts, with its noise.
    independent : bool
        Whether the site affirms that each row of its query or view depends on the records of one
        person only. Otherwise, its file has to (``independent = true``), or no round is answered.
    plans : tuple of str
        Ids of plans that the site may count under, whatever their columns.
    features : tuple of Feature
        Columns that the site may count: a round's ranges have to be within these, and its
        categories among these. Without plans and features, a person reviews each round's columns.
    officer : str
        Fingerprint of the person who has to sign each round first; empty if no signature is needed.
    digest : str
        SHA-256 of the file; empty without one.

    Examples
    --------
    >>> from hushtable import Feature
    >>> from hushtable_federation import Policy
    >>> age = Feature.numeric("age", low=0, high=120)
    >>> Policy(epsilon=1.0, features=(age,)).unattended
    False
    """

    coordinators: Mapping[str, str] = field(default_factory=dict)
    sites: Mapping[str, str] = field(default_factory=dict)
    epsilon: float = MAX_EPSILON
    delta: float = 1e-6
    total_epsilon: float = MAX_EPSILON
    known_sites: int = 2
    coordinator_may_be_site: bool = False
    unattended: bool = False
    plans: tuple[str, ...] = ()
    features: tuple[Feature, ...] = ()
    officer: str = ""
    digest: str = ""
    persons: Persons = "column"
    masks: bool = True
    independent: bool = False

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_epsilon(self.total_epsilon)
        check_delta(self.delta)
        whole("known_sites", self.known_sites, 1, 1000)
        number = type(self.persons) is int and self.persons >= 1
        if not number and self.persons != "column":
            raise PlanError(
                f"persons is {self.persons!r:.80}: needs 'column', or the most rows that any "
                "person has, as a whole number, 1 or more (persons = 1)"
            )
        both = set(self.coordinators.values()) & set(self.sites.values())
        others = len(self.sites)
        contradictions: dict[str, object] = {
            "epsilon is above total_epsilon": self.epsilon > self.total_epsilon,
            "a coordinator is also named as a site, and coordinator_may_be_site is false": both
            and not self.coordinator_may_be_site,
            f"known_sites is {self.known_sites}, but only {others} other sites are named": (
                others and others + 1 < self.known_sites
            ),
            "unattended answers are allowed, but no plan and no column is": self.unattended
            and not (self.plans or self.features),
        }
        raise_first(
            lambda words: PlanError(f"the policy contradicts itself: {words}"), contradictions
        )

    # --- who is known -----------------------------------------------------------------------

    def pins(self, known: Callable[[str], Mapping[str, Card]]) -> dict[Role, Mapping[str, str]]:
        """Return whom this site knows in each role: fingerprints by name.

        ``known`` returns the cards that the book knows in a role (`Book.known`); it applies if the
        policy names no one.
        """
        return {
            role: pins or {name: card.fingerprint for name, card in known(role).items()}
            for role, pins in self.named.items()
        }

    @property
    def named(self) -> dict[Role, Mapping[str, str]]:
        """Return whom the policy names in each role: fingerprints by name."""
        return {"coordinator": self.coordinators, "site": self.sites}

    def strangers(
        self, round_: Round, me: Card, known: Callable[[str], Mapping[str, Card]]
    ) -> list[tuple[Role, Card]]:
        """Return the parties of a round that are not known here, with their roles.

        Parameters
        ----------
        round_ : Round
            The round, with its coordinator and sites.
        me : Card
            This site's card.
        known : callable
            Returns the cards that the book knows in a role, by name: `Book.known`.

        Raises
        ------
        Refused
            If a name is known with other keys.
        """
        new: list[tuple[Role, Card]] = []
        all_pins = self.pins(known)
        for role, card in parties(round_):
            pins = all_pins[role]
            if role == "site" and card == me:
                continue
            if card.name not in pins:
                new.append((role, card))
            elif pins[card.name] != card.fingerprint:
                raise Refused(
                    Refusal.UNKNOWN,
                    f"the keys of {card.name!r} in this round are not those that this site knows "
                    f"(now {card.fingerprint}; before {pins[card.name]}): ask {card.name!r} "
                    "directly, and if they did change, give its new card with --trust (if the "
                    "policy names its fingerprint, correct it)",
                )
        return new

    def check_strangers(self, round_: Round, strangers: list[tuple[Role, Card]]) -> None:
        """Raise `Refused` if the site cannot answer a round with these unknown parties.

        Shared noise protects only if the sites are real: an unknown site may be the coordinator
        under another name, which knows its own part of the noise. So there may be no more unknown
        sites than ``colluders``, on which the round's noise does not rely.
        """
        roles, terms = [role for role, _ in strangers], round_.terms
        unknown, n = roles.count("site"), len(round_.sites)
        names = ", ".join(repr(card.name) for _, card in strangers[:3])
        more = f" and {unknown - 3:,} more" if unknown > 3 else ""
        faults = {
            f"the coordinator {round_.coordinator.name!r} is not known here: call its people, "
            f"compare the fingerprint {round_.coordinator.fingerprint}, and give its card with "
            "--trust, or name it in the policy": "coordinator" in roles,
            f"{n - unknown} of {n} sites are known here, including this one, but the policy "
            f"requires {self.known_sites} (not known: {names}{more}): compare their fingerprints, "
            "and give their cards with --trust, or name them in the policy": (
                terms.masked and n - unknown < self.known_sites
            ),
            f"{unknown} of {n} sites are not known here ({names}{more}), and the protection "
            "relies on their noise: compare their fingerprints, and give their cards with "
            f"--trust, or ask the coordinator for a round with --colluders {unknown}": (
                terms.masked and unknown > terms.colluders
            ),
        }
        raise_first(partial(Refused, Refusal.UNKNOWN), faults)

    # --- what is allowed --------------------------------------------------------------------

    def check(self, round_: Round, plan: Plan, *, attended: bool) -> None:
        """Raise `Refused` if the policy does not allow the terms or columns of a round.

        Parameters
        ----------
        round_ : Round
            The round to answer.
        plan : Plan
            The plan to count under.
        attended : bool
            Whether a person reviews it.
        """
        terms = round_.terms
        epsilon, delta = rounded_up(terms.epsilon, 6), rounded_up(terms.delta, 6)
        reasons = {
            f"it costs epsilon {epsilon:g}, and the policy allows {self.epsilon:g} per round": (
                terms.epsilon > self.epsilon
            ),
            f"it states delta {delta:g}, and the policy allows {self.delta:g}": (
                terms.delta > self.delta
            ),
            f"the coordinator {round_.coordinator.name!r} is also a site, and the policy does "
            "not allow both roles for one party": round_.coordinator in round_.sites
            and not self.coordinator_may_be_site,
            "it is without masks, and the policy requires masks (masks = true under [round])": (
                self.masks and not terms.masked
            ),
            "no person reviews it, and the policy does not allow unattended answers": (
                not attended and not self.unattended
            ),
        }
        raise_first(_against, reasons)
        if plan.plan_id not in self.plans and (self.plans or self.features or not attended):
            allowed = {fold(feature.name): feature for feature in self.features}
            for feature in plan.schema.features:
                _check_feature(feature, allowed.get(fold(feature.name)))

    def check_persons(self, identified: bool, rows_per_person: int) -> None:
        """Raise `Refused` if nothing shows that no person has more rows than a round states.

        ``identified`` states whether a column identifies persons, so that the rows of each are
        counted; ``rows_per_person`` is the bound that the round states.
        """
        if not identified and self.persons == "column":
            raise _against(
                f"nothing shows that no person has more than {rows_per_person:,} rows: name the "
                "column that identifies persons (person = ... in its file), or, if you know the "
                "most rows that any person has, state it in the policy (persons = 1 under [round])"
            )
        if not identified and self.persons != "column" and rows_per_person < self.persons:
            raise _against(
                f"it states at most {rows_per_person:,} rows per person, and the policy affirms "
                f"that a person has up to {self.persons:,}: name the column that identifies "
                "persons (person = ... in its file), or ask the coordinator for a round with "
                f"--rows-per-person {self.persons}"
            )


def _check_feature(feature: Feature, allowed: Feature | None) -> None:
    if allowed is None or allowed.kind != feature.kind:
        what = "does not name it" if allowed is None else f"has it as {allowed.kind}"
        words = f"it counts the column {feature.name!r} ({feature.kind}), and the policy {what}"
    elif feature.kind == "numeric" and not (
        allowed.low <= feature.low and feature.high <= allowed.high
    ):
        words = (
            f"the range of {feature.name!r} is [{feature.low:g}, {feature.high:g}], and the policy "
            f"allows [{allowed.low:g}, {allowed.high:g}]"
        )
    elif not {*map(fold, feature.categories)} <= {*map(fold, allowed.categories)}:
        words = f"{feature.name!r} has categories that the policy does not name"
    else:
        return
    raise _against(words)


def _against(words: str) -> Refused:
    return Refused(Refusal.POLICY, f"this site's policy refuses the round: {words}")


#: The policy if none is given and a person reviews the round: the person decides.
CONFIRMED = Policy(persons=1, masks=False)


_VERSION = 1
_TEMPLATE = Path(__file__).with_name("policy.toml")
_KINDS: dict[str, Kind] = {
    "version": ANY,
    **dict.fromkeys(("coordinators", "sites", "round", "unattended", "officer"), TABLE),
    "plans": (is_texts, "a list of ids"),
    "feature": (lambda value: isinstance(value, list), "one [[feature]] table per column"),
}
#: Entries of ``[round]`` that a policy needs; `Policy` checks them.
_LIMITS = ("delta", "epsilon", "known_sites", "total_epsilon")
_ROUND: dict[str, Kind] = {
    **dict.fromkeys((*_LIMITS, "persons"), ANY),
    **dict.fromkeys(("coordinator_may_be_site", "masks", "independent"), SWITCH),
}
#: An entry of ``[round]`` in policies of 1.0.0rc1 that has no effect: rounds with it are refused.
_UNUSED: dict[str, Kind] = {"max_rows": SWITCH}


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy.

    Raises
    ------
    FileError
        If the file is missing, unreadable, of a newer version, misspelt or contradictory.
    PrivacyError
        If anyone other than this account and root may write to it or replace it.

    Examples
    --------
    >>> from hushtable_federation import load_policy
    >>> from hushtable_federation.policy import write_policy
    >>> write_policy("north.policy.toml", "north", epsilon=2.0, delta=1e-6)
    >>> load_policy("north.policy.toml").total_epsilon
    2.0
    """
    try:
        fault, content = fault_of(path, 0o022), Path(path).read_bytes()
    except FileNotFoundError:
        raise FileError(
            f"{path}: there is no policy here, and without one a site answers no one: copy "
            "the strict one that hushtable round keygen NAME --cap E writes, and review it"
        ) from None
    except OSError as error:
        raise FileError(f"{path}: the policy cannot be read: {error.strerror}") from None
    if fault:
        raise PrivacyError(f"{path}: {fault}; then review the policy")
    file, digest = TomlFile.parsed(path, content), hashlib.sha256(content).hexdigest()
    with translate_errors(FileError, str(path)):
        return _policy(file, digest)


def policy_beside(key: str | os.PathLike[str]) -> Path:
    """Return the path of a site's policy: ``NAME.policy.toml`` beside ``NAME.key``."""
    return Path(key).with_suffix(".policy.toml")


def write_policy(
    path: str | os.PathLike[str],
    name: str,
    epsilon: float,
    delta: float,
    persons: Persons = "column",
) -> None:
    """Write a strict policy with comments for a site, which only its owner may read and change.

    ``epsilon`` and ``delta`` are the cap of its book; ``persons`` is as in `Policy`.
    """
    text = _TEMPLATE.read_text(encoding="utf-8")
    values = {"@NAME@": name, "@EPSILON@": repr(float(epsilon)), "@DELTA@": repr(float(delta))}
    values["@PERSONS@"] = json.dumps(persons)
    for mark, value in values.items():
        text = text.replace(mark, value)
    with new_private(path) as file:
        file.write(text.encode())


def _policy(file: TomlFile, digest: str) -> Policy:
    version = file.entries.get("version")
    if type(version) is not int or not 1 <= version <= _VERSION:
        raise file.error(
            "version",
            f"version {version!r}: this hushtable reads policies of version {_VERSION}: "
            "upgrade with pip install -U hushtable, or write a new one",
        )
    content = file.check(_KINDS)
    officer = file.check({"fingerprint": ANY}, table="officer").get("fingerprint", "")
    columns = tuple(Feature.from_dict(one).folded() for one in content.get("feature", []))
    limits = file.check(_ROUND | _UNUSED, _LIMITS, table="round")
    return Policy(
        coordinators=_pins(file, "coordinators"),
        sites=_pins(file, "sites"),
        unattended=file.check({"answer": SWITCH}, table="unattended").get("answer", False),
        plans=tuple(content.get("plans", [])),
        features=Schema(columns).features if columns else (),
        officer="" if officer == "" else _fingerprint(file, "officer", "fingerprint", officer),
        digest=digest,
        **{name: one for name, one in limits.items() if name not in _UNUSED},
    )


def _pins(file: TomlFile, table: str) -> dict[str, str]:
    pins = file.entries.get(table, {})
    return {name: _fingerprint(file, table, name, text) for name, text in pins.items()}


def _fingerprint(file: TomlFile, table: str, name: str, text: Any) -> str:
    digits = text.replace(" ", "").lower() if isinstance(text, str) else ""
    if len(digits) != 32 or set(digits) - set("0123456789abcdef"):
        words = f"[{table}] {name} is {text!r:.80}: needs the fingerprint of a card, 32 digits"
        raise file.error(name, words, table)
    return grouped(digits)


@dataclass(frozen=True)
class Approval(Stored):
    """States that a person has reviewed a round, and that the site may answer it.

    Attributes
    ----------
    round_id : str
        The id of the round: SHA-256 of everything in it.
    card : Card
        The signer's card.
    signature : str
        Ed25519, 128 hexadecimal digits, over the round's id.

    Examples
    --------
    >>> from hushtable_federation import Approval, Keys
    >>> here = Rehearsal()  # made-up sites and an open round
    >>> approval = Approval.sign(here.round, Keys.generate("officer"))
    >>> approval.holds
    True
    """

    round_id: str
    card: Card
    signature: str

    stored_as = "an approval of hushtable round approve"

    @classmethod
    def sign(cls, round_: Round, keys: Keys) -> "Approval":
        """Sign a round."""
        return cls(round_.round_id, keys.card, keys.sign("approval", round_.round_id))

    @property
    def holds(self) -> bool:
        """Return whether the signature is that of the card."""
        return self.card.signs("approval", self.round_id, self.signature)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the approval as JSON."""
        write_json(path, "approval", self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Approval":
        """Read an approval; raise `FileError` if the file holds none."""
        with translate_errors(FileError, f"{path}: this is not an approval, or a damaged one"):
            made = cls.from_dict(read_json(path, "approval", "approve"))
            if not is_digest(made.round_id):
                raise ValueError("it names no round by its id")
            return made


def check_officer(fingerprint: str, approval: Approval | None, round_: Round) -> None:
    """Raise `Refused` unless the officer with this fingerprint signed the round."""
    if not fingerprint:
        return
    if approval is None:
        words = "is missing"
    elif approval.card.fingerprint != fingerprint:
        words = f"is from a different person, {approval.card.fingerprint}"
    elif approval.round_id != round_.round_id:
        words = f"is for a different round, {approval.round_id[:12]}"
    elif not approval.holds:
        words = "is forged, or the file was edited"
    else:
        return
    raise Refused(
        Refusal.POLICY,
        f"the policy requires the officer's signature ({fingerprint}) on round "
        f"{round_.round_id[:12]}, but it {words}: give the file of hushtable round approve",
    )
