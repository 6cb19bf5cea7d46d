"""What rounds use of pyca/cryptography, in one place: no primitive here is our own."""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

__all__ = [
    "HKDF",
    "SHA256",
    "ChaCha20",
    "ChaCha20Poly1305",
    "Cipher",
    "Ed25519PrivateKey",
    "InvalidTag",
    "X25519PrivateKey",
    "X25519PublicKey",
]
