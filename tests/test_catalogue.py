"""Every text of the pages is in each catalogue of its package, translated and compiled."""

import shutil

import pytest

from places import ROOT, script

pytest.importorskip("babel", reason="the catalogues are kept with Babel")
from babel.messages.mofile import write_mo


@pytest.fixture
def catalogue():
    return script(ROOT / ".ci" / "catalogue.py")


def test_every_package_with_pages_has_catalogues(catalogue):
    names = {source.name for source in catalogue.sources()}
    assert names == {"hushtable", "hushtable_desk", "hushtable_federation"}
    assert all([*catalogue.catalogues(source)] for source in catalogue.sources())


@pytest.mark.parametrize("package", ["hushtable", "hushtable_desk", "hushtable_federation"])
def test_nothing_is_missing(catalogue, package):
    source = next(one for one in catalogue.sources() if one.name == package)
    assert [*catalogue.faults(source)] == []


def test_all_templates_are_read(catalogue):
    source = next(one for one in catalogue.sources() if one.name == "hushtable")
    found = {place for message in catalogue.template(source) for place, _ in message.locations}
    pages = {path.relative_to(source).as_posix() for path in source.glob("report/*.html")}
    assert pages - found == {"report/head.html"}  # which has no texts


def test_another_version_of_the_compiler_may_write_other_bytes(catalogue, tmp_path):
    """Babel 2.19 writes another header and order: what counts is what a reader of the file gets."""
    original = next(one for one in catalogue.sources() if one.name == "hushtable_federation")
    source = tmp_path / "src" / "x" / original.name
    shutil.copytree(original, source)
    [(path, there)] = catalogue.catalogues(source)
    there.header_comment, there.project = "# Another one", "another"
    with path.with_suffix(".mo").open("wb") as file:
        write_mo(file, there)
    assert [*catalogue.faults(source)] == []
    some = next(one for one in there if one.id and isinstance(one.id, str))
    some.string = f"{some.string}!"
    with path.with_suffix(".mo").open("wb") as file:
        write_mo(file, there)
    assert [*catalogue.faults(source)] == [
        "federation, de is not compiled: python .ci/catalogue.py --update"
    ]
