"""A campaign over a network that NVFlare provisioned: processes of their own, and mutual TLS.

A server and three clients are started as their startup kits say. Three jobs run a campaign:
marginals, tables, ranks. Every site then verifies every result with its own book, by the command.
Runs where NVFlare is installed (``make test-nvflare``), and prints how long the parts took.
"""

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from place_helpers import SCHEMA, Places

pytest.importorskip("nvflare.apis", reason="NVFlare is not installed: make test-nvflare")

from hushtable import Plan
from hushtable.counts.rounds import ranks
from hushtable.plans.draws import Purpose
from hushtable_federation.book.book import ALL_ROWS
from hushtable_federation.clock import now
from hushtable_federation.coordinator import round_after, tables_after
from hushtable_federation.result import Result
from hushtable_federation.round import Round

pytestmark = pytest.mark.slow

SITES, STEPS = ("east", "north", "south"), ("marginals", "tables", "ranks")
ADMIN = "lead@hospital.example"
#: What NVFlare provisions: one server and two hospitals.
PROJECT = """
api_version: 3
name: consortium
description: one server and two hospitals
participants:
  - {name: flare.hospital.example, type: server, org: hospitals, fed_learn_port: 8002}
  - {name: north, type: client, org: hospitals}
  - {name: south, type: client, org: hospitals}
  - {name: lead@hospital.example, type: admin, org: hospitals, role: project_admin}
builders:
  - path: nvflare.lighter.impl.workspace.WorkspaceBuilder
    args: {template_file: [master_template.yml]}
  - path: nvflare.lighter.impl.static_file.StaticFileBuilder
    args: {config_folder: config}
  - path: nvflare.lighter.impl.cert.CertBuilder
  - path: nvflare.lighter.impl.signature.SignatureBuilder
"""
#: What an administrator does, in a process of its own: NVFlare's threads end with it.
SUBMIT = """
import os, sys, time
from nvflare.recipe import ProdEnv
from hushtable_federation.nvflare import RoundRecipe

kit, admin, name, least, timeout = sys.argv[1:]
env = ProdEnv(kit, login_timeout=60.0, username=admin)
run = RoundRecipe(name, least=int(least), timeout=float(timeout)).execute(env)
while not str(run.get_status()).startswith("FINISHED"):
    time.sleep(1.0)
print(run.get_status(), flush=True)
os._exit(0)
"""
#: Programs of this environment: startup kits call python3 and nvflare by name.
ENVIRON = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
#: Seconds for a process to start, and for a job.
START, JOB = 120.0, 240.0


def free_port():
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until(what, done, seconds):
    """Wait until something is true; fail with its name."""
    end = time.monotonic() + seconds
    while not (found := done()):
        assert time.monotonic() < end, f"{what}: not within {seconds:g} s"
        time.sleep(0.5)
    return found


class Network(Places):
    """Places, and the startup kits of a network that was provisioned for them."""

    def __init__(self, folder):
        super().__init__(folder, SITES)
        (folder / "rounds").mkdir()
        self.port, self.processes = free_port(), {}
        north = "  - {name: north, type: client, org: hospitals}\n"
        text = PROJECT.replace(north, north.replace("north", "east") + north)
        text = text.replace("flare.hospital.example", "localhost").replace("8002", str(self.port))
        assert text.count("localhost") == 1
        assert text.count("client") == len(SITES)
        project = folder / "project.yml"
        project.write_text(text)
        subprocess.run(
            ["nvflare", "provision", "-p", str(project), "-w", str(folder / "provisioned")],
            check=True, env=ENVIRON, capture_output=True, timeout=120,
        )  # fmt: skip
        self.kits = folder / "provisioned" / "consortium" / "prod_00"
        own = {name: f'[site]\nfile = "{self.file(name)}"\n' for name in SITES}
        own["localhost"] = f'[coordinator]\nkey = "{folder}/lead.key"\nrounds = "{folder}/rounds"\n'
        for name, text in own.items():
            local = self.kits / name / "local"
            (local / "hushtable.toml").write_text(text)
            resources = json.loads((local / "resources.json.default").read_text())
            one = "RoundController" if name == "localhost" else "SiteExecutor"
            resources["class_allow_list"] = [f"hushtable_federation.nvflare.{one}"]
            resources["allow_log_streaming"] = False
            (local / "resources.json").write_text(json.dumps(resources))

    def start(self, name):
        """Start a place as its startup kit says, in a session of its own."""
        with (self.folder / f"{name}.out").open("wb") as out:
            self.processes[name] = subprocess.Popen(
                [str(self.kits / name / "startup" / "sub_start.sh")],
                env=ENVIRON, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def logged(self, name, words):
        log = self.kits / name / "log.txt"
        return log.exists() and words in log.read_text(errors="replace")

    def stop(self):
        for name, process in self.processes.items():
            (self.kits / name / "shutdown.fl").touch()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(20)

    def run(self, name):
        """Run a round as a job that an administrator submits; return how it went."""
        kit = str(self.kits / ADMIN)
        done = subprocess.run(
            [sys.executable, "-c", SUBMIT, kit, ADMIN, name, str(len(SITES)), str(JOB / 2)],
            env=ENVIRON, cwd=self.folder, capture_output=True, text=True, timeout=JOB,
        )  # fmt: skip
        state = self.folder / "rounds" / f"{name}.result.state.json"
        assert state.exists(), done.stdout[-2_000:] + done.stderr[-2_000:]
        return done.stdout.strip().splitlines()[-1], json.loads(state.read_text())

    def verify(self, result, name):
        """Return the exit code of a site's own check of a result."""
        command = ["round", "verify", str(result), "--book", str(self.folder / f"{name}.book")]
        program = "import sys; from hushtable.cli import main; sys.exit(main(sys.argv[1:]))"
        return subprocess.run(
            [sys.executable, "-c", program, *command], capture_output=True, timeout=120
        ).returncode


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    start = time.monotonic()
    at = Network(tmp_path_factory.mktemp("poc"))
    provisioned = time.monotonic()
    try:
        at.start("localhost")
        until("server", lambda: reached(at.port), START)
        for name in SITES:
            at.start(name)
        for name in SITES:
            until(name, lambda name=name: at.logged(name, "Successfully registered"), START)
        ready = time.monotonic()
        print(f"\nprovisioned in {provisioned - start:.1f} s, up in {ready - provisioned:.1f} s")
        yield at
    finally:
        at.stop()


def reached(port):
    with contextlib.suppress(OSError), socket.create_connection(("localhost", port), 2):
        return True
    return False


@pytest.fixture(scope="module")
def campaign(network):
    at, states = network, {}
    plan = Plan.marginals(SCHEMA, epsilon=1.0, expected_rows=20_000, sites=len(SITES))
    round_ = Round.open(
        plan, [at.keys[name].card for name in SITES], at.keys["lead"],
        epsilon=1.0, deadline=now() + timedelta(days=1), least=len(SITES),
    )  # fmt: skip
    rounds = {}
    for name in STEPS:
        round_.save(at.folder / "rounds" / f"{name}.hush")
        rounds[name], began = round_, time.monotonic()
        states[name] = at.run(name)
        print(f"{name}: a job of {time.monotonic() - began:.1f} s")
        if name != STEPS[-1]:
            result = Result.load(at.folder / "rounds" / f"{name}.result.hush")
            result.check_round(round_)
            # Marginals, tables, ranks.
            first, until = round_.plan.purpose is Purpose.MARGINALS, now() + timedelta(days=1)
            plan = tables_after(round_.plan, result.counts) if first else ranks(result.counts)
            total = None if first else 2.0
            round_ = round_after(round_, plan, at.keys["lead"], until, epsilon=total)
    return SimpleNamespace(at=at, rounds=rounds, states=states)


def test_a_campaign_of_three_jobs_ends_in_sums_of_all_sites(campaign):
    for name, (status, state) in campaign.states.items():
        assert status == "FINISHED:COMPLETED", (name, status, state)
        assert state["done"], state
        assert state["nodes"] == list(SITES)
        assert not state["lost"]
        path = f"rounds/{name}.result.hush"
        campaign.at.check(campaign.rounds[name], SITES, path, answers=len(STEPS))
    for name in SITES:
        with campaign.at.book(name) as book:
            assert 1.9 < book.total(ALL_ROWS) <= 2.0  # the whole campaign's


@pytest.mark.parametrize("step", STEPS)
def test_every_site_verifies_every_result_and_none_that_was_changed(campaign, step):
    at = campaign.at
    result = at.folder / "rounds" / f"{step}.result.hush"
    assert [at.verify(result, name) for name in SITES] == [0, 0, 0]
    content = bytearray(result.read_bytes())
    content[-9] ^= 1  # one count
    changed = at.folder / f"changed-{step}.hush"
    changed.write_bytes(content)
    assert [at.verify(changed, name) for name in SITES] == [1, 1, 1]


def test_the_server_speaks_tls_with_those_who_were_provisioned_alone(network):
    kit = network.kits / "north" / "startup"
    own = ssl.create_default_context(cafile=str(kit / "rootCA.pem"))
    own.load_cert_chain(kit / "client.crt", kit / "client.key")
    assert answered(network.port, own)
    stranger = ssl.create_default_context(cafile=str(kit / "rootCA.pem"))
    assert not answered(network.port, stranger)
    elsewhere = ssl.create_default_context()  # of a client that trusts public authorities alone
    with pytest.raises(ssl.SSLCertVerificationError):
        answered(network.port, elsewhere)
    with socket.create_connection(("localhost", network.port), 5) as plain:
        plain.settimeout(5)
        plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with contextlib.suppress(OSError):
            assert b"HTTP" not in plain.recv(100)


def answered(port, context):
    """Return whether a server goes on with a connection after the handshake."""
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with (
        socket.create_connection(("localhost", port), 10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        try:
            secured.settimeout(3)
            secured.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return bool(secured.recv(100))
        except TimeoutError:
            return True
        except (ssl.SSLError, ConnectionError):
            return False
