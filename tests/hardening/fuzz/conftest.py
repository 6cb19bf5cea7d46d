"""Clocks that say when the rounds of the seeds were opened."""

import pytest
import seeds


@pytest.fixture(autouse=True)
def _clocks_of_the_rounds(monkeypatch):
    monkeypatch.setattr("hushtable_federation.clock.read", lambda: seeds.NOW)
