"""The script of `make lint` for catalogues: every text of the pages, translated and compiled."""

import shutil

import pytest

from places import ROOT, script

pytest.importorskip("babel", reason="the catalogues are kept with Babel")
from babel.messages.mofile import read_mo, write_mo


@pytest.fixture
def catalogue():
    return script(ROOT / ".ci" / "catalogue.py")


@pytest.fixture
def copy(tmp_path):
    """Return the catalogue of a copy of a package."""
    package = tmp_path / "x" / "src" / "hushtable_federation"
    source = ROOT / "packages" / "hushtable-federation" / "src" / package.name
    shutil.copytree(source, package)
    (path,) = package.glob("locale/*/LC_MESSAGES/*.po")
    return path


def test_all_templates_are_read(catalogue):
    source = ROOT / "packages/hushtable/src/hushtable"
    found = {place for message in catalogue.template(source) for place, _ in message.locations}
    pages = {path.relative_to(source).as_posix() for path in source.glob("report/*.html")}
    assert pages - found == {"report/head.html"}  # which has no texts


def test_another_version_of_the_compiler_may_write_other_bytes(catalogue, copy, tmp_path):
    """Babel 2.19 writes another header and order: what counts is what a reader of the file gets."""
    assert catalogue.main(tmp_path) == []
    compiled = copy.with_suffix(".mo")
    with compiled.open("rb") as file:
        there = read_mo(file)
    there.header_comment, there.project = "# Another one", "another"
    with compiled.open("wb") as file:
        write_mo(file, there)
    assert catalogue.main(tmp_path) == []
    some = next(one for one in there if one.id and isinstance(one.id, str))
    some.string = f"{some.string}!"
    with compiled.open("wb") as file:
        write_mo(file, there)
    assert catalogue.main(tmp_path) == [
        "federation.po: is not compiled: python .ci/catalogue.py --update"
    ]


def test_texts_that_differ_from_the_pages_are_refused(catalogue, copy, tmp_path):
    text = copy.read_text("utf-8")
    first = text.split('\nmsgid "')[2].partition('"')[0]
    copy.write_text(text.replace(f'\nmsgid "{first}"', '\nmsgid "another"', 1), "utf-8")
    found = catalogue.main(tmp_path)
    assert any("lacks" in one for one in found)
    assert any("has ('another',), which is on no page" in one for one in found)
