"""An officer's signature over a round: a site's policy may demand it before anything is counted."""

import os
from dataclasses import dataclass

from hushtable.arguments import entries, is_digest
from hushtable.errors import FileError
from hushtable_federation.keys import Card, Keys, read_json, write_json
from hushtable_federation.refusals import Refusal, Refused
from hushtable_federation.round import Round


@dataclass(frozen=True)
class Approval:
    """Says that somebody has looked at a round, and that it may be answered.

    Attributes
    ----------
    round_id : str
        The round's: SHA-256 of everything in it.
    card : Card
        Of who signed.
    signature : str
        Ed25519, 128 hexadecimal digits, over the round's id.

    Examples
    --------
    >>> from hushtable_federation import Approval, Keys
    >>> from hushtable_federation.rehearsal import Rehearsal
    >>> here = Rehearsal()
    >>> approval = Approval.sign(here.round, Keys.generate("officer"))
    >>> approval.holds
    True
    """

    round_id: str
    card: Card
    signature: str

    @classmethod
    def sign(cls, round_: Round, keys: Keys) -> "Approval":
        """Sign a round."""
        return cls(round_.round_id, keys.card, keys.sign("approval", round_.round_id))

    @property
    def holds(self) -> bool:
        """Whether the signature is that of the card."""
        return self.card.signs("approval", self.round_id, self.signature)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the approval as JSON."""
        write_json(path, "approval", vars(self) | {"card": self.card.to_dict()})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Approval":
        """Read an approval; raises `FileError` if the file holds none."""
        said = read_json(path, "approval", "approve")
        try:
            entries(said, "an approval", {"round_id": str, "card": dict, "signature": str})
            if not is_digest(said["round_id"]):
                raise ValueError
            return cls(**said | {"card": Card.from_dict(said["card"])})
        except (TypeError, ValueError):
            raise FileError(
                f"{path}: holds no approval of hushtable round approve, or a damaged one"
            ) from None


def check_officer(fingerprint: str, approval: Approval | None, round_: Round) -> None:
    """Raise `Refused` unless the officer with this fingerprint signed the round."""
    if not fingerprint:
        return
    if approval is None:
        words = "is missing"
    elif approval.card.fingerprint != fingerprint:
        words = f"is that of another, {approval.card.fingerprint}"
    elif approval.round_id != round_.round_id:
        words = f"is for another round, {approval.round_id[:12]}"
    elif not approval.holds:
        words = "is forged, or the file was edited"
    else:
        return
    raise Refused(
        Refusal.POLICY,
        f"the policy wants the officer's signature ({fingerprint}) over round "
        f"{round_.round_id[:12]}, and it {words}: give the file of hushtable round approve",
    )
