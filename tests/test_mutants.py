"""The script of `make mutants`, with names as mutmut makes them from the modules that are here."""

import ast
import fnmatch
from collections import Counter

import pytest

from places import ROOT, script


@pytest.fixture
def mutants():
    return script(ROOT / ".ci" / "mutants.py")


@pytest.fixture
def names(mutants):
    """Return the name of the first mutant of each function that pyproject.toml lets change."""
    settings, found = mutants.settings(), []
    for source in ROOT.glob("packages/*/src"):
        for path in sorted(source.rglob("*.py")):
            name = f"src/{path.relative_to(source).as_posix()}"
            if not any(fnmatch.fnmatch(name, one) for one in settings["only_mutate"]):
                continue
            if name in settings["do_not_mutate"]:
                continue
            module = name.removeprefix("src/").removesuffix(".py").replace("/", ".")
            body = ast.parse(path.read_text()).body
            each = [one.name for one in body if isinstance(one, ast.FunctionDef)]
            found += [f"{module}.x_{one}__mutmut_1" for one in each]
    return found


def test_each_mutant_is_chosen_once(mutants, names):
    assert sorted(mutants.chosen(names, None, 1)) == sorted(names)


def test_a_sample_has_mutants_of_each_group(mutants, names):
    seen = Counter(map(mutants.group, mutants.chosen(names, 3, 1)))
    assert set(seen) == set(mutants.GROUPS)
    assert set(seen.values()) == {3}


def test_a_group_is_named_after_what_it_has(mutants):
    assert mutants.group("hushtable.counts.sketch.x_outside__mutmut_2") == "counts"
    assert mutants.group("hushtable_federation.book.chain.x_link__mutmut_1") == "book"
    assert mutants.group("hushtable_federation.protocol.masks.x_share__mutmut_1") == "masked sum"
    assert mutants.group("hushtable_federation.folder.mailbox.x_intact__mutmut_1") == "rest"
    assert mutants.group("hushtable_federation.site.xǁSiteǁsync__mutmut_1") == "rest"


def test_the_first_mutant_exists(mutants, names):
    assert mutants.FIRST in names


def test_what_the_tests_need_exists(mutants):
    settings = mutants.settings()
    for name in [*settings["also_copy"], *settings["pytest_add_cli_args_test_selection"]]:
        assert (ROOT / name).exists(), name
    for name in settings["source_paths"]:
        assert list(ROOT.glob(f"packages/*/{name}")), name
