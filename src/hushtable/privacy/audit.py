"""Audits of a release (to come in the same change)."""
