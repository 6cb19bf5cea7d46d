"""``hushtable report``: from files to one page, and what is refused before anything is read."""

import re
import sys

import numpy as np
import pytest
from pyarrow import csv

from cli_helpers import do, write_rows
from hushtable import load
from hushtable.cli.options import read_counts
from hushtable.counts import rounds


@pytest.fixture(scope="module")
def released(tmp_path_factory, site):
    """Folder with the releases of three sites and their sum."""
    here = tmp_path_factory.mktemp("released")
    plan, parts = here / "plan.hush", here / "parts"
    do("plan", "draw", site / "schema.toml", "--tables", 5, "--seed", 1, "-o", plan)
    parts.mkdir()
    for seed, name in enumerate(("east", "north", "south")):
        write_rows(here / f"{name}.csv", 200, seed)
        do("sketch", here / f"{name}.csv", "--plan", plan, "-o", here / f"{name}.sketch.hush")
        do("release", here / f"{name}.sketch.hush", "--epsilon", 2, "-o", parts / f"{name}.hush")
    do("merge", *sorted(parts.iterdir()), "-o", here / "merged.hush")
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


def test_a_model_and_its_rows(report, site):
    facts, html = report(site / "model.hush", site / "rows.csv", "--rows", 3)
    model = load(site / "model.hush")
    scores = model.score_samples(site / "rows.csv")
    assert facts["sections"] == ["scores", "features"]
    assert len(facts["reasons_to_stay"]) == 3
    # Of the rows that the model counted, drift is none.
    assert facts["drift"]["overall"] < 0.0 < facts["drift"]["by_chance_up_to"]
    assert facts["drift"]["features_beyond_chance"] == []
    assert f">{(scores < model.offset_).sum()} (" in html
    assert len(re.findall(r'<p class="soft">With (?:a usual value|usual values) of', html)) == 3
    for rank, row in enumerate(np.argsort(scores, kind="stable")[:3], 1):
        card = html.partition(f'<li id="row-{rank}">')[2].partition("</li>")[0]
        assert f">row {row}</span>" in card
        assert f"score {scores[row]:.2f}" in card
        assert " bits</figcaption>" in card


def test_ids_and_values_only_where_asked(report, run, site, tmp_path):
    rows = csv.read_csv(site / "rows.csv")
    names = [f"00{i}" for i in range(len(rows))]
    table = rows.append_column("nr", [names]).append_column("seen", [["1 May"] * len(rows)])
    csv.write_csv(table, tmp_path / "rows.csv")
    data = [site / "model.hush", tmp_path / "rows.csv", "--read", "drop=nr,seen", "--rows", 3]
    _, html = report(*data)
    assert "1 May" not in html
    facts, html = report(*data, "--id", "nr", "--keep", "seen,ward", "--values")
    assert (
        "It shows values of these rows: nr, seen, ward and the values that lower their scores."
        in facts["reasons_to_stay"]
    )
    scores = load(site / "model.hush").score_samples(site / "rows.csv")
    for row in np.argsort(scores, kind="stable")[:3].tolist():
        # As they are in the data, zeros and all.
        card = html.partition(f"nr</span> 00{row}</span>")[2].partition("</li>")[0]
        assert f">row {row}</span>" in card
        assert "seen</span> 1 May</span>" in card
        assert f"ward</span> {table['ward'][row].as_py() or ''}</span>" in card
        assert "</figcaption><svg " in card
    for options, code, words in (
        (["--id", "nr"], 2, "give --rows"),
        (["--rows", 1, "--id", "nr", "--keep", "nr"], 2, "name a column twice"),
        (["--rows", 1, "--keep", "age,name"], 1, "has no column ['name']"),
    ):
        refused = run("report", *data[:4], *options, "-o", tmp_path / "no.html")
        assert refused.code == code
        assert words in refused.err
    assert not (tmp_path / "no.html").exists()


def test_ranks_among_all_rows(report, run, site, tmp_path):
    plan, counts = tmp_path / "ranks.plan.hush", tmp_path / "ranks.hush"
    rounds.ranks(read_counts(site / "model.hush", "detector")).save(plan)
    do("sketch", site / "rows.csv", "--plan", plan, "-o", counts)
    _, html = report(site / "model.hush", site / "rows.csv", "--rows", 3, "--ranks", counts)
    scored = (site / "rows.csv", "--model", site / "model.hush", "--ranks", counts)
    lowest = run("score", *scored, "-o", tmp_path / "scores.csv", "--json").json["lowest"]
    for one in lowest[:3]:
        assert f"severity <strong>{100.0 * (1.0 - one['rank']):.2f}" in html


def test_a_merged_release_and_its_parts(report, released, tmp_path):
    parts = released / "parts"
    _, html = report(released / "merged.hush", "--parts", parts / "[ns]o*.hush")
    assert "✗ failed:" in html  # east was left out
    total = tmp_path / "merged.hush"
    total.write_bytes((released / "merged.hush").read_bytes())
    for part in parts.iterdir():
        (tmp_path / part.name).write_bytes(part.read_bytes())
    # The sum in the same folder is not taken for a part.
    facts, html = report(total, "--parts", tmp_path)
    assert facts["sections"] == ["features", "privacy", "sites"]
    assert "✓ passed:" in html
    assert "✗" not in html
    for name in ("east", "north", "south"):
        assert f'<td class="number">{load(parts / f"{name}.hush").n_rows:,}</td>' in html


def test_refused(refused, site, tmp_path, old):
    page = tmp_path / "r.html"
    model, rows = site / "model.hush", site / "rows.csv"
    refused("report", model, "-o", tmp_path / "r.pdf", code=2, says="must end in .html")
    refused("report", model, "-o", tmp_path / "none" / "r.html", says="no folder")
    refused("report", model, "-o", page, "--rows", 3, code=2, says="give DATA after MODEL")
    refused("report", model, "-o", page, "--ranks", model, code=2, says="give DATA after MODEL")
    refused(
        "report",
        model,
        rows,
        "-o",
        page,
        "--contamination",
        2,
        code=2,
        says="--contamination was removed",
    )
    refused("report", model, "-o", page, "--round", model, code=2, says="round verify")
    refused("report", model, "-o", page, "--parts", tmp_path / "x*", says="no such file")
    refused("report", old, "-o", page, says="not a .hush file")
    refused("report", site / "plan.hush", "-o", page, says="holds a plan")
    marginals = site / "marginals.sketch.hush"
    refused("report", model, rows, "-o", page, "--ranks", marginals, says="ranks need counts")
    refused("report", marginals, rows, "-o", page, code=2, says="cannot score rows")


def test_an_old_page_survives(run, site, tmp_path, monkeypatch):
    page = tmp_path / "r.html"
    page.write_text("precious")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = run("report", site / "model.hush", "-o", page)
    assert result.code == 1
    assert "pip install 'hushtable[report]'" in result.err
    assert page.read_text() == "precious"
