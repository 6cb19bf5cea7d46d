"""A transport within one process: for tests and tutorials."""

from collections import deque
from collections.abc import Callable, Mapping

__all__ = ["Memory"]


class Memory:
    """Has sites in this process answer at once; see `Transport`.

    Parameters
    ----------
    sites : mapping of str to callable
        By name, what answers a request, such as `OnlineSite.answer`. A site without one, or whose
        answer is None, is silent.

    Attributes
    ----------
    closed : bool
        Whether the round is over.
    """

    def __init__(self, sites: Mapping[str, Callable[[bytes], bytes | None]]) -> None:
        self._sites, self.closed = sites, False
        self._answers: deque[tuple[str, bytes]] = deque()

    def send(self, site: str, request: bytes) -> None:
        """Have the site answer."""
        answer = self._sites[site](request) if site in self._sites else None
        if answer is not None:
            self._answers.append((site, answer))

    def receive(self, seconds: float) -> tuple[str, bytes] | None:
        """Return the next answer, without waiting."""
        return self._answers.popleft() if self._answers else None

    def close(self) -> None:
        """Note that the round is over."""
        self.closed = True
