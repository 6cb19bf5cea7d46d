"""Check that a list of contents (CycloneDX) holds what is installed here, and no more.

Run by the Python of the environment that was listed; it needs nothing but the standard library.
"""

import importlib.metadata
import json
import re
import sys
from pathlib import Path


def same(name: str) -> str:
    """Return the name of a package as indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed() -> dict[str, str]:
    return {same(d.metadata["Name"]): d.version for d in importlib.metadata.distributions()}


def listed(bill: dict) -> dict[str, str]:
    """Return names and versions, the package itself included."""
    parts = [bill["metadata"]["component"], *bill["components"]]
    return {same(part["name"]): part["version"] for part in parts}


def differences(bill: dict, here: dict[str, str]) -> list[str]:
    """Return what is listed and not installed, or otherwise, in sentences."""
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
