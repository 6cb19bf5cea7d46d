"""The models page: each file in words, two side by side, exports, and broken files."""

import json

import numpy as np
import pandas as pd
import pytest

from desk_helpers import Browser, no_style_or_script, words
from hushtable import Feature, HushTable, Plan, Schema, Sketch, plugins
from hushtable.errors import PluginError
from hushtable_desk.folder import key_of
from hushtable_federation import HomeModel

RNG = np.random.default_rng(3)
EVIL = "<img src=x onerror=alert(1)>.hush"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    rows = pd.DataFrame({"age": RNG.normal(50, 9, 300), "<b>unit</b>": RNG.choice(["a", "b"], 300)})
    HushTable(random_state=0).fit(rows).save(path / "rows.hush")
    HushTable(random_state=1).fit(rows[["age"]]).save(path / "age.hush")
    schema = Schema([Feature.numeric("load", low=0, high=100)])
    plan = Plan.draw(schema, epsilon=1.0, expected_rows=10_000, random_state=0)
    plan.save(path / "plan.hush")
    sketch = Sketch.from_data(plan, RNG.uniform(0, 100, (500, 1)))
    sketch.save(path / "sketch.hush")
    sketch.release(epsilon=1.0).save(path / "release.hush")
    (path / "broken.hush").write_bytes(b"no model")
    (path / EVIL).write_bytes((path / "rows.hush").read_bytes()[:-40])
    (path / "notes.txt").write_text("a\n1\n")
    return path


@pytest.fixture(scope="module")
def browser(folder):
    return Browser(folder)


def test_all_files_are_listed_and_broken_ones_with_their_error(browser):
    page = browser.get("/models")
    no_style_or_script(page)
    text = words(page)
    for name in ("rows.hush", "age.hush", "plan.hush", "sketch.hush", "release.hush"):
        assert name in text
    assert "a fitted model 300 2 100" in text
    assert "epsilon 1" in text
    assert "broken.hush" in text
    assert 'class="error"' in page
    assert "notes.txt" not in text


def test_a_home_model_is_listed(tmp_path):
    rows = RNG.uniform(0, 100, (50, 1))
    plan = Plan.draw(Schema([Feature.numeric("load", low=0, high=100)]), random_state=0)
    HomeModel.fit(rows, Sketch.from_data(plan, rows)).save(tmp_path / "north.home.hush")
    browser = Browser(tmp_path)
    for path in ("/models", f"/models/{key_of('north.home.hush')}"):
        assert "a home model" in words(browser.get(path))


def test_names_of_files_and_columns_are_text_alone(browser):
    for path in ("/models", f"/models/{key_of(EVIL)}", f"/models/{key_of('rows.hush')}"):
        page = browser.get(path)
        assert "<img" not in page
        assert "<b>unit" not in page
    assert "&lt;b&gt;unit&lt;/b&gt;" in browser.get(f"/models/{key_of('rows.hush')}")


def test_a_model_is_shown_as_inspect_shows_it(browser):
    page = browser.get(f"/models/{key_of('rows.hush')}")
    no_style_or_script(page)
    text = words(page)
    for said in ("300", "rows with a lower score are outliers", "no: it holds exact counts",
                 "age numeric", "a range read off rows"):  # fmt: skip
        assert said in text
    release = words(browser.get(f"/models/{key_of('release.hush')}"))
    assert "Cost for one person" in release
    assert "epsilon" in release
    assert "Export" in release
    assert "Export" not in words(browser.get(f"/models/{key_of('plan.hush')}"))


def test_what_is_no_model_has_no_page(browser):
    for key in (key_of("notes.txt"), "0123456789ab"):
        assert "no longer" in browser.get(f"/models/{key}", 400)


def test_a_model_is_exported_as_json(browser):
    answer = browser.client.get(f"/models/{key_of('rows.hush')}/export/json")
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''rows.json"
    assert json.loads(answer.content)


def test_what_cannot_be_exported_says_why(browser, monkeypatch):
    assert "exports to this format" in browser.get(f"/models/{key_of('rows.hush')}/export/xyz", 400)
    browser.get(f"/models/{key_of('plan.hush')}/export/json", 400)

    def fails(group, name):
        raise PluginError("needs the extra onnx: pip install 'hushtable[onnx]'")

    monkeypatch.setattr(plugins, "find", fails)
    page = browser.get(f"/models/{key_of('rows.hush')}/export/onnx", 400)
    assert "needs the extra onnx" in page


def test_a_file_that_changes_is_read_again(folder, browser):
    (folder / "later.hush").write_bytes(b"no model")
    assert 'class="error"' in browser.get(f"/models/{key_of('later.hush')}")
    (folder / "later.hush").write_bytes((folder / "age.hush").read_bytes())
    assert "rows with a lower score are outliers" in words(
        browser.get(f"/models/{key_of('later.hush')}")
    )
    (folder / "later.hush").unlink()


def test_an_empty_folder_has_no_models(tmp_path):
    assert "no .hush file yet" in words(Browser(tmp_path).get("/models"))
