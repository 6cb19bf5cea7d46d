"""A folder with a table, and a browser that opened a desk on it."""

import pytest

from desk_helpers import DeskClient, patients


@pytest.fixture
def folder(tmp_path):
    patients().to_csv(tmp_path / "patients.csv", index=False)
    return tmp_path


@pytest.fixture
def client(folder):
    with DeskClient(folder) as client:
        yield client


@pytest.fixture
def at(client):
    """The address of a table with a model."""
    return client.fit("patients.csv")
