"""What is published with the package: workflows, citation, conduct."""

import re
import tomllib

import pytest

from places import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
if not WORKFLOWS:
    pytest.skip("a source distribution has no workflows", allow_module_level=True)
PROJECT = tomllib.loads((ROOT / "packages/hushtable/pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_named_by_their_commit(path):
    used = re.findall(r"uses: (\S+)(.*)", path.read_text())
    assert used
    for action, rest in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", rest), f"{action}: say which version it is"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_read_and_only_publishing_may_sign(path):
    """Anyone who gets code into a build gets no right to publish by it, and finds no password."""
    text = path.read_text()
    assert "\npermissions:\n  contents: read\n" in text
    assert "secrets." not in text
    assert "pull_request_target" not in text
    before, _, publish = text.partition("\n  publish:\n")
    assert "write" not in before
    assert re.findall(r"(\S+): write", publish) == (["id-token"] if publish else [])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_targets_that_are_there(path):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    made = re.findall(r"run: make ([\w-]+)", path.read_text())
    assert made
    assert set(made) <= set(targets)


def test_the_citation_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {PROJECT['version']}\n" in text
    assert f"\nlicense: {PROJECT['license']}\n" in text
    assert "2201.06806" in text


def test_the_code_of_conduct_says_whom_to_tell():
    text = (ROOT / "CODE_OF_CONDUCT.md").read_text()
    assert "INSERT" not in text
    assert "SECURITY.md" in text
    assert "version 2.1" in text
