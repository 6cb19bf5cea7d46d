"""Where things of the repository lie, for tests of all packages."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GOLDEN = ROOT / "tests" / "golden"
CORE, FEDERATION, CONNECT, BENCH = (
    ROOT / "packages" / f"hushtable{name}" for name in ("", "-federation", "-connect", "-bench")
)
