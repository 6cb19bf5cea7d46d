"""Sphinx settings. The docs build without a network, so nothing links to other projects' docs."""

import csv
import importlib.metadata
import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.directives.patches import CSVTable
from sphinx.errors import ConfigError
from sphinx.writers.html5 import HTML5Translator
from typer import Context

from hushtable.cli.app import app
from hushtable_connect.omop import ConceptSet

sys.path.insert(0, str(Path(__file__).parent))  # for gallery_style

project = "hushtable"
author = copyright = "hushtable developers"
version = release = importlib.metadata.version("hushtable")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "examples", "generated/commands.md"]
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence", "dollarmath", "substitution"]
myst_substitutions = {
    path.stem: {next(iter(row.values())): row for row in csv.DictReader(path.open(newline=""))}
    for path in (Path(__file__).parent / "benchmarks" / "results").glob("*.csv")
}  # a page writes {{ adbench["HushTable"]["ROC-AUC"] }}
myst_heading_anchors = 3

sphinx_gallery_conf = {
    "capture_repr": (),  # what an example prints, and not what its last line returns
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "download_all_examples": False,
    "image_srcset": ["2x"],
    "min_reported_time": 3600,  # how long an example took says little to a reader
    "reset_modules": ("matplotlib", "gallery_style.reset"),
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,  # that page would load scripts from elsewhere
}

smartquotes_action = "qe"  # "--" begins an option
html_theme = "pydata_sphinx_theme"
html_title = f"hushtable {version}"
html_show_sourcelink = False
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}  # light or dark as the reader's system is
html_theme_options = {
    "logo": {
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo-dark.svg",
        "text": "hushtable",
    },
    # All pages stand in the sidebar, in their six groups; the header would cut them off.
    "navbar_center": [],
    "pygments_light_style": "github-light-high-contrast",
    "pygments_dark_style": "github-dark",
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"**": ["all-pages.html"]}
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]

add_module_names = False
autodoc_typehints = "none"  # the docstrings give types in words
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False  # autodoc lists them

nitpick_ignore_regex = [("py:.*", r"(numpy|pandas|pathlib|polars|pyarrow|pyod|sklearn)\..*")]

api_page = (Path(__file__).parent / "reference" / "api.md").read_text(encoding="utf-8")
listed = set(re.findall(r"^   (\w+)$", api_page, re.MULTILINE))
packages = set(re.findall(r"currentmodule:: (\S+)$", api_page, re.MULTILINE))
public = {name for package in packages for name in getattr(import_module(package), "__all__", ())}
if listed != public:
    raise ConfigError(f"reference/api.md and the public names differ in {sorted(listed ^ public)}")


def command_help(group: Any, parent: Context) -> Iterator[str]:
    """Yield what `--help` prints of each command of a group, as Markdown that any width fits."""
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        command = command.load() if hasattr(command, "load") else command
        context = Context(command, info_name=name, parent=parent)
        about, _, example = inspect.cleandoc(command.help).partition("\nExample:\n")
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        yield f"### {context.command_path}\n\n{plain(about)}\n\n`{usage}`\n"
        if example:
            yield f"```text\n{inspect.cleandoc(example)}\n```\n"
        for record in (one.get_help_record(context) for one in command.get_params(context)):
            if record and record[0] != "-h, --help":
                yield f"- `{record[0]}`: {plain(record[1])}"
        yield ""
        if hasattr(command, "list_commands"):
            yield from command_help(command, context)


def plain(text: str) -> str:
    """Escape what Markdown would read as markup."""
    return re.sub(r"([\\`*_<>\[\]{}|$])", r"\\\1", text)


generated = Path(__file__).parent / "generated"
generated.mkdir(exist_ok=True)
root = app()
commands = command_help(root, Context(root, info_name="hushtable"))
(generated / "commands.md").write_text("\n".join(commands), "utf-8")


with (generated / "concepts.csv").open("w", encoding="utf-8", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(("column", "concepts", "unit", "units", "range", "usual", "source"))
    for one in ConceptSet.common():
        concepts, units = (", ".join(map(str, ids)) for ids in (one.concepts, one.units))
        limits = f"{one.low:g} to {one.high:g}"
        rows.writerow((one.name, concepts, one.unit, units, limits, f"{one.usual:g}", one.source))


def skip_foreign(
    app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object
) -> bool | None:
    """Leave out what scikit-learn adds to every estimator; its own docs describe that."""
    return True if str(getattr(obj, "__module__", "")).startswith("sklearn.") else None


def visit_math(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula as MathML, which browsers draw by themselves: no script, no network."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_math_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula in lines of its own; where it is wide, it scrolls."""
    formula = convert(node.astext(), display="block")
    self.body.append(f'<div class="formula" tabindex="0">{formula}</div>')
    raise nodes.SkipNode


class Results(CSVTable):
    """A table of docs/benchmarks/results, by the name of its file: ``{results} adbench``."""

    def run(self) -> list[nodes.Node]:
        own = {"header-rows": 1, "widths": "auto", "class": ["results"]}
        self.options = own | self.options | {"file": f"results/{self.arguments.pop()}.csv"}
        return list(super().run())


def setup(app: Sphinx) -> None:
    """Connect the hooks above."""
    app.add_directive("results", Results)
    app.connect("autodoc-skip-member", skip_foreign)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
