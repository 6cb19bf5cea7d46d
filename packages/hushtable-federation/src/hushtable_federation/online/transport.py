"""How messages travel between a coordinator and its sites."""

from typing import Protocol


class Transport(Protocol):
    """Carries bytes to sites, and brings what they answer; knows no step and no key.

    Time-outs, repeated requests, refusals and sites that drop out are the business of `SecureSum`,
    which closes the transport when the round is over. See `hushtable_federation.online.memory` for
    one in this process.
    """

    def send(self, site: str, request: bytes) -> None:
        """Send a request on its way to a site, without waiting for the answer.

        An `OSError` means that the site cannot be reached now.
        """

    def receive(self, seconds: float) -> tuple[str, bytes] | None:
        """Return the next answer with its site's name, or None if none came in these seconds.

        Empty bytes say that this site will not answer what it was asked last. None may come early
        if no answer can come any more.
        """

    def close(self) -> None:
        """Let go of whatever the transport holds; nothing is sent or received after it."""
