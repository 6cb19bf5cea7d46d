"""The names of pyca/cryptography that rounds use, in one place; we implement no primitives."""

from cryptography.exceptions import InvalidSignature as InvalidSignature
from cryptography.exceptions import InvalidTag as InvalidTag
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519
from cryptography.hazmat.primitives.ciphers import Cipher as Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305 as ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20 as ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256 as SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF as HKDF

Ed25519PrivateKey, Ed25519PublicKey = ed25519.Ed25519PrivateKey, ed25519.Ed25519PublicKey
X25519PrivateKey, X25519PublicKey = x25519.X25519PrivateKey, x25519.X25519PublicKey
