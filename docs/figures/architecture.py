"""Draw the files and folders of the packages in the order of their imports: architecture.svg."""

import ast
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "packages"
PACKAGES = ("bench", "desk", "federation", "connect", "")  # the core has no name of its own


def imports(folder: Path) -> dict[str, set[str]]:
    """Return what each file and folder of a package imports, as dotted names."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        names = found.setdefault(path.relative_to(folder).parts[0].removesuffix(".py"), set())
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                names.update(start + one.name for one in node.names)
    return {room: names for room, names in found.items() if not room.startswith("__")}


def floors(package: str, found: dict[str, set[str]]) -> list[list[str]]:
    """Return the floors from the top: files import lower ones, or some of a circle on their own."""
    below = {}
    for room, names in found.items():
        parts = (name.split(".") for name in names if name.startswith(f"{package}."))
        below[room] = {part[1] for part in parts} & {*found} - {room}
    for middle in found:  # also what is imported by way of others
        for rooms in below.values():
            rooms.update(below[middle] if middle in rooms else ())

    def height(room: str) -> int:
        lower = (one for one in below[room] if room not in below[one])
        return max((1 + height(one) for one in lower), default=0)

    tops = sorted({height(room) for room in found}, reverse=True)
    return [[room for room in found if height(room) == top] for top in tops]


def svg() -> str:
    """Return the picture."""
    style = "rect { fill: #ffffff; stroke: #1f6fb2 } text { font: 14px sans-serif }"
    shapes, y = [f"<style>{style}</style>"], 10
    for package in (f"hushtable_{name}".rstrip("_") for name in PACKAGES):
        found = imports(SOURCES / package.replace("_", "-") / "src" / package)
        used = {one.split(".")[0] for names in found.values() for one in names} - {package}
        others = ", ".join(sorted(one for one in used if one.startswith("hushtable"))) or "none"
        lines = [f"{n}: {', '.join(one)}" for n, one in enumerate(floors(package, found), 1)]
        rows = [f"{package}: imports {others}", *lines]
        shapes.append(f'<rect x="10" y="{y}" width="780" height="{19 * len(rows) + 14}" rx="6"/>')
        for n, row in enumerate(rows, 1):
            shapes.append(f'<text x="24" y="{y + 19 * n + 3}">{row}</text>')
        y += 19 * len(rows) + 26
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {y}">'
    return "\n".join([head, *shapes, "</svg>", ""])


if __name__ == "__main__":
    (HERE / "architecture.svg").write_text(svg(), "utf-8")
