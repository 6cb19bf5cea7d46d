"""Commands that die, or find the disk full, at a chosen change of the disk."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["KILLED", "Run", "Server", "build_shim"]

KILLED = -signal.SIGKILL
_HERE = Path(__file__).parent


def build_shim(folder: Path) -> Path:
    """Compile the shim; needs a C compiler."""
    path = folder / "shim.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", path, _HERE / "shim.c", "-ldl"]
    subprocess.run(command, check=True)
    return path


@dataclass(frozen=True)
class Run:
    """What came of a command.

    Attributes
    ----------
    code : int
        Exit code; minus the signal, if one ended it.
    said : str
        On stdout and stderr.
    changes : list of str
        What it changed on the disk, in order, such as ``"rename all.hush"``.
    """

    code: int
    said: str
    changes: list[str] = field(repr=False)


class Server:
    """Starts commands in a folder, whose files alone count.

    Parameters
    ----------
    shim : Path
        As `build_shim` returned it.
    root : Path
        Folder within which changes are counted.
    """

    def __init__(self, shim: Path, root: Path) -> None:
        self.root = root
        self._process = subprocess.Popen(
            [sys.executable, _HERE / "server.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LD_PRELOAD": str(shim), "FAULT_ROOT": f"{root}/"},
        )
        self._notes = root.with_name(root.name + ".notes")
        self._notes.mkdir()

    def close(self) -> None:
        """End the server."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def run(self, *command: object, **how: float) -> Run:
        """Run one command; see `run_all`."""
        return self.run_all([command], **how)[0]

    def run_all(
        self, commands: list, kill_at: int = 0, full_from: int = 0, clock: int = 0, **how: float
    ) -> list[Run]:
        """Run commands side by side.

        Parameters
        ----------
        commands : list of sequences
            Arguments of ``hushtable``.
        kill_at : int
            Change before which each is killed; 0 is never.
        full_from : int
            Change from which each finds the disk full; 0 is never.
        clock : int
            Seconds by which their clock is wrong.
        """
        asked = [
            {
                "command": [str(part) for part in command],
                "out": str(self._notes / f"{i}.out"),
                "trace": str(self._notes / f"{i}.trace"),
                "kill_at": kill_at,
                "full_from": full_from,
                "clock": clock,
                **how,
            }
            for i, command in enumerate(commands)
        ]
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        codes = json.loads(self._process.stdout.readline())
        return [
            Run(code, Path(one["out"]).read_text(), self._changes(Path(one["trace"])))
            for code, one in zip(codes, asked, strict=True)
        ]

    def _changes(self, trace: Path) -> list[str]:
        lines = trace.read_text().splitlines()
        return [line.replace(f"{self.root}/", "") for line in lines]


def put(files: dict[str, bytes], folder: Path) -> None:
    """Make a folder hold these files and nothing else, private ones as private."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o600)
        os.utime(path, (1e9, 1e9))  # scores say when their rows were changed
