"""What is published with the package: workflows, citation, conduct, the list of contents."""

import re
import tomllib

import pytest

from places import ROOT, script

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


@pytest.fixture
def check_sbom():
    return script(ROOT / ".ci" / "check_sbom.py")


def test_a_list_of_contents_is_held_against_what_is_installed(check_sbom):
    bill = {
        "metadata": {"component": {"name": "hushtable", "version": "0.1.0"}},
        "components": [{"name": "typing_extensions", "version": "4.1"}],
    }
    here = {"hushtable": "0.1.0", "typing-extensions": "4.1"}
    assert check_sbom.differences(bill, here) == []
    assert check_sbom.differences(bill, here | {"numpy": "2.0"}) == [
        "numpy: installed 2.0, listed not at all"
    ]
    assert check_sbom.differences(bill, {"hushtable": "0.1.0"}) == [
        "typing-extensions: installed not at all, listed 4.1"
    ]
    assert check_sbom.differences(bill, here | {"hushtable": "0.2.0"})
    assert check_sbom.installed()["hushtable"] == PROJECT["version"]
