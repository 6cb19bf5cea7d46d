"""Where things of the repository lie, for tests of all packages."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GOLDEN = ROOT / "tests" / "golden"
CORE, FEDERATION, CONNECT = (
    ROOT / "packages" / f"hushtable{name}" for name in ("", "-federation", "-connect")
)


def script(path: Path) -> ModuleType:
    """Return a script that no import finds, run again, as a module."""
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look for it there
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[path.stem]
    return module
