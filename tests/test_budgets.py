"""The size of the project: what each package spends of its budget in pyproject.toml.

A package has a budget of statements, as `ast` counts them, and of lines without docstrings,
comments, and blanks, so that denser lines do not help. What is beside the packages has budgets of
lines, so that it does not help either to move code there.
"""

import ast
import io
import tokenize
import tomllib

import pytest

from places import ROOT

TABLE = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hushtable"]["budgets"]
SUM = TABLE.pop("sum")
PACKAGES = sorted(path.parent.name for path in ROOT.glob("packages/*/pyproject.toml"))
#: For what is not the Python of a package, where it is, and its kinds of files.
OTHERS = {
    "templates": (["packages/*/src"], "html css js toml svg"),
    "examples": (["docs", "packages/*/examples"], "py js mjs toml"),
    "tests": (["tests", "packages/*/tests"], "py mjs js toml"),
    "tools": ([".ci", "packages/*/tools"], "py sh toml"),
}
BUILT = {"_build", "gallery", "generated"}
WHERE = "remove some, or decide in docs/project/decisions/ from which other budget it comes"
BLANK = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip


def statements(source):
    """Return the number of statements of a Python source, as `ast` counts them."""
    return sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(source)))


def lines(source):
    """Return the number of lines of a Python source without docstrings, comments, and blanks."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    spans = [(one.start[0], one.end[0]) for one in tokens if one.type not in BLANK]
    found = {line for first, last in spans for line in range(first, last + 1)}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found -= set(range(node.lineno, node.end_lineno + 1))
    return len(found)


def spent(name):
    """Return what a package, or a part beside the packages, spends, by kind."""
    if name in PACKAGES:
        sources = [path.read_text() for path in (ROOT / "packages" / name / "src").rglob("*.py")]
        return {"statements": sum(map(statements, sources)), "lines": sum(map(lines, sources))}
    folders, kinds = OTHERS[name]
    paths = [path for folder in folders for top in ROOT.glob(folder) for path in top.rglob("*.*")]
    paths = [path for path in paths if not BUILT & {*path.parts}]
    texts = [path.read_text() for path in paths if path.suffix[1:] in kinds.split()]
    return {"lines": sum(bool(line.strip()) for text in texts for line in text.splitlines())}


def test_every_part_has_a_budget():
    assert set(TABLE) == {*PACKAGES, *OTHERS}


@pytest.mark.parametrize("name", [*PACKAGES, *OTHERS])
def test_a_part_stays_within_its_budget(name):
    for kind, figure in spent(name).items():
        budget = TABLE[name][kind]
        print(f"\n{name:22} {figure:7,} {kind} of {budget:,}", end="")  # for `make budgets`
        assert figure <= budget, f"{name}: {figure:,} {kind}, and its budget is {budget:,}: {WHERE}"


def test_the_sum_is_fixed():
    for kind, most in SUM.items():
        given = sum(TABLE[name][kind] for name in TABLE if kind in TABLE[name])
        assert given <= most, (
            f"the budgets of {kind} are {given:,}, and the sum is {most:,}: {WHERE}"
        )


def test_dense_lines_and_docstrings_do_not_help():
    source = (
        '"""Add."""\n\n# Why.\ndef add(a, b):\n    """Add."""\n    return (\n        a\n    )\n'
    )
    assert (statements(source), lines(source)) == (4, 4)
    assert statements("a = 1; b = 2") == statements("a = 1\nb = 2") == 2
