"""The docs' example federation on one machine: accounts, sshd, and what is due each minute."""

import configparser
import contextlib
import os
import pwd
import random
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from hushtable_federation.book.book import Book
from hushtable_federation.keys import Keys
from places import ROOT

EXAMPLE, PAGE = ROOT / "docs" / "example-federation", ROOT / "docs" / "how-to" / "site.md"
PLACE, SERVED, UNITS = (
    Path("/var/lib/hushtable"),
    Path("/srv/hushtable"),
    Path("/etc/systemd/system"),
)
#: What the commands of the page change on a machine, beside its users.
CHANGED = (
    PLACE,
    SERVED,
    Path("/etc/ssh/hushtable_keys"),
    Path("/etc/ssh/sshd_config.d/hushtable.conf"),
)
PROGRAM, PID = Path("/usr/local/bin/hushtable"), Path("/run/sshd.pid")
PARTIES = ("lead", "north", "south", "west")
SITES = PARTIES[1:]


def why_not():
    """Return why no trial can be made on this machine; empty if one can."""
    if os.name != "posix" or os.geteuid() != 0:
        return "makes users: needs root"
    for tool in ("useradd", "su", "ssh-keygen", "/usr/sbin/sshd"):
        if shutil.which(tool) is None:
            return f"needs {tool}"
    if os.path.isdir("/run/systemd/system"):
        return "changes users and sshd: only for a container, where no systemd runs"
    for path in (*CHANGED, PROGRAM, PID, *UNITS.glob("hushtable-round@*")):
        if path.exists():
            return f"{path} is there: someone else's trial"
    known = {one.pw_name for one in pwd.getpwall()}
    if taken := known & set(PARTIES):
        return f"there are users {', '.join(sorted(taken))} already"
    return "" if _interpreter() else "needs a Python that every user can run"


def _interpreter():
    """Return a Python of this version that users without rights can run."""
    beside = f"/usr/bin/python3.{sys.version_info.minor}"
    for path in (sys.executable, beside):
        line = f"exec {shlex.quote(path)} -c 'import sys'"
        tried = subprocess.run(
            ["su", "-s", "/bin/sh", "nobody", "-c", line], capture_output=True, check=False
        )
        if tried.returncode == 0:
            return path
    return None


#: Rows of each site that are unusual: age, pulse, potassium.
ODD = ((71, 44, 9.8), (4, 212, 4.1), (96, 188, 1.6))


def cards_in(trial):
    """Return the files of the sites' cards."""
    return [trial / name / f"{name}.card" for name in SITES]


def invented_rows(name, seed):
    """Return a table of 1,000 made-up patients, three of them unusual."""
    rng, rows = random.Random(seed), []
    for _ in range(1_000 - len(ODD)):
        age = min(max(round(rng.gauss(58, 17)), 18), 95)
        rows.append((age, round(rng.gauss(76, 9)), round(rng.gauss(4.2, 0.4), 1)))
    for row in ODD:
        rows.insert(rng.randrange(len(rows)), row)
    lines = [
        f"{name}-{k:04},{age},{pulse},{salt:g}" for k, (age, pulse, salt) in enumerate(rows, 1)
    ]
    return "\n".join(["patient,age,pulse,potassium", *lines]) + "\n"


def is_odd(line):
    """Return whether a line of such a table is of an unusual patient."""
    return line.endswith(tuple(f",{pulse},{salt:g}" for _, pulse, salt in ODD))


def example_files(folder, server="files.example.org"):
    """Write the example's files for each party into a folder of its name, and the others beside."""
    for seed, name in enumerate(PARTIES):
        (folder / name).mkdir(parents=True)
        like = "lead" if name == "lead" else "north"
        for file in EXAMPLE.glob(f"{like}*.toml"):
            text = file.read_text().replace(like, name).replace("files.example.org", server)
            (folder / name / file.name.replace(like, name)).write_text(text)
        if name != "lead":
            (folder / name / "patients.csv").write_text(invented_rows(name, seed))
    shutil.copy(EXAMPLE / "schema.toml", folder / "lead")


def at_home(trial, run):
    """Set the example's parties up with a folder of rounds on this machine, as after the call.

    Returns the files of the parties, by name. ``run`` is the fixture that runs a command.
    """
    example_files(trial)
    box = trial / "round"
    box.mkdir(mode=0o700)
    settings = {name: trial / name / f"{name}.toml" for name in PARTIES}
    for name, path in settings.items():
        cap = () if name == "lead" else ("--cap", 3)
        assert run("round", "keygen", name, *cap, "--folder", path.parent).code == 0
        lines = path.read_text().splitlines()
        kept = [line for line in lines if not line.startswith(("host_key", "login", "folder"))]
        path.write_text("\n".join([*kept, f"folder = {str(box)!r}"]) + "\n")
    cards = {name: Keys.load(trial / name / f"{name}.key").card for name in PARTIES}
    for name in SITES:
        with Book.open(trial / name / f"{name}.book") as book:
            book.trust([cards["lead"]], "coordinator")
            book.trust([cards[one] for one in SITES])
    return settings


class Machine:
    """A server, and the parties' machines, in one.

    Attributes
    ----------
    port : int
        Of sshd.
    visits : dict of str to list of Visited
        By party, what its timer ran.
    """

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.visits = {}
        self._timers = []
        self._over = threading.Event()
        self._ahead = 0
        self.pass_time(0)
        os.makedirs("/run/sshd", exist_ok=True)
        subprocess.run(["ssh-keygen", "-A"], check=True, capture_output=True)
        subprocess.run(["/usr/sbin/sshd", "-p", str(self.port), "-o", f"PidFile={PID}"], check=True)

    def pass_time(self, minutes):
        """Set the clocks of all parties ahead."""
        self._ahead += minutes
        code = (
            "import sys\nfrom datetime import timedelta\nfrom hushtable.cli import main\n"
            "from hushtable_federation import clock\nread = clock.read\n"
            f"clock.read = lambda: read() + timedelta(minutes={self._ahead})\nsys.exit(main())"
        )
        lines = [
            "#!/bin/sh",
            f"export PYTHONPATH={shlex.quote(os.pathsep.join(p for p in sys.path if p))}",
            f'exec {shlex.quote(_interpreter())} -c {shlex.quote(code)} "$@"',
        ]
        PROGRAM.write_text("\n".join(lines) + "\n")
        PROGRAM.chmod(0o755)

    @property
    def reload(self):
        """The command that has sshd read its configuration again, without systemd."""
        return f"kill -HUP $(cat {PID})"

    def start_timers(self, *parties):
        """Run what the units of these parties say, each minute in place of each hour."""
        for name in parties:
            self.visits[name] = []
            thread = threading.Thread(target=self._timer, args=(name,), daemon=True)
            thread.start()
            self._timers.append(thread)

    def _timer(self, name):
        assert "OnCalendar=hourly" in (UNITS / "hushtable-round@.timer").read_text()
        while not self._over.is_set():
            began = time.monotonic()
            self.visits[name].append(self.visit(name))
            self._over.wait(max(0.0, 60.0 - (time.monotonic() - began)))

    def visit(self, name, kill_after=None):
        """Run the visit of a party's unit; with ``kill_after``, until so many seconds are over."""
        unit = configparser.RawConfigParser(strict=False)
        unit.optionxform = str
        text = (UNITS / "hushtable-round@.service").read_text()
        unit.read_string(text.replace("%i", name))
        service = unit["Service"]
        user, began = pwd.getpwnam(service["User"]), time.monotonic()
        process = subprocess.Popen(
            shlex.split(service["ExecStart"]),
            cwd=service["WorkingDirectory"],
            env={"HOME": user.pw_dir, "USER": user.pw_name, "PATH": "/usr/local/bin:/usr/bin:/bin"},
            user=user.pw_uid,
            group=user.pw_gid,
            extra_groups=os.getgrouplist(user.pw_name, user.pw_gid),
            umask=int(service["UMask"], 8),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            words = process.communicate(timeout=kill_after)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            words = process.communicate()[0]
        return Visited(process.returncode, words, time.monotonic() - began)

    def stop_timers(self):
        """Wait for the visits that run; no other begins."""
        self._over.set()
        for thread in self._timers:
            thread.join()

    def close(self):
        """Remove all that the commands and this class made."""
        self.stop_timers()
        with contextlib.suppress(FileNotFoundError):
            os.kill(int(PID.read_text()), 15)
        known = {one.pw_name for one in pwd.getpwall()}
        for name in set(PARTIES) & known:
            subprocess.run(["userdel", name], check=True, capture_output=True)
        subprocess.run(["groupdel", "hushtable"], check=False, capture_output=True)
        for path in (*CHANGED, PROGRAM, PID, *UNITS.glob("hushtable-round@*")):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


@dataclass
class Visited:
    """What a command came to."""

    code: int
    words: str
    seconds: float


@dataclass
class Terminals:
    """Types commands into terminals, and answers the one question that they ask.

    Attributes
    ----------
    folder : Path
        Where they are typed.
    typed : list of (str, Visited)
        All so far, in order.
    seconds : float
        That it took in all.
    """

    folder: Path
    typed: list = field(default_factory=list)
    seconds: float = 0.0

    def type(self, *commands):
        """Run commands at the same time, each in a terminal of its own; all must succeed."""
        answers = [None] * len(commands)

        def one(k):
            answers[k] = run_in_terminal(commands[k], self.folder)

        threads = [threading.Thread(target=one, args=(k,)) for k in range(len(commands))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.typed += zip(commands, answers, strict=True)
        for command, answer in zip(commands, answers, strict=True):
            assert answer.code == 0, (command, answer)


def run(command, folder=None):
    """Run a command where no one is to be asked."""
    began = time.monotonic()
    done = subprocess.run(
        command, shell=True, cwd=folder, stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    return Visited(done.returncode, done.stdout, time.monotonic() - began)


def run_in_terminal(command, folder):
    """Run a command in a terminal; what asks for yes or no gets a yes."""
    began, words, answered = time.monotonic(), "", 0
    here, there = os.openpty()
    process = subprocess.Popen(
        command, shell=True, cwd=folder, stdin=there, stdout=there, stderr=there,
        start_new_session=True,
    )  # fmt: skip
    os.close(there)
    with contextlib.suppress(OSError):  # the terminal's end, on Linux
        while got := os.read(here, 4096):
            words += got.decode(errors="replace")
            if words.count("[y/N]: ") > answered:
                answered += 1
                os.write(here, b"y\n")
    os.close(here)
    return Visited(process.wait(), words, time.monotonic() - began)


def commands_of(page):
    """Return the blocks of commands on the page, each a list of lines, without those of output."""
    found = re.findall(r"```none\n(# .*?)\n```", page.read_text(), re.DOTALL)
    return [block.splitlines() for block in found]
