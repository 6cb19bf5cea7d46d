"""Another name of `hushtable.federation.online.secure_sum`, from before 0.2."""

from hushtable.federation.online.secure_sum import SecureSum

__all__ = ["SecureSum"]
