"""The Containerfile: all that goes in has a hash, and what runs has no rights."""

import re
import tomllib

import pytest

from places import ROOT

if not (ROOT / "Containerfile").exists():
    pytest.skip("a source distribution has no Containerfile", allow_module_level=True)
TEXT = re.sub(r"^#.*\n", "", (ROOT / "Containerfile").read_text(), flags=re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "packages/hushtable/pyproject.toml").read_text())["project"]


def test_the_base_is_named_by_its_digest_and_used_throughout():
    assert re.search(r"^ARG BASE=\S+@sha256:[0-9a-f]{64}$", TEXT, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", TEXT, re.MULTILINE)) == {"${BASE}"}


def test_libraries_are_installed_by_their_hashes_alone():
    installs = re.findall(r"pip install (.*?)(?: && |\n)", TEXT.replace("\\\n", ""))
    assert len(installs) == 2
    assert "--require-hashes" in installs[0]
    assert "--no-index --no-deps" in installs[1]
    locked = (ROOT / ".ci/locks/image.txt").read_text()
    names = re.findall(r"^([\w.-]+)==", locked, re.MULTILINE)
    assert {"opendp", "cryptography", "duckdb", "jinja2", "pyarrow"} <= set(names)
    assert locked.count("--hash=sha256:") >= len(names)


def test_it_runs_as_nobody_and_says_what_it_is():
    *_, user = re.findall(r"^USER (\d+):(\d+)$", TEXT, re.MULTILINE)
    assert "0" not in user
    assert TEXT.index("USER ") < TEXT.index("ENTRYPOINT ")
    assert f"ARG VERSION={PROJECT['version']}\n" in TEXT
    assert f'licenses="{PROJECT["license"]}"' in TEXT
    for secret in ("ADD ", "curl", "wget", "sudo"):
        assert secret not in TEXT


def test_only_what_it_needs_is_sent_to_the_builder():
    for name in (".containerignore", ".dockerignore"):
        lines = (ROOT / name).read_text().splitlines()
        assert lines == ["*", "!.ci/locks/image.txt", "!dist/hushtable-*.whl"]
