"""A server of commands under the shim, and the files that they begin with."""

import shutil

import pytest
from faults import Server, build_shim, put
from world import make_world


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    """Return the compiled shim."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler, cc: faults are injected by a small library in C")
    return build_shim(tmp_path_factory.mktemp("shim"))


@pytest.fixture(scope="session")
def served(shim, tmp_path_factory):
    """Return the server and the files of its folder."""
    server = Server(shim, tmp_path_factory.mktemp("faults") / "world")
    yield server, make_world(server)
    server.close()


@pytest.fixture
def world(served):
    """Return the server, in a folder as it was at first."""
    server, files = served
    put(files, server.root)
    return server
