"""Check that a list of contents (CycloneDX) holds exactly the packages that are installed here.

Run it with the Python of the listed environment; it needs only the standard library.
"""

import importlib.metadata
import json
import re
import sys
from pathlib import Path


def same(name: str) -> str:
    """Return the name of a package in the form in which indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed() -> dict[str, str]:
    return {same(d.metadata["Name"]): d.version for d in importlib.metadata.distributions()}


def listed(bill: dict) -> dict[str, str]:
    """Return names and versions, including the package itself."""
    parts = [bill["metadata"]["component"], *bill["components"]]
    return {same(part["name"]): part["version"] for part in parts}


def differences(bill: dict, here: dict[str, str]) -> list[str]:
    """Return the differences between listed and installed packages, in sentences."""
    there = listed(bill)
    return [
        f"{name}: installed {here.get(name, 'not at all')}, listed {there.get(name, 'not at all')}"
        for name in sorted(here.keys() | there.keys())
        if here.get(name) != there.get(name)
    ]


if __name__ == "__main__":
    found = differences(json.loads(Path(sys.argv[1]).read_text()), installed())
    if found:
        sys.exit("\n".join([f"{sys.argv[1]} is not what is installed:", *found]))
    print(f"{sys.argv[1]}: {len(installed())} packages, as installed")
