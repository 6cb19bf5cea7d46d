"""Masked rounds over Flower on this machine, with TLS and authenticated nodes: one of them behind
a wire that is slow and cut, and killed; and a coordinator that is killed.

Runs where Flower is installed (``make test-flower``), with real processes: a SuperLink and three
SuperNodes. What needs no processes is in ``test_grid.py``.
"""

import contextlib
import datetime
import ipaddress
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from wire import Wire

from place_helpers import Places
from places import FEDERATION

pytest.importorskip("flwr", reason="Flower is not installed: make test-flower")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hushtable import load
from hushtable_federation.book.book import Book

pytestmark = pytest.mark.slow

APP = FEDERATION / "flower"
BIN = Path(sys.executable).parent
NAMES = ("east", "north", "south")
#: Who reached one of these is in the sum.
LATER = ("masked", "survivors", "unmask")
OPENSSH = serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH


def certificate(folder):
    """Write a certificate for this machine, which is its own authority."""
    key = ec.generate_private_key(ec.SECP384R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    start = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    local = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName(local), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "ca.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "tls.key").write_bytes(private)


def node_keys(folder, name):
    """Write the keys with which a SuperNode shows who it is, as ssh-keygen does."""
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(*OPENSSH, serialization.NoEncryption())
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    (folder / f"{name}.node").write_bytes(private)
    (folder / f"{name}.node.pub").write_bytes(public)


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


class Federation(Places):
    """A SuperLink and SuperNodes with the files of a consortium, in one folder."""

    def __init__(self, folder):
        super().__init__(folder, NAMES)
        self.processes = {}
        self.environment = os.environ | {
            "FLWR_HOME": str(folder / "flwr"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        certificate(folder)
        for name in NAMES:
            node_keys(folder, name)
        shutil.copytree(APP, folder / "app")

    def start(self):
        self.port = port = free_port()
        here = self.folder
        (here / "flwr").mkdir()
        (here / "flwr" / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "127.0.0.1:{port}"\n'
            f'root-certificates = "{here / "ca.crt"}"\n'
        )
        start = time.monotonic()
        self.start_superlink()
        for name in NAMES:
            self.flwr("supernode", "register", here / f"{name}.node.pub", "here")
        #: Seconds that a step of a round may take: by what this machine took to start.
        self.pace = min(120.0, max(40.0, 8 * (time.monotonic() - start)))
        #: And until anything else is given up; far more, so that a busy machine is no failure.
        self.patience = 20 * self.pace
        self.wire = Wire(port)
        for name in NAMES:
            self.start_node(name)

    def start_superlink(self):
        here = self.folder
        self.run_process(
            "superlink", "flower-superlink", "--host", "127.0.0.1", "--port", self.port,
            "--ssl-ca-certfile", here / "ca.crt", "--ssl-certfile", here / "ca.crt",
            "--ssl-keyfile", here / "tls.key", "--enable-supernode-auth",
            "--disable-runtime-dependency-installation", "--database", here / "superlink.db",
        )  # fmt: skip
        wait_for(lambda: answers(self.port), 120)

    def start_node(self, name):
        here, port = self.folder, self.wire.port if name == "south" else self.port
        self.run_process(
            name, sys.executable, "-m", "hushtable_federation.flower",
            "--superlink", f"127.0.0.1:{port}",
            "--root-certificates", here / "ca.crt", "--port", free_port(),
            "--auth-supernode-private-key", here / f"{name}.node",
            "--node-config",
            f'site="{self.file(name)}"',
        )  # fmt: skip

    def run_process(self, name, *command):
        with (self.folder / f"{name}.process.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(part) for part in command],
                stdout=log,
                stderr=log,
                env=self.environment,
                cwd=self.folder,
                start_new_session=True,
            )

    def flwr(self, *command):
        done = subprocess.run(
            ["flwr", *(str(part) for part in command)],
            env=self.environment,
            capture_output=True,
            text=True,
            cwd=self.folder,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def open(self, title, least):
        round_ = super().open(least, title)
        round_.save(self.folder / f"{title}.hush")
        return round_

    def submit(self, title, timeout=600.0):
        """Hand the run in; it goes on in the SuperLink."""
        here = self.folder
        self.state(title).unlink(missing_ok=True)
        config = (
            f'round="{here / title}.hush" key="{here}/lead.key" '
            f'output="{here / title}.result.hush" timeout={timeout}'
        )
        self.flwr("run", here / "app", "here", "--run-config", config)

    def state(self, title):
        return self.folder / f"{title}.result.state.json"

    def outcome(self, title):
        """Return how the run ended."""
        self.wait_for(self.state(title).is_file)
        return json.loads(self.state(title).read_text())

    def wait_for(self, condition):
        """Wait for what happens in the processes, and start again the SuperNodes that end.

        As a service manager does: they end over a TLS handshake that fails or takes too long.
        """

        def true():
            for name in list(self.processes):
                if name in NAMES and self.ended(name):
                    print(f"{name}: the SuperNode ended, and is started again")
                    self.start_node(name)
            return condition()

        wait_for(true, self.patience)

    def ended(self, name):
        return self.processes[name].poll() is not None

    def answered(self, round_, name):
        with Book.open(self.folder / f"{name}.book") as book:
            found = book.answer(round_.round_id)
            return None if found is None else found.content

    def sent(self, round_, names):
        parts = []
        for name in names:
            with Book.open(self.folder / f"{name}.book") as book:
                parts.append(book.answer(round_.round_id).sent)
        return sum(parts)

    def kill(self, name):
        os.killpg(self.processes[name].pid, signal.SIGKILL)
        self.processes.pop(name).wait()

    def stop(self):
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.wire.close()

    def logs(self):
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}"
            for path in sorted(self.folder.glob("*.log"))
        )


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{condition} did not come true in {seconds} s"
        time.sleep(0.05)


def steps(book):
    """Names of the steps that a site answered, read without disturbing it."""
    with contextlib.closing(sqlite3.connect(f"file:{book}?mode=ro", uri=True)) as db:
        return [row[0] for row in db.execute("select step from steps")]


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    made = Federation(tmp_path_factory.mktemp("federation"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(autouse=True)
def _logs(request, federation):
    yield
    if request.session.testsfailed:
        print(federation.logs())


def check_sum(federation, round_, state, inside):
    assert state["done"], state
    assert state["nodes"] == sorted(NAMES)
    result = load(federation.folder / f"{round_.title}.result.hush")
    np.testing.assert_array_equal(result.counts, federation.sent(round_, inside))


def test_coordinator_and_a_slow_site_killed_in_the_middle(federation):
    """The coordinator goes by kill -9, and so does a site; run again, it is the same sum."""
    start, before = time.monotonic(), federation.wire.carried
    federation.wire.delay = 0.1
    round_ = federation.open("killed", least=3)
    answers = federation.folder / "lead.rounds" / round_.round_id[:16]
    federation.submit("killed")
    federation.wait_for(lambda: list(answers.glob("masked.*")))
    federation.kill("superlink")
    federation.kill("south")
    sent = {name: federation.answered(round_, name) for name in NAMES}
    assert any(sent.values())

    federation.start_superlink()
    federation.start_node("south")
    federation.submit("killed")
    state = federation.outcome("killed")
    check_sum(federation, round_, state, NAMES)
    assert state["lost"] == {}
    for name, answer in sent.items():
        assert answer in (None, federation.answered(round_, name))
        with Book.open(federation.folder / f"{name}.book") as book:
            assert sum(one.round_id == round_.round_id for one in book.answers()) == 1
    federation.wire.delay = 0.0
    assert federation.wire.carried > before
    print(f"\nround with deaths, over Flower with TLS: {time.monotonic() - start:.1f} s")


def test_a_wire_that_is_cut(federation):
    """Lost while it answers: two suffice, and the sum is that of who sent masked counts."""
    round_ = federation.open("cut", least=2)
    book = federation.folder / "south.book"
    before = len(steps(book))
    federation.submit("cut", timeout=federation.pace)
    federation.wait_for(lambda: len(steps(book)) > before)
    federation.wire.cut()
    state = federation.outcome("cut")
    wait_for(lambda: federation.ended("south"), federation.patience)  # or no one starts it again
    federation.wire.mend()
    assert state["lost"]["south"].endswith(": silent")
    inside = [name for name in NAMES if state["reached"].get(name) in LATER]
    assert set(inside) >= {"east", "north"}
    check_sum(federation, round_, state, inside)
