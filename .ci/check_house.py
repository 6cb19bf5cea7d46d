"""Check the rules of the house: sizes, first lines, floors, and the direction of imports.

    python .ci/check_house.py              print broken rules; exit code 1 if there are any
    python .ci/check_house.py --figures    also print the figures of the whole

The order of the rooms is in import-linter's contract in pyproject.toml, and nowhere else.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = sorted((ROOT / "packages").glob("*/src/hushtable*"))
MAX_CODE, MAX_FUNCTION, MAX_PARAMETERS, MAX_FLOORS = 600, 60, 8, 20
#: A module with fewer lines that only one other module of its room imports has to become its part.
MIN_MODULE = 150
#: Allowed exceptions: a file format beside the others, and the SQL of a recipe beside it.
ALONE = ("hushtable.data.readers.columnar", "hushtable_connect.omop.query")
#: Functions that may be longer than `MAX_FUNCTION`, as module:function; at most ten.
LONG: frozenset[str] = frozenset()
MAX_LONG = 10

Definition = ast.FunctionDef | ast.AsyncFunctionDef


def is_docstring(node: ast.AST) -> bool:
    """Return whether a node is only a text, which is a docstring."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@dataclass(frozen=True)
class File:
    """A source file and its definitions."""

    module: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def code(self) -> int:
        """Count the lines without blank ones, docstrings and imports."""
        filled = {i for i, line in enumerate(self.text.splitlines(), start=1) if line.strip()}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import | ast.ImportFrom) or is_docstring(node):
                filled -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        return len(filled)

    @property
    def functions(self) -> list[Definition]:
        return [node for node in ast.walk(self.tree) if isinstance(node, Definition)]

    @property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]

    def names(self) -> list[str]:
        """Strings that name a module of the package, or something in it."""
        texts = (node.value for node in ast.walk(self.tree) if isinstance(node, ast.Constant))
        dotted = re.compile(rf"{self.module.partition('.')[0]}(\.\w+)+")
        return [text for text in texts if isinstance(text, str) and dotted.fullmatch(text)]

    @property
    def inner_imports(self) -> int:
        """Imports inside functions, each counted once."""
        return len({
            inner
            for function in self.functions
            for inner in ast.walk(function)
            if isinstance(inner, ast.Import | ast.ImportFrom)
        })  # fmt: skip


def files(package: Path) -> list[File]:
    found = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        text = path.read_text(encoding="utf-8")
        module = ".".join(parts).removesuffix(".__init__")
        found.append(File(module, text, ast.parse(text)))
    return found


def length(function: Definition) -> int:
    """Count the lines from ``def`` to the end, without those of the docstring."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def parameters(function: Definition) -> int:
    """Count the parameters, without ``self``."""
    given = function.args
    named = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(named) - (named[:1] in (["self"], ["cls"]))


# --- the rules ------------------------------------------------------------------------------------


def long_files(house: Sequence[File]) -> Iterator[str]:
    for file in house:
        if file.code > MAX_CODE:
            yield (
                f"{file.module}: {file.code} lines of code (docstrings, imports and blank lines "
                f"do not count); needs {MAX_CODE} at most"
            )


def long_functions(house: Sequence[File], allowed: frozenset[str] = LONG) -> Iterator[str]:
    lengths = {
        f"{file.module}:{function.name}": length(function)
        for file in house
        for function in sorted(file.functions, key=length)
    }
    for name, lines in lengths.items():
        if lines > MAX_FUNCTION and name not in allowed:
            yield f"{name}: {lines} lines without the docstring; needs {MAX_FUNCTION} at most"
    for name in sorted(allowed):
        if lengths.get(name, 0) <= MAX_FUNCTION:
            yield f"{name} is allowed to be long, but is not: take it off the list"
    if len(allowed) > MAX_LONG:
        yield f"{len(allowed)} functions are allowed to be long; needs {MAX_LONG} at most"


def first_lines(house: Sequence[File]) -> Iterator[str]:
    for file in house:
        for node in (file.tree, *file.classes, *file.functions):
            if re.match(r"What\b", ast.get_docstring(node) or ""):
                name = getattr(node, "name", "the module")
                yield f"{file.module}, {name}: its docstring begins with What"


def floors(package: Path, contract: Path) -> list[tuple[str, ...]]:
    """Read the floors from the top to the ground; return none for a package without a contract.

    Rooms on one floor do not import each other.
    """
    settings = tomllib.loads(contract.read_text(encoding="utf-8"))["tool"]["importlinter"]
    for found in settings["contracts"]:
        if package.name in found.get("containers", ()):
            return [tuple(room.strip() for room in layer.split("|")) for layer in found["layers"]]
    return []


def imports(package: Path, house: Sequence[File]) -> dict[tuple[str, str], str]:
    """Return (importer, imported) of all imports, and their kind: run time, types, or by name."""
    from grimp import build_graph  # part of import-linter, which the tests may lack

    def pairs(runtime: bool, how: str) -> dict[tuple[str, str], str]:
        graph = build_graph(package.name, exclude_type_checking_imports=runtime, cache_dir=None)
        return {
            (importer, imported): how
            for importer in sorted(graph.modules)
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
        }

    sys.path.insert(0, str(package.parent))
    try:
        found = pairs(False, ", for types alone") | pairs(True, "")
    finally:
        sys.path.remove(str(package.parent))
    # The graph does not hold modules that are imported by name.
    by_name = {(file.module, name): ", in a string" for file in house for name in file.names()}
    return by_name | found


def imports_upward(package: Path, house: Sequence[File], contract: Path) -> Iterator[str]:
    """Check the floors, and compare each import with them.

    The package's own ``__init__`` exports names of all rooms, so it is on the top floor.
    """
    order = floors(package, contract)
    if not order:
        return
    if len(order) > MAX_FLOORS:
        yield f"{len(order)} floors; needs {MAX_FLOORS} at most"
    height = {room: -floor for floor, rooms in enumerate(order) for room in rooms}

    def room(module: str) -> str:
        return module.split(".")[1] if "." in module else order[0][0]

    for outside in sorted({room(file.module) for file in house} - set(height)):
        yield f"{package.name}.{outside} is on no floor"
    for (importer, imported), how in imports(package, house).items():
        below, above = room(importer), room(imported)
        inside = importer == package.name or below == above or not {below, above} <= set(height)
        if not inside and height[above] >= height[below]:
            yield f"{importer} imports {imported}{how}: {above} is not below {below}"


def circles(pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the sets of modules that import each other, directly or indirectly, including types.

    The package's own ``__init__`` exports names of all rooms, and is left out.
    """
    after: dict[str, set[str]] = {}
    for importer, imported in pairs:
        if "." in importer and "." in imported:
            after.setdefault(importer, set()).add(imported)

    def reached(module: str) -> set[str]:
        found, left = set(), [module]
        while left:
            new = after.get(left.pop(), set()) - found
            found |= new
            left.extend(new)
        return found

    reach = {module: reached(module) for module in after}
    rings = {
        frozenset(other for other in reach[module] if module in reach.get(other, ()))
        for module in after
        if module in reach[module]
    }
    return sorted(sorted(ring) for ring in rings)


def alone(house: Sequence[File], pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return the small modules that only one other module of the same room imports."""
    importers: dict[str, set[str]] = {}
    for importer, imported in pairs:
        importers.setdefault(imported, set()).add(importer)
    found = []
    for file in house:
        room, (first, *others) = file.module.rpartition(".")[0], [*importers.get(file.module, [""])]
        near = first == room or first.rpartition(".")[0] == room
        if near and not others and file.lines < MIN_MODULE and file.module.count(".") > 1:
            found.append(file.module)
    return found


def circles_and_parts(package: Path, house: Sequence[File]) -> Iterator[str]:
    """Check that modules do not import each other, and that no module should be a part."""
    pairs = [pair for pair, how in imports(package, house).items() if "string" not in how]
    for ring in circles(pairs):
        yield f"{', '.join(ring)} import each other: put what they share below them"
    for module in alone(house, pairs):
        if module not in ALONE:
            yield f"{module}: under {MIN_MODULE} lines, and one module imports it: make it a part"


def class_names(packages: Sequence[Path]) -> dict[str, list[str]]:
    """Return the names that several classes have, with their modules."""
    homes: dict[str, list[str]] = {}
    for file in (file for package in packages for file in files(package)):
        for one in file.classes:
            homes.setdefault(one.name, []).append(file.module)
    return {name: modules for name, modules in sorted(homes.items()) if len(modules) > 1}


def names_twice(packages: Sequence[Path]) -> Iterator[str]:
    """Check that each class name occurs once in all packages together."""
    for name, modules in class_names(packages).items():
        yield f"class {name} is in {' and '.join(modules)}: rename one"


def check(package: Path, contract: Path, allowed: frozenset[str] = LONG) -> list[str]:
    """Return all broken rules."""
    house = files(package)
    return [
        *long_files(house),
        *long_functions(house, allowed),
        *first_lines(house),
        *imports_upward(package, house, contract),
        *circles_and_parts(package, house),
    ]


def figures(packages: Sequence[Path]) -> dict[str, int]:
    """Return the figures that the rules limit."""
    house = [file for package in packages for file in files(package)]
    functions = [function for file in house for function in file.functions]
    rings, parts = 0, 0
    for package in packages:
        ours = files(package)
        pairs = [pair for pair, how in imports(package, ours).items() if "string" not in how]
        rings += len(circles(pairs))
        parts += len(alone(ours, pairs))
    return {
        "lines": sum(file.lines for file in house),
        "files": len(house),
        "classes": sum(len(file.classes) for file in house),
        f"functions over {MAX_FUNCTION} lines": sum(length(f) > MAX_FUNCTION for f in functions),
        f"functions over {MAX_PARAMETERS} parameters": sum(
            parameters(f) > MAX_PARAMETERS for f in functions
        ),
        "imports inside functions": sum(file.inner_imports for file in house),
        "import circles": rings,
        f"modules under {MIN_MODULE} lines with a single importer, of their room": parts,
        "class names used twice": len(class_names(packages)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figures", action="store_true", help="print the figures of the house")
    if parser.parse_args().figures:
        for package in PACKAGES:
            print(f"{package.name}: {len(files(package))} files")
        for name, modules in class_names(PACKAGES).items():
            print(f"class {name}: {', '.join(modules)}")
        for name, figure in figures(PACKAGES).items():
            print(f"{figure:>7,} {name}")
    broken = [line for package in PACKAGES for line in check(package, ROOT / "pyproject.toml")]
    broken += names_twice(PACKAGES)
    print("\n".join(broken), end="\n" if broken else "")
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
