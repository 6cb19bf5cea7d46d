"""Masked rounds over Flower on this machine, with TLS and authenticated nodes: one of them behind
a wire that is slow, cut and mended, and then killed.

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
from wire import Wire

pytest.importorskip("flwr", reason="Flower is not installed: make test-flower")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hushtable import Feature, Plan, Schema, load
from hushtable.federation.book.book import Book
from hushtable.federation.keys import Keys
from hushtable.federation.policy_file import write_policy
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
        self.folder, self.processes, self.rounds = folder, {}, 0
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
            cards = [self.keys[other].card for other in NAMES]
            with Book.create(folder / f"{name}.book", self.keys[name].card, epsilon=5.0) as book:
                book.trust([self.keys["lead"].card], "coordinator")
                book.trust(cards)
            self.write_policy(name)
            X = rng.normal(size=(500, 3))
            np.savetxt(
                folder / f"{name}.csv", X, delimiter=",", header="a,b,c", comments="", fmt="%.6f"
            )
            node_keys(folder, name)
        schema = Schema([Feature.numeric(name, low=-5, high=5) for name in "abc"])
        self.plan = Plan.draw(schema, n_tables=20, random_state=0)
        shutil.copytree(APP, folder / "app")

    def write_policy(self, name, answers=True):
        """Let a site answer by itself, about these columns; or not."""
        path = self.folder / f"{name}.policy.toml"
        path.unlink(missing_ok=True)
        write_policy(path, name, 5.0, 1e-6, "affirmed")
        text = path.read_text().replace("answer = false", f"answer = {str(answers).lower()}")
        for column in "abc":
            text += f'[[feature]]\nname = "{column}"\nkind = "numeric"\nlow = -5\nhigh = 5\n'
        path.write_text(text)

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
        self.wire = Wire(port)
        for name in NAMES:
            self.start_node(name, self.wire.port if name == "south" else port)

    def start_node(self, name, port):
        here = self.folder
        self.run_process(
            name, "flower-supernode", "--superlink", f"127.0.0.1:{port}",
            "--root-certificates", here / "ca.crt", "--port", free_port(),
            "--auth-supernode-private-key", here / f"{name}.node",
            "--node-config",
            f'key="{here / name}.key" data="{here / name}.csv" data-set="{name}"',
        )  # fmt: skip

    def run_process(self, name, *command):
        with (self.folder / f"{name}.process.log").open("wb") as log:
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
        self.rounds += 1
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


def check_whole(federation, title, seconds):
    """Run a round that needs all three, and get it."""
    round_ = federation.open(title, least=3)
    federation.submit(title, timeout=seconds)
    state = federation.outcome(title, 2.5 * seconds)
    assert state["done"], state
    assert state["nodes"] == sorted(NAMES)
    assert state["lost"] == {}
    result = load(federation.folder / f"{title}.result.hush")
    np.testing.assert_array_equal(result.counts, federation.sent(round_, NAMES))
    # What the rounds before cost on the same rows is counted.
    assert 0.49 < result.ledger.epsilon <= 0.5 * federation.rounds


def check_without_south(federation, title, seconds, lose):
    """Lose the third site while it answers: two suffice, and the sum is that of who masked."""
    round_ = federation.open(title, least=2)
    federation.submit(title, timeout=seconds)
    book = federation.folder / "south.book"
    before = len(steps(book))
    wait_for(lambda: len(steps(book)) > before, 120)
    lose()
    state = federation.outcome(title, 6 * seconds)
    assert state["done"], state
    assert state["lost"]["south"].endswith(": silent")
    inside = [name for name in NAMES if state["reached"].get(name) in LATER]
    assert set(inside) >= {"east", "north"}
    result = load(federation.folder / f"{title}.result.hush")
    np.testing.assert_array_equal(result.counts, federation.sent(round_, inside))


def test_a_wire_that_is_slow_then_cut_then_mended(federation):
    wire = federation.wire
    wire.delay = 0.25
    start, before = time.monotonic(), wire.carried
    check_whole(federation, "slow", 120.0)
    assert wire.carried > before
    print(f"\nround with one site behind a slow wire: {time.monotonic() - start:.1f} s")
    wire.delay = 0.0

    check_without_south(federation, "cut", 60.0, wire.cut)

    # The node finds back by itself, with its book as it was.
    wire.mend()
    check_whole(federation, "mended", 120.0)


def test_a_site_killed_in_the_middle(federation):
    start = time.monotonic()
    check_whole(federation, "whole", 120.0)
    print(f"\nround over Flower with TLS: {time.monotonic() - start:.1f} s")

    check_without_south(federation, "two", 90.0, lambda: federation.kill("south"))

    # All three are needed, and one is gone: no sum, and the state says why.
    federation.open("three", least=3)
    federation.submit("three", timeout=45.0)
    state = federation.outcome("three", 200)
    assert not state["done"]
    assert "2 sites are left in step 'keys', and 3 are needed" in state["error"]
    assert not (federation.folder / "three.result.hush").exists()

    # It comes back, with its book as it was.
    federation.start_node("south", federation.wire.port)
    check_whole(federation, "back", 120.0)


def test_what_a_site_refuses_is_a_word(federation):
    """The reason stays at the site: a broken row, a policy, a missing book; the sum goes on."""
    rows, policy = federation.folder / "south.csv", federation.folder / "south.policy.toml"
    whole, book = rows.read_text(), federation.folder / "south.book"
    broken = {
        "row": (lambda: rows.write_text(whole + "Ann Lee,HIV positive,refused\n"), "unavailable"),
        "policy": (lambda: federation.write_policy("south", answers=False), "policy"),
        "book": (lambda: book.rename(f"{book}.away"), "silent"),
    }
    for what, (spoil, word) in broken.items():
        spoil()
        round_ = federation.open(f"broken {what}", least=2)
        federation.submit(f"broken {what}", timeout=20.0)
        state = federation.outcome(f"broken {what}", 200)
        assert state["done"], state
        assert word in (state["lost"]["south"].split(": ")[1], state["refused"].get("south"))
        assert "Ann" not in json.dumps(state)
        result = load(federation.folder / f"broken {what}.result.hush")
        np.testing.assert_array_equal(result.counts, federation.sent(round_, ["east", "north"]))
        rows.write_text(whole)
        federation.write_policy("south")
        if what == "book":
            Path(f"{book}.away").rename(book)
    said = (federation.folder / "superlink.process.log").read_text(errors="replace")
    assert "Ann Lee" not in said
    logged = (federation.folder / "south.log").read_text()
    assert "column 'a': " in logged
    assert "is no number" in logged
    assert "does not allow unattended answers" in logged
    assert policy.is_file()
