"""A transport within one process: for tests and tutorials."""

from collections import deque
from collections.abc import Callable, Mapping


class Memory:
    """Has sites in this process answer at once; see `Transport`.

    Takes, by name, what answers a request, such as `OnlineSite.answer`. A site without one, or
    whose answer is None, is silent. ``closed`` is whether the round is over.
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


class Exchange(Memory):
    """Calls a function with all requests of a step at once, the form of transports in 0.1.

    The function takes the request of each site by its name, and returns the answers that came.
    """

    def __init__(self, function: Callable[[Mapping[str, bytes]], Mapping[str, bytes]]) -> None:
        super().__init__({})
        self._function = function
        self._asked: dict[str, bytes] = {}

    def send(self, site: str, request: bytes) -> None:
        """Keep the request until the step is complete."""
        self._asked[site] = request

    def receive(self, seconds: float) -> tuple[str, bytes] | None:
        """Return the next answer; the first call in a step asks all sites."""
        asked, self._asked = self._asked, {}
        if asked:
            self._answers.extend(self._function(asked).items())
        return super().receive(seconds)
