"""A PostgreSQL server of the tests' own."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PASSWORD = "s3cret/w@rd%21"
QUOTED = "s3cret%2Fw%40rd%2521"


@dataclass(frozen=True)
class Server:
    """A server on a free port; ``trusted`` needs no password, ``reader`` does."""

    port: int
    folder: Path

    def url(self, user="trusted", database="postgres") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    @property
    def shown(self) -> str:
        return f"postgresql://127.0.0.1:{self.port}/postgres"

    @contextlib.contextmanager
    def cursor(self):
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.url(), autocommit=True) as connection, connection.cursor() as one:
            yield one

    def do(self, *statements: str) -> None:
        with self.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def ask(self, query: str):
        """Return the first value of the first row."""
        with self.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchone()[0]


def programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def _user() -> str | None:
    """Return whose the server is to be: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    known = {one.pw_name for one in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)


@contextlib.contextmanager
def running(where: Path) -> Iterator[Server]:
    """Start a server of these programs; stop it, and leave nothing behind."""
    user = _user()
    # Not in pytest's folder, which the server's user may not enter.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    data, calm = folder / "data", {"user": user, "cwd": folder, "check": True, "text": True}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    settings = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    control = [str(where / "pg_ctl"), "-D", str(data), "-w", "-t", "60"]
    try:
        subprocess.run(
            [str(where / "initdb"), "-D", str(data), "-U", "trusted", "-A", "trust",
             "--no-sync", "-E", "UTF8", "--locale=C"], **calm, **quiet,
        )  # fmt: skip
        asked = "host all reader 127.0.0.1/32 scram-sha-256\n"
        rules = data / "pg_hba.conf"
        rules.write_text(asked + rules.read_text())
        log = str(folder / "log")
        subprocess.run([*control, "-l", log, "-o", settings, "start"], **calm, **quiet)
        try:
            server = Server(port, folder)
            server.do(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
            server.do("GRANT pg_read_all_data TO reader")
            yield server
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **calm, **quiet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres():
    """One server for all tests of a folder."""
    where = programs()
    if where is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: apt-get install postgresql)")
    pytest.importorskip("adbc_driver_postgresql")
    with running(where) as server:
        yield server
