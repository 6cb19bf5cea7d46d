"""Masks that cancel only in the sum: shared secrets, masks, sealed contributions."""
