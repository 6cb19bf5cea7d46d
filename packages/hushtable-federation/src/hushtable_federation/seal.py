"""The seal of a result: its round and submissions, signed by the coordinator."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from hushtable import files
from hushtable.arguments import is_digest, translate_errors
from hushtable.errors import FileError, PlanError
from hushtable_federation.keys import Card

_KEYS = {"round_id", "coordinator", "submissions"}


@dataclass(frozen=True)
class Seal:
    """A coordinator's signature of a result. Only valid signatures become objects.

    A valid signature proves that the holder of the key in `coordinator` made the file. The round
    states whose key that is (`hushtable_federation.result`).
    """

    round_id: str
    coordinator: Card  # the signer's
    submissions: Mapping[str, str]  # by site, the digest of its submission in the sum
    digest: str  # SHA-256 of the content of the file
    signature: str  # of kind and digest

    @staticmethod
    def entry(round_id: str, coordinator: Card, submissions: Mapping[str, str]) -> dict[str, Any]:
        """Return the seal's part of the manifest, under the digest that is signed."""
        entry = {"coordinator": coordinator.to_dict(), "submissions": dict(submissions)}
        return {"result": {"round_id": round_id, **entry}}

    @classmethod
    def from_file(cls, content: files.Content) -> "Seal | None":
        """Return the seal of a file, or None if the file is not signed.

        Raises `PlanError` if a seal is invalid or incomplete.
        """
        entry, signature = content.manifest.get("result"), content.signature
        if entry is None and signature is None:
            return None
        if entry is None or not _well_formed(entry) or not isinstance(signature, str):
            raise PlanError(
                "the file is only partly signed: its signature, or what it signs, was cut off or "
                "edited: get the result again from the coordinator"
            )
        with translate_errors(PlanError):
            card = Card.from_dict(entry["coordinator"])
        if not card.signs(content.kind, content.digest, signature):
            raise PlanError(
                f"the signature is not that of {card.name!r}: the file was forged or edited: "
                "get the result again from the coordinator"
            )
        return cls(entry["round_id"], card, entry["submissions"], content.digest, signature)

    def write(
        self, path: "str | PathLike[str]", kind: str, entries: dict[str, Any], arrays: files.Arrays
    ) -> None:
        """Write a file with this seal, like `hushtable.files.write`."""
        signed = self.entry(self.round_id, self.coordinator, self.submissions)
        content = files.pack(kind, entries | signed, arrays, self.sign)
        files.write_bytes(path, content, private=not files.travels(kind, entries))

    def sign(self, kind: str, digest: str) -> str:
        """Return the signature for `hushtable.files.pack`, if it fits what is to be written."""
        if digest != self.digest:
            raise FileError(
                f"the {kind} is not bit-identical to what {self.coordinator.name!r} signed: "
                "copy the signed file, or write this one without its seal"
            )
        return self.signature


def _well_formed(entry: Any) -> bool:
    if not isinstance(entry, dict) or set(entry) != _KEYS:
        return False
    submissions = entry["submissions"]
    return (
        isinstance(submissions, dict)
        and len(submissions) > 0
        and all(map(is_digest, (entry["round_id"], *submissions.values())))
    )
