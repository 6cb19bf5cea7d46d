"""Signatures: Ed25519 (RFC 8032) over what a file says, checked with a public key alone."""

from hushtable.errors import MissingExtraError


def of_file(kind: str, digest: str) -> bytes:
    """Return what is signed of a file: its kind, and the digest of all that it says."""
    return f"hushtable {kind}:{digest}".encode()


def verifies(key: str, signature: str, message: bytes) -> bool:
    """Whether a signature, 128 hexadecimal digits, is that of a message by an Ed25519 public key.

    The key has 64 hexadecimal digits. Raises `MissingExtraError` without pyca/cryptography.
    """
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise MissingExtraError("a signed file", "cryptography", "federation") from None
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True
