"""The file of a site's policy: TOML beside its keys.

``hushtable round keygen`` writes a strict one with comments; whoever answers for the rows edits it.
"""

import hashlib
import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from hushtable import signatures
from hushtable.data.schema import Feature, Schema
from hushtable.errors import FileError, HushTableError, PlanError, PrivacyError
from hushtable_federation.keys import new_private
from hushtable_federation.policy import Persons, Policy

_VERSION = 1
_TEMPLATE = Path(__file__).with_name("policy.toml")
_TABLES = {"version", "coordinators", "sites", "round", "unattended", "officer", "plans", "feature"}
_LIMITS = {"epsilon", "total_epsilon", "delta", "known_sites"}
_SWITCHES = ("coordinator_may_be_site", "masks", "max_rows")


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy.

    Raises
    ------
    FileError
        If the file is missing, unreadable, of a newer version, misspelt or contradictory.
    PrivacyError
        If others than its owner may write to it.

    Examples
    --------
    >>> from hushtable_federation import load_policy
    >>> from hushtable_federation.policy_file import write_policy
    >>> write_policy("north.policy.toml", "north", epsilon=2.0, delta=1e-6)
    >>> load_policy("north.policy.toml").total_epsilon
    2.0
    """
    try:
        mode, content = stat.S_IMODE(os.stat(path).st_mode), Path(path).read_bytes()
    except FileNotFoundError:
        raise FileError(
            f"{path}: there is no policy here, and without one a site answers nobody: write a "
            f"strict one with hushtable round policy {path} --write --cap E, and look through it"
        ) from None
    except OSError as error:
        raise FileError(f"{path}: the policy cannot be read: {error.strerror}") from None
    if os.name == "posix" and mode & 0o022:
        raise PrivacyError(
            f"{path}: others may write to this policy (mode {mode:03o}): run chmod 600 on it, "
            "and look through what it says"
        )
    try:
        text = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: not a TOML file of a policy: {error}") from None
    try:
        return _policy(text, hashlib.sha256(content).hexdigest())
    except HushTableError as error:
        raise FileError(f"{path}: {error}") from None


def policy_beside(key: str | os.PathLike[str]) -> Path:
    """Return where the policy of a site lies: ``NAME.policy.toml`` beside ``NAME.key``."""
    return Path(key).with_suffix(".policy.toml")


def write_policy(
    path: str | os.PathLike[str],
    name: str,
    epsilon: float,
    delta: float,
    persons: Persons = "column",
) -> None:
    """Write a strict policy with comments for a site, which its owner alone may read and change.

    ``epsilon`` and ``delta`` are the cap of its book; ``persons`` is as in `Policy`.
    """
    text = _TEMPLATE.read_text(encoding="utf-8")
    values = {"@NAME@": name, "@EPSILON@": repr(float(epsilon)), "@DELTA@": repr(float(delta))}
    values["@PERSONS@"] = json.dumps(persons)
    for mark, value in values.items():
        text = text.replace(mark, value)
    with new_private(path) as file:
        file.write(text.encode())


def _policy(content: dict[str, Any], digest: str) -> Policy:
    version = content.get("version")
    if type(version) is not int or not 1 <= version <= _VERSION:
        raise PlanError(
            f"version {version!r}: this hushtable reads policies of version {_VERSION}: "
            "upgrade with pip install -U hushtable, or write a new one"
        )
    _known_keys(content, _TABLES, "a policy")
    round_ = _table(content, "round", _LIMITS | set(_SWITCHES) | {"persons"})
    unattended = _table(content, "unattended", {"answer"}).get("answer", False)
    officer = _table(content, "officer", {"fingerprint"}).get("fingerprint", "")
    lacking = sorted(_LIMITS - set(round_))
    if lacking:
        raise PlanError(f"[round] does not say {lacking[0]}: it needs {', '.join(sorted(_LIMITS))}")
    for name in set(_SWITCHES) & set(round_):
        _is(round_[name], bool, f"[round] {name}", "true or false")
    _is(unattended, bool, "[unattended] answer", "true or false")
    _is(officer, str, "[officer] fingerprint", "a text")
    plans, features = content.get("plans", []), content.get("feature", [])
    _is(plans, list, "plans", "a list of ids")
    _is(features, list, "feature", "one [[feature]] table a column")
    for plan in plans:
        _is(plan, str, "plans", "a list of ids")
    columns = tuple(Feature.from_dict(one) for one in features)
    return Policy(
        coordinators=_pins(content, "coordinators"),
        sites=_pins(content, "sites"),
        unattended=unattended,
        plans=tuple(plans),
        features=Schema(columns).features if columns else (),
        officer=_fingerprint(officer, "[officer]") if officer else "",
        digest=digest,
        **round_,
    )


def _known_keys(table: dict[str, Any], keys: set[str], what: str) -> None:
    unknown = sorted(set(table) - keys)
    if unknown:
        raise PlanError(
            f"{what} has no entry {unknown[0]!r}: its entries are {', '.join(sorted(keys))}; is it "
            "misspelt, or of a newer version?"
        )


def _table(content: dict[str, Any], name: str, keys: set[str] | None = None) -> dict[str, Any]:
    table = content.get(name, {})
    _is(table, dict, f"[{name}]", "a table")
    if keys is not None:
        _known_keys(table, keys, f"[{name}]")
    return dict(table)


def _is(value: Any, kind: type, name: str, needed: str) -> None:
    if not isinstance(value, kind):
        raise PlanError(f"{name} is {value!r:.80}: needs {needed}")


def _pins(content: dict[str, Any], name: str) -> dict[str, str]:
    table = _table(content, name)
    return {one: _fingerprint(text, f"[{name}] {one}") for one, text in table.items()}


def _fingerprint(text: Any, name: str) -> str:
    digits = text.replace(" ", "").lower() if isinstance(text, str) else ""
    if len(digits) != 32 or set(digits) - set("0123456789abcdef"):
        raise PlanError(f"{name} is {text!r:.80}: needs the fingerprint of a card, 32 digits")
    return signatures.grouped(digits)
