"""``hushtable round kit``: the files for a trial, from accounts to timers."""

import contextlib
import os
import random
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated

from hushtable.cli.options import argument, option
from hushtable.cli.result import Block, CommandResult
from hushtable.errors import FileError, UsageError
from hushtable_federation.policy import policy_beside, write_policy

_Folder = Annotated[Path, argument("FOLDER", "Where to write the kit: a new or empty folder.")]
_Sites = Annotated[str, option("A,B,...", "The sites: small letters, digits and hyphens.")]
_Server = Annotated[
    str, option("HOST[:PORT]", "The SFTP server, under the name that all sites use.")
]
_Lead = Annotated[str, option("NAME", "Name of the party that opens the rounds.")]

#: A name that works as a Unix user, a folder and a card.
_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
_HOST = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}))(?::([0-9]{1,5}))?")
#: Rows of a site; the epsilon and the delta that its book allows.
_ROWS, _CAP, _DELTA = 1_000, 3.0, 1e-6
#: Rows of each site that are unusual: age, pulse, potassium.
_ODD = ((71, 44, 9.8), (4, 212, 4.1), (96, 188, 1.6))


def kit(
    folder: _Folder,
    sites: _Sites,
    server: _Server = "localhost",
    coordinator: _Lead = "lead",
) -> CommandResult:
    """Write the files for a trial: accounts, SFTP, timers, settings.

    The kit consists of scripts, which you read and run yourself, and of made-up rows. The command
    runs nothing, and changes nothing outside the folder. The README.md in it lists what to type, up
    to a result of all sites.

    Example:
      hushtable round kit trial --sites north,south,west
    """
    made = TrialKit.named(sites, server, coordinator)
    made.write(folder)
    facts = {
        "command": "round kit",
        "folder": str(folder),
        "sites": list(made.sites),
        "coordinator": made.coordinator,
        "server": server,
        "files": sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()),
    }

    def blocks() -> Iterator[Block]:
        yield f"A trial of {', '.join(made.sites)} with {made.coordinator} is in {folder}."
        yield "Nothing was run yet. The commands to type, in order, are in:"
        yield f"  {folder / 'README.md'}"

    return CommandResult(facts, blocks())


@dataclass(frozen=True)
class TrialKit:
    """The parties of a trial, and the server that they share.

    Attributes
    ----------
    sites : tuple of str
    coordinator : str
    host, port : str
        Of the SFTP server.
    """

    sites: tuple[str, ...]
    coordinator: str
    host: str
    port: str

    @classmethod
    def named(cls, sites: str, server: str, coordinator: str) -> "TrialKit":
        """Check the options; raise `UsageError` if a name cannot be used everywhere."""
        names = tuple(name.strip() for name in sites.split(","))
        for name in (*names, coordinator):
            if _NAME.fullmatch(name) is None:
                raise UsageError(
                    f"name {name!a}: needs a small letter, then up to 30 small letters, digits or "
                    "hyphens, because it also becomes a user on the server"
                )
        parties = [coordinator, *names]
        if twice := sorted({name for name in parties if parties.count(name) > 1}):
            raise UsageError(
                f"{', '.join(twice)} appears twice: each site and the coordinator need different "
                "names (--coordinator)"
            )
        if len(names) < 2:
            raise UsageError("--sites needs two or more names, as in --sites north,south,west")
        found = _HOST.fullmatch(server)
        if found is None or not 0 < int(found[2] or "22") < 65536:
            raise UsageError(
                f"--server {server!a}: needs a host or host:port, as in files.example.org:2222"
            )
        return cls(names, coordinator, found[1], str(int(found[2] or "22")))

    @property
    def parties(self) -> tuple[str, ...]:
        """Return the coordinator and the sites."""
        return (self.coordinator, *self.sites)

    def write(self, folder: Path) -> None:
        """Write all files or none; raise `FileError` if the folder has files."""
        with _new_folder(folder) as made:
            for name in ("README.md", "server.sh", "sshd_hushtable.conf"):
                (made / name).write_text(self._filled(name), encoding="utf-8")
            services = [self._filled("compose_party.yaml", name) for name in self.parties]
            (made / "compose.yaml").write_text(
                self._filled("compose.yaml")
                + "".join(services).rstrip()
                + "\n\nvolumes:\n  place:\n",
                encoding="utf-8",
            )
            for name in self.parties:
                (made / name).mkdir()
                self._write_party(made / name, name)

    def _write_party(self, folder: Path, name: str) -> None:
        """Write the files of one party."""
        parts = ["party.toml", *(["rows.toml"] if name in self.sites else []), "watch.toml"]
        texts = {
            "install.sh": self._filled("install.sh", name),
            f"hushtable-round-{name}.service": self._filled("round.service", name),
            f"hushtable-round-{name}.timer": self._filled("round.timer", name),
            "crontab": self._filled("crontab", name),
            f"{name}.toml": "".join(self._filled(part, name) for part in parts),
        }
        schema = self._filled("schema.toml")
        if name in self.sites:
            texts["patients.csv"] = invented_rows(name, self.sites.index(name))
        else:
            texts["schema.toml"] = schema
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
        if name in self.sites:
            _write_policy(policy_beside(folder / f"{name}.key"), name, schema)

    def _filled(self, template: str, name: str = "") -> str:
        """Return a template with its marks replaced, for one party where it needs one."""
        text = resources.files("hushtable_federation").joinpath("kit", template)
        filled = text.read_text(encoding="utf-8")
        for mark, value in self._values(name).items():
            filled = filled.replace(f"@{mark}@", value)
        return filled

    def _values(self, name: str) -> Mapping[str, str]:
        at = self.host if self.port == "22" else f"{self.host}:{self.port}"
        cap = f" --cap {_CAP:g}" if name in self.sites else ""
        everyone = ",".join(self.parties)

        def meets(one: str) -> str:
            return (
                f"{_as(one)} 'hushtable round meet sftp://{one}@{at}/meeting --key {one}.key "
                f"--coordinator {self.coordinator} --expect {everyone} --wait 10'"
            )

        return {
            "NAME": name,
            "URL": f"sftp://{name}@{at}",
            "KEYGEN": cap,
            "HOST": self.host,
            "PORT": self.port,
            "PARTIES": " ".join(self.parties),
            "SITES": ", ".join(self.sites),
            "FIRST": self.sites[0],
            "COORDINATOR": self.coordinator,
            "COORDINATOR_URL": f"sftp://{self.coordinator}@{at}",
            "LEAST": str(max(2, len(self.sites) - 1)),
            "ROWS": str(_ROWS * len(self.sites)),
            "INSTALL": "\n".join(f"sh {one}/install.sh" for one in self.parties),
            "MEET": "\n".join(map(meets, self.parties)),
            "AS_COORDINATOR": _as(self.coordinator),
            "AS_FIRST": _as(self.sites[0]),
        }


def _as(name: str) -> str:
    """Return the start of a command that runs as a user without a login shell."""
    return f"su -s /bin/sh - {name} -c"


def invented_rows(name: str, seed: int) -> str:
    """Return a table of made-up patients, three of them unusual; the seed determines all rows."""
    rng, rows = random.Random(seed), []
    for _ in range(_ROWS - len(_ODD)):
        age = min(max(round(rng.gauss(58, 17)), 18), 95)
        rows.append((age, round(rng.gauss(76, 9)), round(rng.gauss(4.2, 0.4), 1)))
    for row in _ODD:
        rows.insert(rng.randrange(len(rows)), row)
    lines = [
        f"{name}-{k:04},{age},{pulse},{salt:g}" for k, (age, pulse, salt) in enumerate(rows, 1)
    ]
    return "\n".join(["patient,age,pulse,potassium", *lines]) + "\n"


def _write_policy(path: Path, name: str, schema: str) -> None:
    """Write a policy that lets a site answer unattended, but only about a schema's columns."""
    write_policy(path, name, _CAP, _DELTA)
    text = path.read_text(encoding="utf-8")
    columns = schema[schema.index("[[feature]]") :]
    answers = text.replace("\nanswer = false\n", "\nanswer = true\n")
    path.write_text(f"{answers}\n# The trial's columns.\n{columns}", encoding="utf-8")


@contextlib.contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, which becomes the final folder if the body succeeds."""
    folder = Path(os.path.abspath(folder))
    try:
        if folder.is_dir() and (there := sorted(os.listdir(folder))):
            raise _taken(folder, there)
        if folder.exists() and not folder.is_dir():
            raise FileError(f"{folder} is a file: name a new folder; nothing was written")
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            yield made
            made.chmod(0o755)
            made.rename(folder)  # fails if someone else put files there in the meantime
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
    except OSError as error:
        raise FileError(
            f"{folder}: {error.strerror}: name a new folder where you can write; the files written "
            "so far were removed"
        ) from None


def _taken(folder: Path, there: Sequence[str]) -> FileError:
    what = "a kit is" if "sshd_hushtable.conf" in there else f"{there[0]!a} and other files are"
    return FileError(
        f"{folder}: {what} there already, so nothing was changed: name a new folder, or remove "
        "this one first"
    )
