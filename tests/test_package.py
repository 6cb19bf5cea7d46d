"""The package as a whole: public names, docstrings, light imports."""

import inspect
import re
import subprocess
import sys

import pytest

import hushtable
import hushtable_bench

PUBLIC = [getattr(hushtable, name) for name in hushtable.__all__]
METHODS = [
    (cls, name, member)
    for cls in PUBLIC
    if inspect.isclass(cls)
    for name, member in inspect.getmembers(cls, callable)
    if not name.startswith("_")
    and (getattr(member, "__module__", None) or "").startswith("hushtable")
]


def test_public_names_are_sorted_and_there():
    assert hushtable.__all__ == sorted(hushtable.__all__)
    assert set(hushtable.__all__) <= set(dir(hushtable))
    assert re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", hushtable.__version__)
    with pytest.raises(AttributeError, match="nothing"):
        hushtable.nothing  # noqa: B018


def documented_parameters(docstring):
    section = re.search(r"Parameters\n\s*-+\n(.*?)(\n\s*\n\s*[A-Z]\w+\n\s*-+|\Z)", docstring, re.S)
    if not section:
        return []
    names = re.findall(r"^(\S.*?)(?: :.*)?$", section.group(1), re.M)
    return [part.strip("* ") for line in names for part in line.split(",") if part.strip("* ")]


def signature(function):
    parameters = inspect.signature(function).parameters
    return [name for name in parameters if name not in ("self", "cls")]


DETECTORS = [
    hushtable.HushTable,
    hushtable.LSHiTables,
    hushtable_bench.ACE,
    hushtable_bench.RSHash,
    hushtable_bench.RotatedRSHash,
]


@pytest.mark.parametrize("detector", DETECTORS)
def test_constructor_docstrings_match_signatures(detector):
    assert documented_parameters(inspect.getdoc(detector)) == signature(detector.__init__)


def test_method_docstrings_match_signatures():
    assert len(METHODS) > 100
    for cls, name, member in METHODS:
        docstring = inspect.getdoc(member)
        assert docstring, f"{cls.__name__}.{name} has no docstring"
        documented = documented_parameters(docstring)
        if documented:
            assert documented == signature(member), f"{cls.__name__}.{name}"


def modules_after(statement):
    code = f"{statement}; import sys; print(*sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in run.stdout.split()}


def test_importing_is_light():
    heavy = {"numpy", "numba", "sklearn", "pyarrow", "pandas", "scipy", "typer", "rich"}
    assert not modules_after("import hushtable") & heavy
    # Plans and sketches do without scikit-learn, which takes a second to import.
    assert "sklearn" not in modules_after("from hushtable import Plan, Sketch, load")
    optional = {"pandas", "polars", "pyod", "duckdb"}
    assert not modules_after("from hushtable import Plan, Sketch, Schema, load") & optional
