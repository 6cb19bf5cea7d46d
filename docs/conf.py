"""Sphinx settings. The docs build without a network, so nothing links to other projects' docs."""

import importlib.metadata
import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ConfigError

import hushtable
import hushtable.baselines

project = "hushtable"
author = copyright = "hushtable developers"
version = release = importlib.metadata.version("hushtable")

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = f"hushtable {version}"
html_show_sourcelink = False
# Pages without pages of their own beneath: an empty sidebar would take the tables' room.
html_sidebars = {
    page: []
    for page in (
        "benchmarks",
        "federation",
        "file-format",
        "flower",
        "method",
        "paper",
        "report",
        "scale",
        "speed",
        "tutorial",
    )
}

add_module_names = False
autodoc_typehints = "none"  # the docstrings give types in words
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False  # autodoc lists them

nitpick_ignore_regex = [
    ("py:.*", r"(numpy|pandas|pathlib|polars|pyarrow|pyod|sklearn)\..*"),
]

api_page = Path(__file__).with_name("api.md").read_text(encoding="utf-8")
listed = set(re.findall(r"^   (\w+)$", api_page, re.MULTILINE))
public = {*hushtable.__all__, *hushtable.baselines.__all__}
if listed != public:
    raise ConfigError(f"docs/api.md and the public names differ in {sorted(listed ^ public)}")


def skip_foreign(
    app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object
) -> bool | None:
    """Leave out what scikit-learn adds to every estimator; its own docs describe that."""
    return True if str(getattr(obj, "__module__", "")).startswith("sklearn.") else None


def setup(app: Sphinx) -> None:
    """Connect the hook above."""
    app.connect("autodoc-skip-member", skip_foreign)
