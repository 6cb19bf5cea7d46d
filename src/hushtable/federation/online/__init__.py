"""Masked rounds over a transport: messages, the site, the coordinator."""

from hushtable.federation.online.site import OnlineSite

__all__ = ["OnlineSite"]
