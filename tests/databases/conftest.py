"""One PostgreSQL server for all tests here."""

import pytest
from postgres_server import programs, running


@pytest.fixture(scope="session")
def postgres():
    where = programs()
    if where is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: apt-get install postgresql)")
    pytest.importorskip("adbc_driver_postgresql")
    with running(where) as server:
        yield server
