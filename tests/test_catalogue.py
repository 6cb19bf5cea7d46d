"""Every text of the pages is in each catalogue of its package, translated and compiled."""

import pytest

from places import ROOT, script

pytest.importorskip("babel", reason="the catalogues are kept with Babel")


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
