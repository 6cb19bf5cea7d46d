"""The script of `make lint` that checks the house: on a small one, red for each of its rules."""

import sys

import pytest

from places import ROOT, script

pytest.importorskip("grimp", reason="make lint brings import-linter, and with it grimp")
CONTRACT = """
[tool.importlinter]
root_package = "toy"
[[tool.importlinter.contracts]]
type = "layers"
containers = ["toy"]
layers = ["top", "left | right", "ground"]
"""
HOUSE = {
    "__init__": '"""Hand out names."""\nfrom toy.top import run\n',
    "top": '"""Run."""\nfrom toy.left import cut\nfrom toy.right.room import mend\nimport toy\n',
    "left": '"""Cut."""\nfrom toy.ground import count\n',
    "right/__init__": '"""Mend."""\n',
    "right/room": '"""Mend here."""\nfrom toy import ground\n',
    "ground": '"""Count."""\ndef count(a, b):\n    """Count."""\n    return a\n',
}


@pytest.fixture
def house():
    return script(ROOT / ".ci" / "check_house.py")


@pytest.fixture
def complaints(house, tmp_path):
    """Check the small house after some files of it were replaced."""

    def build(changed=None, contract=CONTRACT, allowed=frozenset()):
        for name, text in {**HOUSE, **(changed or {})}.items():
            path = tmp_path / "toy" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (tmp_path / "pyproject.toml").write_text(contract)
        return house.check(tmp_path / "toy", tmp_path / "pyproject.toml", allowed)

    yield build
    for name in [name for name in sys.modules if name.split(".")[0] == "toy"]:
        del sys.modules[name]
    sys.path_importer_cache.clear()


def test_the_small_house_stands(complaints):
    assert complaints() == []


LONG = "def long():\n" + "    1\n" * 60
#: What breaks a rule, and what is said of it.
BROKEN = {
    "a long file": ({"ground": "# \n" * 601}, "toy.ground: 601 lines of code"),
    "a long function": ({"ground": LONG}, "toy.ground:long: 61 lines without the docstring"),
    "a long method": (
        {"ground": "class A:\n" + LONG.replace("d", "    d", 1).replace("    1", "        1")},
        "toy.ground:long: 61",
    ),
    "What": ({"left": '"""What is cut."""'}, "toy.left, the module: its docstring begins with"),
    "What, of a class": (
        {"left": 'class A:\n    """What\'s cut."""'},
        "toy.left, A: its docstring begins with",
    ),
    "a room on no floor": ({"attic": ""}, "toy.attic is on no floor"),
    "upward": ({"ground": "from toy.left import cut"}, "toy.ground imports toy.left: left is not"),
    "upward, inside a function": (
        {"ground": "def late():\n    import toy.top"},
        "toy.ground imports toy.top: ",
    ),
    "upward, for types alone": (
        {"ground": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import toy.top"},
        "toy.ground imports toy.top, for types alone: top is not below ground",
    ),
    "upward, through the package": ({"ground": "from toy import run"}, "toy.ground imports toy: "),
    "upward, by name": (
        {"ground": "import importlib\nimportlib.import_module('toy.top')"},
        "toy.ground imports toy.top, in a string: ",
    ),
    "to the side": ({"left": "import toy.right.room"}, "toy.left imports toy.right.room: "),
}


@pytest.mark.parametrize("case", BROKEN)
def test_each_rule_is_held(complaints, case):
    changed, said = BROKEN[case]
    found = [one for one in complaints(changed) if "import each other" not in one]
    assert len(found) == 1
    assert found[0].startswith(said)


def test_a_docstring_counts_for_the_file_alone(complaints):
    text = 'def short():\n    """Say.\n' + "\n    much\n" * 30 + '    """\n' + "    1\n" * 39
    assert complaints({"ground": text}) == []


def test_the_list_of_long_functions_is_short_and_true(house, complaints):
    allowed = frozenset({"toy.ground:long"})
    assert complaints({"ground": LONG}, allowed=allowed) == []
    assert "take it off the list" in complaints({"ground": ""}, allowed=allowed)[0]
    assert len(house.LONG) <= house.MAX_LONG == 10
    many = frozenset(f"toy.ground:f{i}" for i in range(11))
    text = "".join(LONG.replace("long", f"f{i}") for i in range(11))
    house.MAX_CODE = 1000
    assert complaints({"ground": text}, allowed=many)[0].startswith("11 functions are allowed")


def test_at_most_twenty_floors(complaints):
    more = ", ".join(f'"room{i}"' for i in range(18))
    assert complaints(contract=CONTRACT.replace('"top"', f'"top", {more}'))[0] == (
        "21 floors; needs 20 at most"
    )


def test_modules_that_import_each_other(house, complaints):
    other = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from toy.right.room import mend\n"
    )
    room = HOUSE["right/room"] + "from toy.right.other import other\n" + "#\n" * house.MIN_MODULE
    found = complaints({"right/room": room, "right/other": other + "#\n" * house.MIN_MODULE})
    assert found == [
        "toy.right.other, toy.right.room import each other: put what they share below them"
    ]


def test_a_small_module_that_one_other_imports(house, complaints):
    room = HOUSE["right/room"] + "from toy.right import other\n"
    assert complaints({"right/room": room, "right/other": ""}) == [
        "toy.right.other: under 150 lines, and one module imports it: make it a part"
    ]
    assert complaints({"right/room": room, "right/other": "#\n" * house.MIN_MODULE}) == []


def test_figures(house, complaints, tmp_path):
    wide = "def wide(self, a, b, c, d, *, e, f, g, h, i):\n    import os\n"
    complaints({"ground": f"class A:\n  x = 1\n{wide}{LONG}"})
    assert house.figures([tmp_path / "toy"]) == {
        "lines": 76,
        "files": 6,
        "classes": 1,
        "functions over 60 lines": 1,
        "functions over 8 parameters": 1,
        "imports inside functions": 1,
        "import circles": 0,
        "modules under 150 lines with a single importer, of their room": 0,
        "class names used twice": 0,
    }
