"""A coordinator's files of a round: its decisions, and the answers that arrived."""

import contextlib
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from hushtable import files
from hushtable.arguments import entries
from hushtable.errors import FileError, RoundError
from hushtable_federation.protocol.messages import STEPS, Step, SumList
from hushtable_federation.protocol.tally import Decisions
from hushtable_federation.round import Round


def path_of(key: Path, round_: Round) -> Path:
    """Return the path of a coordinator's journal of a round, beside its keys.

    The folder is created if necessary.
    """
    folder = key.with_suffix(".rounds")
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"{round_.round_id[:16]}.json"


def write_decided(path: Path, round_: Round, decided: Decisions) -> None:
    """Write the decisions of a round."""
    record = {"hushtable": "decisions", "round_id": round_.round_id, **asdict(decided)}
    files.write_bytes(path, json.dumps(record).encode())


def read_decided(path: Path, round_: Round) -> Decisions:
    """Return what `write_decided` wrote; raise `HushTableError` if it is for a different round."""
    try:
        record = json.loads(path.read_bytes())
    except ValueError:
        record = None
    kinds = {"hushtable": str, "round_id": str, "keys": dict, "listed": dict, "signed": dict}
    what = (
        f"{path}: this is not a coordinator's decisions, or it is damaged: in a round by folder, "
        "remove it and run the command again, which reads the decisions from the folder. Such a "
        "file"
    )
    record = entries(record, what, kinds, error=FileError)
    if record["round_id"] != round_.round_id:
        raise RoundError(
            f"{path} holds the decisions of round {record['round_id'][:12]!a}, not those of "
            f"{round_.round_id[:12]}: restore the right file, or remove it, and run the command "
            "again"
        )
    listed = SumList.of(round_, record["listed"])
    return Decisions(record["keys"], listed, record["signed"])


class Journal:
    """A coordinator's decisions in a round, and the answers that arrived.

    Parameters
    ----------
    path : Path
        File of the decisions; the answers are in the folder of the same name without its suffix.
    round_ : Round
        Which it is of.
    """

    def __init__(self, path: Path, round_: Round) -> None:
        self.path, self._round = path, round_
        self._folder = path.with_suffix("")

    @contextlib.contextmanager
    def alone(self, seconds: float) -> Iterator[None]:
        """Let one process at a time continue the round; raise `FileError` if another does not end.

        A process whose SuperLink was killed ends within seconds.
        """
        end = time.monotonic() + seconds
        with contextlib.ExitStack() as lock:
            while True:
                try:
                    lock.enter_context(files.locked(self.path))
                    break
                except FileError:
                    if time.monotonic() >= end:
                        raise
                    time.sleep(0.2)
            yield

    def decided(self) -> Decisions:
        """Return the decisions so far; raise `HushTableError` if they cannot be read."""
        return read_decided(self.path, self._round) if self.path.exists() else Decisions()

    def decide(self, decided: Decisions) -> None:
        """Write the decisions, unless they are already there."""
        if decided != self.decided():
            write_decided(self.path, self._round, decided)

    def keep(self, step: Step, site: str, content: bytes) -> None:
        """Keep an answer."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        files.write_bytes(self._file(step, site), content)

    def answer(self, step: Step, site: str) -> bytes:
        """Return a stored answer; empty if there is none."""
        path = self._file(step, site)
        return path.read_bytes() if path.exists() else b""

    def kept(self) -> Iterator[tuple[Step, str, bytes]]:
        """Yield the stored answers: step, site, content; the first step first."""
        for step in STEPS:
            for site in self._round.names:
                content = self.answer(step, site)
                if content:
                    yield step, site, content

    def forget(self) -> None:
        """Remove the stored answers, after the result is there."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _file(self, step: Step, site: str) -> Path:
        # Names may differ only in case, which some file systems do not distinguish.
        return self._folder / f"{step}.{self._round.names.index(site)}.hush"
