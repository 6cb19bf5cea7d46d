"""The PostgreSQL server of the tests of databases."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "databases"))

from postgres_server import postgres as postgres
