"""Public names: the frozen list keeps working, and each has an example that is run."""

import doctest
import importlib
import shutil
import sys

import pytest

from hushtable.data.readers import registry
from places import ROOT

#: Every name of the API page of 0.1, where it is now. A name may be added; none may go without a
#: line in docs/project/decisions/09-dropped-features.md.
FROZEN = (ROOT / "tests/public_names.txt").read_text().split()


#: Words of names whose examples start another engine, or fit the detectors of comparisons.
AT_NIGHT = ("spark", "dask", "hushtable_bench")


def named(dotted):
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_public_names_keep_working():
    for dotted in FROZEN:
        assert named(dotted).__name__ == dotted.rpartition(".")[2]


def on_the_api_page():
    """Yield (module, name) of each entry of the page."""
    module, listing = "", False
    for line in (ROOT / "docs/reference/api.md").read_text().splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        listing = line.startswith(".. autosummary::") or (listing and not line.startswith("```"))
        if listing and line.startswith("   ") and not line.strip().startswith(":"):
            dotted = f"{module}.{line.strip()}"
            yield dotted.rpartition(".")[0], dotted.rpartition(".")[2]


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning")
@pytest.mark.parametrize(
    "dotted",
    [
        pytest.param(dotted, marks=[pytest.mark.slow] * any(word in dotted for word in AT_NIGHT))
        for dotted in sorted(f"{m}.{n}" for m, n in on_the_api_page())
    ],
)
def test_a_public_name_has_an_example_that_runs(dotted, tmp_path, monkeypatch):
    thing = named(dotted)
    monkeypatch.chdir(tmp_path)  # examples write files with bare names
    for name in ("FORMATS", "SOURCES"):  # examples register some
        monkeypatch.setattr(registry, name, getattr(registry, name).copy())
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # that of Spark's workers
    if "pyod" in dotted:
        pytest.importorskip("pyod", reason=f"{dotted} needs pyod")
    if "spark" in dotted:
        pytest.importorskip("pyspark", reason="Spark is not installed")
    if "spark" in dotted and shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not here")
    finder = doctest.DocTestFinder(recurse=False)
    examples = [test for test in finder.find(thing, dotted) if test.examples]
    if isinstance(thing, type):  # an example of a method counts, as in a class's own page
        for name in vars(thing):
            if not name.startswith("_"):
                examples += [t for t in finder.find(getattr(thing, name), name) if t.examples]
    assert examples, f"{dotted} has no example in its docstring"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    for example in examples:
        example.globs = {"__name__": "example"}
        if dotted.startswith("hushtable_federation"):
            from rehearsal import Rehearsal  # examples begin with an open round

            example.globs["Rehearsal"] = Rehearsal
        runner.run(example)
    assert runner.failures == 0


def test_the_core_has_at_most_nine_public_rooms():
    """A room may hand out its engines and runtimes each by a module of its own."""
    entries = list(on_the_api_page())
    assert len(entries) >= len(FROZEN)
    rooms = {tuple(module.split(".")[:2]) for module, _ in entries}
    assert len([room for room in rooms if room[0] == "hushtable"]) <= 9
    for module, name in entries:
        assert name in dir(importlib.import_module(module))
