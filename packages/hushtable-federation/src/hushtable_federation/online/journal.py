"""The coordinator's journal of a round: another process goes on from what it says.

A decision is written before anybody is asked by it: sites answer the first list alone. Where
nothing else keeps the answers, they lie beside the decisions, each in a file of its own.
"""

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path

from hushtable import files
from hushtable.arguments import entries
from hushtable.errors import FileError, RoundError
from hushtable_federation.online.messages import STEPS, Step
from hushtable_federation.online.tally import Decided
from hushtable_federation.round import Round


def path_of(key: Path, round_: Round) -> Path:
    """Return where a coordinator's journal of a round lies: beside its keys, whatever carries it.

    Its folder is made if there is none.
    """
    folder = key.with_suffix(".rounds")
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"{round_.round_id[:16]}.json"


def write_decided(path: Path, round_: Round, decided: Decided) -> None:
    """Write what was decided in a round."""
    said = {"hushtable": "decisions", "round_id": round_.round_id, **asdict(decided)}
    files.write_bytes(path, json.dumps(said).encode())


def read_decided(path: Path, round_: Round) -> Decided:
    """Return what `write_decided` wrote; raises `HushTableError` if it is of another round."""
    try:
        said = json.loads(path.read_bytes())
    except ValueError:
        said = None
    kinds = {"hushtable": str, "round_id": str, "sites": dict, "signers": list[str]}
    kinds |= {"without": list[str], "shown": list[str]}
    what = (
        f"{path}: not the decisions of a coordinator, or damaged: in a folder, remove it and call "
        "again, as they are read from there, too. Such a file"
    )
    said = entries(said, what, kinds, error=FileError)
    if said["round_id"] != round_.round_id:
        raise RoundError(
            f"{path} holds the decisions of round {said['round_id'][:12]!a}, not those of "
            f"{round_.round_id[:12]}: put it back in its place, or remove it, and call again"
        )
    return Decided(**{field.name: said[field.name] for field in fields(Decided)})


class Journal:
    """A coordinator's decisions in a round, and the answers that came.

    Parameters
    ----------
    path : Path
        Of the decisions; the answers are in the folder of the same name without its suffix.
    round_ : Round
        Which it is of.
    """

    def __init__(self, path: Path, round_: Round) -> None:
        self.path, self._round = path, round_
        self._folder = path.with_suffix("")

    @contextlib.contextmanager
    def alone(self, seconds: float) -> Iterator[None]:
        """Let one process at a time go on with the round; raise `FileError` if another stays at it.

        One whose SuperLink was killed ends within seconds.
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

    def decided(self) -> Decided:
        """Return what was decided so far; raises `HushTableError`."""
        return read_decided(self.path, self._round) if self.path.exists() else Decided()

    def decide(self, decided: Decided) -> None:
        """Write down what was decided, unless it is there."""
        if decided != self.decided():
            write_decided(self.path, self._round, decided)

    def keep(self, step: Step, site: str, content: bytes) -> None:
        """Keep an answer."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        files.write_bytes(self._file(step, site), content)

    def kept(self) -> Iterator[tuple[Step, str, bytes]]:
        """Yield the answers that are kept: step, site, content; the first step first."""
        for step in STEPS:
            for site in self._round.names:
                path = self._file(step, site)
                if path.exists():
                    yield step, site, path.read_bytes()

    def _file(self, step: Step, site: str) -> Path:
        # Names may differ in case alone, and file systems may not tell them apart.
        return self._folder / f"{step}.{self._round.names.index(site)}.hush"
