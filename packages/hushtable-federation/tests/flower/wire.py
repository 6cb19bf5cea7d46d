"""A wire between one site and the coordinator that can be slow, cut, and mended."""

import asyncio
import contextlib
import threading

_CHUNK = 16_384


class Wire:
    """Carries TCP from a port of its own to another, on this machine, in a thread of its own.

    Attributes
    ----------
    port : int
        Where it begins.
    delay : float
        Seconds that every piece of up to 16 KiB takes, in each direction; the next one waits.
    carried : int
        Bytes so far.
    """

    def __init__(self, to_port: int) -> None:
        self.delay, self.carried, self._to = 0.0, 0, to_port
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(10)

    def cut(self) -> None:
        """Let nothing through from now on. No end is told: the connections just fall silent."""
        self._loop.call_soon_threadsafe(self._whole.clear)

    def mend(self) -> None:
        """Let through what waits, and what comes."""
        self._loop.call_soon_threadsafe(self._whole.set)

    def close(self) -> None:
        """Take the wire away."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._whole = asyncio.Event()
        self._whole.set()
        async with await asyncio.start_server(self._connect, "127.0.0.1", 0) as server:
            self.port: int = server.sockets[0].getsockname()[1]
            self._ready.set()
            await self._over.wait()

    async def _connect(self, source, back) -> None:
        with contextlib.suppress(ConnectionError, asyncio.CancelledError), contextlib.closing(back):
            from_there, there = await asyncio.open_connection("127.0.0.1", self._to)
            with contextlib.closing(there):
                await asyncio.gather(self._carry(source, there), self._carry(from_there, back))

    async def _carry(self, source, target) -> None:
        while piece := await source.read(_CHUNK):
            await asyncio.sleep(self.delay)
            await self._whole.wait()
            self.carried += len(piece)
            target.write(piece)
            await target.drain()
        target.close()
