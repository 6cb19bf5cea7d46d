"""Packages of third parties: a command, a kind of file and a reader, and faults."""

import importlib
import json
import re
import sys

import numpy as np
import pyarrow as pa
import pytest

from hushtable import files, load, plugins
from hushtable.cli import main
from hushtable.cli.app import app
from hushtable.data.readers import as_reader, registry
from hushtable.errors import DataError, FileError, PluginError

TOY = '''
"""Everything that a package can add, in one module."""

import pyarrow as pa

from hushtable.files import Kind

COMMANDS = """
toy             -                  Play.
toy spin        spin               Spin a top.
"""


def read(content):
    return content.said("top", {"turns": int})["turns"]


TOP = Kind("a top of hushtable toy spin", reader=read)


def register():
    from hushtable.data import register_format

    register_format("tops", [".top"], lambda path, texts: pa.table({"turns": [1, 2, 3]}))
'''
SPIN = '''
from hushtable.cli.result import CommandResult, TextTable


def spin(turns: int = 1) -> CommandResult:
    """Spin a top."""
    facts = {"command": "toy spin", "turns": turns}
    return CommandResult(facts, [f"{turns} turns", TextTable(["top"], [["red"]])], 3)
'''
POINTS = """
[hushtable.commands]
toy = toy:COMMANDS
[hushtable.kinds]
top = toy:TOP
[hushtable.readers]
toy = toy:register
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package of a name, with modules and entry points, as pip would."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(files, "KINDS", dict(files.KINDS))
    for name in ("FORMATS", "SOURCES", "URLS", "FAILED"):
        monkeypatch.setattr(registry, name, getattr(registry, name).copy())
    monkeypatch.setattr(registry, "_plugins_loaded", [])

    def install(name, points, version="1.0", **modules):
        for module, text in modules.items():
            path = site / f"{module.replace('__', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(points)
        importlib.invalidate_caches()
        plugins.points.cache_clear()

    yield install
    plugins.points.cache_clear()
    for module in [one for one in sys.modules if one.partition(".")[0] in ("toy", "other")]:
        del sys.modules[module]


def test_a_package_adds_a_command_a_kind_and_a_reader(install, tmp_path, capsys):
    install("toys", POINTS, **{"toy__init": TOY, "toy__spin": SPIN})
    (tmp_path / "site/toy/init.py").rename(tmp_path / "site/toy/__init__.py")
    assert main(["--help"]) == 0
    assert "toy " in capsys.readouterr().out
    assert main(["toy", "spin", "--turns", "7", "--json"]) == 3
    assert json.loads(capsys.readouterr().out) == {"command": "toy spin", "turns": 7}
    assert main(["toy", "spin"]) == 3
    assert [line.strip() for line in capsys.readouterr().out.splitlines()][:2] == ["1 turns", "top"]
    files.write(tmp_path / "a.hush", "top", {"turns": 4}, {})
    assert load(tmp_path / "a.hush") == 4
    (tmp_path / "a.top").write_text("x")
    assert as_reader(tmp_path / "a.top").n_rows == 3


def test_one_that_does_not_load_is_named_and_the_others_go_on(install, tmp_path, capsys):
    install("broken", "[hushtable.commands]\nbroken = toy:COMMANDS\n[hushtable.readers]\n"
            "broken = toy:register\n", toy="1 / 0\n")  # fmt: skip
    install("others", "[hushtable.commands]\nother = other:COMMANDS\n", other='COMMANDS = """\n'
            'other           other              Something else.\n"""\n')  # fmt: skip
    assert main(["--help"]) == 0
    said = capsys.readouterr()
    assert "Something else." in said.out
    assert "'broken' of broken (toy:COMMANDS) does not load: ZeroDivisionError" in said.err
    (tmp_path / "a.csv").write_text("a\n1\n")
    assert as_reader(tmp_path / "a.csv").names == ("a",)
    (tmp_path / "a.odd").write_bytes(b"\0\1")
    with pytest.raises(DataError, match=r"ends in .*'broken' of broken .* does not"):
        as_reader(tmp_path / "a.odd")


def test_two_of_one_name(install, capsys):
    install("one", "[hushtable.kinds]\ntop = toy:TOP\n", toy="")
    install("two", "[hushtable.kinds]\ntop = other:TOP\n", other="")
    with pytest.raises(
        PluginError, match=r"two packages add 'top' to hushtable.kinds: one and two"
    ):
        plugins.points(plugins.KINDS)
    install("three", "[hushtable.commands]\nfit = toy:COMMANDS\n", toy='COMMANDS = """\n'
            'fit             fit                Another fit.\n"""\n')  # fmt: skip
    assert main(["--help"]) == 0
    said = capsys.readouterr()
    assert "Another fit." not in said.out
    assert "two packages have a command 'fit'" in said.err


def test_a_package_of_ours_in_another_version(install, capsys):
    install("hushtable-attic", "[hushtable.commands]\nattic = toy:COMMANDS\n", "9.9", toy="")
    assert main(["--help"]) == 0
    assert "hushtable-attic 9.9 does not match hushtable" in capsys.readouterr().err


def test_what_needs_a_package_that_is_not_there(monkeypatch):
    monkeypatch.setattr(plugins, "points", lambda group: {})
    with pytest.raises(PluginError, match=r"omop needs the package hushtable-connect.*pip install"):
        plugins.extension("omop", "--read omop=...", "connect")


def test_a_file_and_a_command_of_a_package_that_is_not_there(monkeypatch, tmp_path, capsys):
    """As an old home model, which was a file of the core."""
    monkeypatch.setattr(files, "KINDS", {**files.KINDS, "home": files.Kind("a home model")})
    files.write(tmp_path / "a.hush", "home", {}, {})
    monkeypatch.setattr(files, "KINDS", {n: k for n, k in files.KINDS.items() if n != "home"})
    monkeypatch.setattr(plugins, "points", lambda group: {})
    needs = r"needs the package hushtable-federation, .*: pip install 'hushtable\[federation\]'"
    with pytest.raises(FileError, match=f"a.hush: a file of kind 'home' {needs}"):
        load(tmp_path / "a.hush")
    for command in ("demo", "round", "round open"):
        assert main(command.split()) == 1
        assert re.search(f"hushtable {command.split()[0]} {needs}", capsys.readouterr().err)
    assert main(["score", str(tmp_path / "a.csv"), "--model", str(tmp_path / "a.hush"),
                 "-o", str(tmp_path / "s.csv")]) == 1  # fmt: skip
    assert re.search(needs, capsys.readouterr().err)
    assert main(["nothing"]) == 2
    group = app()
    completing = group.make_context("hushtable", ["round", "o"], resilient_parsing=True)
    assert group.get_command(completing, "round") is None


def test_the_old_import_names_the_new_one():
    words = "install hushtable-federation, .*hushtable_federation import HomeModel"
    with pytest.raises(ImportError, match=words):
        exec("from hushtable import HomeModel")


@pytest.mark.usefixtures("install")
def test_what_is_built_in_needs_no_other_reader(tmp_path):
    (tmp_path / "a.csv").write_text("a\n1\n")
    for rows in (tmp_path / "a.csv", np.ones((2, 2)), pa.table({"a": [1.0]})):
        as_reader(rows)
    assert registry._plugins_loaded == []
