"""What is installed is pinned: the locks have a version, with hashes, for all that may be named."""

import re
import tomllib

import pytest

from places import ROOT

packaging = pytest.importorskip("packaging.requirements")

LOCKS = ROOT / ".ci" / "locks"
GROUPS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
#: Groups with a lock of their own.
CARRIERS = {"flower", "nvflare", "vantage6"}


def locked(name):
    """Return the versions of a lock, by name."""
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", (LOCKS / name).read_text(), re.MULTILINE))


def named():
    """Yield each requirement of the packages, their extras and the groups, with its lock."""
    for path in ROOT.glob("packages/*/pyproject.toml"):
        project = tomllib.loads(path.read_text("utf-8"))["project"]
        for one in project["dependencies"]:
            yield one, "dev.txt"
        for extra, needs in project.get("optional-dependencies", {}).items():
            for one in needs:
                yield one, f"{extra}.txt" if extra in CARRIERS else "dev.txt"
    for group, needs in GROUPS.items():
        for one in needs:
            if isinstance(one, str):
                yield one, f"{group}.txt" if group in CARRIERS else "dev.txt"


def test_every_requirement_is_pinned():
    locks = {path.name: locked(path.name) for path in LOCKS.glob("*.txt")}
    for text, lock in named():
        need = packaging.Requirement(text)
        if not need.name.startswith("hushtable"):
            version = locks[lock].get(need.name.lower(), "0")
            assert version in need.specifier, f"{text}: {lock} has {version}: run make lock"


@pytest.mark.parametrize("path", sorted(LOCKS.glob("*.txt")), ids=lambda path: path.name)
def test_every_version_has_hashes_and_no_host_is_named(path):
    text = path.read_text()
    for entry in re.split(r"\n(?=[\w.-]+==)", text.strip()):
        assert "--hash=sha256:" in entry, entry
    assert "://" not in text
