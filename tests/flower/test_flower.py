"""A masked round over Flower on this machine: TLS, authenticated nodes, one of them killed.

Runs where Flower is installed (``make test-flower``), with real processes: a SuperLink and three
SuperNodes.
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

pytest.importorskip("flwr", reason="Flower is not installed: make test-flower")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hushtable import Feature, Plan, Schema, load
from hushtable.federation.book import Book
from hushtable.federation.keys import Keys
from hushtable.federation.round import Round, now

pytestmark = pytest.mark.slow

APP = Path(__file__).parents[2] / "flower"
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


class Federation:
    """A SuperLink and SuperNodes with the files of a consortium, in one folder."""

    def __init__(self, folder):
        self.folder, self.processes = folder, {}
        self.environment = os.environ | {
            "FLWR_HOME": str(folder / "flwr"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        certificate(folder)
        rng = np.random.default_rng(0)
        self.keys = {name: Keys.generate(name) for name in (*NAMES, "lead")}
        for name, keys in self.keys.items():
            keys.save(folder / f"{name}.key")
        for name in NAMES:
            Book.create(folder / f"{name}.book", self.keys[name].card, epsilon=5.0).close()
            X = rng.normal(size=(500, 3))
            np.savetxt(
                folder / f"{name}.csv", X, delimiter=",", header="a,b,c", comments="", fmt="%.6f"
            )
            node_keys(folder, name)
        schema = Schema([Feature.numeric(name, low=-5, high=5) for name in "abc"])
        self.plan = Plan.draw(schema, n_tables=20, random_state=0)
        shutil.copytree(APP, folder / "app")

    def start(self):
        port = free_port()
        here = self.folder
        (here / "flwr").mkdir()
        (here / "flwr" / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "127.0.0.1:{port}"\n'
            f'root-certificates = "{here / "ca.crt"}"\n'
        )
        self.run_process(
            "superlink", "flower-superlink", "--host", "127.0.0.1", "--port", port,
            "--ssl-ca-certfile", here / "ca.crt", "--ssl-certfile", here / "ca.crt",
            "--ssl-keyfile", here / "tls.key", "--enable-supernode-auth",
            "--disable-runtime-dependency-installation",
        )  # fmt: skip
        wait_for(lambda: answers(port), 60)
        for name in NAMES:
            self.flwr("supernode", "register", here / f"{name}.node.pub", "here")
        for name in NAMES:
            self.run_process(
                name, "flower-supernode", "--superlink", f"127.0.0.1:{port}",
                "--root-certificates", here / "ca.crt", "--port", free_port(),
                "--auth-supernode-private-key", here / f"{name}.node",
                "--node-config",
                f'key="{here / name}.key" data="{here / name}.csv" data-set="{name}"',
            )  # fmt: skip

    def run_process(self, name, *command):
        with (self.folder / f"{name}.log").open("wb") as log:
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
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def open(self, title, least):
        round_ = Round.open(
            self.plan,
            [self.keys[name].card for name in NAMES],
            self.keys["lead"],
            epsilon=0.5,
            deadline=now() + datetime.timedelta(days=1),
            least=least,
            title=title,
        )
        round_.save(self.folder / f"{title}.hush")
        return round_

    def submit(self, title, timeout):
        """Hand the run in; it goes on in the SuperLink."""
        here = self.folder
        config = (
            f'round="{here / title}.hush" key="{here}/lead.key" '
            f'output="{here / title}.result.hush" timeout={timeout}'
        )
        self.flwr("run", here / "app", "here", "--run-config", config)

    def outcome(self, title, seconds):
        """Return how the run ended."""
        path = self.folder / f"{title}.result.state.json"
        wait_for(path.is_file, seconds)
        return json.loads(path.read_text())

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


def test_a_round_and_one_with_a_site_killed_in_the_middle(federation):
    """One test, because starting and stopping take most of the time."""
    try:
        _check(federation)
    except BaseException:
        print(federation.logs())
        raise


def _check(federation):
    round_ = federation.open("whole", least=3)
    start = time.monotonic()
    federation.submit("whole", timeout=120.0)
    state = federation.outcome("whole", 300)
    print(f"\nround over Flower with TLS: {time.monotonic() - start:.1f} s")
    assert state["done"], state
    assert state["nodes"] == sorted(NAMES)
    assert state["lost"] == {}
    result = load(federation.folder / "whole.result.hush")
    np.testing.assert_array_equal(result.counts, federation.sent(round_, NAMES))
    assert 0.49 < result.ledger.epsilon <= 0.5

    # Two sites suffice: the round goes on without the third, and the sum is theirs.
    round_ = federation.open("two", least=2)
    federation.submit("two", timeout=90.0)
    before = len(steps(federation.folder / "south.book"))
    wait_for(lambda: len(steps(federation.folder / "south.book")) > before, 120)
    federation.kill("south")
    state = federation.outcome("two", 500)
    assert state["done"], state
    assert "no answer" in state["lost"]["south"]
    inside = [name for name in NAMES if state["reached"].get(name) in LATER]
    assert set(inside) >= {"east", "north"}
    result = load(federation.folder / "two.result.hush")
    np.testing.assert_array_equal(result.counts, federation.sent(round_, inside))

    # All three are needed, and one is gone: no sum, and the state says why.
    federation.open("three", least=3)
    federation.submit("three", timeout=45.0)
    state = federation.outcome("three", 200)
    assert not state["done"]
    assert "2 sites are left in step 'keys', and 3 are needed" in state["error"]
    assert not (federation.folder / "three.result.hush").exists()
