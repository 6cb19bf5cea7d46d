"""One PostgreSQL server for all tests here."""

from postgres_server import postgres as postgres
