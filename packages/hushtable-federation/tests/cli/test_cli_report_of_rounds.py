"""``hushtable report`` of rounds and of the models that they leave."""

import shutil

import pytest

from cli_helpers import allow_no_masks, do, hold, say, write_rows


@pytest.fixture(scope="module")
def consortium(tmp_path_factory, site):
    """Folder with rounds of three sites, with masks and without."""
    here = tmp_path_factory.mktemp("consortium")
    plan = here / "plan.hush"
    do("plan", "draw", site / "schema.toml", "--tables", 5, "--seed", 1, "-o", plan)
    names = ("east", "north", "south")
    for seed, name in enumerate(names):
        write_rows(here / f"{name}.csv", 200, seed)
        do("round", "keygen", name, "--cap", 9, "--persons", "1", "--folder", here)
    do("round", "keygen", "lead", "--folder", here)
    allow_no_masks(here, *names)
    cards = [here / f"{name}.card" for name in names]
    for kind, options in (("masked", []), ("open", ["--no-masks"])):
        asked = here / f"{kind}.round.hush"
        do("round", "open", plan, *cards, "--key", here / "lead.key", "--epsilon", 1,
           *options, "--title", "<b>spring</b>", "-o", asked)  # fmt: skip
        (here / kind).mkdir()
        for name in names:
            say(here, name)
        hold(here, asked.name, *names).rename(here / f"{kind}.result.hush")
        step = "submission" if kind == "open" else "masked"
        for name in names:
            (sent,) = (here / f"{kind}.round.box").glob(f"*.{step}.{name}.*")
            shutil.copy(sent, here / kind / f"{name}.hush")
    do("round", "model", here / "masked.result.hush", "--book", here / "north.book",
       "-o", here / "local.hush")  # fmt: skip
    return here


@pytest.fixture
def report(run, tmp_path):
    """Run the command; return its JSON and the page."""

    def report(*arguments):
        page = tmp_path / "report.html"
        text = run("report", *arguments, "-o", page)
        assert text.code == 0, text.err
        assert f"Wrote {page}" in text.out
        html = page.read_text(encoding="utf-8")
        facts = run("report", *arguments, "-o", page, "--json").json
        assert facts["report"] == str(page)
        return facts, html

    return report


@pytest.mark.parametrize("kind", ["masked", "open"])
def test_a_round(report, consortium, tmp_path, kind):
    result, asked = consortium / f"{kind}.result.hush", consortium / f"{kind}.round.hush"
    # A folder also holds the round, and the result, neither of which is refused.
    for path in (result, asked, *(consortium / kind).iterdir()):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    facts, html = report(result, "--round", asked, "--parts", tmp_path)
    assert "Refused" not in html
    assert facts["sections"] == ["features", "privacy", "sites"]
    assert facts["reasons_to_stay"] == []
    assert html.count("✓ passed:") == 3
    assert "exactly" in html
    assert ("rows, estimated" in html) == (kind == "open")
    assert "&lt;b&gt;spring&lt;/b&gt;" in html
    assert "<b>" not in html


def test_a_round_with_a_late_site_and_a_broken_file(report, consortium, tmp_path):
    sent = tmp_path / "sent"
    sent.mkdir()
    for name in ("east", "north"):
        (sent / f"{name}.hush").write_bytes((consortium / "open" / f"{name}.hush").read_bytes())
    (sent / "again.hush").write_bytes((sent / "north.hush").read_bytes())
    (sent / "south.hush").write_bytes((consortium / "open" / "south.hush").read_bytes()[:900])
    result = consortium / "open.result.hush"
    asked = consortium / "open.round.hush"
    _, html = report(result, "--round", asked, "--parts", sent)
    assert "Missing: south." in html
    assert "Refused" in html
    assert "repeats the submission of north" in html
    assert str(tmp_path) not in html
    assert "✗ failed: The sum of the parts is not open.result.hush" in html
    # Under masks nothing is added up: what is in has to be what the result names.
    east = consortium / "masked" / "east.hush"
    masked = ["--round", consortium / "masked.round.hush", "--parts", east]
    _, html = report(consortium / "masked.result.hush", *masked)
    assert "names different submissions from those that are in" in html


def test_a_local_model(report, consortium):
    facts, html = report(consortium / "local.hush", consortium / "north.csv")
    assert facts["sections"] == ["scores", "features", "privacy"]
    assert any("must not leave" in reason for reason in facts["reasons_to_stay"])
    assert "a local model mixes exact counts with noisy ones" in html


def test_refused(refused, site, consortium, tmp_path):
    page = tmp_path / "r.html"
    model = site / "model.hush"
    result, masked = consortium / "masked.result.hush", consortium / "masked.round.hush"
    sent = consortium / "masked"
    other = consortium / "open.round.hush"
    refused("report", result, "-o", page, "--parts", sent, "--round", other, code=2,
            says="not the result of round")  # fmt: skip
    refused("report", consortium / "local.hush", "-o", page, "--parts", sent, code=2,
            says="is a local model")  # fmt: skip
    refused("report", model, "-o", page, "--parts", sent, "--round", masked, code=2,
            says="contains exact counts")  # fmt: skip
    refused("report", result, "-o", page, "--parts", site / "a.sketch.hush", code=2,
            says="of different kinds")  # fmt: skip
