"""Signatures: Ed25519 (RFC 8032) over a file's content, checked with only a public key."""

import hashlib

import rfc8785


def of_file(kind: str, digest: str) -> bytes:
    """Return the bytes to sign for a file: its kind, and the digest of its content."""
    return f"hushtable {kind}:{digest}".encode()


def of_card(name: str, signing: str, masking: str) -> bytes:
    """Return the bytes to sign for a card: a name, and the public keys to sign and to mask with."""
    return b"hushtable card:" + rfc8785.dumps([name, signing, masking])


def fingerprint(signing: str, masking: str) -> str:
    """Return 32 digits of a SHA-256 of someone's public keys, for two people to compare."""
    return grouped(hashlib.sha256(bytes.fromhex(signing + masking)).hexdigest()[:32])


def grouped(digits: str) -> str:
    """Return digits in groups of four."""
    return " ".join(digits[k : k + 4] for k in range(0, len(digits), 4))


def verifies(key: str, signature: str, message: bytes) -> bool:
    """Whether a signature, 128 hexadecimal digits, of a message matches an Ed25519 public key.

    The key has 64 hexadecimal digits.
    """
    from hushtable_federation._crypto import Ed25519PublicKey, InvalidSignature  # takes a while

    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True
